"""The requirement of a problem file: what must stay private, and for which priors."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any

from pmlopt.data.prior import Prior
from pmlopt.data.secret import Secret
from pmlopt.data.symmetry import SymmetricPrior
from pmlopt.library.toml_table import Table
from pmlopt.model.privacy import PML, Conjunction, Pufferfish, Requirement, requirement_named
from pmlopt.model.privacy.by_name import NAMES
from pmlopt.model.privacy.metric_privacy import DISTANCES
from pmlopt.model.uncertainty import REGIONS, Box, ConvexHull, JointLaws, L1Ball, MinimumMass, PriorSet

_NUMBER = (int, float)


def read_requirement(params: Table, prior: Prior) -> Requirement:
    """The requirement under the key `privacy`: of one table, or all of a list of tables at once."""
    parts = [_one(table, prior) for table in _tables(params, "privacy")]
    params.take("privacy", (dict, list))
    return parts[0] if len(parts) == 1 else Conjunction(*parts)


def law_of_secret(params: Table) -> Prior:
    """The law of the letters in the joint law of the secret that a requirement is about.

    Raises:
        InstanceError: no requirement is about a secret, so that the prior is missing.
    """
    for table in _tables(params, "privacy"):
        if "about" in table:
            return _secret(table).prior
    raise params.error("prior", "is missing: add it")


def _tables(params: Table, key: str) -> Iterator[Table]:
    """The tables under a key, which stays to be taken."""
    value = params.peek(key)
    several = value if isinstance(value, list) else [value]
    if not several or not all(isinstance(one, dict) for one in several):
        params.take(key, (dict, list))  # complains where it is missing or another thing
        raise params.error(key, f"is {value!r}: write a table, or a list of tables")
    for place, one in enumerate(several):
        name = f"{key}[{place}]" if isinstance(value, list) else key
        yield Table(params.file, f"{params.name}.{name}", one)


def _one(table: Table, prior: Prior) -> Requirement:
    if "name" in table:
        return table.record(Requirement, prior.context)
    kind = table.only(tuple(name.replace("-", "_") for name in NAMES))
    requirement = _KINDS.get(kind, _plain)(table, prior, kind)
    table.done()
    return requirement


def _plain(table: Table, prior: Prior, kind: str) -> Requirement:  # noqa: ARG001 - one of _KINDS
    return requirement_named(kind.replace("_", "-"), table.level(kind))


def _lip(table: Table, prior: Prior, kind: str) -> Requirement:  # noqa: ARG001 - one of _KINDS
    sides = table.table(kind)
    requirement = requirement_named(kind, lower=sides.level("lower"), epsilon=sides.level("upper"))
    sides.done()
    return requirement


def _pml(table: Table, prior: Prior, kind: str) -> Requirement:
    if isinstance(table.peek(kind), list):
        budgets = table.take(kind, list)
        return PML([Table(table.file, f"{table.name}.{kind}", {str(x): budget}).level(str(x))
                    for x, budget in enumerate(budgets)])  # fmt: skip
    level = table.level(kind)
    if "about" in table:
        secret = _secret(table)
        return PML(level, about=secret, over=_joint_laws(table, secret))
    if any(key in table for key in _SETS):
        return PML(level, over=_SETS[table.only(tuple(_SETS))](table, prior))
    return PML(level)


def _joint_laws(table: Table, secret: Secret) -> JointLaws | None:
    """The joint laws within a radius of that of the secret, or that a sample leaves; None without either."""
    if "radius" in table:
        return JointLaws.ball(secret, table.take("radius", _NUMBER))
    return JointLaws.confidence(secret, table.take("delta", _NUMBER)) if "delta" in table else None


def _approximate(table: Table, prior: Prior, kind: str) -> Requirement:  # noqa: ARG001 - one of _KINDS
    level = table.level(kind)
    return requirement_named("approximate-pml", level, slack=table.take("slack", _NUMBER))


def _pufferfish(table: Table, prior: Prior, kind: str) -> Requirement:  # noqa: ARG001 - one of _KINDS
    level, pairs = table.level(kind), table.take("pairs", list, None)
    if pairs is not None and not all(_are_labels(pair) and len(pair) == 2 for pair in pairs):
        raise table.error("pairs", f"is {pairs!r}: write a list of pairs of values")
    return Pufferfish(level, _secret(table), None if pairs is None else [tuple(pair) for pair in pairs])


def _metric(table: Table, prior: Prior, kind: str) -> Requirement:
    level = table.level(kind)
    distance: Any
    if table.only(("distance", "edges")) == "edges":
        distance = _lengths(table)
    else:
        distance = table.take("distance", (str, list))
        if isinstance(distance, str):
            if distance not in DISTANCES:
                known = ", ".join(DISTANCES)
                raise table.error("distance", f"is {distance!r}: write one of {known}, or a matrix")
            distance = DISTANCES[distance]
    requirement = requirement_named(kind, level, distance=distance)
    return requirement if isinstance(prior, SymmetricPrior) else requirement.for_prior(prior)


def _lengths(table: Table) -> dict[tuple[Any, Any], float]:
    """The lengths of the edges [letter, letter, length] of a graph."""
    edges = table.take("edges", list)
    for edge in edges:
        if not _are_labels(edge) or len(edge) != 3 or not isinstance(edge[2], _NUMBER):
            raise table.error("edges", f"has {edge!r}: write [letter, letter, length] for each edge")
    return {(one, other): float(length) for one, other, length in edges}


def _are_labels(items: Any) -> bool:
    """Whether it is a list of text and numbers."""
    return isinstance(items, list) and all(isinstance(item, str | int | float) for item in items)


def _gains(table: Table, prior: Prior, kind: str) -> Requirement:  # noqa: ARG001 - one of _KINDS
    return requirement_named("g-leakage", table.level(kind), gain=table.take("gain", list))


_KINDS: Mapping[str, Callable[[Table, Prior, str], Requirement]] = {
    "pml": _pml,
    "lip": _lip,
    "approximate_pml": _approximate,
    "pufferfish": _pufferfish,
    "metric": _metric,
    "g_leakage": _gains,
}
"""How requirements with more than a level are read, by the key of their level."""


def _secret(table: Table) -> Secret:
    """The secret under the key `about`, by joint counts or joint probabilities."""
    inner = table.table("about")
    kind = inner.only(("counts", "joint"))
    numbers = inner.take(kind, list)
    names = {key: inner.take(key, list, None) for key in ("labels", "values")}
    name = inner.take("name", str, "the secret")
    inner.done()
    if kind == "counts":
        return Secret.from_counts(numbers, name=name, **names)
    return Secret(numbers, name=name, **names)


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
    "vertices": lambda table, prior: ConvexHull(table.take("vertices", list)),
}
"""The sets of priors that a problem file may name, by the key that does."""
