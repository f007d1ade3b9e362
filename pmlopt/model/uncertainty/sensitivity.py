"""Sensitivity bounds from the literature on leakage under a change of prior, with exact values.

For a given mechanism `leakage_capacity` and `leakage_sensitivity` are exact and never larger.

The last functions plan samples, before there is a mechanism: one of level epsilon under the empirical
distribution of m samples has a level of at most epsilon' under the true one, except with probability
delta over the sample. Each of the three follows from the others. For given samples, `PML(epsilon,
over=confidence_ball(prior, delta))` gives a stronger guarantee. Prior knowledge sharpens all
three: kappa, at least `weissman_kappa` of the true distribution, shrinks the radius; and `least`, which
the least probability of the estimate is not below, makes leakage grow less with the radius where epsilon
is in the first privacy region of such an estimate.
"""

from __future__ import annotations

import math
import sys

import numpy as np

from pmlopt.core.numbers.arrays import (
    FloatArray,
    bound_sum_rounding,
    check_in_interval,
    check_nonnegative,
    check_probability,
)
from pmlopt.data.mechanism import MechanismLike, as_mechanism, check_labels_match, pair_with_prior
from pmlopt.data.prior import PriorLike, as_prior
from pmlopt.errors import PrivacyError
from pmlopt.measures import leakage_level, pointwise_leakage
from pmlopt.measures.leakage import measure_worst_leakage
from pmlopt.model.uncertainty.confidence import find_min_samples, weissman_radius, weissman_tail
from pmlopt.model.uncertainty.prior_set import PriorSet, check_prior_set


class WorstCase(float):
    """A worst-case value in nats, with the prior and output that attain it.

    Attributes:
        prior: (N,) a prior of the set with the largest leakage; it may have zeros.
        output: the index of the output with the largest leakage under it.
    """

    prior: FloatArray
    output: int

    def __new__(cls, value: float, prior: FloatArray, output: int) -> WorstCase:
        """Create the value with its maximising prior and output."""
        number = super().__new__(cls, value)
        number.prior = prior
        number.output = output
        return number


def pointwise_capacity(priors: PriorSet, mechanism: MechanismLike) -> FloatArray:
    """Compute the (M,) largest leakages of outputs over a set, `log(max_x P[x,y] / w(P[:,y]))`, in nats.

    -inf for outputs that never occur.

    Raises:
        PrivacyError: `priors` is no set of priors, or one on other letters.

    Examples:
        >>> from pmlopt import AllPriors
        >>> np.exp(pointwise_capacity(AllPriors(2), [[0.75, 0.25], [0.25, 0.75]])).round(12)
        array([3., 3.])
    """
    m = as_mechanism(mechanism)
    check_prior_set(priors, "the set of priors")
    priors.check_letters(m.inputs, "the mechanism")
    levels = np.full(len(m.outputs), -np.inf)
    levels[m.support] = measure_worst_leakage(priors, m.matrix[:, m.support])
    return levels


def leakage_capacity(priors: PriorSet, mechanism: MechanismLike) -> WorstCase:
    """Compute the leakage capacity `max_Q max_y log(max_x P[x,y] / sum_x Q[x] P[x,y])` over a set, in nats.

    Exact for every set: the inner minimum is a formula, and no sampling is involved.

    Args:
        priors: such as `L1Ball`, `Box`, `MinimumMass`, `ConvexHull` or `AllPriors`.
        mechanism: (N, M).

    Returns:
        A float with the attributes `prior`, (N,) the worst prior, and `output`.

    Raises:
        PrivacyError: `priors` is no set of priors, or one on other letters.

    Source: [grosse2025empirical, Definition 5].

    Examples:
        >>> import math
        >>> from pmlopt import L1Ball
        >>> worst = leakage_capacity(L1Ball([0.5, 0.5], 0.2), [[0.75, 0.25], [0.25, 0.75]])
        >>> round(math.exp(worst), 12), worst.prior.round(12), worst.output
        (1.666666666667, array([0.4, 0.6]), 0)
    """
    levels = pointwise_capacity(priors, mechanism)
    output = int(levels.argmax())
    column = as_mechanism(mechanism).matrix[:, output]
    return WorstCase(float(levels[output]), priors.minimizer(column), output)


