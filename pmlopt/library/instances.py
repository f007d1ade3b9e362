"""Problem files found and loaded: by path, by id, or all of the library."""

from __future__ import annotations

import os
import tomllib
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from difflib import get_close_matches
from pathlib import Path
from typing import Any, get_args

import numpy as np

from pmlopt.core.arrays import FloatArray, float_array
from pmlopt.core.files import is_standard, read_bytes
from pmlopt.data.mechanism import Mechanism
from pmlopt.data.prior import Prior
from pmlopt.data.symmetry import CirclePrior, IIDPrior, InvariantPrior, SymmetricPrior
from pmlopt.errors import InputError, InstanceError, UtilityError
from pmlopt.library.closed_values import closed_value, forms_for
from pmlopt.library.requirements import law_of_secret, read_requirement
from pmlopt.library.toml_table import Table
from pmlopt.measures import information_density
from pmlopt.model.closed_forms import randomized_response
from pmlopt.model.closed_forms.catalogue import CLOSED_FORMS
from pmlopt.model.privacy import Requirement
from pmlopt.model.queries import (
    Explicit,
    ModularSum,
    Quadratic,
    Query,
    Weight,
    exponential,
    laplace,
    symmetric_channel,
)
from pmlopt.model.utility import (
    INFORMATIONS,
    LOSSES,
    CoordinateGain,
    CoordinateLoss,
    DisplacementGain,
    DisplacementLoss,
    EstimationError,
    ExpectedGain,
    ExpectedLoss,
    LinearUtility,
    SubConvex,
    on_circle,
)
from pmlopt.model.utility.estimation_error import Criterion
from pmlopt.programs.designs import design
from pmlopt.programs.envelope.program import envelope, failure_after_processing
from pmlopt.programs.envelope_design.program import envelope_design
from pmlopt.programs.least_leakage.program import least_leakage, worst_case_utility
from pmlopt.programs.program import Program
from pmlopt.programs.record_leakage.program import record_leakage
from pmlopt.programs.tradeoff.program import distortion_leakage, leakage_distortion
from pmlopt.programs.worst_case.program import best_guaranteed_utility, best_worst_case

BASES = ("theorem", "derived", "published", "regression")
RELATIONS: Mapping[str, Callable[[float, float, float], bool]] = {
    "==": lambda optimum, value, slack: abs(optimum - value) <= slack,
    "<=": lambda optimum, value, slack: optimum <= value + slack,
    ">=": lambda optimum, value, slack: optimum >= value - slack,
}


@dataclass(frozen=True)
class Expected:
    """What is known of the optimum: `optimum RELATION value`, within rtol times the value's size.

    Attributes:
        basis: "theorem", "derived" (by another route), "published" (a printed figure) or "regression".
        closed_form: one of the problem's `forms` whose mechanism has this value, or None.
        mechanism: a printed optimal matrix, or None.
    """

    basis: str
    relation: str
    value: float
    rtol: float
    closed_form: str | None
    mechanism: FloatArray | None

    def agrees(self, optimum: float) -> bool:
        """Whether an optimum stands in the relation that is claimed."""
        return RELATIONS[self.relation](optimum, self.value, self.slack)

    @property
    def slack(self) -> float:
        """How far an optimum may be off: rtol times the value's size, or times 1e-3 where it is small."""
        return self.rtol * max(1e-3, abs(self.value))


@dataclass(frozen=True, eq=False)
class Instance:
    """One problem of the library: a program that can be declared, and what is known of its optimum.

    Attributes:
        id, title: its names; `id` is the file's name.
        cite, where: the key in references.bib and the place in the source.
        builder: what declares it, such as `pmlopt.design`.
        arguments: what the builder is called with, by name.
    """

    id: str
    title: str
    path: Path
    cite: str
    where: str
    builder: Callable[..., Program[Any]]
    arguments: Mapping[str, Any]
    expected: Expected | None

    def program(self, **changes: Any) -> Program[Any]:
        """Declare it, with other values for some of its arguments where they are given."""
        return self.builder(**{**self.arguments, **changes})

    @property
    def prior(self) -> Prior:
        """The prior of the problem.

        Raises:
            InstanceError: it is about a query, and has none.
        """
        if "prior" not in self.arguments:
            raise InstanceError(f"{self.id} has no prior: it is about every prior of enough entropy")
        prior: Prior = self.arguments["prior"]
        return prior

    @property
    def names_closed_form(self) -> bool:
        """Whether a closed form is said to have the expected value."""
        return self.expected is not None and self.expected.closed_form is not None

    def closed_value(self) -> float | None:
        """The value of the closed form that the instance names, or None."""
        if self.expected is None or self.expected.closed_form is None:
            return None
        return closed_value(self.program(), self.expected.closed_form)


