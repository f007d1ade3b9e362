"""Laplace, geometric and Gaussian noise: scales for levels and for failure probabilities."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Self

import numpy as np

from pmlopt.core.lazy_imports import linalg, special
from pmlopt.core.numbers.arrays import FloatArray, check_positive, check_probability
from pmlopt.core.numbers.roots import bisect
from pmlopt.data.continuous import Continuous
from pmlopt.data.mechanism import Mechanism
from pmlopt.errors import PrivacyError
from pmlopt.measures import failure_probability
from pmlopt.model.uncertainty.prior_set import PriorSet
from pmlopt.releases.accounts.joint import MAX_PRODUCT_ENTRIES
from pmlopt.releases.noise.additive import AdditiveNoise, Letters
from pmlopt.releases.noise.gaussian_levels import bound_line_levels
from pmlopt.releases.noise.letters import PlacedLetters, bound_distances, round_to_grid


def search_scale(
    holds: Callable[[float], bool], start: float, width: float, ratio: float, lowest: float
) -> float:
    """Search a scale at which a condition holds, and just below which it does not; 0 if that is none.

    Scales are tried from the start on upward, and from there on downward until one fails, since the condition
    may hold again further down; then it bisects. The condition was checked at the scale that is returned.

    Args:
        holds: whether a scale is enough.
        start: the first scale.
        width: relative, by how much a scale at which it does not hold is lower at most.
        ratio: of a scale and the next lower one that is tried; where it is infinite, that is 0.
        lowest: a scale below which none is tried but 0.

    Raises:
        PrivacyError: no scale up to 1e150, whose square is a float, is enough.
    """
    high = start
    while high <= 1e150 and not holds(high):
        high *= 2
    if high > 1e150:
        raise PrivacyError(
            "epsilon is so small that no scale up to 1e150 is enough: give a larger one"
        )
    low = high / ratio
    while holds(low):
        high = low
        low = low / ratio
        if high <= lowest:
            return 0.0 if holds(0.0) else high
    return bisect(holds, low, high, width)


def search_scale_for_level(level: Callable[[float], float], epsilon: float) -> float:
    """Search the least scale whose level, which falls with the scale, is at most epsilon."""
    limit = check_positive(epsilon, "epsilon", PrivacyError)
    # enough for a distance of 1: for others the search steps up, or bisects
    return search_scale(lambda scale: level(scale) <= limit, 1 / limit, 1e-14, math.inf, 0.0)


class Laplace(AdditiveNoise):
    """Laplace noise of scale b: `Y = x + Z`, the density of Z proportional to `e^(-||z||_1 / b)`.

    The level is `max_i -log m(v_i)`, m the least mean over the set of priors (or the mean under one), and v_i
    the column of `e^(-||x_i - x_j|| / b)`; the outcome x_i attains it.

    Examples:
        >>> from pmlopt import Prior
        >>> ages = Prior([0.5, 0.3, 0.2], [20, 40, 60])
        >>> noise = Laplace.calibrate(ages, 0.5)
        >>> round(noise.scale, 3), round(noise.level(ages), 9)
        (46.476, 0.5)
        >>> noise.sample([20, 60, 40], seed=1).round(1).tolist()
        [52.8, 69.2, 121.7]
    """

    power = 1

    @classmethod
    def calibrate(
        cls, prior: Letters | Continuous, epsilon: float, over: PriorSet | None = None
    ) -> Self:
        """Calibrate the scale to a PML level: the least that keeps it, or 0 where no noise is needed.

        The level that is returned with the scale is at most epsilon; a continuous law takes a scale that is
        larger by at most the width of its bins over epsilon.

        Args:
            prior: letters that are numbers or tuples of numbers, or a continuous law.
            epsilon: in nats, above 0.
            over: a set of priors on the same letters.

        Raises:
            PrivacyError: epsilon is not positive, or so small that no float is the scale.
        """
        return cls(search_scale_for_level(lambda b: cls(b).level(prior, over), epsilon))

    def compute_tail(self, noise: FloatArray) -> FloatArray:
        """Compute the probability that the noise is above a number; digits of small ones are kept."""
        half = np.exp(-np.abs(noise) / self.scale) / 2
        return np.where(noise > 0, half, 1 - half)


class Geometric(Laplace):
    """Two-sided geometric noise on whole numbers: `P(Z = z)` proportional to `e^(-|z| / b)`.

    Its level is that of Laplace noise of the same scale. Draws are whole numbers; and outcomes past the
    least and the largest letter reveal what those there do, so that it is a mechanism with a matrix, too.

    Examples:
        >>> from pmlopt import Prior
        >>> counts = Prior([0.5, 0.3, 0.2], [0, 1, 2])
        >>> noise = Geometric.calibrate(counts, 0.5)
        >>> noise.to_mechanism(counts).outputs
        (0, 1, 2)
    """

    no_matrix = "take noise.to_mechanism(prior), which has the outcomes between the letters"

    is_whole = True

    def to_mechanism(self, prior: Letters) -> Mechanism:
        """Return the mechanism on whole numbers, or vectors, outcomes past the last letters collected there.

        It leaks as much of each letter as the noise does: past the last letter all outcomes leak the same.

        Raises:
            PrivacyError: letters are no whole numbers, or too far apart for a matrix.
        """
        letters = self.place_letters(prior)
        lows = letters.points.min(axis=0)
        highs = letters.points.max(axis=0)
        shape = highs - lows + 1
        if float(np.prod(shape)) * len(letters.points) > MAX_PRODUCT_ENTRIES:
            raise PrivacyError(
                f"the letters go from {lows.tolist()} to {highs.tolist()}: a matrix would have more than "
                f"{MAX_PRODUCT_ENTRIES:,} entries; take coarser letters"
            )
        grid = np.indices(shape.astype(int)).reshape(len(shape), -1).T + lows
        distances = np.abs(grid - letters.points[:, None]).sum(axis=2)
        # what is past an end is collected there: all from it on, 1 / (1 - e^(-1/b)) times its own part
        own_part = -math.expm1(-1 / self.scale) if self.scale > 1e-3 else 1.0
        inner = ((grid > lows) & (grid < highs)).sum(axis=1)
        matrix = np.exp(-self.bound_log_ratios(distances)) * own_part**inner
        is_number = isinstance(letters.prior.labels[0], int)
        names = [one[0] if is_number else tuple(one) for one in grid.astype(int).tolist()]
        return Mechanism(matrix / matrix.sum(axis=1, keepdims=True), letters.prior.labels, names)

    def bound_failure(
        self, letters: PlacedLetters, epsilon: float, enough: float = math.nan
    ) -> float:
        """Bound the failure probability: that of the mechanism with a matrix, on the same outcomes."""
        mechanism = self.to_mechanism(letters)
        return failure_probability(letters.prior, mechanism, epsilon, letters.over)

    @property
    def variance(self) -> float:
        """Return the variance of the noise on one number."""
        return 1 / (2 * math.sinh(min(1 / (2 * self.scale), 300)) ** 2) if self.scale else 0.0

    def compute_tail(self, noise: FloatArray) -> FloatArray:
        """Compute the probability that the noise is above a number, which it is from the next whole on."""
        first = np.floor(noise) + 1
        half = np.exp(-np.maximum(first, 1 - first) / self.scale)
        half /= 1 + math.exp(-1 / self.scale)
        return np.asarray(np.where(first > 0, half, 1 - half))


class Gaussian(AdditiveNoise):
    """Gaussian noise with standard deviation sigma, its `scale`, independent on each number of a vector.

    Of numbers the level is the maximum leakage, by at most 1e-12 too much but for rounding. That of the least
    and the largest letter is -log of their probability, however large sigma is; that of another letter is
    `max_y log f(y | x) / f(y)`, attained where the mean given y is x. For a smaller epsilon noise is
    calibrated to a probability with which an outcome may leak more. Of vectors that differ in several numbers
    the level is a bound, that of no noise.

    Examples:
        >>> from pmlopt import Prior
        >>> rare_between = Prior([0.4, 0.2, 0.4], [20, 40, 60])
        >>> {age: round(level, 3) for age, level in Gaussian(20.0).letter_levels(rare_between).items()}
        {20: 0.916, 40: 0.378, 60: 0.916}
        >>> ages = Prior([0.5, 0.3, 0.2], [20, 40, 60])
        >>> noise = Gaussian.calibrate(ages, 0.5, 0.01)
        >>> round(noise.scale, 1), round(noise.failure_probability(ages, 0.5), 9)
        (105.3, 0.01)
    """

    power = 2

    def compute_levels(self, letters: PlacedLetters) -> FloatArray:
        """Bound (N,) from above what an outcome leaks of each letter: with a maximum of it on a line."""
        levels = self.bound_levels(letters)
        differing = letters.points[:, np.ptp(letters.points, axis=0) > 0]
        if not self.scale or differing.shape[1] != 1:
            return levels
        lines = np.unique([differing[:, 0], round_to_grid(differing[:, 0], self.grid_step)], axis=0)
        found = [bound_line_levels(letters, one, self.scale, levels) for one in lines]
        return np.asarray(np.max(found, axis=0))

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
        letters = cls(0.0).place_letters(prior, over)
        distances = bound_distances(letters.points)
        widest = float(distances.max()) or 1.0
        # enough for two letters, but for rounding; more may need more
        start = plocal_scale(epsilon, delta) * (widest / 2)
        ratio = 1.02 if cls(0.0).reduce_points(letters.points).shape[1] < 2 else 1.25
        # below it no float reveals the noise from none: of a Gaussian nothing is 40 sigma out
        lowest = 0.0125 * float(distances[distances > 0].min(initial=widest))
        holds = lambda sigma: cls(sigma).bound_failure(letters, epsilon, delta) <= delta  # noqa: E731
        return cls(search_scale(holds, start, 1e-12, ratio, lowest))

    def bound_failure(
        self, letters: PlacedLetters, epsilon: float, enough: float = math.nan
    ) -> float:
        """Bound the failure probability from above; from the level on it is 0."""
        found = super().bound_failure(letters, epsilon, enough)
        # from the level on what is left is rounding, which may be far above none: a level has a flat top
        is_asked = math.isnan(enough) and found > 0
        return 0.0 if is_asked and epsilon >= self.compute_levels(letters).max() else found

    def compute_tail(self, noise: FloatArray) -> FloatArray:
        """Compute the probability that the noise is above a number; digits of small ones are kept."""
        return np.asarray(special.ndtr(-noise / self.scale))

    def reduce_points(self, points: FloatArray) -> FloatArray:
        """Return coordinates in the span of the differences: the law is the same in all directions."""
        moved = points - points[0]
        _, sizes, directions = linalg.svd(moved, full_matrices=False)
        return np.asarray(moved @ directions[sizes > 1e-14 * sizes[0]].T)


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
    level = check_positive(epsilon, "epsilon", PrivacyError)
    share = check_probability(delta)
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
