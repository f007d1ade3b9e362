"""Gaussian noise: how likely an outcome leaks more than epsilon, and the scale for a probability."""

from __future__ import annotations

import math
from typing import Self

import numpy as np

from pmlopt.core.arrays import FloatArray, check_positive, check_probability
from pmlopt.core.lazy_imports import linalg, special
from pmlopt.core.roots import bisect
from pmlopt.errors import PrivacyError
from pmlopt.model.uncertainty.prior_set import PriorSet
from pmlopt.releases.noise.additive import AdditiveNoise, Letters
from pmlopt.releases.noise.letters import bound_distances


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

    power = 2

    @classmethod
    def calibrate(
        cls, prior: Letters, epsilon: float, delta: float, over: PriorSet | None = None
    ) -> Self:
        """Calibrate sigma: its failure probability is delta at most, and just below it is not.

        The first is certain: the bound on the failure probability was computed at the sigma that is returned
        (in the plane up to the error of an integral). That it is the least is not proved, nor that larger
        ones hold: the failure probability is not monotone in sigma, since without noise only rare letters
        fail, and with some more outcomes do. Sigmas are tried from a large one down, each 2 % below the last
        (25 % in the plane, where each takes a second), until one fails; no noise is the answer only if none
        does, nor 0 itself. A failure between two sigmas that were tried may be missed, and sigmas below the
        answer may do again.

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

    def compute_tail(self, noise: FloatArray) -> FloatArray:
        """Compute the probability that the noise is above a number; digits of small ones are kept."""
        return np.asarray(special.ndtr(-noise / self.scale))

    def reduce_points(self, points: FloatArray) -> FloatArray:
        """Return coordinates in the span of the differences: the law is the same in all directions."""
        moved = points - points[0]
        if points.shape[1] > 1:
            _, sizes, directions = linalg.svd(moved, full_matrices=False)
            moved = moved @ directions[sizes > 1e-14 * sizes[0]].T
        return super().reduce_points(moved)


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