Arguments = dict[str, Any]
_NUMBER = (int, float)
MOST_LETTERS = 10_000
"""Letters of a uniform prior, and outputs, in a problem file: a mechanism with both has 800 MB."""
MOST_RECORDS = 1_000
"""Records of a table in a problem file; orbits of pairs run out long before."""
LARGEST_RTOL = 1e-2
"""The largest share of the expected value that an optimum may be off: a wider one would agree with errors."""


def read_instance(file: Path, root: Table) -> Instance:
    """The instance that the whole table of a problem file declares."""
    name = root.take("id", str)
    if name != file.stem and not is_standard(file):
        raise root.error("id", f"is {name!r} and the file's name {file.stem!r}: make them the same")
    title = root.take("title", str)
    name_of_builder = root.choice("builder", tuple(_BUILDERS))
    builder, read = _BUILDERS[name_of_builder]
    source = root.table("source")
    cite, where = source.take("cite", str), source.take("where", str)
    source.done()
    params = root.table("params")
    arguments = read(params)
    params.done()
    expected = _expected(root.table("expected"), name_of_builder) if "expected" in root else None
    root.done()
    return Instance(name, title, file, cite, where, builder, arguments, expected)


def _design(params: Table) -> Arguments:
    prior = _prior(params.table("prior")) if "prior" in params else law_of_secret(params)
    privacy = read_requirement(params, prior)
    utility = _utility(params.table("utility"), prior, privacy)
    return {"prior": prior, "privacy": privacy, "utility": utility, "outputs": _outputs(params)}


def _worst_case(params: Table) -> Arguments:
    prior = _prior(params.table("prior"))
    order = float_array(params.take("order", list), 2, "the order", UtilityError)
    threshold = params.take("threshold", int)
    return {"prior": prior, "order": order, "threshold": threshold, "outputs": _outputs(params)}


def _best_worst_case(params: Table) -> Arguments:
    prior = _prior(params.table("prior"))
    order = float_array(params.take("order", list), 2, "the order", UtilityError)
    epsilon = params.level("epsilon")
    return {"prior": prior, "order": order, "epsilon": epsilon, "outputs": _outputs(params)}


def _best_worst_value(params: Table) -> Arguments:
    prior = _prior(params.table("prior"))
    utility = _linear_utility(params.table("utility"), prior)
    epsilon = params.level("epsilon")
    return {"prior": prior, "utility": utility, "epsilon": epsilon, "outputs": _outputs(params)}


def _least_leakage(params: Table) -> Arguments:
    prior = _prior(params.table("prior"))
    utility = _linear_utility(params.table("utility"), prior)
    floors = {key: params.take(key, _NUMBER, None) for key in ("expected", "worst")}
    return {"prior": prior, "utility": utility, **floors, "outputs": _outputs(params)}


def _envelope_design(params: Table) -> Arguments:
    prior = _prior(params.table("prior"))
    utility = _linear_utility(params.table("utility"), prior)
    epsilon, delta = params.level("epsilon"), params.number("delta")
    return {
        "prior": prior,
        "epsilon": epsilon,
        "delta": delta,
        "utility": utility,
        "outputs": _outputs(params),
    }


def _envelope(params: Table) -> Arguments:
    return {**_audited(params), "delta": params.number("delta")}


def _closed_failure(params: Table) -> Arguments:
    return {**_audited(params), "epsilon": params.level("epsilon")}


def _audited(params: Table) -> Arguments:
    prior, table = _prior(params.table("prior")), params.table("mechanism")
    if table.only(("matrix", "randomized_response")) == "matrix":
        mechanism = Mechanism(table.take("matrix", list), prior.labels)
    else:
        matrix = randomized_response(prior.size, table.level("randomized_response")).matrix
        mechanism = Mechanism(matrix, prior.labels, prior.labels)
    table.done()
    return {"prior": prior, "mechanism": mechanism}


def _record_leakage(params: Table) -> Arguments:
    query = _query(params.table("query"))
    mechanism = _answer(params.table("mechanism"), query)
    return {"query": query, "mechanism": mechanism, "entropy": params.level("entropy")}


