"""Gaussian noise: how likely an outcome leaks more than epsilon, and the scale for a probability."""

from __future__ import annotations

import math
from typing import Self

import numpy as np

from pmlopt.core.arrays import FloatArray, check_positive, check_probability
from pmlopt.core.lazy_imports import linalg, special
from pmlopt.core.roots import bisect
from pmlopt.data.prior import PriorLike
from pmlopt.data.sampling.categorical import Seed, make_random_bits
from pmlopt.data.sampling.grid_noise import draw_gaussian_noise
from pmlopt.errors import PrivacyError
from pmlopt.model.uncertainty.l1_ball import L1Ball
from pmlopt.model.uncertainty.prior_set import PriorSet
from pmlopt.model.uncertainty.sensitivity import level_within_distance
from pmlopt.releases.noise.additive import AdditiveNoise, Letters, Promise
from pmlopt.releases.noise.binary import BinaryNoise
from pmlopt.releases.noise.letters import PlacedLetters, bound_distances


class Gaussian(AdditiveNoise):
    """Gaussian noise with standard deviation sigma, its `scale`, independent on each number of a vector.

    Far out the leakage of the last letters tends to -log of their probability: the level is that of no noise,
    and noise is calibrated to a probability with which an outcome may leak more than epsilon.

    Examples:
        >>> from pmlopt import Prior
        >>> ages = Prior([0.5, 0.3, 0.2], [20, 40, 60])
        >>> noise = Gaussian.calibrate(ages, 0.5, 0.01)
        >>> round(noise.scale, 1), round(noise.failure_probability(ages, 0.5), 9)
        (105.3, 0.01)
    """

    @classmethod
    def calibrate(
        cls, prior: Letters, epsilon: float, delta: float, over: PriorSet | None = None
    ) -> Self:
        """Calibrate sigma: down to it the failure probability is delta at most, and just below it is not.

        The failure probability is not monotone in sigma: without noise only rare letters fail, and with some
        more outcomes do. Sigmas are tried from a large one down, each 2 % below the last (25 % in the plane,
        where each takes a second), until one fails; no noise is the answer only if none does, nor 0 itself.
        A failure between two sigmas that were tried may be missed, and sigmas below the answer may do again.

        Args:
            prior: letters that are numbers, or vectors that span a plane.
            epsilon: in nats, above 0.
            delta: in (0, 1): an outcome may leak more than epsilon with this probability.
            over: a set of priors on the same letters.

        Raises:
            PrivacyError: an argument is outside its range, or epsilon so small that sigma^2 is no float.
        """
        # the largest sigma: its square is a float
        largest_sigma = 1e150
        level, share = check_positive(epsilon, "epsilon", PrivacyError), check_probability(delta)
        letters = cls(0.0).place_letters(prior, over)
        distances = bound_distances(letters.points)
        widest = float(distances.max()) or 1.0

        def is_private(sigma: float) -> bool:
            return cls(sigma).bound_failure(letters, level, share) <= share

        # enough for two letters, but for rounding; more may need more
        high = plocal_scale(level, share) * (widest / 2)
        while high <= largest_sigma and not is_private(high):
            high *= 2
        if high > largest_sigma:
            raise PrivacyError(
                f"epsilon is {level:g}: no sigma up to {largest_sigma:g} is enough: give a larger one"
            )
        ratio = 1.02 if cls(0.0).reduce_points(letters.points).shape[1] < 2 else 1.25
        # below it no float reveals the noise from none: of a Gaussian nothing is 40 sigma out
        lowest = 0.0125 * float(distances[distances > 0].min(initial=widest))
        low = high / ratio
        while is_private(low):
            high, low = low, low / ratio
            if high < lowest:
                return cls(0.0 if is_private(0.0) else high)
        return cls(bisect(is_private, low, high, 1e-12))

    def compute_levels(self, letters: PlacedLetters) -> FloatArray:
        """Bound (N,) from above what an outcome leaks of each letter: -log of its least probability."""
        apart = np.where(np.eye(len(letters.points)) > 0, 0.0, np.inf)
        return letters.bound_levels(apart)

    def compute_log_likelihoods(self, outcomes: FloatArray, line: FloatArray) -> FloatArray:
        """Compute (N, K) logarithms of the densities at outcomes, up to a number for each outcome."""
        away = outcomes - line[:, None]
        nearest = np.abs(away).argmin(axis=0)
        least = away[nearest, np.arange(len(outcomes))]
        # a difference of squares as a product: squares of large numbers would lose it
        with np.errstate(over="ignore"):
            apart = (line[nearest] - line[:, None]) * ((away + least) / 2)
            return np.asarray(-apart / self.scale / self.scale)

    def compute_density(self, noise: FloatArray) -> FloatArray:
        """Compute the density of the noise, whose scale is positive."""
        return np.asarray(
            np.exp(-((noise / self.scale) ** 2) / 2) / (self.scale * math.sqrt(2 * math.pi))
        )

    def compute_tail(self, noise: FloatArray) -> FloatArray:
        """Compute the probability that the noise is above a number; digits of small ones are kept."""
        return np.asarray(special.ndtr(-noise / self.scale))

    @property
    def variance(self) -> float:
        """Return the variance of the noise on one number."""
        return self.scale**2

    def draw_noise(self, size: int, seed: Seed) -> FloatArray:
        """Draw (size,) independent values of the noise: exact, on the grid."""
        return draw_gaussian_noise(self.scale, self.grid_step, size, make_random_bits(seed))

    @property
    def log_ratio_range(self) -> tuple[float, float]:
        """Return half the variance, and inf: the log-ratio of two letters has no largest value."""
        return self.variance / 2, math.inf

    def bound_log_change(self, moved: float, width: float) -> float:
        """Bound the change of the logarithm of a density, for outcomes up to 9 deviations off the letters."""
        return moved * ((width + moved) / self.scale + 9) / self.scale

    def make_edges(self, line: FloatArray) -> FloatArray:
        """Return points up to 40 deviations past the last letters, where no float is the tail."""
        return np.linspace(line.min() - 40 * self.scale, line.max() + 40 * self.scale, 33)

    def reduce_points(self, points: FloatArray) -> FloatArray:
        """Return coordinates in the span of the differences: the law is the same in all directions."""
        moved = points - points[0]
        if points.shape[1] > 1:
            _, sizes, directions = linalg.svd(moved, full_matrices=False)
            moved = moved @ directions[sizes > 1e-14 * sizes[0]].T
        return np.asarray(moved[:, np.ptp(moved, axis=0) > 0])


