"""Requirements from their plain data, as certificates have it in files."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from pmlopt.errors import FileFormatError
from pmlopt.files import entry
from pmlopt.prior import Prior
from pmlopt.privacy.approximate_pml import ApproximatePML
from pmlopt.privacy.gain_leakage import GainLeakage
from pmlopt.privacy.ldp import LDP
from pmlopt.privacy.lip import LIP
from pmlopt.privacy.maximal_leakage import MaximalLeakage
from pmlopt.privacy.metric_privacy import MetricPrivacy
from pmlopt.privacy.pml import PML
from pmlopt.privacy.ratio_bound import RatioBound
from pmlopt.privacy.requirement import Conjunction, Requirement
from pmlopt.privacy.secret_leakage import Pufferfish
from pmlopt.secret import Secret
from pmlopt.uncertainty.from_record import KINDS, joint_laws_from_record, set_from_record


def requirement_record(privacy: Requirement, prior: Prior) -> dict[str, Any]:
    """A requirement on the letters of a prior as plain data: its name, its limits and what else it has."""
    own = privacy.for_prior(prior)
    return {"name": own.name, "limits": own.limits, **own.details}


def requirement_from_record(record: Mapping[str, Any], prior: Prior) -> Requirement:
    """The requirement of a record.

    Args:
        record: as `requirement_record` gives it.
        prior: whose letters it is on.

    Raises:
        FileFormatError: its name is not known, or a part is missing.
        InputError: its numbers are no requirement.

    Examples:
        >>> both = PML(0.5) & LDP(1.0)
        >>> requirement_from_record(requirement_record(both, Prior([0.5, 0.5])), Prior([0.5, 0.5]))
        PML(epsilon=0.5, over=None) & LDP(epsilon=1.0)
    """
    name = entry(record, "name", "the requirement")
    found = _from_record(name, record, prior)
    if set(found.limits) != set(entry(record, "limits", f"the requirement {name!r}")):
        raise FileFormatError(f"the requirement {name!r} has limits of other names than {list(found.limits)}")
    return found


def _from_record(name: str, record: Mapping[str, Any], prior: Prior) -> Requirement:
    if name not in _READERS:
        raise FileFormatError(f"the requirement {name!r} is not known")
    return _READERS[name](record, prior)


def _part(record: Mapping[str, Any], key: str) -> Any:
    return entry(record, key, f"the requirement {record['name']!r}")


def _epsilon(record: Mapping[str, Any]) -> float:
    """The only limit of a requirement."""
    limits = list(_part(record, "limits").values())
    if len(limits) != 1:
        raise FileFormatError(f"the requirement {record['name']!r} has {len(limits)} limits, not one")
    return float(limits[0])


def _pml(record: Mapping[str, Any], prior: Prior) -> Requirement:
    if "budgets" in record:
        if record["limits"] != {"pml_above_budget": 0.0}:
            raise FileFormatError(f"the limits {record['limits']} are not those of budgets: 0 above them")
        return PML(record["budgets"])
    if "about" in record:
        over = joint_laws_from_record(record) if "joint_laws" in record else None
        return PML(_epsilon(record), over, Secret.from_record(record["about"], prior.labels))
    priors = set_from_record(record) if any(key in record for key in KINDS) else None
    return PML(_epsilon(record), priors)


def _lip(record: Mapping[str, Any]) -> Requirement:
    limits = _part(record, "limits")
    return LIP(*(entry(limits, side, "the limits of LIP") for side in ("lip_lower", "lip_upper")))


def _ratio_bound(record: Mapping[str, Any]) -> Requirement:
    limits = _part(record, "limits")
    if "epsilon" in record and limits != {"above_epsilon": 0.0}:
        raise FileFormatError(f"the ratio bound has the limits {limits}: they are 0 above each epsilon")
    epsilon = record["epsilon"] if "epsilon" in record else entry(limits, "log_ratio", "the ratio bound")
    return RatioBound(_part(record, "numerators"), _part(record, "denominators"), epsilon)


def _pufferfish(record: Mapping[str, Any], prior: Prior) -> Requirement:
    secret = Secret.from_record(_part(record, "about"), prior.labels)
    pairs = [(secret.values[s], secret.values[t]) for s, t in _part(record, "pairs")]
    return Pufferfish(_epsilon(record), secret, pairs)


def _metric(record: Mapping[str, Any], prior: Prior) -> Requirement:
    rows = np.where(np.eye(prior.size) > 0, 0.0, math.inf)
    for x, y, length in [*_part(record, "edges"), *_part(record, "implied")]:
        rows[x, y] = rows[y, x] = length
    found = MetricPrivacy(_epsilon(record), rows)
    if found.details != {"edges": record["edges"], "implied": record["implied"]}:
        raise FileFormatError("the edges of the metric are not those that the others follow from, in order")
    return found


_READERS: Mapping[str, Callable[[Mapping[str, Any], Prior], Requirement]] = {
    PML.name: _pml,
    LDP.name: lambda record, prior: LDP(_epsilon(record)),
    LIP.name: lambda record, prior: _lip(record),
    MaximalLeakage.name: lambda record, prior: MaximalLeakage(_epsilon(record)),
    ApproximatePML.name: lambda record, prior: ApproximatePML(_epsilon(record), _part(record, "delta")),
    MetricPrivacy.name: _metric,
    Pufferfish.name: _pufferfish,
    GainLeakage.name: lambda record, prior: GainLeakage(_epsilon(record), _part(record, "gain")),
    RatioBound.name: lambda record, prior: _ratio_bound(record),
    Conjunction.name: lambda record, prior: Conjunction(
        *(requirement_from_record(part, prior) for part in _part(record, "parts"))
    ),
}
