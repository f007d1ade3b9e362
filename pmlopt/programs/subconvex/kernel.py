"""Utilities that add up over the letters of a column: what exact pricing can work with."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from pmlopt.arrays import FloatArray, rounding_of
from pmlopt.uncertainty.column_families import Box, Family


@dataclass(frozen=True, eq=False)
class Kernel:
    """`mu(lam) = sum_x p[x] phi(lam[x])` with phi convex, under a prior.

    Attributes:
        p: (N,) the prior.
        phi: a function of an array of non-negative numbers, entry by entry.
    """

    p: FloatArray
    phi: Callable[[FloatArray], FloatArray]

    def at(self, value: float) -> float:
        """The value of phi at one number."""
        return float(self.phi(np.array([value]))[0])

    def worth(self, lifts: FloatArray) -> FloatArray:
        """(K,) mu of the columns of an (N, K) matrix."""
        return np.asarray(self.p @ self.phi(lifts))

    def worth_of(
        self, mass: FloatArray, room: FloatArray, low: FloatArray, step: FloatArray, extra: FloatArray
    ) -> FloatArray:
        """(K,) mu of columns that are low + step on a mass, low + extra on a room, and low elsewhere."""
        ends = mass * self.phi(low + step) + (1 - mass - room) * self.phi(low)
        return np.asarray(ends + room * self.phi(np.maximum(low + extra, 0.0)))

    def caps(self, family: Family) -> FloatArray:
        """(N,) the largest entry that a column of mean one can have at each letter."""
        low, high = 0.0, 0.0
        if isinstance(family, Box):
            low, high = family.low, family.high
        else:
            high = family.base + family.slope
        return np.minimum(high, low + (1 - low) / self.p)

    def chords(self, box: Box) -> FloatArray:
        """(N,) the slopes of phi's chords from low to the cap of each letter; 0 where they are one point."""
        width = self.caps(box) - box.low
        rise = self.phi(self.caps(box)) - self.at(box.low)
        return np.where(width > 0, rise / np.where(width > 0, width, 1.0), 0.0)

    def rounding(self, multipliers: FloatArray, family: Family) -> float:
        """What rounding may take off a bound that sums N terms of these multipliers and of phi."""
        caps = self.caps(family)
        size = float(np.abs(self.phi(caps) / np.maximum(caps, 1.0)).max()) + abs(self.at(0.0)) + 1.0
        terms = float(np.abs(multipliers).max()) + float(self.p @ np.abs(multipliers)) + size
        return rounding_of(len(self.p), terms)
