"""Bounds of the literature on how leakage grows with the distance to a prior, each beside its exact value.

Where a mechanism is in hand, `leakage_capacity` and `leakage_sensitivity` are exact and never larger.
"""

from __future__ import annotations

import math

import numpy as np

from pmlopt.arrays import nonnegative, real
from pmlopt.errors import PrivacyError
from pmlopt.measures import leakage_level
from pmlopt.mechanism import MechanismLike, as_mechanism, match_labels, paired
from pmlopt.prior import PriorLike, as_prior
from pmlopt.uncertainty.capacity import leakage_capacity
from pmlopt.uncertainty.prior_set import PriorSet


def distance(first: PriorLike, second: PriorLike) -> float:
    """The l1 distance `sum_x |p[x] - q[x]|` of two priors, in [0, 2].

    Raises:
        PrivacyError: they are on different letters, or on the same in another order.

    Examples:
        >>> distance([0.5, 0.5], [0.75, 0.25])
        0.5
    """
    p, q = as_prior(first), as_prior(second)
    if p.size != q.size:
        raise PrivacyError(f"the priors are on {p.size} and {q.size} letters: give both on the same")
    match_labels(p.labels, q.labels, "the letters of one prior", "those of the other", PrivacyError)
    return float(np.abs(p.pmf - q.pmf).sum())


def lipschitz_bound(priors: PriorSet, mechanism: MechanismLike, first: PriorLike, second: PriorLike) -> float:
    """How far the PML levels under two priors of a set can be apart: `exp(C) |p - q|_1`, in nats.

    Args:
        priors: the set; C is the mechanism's leakage capacity over it.
        mechanism: (N, M).
        first: a prior of the set.
        second: another.

    Returns:
        inf where the capacity is infinite.

    Raises:
        PrivacyError: a prior is not in the set, or the letters differ.

    Source: EMP, Theorem 3.

    Examples:
        >>> from pmlopt import AllPriors
        >>> warner = [[0.75, 0.25], [0.25, 0.75]]
        >>> round(lipschitz_bound(AllPriors(2), warner, [0.5, 0.5], [0.6, 0.4]), 12)
        0.6
    """
    m = as_mechanism(mechanism)
    for prior in (first, second):
        if not priors.contains(prior):
            raise PrivacyError(f"a prior is not in {priors!r}: the bound is about two of its priors")
    apart = distance(first, second)
    if apart == 0:
        return 0.0
    capacity = leakage_capacity(priors, m)
    return math.exp(capacity) * apart if capacity < 700 else math.inf


def sensitivity_bound(prior: PriorLike, epsilon: float, radius: float) -> float:
    """How much more than epsilon a mechanism of level epsilon can leak within an l1 distance, in nats.

    `-log(1 - radius/2 (e^eps - 1) / min p)` in the first privacy region, that is for
    `e^eps (1 - min p) < 1`, and `-log(1 - radius/2 e^eps)` past it.

    Args:
        prior: p, N letters.
        epsilon: a PML level of the mechanism under p, in nats; past -log(min p) it counts as that.
        radius: in [0, 2 min p).

    Raises:
        PrivacyError: epsilon is negative, or the radius is outside its range.

    Source: EMP, Theorem 4.

    Examples:
        >>> p = [0.4, 0.2, 0.2, 0.2]
        >>> round(math.exp(-sensitivity_bound(p, math.log(9 / 8), 0.1)), 12)  # first region
        0.96875
        >>> round(math.exp(-sensitivity_bound(p, math.log(2), 0.1)), 12)
        0.9
    """
    p = as_prior(prior)
    least = float(p.pmf.min())
    size = _radius(radius, 2 * least)
    level = min(nonnegative(epsilon, "epsilon", PrivacyError), p.max_leakage)
    growth = math.expm1(level) / least if in_first_region(p, level) else math.exp(level)
    return _less(size / 2 * growth)


