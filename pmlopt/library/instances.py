"""Problem files, and instances of the library loaded by path or id; and the
closed forms that they may name.
"""

from __future__ import annotations

import inspect
import math
import os
import tomllib
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Any, Literal, get_args

import numpy as np

from pmlopt.core.files.disk import is_standard_stream, read_bytes
from pmlopt.core.numbers.arrays import FloatArray, IntArray
from pmlopt.core.records.fields import Context, Range, Shape
from pmlopt.core.records.record import read_record
from pmlopt.core.suggestions import did_you_mean
from pmlopt.data.mechanism import Mechanism
from pmlopt.data.prior import Prior
from pmlopt.errors import InputError, InstanceError
from pmlopt.library.listing import ListedProblem, library
from pmlopt.library.logarithms import parse_logarithm
from pmlopt.library.shorthand import FIELDS, SHORTHAND_CONSTRUCTORS
from pmlopt.measures import ldp_level, leakage_level
from pmlopt.model import closed_forms
from pmlopt.model.closed_forms.catalogue import CLOSED_FORMS
from pmlopt.model.closed_forms.worst_case import build_uniform_on
from pmlopt.model.queries.channel import compute_loss_table
from pmlopt.model.utility import LinearUtility, as_utility
from pmlopt.model.utility.orders import utility_order
from pmlopt.programs.designs import design
from pmlopt.programs.envelope.program import EnvelopeProgram, envelope, failure_after_processing
from pmlopt.programs.envelope_design.program import envelope_design
from pmlopt.programs.estimation.methods import find_known_error
from pmlopt.programs.estimation.program import EstimationDesign
from pmlopt.programs.least_leakage.program import LeastLeakage, least_leakage, worst_case_utility
from pmlopt.programs.linear.program import LinearDesign
from pmlopt.programs.program import Program
from pmlopt.programs.record_leakage.closed_bounds import get_parity_error, is_parity
from pmlopt.programs.record_leakage.program import RecordLeakage, record_leakage
from pmlopt.programs.streams.stream import next_release
from pmlopt.programs.subconvex.program import ColumnDesign
from pmlopt.programs.tradeoff.builders import distortion_leakage, leakage_distortion
from pmlopt.programs.tradeoff.program import TradeoffProgram
from pmlopt.programs.worst_case.program import best_guaranteed_utility, best_worst_case

Basis = Literal["theorem", "derived", "published", "regression"]
Relation = Literal["==", "<=", ">="]
BASES = get_args(Basis)
"""What the known optimum of a problem file may rest on."""

RELATIONS: Mapping[str, Callable[[float, float, float], bool]] = {
    "==": lambda optimum, value, slack: abs(optimum - value) <= slack,
    "<=": lambda optimum, value, slack: optimum <= value + slack,
    ">=": lambda optimum, value, slack: optimum >= value - slack,
}
"""How an optimum may stand to the known value, up to a slack."""

BUILDERS: Mapping[str, Callable[..., Program[Any]]] = {
    builder.__name__: builder
    for builder in (
        design, worst_case_utility, least_leakage, best_worst_case, best_guaranteed_utility, envelope,
        failure_after_processing, envelope_design, record_leakage, leakage_distortion, distortion_leakage,
        next_release,
    )
}  # fmt: skip
"""The builders that a problem file may name; its parameters are theirs."""


