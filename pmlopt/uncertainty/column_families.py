"""Families of columns of mean one that a requirement allows, and their extreme points."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias

import numpy as np

from pmlopt.arrays import FloatArray

TIE = 1e-13
"""Mass by which the letter between the two values may be off one of them and count as at it, by rounding."""

NEGLIGIBLE_LEVEL = 230.0
"""Level in nats from which on e^-level, 1e-100, counts as zero beside one."""


@dataclass(frozen=True)
class Box:
    """The columns with bounds on each entry, `low <= lam <= high` and `<p, lam> = 1`.

    An extreme column solves a fractional knapsack: it is high on a set S, between at one letter f at most,
    and low elsewhere. The columns of PML have low = 0 and high = e^eps, those of LIP low = e^-lower.

    Source: [grosse2024extremal, Lemma 1], the polytope of PML.

    Examples:
        >>> Box(0.0, 2.0).capacity
        0.5
    """

    low: float
    high: float

    @property
    def capacity(self) -> float:
        """The mass under p that a column can have at `high`."""
        return (1 - self.low) / (self.high - self.low) if self.high > 1 > self.low else 1.0

    @property
    def constant(self) -> bool:
        """Whether the constant column is the only one."""
        return self.high <= 1 or self.low >= 1

    def fill(self, mass: FloatArray, between: FloatArray) -> tuple[FloatArray, FloatArray, FloatArray]:
        """The values (low, step, extra) of columns of mean one: lam is low, plus step on S, plus extra at f.

        Args:
            mass: (K,) the masses p(S).
            between: (K,) the masses p(f), 0 where there is no f; the column is then scaled.
        """
        low, step = np.full(mass.shape, self.low), np.full(mass.shape, self.high - self.low)
        rest = 1 - self.low - step * mass
        has = between > 0
        extra = np.where(has, rest / np.where(has, between, 1.0), 0.0)
        full = ~has & (mass > 0)
        return low, np.where(full, (1 - self.low) / np.where(full, mass, 1.0), step), extra

    def stricter(self, share: float) -> Box:
        """The family with both bounds stricter by a share, as far as the constant column allows."""
        return Box(min(1.0, self.low * (1 + share)), max(1.0, self.high * (1 - share)))


@dataclass(frozen=True)
class Staircase:
    """The columns with a bound on the ratio of entries: `m <= lam <= base + slope m`, `<p, lam> = 1`.

    An extreme column takes two values, the upper one on a set S. The columns of LDP have base = 0 and
    slope = e^eps. Those of the l1 ball [grosse2025empirical, Proposition 2] that are nowhere zero have
    `base = e^eps / (1 + beta e^eps / 2)` and `slope = base beta / 2`.

    Source: [kairouz2016extremal, Theorem 2] (staircase mechanisms).
    """

    base: float
    slope: float

    @property
    def capacity(self) -> float:
        """The mass under p below which S must stay, so that m is positive."""
        return 1 / self.base if self.base > 1 else 1.0

    @property
    def constant(self) -> bool:
        """Whether the constant column is the only one."""
        return self.base + self.slope <= 1

    def lower(self, mass: FloatArray) -> FloatArray:
        """(K,) the lower value m of the extreme columns, from the masses p(S)."""
        return (1 - self.base * mass) / (1 - mass + self.slope * mass)

    def fill(self, mass: FloatArray, between: FloatArray) -> tuple[FloatArray, FloatArray, FloatArray]:
        """The values (m, the step up from it, 0) of columns of mean one; see `Box.fill`."""
        low = self.lower(mass)
        return low, self.base + (self.slope - 1) * low, np.zeros(mass.shape)

    def stricter(self, share: float) -> Staircase:
        """The family with the upper bound stricter by a share, as far as the constant column allows."""
        if self.constant:
            return self
        shrunk = max(1 / (self.base + self.slope), 1 - share)
        return Staircase(self.base * shrunk, self.slope * shrunk)


Family: TypeAlias = Box | Staircase
