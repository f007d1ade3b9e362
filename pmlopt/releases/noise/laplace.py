"""Laplace noise on a binary secret: level and scale in closed form, for one prior or a set of them."""

from __future__ import annotations

import math
from dataclasses import dataclass
from decimal import Decimal
from functools import cached_property

import numpy as np

from pmlopt.core.arrays import FloatArray, check_in_interval, check_nonnegative
from pmlopt.core.roots import find_min_holding
from pmlopt.data.prior import PriorLike
from pmlopt.data.sampling.categorical import RandomBits
from pmlopt.data.sampling.grid_noise import draw_laplace_noise
from pmlopt.errors import PrivacyError
from pmlopt.model.closed_forms.local_privacy import level_of_ratio, ratio_for_level
from pmlopt.model.uncertainty.prior_set import PriorSet
from pmlopt.releases.noise.binary import BinaryNoise, check_scale
from pmlopt.releases.noise.leakage_tails import Cells, FailureFunction, LetterPair, choose_precision


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
        """p*, rounded up: from there on no outcome on the letter's side leaks more than epsilon."""
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
        """(K,) cells on which F is concave: it may jump at p* and at 1 - p*."""
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
        """Where the tangents at the ends of a cell cross."""
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
        """Compute T at a probability, continued up to e^-eps; NaN past it, 0 where the least one adds
        nothing.
        """
        stretch = np.exp(at.threshold / 2 - 1 / self.scale) / 2
        value = at.mass - (2 * at.mass - self.exp_neg_epsilon_parts[0]) * stretch
        return np.where(self.may_leak(least), np.where(at.possible, value, np.nan), 0.0)

    def _slope(self, at: LetterPair, least: LetterPair) -> FloatArray:
        """Compute the derivative T' in p, continued and cut off as `_extended_tail` is."""
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

    @classmethod
    def calibrate(
        cls, prior: PriorLike, *, epsilon: float, radius: float = 0.0, over: PriorSet | None = None
    ) -> BinaryLaplace:
        """Calibrate the scale to a PML level: the least noise that achieves it for every prior of the set.

        Args:
            prior: two letters.
            epsilon: in nats; from -log of the least probability on, the scale is 0: no noise is needed.
            radius: of an l1 ball of priors, such as `weissman_radius(samples, 2, delta)`.
            over: a set of priors, instead of the radius.

        Raises:
            PrivacyError: epsilon is not positive, or the set is none; see `BinaryNoise`.

        Source: [grosse2025empirical, eq. (16)]; with the radius 2 it is LDP (Remark 4 has this at 1, for
        p = 1/2).
        """
        return cls(
            prior, laplace_scale(epsilon, cls(prior, 0.0, radius, over).min_mass), radius, over
        )

    @property
    def level(self) -> float:
        """Return the PML level for every prior of the set: `laplace_level` at the least probability."""
        return laplace_level(self.scale, self.min_mass)

    def make_failure(self, epsilon: float) -> LaplaceFailure:
        """F of Laplace noise.

        With `P(X = 1) = p` an outcome on the right leaks more than epsilon iff `y > b t / 2` and `t < 2/b`,
        `t = log((1 - p) / (e^-eps - p))`; on the left p and 1 - p change places.
        """
        return LaplaceFailure(epsilon, self.scale)

    def failure_probability(self, epsilon: float) -> float:
        """Compute the largest P(l(Y) > epsilon) over the set, as for all noise; 0 from the level on."""
        return 0.0 if check_nonnegative(epsilon, "epsilon", PrivacyError) >= self.level else (
            super().failure_probability(epsilon)
        )  # fmt: skip

    @property
    def ldp_level(self) -> float:
        """Return the level for every prior, that is of local differential privacy: 2/b."""
        return 2 / self.scale if self.scale else math.inf

    def noise_density(self, noise: FloatArray) -> FloatArray:
        """Compute the density of the noise."""
        return np.asarray(np.exp(-np.abs(noise) / self.scale) / (2 * self.scale))

    def compute_log_ratio(self, outcomes: FloatArray) -> FloatArray:
        """Compute the log-ratio of the two conditional densities; inf beyond the float range."""
        return np.asarray(2 * np.clip(outcomes, -1.0, 1.0) / self.scale)

    def draw_noise(self, bits: RandomBits, size: int) -> FloatArray:
        """Draw (size,) independent noise values exactly, on a grid."""
        return draw_laplace_noise(self.scale, self.grid_step, size, bits)
