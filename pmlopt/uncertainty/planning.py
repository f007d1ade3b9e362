"""Planning of samples: what m observations can promise, before there is a mechanism.

A mechanism of level epsilon under the empirical distribution of m samples has a level of at most epsilon'
under the true one, except with probability delta over the sample. Each of the three follows from the others.
With the samples in hand, `PML(epsilon, over=confidence_ball(prior, delta))` promises more for the same.
"""

from __future__ import annotations

import math
import sys

from pmlopt.arrays import nonnegative, probability, whole
from pmlopt.errors import PrivacyError
from pmlopt.uncertainty.confidence import log_events, weissman_radius
from pmlopt.uncertainty.sensitivity import level_bound


def samples_needed(size: int, epsilon: float, target: float, delta: float) -> int:
    """The least m for which level epsilon at the estimate is level `target` in truth, but for delta.

    The least m with `failure_bound(m, ...) <= delta`, that is
    `m >= (log(2^N - 2) - log delta) / (2 (e^-eps - e^-eps')^2)`.

    Args:
        size: N, the number of letters.
        epsilon: the level under the empirical distribution, in nats.
        target: the level eps' > eps under the true one, in nats.
        delta: in (0, 1).

    Raises:
        PrivacyError: an argument is outside its range.

    Source: EMP, Corollary 3, solved for m.

    Examples:
        >>> samples_needed(20, math.log(5), math.log(6), 1e-5)
        11420
    """
    width = _width(epsilon, target)
    letters = whole(size, "the size of the alphabet", PrivacyError)
    share = probability(delta)
    terms = max(0.0, log_events(letters) - math.log(share))
    needed = terms / 2 / width / width if width > 0 else math.inf
    if not math.isfinite(needed):
        raise PrivacyError(
            f"no sample tells the levels {epsilon:g} and {target:g} apart: give levels that differ more"
        )
    samples = max(1, math.ceil(needed))
    while failure_bound(samples, letters, epsilon, target) > max(share, sys.float_info.min):
        samples += max(1, samples >> 50)  # rounding is a few units in the last place
    return samples


def failure_bound(samples: int, size: int, epsilon: float, target: float) -> float:
    """The probability over the sample that level epsilon at the estimate is not level `target` in truth.

    At most `(2^N - 2) exp(-2 m (e^-eps - e^-eps')^2)`, and at most one. For more than one letter it is at
    least the smallest normal float, 2.2e-308.

    Args:
        samples: m.
        size: N, the number of letters.
        epsilon: the level under the empirical distribution, in nats.
        target: the level eps' > eps under the true one, in nats.

    Raises:
        PrivacyError: an argument is outside its range.

    Source: EMP, Corollary 3.

    Examples:
        >>> round(failure_bound(100, 2, math.log(2), math.log(2.5)), 12) == round(2 * math.exp(-2), 12)
        True
    """
    draws = whole(samples, "the number of samples", PrivacyError)
    letters = whole(size, "the size of the alphabet", PrivacyError)
    width = _width(epsilon, target)
    if letters == 1:
        return 0.0
    exponent = log_events(letters) - 2 * (float(draws) * width * width)
    return max(sys.float_info.min, math.exp(min(0.0, exponent)))


def level_with_confidence(samples: int, size: int, epsilon: float, delta: float) -> float:
    """The level eps' in truth of a mechanism with level epsilon at the estimate, but for delta, in nats.

    `eps - log(1 - beta/2 e^eps)` with beta = `weissman_radius(m, N, delta)`; inf from beta = 2 e^-eps on.

    Args:
        samples: m.
        size: N, the number of letters.
        epsilon: the level under the empirical distribution, in nats.
        delta: in (0, 1).

    Raises:
        PrivacyError: an argument is outside its range.

    Source: EMP, eq. (8).

    Examples:
        >>> m = samples_needed(20, math.log(5), math.log(6), 1e-5)
        >>> round(math.exp(level_with_confidence(m, 20, math.log(5), 1e-5)), 3)
        6.0
    """
    return level_bound(epsilon, weissman_radius(samples, size, delta))


def _width(epsilon: float, target: float) -> float:
    """e^-eps - e^-eps', half the radius that takes the one level to the other."""
    level = nonnegative(epsilon, "epsilon", PrivacyError)
    wanted = nonnegative(target, "the target level", PrivacyError)
    if wanted <= level:
        raise PrivacyError(
            f"the target level {wanted:g} is not above the level {level:g} at the estimate: a sample never "
            "shows the truth exactly"
        )
    return math.exp(-level) * -math.expm1(level - wanted)
