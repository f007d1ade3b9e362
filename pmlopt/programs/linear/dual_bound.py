"""The dual bound: what no mechanism can exceed, from any multipliers at all."""

from __future__ import annotations

import numpy as np

from pmlopt.arrays import FloatArray, rounding_of
from pmlopt.prior import Prior
from pmlopt.privacy import Requirement
from pmlopt.privacy.requirement import Witness

PLENTY = 4
"""How many times the mean the largest entry may be for it to stand for the relaxation in what is rounded."""


def utility_bound(prior: Prior, privacy: Requirement, gains: FloatArray, multipliers: FloatArray) -> float:
    """An upper bound on the expected gain of every mechanism that meets the requirement.

    For every rho in R^N: E[g] = <p, rho> + sum_xy p[x] (g[x,y] - rho[x]) P[x,y], and the last sum
    is at most the requirement's `relaxation` of g - rho. Under PML that is max_y CVaR_{e^-eps}(g[:,y] - rho).
    No solver is trusted: rho may be anything, and what rounding may have taken off is added.

    Args:
        prior: N letters.
        privacy: the requirement.
        gains: (N, M).
        multipliers: (N,) rho; the multipliers of the row sums divided by p reach the optimum.

    Examples:
        >>> from pmlopt import PML
        >>> round(utility_bound(Prior.uniform(4), PML(np.log(2)), np.eye(4), np.zeros(4)), 12)
        0.5
    """
    return raw_bound(prior, privacy, gains, multipliers) + rounding_in(prior, privacy, gains, multipliers)


def raw_bound(prior: Prior, privacy: Requirement, gains: FloatArray, multipliers: FloatArray) -> float:
    """The bound as it is computed: to steer and to compare by, not to claim."""
    return float(prior.pmf @ multipliers) + privacy.relaxation(prior, gains - multipliers[:, None])


def proved_bound(
    prior: Prior,
    privacy: Requirement,
    gains: FloatArray,
    multipliers: FloatArray,
    witness: Witness,
    share: float = 1.0,
) -> float:
    """`utility_bound` from a witness, without a search.

    Args:
        prior: N letters.
        privacy: the requirement.
        gains: (N, M).
        multipliers: (N,) rho.
        witness: as `Requirement.witness` gives it; any numbers prove a bound.
        share: of the allowance for rounding that is added.
    """
    found = float(prior.pmf @ multipliers) + privacy.proved(prior, gains - multipliers[:, None], witness)
    return found + share * rounding_in(prior, privacy, gains, multipliers)


def rounding_in(prior: Prior, privacy: Requirement, gains: FloatArray, multipliers: FloatArray) -> float:
    """What rounding may have taken off the bound."""
    # sums of N terms err by about N units in the last place of the sum of their sizes, and the
    # relaxation is sublinear: what rounding takes off g - rho counts as its relaxation
    sizes = np.abs(gains) + np.abs(multipliers)[:, None]
    most = float(sizes.max())  # of any column: what the relaxation is at most, without a linear program
    if most > PLENTY * float(prior.pmf @ sizes.max(axis=1)):
        most = privacy.relaxation(prior, sizes)
    return rounding_of(prior.size, float(prior.pmf @ np.abs(multipliers)) + most)
