"""How likely binary Laplace noise leaks more than epsilon: tails, and bounds on them over many priors."""

from __future__ import annotations

import math
from dataclasses import dataclass
from decimal import Decimal
from functools import cached_property

import numpy as np

from pmlopt.arrays import BoolArray, FloatArray
from pmlopt.noise.leakage_tails import Failure, Letters, precision


@dataclass(frozen=True)
class LaplaceFailure(Failure):
    """`F = P(l(Y) > eps)` for Y = X + L, L Laplace of scale b.

    A sum over both letters. The log-ratio `2 clip(y, -1, 1) / b` is 2/b at most, so a letter of probability p
    adds to it iff `t < 2/b`, that is `p < p* = (E - h) / (1 - h)` with `h = e^(-2/b)`; and then

        T(p)  = p (1 - e^(t/2 - 1/b) / 2) + (1 - p) e^(-t/2 - 1/b) / 2 = p - c (2 p - E) s
        T'(p) = 1 - c s (2 + (2 p - E) (1 - E) / (2 (1 - p) (E - p)))

    with `c = e^(-1/b) / 2` and `s = e^(t/2) = sqrt((1 - p) / (E - p))`. T is concave below E: the second
    derivative has the sign of `2 p (1 + E) + E^2 - 5 E`, which is below `-3 E (1 - E)`.
    """

    @cached_property
    def limit(self) -> float:
        """p*, rounded up: from there on no outcome on the letter's side leaks more than epsilon."""
        drop = math.exp(-2 / self.scale)
        limit = self.down[0] * -math.expm1(self.epsilon - 2 / self.scale) / -math.expm1(-2 / self.scale)
        return limit * (1 + 1e-14) + 5e-324 if drop < self.down[0] else 0.0

    def edges(self, low: float, high: float) -> FloatArray:
        """(K,) cells on which F is concave: it may jump at p* and at 1 - p*."""
        found = [*super().edges(low, high), self.limit, 1 - self.limit]
        return np.unique(np.clip(found, low, high)) if low < high else np.array([low, high])

    def tails(self, threshold: Decimal) -> tuple[float, float]:
        if precision(self.epsilon).multiply(threshold, Decimal(self.scale)) >= 2:
            return 0.0, 0.0
        half, unit = float(threshold) / 2, 1 / self.scale
        return 1 - math.exp(min(0.0, half - unit)) / 2, math.exp(-half - unit) / 2

    def cells(self, left: FloatArray, middle: FloatArray, right: FloatArray) -> tuple[FloatArray, FloatArray]:
        """F in the middle of cells; over each at most where the tangents at its ends cross, and at most what
        the ends of the tails allow, which are monotone in p.
        """
        one = [self.letters(p, 1 - p) for p in (left, middle, right)]
        two = [self.letters(1 - p, p) for p in (right, middle, left)]
        values = self._tails(one[1], one[1].mass) + self._tails(two[1], two[1].mass)
        ends = self._tails(one[0], one[2].mass) + self._tails(two[0], two[2].mass)
        with np.errstate(all="ignore"):  # where a derivative is no float, the ends are the answer
            at_left = self._formula(one[0], one[0]) + self._formula(two[2], two[0])
            at_right = self._formula(one[2], one[0]) + self._formula(two[0], two[0])
            up = self._slope(one[0], one[0]) - self._slope(two[2], two[0])
            down = self._slope(one[2], one[0]) - self._slope(two[0], two[0])
            width = right - left
            cross = (at_right - at_left - down * width) / (up - down)
            crossed = at_left + up * np.clip(cross, 0.0, width)
            tangents = np.where(up <= 0, at_left, np.where(down >= 0, at_right, crossed))
        useful = np.isfinite(tangents) & (width > 0)
        return values, np.asarray(np.where(useful, np.minimum(ends, tangents), ends))

    def _tails(self, at: Letters, mass: FloatArray) -> FloatArray:
        """The tails past the thresholds of `at`, weighed with another mass, of at most p*."""
        with np.errstate(over="ignore", under="ignore"):
            near = 1 - np.exp(np.minimum(at.threshold / 2 - 1 / self.scale, 0.0)) / 2
            far = np.exp(-at.threshold / 2 - 1 / self.scale) / 2
        weight = np.minimum(mass, self.limit)
        return np.where(self._adds(at), far + weight * (near - far), 0.0)

    def _adds(self, at: Letters) -> BoolArray:
        """Whether an outcome on the letter's side can leak more than epsilon."""
        return np.asarray(at.possible & (at.mass <= self.limit))

    def _formula(self, at: Letters, least: Letters) -> FloatArray:
        """T at a probability, continued up to e^-eps; NaN past it, 0 where the least one adds nothing."""
        stretch = np.exp(at.threshold / 2 - 1 / self.scale) / 2
        value = at.mass - (2 * at.mass - self.down[0]) * stretch
        return np.where(self._adds(least), np.where(at.possible, value, np.nan), 0.0)

    def _slope(self, at: Letters, least: Letters) -> FloatArray:
        """The derivative T' in p, continued and cut off as `_formula` is."""
        stretch = np.exp(at.threshold / 2 - 1 / self.scale) / 2
        inner = (2 * at.mass - self.down[0]) * self.lost[0] / (2 * at.other * at.rest)
        slope = 1 - stretch * (2 + inner)
        return np.where(self._adds(least), np.where(at.possible, slope, np.nan), 0.0)
