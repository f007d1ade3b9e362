"""Laplace and geometric noise: levels for letters that are numbers or vectors, scales, and two letters."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from decimal import Decimal
from functools import cached_property
from itertools import accumulate
from typing import Any, Self

import numpy as np

from pmlopt.core.arrays import FloatArray, check_in_interval, check_nonnegative
from pmlopt.core.roots import bisect, find_min_holding
from pmlopt.data.continuous import Continuous
from pmlopt.data.mechanism import Mechanism
from pmlopt.data.prior import PriorLike
from pmlopt.data.sampling.categorical import RandomBits
from pmlopt.data.sampling.grid_noise import draw_laplace_noise
from pmlopt.errors import MechanismError, PrivacyError
from pmlopt.measures import failure_probability
from pmlopt.model.closed_forms.local_privacy import level_of_ratio, ratio_for_level
from pmlopt.model.uncertainty.prior_set import PriorSet
from pmlopt.releases.joint import MAX_PRODUCT_ENTRIES
from pmlopt.releases.noise.additive import ONE_NUMBER, AdditiveNoise, check_epsilon, check_scale
from pmlopt.releases.noise.binary import BinaryNoise
from pmlopt.releases.noise.leakage_tails import Cells, FailureFunction, LetterPair, choose_precision
from pmlopt.releases.noise.letters import UNIT, PlacedLetters, check_integers


class Laplace(AdditiveNoise):
    """Laplace noise of scale b: `Y = x + Z`, the density of Z proportional to `e^(-||z||_1 / b)`.

    The level is `max_i -log m(v_i)`, m the least mean over the set of priors (or the mean under one), and v_i
    the column of `e^(-||x_i - x_j|| / b)`; the outcome x_i attains it.

    Examples:
        >>> from pmlopt import Prior
        >>> ages = Prior([0.5, 0.3, 0.2], [20, 40, 60])
        >>> noise = Laplace.calibrate(ages, 0.5)
        >>> round(noise.scale, 3), round(noise.level(ages), 9)
        (54.316, 0.5)
        >>> noise.sample([20, 60, 40], seed=1).round(1).tolist()
        [0.0]
    """

    @classmethod
    def calibrate(
        cls, prior: PriorLike | Continuous, epsilon: float, over: PriorSet | None = None
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
        if isinstance(prior, Continuous):
            width = sum(high - low for low, high in prior.intervals)
            return cls(
                cls.search_scale(lambda b: cls(b).level(prior, over), width * 1.001, epsilon)
            )
        return cls.calibrate_letters(cls(0.0).place_letters(prior, over), epsilon)

    @classmethod
    def calibrate_letters(cls, letters: PlacedLetters, epsilon: float) -> Self:
        """Calibrate the scale to a level of letters at points."""
        widest = float(letters.bound_distances(2.0**-1074).max())
        return cls(
            cls.search_scale(lambda b: float(cls(b).compute_levels(letters).max()), widest, epsilon)
        )

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
        """Bound the level for a continuous law by that of its bins, and their width over the scale.

        A bin's centre is at most half the width from each number in it, so that distances move by the width.
        """
        if over is not None or law.axes > 1:
            raise PrivacyError(
                "a continuous law is one number here, and has no set of priors: divide it into letters, "
                "law.prior(law.even(64)), or add noise to each of several independent numbers"
            )
        if not self.scale:
            return math.inf
        # Bins of the support: their width over the scale is added to the level.
        bins = 2**16
        masses = law.masses(law.even(bins))
        ((low, high),) = law.intervals
        width = (high - low) / bins
        decay = math.exp(-width / self.scale)
        passed = [
            np.array(list(accumulate(part.tolist(), lambda sum_, mass: sum_ * decay + mass)))
            for part in (masses, masses[::-1])
        ]
        means = (passed[0] + passed[1][::-1] - masses) / masses.sum()
        # what no value occurs in cannot be leaked
        least = float(means[masses > 0].min())
        moved = (width + 2 * self.grid_step) / self.scale
        # a thousand roundings and more: the sums have as many terms as decay lets through
        return min(moved - math.log(least) + bins * UNIT, (high - low) / self.scale)

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

    def draw_noise(self, bits: RandomBits, size: int) -> FloatArray:
        """Draw (size,) independent values of the noise: exact, on the grid."""
        return draw_laplace_noise(self.scale, self.grid_step, size, bits)

    def make_failure(self, epsilon: float, scale: float) -> LaplaceFailure:
        """Return P(l(Y) > epsilon) as a function of the prior, of two letters at -1 and 1."""
        return LaplaceFailure(epsilon, scale)

    def make_edges(self, line: FloatArray) -> FloatArray:
        """Return the letters and points between them: past the last letter the ratios are constant."""
        return np.unique(np.append(np.linspace(line.min(), line.max(), 65), line))


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

    def place_letters(self, prior: PriorLike, over: PriorSet | None = None) -> PlacedLetters:
        """Return letters at the whole numbers that their labels are; raise where one is none."""
        letters = super().place_letters(prior, over)
        check_integers(letters.points, PrivacyError)
        return letters

    def _bound_continuous_level(self, law: Continuous, over: PriorSet | None) -> float:
        """Refuse a continuous law."""
        raise PrivacyError(
            "geometric noise is for whole numbers: take Laplace noise, or round first"
        )

    def to_mechanism(self, prior: PriorLike) -> Mechanism:
        """Return the mechanism on whole numbers, outcomes past the last letters collected there.

        It leaks as much of each letter as the noise does: past the last letter all outcomes leak the same.

        Raises:
            PrivacyError: letters are no whole numbers, or too far apart for a matrix.
        """
        letters = self.place_letters(prior)
        return self._make_mechanism(letters)

    def _make_mechanism(self, letters: PlacedLetters) -> Mechanism:
        """Return the mechanism for letters on a line."""
        assert letters.line is not None
        line = letters.line
        low, high = float(line.min()), float(line.max())
        if (high - low + 1) * len(line) > MAX_PRODUCT_ENTRIES:
            raise PrivacyError(
                f"the letters go from {low:g} to {high:g}: a matrix would have more than "
                f"{MAX_PRODUCT_ENTRIES:,} entries; take coarser letters"
            )
        outputs = np.arange(low, high + 1)
        exponents = divide_distances(np.abs(outputs - line[:, None]), self.scale)
        # without noise e^(-1/b) is 0
        ratio = math.exp(-1 / self.scale) if self.scale > 1e-3 else 0.0
        inside = np.full(len(outputs), (1 - ratio) / (1 + ratio))
        inside[[0, -1]] = 1 / (1 + ratio) if len(outputs) > 1 else 1.0
        matrix = np.exp(-exponents) * inside
        names = [int(y) for y in outputs]
        return Mechanism(matrix / matrix.sum(axis=1, keepdims=True), letters.prior.labels, names)

    def bound_failure(
        self, letters: PlacedLetters, epsilon: float, enough: float | None = None
    ) -> float:
        """Bound the failure probability: that of the mechanism with a matrix, on the same outcomes."""
        level = check_epsilon(epsilon)
        if letters.line is None:
            raise PrivacyError(ONE_NUMBER)
        return failure_probability(
            letters.prior, self._make_mechanism(letters), level, letters.over
        )

    @property
    def variance(self) -> float:
        """Return the variance of the noise on one number."""
        return 1 / (2 * math.sinh(min(1 / (2 * self.scale), 300)) ** 2) if self.scale else 0.0

    def compute_density(self, noise: FloatArray) -> FloatArray:
        """Compute the probabilities of whole numbers."""
        return np.asarray(np.exp(-np.abs(noise) / self.scale) * math.tanh(1 / (2 * self.scale)))


@dataclass(frozen=True)
class LaplaceFailure(FailureFunction):
    """The failure probability `F = P(l(Y) > eps)` for Y = X + L, L Laplace of scale b.

    A sum over both letters. The log-ratio `2 clip(y, -1, 1) / b` is 2/b at most, so a letter of probability p
    adds to it iff `t < 2/b`, that is `p < p* = (E - h) / (1 - h)` with `h = e^(-2/b)`; and then

        T(p)  = p (1 - e^(t/2 - 1/b) / 2) + (1 - p) e^(-t/2 - 1/b) / 2 = p - c (2 p - E) s
        T'(p) = 1 - c s (2 + (2 p - E) (1 - E) / (2 (1 - p) (E - p)))

    with `c = e^(-1/b) / 2` and `s = e^(t/2) = sqrt((1 - p) / (E - p))`. T is concave below E: the second
    derivative has the sign of `2 p (1 + E) + E^2 - 5 E`, which is below `-3 E (1 - E)`.
    """

    @cached_property
    def max_leaking_mass(self) -> float:
        """Return p*, rounded up: above it a letter's outcomes cannot leak more than epsilon."""
        drop = math.exp(-2 / self.scale)
        # expm1: for large scales both exponents are near 0, where 1 - e^x cancels
        limit = (
            self.exp_neg_epsilon_parts[0]
            * -math.expm1(self.epsilon - 2 / self.scale)
            / -math.expm1(-2 / self.scale)
        )
        # rounded up, where F is larger; the least positive float, for a limit that underflowed
        return limit * (1 + 1e-14) + 5e-324 if drop < self.exp_neg_epsilon_parts[0] else 0.0

    def cell_edges(self, low: float, high: float) -> FloatArray:
        """Return the (K,) edges of intervals on which F is concave; F may jump at p* and 1 - p*."""
        found = [*super().cell_edges(low, high), self.max_leaking_mass, 1 - self.max_leaking_mass]
        return np.unique(np.clip(found, low, high)) if low < high else np.array([low, high])

    def noise_tails(self, threshold: Decimal) -> tuple[float, float]:
        # past the largest log-ratio 2/b no outcome leaks more, and F jumps to 0: compared in decimals
        """Compute the conditional probabilities that the noise passes a threshold, given either letter."""
        if choose_precision(self.epsilon).multiply(threshold, Decimal(self.scale)) >= 2:
            return 0.0, 0.0
        # the decimals decide on which side of the jump t is; the tails are smooth, and floats do
        half, unit = float(threshold) / 2, 1 / self.scale
        return 1 - math.exp(min(0.0, half - unit)) / 2, math.exp(-half - unit) / 2

    def letter_tails(self, at: LetterPair) -> tuple[FloatArray, FloatArray]:
        """Compute the conditional tail probabilities past the letters' thresholds, in floats."""
        near = 1 - np.exp(np.minimum(at.threshold / 2 - 1 / self.scale, 0.0)) / 2
        return near, np.exp(-at.threshold / 2 - 1 / self.scale) / 2

    def bound_on_cells(
        self, one: Cells, two: Cells, half: FloatArray, values: FloatArray
    ) -> FloatArray:
        """Bound F on cells by the intersection of its tangents at the ends."""
        at_left = self._extended_tail(one[0], one[0]) + self._extended_tail(two[2], two[0])
        at_right = self._extended_tail(one[2], one[0]) + self._extended_tail(two[0], two[0])
        up = self._slope(one[0], one[0]) - self._slope(two[2], two[0])
        down = self._slope(one[2], one[0]) - self._slope(two[0], two[0])
        width = one[2].mass - one[0].mass
        # a concave function is below both tangents, so their crossing bounds its maximum
        cross = (at_right - at_left - down * width) / (up - down)
        crossed = at_left + up * np.clip(cross, 0.0, width)
        # concavity: a tangent that falls from the left (or rises
        # to the right) has its maximum at that end
        tangents = np.where(up <= 0, at_left, np.where(down >= 0, at_right, crossed))
        # NaN: parallel tangents or an empty cell give no bound here
        return np.where(np.isfinite(tangents) & (width > 0), tangents, np.nan)

    def _extended_tail(self, at: LetterPair, least: LetterPair) -> FloatArray:
        """Compute the tail term T at a probability, continued smoothly up to e^-eps; NaN beyond."""
        stretch = np.exp(at.threshold / 2 - 1 / self.scale) / 2
        value = at.mass - (2 * at.mass - self.exp_neg_epsilon_parts[0]) * stretch
        return np.where(self.may_leak(least), np.where(at.possible, value, np.nan), 0.0)

    def _slope(self, at: LetterPair, least: LetterPair) -> FloatArray:
        """Compute the derivative T' in p of the continued tail term."""
        stretch = np.exp(at.threshold / 2 - 1 / self.scale) / 2
        inner = (
            (2 * at.mass - self.exp_neg_epsilon_parts[0])
            * self.complement_parts[0]
            / (2 * at.other * at.rest)
        )
        slope = 1 - stretch * (2 + inner)
        return np.where(self.may_leak(least), np.where(at.possible, slope, np.nan), 0.0)


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
    size, share = (
        check_scale(scale),
        check_in_interval(least, "[0, 1]", "the least probability", PrivacyError),
    )
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
    # The largest scale: draws are finite.
    largest_scale = 1e300
    level = check_nonnegative(epsilon, "epsilon", PrivacyError)
    share = check_in_interval(least, "[0, 1]", "the least probability", PrivacyError)
    # refused here: the closed form would divide by 0
    if level == 0:
        raise PrivacyError(
            "epsilon is 0, and noise of any finite scale leaks something: give a positive one"
        )
    scale = 2 / ratio_for_level(share, level)
    # an infinite scale would draw infinite noise, whose outcome is no number
    if scale > largest_scale:
        raise PrivacyError(
            f"epsilon is {level:g}: it takes a scale above {largest_scale:g}: give a larger one"
        )
    # the closed form is rounded: the level is checked at the scale that is returned
    return (
        find_min_holding(lambda size: laplace_level(size, share) <= level, scale)
        if scale
        else scale
    )


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