def leakage_sensitivity(prior: PriorLike, priors: PriorSet, mechanism: MechanismLike) -> WorstCase:
    """Compute the local leakage sensitivity: the capacity over a set less the PML level under one of its
    priors.

    Args:
        prior: N letters, in the set.
        priors: the set.
        mechanism: (N, M).

    Returns:
        A float of at least 0, in nats, with the attributes `prior` and `output`.

    Raises:
        PrivacyError: the prior is not in the set, or the set is on other letters.
        MechanismError: prior and mechanism are on different letters.

    Source: [grosse2025empirical, Definition 6].

    Examples:
        >>> import math
        >>> from pmlopt import L1Ball
        >>> p, matrix = [0.5, 0.5], [[0.75, 0.25], [0.25, 0.75]]
        >>> round(math.exp(leakage_sensitivity(p, L1Ball(p, 0.2), matrix)), 12)
        1.111111111111
    """
    p, m = pair_with_prior(prior, mechanism)
    worst = leakage_capacity(priors, m)
    if not priors.contains(p):
        raise PrivacyError(
            f"the prior is not in {priors!r}: the sensitivity is about one of its priors"
        )
    return WorstCase(max(0.0, worst - leakage_level(p, m)), worst.prior, worst.output)


def distance(first: PriorLike, second: PriorLike) -> float:
    """Compute the l1 distance `sum_x |p[x] - q[x]|` of two priors, in [0, 2].

    Raises:
        PrivacyError: they are on different letters, or on the same in another order.

    Examples:
        >>> distance([0.5, 0.5], [0.75, 0.25])
        0.5
    """
    p = as_prior(first)
    q = as_prior(second)
    if p.size != q.size:
        raise PrivacyError(
            f"the priors are on {p.size} and {q.size} letters: give both on the same"
        )
    check_labels_match(
        p.labels, q.labels, "the letters of one prior", "those of the other", PrivacyError
    )
    return float(np.abs(p.pmf - q.pmf).sum())


def lipschitz_bound(
    priors: PriorSet, mechanism: MechanismLike, first: PriorLike, second: PriorLike
) -> float:
    """Bound the difference of the PML levels under two priors of a set: `exp(C) |p - q|_1 / 2`, in nats.

    Half of the paper's Theorem 3. Let a column v have the largest entry 1. Its least mean over the set is
    at least exp(-C), so that the logarithms of its means under p and q differ by at most `exp(C) |<p - q,
    v>|`; and since the entries of p - q sum to 0, `|<p - q, v>| <= |p - q|_1 / 2 (max v - min v)`. Not
    attained where p is not q, but approached: by a column with a zero, for near priors.

    Args:
        priors: the set; C is the mechanism's leakage capacity over it.
        mechanism: (N, M).
        first: a prior of the set.
        second: another.

    Returns:
        inf where the capacity is infinite.

    Raises:
        PrivacyError: `priors` is no set of priors, a prior is not in it, or the letters differ.

    Source: [grosse2025empirical, Theorem 3], with half of its bound.

    Examples:
        >>> from pmlopt import AllPriors
        >>> warner = [[0.75, 0.25], [0.25, 0.75]]
        >>> round(lipschitz_bound(AllPriors(2), warner, [0.5, 0.5], [0.6, 0.4]), 12)
        0.3
    """
    capacity = leakage_capacity(priors, mechanism)
    for prior in (first, second):
        if not priors.contains(prior):
            raise PrivacyError(
                f"a prior is not in {priors!r}: the bound is about two of its priors"
            )
    apart = distance(first, second)
    if apart == 0:
        return 0.0
    return math.exp(capacity) * apart / 2 if capacity < 700 else math.inf


