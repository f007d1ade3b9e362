"""How likely binary Gaussian noise leaks more than epsilon: for one prior, and at most over many."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from pmlopt.arrays import BoolArray, FloatArray

SHARP = 1e-11
"""How far above the worst prior's probability the value that is reported may be."""

FALLS_TO = 0.025
"""Below this sigma no float tells the noise from none: of a Gaussian nothing is 40 sigma out."""

_CELLS = 1_000_000
_DEPTH = 64
_TOP = 1 / math.sqrt(2 * math.pi)


@dataclass(frozen=True)
class Points:
    """One letter at several probabilities p, the other at 1 - p.

    Attributes:
        possible: (n,) whether an outcome can leak more than epsilon of the letter: `p < e^-eps`.
        mass: (n,) p.
        other: (n,) 1 - p.
        rest: (n,) `e^-eps - p`; 1 where that is not positive.
        reach: (n,) `t = log((1 - p) / (e^-eps - p))`: those outcomes begin at `sigma^2 t / 2`; 0 there.
        near: (n,) how likely they are given the letter.
        far: (n,) and given the other.
    """

    possible: BoolArray
    mass: FloatArray
    other: FloatArray
    rest: FloatArray
    reach: FloatArray
    near: FloatArray
    far: FloatArray

    @property
    def chance(self) -> FloatArray:
        """(n,) P(an outcome is on the letter's side and leaks more than epsilon)."""
        return np.where(self.possible, self.far + self.mass * (self.near - self.far), 0.0)