def in_first_region(prior: PriorLike, epsilon: float) -> bool:
    """Whether `e^eps (1 - min p) < 1`: no mechanism of level eps has a zero (EMP, Definition 4)."""
    least = float(as_prior(prior).pmf.min())
    return least == 1 or epsilon < -math.log1p(-least)


def sensitivity_bound_is_tight(prior: PriorLike, mechanism: MechanismLike) -> bool:
    """Whether `sensitivity_bound` at the mechanism's level is its sensitivity, for every allowed radius.

    Both need an output whose leakage is the level: in the first region one whose least entry over its
    mean is as small as that leakage allows, `(1 - e^eps (1 - min p)) / min p` (as in extremal mechanisms);
    past it one with a zero.

    Raises:
        MechanismError: sizes or labels disagree.

    Source: EMP, Theorem 4 (sufficient conditions on all outputs; here on the worst one, with their proof).

    Examples:
        >>> from pmlopt import closed_forms
        >>> p = [0.4, 0.2, 0.2, 0.2]
        >>> sensitivity_bound_is_tight(p, closed_forms.high_privacy(p, math.log(9 / 8)))
        True
    """
    p, m = paired(prior, mechanism)
    level, least = leakage_level(p, m), float(p.pmf.min())
    columns = m.matrix[:, m.support]
    lifts = columns / (p.pmf @ columns)
    worst = lifts[:, lifts.max(axis=0) >= math.exp(level) * (1 - 1e-12)]
    floor = (1 - math.exp(level) * (1 - least)) / least if in_first_region(p, level) else 0.0
    return bool(worst.min() <= floor + 1e-9)


def level_bound(epsilon: float, radius: float) -> float:
    """The PML level under any prior within an l1 distance of one under which it is epsilon, in nats.

    `eps - log(1 - radius/2 e^eps)`; the bound of Theorem 4 past the first region, which holds in all of them.

    Args:
        epsilon: the level under the first prior, in nats.
        radius: in [0, 2).

    Returns:
        inf where `radius >= 2 e^-eps`: the bound then says nothing.

    Raises:
        PrivacyError: epsilon is negative, or the radius is outside [0, 2].

    Source: EMP, Corollary 2 and, with the radius of a sample, eq. (8).

    Examples:
        >>> round(math.exp(level_bound(math.log(2), 0.2)), 12)
        2.5
    """
    level, size = nonnegative(epsilon, "epsilon", PrivacyError), _radius(radius, math.inf)
    if size == 0:
        return level
    logarithm = level + math.log(size) - math.log(2)  # of radius/2 e^eps, which may overflow
    return level + _less(math.exp(logarithm)) if logarithm < 0 else math.inf


def robust_level(epsilon: float, radius: float) -> float:
    """The level at the centre of an l1 ball that suffices for epsilon on all of it, in nats.

    `eps' = eps - log(1 + radius/2 e^eps)`, the inverse of `level_bound`. It is the whole condition for
    columns with a zero, where the radius is below 2 min p.

    Args:
        epsilon: the level wanted on the ball, in nats.
        radius: in [0, 2].

    Returns:
        A level below epsilon; negative where no level at the centre suffices.

    Raises:
        PrivacyError: epsilon is negative, or the radius is outside [0, 2].

    Source: EMP, eq. (13).

    Examples:
        >>> round(math.exp(robust_level(math.log(2.5), 0.2)), 12)
        2.0
    """
    level, half = nonnegative(epsilon, "epsilon", PrivacyError), _radius(radius, math.inf) / 2
    return level - float(np.logaddexp(0.0, level + math.log(half))) if half else level


def _less(share: float) -> float:
    """-log(1 - share); inf where nothing is left."""
    return -math.log1p(-share) + 0.0 if share < 1 else math.inf


def _radius(radius: float, most: float) -> float:
    size = real(radius, "the radius", PrivacyError)
    if not 0 <= size < most or size > 2:
        limit = "2]" if most > 2 else f"{most:g}), below twice the least probability"
        raise PrivacyError(f"the radius is {size:g}: give one in [0, {limit}")
    return size