def level_increase_within_distance(prior: PriorLike, epsilon: float, radius: float) -> float:
    """Compute how much more than epsilon a mechanism of level epsilon can leak within an l1 distance, in
    nats.

    `-log(1 - radius/2 (e^eps - 1) / min p)` in the first privacy region, that is for
    `e^eps (1 - min p) < 1`, and `-log(1 - radius/2 e^eps)` past it. Both hold for every radius: whichever
    mass of radius / 2 an adversary moves, a column's mean falls by `radius/2 (max v - min v)` at most.
    Below 2 min p he can move so much without emptying a letter, and mechanisms attain the bound.

    Args:
        prior: p, N letters.
        epsilon: a PML level of the mechanism under p, in nats; past -log(min p) it counts as that.
        radius: in [0, 2].

    Returns:
        inf where the bound states nothing.

    Raises:
        PrivacyError: epsilon is negative, or the radius is outside its range.

    Source: [grosse2025empirical, Theorem 4], for a radius below 2 min p; past it by the first steps of its
    proof.

    Examples:
        >>> p = [0.4, 0.2, 0.2, 0.2]
        >>> round(math.exp(-level_increase_within_distance(p, math.log(9 / 8), 0.1)), 12)  # first region
        0.96875
        >>> round(math.exp(-level_increase_within_distance(p, math.log(2), 0.1)), 12)
        0.9
    """
    p = as_prior(prior)
    size = _check_radius(radius)
    level = min(check_nonnegative(epsilon, "epsilon", PrivacyError), p.max_leakage)
    return _growth_of_decrease(size / 2 * leakage_growth(level, float(p.pmf.min())))


def leakage_growth(epsilon: float, least: float | None) -> float:
    """Compute the rate of leakage growth per moved mass: the largest `(max v - min v) / <p, v>`.

    `(e^eps - 1) / min p` in the first privacy region and `e^eps` past it, or where min p is not known.

    Args:
        epsilon: the level of the column v, in nats.
        least: min p; None where it is not known.

    Source: [grosse2025empirical, Appendix B].
    """
    if least is not None and _is_in_first_region(least, epsilon):
        return math.expm1(epsilon) / least
    return math.exp(epsilon) if epsilon < 700 else math.inf


def _is_in_first_region(least: float, epsilon: float) -> bool:
    """Return whether `e^eps (1 - min p) < 1`: no mechanism of level epsilon has zero entries."""
    return least == 1 or epsilon < -math.log1p(-least)


def level_increase_is_attained(prior: PriorLike, mechanism: MechanismLike) -> bool:
    """Return whether `level_increase_within_distance` is the mechanism's sensitivity for radii below 2 min p.

    Both need an output whose leakage is the level: in the first region one whose entries are as far apart
    as that leakage allows, `max v - min v = (e^eps - 1) / min p <p, v>` (as in extremal mechanisms); past it
    one with a zero. Equalities are up to rounding, and a zero is one exactly.

    Raises:
        MechanismError: sizes or labels disagree.

    Source: [grosse2025empirical, Theorem 4] (sufficient conditions on all outputs; here on the worst one,
    with their proof).

    Examples:
        >>> from pmlopt import closed_forms
        >>> p = [0.4, 0.2, 0.2, 0.2]
        >>> level_increase_is_attained(p, closed_forms.high_privacy(p, math.log(9 / 8)))
        True
    """
    p, m = pair_with_prior(prior, mechanism)
    leakages = pointwise_leakage(p, m)[m.support]
    least = float(p.pmf.min())
    level = float(leakages.max())
    # entries near 1 are rounded, and with them a leakage near 0
    near = level - max(1e-9 * level, bound_sum_rounding(p.size, 1.0) / 16)
    worst = m.matrix[:, m.support][:, leakages >= near]
    levels = leakages[leakages >= near]
    if not _is_in_first_region(least, level):
        return bool(worst.min() == 0)
    apart = (worst.max(axis=0) - worst.min(axis=0)) / (p.pmf @ worst)
    return bool((apart >= np.expm1(levels) / least * (1 - 1e-9)).any())


