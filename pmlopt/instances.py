"""The problem library: problem files read, checked against their schema, and turned into programs.

A problem file is TOML and holds one claim: a design problem, where it comes from, and what is known
of its optimum. Unknown keys are errors, and names are looked up in tables, never evaluated.
"""

from __future__ import annotations

import math
import os
import tomllib
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from difflib import get_close_matches
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np

from pmlopt import closed_forms
from pmlopt.builders import Program, design
from pmlopt.checks import FloatArray, real
from pmlopt.errors import InputError, InstanceError
from pmlopt.files import read_bytes
from pmlopt.measures import information_density
from pmlopt.mechanism import Mechanism
from pmlopt.prior import Prior
from pmlopt.privacy import PML, Requirement, requirement_named
from pmlopt.privacy.forms import forms
from pmlopt.uncertainty import REGIONS, Box, L1Ball, MinimumMass, PriorSet, Vertices
from pmlopt.utility import (
    INFORMATIONS,
    LOSSES,
    ExpectedGain,
    ExpectedLoss,
    LinearUtility,
    SubConvex,
)

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
        closed_form: a key of `CLOSED_FORMS` whose mechanism has this value, or None.
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


@dataclass(frozen=True)
class Instance:
    """One problem of the library.

    Attributes:
        id, title: its names; `id` is the file's name.
        cite, where: the key in references.bib and the place in the source.
    """

    id: str
    title: str
    path: Path
    cite: str
    where: str
    prior: Prior
    privacy: Requirement
    utility: LinearUtility | SubConvex
    outputs: int | tuple[Any, ...] | None
    expected: Expected | None

    def program(self) -> Program:
        """Declare the design problem."""
        return design(self.prior, self.privacy, self.utility, self.outputs)

    @property
    def names_closed_form(self) -> bool:
        """Whether a closed form is said to have the expected value."""
        return self.expected is not None and self.expected.closed_form is not None

    def closed_form(self) -> Mechanism | None:
        """The closed form that the instance names, or None."""
        if self.expected is None or self.expected.closed_form is None:
            return None
        build = CLOSED_FORMS[self.expected.closed_form]
        outputs = self.prior.labels if self.outputs is None else self.outputs
        labels = tuple(range(outputs)) if isinstance(outputs, int) else outputs
        gains = np.zeros((self.prior.size, 1))
        if isinstance(self.utility, LinearUtility):
            gains = self.utility.gains(self.prior.labels, labels)
        form = build(self.prior, self.privacy, gains)
        return Mechanism(form.matrix, self.prior.labels, labels if len(form.outputs) == len(labels) else None)


def library() -> Path:
    """The folder of the problem library: inside the installed package, or in the checkout."""
    here = Path(__file__).parent
    installed = here / "problems"
    return installed if installed.is_dir() else here.parent / "problems"


def load_all() -> list[Instance]:
    """Every instance of the library, in the order of their ids."""
    return sorted((load(path) for path in library().glob("*/*.toml")), key=lambda instance: instance.id)


def find(name: str | os.PathLike[str]) -> Instance:
    """An instance by the path of its file, or by its id in the library.

    Raises:
        InstanceError: there is neither, or the file breaks the schema.
    """
    path = Path(name)
    if path.suffix == ".toml":
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
    try:
        data = tomllib.loads(read_bytes(file).decode())
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as cause:
        raise InstanceError(f"{file}: is not a whole TOML file: {cause}") from None
    try:
        return _instance(file, Table(file, "", data))
    except InstanceError:
        raise
    except InputError as cause:
        raise InstanceError(f"{file}: {cause}") from None


