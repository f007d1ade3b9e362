"""The base class of programs, and the registry of methods that solve them."""

from __future__ import annotations

import os
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, is_dataclass, replace
from functools import cached_property, lru_cache
from importlib import import_module
from numbers import Real
from typing import Any, ClassVar, Generic, TypeVar

from numpy.typing import NDArray

from pmlopt.core.definitions import is_own
from pmlopt.core.display import format_facts_html
from pmlopt.core.lazy_imports import cp, is_installed
from pmlopt.core.light_dataclass import light_dataclass
from pmlopt.core.numbers.arrays import (
    BoolArray,
    DefaultLabels,
    FloatArray,
    Label,
    Labels,
    check_integer,
    check_labels_of_size,
)
from pmlopt.core.programming_errors import describe_error
from pmlopt.core.records.fields import Record
from pmlopt.core.suggestions import SuggestsAttributes
from pmlopt.errors import PmloptError, ProgramError, SolverUnavailableError
from pmlopt.programs.certificate import C_co, Certificate, ClosedForm, WarmStartLike, get_warm_start
from pmlopt.solvers.cvxpy_interface import list_installed
from pmlopt.solvers.solver_result import Deadline, MethodOptions, SolverResult


def build_problem(
    objective: cp.Minimize | cp.Maximize, constraints: Mapping[str, cp.Constraint]
) -> cp.Problem:
    """Build a cvxpy problem whose constraints carry their names as labels."""
    for name, constraint in constraints.items():
        constraint.set_label(name)
    return cp.Problem(objective, list(constraints.values()))


@light_dataclass(frozen=True, eq=False)
class CvxpyModel:
    """The cvxpy model of a program: problem, variables and constraints by name."""

    problem: cp.Problem
    variables: Mapping[str, cp.Variable]
    constraints: Mapping[str, cp.Constraint]

    def get_self(self) -> CvxpyModel:
        """Return the model itself, as a ready-made `build_model`."""
        return self


