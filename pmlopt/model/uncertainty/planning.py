"""Planning of samples: what m observations can promise, before there is a mechanism.

A mechanism of level epsilon under the empirical distribution of m samples has a level of at most epsilon'
under the true one, except with probability delta over the sample. Each of the three follows from the others.
With the samples in hand, `PML(epsilon, over=confidence_ball(prior, delta))` promises more for the same.

What is known beforehand sharpens all three: kappa, at least `weissman_kappa` of the true distribution,
shrinks the radius; and `least`, which the least probability of the estimate is not below, makes leakage
grow less with the radius where epsilon is in the first privacy region of such an estimate.
"""

from __future__ import annotations

import math
import sys

from pmlopt.core.arrays import nonnegative, probability
from pmlopt.errors import PrivacyError
from pmlopt.model.uncertainty.confidence import chance_beyond, fewest_samples, weissman_radius
from pmlopt.model.uncertainty.sensitivity import leakage_growth, least_mass, level_within_distance


def samples_needed(
    size: int, epsilon: float, target: float, delta: float, kappa: float = 0.5, least: float | None = None
) -> int:
    """The least m for which level epsilon at the estimate is level `target` in truth, but for delta.

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
    most = max(probability(delta), sys.float_info.min)
    return fewest_samples(
        _half_radius(epsilon, target, least), size, delta, kappa,
        lambda samples: failure_bound(samples, size, epsilon, target, kappa, least) <= most,
        f"no sample tells the levels {epsilon:g} and {target:g} apart: give levels that differ more",
    )  # fmt: skip


def failure_bound(
    samples: int,
    size: int,
    epsilon: float,
    target: float,
    kappa: float = 0.5,
    least: float | None = None,
) -> float:
    """The probability over the sample that level epsilon at the estimate is not level `target` in truth.

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
    return chance_beyond(_half_radius(epsilon, target, least), samples, size, kappa)


def true_level_with_confidence(
    samples: int,
    size: int,
    epsilon: float,
    delta: float,
    kappa: float = 0.5,
    least: float | None = None,
) -> float:
    """The level eps' in truth of a mechanism with level epsilon at the estimate, but for delta, in nats.

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
    """Half the radius within which level eps at the centre is level eps' at most; 1 where that is all priors.

    `e^-eps - e^-eps'`, or in the first region `(1 - e^(eps - eps')) / leakage_growth(eps, least)`.
    """
    level = nonnegative(epsilon, "epsilon", PrivacyError)
    wanted = nonnegative(target, "the target level", PrivacyError)
    share = least_mass(least)
    if wanted <= level:
        raise PrivacyError(
            f"the target level {wanted:g} is not above the level {level:g} at the estimate: a sample never "
            "shows the truth exactly"
        )
    room = -math.expm1(level - wanted)
    growth = leakage_growth(level, share)
    if math.isinf(growth):  # past the floats, where its inverse is one
        return math.exp(-level) * room
    return min(1.0, room / growth) if growth > 0 else 1.0