class Table:
    """A TOML table that is read key by key; what is left over at the end is an error."""

    def __init__(self, file: Path, name: str, data: Mapping[str, Any]) -> None:
        self.file, self.name, self._left = file, name, dict(data)
        self._known: list[str] = []

    def take(self, key: str, kind: type | tuple[type, ...], default: Any = ...) -> Any:
        """The value of a key, checked for its kind; an error where it is missing without a default."""
        self._known.append(key)
        if key not in self._left:
            if default is ...:
                raise self.error(key, "is missing: add it")
            return default
        value = self._left.pop(key)
        if isinstance(value, bool) or not isinstance(value, kind):
            kinds = kind if isinstance(kind, tuple) else (kind,)
            wanted = " or ".join(
                dict.fromkeys(_KINDS[k] for k in kinds if k is not int or float not in kinds)
            )
            raise self.error(key, f"is {value!r}: write {wanted}")
        return value

    def table(self, key: str) -> Table:
        """A table under a key."""
        return Table(self.file, self._path(key), self.take(key, dict))

    def choice(self, key: str, allowed: tuple[str, ...]) -> str:
        """One of the allowed words."""
        value = str(self.take(key, str))
        if value not in allowed:
            raise self.error(key, f"is {value!r}: write one of {', '.join(allowed)}")
        return value

    def only(self, allowed: tuple[str, ...]) -> str:
        """The one key of a table that holds exactly one of the allowed keys."""
        present = [key for key in self._left if key in allowed]
        self._known.extend(allowed)
        if len(present) != 1:
            found = ", ".join(map(repr, self._left)) or "nothing"
            raise self.error("", f"must hold exactly one of {', '.join(allowed)}; it holds {found}")
        return present[0]

    def __contains__(self, key: str) -> bool:
        return key in self._left

    def done(self) -> None:
        """Raise for a key that nothing asked for."""
        for key in self._left:
            near = get_close_matches(key, self._known, n=1)
            hint = f"did you mean {near[0]!r}?" if near else f"the keys here are {', '.join(self._known)}"
            raise self.error(key, f"is not a known key: {hint}")

    def error(self, key: str, problem: str) -> InstanceError:
        """An error that names the file and the key."""
        return InstanceError(f"{self.file}: {self._path(key)} {problem}")

    def _path(self, key: str) -> str:
        return ".".join(part for part in (self.name, key) if part)


_KINDS = {
    str: "text",
    int: "a whole number",
    float: "a number",
    list: "a list",
    dict: "a table",
}
_NUMBER = (int, float)


def _instance(file: Path, root: Table) -> Instance:
    name = root.take("id", str)
    if name != file.stem:
        raise root.error("id", f"is {name!r} and the file's name {file.stem!r}: make them the same")
    title = root.take("title", str)
    root.choice("builder", ("design",))
    source = root.table("source")
    cite, where = source.take("cite", str), source.take("where", str)
    source.done()
    params = root.table("params")
    prior = _prior(params.table("prior"))
    privacy = _privacy(params.table("privacy"), prior)
    utility = _utility(params.table("utility"), prior, privacy)
    outputs = params.take("outputs", (int, list), None)
    params.done()
    expected = _expected(root.table("expected")) if "expected" in root else None
    root.done()
    return Instance(
        name, title, file, cite, where, prior, privacy, utility,
        tuple(outputs) if isinstance(outputs, list) else outputs, expected,
    )  # fmt: skip


def _prior(table: Table) -> Prior:
    kind = table.only(("uniform", "probabilities", "counts"))
    labels = table.take("labels", list, None)
    if kind == "uniform":
        prior = Prior.uniform(table.take(kind, int), labels)
    elif kind == "probabilities":
        prior = Prior(table.take(kind, list), labels)
    else:
        prior = Prior.from_counts(table.take(kind, (dict, list)), labels)
    table.done()
    return prior


def _privacy(table: Table, prior: Prior) -> Requirement:
    kind = table.only(("pml", "ldp", "lip", "maximal_leakage"))
    if kind == "lip":
        sides = table.table(kind)
        requirement = requirement_named(kind, lower=_level(sides, "lower"), epsilon=_level(sides, "upper"))
        sides.done()
    elif kind == "pml" and any(key in table for key in _SETS):
        level = _level(table, kind)
        requirement = PML(level, over=_SETS[table.only(tuple(_SETS))](table, prior))
    else:
        requirement = requirement_named(kind.replace("_", "-"), _level(table, kind))
    table.done()
    return requirement


def _confidence(table: Table, prior: Prior) -> PriorSet:
    region = table.choice("region", tuple(REGIONS)) if "region" in table else "l1-ball"
    return REGIONS[region](prior, table.take("delta", _NUMBER))


def _box(table: Table, prior: Prior) -> PriorSet:  # noqa: ARG001 - one of _SETS
    bounds = table.table("box")
    box = Box(bounds.take("lower", list), bounds.take("upper", list))
    bounds.done()
    return box


_SETS: Mapping[str, Callable[[Table, Prior], PriorSet]] = {
    "radius": lambda table, prior: L1Ball(prior, table.take("radius", _NUMBER)),
    "delta": _confidence,
    "minimum_mass": lambda table, prior: MinimumMass(prior.size, table.take("minimum_mass", _NUMBER)),
    "box": _box,
    "vertices": lambda table, prior: Vertices(table.take("vertices", list)),
}
"""The sets of priors that a problem file may name, by the key that does."""