class BinaryGaussian(BinaryNoise):
    """Y = X + G, G Gaussian with standard deviation sigma = `scale`, X = -1 or 1.

    No level holds for every outcome (far out the leakage tends to -log p), so it comes with a probability.

    Args:
        prior: of X, two letters.
        scale: sigma; 0 for no noise.
        radius: probabilities are for every prior within this l1 distance.
        over: probabilities are for every prior of this set, instead of the radius.

    Source: [grosse2025empirical, Section VI-B].

    Examples:
        >>> noise = BinaryGaussian([0.5, 0.5], 1.5)
        >>> 0 < noise.failure_probability(0.5) < noise.failure_probability(0.4) < 1
        True
        >>> noise.failure_probability(0.7)  # nothing can leak more than log 2 = 0.693...
        0.0
    """

    kind = Gaussian

    @classmethod
    def calibrate(
        cls,
        prior: PriorLike,
        *,
        epsilon: float,
        delta: float,
        radius: float = 0.0,
        over: PriorSet | None = None,
    ) -> Self:
        """Calibrate sigma to a failure probability: the least from which on it is delta at most."""
        noise = Gaussian.calibrate(cls(prior, 0.0, radius, over).letters, epsilon, delta)
        return cls(prior, noise.scale, radius, over)

    def published_promise(self, epsilon: float, delta: float | None = None) -> Promise:
        """Return the guarantee as published, over an l1 ball.

        Theorem 4 bounds how much more a mechanism leaks elsewhere in a ball than at its centre; but d1 is
        taken over the ball already, so `promise` holds without it. inf where the radius is too large.

        Raises:
            PrivacyError: the set is no l1 ball; and as for `promise`.

        Source: [grosse2025empirical, Section VI-B] (epsilon* and delta*).
        """
        sharp = self.promise(epsilon, delta)
        if not isinstance(self.over, L1Ball):
            raise PrivacyError(
                f"the published pair is about an l1 ball, and the set is {self.over!r}"
            )
        return Promise(level_within_distance(epsilon, self.over.radius), sharp.delta)


def plocal_scale(epsilon: float, delta: float) -> float:
    """Compute the sigma of Gaussian noise on a binary secret in {-1, 1} for probabilistic local DP.

    `sqrt(2) (f + sqrt(f^2 + eps)) / eps` with `f = erfcinv(delta)`: the log-ratio of the densities is above
    epsilon with probability delta at most.

    Args:
        epsilon: in nats, above 0.
        delta: in (0, 1).

    Raises:
        PrivacyError: an argument is outside its range.

    Source: [grosse2025empirical, Section VI-C.2] (Zhao et al., arXiv:1911.12060, Theorem 8, sensitivity 2).

    Examples:
        >>> round(plocal_failure(1.0, plocal_scale(1.0, 0.01)), 12)
        0.01
    """
    level, share = check_positive(epsilon, "epsilon", PrivacyError), check_probability(delta)
    f = float(special.erfcinv(share))
    root = math.sqrt(f * f + level)
    return math.sqrt(2) * (f + root) / level


def plocal_failure(epsilon: float, scale: float) -> float:
    """Compute the delta of `plocal_scale` for a sigma: `erfc((a^2 - eps) / (2 a))` with `a = sigma eps / sqrt
    2`.

    Raises:
        PrivacyError: an argument is not positive.
    """
    level = check_positive(epsilon, "epsilon", PrivacyError)
    size = check_positive(scale, "the scale", PrivacyError)
    # (a^2 - eps) / (2 a), where neither a^2 nor eps may overflow
    return min(1.0, math.erfc((size * level / 2 - 1 / size) / math.sqrt(2)))
