"""Laplace and geometric noise: levels for letters that are numbers or vectors, scales, and two letters."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from itertools import accumulate, product
from typing import Any, Self

import numpy as np

from pmlopt.core.arrays import FloatArray, check_in_interval, check_nonnegative
from pmlopt.core.roots import bisect
from pmlopt.data.continuous import Continuous
from pmlopt.data.mechanism import Mechanism
from pmlopt.data.prior import PriorLike
from pmlopt.data.sampling.categorical import Seed, make_random_bits
from pmlopt.data.sampling.grid_noise import draw_laplace_noise
from pmlopt.errors import MechanismError, PrivacyError
from pmlopt.measures import failure_probability
from pmlopt.model.closed_forms.local_privacy import level_of_ratio
from pmlopt.model.uncertainty.prior_set import PriorSet
from pmlopt.releases.joint import MAX_PRODUCT_ENTRIES
from pmlopt.releases.noise.additive import AdditiveNoise, Letters, check_epsilon, check_scale
from pmlopt.releases.noise.binary import BinaryNoise
from pmlopt.releases.noise.letters import UNIT, PlacedLetters, bound_distances, check_integers


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
        noise = cls(0.0)
        if isinstance(prior, Continuous):
            widest = sum(high - low for low, high in prior.intervals) * 1.001
        else:
            prior = noise.place_letters(prior, over)
            widest = float(bound_distances(prior.points).max())
        return cls(cls.search_scale(lambda b: cls(b).level(prior, over), widest, epsilon))

    @classmethod
    def search_scale(cls, level: Callable[[float], float], widest: float, epsilon: float) -> float:
        """Search the least scale whose level is at most epsilon; `widest` is the largest distance."""
        limit = check_nonnegative(epsilon, "epsilon", PrivacyError)
        if limit == 0:
            raise PrivacyError(
                "epsilon is 0, and noise of any finite scale leaks something: give a positive one"
            )
        if level(0.0) <= limit:
            return 0.0
        # The largest scale: draws are finite.
        largest_scale = 1e300
        # no outcome leaks more than the largest distance over the scale; rounding may add to it
        high = widest / limit
        while high <= largest_scale and level(high) > limit:
            high *= 1 + 1e-9 if high * (1 + 1e-9) > high else 2
        if high > largest_scale:
            raise PrivacyError(
                f"epsilon is {limit:g}: it takes a scale above {largest_scale:g}: give a larger one"
            )
        return bisect(lambda b: b > 0 and level(b) <= limit, 0.0, high, 1e-14)

    def compute_levels(self, letters: PlacedLetters) -> FloatArray:
        """Bound (N,) from above what an outcome leaks of each letter: the outcome at the letter."""
        distances = letters.bound_distances(self.grid_step)
        return letters.bound_levels(divide_distances(distances, self.scale))

    def _bound_continuous_level(self, law: Continuous, over: PriorSet | None) -> float:
        """Bound the level for a continuous law by that of its bins, and their widths over the scale.

        A bin's centre is at most half the width from each number in it, so that distances move by the width.
        """
        if over is not None:
            raise PrivacyError(
                "a continuous law has no set of priors here: divide it into letters, law.prior(law.even(64))"
            )
        if not self.scale:
            return math.inf
        # bins of the support
        bins = 2**16 if law.axes == 1 else int(2 ** (20 / law.axes))
        masses = law.masses(law.even(bins)).reshape((bins,) * law.axes)
        means, moved = masses / masses.sum(), 0.0
        widths = [high - low for low, high in law.intervals]
        for axis, width in enumerate(widths):
            decay = math.exp(-width / bins / self.scale)
            rows = np.moveaxis(means, axis, 0)
            up, down = (
                np.array(list(accumulate(part, lambda sum_, row, by=decay: sum_ * by + row)))  # type: ignore[misc]
                for part in (rows, rows[::-1])
            )
            means = np.moveaxis(up + down[::-1] - rows, 0, axis)
            moved += 2 * self.bound_log_change(width / bins / 2 + self.grid_step, width)
        # what no value occurs in cannot be leaked
        least = float(means[masses > 0].min())
        # a thousand roundings and more: the sums have as many terms as decay lets through
        rounding = law.axes * bins * UNIT
        return min(moved - math.log(least) + rounding, sum(widths) / self.scale)

    def compute_log_likelihoods(self, outcomes: FloatArray, line: FloatArray) -> FloatArray:
        """Compute (N, K) logarithms of the densities at outcomes, up to a number for each outcome."""
        # past the last letter the ratios are constant, and differences of large numbers lose them
        inside = np.clip(outcomes, line.min(), line.max())
        distances = np.abs(inside - line[:, None])
        return divide_distances(distances - distances.min(axis=0), self.scale) * -1.0

    def compute_density(self, noise: FloatArray) -> FloatArray:
        """Compute the density of the noise, whose scale is positive."""
        return np.asarray(np.exp(-np.abs(noise) / self.scale) / (2 * self.scale))

    def compute_tail(self, noise: FloatArray) -> FloatArray:
        """Compute the probability that the noise is above a number; digits of small ones are kept."""
        half = np.exp(-np.abs(noise) / self.scale) / 2
        return np.asarray(np.where(noise > 0, half, 1 - half))

    @property
    def variance(self) -> float:
        """Return the variance of the noise on one number."""
        return 2 * self.scale**2

    def draw_noise(self, size: int, seed: Seed) -> FloatArray:
        """Draw (size,) independent values of the noise: exact, on the grid."""
        return draw_laplace_noise(self.scale, self.grid_step, size, make_random_bits(seed))

    @property
    def log_ratio_range(self) -> tuple[float, float]:
        """Return half the scale, and 2/b: past the letters the log-ratio is constant."""
        return self.scale / 2, 2 / self.scale

    def bound_log_change(self, moved: float, width: float) -> float:
        """Return the distance over the scale, whatever the outcome is."""
        return moved / self.scale

    def make_edges(self, line: FloatArray) -> FloatArray:
        """Return points between the letters and 750 scales past the last: there the ratios are constant."""
        ends = line.min() - 750 * self.scale, line.max() + 750 * self.scale
        return np.unique(np.append(np.linspace(line.min(), line.max(), 33), ends))

    def reduce_points(self, points: FloatArray) -> FloatArray:
        """Return the coordinates in which letters differ: the l1 norm has no other directions."""
        return points[:, np.ptp(points, axis=0) > 0]


def divide_distances(distances: FloatArray, scale: float) -> FloatArray:
    """Return distances over a scale, rounded up; 0 stays 0, and without noise others are infinite."""
    with np.errstate(over="ignore", divide="ignore", invalid="ignore"):
        found = distances / scale * (1 + UNIT)
    return np.where(distances == 0, 0.0, found)


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

    @property
    def grid_step(self) -> float:
        """Return 1: the noise is whole."""
        return 1.0

    def read_values(self, values: Iterable[Any]) -> FloatArray:
        """Return whole values as points; raise where one is none."""
        points = super().read_values(values)
        check_integers(points, MechanismError)
        return points

    def place_letters(self, prior: Letters, over: PriorSet | None = None) -> PlacedLetters:
        """Return letters at the whole numbers that their labels are; raise where one is none."""
        letters = super().place_letters(prior, over)
        check_integers(letters.points, PrivacyError)
        return letters

    def bound_log_change(self, moved: float, width: float) -> float:
        """Refuse a letter that moves: it would be no whole number."""
        raise PrivacyError(
            "geometric noise is for whole numbers: take Laplace noise, or round first"
        )

    def to_mechanism(self, prior: Letters) -> Mechanism:
        """Return the mechanism on whole numbers, or vectors, outcomes past the last letters collected there.

        It leaks as much of each letter as the noise does: past the last letter all outcomes leak the same.

        Raises:
            PrivacyError: letters are no whole numbers, or too far apart for a matrix.
        """
        letters = self.place_letters(prior)
        lows, highs = letters.points.min(axis=0), letters.points.max(axis=0)
        if float(np.prod(highs - lows + 1)) * len(letters.points) > MAX_PRODUCT_ENTRIES:
            raise PrivacyError(
                f"the letters go from {lows.tolist()} to {highs.tolist()}: a matrix would have more than "
                f"{MAX_PRODUCT_ENTRIES:,} entries; take coarser letters"
            )
        # without noise e^(-1/b) is 0
        ratio = math.exp(-1 / self.scale) if self.scale > 1e-3 else 0.0
        matrix, axes = np.ones((len(letters.points), 1)), []
        for line, low, high in zip(letters.points.T, lows, highs, strict=True):
            outputs = np.arange(low, high + 1)
            axes.append([int(y) for y in outputs])
            inside = np.full(len(outputs), (1 - ratio) / (1 + ratio))
            inside[[0, -1]] = 1 / (1 + ratio) if len(outputs) > 1 else 1.0
            exponents = divide_distances(np.abs(outputs - line[:, None]), self.scale)
            part = np.exp(-exponents) * inside
            matrix = (matrix[:, :, None] * part[:, None]).reshape(len(matrix), -1)
        names = axes[0] if isinstance(letters.prior.labels[0], int) else list(product(*axes))
        return Mechanism(matrix / matrix.sum(axis=1, keepdims=True), letters.prior.labels, names)

    def bound_failure(
        self, letters: PlacedLetters, epsilon: float, enough: float | None = None
    ) -> float:
        """Bound the failure probability: that of the mechanism with a matrix, on the same outcomes."""
        mechanism = self.to_mechanism(letters)
        return failure_probability(letters.prior, mechanism, check_epsilon(epsilon), letters.over)

    @property
    def variance(self) -> float:
        """Return the variance of the noise on one number."""
        return 1 / (2 * math.sinh(min(1 / (2 * self.scale), 300)) ** 2) if self.scale else 0.0

    def compute_tail(self, noise: FloatArray) -> FloatArray:
        """Compute the probability that the noise is above a number, which it is from the next whole on."""
        first = np.floor(noise) + 1
        half = np.exp(-np.abs(np.where(first > 0, first, 1 - first)) / self.scale)
        half /= 1 + math.exp(-1 / self.scale)
        return np.asarray(np.where(first > 0, half, 1 - half))


def laplace_level(scale: float, least: float) -> float:
    """Compute the level of Laplace noise on a binary secret: `eps(b) = 2/b - log(1 - a + a e^{2/b})`, in
    nats.

    Also that of a Laplace histogram whose classes have probability a or more. No more than 2/b, the level
    of local (of a histogram: plain) differential privacy, which it is for a = 0, nor than -log a.

    Args:
        scale: b >= 0; without noise the level is -log a.
        least: a in [0, 1], the least probability.

    Raises:
        PrivacyError: the scale is negative, or a is no probability.

    Source: [grosse2025empirical, Proposition 3]; [saeidian2025histogram, Theorem 4, eq. (3)].

    Examples:
        >>> round(math.exp(laplace_level(2 / math.log(3), 0.5)), 12)
        1.5
    """
    size = check_scale(scale)
    share = check_in_interval(least, "[0, 1]", "the least probability", PrivacyError)
    # 2/b would divide by 0: without noise the outcome reveals the letter, at most -log a
    if size == 0:
        return -math.log(share) if share else math.inf
    return level_of_ratio(share, 2 / size)


def laplace_scale(epsilon: float, least: float) -> float:
    """Compute `b = 2 / log(e^eps (1 - a) / (1 - a e^eps))`, the inverse of `laplace_level`; 0 from -log a on.

    At 0 no noise is needed: nothing can leak more than -log a.

    Args:
        epsilon: the level in nats, above 0.
        least: a in [0, 1], the least probability.

    Raises:
        PrivacyError: epsilon is not positive (no finite noise leaks nothing) or too small for a float to
            be the scale, or a is no probability.

    Source: [grosse2025empirical, Proposition 3], solved for b.

    Examples:
        >>> round(2 / laplace_scale(math.log(1.5), 0.5), 12) == round(math.log(3), 12)
        True
        >>> laplace_scale(math.log(2), 0.5)
        0.0
    """
    share = check_in_interval(least, "[0, 1]", "the least probability", PrivacyError)
    return Laplace.search_scale(lambda b: laplace_level(b, share), 2.0, epsilon)


class BinaryLaplace(BinaryNoise):
    """Y = X + L, L Laplace with density `exp(-|t|/b) / (2 b)`, X = -1 or 1.

    Args:
        prior: of X, two letters.
        scale: b; 0 for no noise.
        radius: the level is for every prior within this l1 distance.
        over: the level is for every prior of this set, instead of the radius.

    Source: [grosse2025empirical, Section VI-A].

    Examples:
        >>> noise = BinaryLaplace.calibrate([0.5, 0.5], epsilon=math.log(1.5))
        >>> round(2 / noise.scale, 12) == round(math.log(3), 12), round(math.exp(noise.level), 12)
        (True, 1.5)
        >>> round(math.exp(noise.leakage(7.0)[0]), 12)  # every outcome past 1 leaks as much
        1.5
    """

    kind = Laplace

    @classmethod
    def calibrate(
        cls, prior: PriorLike, *, epsilon: float, radius: float = 0.0, over: PriorSet | None = None
    ) -> Self:
        """Calibrate the scale to a PML level: `laplace_scale` at the least probability over the set.

        Raises:
            PrivacyError: epsilon is not positive, or the set is none; see `BinaryNoise`.

        Source: [grosse2025empirical, eq. (16)]; with the radius 2 it is LDP (Remark 4 has this at 1, for
        p = 1/2).
        """
        least = cls(prior, 0.0, radius, over).min_mass
        return cls(prior, laplace_scale(epsilon, least), radius, over)

    @property
    def level(self) -> float:
        """Return the PML level for every prior of the set."""
        return laplace_level(self.scale, self.min_mass)

    def failure_probability(self, epsilon: float) -> float:
        """Compute the largest P(l(Y) > epsilon) over the set, as for all noise; 0 from the level on."""
        return 0.0 if check_epsilon(epsilon) >= self.level else super().failure_probability(epsilon)

    @property
    def ldp_level(self) -> float:
        """Return the local-DP level 2/b, valid for every prior."""
        return 2 / self.scale if self.scale else math.inf