@dataclass(frozen=True, eq=False)
class ExpectedOptimum:
    """What is known of the optimum: `optimum RELATION value`, within rtol times the value's size.

    Attributes:
        basis: "theorem", "derived" (by another route), "published" (printed in the source, or found by its
            program) or "regression".
        closed_form: one of the problem's `forms` whose mechanism has this value, or None.
        mechanism: a printed optimal matrix, or None.
    """

    basis: Basis
    relation: Relation
    value: float
    # The largest share of the expected value that an optimum may be off: a wider one would agree with errors.
    rtol: Annotated[float, Range(0, 1e-2)] = 1e-7
    closed_form: str | None = None
    mechanism: Annotated[FloatArray, Shape("letters", "outputs")] | None = None

    def __post_init__(self) -> None:
        if self.mechanism is not None:
            Mechanism(self.mechanism)  # complains of a matrix that is none

    def agrees_with(self, optimum: float) -> bool:
        """Return whether an optimum satisfies the stated relation."""
        return RELATIONS[self.relation](optimum, self.value, self.tolerance)

    def compare(self, value: float, bound: float, is_optimal: bool) -> bool | None:
        """Return whether a result agrees with the relation; None where its gap is too wide to decide.

        Args:
            value: that was found.
            bound: no mechanism has a better value.
            is_optimal: whether they are equal up to the tolerance.

        Examples:
            >>> claim = ExpectedOptimum("derived", "<=", 0.2)
            >>> claim.compare(0.1, 0.3, False), claim.compare(0.1, 0.15, False)
            (None, True)
        """
        agrees = self.agrees_with(value)
        if is_optimal:
            return agrees
        if self.relation == "==":
            return agrees or (
                None if min(value, bound) <= self.value <= max(value, bound) else False
            )
        return agrees if agrees == self.agrees_with(bound) else None

    @property
    def tolerance(self) -> float:
        """Return the absolute tolerance of the stated optimum."""
        return self.rtol * max(1e-3, abs(self.value))


@dataclass(frozen=True)
class ProblemSource:
    """The bibliography source of a problem."""

    cite: str
    where: str


