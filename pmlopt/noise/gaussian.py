"""Gaussian noise on a binary secret: how likely an outcome leaks more than epsilon, over an l1 ball too."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from pmlopt.arrays import FloatArray, float_array, nonnegative, probability, real
from pmlopt.errors import PrivacyError
from pmlopt.noise.binary import BinaryNoise, check_noise
from pmlopt.noise.failure import FALLS_TO, Failure
from pmlopt.prior import PriorLike
from pmlopt.uncertainty.sensitivity import level_bound

_WIDEST = 1e150  # sigma^2 is a float

_STEP = 1.02


@dataclass(frozen=True)
class Promise:
    """An outcome leaks more than epsilon nats with probability delta at most: (epsilon, delta)-PML in EMP.

    A probability, not the slack of `ApproximatePML`.
    """

    epsilon: float
    delta: float


class BinaryGaussian(BinaryNoise):
    """Y = X + G, G Gaussian with standard deviation sigma = `scale`, X = -1 or 1.

    No level holds for every outcome (far out the leakage tends to -log p), so it comes with a probability.

    Args:
        prior: of X, two letters.
        scale: sigma; 0 for no noise.
        radius: probabilities are for every prior within this l1 distance.

    Source: EMP, Section VI-B.

    Examples:
        >>> noise = BinaryGaussian([0.5, 0.5], 1.5)
        >>> 0 < noise.failure_probability(0.5) < noise.failure_probability(0.4) < 1
        True
        >>> noise.failure_probability(math.log(2))  # nothing can leak more
        0.0
    """

    @classmethod
    def calibrate(
        cls, prior: PriorLike, *, epsilon: float, delta: float, radius: float = 0.0
    ) -> BinaryGaussian:
        """The least noise from which on the failure probability is delta at most, for every larger sigma too.

        From `plocal_scale` on it is delta at most, and down to a sigma in closed form
        (`Failure.falls_from`) it is monotone: bisection finds the start. Below that it may rise again where
        a letter is rare, so if it is delta at most down to there, sigmas are tried further down, each 2 %
        below the last, until one fails. No noise is the answer only if none does, nor 0 itself.

        Args:
            prior: two letters.
            epsilon: in nats, above 0.
            delta: in (0, 1): an outcome may leak more than epsilon with this probability.
            radius: of the l1 ball.

        Raises:
            PrivacyError: an argument is outside its range, or epsilon so small that sigma^2 is no float.
        """
        level, share = _positive(epsilon), probability(delta)
        silent = cls(prior, 0.0, radius)

        def fails(scale: float) -> bool:
            return cls(silent.prior, scale, radius)._failure(level, share) > share

        high = plocal_scale(level, share)
        while high <= _WIDEST and fails(high):  # by rounding
            high *= 2
        if high > _WIDEST:
            raise PrivacyError(
                f"epsilon is {level:g}: no sigma up to {_WIDEST:g} is enough: give a larger one"
            )
        monotone = Failure(level, high).falls_from(silent.least)
        low, ratio = (min(high, monotone), _STEP) if monotone > FALLS_TO else (min(high, 1.0), 2.0)
        while not fails(low):
            high, low = low, low / ratio
            if high < FALLS_TO:
                return cls(prior, high, radius) if fails(0.0) else silent
        while high - low > 1e-12 * high:
            middle = (low + high) / 2
            low, high = (middle, high) if fails(middle) else (low, middle)
        return cls(prior, high, radius)

    def failure_probability(self, epsilon: float) -> float:
        """The largest P(l(Y) > epsilon) over the ball: EMP's delta_1, from above by 1e-11 at most.

        With `P(X = 1) = p`: on the right an outcome leaks more than epsilon iff `e^-eps > p` and
        `y > (sigma^2 / 2) log((1 - p) / (e^-eps - p))`; on the left p and 1 - p change places. Both
        probabilities are Gaussian tails. The supremum is over p in an interval, by branch and bound.

        Raises:
            PrivacyError: epsilon is negative.

        Source: EMP, eq. (17).
        """
        return self._failure(nonnegative(epsilon, "epsilon", PrivacyError))

    def promise(self, epsilon: float, delta: float) -> Promise:
        """What holds when the ball has the true prior but for delta: (epsilon, d1 + delta - d1 delta).

        Whenever the truth is in the ball, an outcome leaks more than epsilon under it with probability
        `d1 = failure_probability(epsilon)` at most, because d1 is a supremum over the ball; and it is
        outside with probability delta at most. No bound on how leakage grows within the ball is needed.

        Args:
            epsilon: in nats.
            delta: of the ball, such as that of `weissman_radius`.

        Raises:
            PrivacyError: an argument is outside its range.
        """
        first, second = self.failure_probability(epsilon), probability(delta)
        return Promise(float(epsilon), first + second - first * second)

    def published_promise(self, epsilon: float, delta: float) -> Promise:
        """The pair as published: epsilon grows to `eps - log(1 - radius/2 e^eps)` on top; looser.

        Theorem 4 bounds how much more a mechanism leaks elsewhere in a ball than at its centre; but d1 is
        taken over the ball already, so `promise` holds without it. inf where the radius is too large.

        Source: EMP, Section VI-B (epsilon* and delta*).
        """
        sharp = self.promise(epsilon, delta)
        return Promise(level_bound(epsilon, self.radius), sharp.delta)

    def density(self, outcomes: ArrayLike) -> FloatArray:
        check_noise(self.scale, "density")
        y = float_array(np.atleast_1d(outcomes), 1, "the outcomes", PrivacyError)
        unit = self.scale * math.sqrt(2 * math.pi)
        return np.stack([np.exp(-(((y - x) / self.scale) ** 2) / 2) / unit for x in (-1.0, 1.0)])

    def log_ratio(self, outcomes: FloatArray) -> FloatArray:
        check_noise(self.scale, "density")
        with np.errstate(over="ignore"):  # inf is what it is then
            return np.asarray(2 * outcomes / self.scale / self.scale)

    def draw(self, rng: np.random.Generator, size: int) -> FloatArray:
        return rng.normal(scale=self.scale, size=size) if self.scale else np.zeros(size)

    def _failure(self, level: float, enough: float | None = None) -> float:
        """The same; with `enough`, only so well that it is on the right side of that."""
        failure = Failure(level, self.scale)
        if self.radius or level == 0 or self.scale == 0:
            return failure.largest(*self.interval, enough)
        first, second = self.prior.pmf[:1], self.prior.pmf[1:]
        return min(1.0, float(failure.total(second, first)[0]))


def plocal_scale(epsilon: float, delta: float) -> float:
    """The sigma of Gaussian noise on a binary secret in {-1, 1} for probabilistic local DP.

    `sqrt(2) (f + sqrt(f^2 + eps)) / eps` with `f = erfcinv(delta)`: the log-ratio of the densities is above
    epsilon with probability delta at most.

    Args:
        epsilon: in nats, above 0.
        delta: in (0, 1).

    Raises:
        PrivacyError: an argument is outside its range.

    Source: EMP, Section VI-C.2 (Zhao et al., arXiv:1911.12060, Theorem 8, with sensitivity 2).

    Examples:
        >>> round(plocal_failure(1.0, plocal_scale(1.0, 0.01)), 12)
        0.01
    """
    from scipy.special import erfcinv

    level, share = _positive(epsilon), probability(delta)
    f = float(erfcinv(share))
    root = math.sqrt(f * f + level)
    return math.sqrt(2) * (f + root) / level


def plocal_failure(epsilon: float, scale: float) -> float:
    """The delta of `plocal_scale` for a sigma: `erfc((a^2 - eps) / (2 a))` with `a = sigma eps / sqrt 2`.

    Raises:
        PrivacyError: an argument is not positive.
    """
    level, size = real(epsilon, "epsilon", PrivacyError), real(scale, "the scale", PrivacyError)
    if level <= 0 or size <= 0:
        raise PrivacyError(f"epsilon is {level:g} and the scale {size:g}: give positive ones")
    # (a^2 - eps) / (2 a), where neither a^2 nor eps may overflow
    return min(1.0, math.erfc((size * level / 2 - 1 / size) / math.sqrt(2)))


def _positive(epsilon: float) -> float:
    level = real(epsilon, "epsilon", PrivacyError)
    if level <= 0:
        raise PrivacyError(f"epsilon is {level:g}: give a positive one")
    return level