def _leakage_distortion(params: Table) -> Arguments:
    return {**_tradeoff(params), "distortion": params.number("distortion")}


def _distortion_leakage(params: Table) -> Arguments:
    return {**_tradeoff(params), "leakage": params.level("leakage")}


def _tradeoff(params: Table) -> Arguments:
    loss = params.take("loss", list, None)
    table = None if loss is None else float_array(loss, 2, "the distortion", UtilityError)
    return {"query": _query(params.table("query")), "entropy": params.level("entropy"), "loss": table}


def _query(table: Table) -> Query:
    kind = table.only(("modular_sum", "weight", "quadratic", "explicit"))
    query: Query
    if kind == "modular_sum":
        sizes = table.table(kind)
        query = ModularSum(
            sizes.take("records", int), sizes.take("modulus", int), sizes.take("letters", (int, list), 2)
        )
        sizes.done()
    elif kind == "explicit":
        query = Explicit(table.take(kind, list))
    else:
        query = {"weight": Weight, "quadratic": Quadratic}[kind](table.take(kind, int))
    table.done()
    return query


def _answer(table: Table, query: Query) -> Mechanism:
    kind = table.only(("matrix", *_ANSWERS))
    if kind == "matrix":
        mechanism = Mechanism(table.take(kind, list))
    else:
        mechanism = _ANSWERS[kind](query, table.take(kind, _NUMBER))
    table.done()
    return mechanism


_ANSWERS: Mapping[str, Callable[[Query, float], Mechanism]] = {
    "symmetric_channel": symmetric_channel,
    "laplace": laplace,
    "exponential": exponential,
}
"""The mechanisms on a query that a problem file may name."""

_BUILDERS: Mapping[str, tuple[Callable[..., Program[Any]], Callable[[Table], Arguments]]] = {
    "design": (design, _design),
    "worst_case_utility": (worst_case_utility, _worst_case),
    "least_leakage": (least_leakage, _least_leakage),
    "best_worst_case": (best_worst_case, _best_worst_case),
    "best_guaranteed_utility": (best_guaranteed_utility, _best_worst_value),
    "envelope": (envelope, _envelope),
    "failure_after_processing": (failure_after_processing, _closed_failure),
    "envelope_design": (envelope_design, _envelope_design),
    "record_leakage": (record_leakage, _record_leakage),
    "leakage_distortion": (leakage_distortion, _leakage_distortion),
    "distortion_leakage": (distortion_leakage, _distortion_leakage),
}
"""The builders that a problem file may name, and how their arguments are read."""


def _outputs(params: Table) -> int | tuple[Any, ...] | None:
    if isinstance(params.peek("outputs"), int):
        return params.count("outputs", MOST_LETTERS)
    outputs = params.take("outputs", (int, list), None)
    return None if outputs is None else tuple(outputs)


def _prior(table: Table) -> Prior:
    kind = table.only(("uniform", "probabilities", "counts", "circle"))
    if kind == "circle":
        circle = CirclePrior(table.count(kind, MOST_LETTERS), table.take("reflections", bool, True))
        table.done()
        return circle
    labels = table.take("labels", list, None)
    if kind == "uniform":
        prior = Prior.uniform(table.count(kind, MOST_LETTERS), labels)
    elif kind == "probabilities":
        prior = Prior(table.take(kind, list), labels)
    else:
        prior = Prior.from_counts(table.take(kind, (dict, list)), labels)
    if "records" in table:
        prior = IIDPrior(prior, table.count("records", MOST_RECORDS))
    elif "generators" in table:
        prior = InvariantPrior(prior, table.take("generators", list))
    table.done()
    return prior


def _utility(table: Table, prior: Prior, privacy: Requirement) -> LinearUtility | SubConvex | EstimationError:
    kind = table.only(("loss", "gain", "information", "information_density_of", "estimation_error"))
    utility: LinearUtility | SubConvex | EstimationError
    if kind == "information":
        utility = INFORMATIONS[table.choice(kind, tuple(INFORMATIONS))]()
    elif kind == "information_density_of":
        form = table.choice(kind, tuple(CLOSED_FORMS))
        mechanism = CLOSED_FORMS[form](prior, privacy, np.zeros((prior.size, 1)))
        utility = ExpectedGain(information_density(prior, mechanism.matrix))
    elif kind == "estimation_error":
        utility = _estimation_error(table, kind)
    else:
        utility = _linear(table, kind, prior)
    table.done()
    return utility


