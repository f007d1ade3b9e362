"""The registry of solver methods by program class, of pmlopt and of other packages.

A module that has the methods of a question registers them when it is imported. Those of pmlopt are imported
with the first program of their question; those of another package by an import, or by an entry point of the
group `pmlopt.questions` that names the module.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from functools import cache
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from pkgutil import iter_modules
from typing import Any, TypeVar

from pmlopt.core.definitions import list_definitions
from pmlopt.core.programming_errors import describe_error, raise_if_strict
from pmlopt.core.records.fields import find_tagged_classes
from pmlopt.errors import InfeasibleError, ProgramError, SolverUnavailableError
from pmlopt.programs.certificate import C_co, Certificate, DesignCertificate
from pmlopt.programs.program import (
    Method,
    MethodError,
    MethodRegistry,
    MethodResult,
    Program,
    accept_all,
)
from pmlopt.programs.purification import DUST_LIMITS, remove_dust
from pmlopt.solvers.solver_result import MethodOptions

ENTRY_POINT_GROUP = "pmlopt.questions"
"""The group of entry points under which other packages name the modules that register their questions."""

REGISTRY: dict[type[Program[Any]], MethodRegistry[Any, Any, Any]] = {}
"""The questions that are registered so far, by the class of their programs."""

P = TypeVar("P", bound=Program[Any])
Q = TypeVar("Q", bound=MethodRegistry[Any, Any, Any])


def register_question(question: Q) -> Q:
    """Register the method registry of a program class, and return it.

    Args:
        question: the class of its programs, with the table of their methods.

    Raises:
        ProgramError: the class is none of programs or has methods already, or two methods have one id.
    """
    kind = question.program
    if not (isinstance(kind, type) and issubclass(kind, Program)):
        raise ProgramError(f"{kind!r} is no subclass of Program: a question is registered by one")
    if REGISTRY.get(kind, question) is not question:
        raise ProgramError(
            f"{kind.__name__} has methods already: add one by register_method, or declare a subclass"
        )
    ids = [one.id for one in question.methods]
    for one in ids:
        if ids.count(one) > 1:
            raise ProgramError(
                f"two methods of {kind.__name__} have the id {one!r}: give each its own"
            )
    REGISTRY[kind] = question
    return question


def register_method(
    kind: type[P], method: Method[P, Any, Any], *, before: str | None = None
) -> None:
    """Add a solver method to the registry of a program class, which may be one of pmlopt.

    Args:
        kind: the class of the programs that it solves.
        method: the row. What it finds counts as optimal only where its certificate verifies.
        before: the id of the row that it precedes; left out, it is the last one, which `auto` comes to where
            the others leave a gap. A row of the same function that was added before is replaced.

    Raises:
        ProgramError: no methods are registered for the class, no row has the id `before`, or another row has
            the id of this one.
    """
    question = _find_registry_for_class(kind)
    rows = [one for one in question.methods if not _is_redefined_method(one, method)]
    ids = [one.id for one in rows]
    if method.id in ids:
        raise ProgramError(f"{kind.__name__} has a method with the id {method.id!r}: give another")
    if before is not None and before not in ids:
        raise ProgramError(f"{kind.__name__} has no method {before!r}; there are: {', '.join(ids)}")
    rows.insert(len(rows) if before is None else ids.index(before), method)
    REGISTRY[kind] = replace(question, methods=tuple(rows))


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
    question = REGISTRY.get(kind) or _find_registry_for_class(kind)
    known = solver == "auto" or not isinstance(solver, str) or question.has_name(solver.lower())
    if known:
        return question
    load_installed_registries()
    return _find_registry_for_class(kind)


def list_registries() -> tuple[MethodRegistry[Any, Any, Any], ...]:
    """List all questions: those of pmlopt in the order of their folders, then those of others."""
    own = [one for folder in list_question_folders() for one in import_questions(folder)]
    return (*own, *(one for one in REGISTRY.values() if one not in own))


@cache
def list_question_folders() -> tuple[str, ...]:
    """List the folders of pmlopt that have a module `methods`, which registers questions."""
    folders = [one.name for one in iter_modules([str(Path(__file__).parent)]) if one.ispkg]
    return tuple(one for one in sorted(folders) if find_spec(f"{__package__}.{one}.methods"))


def import_questions(folder: str) -> list[MethodRegistry[Any, Any, Any]]:
    """Import the methods of a folder of pmlopt, and return the questions that they register."""
    package = f"{__package__}.{folder}"
    import_module(f"{package}.methods")
    return [one for one in REGISTRY.values() if _get_package(one.program) == package]


def is_method_name(name: str) -> bool:
    """Return whether a question has a method of a name; they are imported until one has."""
    if any(name in one.own_names for one in REGISTRY.values()):
        return True
    folders = list_question_folders()
    return any(name in one.own_names for folder in folders for one in import_questions(folder))


def list_certificates() -> tuple[type[Certificate], ...]:
    """List the kinds of certificates of pmlopt by their names in files, and import what has them."""
    import_module(f"{__package__}.compliance")  # of mechanisms that no question designed
    list_registries()
    known = find_tagged_classes(Certificate).items()
    own = __package__.partition(".")[0]
    return tuple(kind for _, kind in sorted(known) if kind.__module__.partition(".")[0] == own)


def list_method_names() -> frozenset[str]:
    """List the method names of all registries."""
    return frozenset(name for question in list_registries() for name in question.own_names)


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


def _find_registry_for_class(kind: type[Any]) -> MethodRegistry[Any, Any, Any]:
    """Find the methods of a class of programs: those of its own folder first, then those installed."""
    package = _get_package(kind)
    is_own = package.startswith(f"{__package__}.")
    if kind not in REGISTRY and is_own and find_spec(f"{package}.methods"):
        import_module(f"{package}.methods")
    if kind not in REGISTRY:
        load_installed_registries()
    if kind not in REGISTRY:
        raise ProgramError(
            f"no methods are registered for {kind.__name__}: import the module that registers them by "
            "register_question"
        )
    return REGISTRY[kind]


def _get_package(kind: type[Any]) -> str:
    """Return the name of the package that defines a class."""
    return kind.__module__.rpartition(".")[0]


def _is_redefined_method(known: Method[Any, Any, Any], method: Method[Any, Any, Any]) -> bool:
    """Return whether a method redefines a registered one, as in a rerun notebook cell."""
    same = list_definitions(known.run) == list_definitions(method.run)
    return known.id == method.id and same and not known.is_own


PROPAGATED_ERRORS = (
    KeyboardInterrupt,
    SystemExit,
    MemoryError,
    InfeasibleError,
    SolverUnavailableError,
)
"""What ends `solve` wherever it comes from; whatever else a method raises is its own failure."""


def describe_failure(method: Method[Any, Any, Any], cause: BaseException) -> str:
    """Describe in one line the error with which a method ended."""
    return f"{method.id}: {cause if isinstance(cause, MethodError) else describe_error(cause)}"


def _remove_dust(
    program: Program[C_co], found: object, options: MethodOptions
) -> MethodResult[C_co]:
    """Return what a method found without the entries that are only an interior point's noise."""
    if not isinstance(found, MethodResult):
        raise MethodError(f"it returned {found!r:.60}, and not a MethodResult")
    registry = REGISTRY.get(type(program))
    exchange = None if registry is None else registry.replace_mechanism
    if exchange is None or not isinstance(found.certificate, DesignCertificate):
        return found
    matrix = found.certificate.mechanism.matrix
    if not ((matrix > 0) & (matrix <= DUST_LIMITS[0])).any() or options.deadline.expired:
        return found
    return remove_dust(exchange, program, found, program.compute_allowed_gap(options.tolerance))