@dataclass(frozen=True, eq=False, kw_only=True)
class Program(SuggestsAttributes, ABC, Generic[C_co]):
    """The base class of all optimization problems: declared, not yet solved.

    `problem` is an ordinary cvxpy problem whose parts have names; `solve` answers it with a `Result` whose
    certificate is of the kind that the program names.

    Attributes:
        build_model: makes the cvxpy side, when it is first required: some methods do without.
        added: the constraints that came in with `with_constraints`.
        maximised: whether more of the value is better.
        tolerance: the largest certified gap to accept where a person states nothing, as a share of `scale`.
    """

    ATTRIBUTE_HINTS: ClassVar[Mapping[str, str]] = {
        "solve": "pmlopt.solve(program)", "value": "pmlopt.solve(program).value",
        "run": "pmlopt.solve(program)", "matrix": "pmlopt.solve(program).matrix",
        "result": "pmlopt.solve(program)", "add": ".with_constraints(name=constraint)",
    }  # fmt: skip

    USER_NAMES: ClassVar[tuple[str, ...]] = (
        "added", "channel", "constraints", "delta", "entropy", "epsilon", "given_mechanism", "limit",
        "maximised", "mechanism", "order", "outputs", "over", "prior", "privacy", "problem", "query", "ratio",
        "scale", "sense", "tolerance", "utilities", "utility", "variables", "with_constraints", "write_mps",
    )  # fmt: skip
    """Of every kind of program; each has some of them."""

    build_model: Callable[[], CvxpyModel]
    added: Mapping[str, cp.Constraint] = field(default_factory=dict)
    tolerance: ClassVar[float] = 1e-7

    def _list_own_fields(self) -> set[str]:
        """List no fields: many are prepared for the methods, and users write the `USER_NAMES`."""
        return set()

    @property
    @abstractmethod
    def maximised(self) -> bool:
        """Return whether the objective is maximised."""

    @property
    def scale(self) -> float:
        """Return the unit of relative tolerances: a nat, a rank, or the utility's range."""
        return 1.0

    @property
    def rounding_gap(self) -> float:
        """Return the gap that rounding alone may leave, which does not shrink with the scale."""
        return 0.0

    def compute_allowed_gap(self, tolerance: float) -> float:
        """Compute the absolute gap below which a result counts as optimal at a relative tolerance."""
        return max(tolerance * self.scale, self.rounding_gap)

    @property
    def expected_gains(self) -> FloatArray | None:
        """Return (N, M) gains of which the expectation is maximised; None for another utility."""
        return None

    @property
    def row_and_column_labels(self) -> tuple[Labels | None, Labels | None]:
        """Return the row and column labels of the mechanism; None where they are free."""
        return None, None

    @cached_property
    def cvxpy_model(self) -> CvxpyModel:
        """Return the cvxpy model, built on first use."""
        return self.build_model()

    @property
    def problem(self) -> cp.Problem:
        """Return the cvxpy problem, for inspection, changes, or solving by hand."""
        return self.cvxpy_model.problem

    @property
    def variables(self) -> Mapping[str, cp.Variable]:
        """Return the variables of the problem, by name."""
        return self.cvxpy_model.variables

    @property
    def constraints(self) -> Mapping[str, cp.Constraint]:
        """Return the constraints of the problem, by name."""
        return self.cvxpy_model.constraints

    def write_mps(self, path: str | os.PathLike[str]) -> None:
        """Write the linear program in the MPS format, named after constraints, letters and outputs.

        Its numbers are floats, for any solver; `Result.prove` writes it over the rationals.

        Raises:
            ProgramError: the program has constraints that are not linear, or only a part of its columns.
            FileFormatError: the file cannot be written.

        Examples:
            >>> import tempfile, pathlib
            >>> from pmlopt import ExpectedLoss, PML, design
            >>> program = design([0.5, 0.5], PML(0.4), ExpectedLoss([[0, 1], [1, 0]]))
            >>> with tempfile.TemporaryDirectory() as folder:
            ...     program.write_mps(pathlib.Path(folder) / "lp.mps")
            ...     "mechanism[1,0]" in (pathlib.Path(folder) / "lp.mps").read_text()
            True
        """
        from pmlopt.solvers.program_files import write_mps

        write_mps(self.problem, path, self.row_and_column_labels)

    def __str__(self) -> str:
        """Return the cvxpy problem as text, with the size and the names of its parts."""
        parts = [f"variable {name}: {variable.shape}" for name, variable in self.variables.items()]
        constraints = {**self.constraints, **self.added}
        parts += [f"constraint {name}: {one.size} rows" for name, one in constraints.items()]
        return "\n".join([str(self.problem), *parts])

    def __repr__(self) -> str:
        return f"<{type(self).__name__}>"

    def _repr_html_(self) -> str:
        """Return the sense and the size of the problem as a notebook shows them."""
        sense = "maximise" if self.maximised else "minimise"
        facts = {
            "sense": sense,
            "scale of the gap": f"{self.scale:.6g}",
            "tolerance": f"{self.tolerance:g}",
        }
        facts |= {
            f"variable {name}": str(variable.shape) for name, variable in self.variables.items()
        }
        constraints = {**self.constraints, **self.added}
        facts |= {f"constraint {name}": f"{one.size} rows" for name, one in constraints.items()}
        return format_facts_html(repr(self).strip("<>"), facts)


def has_foreign_parts(program: Program[Any]) -> bool:
    """Return whether a program or an object in it is of a class from another package."""
    # a program may keep programs that refer back to it, so that only its records are looked into
    return _is_foreign_class(type(program)) or _have_foreign_parts(vars(program).values())


def _have_foreign_parts(parts: Iterable[Any]) -> bool:
    """Return whether one of some objects, or a field in it, is of a class from another package."""
    for part in parts:
        is_sequence, is_record = _has_parts(type(part))  # type: ignore[arg-type]
        if is_record and (
            _is_foreign_class(type(part)) or _have_foreign_parts(vars(part).values())
        ):
            return True
        if is_sequence and _have_foreign_parts(part):
            return True
    return False


def _is_foreign_class(kind: type) -> bool:
    """Return whether a class is from another package; subclasses of pmlopt's classes elsewhere are."""
    return not kind.__module__.startswith("pmlopt.")


@lru_cache(1_000)  # the parts of a program are of few classes
def _has_parts(kind: type) -> tuple[bool, bool]:
    """Return whether a class is one of sequences of parts, and whether it is a record."""
    is_sequence = issubclass(kind, list | tuple) and not issubclass(kind, DefaultLabels)
    return is_sequence, issubclass(kind, Record)


P = TypeVar("P", bound=Program[Any])
C = TypeVar("C", bound=Certificate)
S = TypeVar("S")
"""What the methods of a question may start from."""


