"""The column space of a design."""

from __future__ import annotations

import numpy as np

from pmlopt.arrays import FloatArray
from pmlopt.prior import Prior
from pmlopt.privacy import Requirement
from pmlopt.privacy.ratios import Ratios
from pmlopt.programs.subconvex.column_space import ColumnSpace
from pmlopt.programs.subconvex.family_space import FamilySpace
from pmlopt.programs.subconvex.set_space import SetSpace
from pmlopt.uncertainty import Cone
from pmlopt.uncertainty.column_families import Box
from pmlopt.utility import SubConvex


def column_space(prior: Prior, privacy: Requirement, utility: SubConvex) -> ColumnSpace:
    """The space of what the requirement allows; one letter has the constant column only."""
    allowed = privacy.columns(prior)
    if prior.size == 1:
        return FamilySpace(prior, privacy, utility, (Box(1.0, 1.0),))
    if isinstance(allowed, Cone | Ratios):
        return SetSpace(prior, privacy, utility, allowed)
    return FamilySpace(prior, privacy, utility, allowed)


def column_bound(
    prior: Prior, privacy: Requirement, utility: SubConvex, multipliers: FloatArray, enough: float = -np.inf
) -> float:
    """An upper bound on a sub-convex utility of every mechanism that meets the requirement.

    For every rho in R^N: `sum_y q[y] mu(lam_y) = <p, rho> + sum_y q[y] (mu(lam_y) - <p rho, lam_y>)`, and the
    last sum is at most the largest term over the extreme columns. rho may be anything, and what rounding
    may have taken off is added.

    Args:
        prior: N letters.
        privacy: the requirement.
        utility: the sub-convex utility.
        multipliers: (N,) rho; the multipliers of the rows over p reach the optimum.
        enough: a bound of this much need not be lowered, which can save a search.

    Raises:
        ProgramError: there are too many extreme columns for this utility.

    Source: [gilmore1961cutting] (pricing); [grosse2024extremal, Theorem 6] (the columns).

    Examples:
        >>> from pmlopt import MutualInformation, PML
        >>> bound = column_bound(Prior.uniform(4), PML(np.log(2)), MutualInformation(), np.zeros(4))
        >>> round(np.exp(bound).item(), 12)
        2.0
    """
    return column_space(prior, privacy, utility).bound(multipliers, enough, None)[0]