def try_methods(
    methods: Iterable[Method[Any, Any, C_co]],
    program: Program[C_co],
    options: MethodOptions,
    start: Any,
    report: Callable[[Method[Any, Any, Any], BaseException], object],
    run: Callable[..., MethodResult[C_co]] | None = None,
    check: Callable[[Method[Any, Any, C_co], MethodResult[C_co]], object] = accept_all,
) -> Iterator[tuple[Method[Any, Any, C_co], MethodResult[C_co]]]:
    """Run methods in turn, and yield each that has a result, until the time limit.

    The caller stops at the first result that is good enough. The first method is run in any case.

    Args:
        methods: in the order in which they are tried.
        program: for them to solve.
        options: for them; the deadline is of all of them together.
        start: what they start from.
        report: is called with each method that ends without a result, and the error that it ended with.
        run: runs a method, with program, options and start; left out, in the current process.
        check: looks at what each found; what it or a run raises counts as the failure of the method.

    Raises:
        InfeasibleError: the constraints that a person added allow nothing.
        SolverUnavailableError: the solver cannot take the program.
        Exception: in strict mode a programming error.
    """
    for place, method in enumerate(methods):
        if place and options.deadline.expired:
            return
        given = program, options, start
        try:
            found = method.run(*given) if run is None else run(method, *given)
            found = _remove_dust(program, found, options)
            check(method, found)
        except PROPAGATED_ERRORS:
            raise
        except BaseException as cause:  # a solver may fail in any way: the next one is tried
            raise_if_strict(cause)
            report(method, cause)
        else:
            yield method, found