class MethodError(PmloptError):
    """The error of a method without a result; the message gives the reason.

    `solve` goes on to the next one.
    """


class FalseCertificateError(MethodError):
    """The error of a method whose certificate fails its checks: method or program is wrong."""


@light_dataclass(frozen=True, eq=False, kw_only=True)
class MethodResult(Generic[C_co]):
    """The result of a solver method: a certified mechanism and how the method ended.

    Attributes:
        certificate: what is claimed.
        finished: whether it ended separately, and not by a limit.
        message: how it ended, in words.
        detail: what the reason of the result states besides the method's own; left out, the message.
        iterations: its own count, where it has one.
        warm_started: whether it started from a known mechanism.
        compile_seconds, solve_seconds, certify_seconds: what it took.
        closed_form: the optimum by formula, where one is known.
        arrays: what a next program of the question may start from, by name.
    """

    certificate: C_co
    finished: bool
    message: str
    detail: str | None = None
    iterations: int | None = None
    warm_started: bool = False
    compile_seconds: float = 0.0
    solve_seconds: float = 0.0
    certify_seconds: float = 0.0
    closed_form: ClosedForm | None = None
    arrays: Mapping[str, NDArray[Any]] = field(default_factory=dict)


def wrap_given_certificate(
    certificate: C, closed_form: ClosedForm | None = None
) -> MethodResult[C]:
    """Wrap the certificate of a given matrix as a method result, with a warm start."""
    return MethodResult(
        certificate=certificate,
        finished=True,
        message="a matrix that was given",
        detail="",
        closed_form=closed_form,
        arrays={"matrix": certificate.mechanism.matrix},
    )


def make_method_result(
    outcome: SolverResult, certificate: C, certify_seconds: float, detail: str = "", **more: Any
) -> MethodResult[C]:
    """Combine a solver's result with its certificate to a method result."""
    return MethodResult(
        certificate=certificate,
        finished=outcome.finished,
        message=outcome.message,
        detail=detail,
        iterations=outcome.iterations,
        warm_started=outcome.warm_started,
        compile_seconds=outcome.compile_seconds,
        solve_seconds=outcome.solve_seconds,
        certify_seconds=certify_seconds,
        **more,
    )


def accept_all(*_: object) -> bool:
    """Return True; the `applies` predicate of methods without conditions."""
    return True


@light_dataclass(frozen=True)
class Method(Generic[P, S, C]):
    """A solver method of one kind of program: a registry entry with name, reason and run function.

    Attributes:
        name: by which it is requested.
        reason: when it is the right one and why; a result carries it.
        run: solves within the limits of the options, looks at their deadline inside its loops, and certifies
            what it found. Whatever it raises is an ending like others, but an InfeasibleError, which states
            that the constraints that a person added allow nothing.
        applies: whether it can take a program with a start.
        automatic: whether `auto` tries it; else it is run where it is requested by name.
        requirements_text: what a program must be for it, in words.
        id: what distinguishes it from the other rows of its question; left out, its name.
        accepts_options: whether it passes a user's options to a solver.
    """

    name: str
    reason: str
    run: Callable[[P, MethodOptions, S], MethodResult[C]]
    applies: Callable[[P, S], bool] = accept_all
    automatic: bool = True
    requirements_text: str = ""
    id: str = ""
    accepts_options: bool = False

    def __post_init__(self) -> None:
        object.__setattr__(self, "id", self.id or self.name)

    @cached_property
    def is_own(self) -> bool:
        """Return whether all code that the method runs is defined in pmlopt."""
        return is_own(self.run)

    def __repr__(self) -> str:
        """Return the name and the reason in a line."""
        return f"<Method {self.name}: {self.reason}>"


def describe_failure(method: Method[Any, Any, Any], cause: BaseException) -> str:
    """Describe in one line the error with which a method ended."""
    return f"{method.id}: {cause if isinstance(cause, MethodError) else describe_error(cause)}"


def check_shape(
    matrix: FloatArray, wanted: FloatArray | BoolArray, what: str = "the warm start"
) -> None:
    """Raise a ProgramError where a matrix does not have the program's shape."""
    if matrix.shape != wanted.shape:
        raise ProgramError(f"{what} has shape {matrix.shape}; the program needs {wanted.shape}")


