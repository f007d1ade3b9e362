"""Privacy requirements by name, for the command line and problem files."""

from __future__ import annotations

from pmlopt.privacy.approximate_pml import ApproximatePML
from pmlopt.privacy.ldp import LDP
from pmlopt.privacy.lip import LIP
from pmlopt.privacy.maximal_leakage import MaximalLeakage
from pmlopt.privacy.pml import PML
from pmlopt.privacy.requirement import Requirement

ONE_SIDED: dict[str, type[PML] | type[LDP] | type[MaximalLeakage]] = {
    kind.name: kind for kind in (PML, LDP, MaximalLeakage)
}
"""The requirements with one bound, by their `name`: one that is added here has a name everywhere."""

NAMES = (*ONE_SIDED, LIP.name, ApproximatePML.name)
"""The names that commands and problem files take."""


def requirement_named(
    name: str, epsilon: float, lower: float | None = None, slack: float | None = None
) -> Requirement:
    """The privacy requirement of a given name and level; LIP has the same bound on both sides by default.

    Args:
        name: such as "pml".
        epsilon: in nats.
        lower: LIP's other side.
        slack: delta of approximate PML.

    Examples:
        >>> requirement_named("ldp", 0.5), requirement_named("lip", 0.5)
        (LDP(epsilon=0.5), LIP(lower=0.5, upper=0.5))
    """
    if name == LIP.name:
        return LIP(epsilon if lower is None else lower, epsilon)
    if slack is not None:
        return ApproximatePML(epsilon, slack)
    return ONE_SIDED[name](epsilon)