def level_within_distance(epsilon: float, radius: float, least: float | None = None) -> float:
    """Compute the PML level under any prior within an l1 distance of one under which it is epsilon, in nats.

    `eps - log(1 - radius/2 e^eps)`; the bound of Theorem 4 past the first region, which holds in all of
    them. In the first region, `eps - log(1 - radius/2 (e^eps - 1) / min p)` is less.

    Args:
        epsilon: the level under the first prior, in nats.
        radius: in [0, 2].
        least: the least probability min p under the first prior, where it is known.

    Returns:
        inf where `radius >= 2 e^-eps` (in the first region, `2 min p / (e^eps - 1)`): the bound then states
        nothing.

    Raises:
        PrivacyError: epsilon is negative, the radius is outside [0, 2], or `least` is no probability of at
            least 0.

    Source: [grosse2025empirical, Corollary 2]; with the radius of a sample, [grosse2025empirical, eq. (8)].

    Examples:
        >>> round(math.exp(level_within_distance(math.log(2), 0.2)), 12)
        2.5
    """
    level = check_nonnegative(epsilon, "epsilon", PrivacyError)
    size = _check_radius(radius)
    min_mass = check_min_mass(least)
    if size == 0:
        return level
    if min_mass is not None and _is_in_first_region(min_mass, level):
        return level + _growth_of_decrease(size / 2 * leakage_growth(level, min_mass))
    logarithm = level + math.log(size) - math.log(2)  # of radius/2 e^eps, which may overflow
    return level + _growth_of_decrease(math.exp(logarithm)) if logarithm < 0 else math.inf


def level_needed_at_centre(epsilon: float, radius: float) -> float:
    """Compute the level at the centre of an l1 ball that suffices for epsilon on all of it, in nats.

    `eps' = eps - log(1 + radius/2 e^eps)`, the inverse of `level_within_distance`. It is the whole
    condition for columns with a zero, where the radius is below 2 min p.

    Args:
        epsilon: the level wanted on the ball, in nats.
        radius: in [0, 2].

    Returns:
        A level below epsilon; negative where no level at the centre suffices.

    Raises:
        PrivacyError: epsilon is negative, or the radius is outside [0, 2].

    Source: [grosse2025empirical, eq. (13)].

    Examples:
        >>> round(math.exp(level_needed_at_centre(math.log(2.5), 0.2)), 12)
        2.0
    """
    level = check_nonnegative(epsilon, "epsilon", PrivacyError)
    half = _check_radius(radius) / 2
    return level - float(np.logaddexp(0.0, level + math.log(half))) if half else level


def _growth_of_decrease(decrease: float) -> float:
    """Compute -log(1 - decrease), the level's growth when a mean decreases by a fraction.

    A mean that may be 0 up to rounding counts as 0: the bound errs upwards.
    """
    return -math.log1p(-decrease) + 0.0 if decrease < 1 - 8 * sys.float_info.epsilon else math.inf


def check_min_mass(least: float | None) -> float | None:
    """Validate a minimum probability in (0, 1]."""
    hint = ", or leave it out"
    if least is None:
        return None
    return check_in_interval(least, "(0, 1]", "the least probability", PrivacyError, hint)


def _check_radius(radius: float) -> float:
    """Validate an l1 radius in [0, 2]."""
    return check_in_interval(radius, "[0, 2]", "the radius", PrivacyError)


def samples_needed(
    size: int,
    epsilon: float,
    target: float,
    delta: float,
    kappa: float = 0.5,
    least: float | None = None,
) -> int:
    """Compute the sample size for which level epsilon at the estimate implies level `target`, but for delta.

    The least m with `failure_bound(m, ...) <= delta`, that is
    `m >= (log(2^N - 2) - log delta) / (phi(kappa) w^2)` with the half radius w of `failure_bound`.

    Args:
        size: N, the number of letters.
        epsilon: the level under the empirical distribution, in nats.
        target: the level eps' > eps under the true one, in nats.
        delta: in (0, 1).
        kappa: in (0, 1/2], at least `weissman_kappa` of the true distribution, where that is known.
        least: at most the least probability of the estimate, where that is known.

    Raises:
        PrivacyError: an argument is outside its range.

    Source: [grosse2025empirical, Corollary 3], solved for m.

    Examples:
        >>> samples_needed(20, math.log(5), math.log(6), 1e-5)
        11420
    """
    max_delta = max(check_probability(delta), sys.float_info.min)
    return find_min_samples(
        _half_radius(epsilon, target, least),
        size,
        delta,
        kappa,
        lambda samples: failure_bound(samples, size, epsilon, target, kappa, least) <= max_delta,
        f"no sample distinguishes the levels {epsilon:g} and {target:g}: give levels that differ more",
    )