def _estimation_error(table: Table, kind: str) -> EstimationError:
    workload = table.take(kind, (str, list))
    criterion = table.choice("criterion", get_args(Criterion)) if "criterion" in table else "A"
    if criterion == "D" and workload != "identity":
        raise table.error(kind, f'is {workload!r}: the criterion "D" has no workload, write "identity"')
    return EstimationError(None if workload == "identity" else workload, criterion)  # type: ignore[arg-type]


def _linear_utility(table: Table, prior: Prior) -> LinearUtility:
    utility = _linear(table, table.only(("loss", "gain")), prior)
    table.done()
    return utility


def _linear(table: Table, kind: str, prior: Prior) -> LinearUtility:
    value = table.take(kind, (str, list))
    if isinstance(value, str):
        named: Mapping[str, Any] = LOSSES if kind == "loss" else _gains(prior)
        if value not in named:
            raise table.error(kind, f"is {value!r}: write one of {', '.join(named)}, or a matrix")
        value = named[value]
    if isinstance(prior, IIDPrior):
        return CoordinateLoss(value) if kind == "loss" else CoordinateGain(value)
    if isinstance(prior, CirclePrior):
        values = on_circle(value, prior.size) if callable(value) else value
        return DisplacementLoss(values) if kind == "loss" else DisplacementGain(values)
    return ExpectedLoss(value) if kind == "loss" else ExpectedGain(value)


def _expected(table: Table, builder: str) -> Expected:
    matrix = table.take("mechanism", list, None)
    form = table.take("closed_form", str, None)
    forms = forms_for(builder)
    if form is not None and form not in forms:
        known = ", ".join(forms) or "none, for none is known here"
        raise table.error("closed_form", f"is {form!r}: write one of {known}")
    rtol = table.number("rtol", 1e-7)
    if not 0 <= rtol <= LARGEST_RTOL:
        raise table.error("rtol", f"is {rtol:g}: write a number from 0 to {LARGEST_RTOL:g}")
    expected = Expected(
        basis=table.choice("basis", BASES),
        relation=table.choice("relation", tuple(RELATIONS)),
        value=table.number("value"),
        rtol=rtol,
        closed_form=form,
        mechanism=None if matrix is None else Mechanism(matrix).matrix,
    )
    table.done()
    return expected


def _gains(prior: Prior) -> dict[str, Any]:
    """Gains by name: 1 for the same label, and the same weighed by 1 / p[x]."""
    if isinstance(prior, SymmetricPrior):
        return {"match": lambda x, y: x == y}
    return {"match": lambda x, y: x == y, "balanced_match": np.diag(1 / prior.pmf)}


def library() -> Path:
    """The folder of the problem library: inside the installed package, or in the checkout."""
    package = Path(__file__).parent.parent
    installed = package / "problems"
    return installed if installed.is_dir() else package.parent / "problems"


def load_all() -> list[Instance]:
    """Every instance of the library, in the order of their ids."""
    return sorted((load(path) for path in library().glob("*/*.toml")), key=lambda instance: instance.id)


def find(name: str | os.PathLike[str]) -> Instance:
    """An instance by the path of its file (`-` is standard input), or by its id in the library.

    Raises:
        InstanceError: there is neither, or the file breaks the schema.
    """
    path = Path(name)
    if path.suffix == ".toml" or is_standard(path):
        return load(path)
    files = {file.stem: file for file in library().glob("*/*.toml")}
    if str(name) in files:
        return load(files[str(name)])
    near = get_close_matches(str(name), list(files), n=1)
    hint = f"did you mean {near[0]!r}?" if near else "`pmlopt problems` lists them"
    raise InstanceError(f"{name}: there is no problem of that name, nor a .toml file; {hint}")


def load(path: str | os.PathLike[str]) -> Instance:
    """Read and check a problem file.

    Raises:
        FileFormatError: the file cannot be read.
        InstanceError: the message names the file, the key and the remedy.
    """
    file = Path(path)
    content = read_bytes(file)
    try:
        data = tomllib.loads(content.decode())
    except (ValueError, RecursionError) as cause:  # not TOML, not text, a number too long, nested too deep
        raise InstanceError(f"{file}: is not a whole TOML file: {cause}") from None
    try:
        return read_instance(file, Table(file, "", data))
    except InstanceError:
        raise
    except InputError as cause:
        raise InstanceError(f"{file}: {cause}") from None
