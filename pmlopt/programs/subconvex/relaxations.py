"""Bounds on what columns of a family are worth beyond their cost: fractional knapsacks, and one mass."""

from __future__ import annotations

import numpy as np

from pmlopt.core.arrays import FloatArray, IntArray
from pmlopt.model.uncertainty.columns import Box, Family, Staircase
from pmlopt.programs.subconvex.columns import Kernel


def relaxed(kernel: Kernel, family: Family, multipliers: FloatArray) -> float:
    """An upper bound on `mu(lam) - <p rho, lam>` over the columns of a family.

    For a box phi is replaced by its chords, which leaves a fractional knapsack. For staircases the cost of
    a set is replaced by that of the cheapest letters up to its mass, which leaves one variable.
    """
    if family.constant:
        return kernel.at(1.0) - float(kernel.p @ multipliers)
    if isinstance(family, Box):
        base = kernel.at(family.low) - family.low * float(kernel.p @ multipliers)
        return base + float(Knapsack(kernel, family, multipliers).fill(0, np.array([1 - family.low]))[0])
    return Stairs(kernel, family, multipliers).upper()


def closed_multipliers(kernel: Kernel, family: Family) -> FloatArray:
    """Multipliers whose relaxed bound needs no solving: the chords of a box, zeros for staircases.

    For mutual information under PML the bound is `sum_x p[x] min(eps, -log p[x])`.
    """
    return kernel.chords(family) if isinstance(family, Box) else np.zeros(len(kernel.p))


class Knapsack:
    """The fractional knapsack of a box under multipliers: letters in the order of what their mass gains."""

    def __init__(self, kernel: Kernel, box: Box, multipliers: FloatArray) -> None:
        p = kernel.p
        gain = kernel.chords(box) - multipliers
        self.order = np.argsort(-gain, kind="stable")
        self.gain = gain[self.order]
        self.room = (p * (kernel.caps(box) - box.low))[self.order]
        self._filled = np.concatenate([[0.0], np.cumsum(self.room)])
        self._gained = np.concatenate([[0.0], np.cumsum(self.room * self.gain)])

    def fill(self, start: int, mass: FloatArray) -> FloatArray:
        """(K,) the most that a mass can gain on the letters from `start` on; -inf where they are too few."""
        target = self._filled[start] + mass
        last = np.minimum(np.searchsorted(self._filled, target, side="right") - 1, len(self.gain) - 1)
        value = self._gained[last] - self._gained[start] + (target - self._filled[last]) * self.gain[last]
        return np.where(target <= self._filled[-1] * (1 + 1e-12) + 1e-12, value, -np.inf)


def largest(values: FloatArray, most: int) -> IntArray:
    """The places of the largest values, in descending order."""
    chosen = np.argpartition(-values, most - 1)[:most] if len(values) > most else np.arange(len(values))
    return np.asarray(chosen[np.argsort(-values[chosen], kind="stable")])


_WIDTH = 1e-12
"""Width of an interval of masses that is not halved any more."""

_ROUNDS, _INTERVALS, _SHARE = 40, 20_000, 1e-8
"""Halvings of the interval of masses, parts that are looked at, and the share of the largest worth left."""


class Stairs:
    """Staircases under multipliers, their cost replaced by that of the cheapest letters up to a mass.

    What is left depends on the mass s alone: `s phi(m + step) + (1 - s) phi(m) - m <p, rho> - step K(s)`,
    with m and the step falling in s and K convex, or its tangent of the slope `edge`.
    """

    def __init__(
        self, kernel: Kernel, family: Staircase, multipliers: FloatArray, edge: float | None = None
    ) -> None:
        self._phi, self._family = kernel.phi, family
        order, costs = np.argsort(multipliers, kind="stable"), kernel.p * multipliers
        self._mass = np.concatenate([[0.0], np.cumsum(kernel.p[order])])
        self._cost = np.concatenate([[0.0], np.cumsum(costs[order])])
        if edge is not None:
            self._cost = float((kernel.p * np.minimum(multipliers - edge, 0)).sum()) + edge * self._mass
        self._total = float(costs.sum())

    def upper(self) -> float:
        """A bound on what staircases are worth."""
        return self.search(-np.inf)[0]

    def search(self, enough: float) -> tuple[float, float, float]:
        """A bound, and the masses between which staircases may be worth more than `enough`.

        The interval of s is bisected, each part bounded by its ends.
        """
        room = min(self._family.capacity, 1.0)
        edges = np.unique(np.append(self._mass[self._mass < room], min(room, float(self._mass[-1]))))
        low, step, _ = self._family.fill(edges, np.zeros(edges.shape))
        worths = edges * self._phi(low + step) + (1 - edges) * self._phi(np.maximum(low, 0.0))
        slack = _SHARE * float(np.abs(worths).max())
        ends, best = np.stack([edges[:-1], edges[1:]]), -np.inf
        bounds = np.full(1, np.inf)
        for _ in range(_ROUNDS):
            bounds, values = self._bounds(ends)
            best = max(best, float(values.max()))
            promising = bounds > (best + slack if enough == -np.inf else enough)
            if not promising.any():
                return max(best + slack, enough), room, room
            if promising.sum() > _INTERVALS:
                break
            left, right = ends = ends[:, promising]
            if enough > -np.inf and float(np.ptp(ends, axis=0).max()) < _WIDTH:
                bounds = bounds[promising]
                break
            middle = (left + right) / 2
            ends = np.stack([np.append(left, middle), np.append(middle, right)])
        return float(bounds.max()), float(ends[0].min()), float(ends[1].max())

    def _bounds(self, ends: FloatArray) -> tuple[FloatArray, FloatArray]:
        """The bound on each interval of s, and the values at both ends."""
        low, step, _ = self._family.fill(ends, np.zeros(ends.shape))
        low = np.maximum(low, 0.0)
        spent = np.interp(ends, self._mass, self._cost)
        tops, feet = self._phi(low + step), self._phi(low)
        values = ends * tops + (1 - ends) * feet - low * self._total - step * spent
        valley = float(self._mass[int(self._cost.argmin())])
        least = np.where((ends[0] < valley) & (valley < ends[1]), self._cost.min(), spent.min(axis=0))
        bound = (
            (ends * tops.max(axis=0)).max(axis=0)
            + ((1 - ends) * feet.max(axis=0)).max(axis=0)
            - (low * self._total).min(axis=0)
            - (step * least).min(axis=0)
        )
        return bound, values
