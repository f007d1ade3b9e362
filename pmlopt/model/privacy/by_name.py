"""Privacy requirements by name, for the command line and problem files."""

from __future__ import annotations

from typing import Any

from pmlopt.errors import PrivacyError
from pmlopt.model.privacy.approximate_pml import ApproximatePML
from pmlopt.model.privacy.gain_leakage import GainLeakage
from pmlopt.model.privacy.ldp import LDP
from pmlopt.model.privacy.lip import LIP
from pmlopt.model.privacy.maximal_leakage import MaximalLeakage
from pmlopt.model.privacy.metric_privacy import MetricPrivacy
from pmlopt.model.privacy.pml import PML
from pmlopt.model.privacy.requirement import Requirement
from pmlopt.model.privacy.secret_leakage import Pufferfish

ONE_SIDED: dict[str, type[PML] | type[LDP] | type[MaximalLeakage]] = {
    kind.name: kind for kind in (PML, LDP, MaximalLeakage)
}
"""The requirements with one bound, by their `name`: one that is added here has a name everywhere."""

WITH: dict[str, str] = {
    ApproximatePML.name: "slack",
    MetricPrivacy.name: "distance",
    Pufferfish.name: "about",
    GainLeakage.name: "gain",
}
"""What the requirements of these names need beside a level."""

MAY_HAVE: dict[str, tuple[str, ...]] = {LIP.name: ("lower",), PML.name: ("about",)}
"""What others may have beside it."""

NAMES = (*ONE_SIDED, LIP.name, *WITH)
"""The names that commands and problem files take."""


def requirement_named(name: str, epsilon: float, **given: Any) -> Requirement:
    """The privacy requirement of a given name and level; LIP has the same bound on both sides by default.

    Args:
        name: such as "pml".
        epsilon: in nats.
        given: what else it needs or may have, None where it is not given: `slack` of approximate PML, LIP's
            `lower` side, the secret that PML and Pufferfish are `about`, the `distance` of metric privacy,
            the `gain` of g-leakage.

    Raises:
        PrivacyError: something that it needs is not given, or something is given that it has not.

    Examples:
        >>> requirement_named("ldp", 0.5), requirement_named("lip", 0.5)
        (LDP(epsilon=0.5), LIP(lower=0.5, upper=0.5))
    """
    given = {what: value for what, value in given.items() if value is not None}
    needed = {WITH[name]} if name in WITH else set()
    if not needed <= set(given):
        raise PrivacyError(f"{name} needs {', '.join(needed)} beside its level")
    beyond = set(given) - needed - set(MAY_HAVE.get(name, ()))
    if beyond:
        raise PrivacyError(f"{', '.join(sorted(beyond))} does not belong to {name}")
    match name:
        case LIP.name:
            return LIP(given.get("lower", epsilon), epsilon)
        case ApproximatePML.name:
            return ApproximatePML(epsilon, given["slack"])
        case MetricPrivacy.name:
            return MetricPrivacy(epsilon, given["distance"])
        case Pufferfish.name:
            return Pufferfish(epsilon, given["about"])
        case GainLeakage.name:
            return GainLeakage(epsilon, given["gain"])
    return ONE_SIDED[name](epsilon, **given)