def reject_warm_start(why: str) -> Callable[[Any, WarmStartLike, Deadline], None]:
    """Build the `make_start` of a registry that accepts no user-given warm starts.

    Args:
        why: what they start from, and what to do: the message where a mechanism was given.
    """

    def check_start(_: Program[Any], warm_start: WarmStartLike, __: Deadline) -> None:
        if (
            warm_start is not None
            and warm_start is not False
            and get_warm_start(warm_start) is None
        ):
            raise ProgramError(why)

    return check_start


def refuse_to_certify(
    why: str,
) -> Callable[[Any, FloatArray, FloatArray | None], MethodResult[Any]]:
    """Build the `certify_matrix` of a registry that cannot certify given matrices: it raises an error."""

    def raise_reason(*_: object) -> MethodResult[Any]:
        raise ProgramError(why)

    return raise_reason


@light_dataclass(frozen=True)
class MethodRegistry(Generic[P, S, C]):
    """The solver methods for one kind of program, with its handling of warm starts and given matrices.

    Attributes:
        program: the type of its programs.
        methods: in the order in which `auto` tries those that apply.
        make_start: what the methods may start from, from the warm start that a person gave, found
            before a deadline; an InputError where that does not fit the program. A `WarmStart` that does not
            fit is left out.
        certify_matrix: the certificate of a matrix from anywhere, with multipliers or without.
        make_cvxpy_method: the row of a solver of cvxpy, by its name, where any of them can be requested.
        find_first_result: a feasible mechanism in milliseconds, for when the time is over; a MethodError
            without one.
        compares_first: whether that may be better than the mechanism of a method that was stopped.
        replace_mechanism: a certificate of the program with another (N, M) mechanism that meets the
            requirement, of which value and violations are computed again; the proof of the bound stays.
    """

    program: type[P]
    methods: tuple[Method[P, S, C], ...]
    make_start: Callable[[P, WarmStartLike, Deadline], S]
    certify_matrix: Callable[[P, FloatArray, FloatArray | None], MethodResult[C]]
    make_cvxpy_method: Callable[[str], Method[P, S, C]] | None = None
    find_first_result: Callable[[P], MethodResult[C]] | None = None
    compares_first: bool = False
    replace_mechanism: Callable[[P, C, FloatArray], C] | None = None

    @property
    def own_names(self) -> list[str]:
        """Return the names of the methods that are pmlopt's own."""
        return list(dict.fromkeys(method.name for method in self.methods))

    def has_name(self, name: str) -> bool:
        """Return whether `solver=` accepts a (lower-case) name for these programs."""
        known = name == "auto" or name in self.own_names
        return known or (self.make_cvxpy_method is not None and name in list_installed())

    def list_automatic(self, program: P, start: S) -> list[Method[P, S, C]]:
        """List the methods that `solver="auto"` tries, in order."""
        return list(self.select_methods(program, "auto", start))

    def list_by_name_only(self, program: P, start: S) -> list[Method[P, S, C]]:
        """List the methods that run only when selected by name."""
        rows = [one for one in self.methods if not one.automatic]
        if self.make_cvxpy_method is not None:
            rows += [
                self.make_cvxpy_method(name)
                for name in list_installed()
                if name not in self.own_names
            ]
        return [one for one in rows if one.applies(program, start)]

    def find_by_name(self, program: P, name: str, start: S) -> Method[P, S, C]:
        """Find a method by name, in its form for explicit selection.

        Raises:
            SolverUnavailableError: there is none, or it cannot take this program; the message lists others.
        """
        # rows for a name come first: their conditions are wider than those that `auto` needs
        rows = sorted(
            (one for one in self.methods if one.name == name), key=lambda one: one.automatic
        )
        if not rows and self.make_cvxpy_method is not None and name in list_installed():
            rows = [self.make_cvxpy_method(name)]
        for one in rows:
            if one.applies(program, start):
                return one
        if rows:
            raise SolverUnavailableError(
                f"{name} does not solve {program!r}: it takes {rows[0].requirements_text}. Use auto"
            )
        names = [*self.own_names, *(list_installed() if self.make_cvxpy_method else [])]
        raise SolverUnavailableError(
            f"{name!r} does not solve {program!r}, or is not installed; there are: auto, "
            f"{', '.join(dict.fromkeys(names))}"
        )

    def select_methods(self, program: P, solver: object, start: S) -> Iterable[Method[P, S, C]]:
        """Select the methods to try in order: automatic ones, a named one, or a given object.

        Args:
            program: to solve.
            solver: "auto", a name, a row, or the `run` of a row of this question with other options.
            start: what there is to start from.
        """
        if isinstance(solver, Method):
            return [solver]
        if isinstance(solver, str):
            if solver.lower() == "auto":
                # each is looked at when it is its turn
                return (
                    one for one in self.methods if one.automatic and one.applies(program, start)
                )
            return [self.find_by_name(program, solver.lower(), start)]
        if not callable(solver):
            raise ProgramError(
                f"solve takes a Program and the name of a solver, or a method, not {solver!r:.60}"
            )
        for one in self.methods:
            # functions are all of one type: only a class of its own identifies a method
            if type(one.run) is type(solver) and is_dataclass(type(solver)):
                # the same kind of run with other options: the rest of the row stays as it is
                return [replace(one, run=solver)]
        names = ", ".join(["auto", *self.own_names])
        raise SolverUnavailableError(
            f"{solver!r:.60} is no method for {program!r}; there are: {names}"
        )


