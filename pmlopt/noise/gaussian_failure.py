"""How likely binary Gaussian noise leaks more than epsilon: tails, and bounds on them over many priors."""

from __future__ import annotations

import math
from dataclasses import dataclass
from decimal import Decimal

import numpy as np

from pmlopt.arrays import FloatArray
from pmlopt.noise.leakage_tails import Failure, Letters

FALLS_TO = 0.025
"""Below this sigma no float tells the noise from none: of a Gaussian nothing is 40 sigma out."""

_TOP = 1 / math.sqrt(2 * math.pi)


@dataclass(frozen=True)
class GaussianFailure(Failure):
    """`F = P(l(Y) > eps)` for Y = X + G, G Gaussian with standard deviation sigma, the scale.

    A sum over both letters. With `a = 1/sigma - sigma t/2`, `T(p) = p N(a) + (1 - p) N(a - 2/sigma)`, N the
    normal law; its derivatives have closed forms (with `c = 1 - p`, `d = 1 - E`, n the normal density):

        T'  = N(a) - N(a - 2/sigma) - sigma/2 E d / (c (E - p)) n(a)
        T'' = -sigma/2 d / (c (E - p))^2 n(a) H,  H = d (E - p) + E (2 c - d (1 + sigma^2 t/2) / 2)

    and of sigma, `dT/dsigma = n(a) ((E - 2 p) / sigma^2 - E t/2)`. In p, t grows and H falls.

    Source: [grosse2025empirical, eq. (17)]; the derivatives by hand.
    """

    def falls_from(self, least: float) -> float:
        """The sigma from which on F falls in sigma, for every prior with no letter rarer than this.

        Of a letter of probability p, `T(p)` falls past `sqrt(2 (E - 2 p) / (E t))`, which falls in p.
        """
        down = self.down[0]
        rise = down - 2 * least
        if rise <= 0 or down == 0:
            return 0.0
        threshold = float(self.letters(np.array([least]), np.array([1 - least])).threshold[0])
        return math.sqrt(2 * (rise / down) / threshold)

    def tails(self, threshold: Decimal) -> tuple[float, float]:
        from scipy.special import ndtr

        start = self.scale * (float(threshold) / 2)
        return float(ndtr(1 / self.scale - start)), float(ndtr(-1 / self.scale - start))

    def cells(self, left: FloatArray, middle: FloatArray, right: FloatArray) -> tuple[FloatArray, FloatArray]:
        """F in the middle of cells; over each at most what the ends of the tails allow, which are monotone in
        p, and at most a parabola at its middle. Near a smooth top the latter is off by the cube of the width.
        """
        one = [self.letters(p, 1 - p) for p in (left, middle, right)]
        two = [self.letters(1 - p, p) for p in (right, middle, left)]
        values = self._tails(one[1], one[1].mass) + self._tails(two[1], two[1].mass)
        ends = self._tails(one[0], one[2].mass) + self._tails(two[0], two[2].mass)
        half = np.maximum(right - middle, middle - left)
        with np.errstate(all="ignore"):  # where a derivative is no float, the first bound is the answer
            slope = np.abs(self._slope(one[1]) - self._slope(two[1]))
            bend = self._bend(one[0], one[2]) + self._bend(two[0], two[2])
            inside = slope < -bend * half  # the top of the parabola is in the cell
            rise = np.where(inside, slope**2 / (-2 * bend), slope * half + bend * half**2 / 2)
        return values, np.asarray(np.fmin(ends, values + np.maximum(rise, 0.0)))

    def _tails(self, at: Letters, mass: FloatArray) -> FloatArray:
        """The tails past the thresholds of `at`, weighed with another mass, of at most e^-eps."""
        near, far = self._near_and_far(at)
        weight = np.minimum(mass, self.down[0])
        return np.where(at.possible, far + weight * (near - far), 0.0)

    def _near_and_far(self, at: Letters) -> tuple[FloatArray, FloatArray]:
        """How likely the noise is past the threshold, given the letter and given the other."""
        from scipy.special import ndtr

        with np.errstate(over="ignore", under="ignore"):
            unit, start = 1 / self.scale, self.scale * (at.threshold / 2)
            return ndtr(unit - start), ndtr(-unit - start)

    def _bell(self, at: Letters) -> tuple[FloatArray, FloatArray]:
        """The argument a of the nearer tail, and the normal density there."""
        a = 1 / self.scale - self.scale * (at.threshold / 2)
        return a, _TOP * np.exp(-(a**2) / 2)

    def _slope(self, at: Letters) -> FloatArray:
        """The derivative T' in p; 0 where nothing leaks so much."""
        moved = self.scale / 2 * self.down[0] * (self.lost[0] / at.other) / at.rest * self._bell(at)[1]
        near, far = self._near_and_far(at)
        return np.where(at.possible, near - far - moved, 0.0)

    def _bend(self, least: Letters, most: Letters) -> FloatArray:
        """The most T'' can be between; inf where T has a kink."""
        down, lost, sigma = self.down[0], self.lost[0], self.scale
        (start, low), (end, high) = self._bell(least), self._bell(most)
        sign = lost * most.rest + down * (2 * most.other - lost * (1 + sigma**2 * (most.threshold / 2)) / 2)
        top = np.where((end <= 0) & (start >= 0), _TOP, np.maximum(low, high))
        near, far = (sigma / 2 * lost / (at.other * at.rest) ** 2 for at in (least, most))
        bend = -np.where(sign >= 0, near * np.minimum(low, high), far * top) * sign
        return np.where(most.possible, bend, np.where(least.possible, np.inf, 0.0))