def _level(table: Table, key: str) -> float:
    """A level in nats: a number, or `{ log = "9/8" }` for the logarithm of a rational."""
    value = table.take(key, (int, float, dict))
    if not isinstance(value, dict):
        return real(value, table._path(key), InstanceError)
    inner = Table(table.file, table._path(key), value)
    text = inner.take("log", (str, int, float))
    inner.done()
    try:
        return math.log(Fraction(text))
    except (ValueError, ZeroDivisionError, OverflowError):
        raise inner.error("log", f'is {text!r}: write a positive rational such as "9/8"') from None


def _utility(table: Table, prior: Prior, privacy: Requirement) -> LinearUtility | SubConvex:
    kind = table.only(("loss", "gain", "information", "information_density_of"))
    utility: LinearUtility | SubConvex
    if kind == "information":
        utility = INFORMATIONS[table.choice(kind, tuple(INFORMATIONS))]()
    elif kind == "information_density_of":
        form = table.choice(kind, tuple(CLOSED_FORMS))
        mechanism = CLOSED_FORMS[form](prior, privacy, np.zeros((prior.size, 1)))
        utility = ExpectedGain(information_density(prior, mechanism.matrix))
    else:
        value = table.take(kind, (str, list))
        if isinstance(value, str):
            named: Mapping[str, Any] = LOSSES if kind == "loss" else _gains(prior)
            if value not in named:
                raise table.error(kind, f"is {value!r}: write one of {', '.join(named)}, or a matrix")
            value = named[value]
        utility = ExpectedLoss(value) if kind == "loss" else ExpectedGain(value)
    table.done()
    return utility


def _expected(table: Table) -> Expected:
    matrix = table.take("mechanism", list, None)
    form = table.take("closed_form", str, None)
    if form is not None and form not in CLOSED_FORMS:
        raise table.error("closed_form", f"is {form!r}: write one of {', '.join(CLOSED_FORMS)}")
    expected = Expected(
        basis=table.choice("basis", BASES),
        relation=table.choice("relation", tuple(RELATIONS)),
        value=float(table.take("value", _NUMBER)),
        rtol=float(table.take("rtol", _NUMBER, 1e-7)),
        closed_form=form,
        mechanism=None if matrix is None else Mechanism(matrix).matrix,
    )
    table.done()
    return expected


def _gains(prior: Prior) -> dict[str, Any]:
    """Gains by name: 1 for the same label, and the same weighed by 1 / p[x]."""
    return {"match": lambda x, y: x == y, "balanced_match": np.diag(1 / prior.pmf)}


def _epsilon(privacy: Requirement) -> float:
    return max(privacy.limits.values())


def _ldp_level(prior: Prior, privacy: Requirement) -> float:
    """The LDP level that a mechanism may have: under PML through WCU, Proposition 1."""
    level = _epsilon(privacy)
    if isinstance(privacy, PML):
        level = closed_forms.ldp_for_pml(prior, level)
    return min(level, 700.0)


def _robust_binary(prior: Prior, privacy: Requirement, gains: FloatArray) -> Mechanism:  # noqa: ARG001
    return dict(forms(prior, privacy))["robust_binary"]


CLOSED_FORMS: Mapping[str, Callable[[Prior, Requirement, FloatArray], Mechanism]] = {
    "binary": lambda prior, privacy, gains: closed_forms.binary(prior, _epsilon(privacy)),
    "high_privacy": lambda prior, privacy, gains: closed_forms.high_privacy(prior, _epsilon(privacy)),
    "robust_binary": _robust_binary,
    "uniform": lambda prior, privacy, gains: closed_forms.uniform(prior.size, _epsilon(privacy)),
    "k_singular": lambda prior, privacy, gains: closed_forms.k_singular(
        prior.size, round(prior.size * math.exp(-_epsilon(privacy)))
    ),
    "randomized_response": lambda prior, privacy, gains: closed_forms.randomized_response(
        prior.size, _ldp_level(prior, privacy)
    ),
    "exponential": lambda prior, privacy, gains: closed_forms.exponential(gains, _ldp_level(prior, privacy)),
    "constant": lambda prior, privacy, gains: closed_forms.constant(prior, gains),
    "deterministic": lambda prior, privacy, gains: closed_forms.deterministic(prior, gains),
}
"""The closed forms that a problem file may name."""