ENTRY_POINT_GROUP = "pmlopt.questions"
"""The group of entry points under which other packages name the modules that register their questions."""


REGISTRY: dict[type[Program[Any]], MethodRegistry[Any, Any, Any]] = {}
"""The questions that are registered so far, by the class of their programs."""


def find_registry(program: Program[Any], solver: object = "auto") -> MethodRegistry[Any, Any, Any]:
    """Find the method registry for a program's class, importing its module if needed.

    Args:
        program: from any builder.
        solver: as `solve` takes it. Where it is a name that no method has, installed packages are imported,
            one of which may register it.

    Raises:
        ProgramError: it is no program, or no methods are registered for its class.
    """
    if not isinstance(program, Program):
        raise ProgramError(
            f"solve takes a Program from a builder such as design(...), not {program!r:.60}"
        )
    kind = type(program)
    question = REGISTRY.get(kind) or find_registry_for_class(kind)
    known = solver == "auto" or not isinstance(solver, str) or question.has_name(solver.lower())
    if known:
        return question
    load_installed_registries()
    return find_registry_for_class(kind)


def load_installed_registries() -> None:
    """Import the modules of the entry-point group `pmlopt.questions`.

    Raises:
        ProgramError: one of them cannot be imported; the message names it.
    """
    from importlib.metadata import entry_points  # takes tens of milliseconds

    for point in entry_points(group=ENTRY_POINT_GROUP):
        try:
            point.load()
        except Exception as cause:
            raise ProgramError(
                f"the questions of {point.value} (entry point {point.name!r} of {ENTRY_POINT_GROUP}) "
                f"cannot be imported: {type(cause).__name__}: {cause}. Mend or remove the package"
            ) from cause


def find_registry_for_class(kind: type[Any]) -> MethodRegistry[Any, Any, Any]:
    """Find the methods of a class of programs: those of its own folder first, then those installed."""
    package = get_package(kind)
    is_own = package.startswith(f"{__package__}.")
    if kind not in REGISTRY and is_own and is_installed(f"{package}.methods"):
        import_module(f"{package}.methods")
    if kind not in REGISTRY:
        load_installed_registries()
    if kind not in REGISTRY:
        raise ProgramError(
            f"no methods are registered for {kind.__name__}: import the module that registers them by "
            "register_question"
        )
    return REGISTRY[kind]


def get_package(kind: type[Any]) -> str:
    """Return the name of the package that defines a class."""
    return kind.__module__.rpartition(".")[0]


Outputs = int | Iterable[Label] | None
"""The outputs of a design: their number, their labels, or None for those that the utility has."""


def resolve_outputs(inputs: Labels, columns: int | Labels | None, outputs: Outputs) -> Labels:
    """Return the output labels, after checking their number against the columns of the utility."""
    if outputs is None:
        if columns is None or columns == len(inputs):
            return inputs
        return columns if isinstance(columns, tuple) else DefaultLabels(columns)
    # numpy's integers are Real, too, and no iterables
    if isinstance(outputs, Real):
        return DefaultLabels(check_integer(outputs, "the number of outputs", ProgramError))
    if not isinstance(outputs, Iterable):
        raise ProgramError(f"the outputs are {outputs!r}: give their number or their labels")
    # a generator is read once: its labels are kept
    letters: Sequence[Label] = (
        outputs if isinstance(outputs, str | DefaultLabels) else tuple(outputs)
    )
    if not letters:
        raise ProgramError("there are no outputs: give at least one label")
    return check_labels_of_size(letters, len(letters), "the outputs", ProgramError)
