"""Upper bounds on what a column can be worth beyond its cost, without looking at single sets."""

from __future__ import annotations

import numpy as np

from pmlopt.arrays import FloatArray
from pmlopt.programs.subconvex.kernel import Kernel
from pmlopt.programs.subconvex.staircase_search import StaircaseBound
from pmlopt.uncertainty.column_families import Box, Family


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
    return StaircaseBound(kernel, family, multipliers).upper


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
        self.fits = (p <= box.capacity * (1 + 1e-13))[self.order]
        self._filled = np.concatenate([[0.0], np.cumsum(self.room)])
        self._gained = np.concatenate([[0.0], np.cumsum(self.room * self.gain)])

    def fill(self, start: int, mass: FloatArray) -> FloatArray:
        """(K,) the most that a mass can gain on the letters from `start` on; -inf where they are too few."""
        target = self._filled[start] + mass
        last = np.minimum(np.searchsorted(self._filled, target, side="right") - 1, len(self.gain) - 1)
        value = self._gained[last] - self._gained[start] + (target - self._filled[last]) * self.gain[last]
        return np.where(target <= self._filled[-1] * (1 + 1e-12) + 1e-12, value, -np.inf)