@dataclass(frozen=True, eq=False)
class ProblemFile:
    """The content of a problem file."""

    id: str
    title: str
    builder: str
    source: ProblemSource
    params: Mapping[str, Any]
    expected: ExpectedOptimum | None = None
    solver: str = "auto"
    solver_options: Mapping[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if self.builder not in BUILDERS:
            raise InstanceError(f"builder is {self.builder!r}: write one of {', '.join(BUILDERS)}")
        if self.solver_options and self.solver.lower() == "auto":
            raise InstanceError(
                f"solver_options has {', '.join(self.solver_options)}, which are of one solver: name it, as "
                'in solver = "clarabel"'
            )
        form = self.expected and self.expected.closed_form
        forms = CLOSED_FORMS_OF.get(self.builder, ())
        if form is not None and form not in forms:
            known = ", ".join(forms) or "none, for none is known here"
            raise InstanceError(f"expected.closed_form is {form!r}: write one of {known}")


@dataclass(frozen=True, eq=False)
class Instance(ListedProblem):
    """A problem of the library: a buildable program with its known optimum.

    Attributes:
        builder: what declares it, such as `pmlopt.design`.
        arguments: what the builder is called with, by name.
        expected: what is known of the optimum.
        solver, solver_options: how `pmlopt solve` solves it, as `pmlopt.solve` takes them.
    """

    builder: Callable[..., Program[Any]]
    arguments: Mapping[str, Any]
    expected: ExpectedOptimum | None
    solver: str = "auto"
    solver_options: Mapping[str, Any] = field(default_factory=dict)

    def program(self, **changes: Any) -> Program[Any]:
        """Build the program, with optional other arguments."""
        return self.builder(**{**self.arguments, **changes})

    @property
    def prior(self) -> Prior:
        """Return the prior of the problem.

        Raises:
            InstanceError: it is about a query, and has none.
        """
        if "prior" not in self.arguments:
            raise InstanceError(
                f"{self.id} has no prior: it is about every prior of enough entropy"
            )
        prior: Prior = self.arguments["prior"]
        return prior

    @property
    def names_closed_form(self) -> bool:
        """Return whether the stated optimum is a closed form."""
        return self.expected is not None and self.expected.closed_form is not None

    def closed_value(self) -> float | None:
        """Compute the value of the stated closed form; None without one."""
        if self.expected is None or self.expected.closed_form is None:
            return None
        return compute_closed_value(self.program(), self.expected.closed_form)


def _read_arguments(
    builder: Callable[..., Any], params: Mapping[str, Any], known_values: Mapping[str, Any]
) -> dict[str, Any]:
    """Read a builder's arguments in order, each knowing the earlier ones; some are known already."""
    known = {
        name: one for name, one in inspect.signature(builder).parameters.items() if name in FIELDS
    }
    names = [name for name in FIELDS if name in known or name == "secret"]
    _check_keys(params, names, "is not a known key")
    _check_keys(known_values, names, f"is no parameter of {builder.__name__}")
    given: dict[str, Any] = {"labels": None}
    for name in names:
        context = Context(
            given,
            complete=False,
            error=InstanceError,
            number=parse_logarithm,
            forms=SHORTHAND_CONSTRUCTORS,
        )
        if name in known_values:
            given[name] = known_values[name]
        elif name in params:
            given[name] = read_record(FIELDS[name], params[name], f"params.{name}", context)
            if name == "utility":
                given[name] = as_utility(given[name])
        elif name == "prior" and "secret" in given:
            given[name] = given["secret"].prior
        elif name in known and known[name].default is inspect.Parameter.empty:
            raise InstanceError(f"params.{name} is missing: add it")
        if name == "prior" and name in given:
            given |= given[name].context.given
    if isinstance(given.get("order"), str):
        given["order"] = _rank_outputs(given)
    return {name: given[name] for name in known if name in given}


def _check_keys(keys: Iterable[str], names: Sequence[str], problem: str) -> None:
    """Raise an error for a key that is none of the names."""
    for key in keys:
        if key not in names:
            near = did_you_mean(key, names, f"the keys here are {', '.join(names)}")
            raise InstanceError(f"params.{key} {problem}: {near}")


def _rank_outputs(given: Mapping[str, Any]) -> IntArray:
    """Rank the outputs by the loss or gain that stands in place of an order."""
    prior = given["prior"]
    utility = as_utility(given["order"])
    if not isinstance(utility, LinearUtility):
        raise InstanceError(f"params.order is {given['order']!r}: name a loss, or give the ranks")
    outputs = given.get("outputs")
    letters = outputs if isinstance(outputs, tuple) else prior.labels
    return utility_order(utility.evaluate_gains(prior.labels, letters))


def load_all() -> list[Instance]:
    """Load all instances, sorted by id."""
    return sorted(
        (load(path) for path in library().glob("*/*.toml")), key=lambda instance: instance.id
    )


def find(name: str | os.PathLike[str], known: Mapping[str, Any] | None = None) -> Instance:
    """Find an instance by file path or library id.

    Args:
        name: the path or id.
        known: parameters that replace those of the file, such as the prior of counted data.

    Raises:
        InstanceError: there is neither, or the file breaks the schema.
    """
    path = Path(name)
    if path.suffix == ".toml" or is_standard_stream(path):
        return load(path, known)
    files = {file.stem: file for file in library().glob("*/*.toml")}
    if str(name) in files:
        return load(files[str(name)], known)
    near = did_you_mean(str(name), files, "`pmlopt problems` lists them")
    raise InstanceError(f"{name}: there is no problem of that name, nor a .toml file; {near}")


def load(path: str | os.PathLike[str], known: Mapping[str, Any] | None = None) -> Instance:
    """Read and validate a problem file.

    Args:
        path: of the file.
        known: parameters that replace those of the file; what refers to them is read with them.

    Raises:
        FileFormatError: the file cannot be read.
        InstanceError: the message names the file, the key and the remedy.
    """
    file = Path(path)
    content = read_bytes(file)
    try:
        data = tomllib.loads(content.decode())
    except (
        ValueError,
        RecursionError,
    ) as cause:  # not TOML, not text, a number too long, nested too deep
        raise InstanceError(f"{file}: is not a whole TOML file: {cause}") from None
    try:
        found = read_record(ProblemFile, data, "", Context(complete=False, error=InstanceError))
        if found.id != file.stem and not is_standard_stream(file):
            raise InstanceError(
                f"id is {found.id!r} and the file's name {file.stem!r}: make them the same"
            )
        builder = BUILDERS[found.builder]
        arguments = _read_arguments(builder, found.params, known or {})
    except InputError as cause:
        raise InstanceError(f"{file}: {cause}") from None
    source = found.source
    return Instance(
        found.id,
        found.title,
        file,
        source.cite,
        source.where,
        builder,
        arguments,
        found.expected,
        found.solver,
        found.solver_options,
    )


CLOSED_FORMS_OF: Mapping[str, tuple[str, ...]] = {
    "design": (*CLOSED_FORMS, "least_ldp_estimation_error", "least_pml_estimation_error"),
    "worst_case_utility": ("utility_safe_mechanism",),
    "envelope": ("randomized_response_envelope",),
    "record_leakage": ("parity_leakage",),
    "leakage_distortion": ("parity_leakage",),
    "distortion_leakage": ("parity_distortion",),
}
"""The names of the closed forms that are known for the programs of a builder."""


def build_closed_form(program: Program[Any], name: str) -> Mechanism:
    """Build the mechanism of a named closed form for a program.

    Raises:
        InstanceError: it is none that belongs to the program.
    """
    if isinstance(program, LeastLeakage) and name == "utility_safe_mechanism":
        return build_uniform_on(program.allowed)
    if not isinstance(program, LinearDesign | ColumnDesign) or name not in CLOSED_FORMS:
        raise InstanceError(f"there is no mechanism by the name {name!r} for {program!r}")
    gains = (
        program.signed_table
        if isinstance(program, LinearDesign)
        else np.zeros((program.prior.size, 1))
    )
    form = CLOSED_FORMS[name](program.prior, program.privacy, gains)
    fits = program.outputs is not None and len(form.outputs) == len(program.outputs)
    return Mechanism(form.matrix, program.prior.labels, program.outputs if fits else None)


def compute_closed_value(program: Program[Any], name: str) -> float:
    """Compute a program's value by a named closed form.

    Raises:
        InstanceError: it is none that belongs to the program.
    """
    if isinstance(program, RecordLeakage):
        query = program.channel.query
        error = get_parity_error(query, program.channel.mechanism)
        if error is None:
            raise InstanceError(
                f"the closed form {name} is for a parity through a symmetric channel"
            )
        return closed_forms.parity_leakage(query.records, error, program.entropy)
    if isinstance(program, EnvelopeProgram):
        return _compute_envelope_value(program, name)
    if isinstance(program, TradeoffProgram):
        return _compute_tradeoff_value(program, name)
    if isinstance(program, EstimationDesign):
        return _compute_estimation_value(program, name)
    if isinstance(program, LinearDesign | ColumnDesign):
        return program.utility.value(program.prior, build_closed_form(program, name))
    if isinstance(program, LeastLeakage):
        return leakage_level(program.prior, build_closed_form(program, name))
    raise InstanceError(f"no closed form is known for {program!r}")


def _compute_estimation_value(program: EstimationDesign, name: str) -> float:
    """Compute the closed-form least estimation error of a program."""
    known = find_known_error(program, math.nan)
    if known is None or known.name != name:
        raise InstanceError(
            f"the closed form {name} is for frequencies at the uniform prior under its bound"
        )
    return known.value


def _compute_envelope_value(program: EnvelopeProgram, name: str) -> float:
    """Compute the closed-form envelope of randomized response."""
    level = ldp_level(program.given_mechanism)
    if not np.isfinite(level) or not np.allclose(
        program.given_mechanism.matrix,
        closed_forms.randomized_response(program.prior.size, level).matrix,
        atol=1e-12,
    ):
        raise InstanceError(f"the closed form {name} is for randomized response")
    return closed_forms.randomized_response_envelope(program.prior, level, program.delta)


def _compute_tradeoff_value(program: TradeoffProgram, name: str) -> float:
    """Compute the closed-form optimum of a parity trade-off."""
    query = program.query
    orbits = program.orbits
    own = orbits.masses[:, None] * compute_loss_table(query, None)[0][orbits.values]
    if not is_parity(query) or not np.array_equal(program.losses, own):
        raise InstanceError(f"the closed form {name} is for a parity and its own loss")
    if name == "parity_leakage":
        return closed_forms.parity_leakage(query.records, min(program.limit, 0.5), program.entropy)
    return closed_forms.parity_distortion(query.records, program.limit, program.entropy)