def failure_bound(
    samples: int,
    size: int,
    epsilon: float,
    target: float,
    kappa: float = 0.5,
    least: float | None = None,
) -> float:
    """Bound the probability that level epsilon at the estimate exceeds level `target` under the true law.

    At most `(2^N - 2) exp(-phi(kappa) m w^2)`, and at most one; `w = e^-eps - e^-eps'` is half the radius
    that takes the one level to the other, `(1 - e^(eps - eps')) least / (e^eps - 1)` in the first region.
    Without kappa phi is 2. For more than one letter it is at least the smallest normal float, 2.2e-308.

    Args:
        samples: m.
        size: N, the number of letters.
        epsilon: the level under the empirical distribution, in nats.
        target: the level eps' > eps under the true one, in nats.
        kappa: in (0, 1/2], at least `weissman_kappa` of the true distribution, where that is known.
        least: at most the least probability of the estimate, where that is known.

    Raises:
        PrivacyError: an argument is outside its range.

    Source: [grosse2025empirical, Corollary 3], with the radius of Theorem 2 and both cases of Theorem 4.

    Examples:
        >>> round(failure_bound(100, 2, math.log(2), math.log(2.5)), 12) == round(2 * math.exp(-2), 12)
        True
    """
    return weissman_tail(_half_radius(epsilon, target, least), samples, size, kappa)


def true_level_with_confidence(
    samples: int,
    size: int,
    epsilon: float,
    delta: float,
    kappa: float = 0.5,
    least: float | None = None,
) -> float:
    """Compute the level under the true law implied by level epsilon at the estimate, with confidence.

    `eps - log(1 - beta/2 e^eps)` with beta = `weissman_radius(m, N, delta, kappa)`; inf from beta = 2 e^-eps
    on. In the first region, `eps - log(1 - beta/2 (e^eps - 1) / least)`.

    Args:
        samples: m.
        size: N, the number of letters.
        epsilon: the level under the empirical distribution, in nats.
        delta: in (0, 1).
        kappa: in (0, 1/2], at least `weissman_kappa` of the true distribution, where that is known.
        least: at most the least probability of the estimate, where that is known.

    Raises:
        PrivacyError: an argument is outside its range.

    Source: [grosse2025empirical, eq. (8)] and, for the first region, [grosse2025empirical, Theorem 4].

    Examples:
        >>> m = samples_needed(20, math.log(5), math.log(6), 1e-5)
        >>> round(math.exp(true_level_with_confidence(m, 20, math.log(5), 1e-5)), 3)
        6.0
    """
    return level_within_distance(epsilon, weissman_radius(samples, size, delta, kappa), least)


def _half_radius(epsilon: float, target: float, least: float | None) -> float:
    """Compute the half radius within which level epsilon at the center implies level `target`.

    `e^-eps - e^-eps'`, or in the first region `(1 - e^(eps - eps')) / leakage_growth(eps, least)`.
    """
    level = check_nonnegative(epsilon, "epsilon", PrivacyError)
    wanted = check_nonnegative(target, "the target level", PrivacyError)
    min_mass = check_min_mass(least)
    if wanted <= level:
        raise PrivacyError(
            f"the target level {wanted:g} is not above the level {level:g} at the estimate: a sample never "
            "shows the truth exactly"
        )
    room = -math.expm1(level - wanted)
    growth = leakage_growth(level, min_mass)
    if math.isinf(growth):  # past the floats, where its inverse is one
        return math.exp(-level) * room
    return min(1.0, room / growth) if growth > 0 else 1.0