@dataclass(frozen=True)
class Failure:
    """`F = P(l(Y) > eps)` for Y = X + G, G Gaussian, as a function of P(X = 1).

    A sum over both letters. With p the letter's probability, `E = e^-eps` and t as in `Points`,
    `T(p) = p N(a) + (1 - p) N(a - 2/sigma)` where `a = 1/sigma - sigma t/2` and N is the normal law; its
    derivatives have closed forms (with `c = 1 - p`, `d = 1 - E`, n the normal density):

        T'  = N(a) - N(a - 2/sigma) - sigma/2 E d / (c (E - p)) n(a)
        T'' = -sigma/2 d / (c (E - p))^2 n(a) H,  H = d (E - p) + E (2 c - d (1 + sigma^2 t/2) / 2)

    and of sigma, `dT/dsigma = n(a) ((E - 2 p) / sigma^2 - E t/2)`. In p, t grows and H falls.

    Args:
        epsilon: in nats, above 0.
        sigma: of the noise, at least 0.

    Source: EMP, eq. (17); the derivatives by hand.
    """

    epsilon: float
    sigma: float

    def at(self, mass: FloatArray, other: FloatArray) -> Points:
        """A letter of the probabilities p, with 1 - p given too: it may have digits that p has not."""
        from scipy.special import ndtr

        down, lost = math.exp(-self.epsilon), -math.expm1(-self.epsilon)
        with np.errstate(divide="ignore", invalid="ignore", over="ignore", under="ignore"):
            most = np.where(mass <= 0.5, -np.log(mass), -np.log1p(-other))
            rest = other - lost if self.epsilon < math.log(2) else down - mass
            possible = (self.epsilon < most) & (rest > 0)
            share = np.where(possible, lost / other, 0.0)
            rest = np.where(possible, rest, 1.0)
            reach = np.where(share < 0.5, -np.log1p(-share), np.log(other) - np.log(rest))
            start = self.sigma * (reach / 2)  # over sigma
            unit = np.divide(1.0, self.sigma)
        return Points(possible, mass, other, rest, reach, ndtr(unit - start), ndtr(-unit - start))

    def total(self, second: FloatArray, first: FloatArray) -> FloatArray:
        """F where X = 1 and X = -1 have these probabilities."""
        return np.asarray(self.at(second, first).chance + self.at(first, second).chance)

    def largest(self, low: float, high: float, enough: float | None = None) -> float:
        """The supremum of F over `low <= P(X = 1) <= high`, from above by 1e-11 at most.

        By branch and bound: on a cell F is at most what the ends of the tails allow, which are monotone in
        p, and at most a parabola at its middle. Near a smooth top the latter is off by the cube of the width.

        Args:
            low: least P(X = 1).
            high: the largest.
            enough: stop as soon as it is clear whether the answer is above that.
        """
        if self.epsilon == 0:
            return 1.0
        if self.sigma == 0:
            return self._without_noise(low, high)
        edges = np.linspace(low, high, 65)
        best = float(self.total(edges, 1 - edges).max())
        left, right = edges[:-1], edges[1:]
        bounds, settled = np.ones(len(left)), best
        for _ in range(_DEPTH):
            middle = (left + right) / 2
            values, over = self._cells(left, middle, right)
            bounds, best = np.minimum(bounds, over), max(best, float(values.max()))
            open_ = bounds > best + SHARP
            settled = max(settled, best, float(bounds[~open_].max(initial=0.0)))
            last = float(bounds[open_].max(initial=0.0))
            if not open_.any() or (enough is not None and (best > enough or max(settled, last) <= enough)):
                break
            left, middle, right = left[open_], middle[open_], right[open_]
            left, right = np.concatenate([left, middle]), np.concatenate([middle, right])
            bounds = np.tile(bounds[open_], 2)
            if len(left) > _CELLS:
                break
        return min(1.0, max(settled, last))

    def falls_from(self, least: float) -> float:
        """The sigma from which on F falls in sigma, for every prior with no letter rarer than this.

        Of a letter of probability p, `T(p)` falls past `sqrt(2 (E - 2 p) / (E t))`, which falls in p.
        """
        down = math.exp(-self.epsilon)
        rise = down - 2 * least
        if rise <= 0 or down == 0:
            return 0.0
        reach = float(self.at(np.array([least]), np.array([1 - least])).reach[0])
        return math.sqrt(2 * (rise / down) / reach)

    def _without_noise(self, low: float, high: float) -> float:
        """Of Y = X: the largest sum of the masses below `e^-eps`."""
        down = math.exp(-self.epsilon)
        if down > 0.5 and low < down and high > -math.expm1(-self.epsilon):
            return 1.0
        return max(
            min(most, down) if least < down else 0.0 for least, most in ((low, high), (1 - high, 1 - low))
        )

    def _cells(
        self, left: FloatArray, middle: FloatArray, right: FloatArray
    ) -> tuple[FloatArray, FloatArray]:
        """F in the middle of cells, and a bound on it over each."""
        one = [self.at(p, 1 - p) for p in (left, middle, right)]
        two = [self.at(1 - p, p) for p in (right, middle, left)]
        values = np.asarray(one[1].chance + two[1].chance)
        first = self._by_ends(one[0], one[2]) + self._by_ends(two[0], two[2])
        half = np.maximum(right - middle, middle - left)
        with np.errstate(all="ignore"):  # where a derivative is no float, the first bound is the answer
            slope = np.abs(self._slope(one[1]) - self._slope(two[1]))
            bend = self._bend(one[0], one[2]) + self._bend(two[0], two[2])
            inside = slope < -bend * half  # the top of the parabola is in the cell
            rise = np.where(inside, slope**2 / (-2 * bend), slope * half + bend * half**2 / 2)
        return values, np.asarray(np.fmin(first, values + np.maximum(rise, 0.0)))

    def _by_ends(self, least: Points, most: Points) -> FloatArray:
        """The most T can be between: tails that begin where p is least, weighed with the largest p."""
        mass = np.minimum(most.mass, math.exp(-self.epsilon))
        return np.where(least.possible, least.far + mass * (least.near - least.far), 0.0)

    def _bell(self, at: Points) -> tuple[FloatArray, FloatArray]:
        a = 1 / self.sigma - self.sigma * (at.reach / 2)
        return a, _TOP * np.exp(-(a**2) / 2)

    def _slope(self, at: Points) -> FloatArray:
        """T'."""
        down, lost = math.exp(-self.epsilon), -math.expm1(-self.epsilon)
        moved = self.sigma / 2 * down * (lost / at.other) / at.rest * self._bell(at)[1]
        return np.where(at.possible, at.near - at.far - moved, 0.0)

    def _bend(self, least: Points, most: Points) -> FloatArray:
        """The most T'' can be between; inf where T has a kink."""
        down, lost = math.exp(-self.epsilon), -math.expm1(-self.epsilon)
        (start, low), (end, high) = self._bell(least), self._bell(most)
        sign = lost * most.rest + down * (2 * most.other - lost * (1 + self.sigma**2 * (most.reach / 2)) / 2)
        top = np.where((end <= 0) & (start >= 0), _TOP, np.maximum(low, high))
        near, far = (self.sigma / 2 * lost / (at.other * at.rest) ** 2 for at in (least, most))
        bend = -np.where(sign >= 0, near * np.minimum(low, high), far * top) * sign
        return np.where(most.possible, bend, np.where(least.possible, np.inf, 0.0))
