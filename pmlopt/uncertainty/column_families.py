"""What a requirement allows a column to be, once it is divided by its mean."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias

import numpy as np

from pmlopt.arrays import FloatArray

TIE = 1e-13
"""A letter between that is off an end by a mass of less than this is at that end."""


STEEPEST = 230.0
"""A level in nats from which on a letter of the lower value is the same as one of zero, in floats."""


@dataclass(frozen=True)
class Box:
    """`low <= lam <= high`, `<p, lam> = 1`: an extreme column is high on a set S, between at one letter f
    at most, and low elsewhere (a fractional knapsack).

    Source: EXT, Lemma 1; the columns of PML have low = 0 and high = e^eps, those of LIP low = e^-lower.

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
        """Whether the constant is the only column."""
        return self.high <= 1 or self.low >= 1

    def fill(self, mass: FloatArray, between: FloatArray) -> tuple[FloatArray, FloatArray, FloatArray]:
        """What makes the mean one: (low, step, extra), lam being low + step on S + extra at f.

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
        """The same with room of a share on both sides, where there is any."""
        return Box(min(1.0, self.low * (1 + share)), max(1.0, self.high * (1 - share)))


@dataclass(frozen=True)
class Staircase:
    """`m <= lam <= base + slope m` for some m, `<p, lam> = 1`: two values, the upper one on a set S.

    The columns of LDP have base = 0 and slope = e^eps. Those of the l1 ball (EMP, Proposition 2) that
    are nowhere zero have `base = e^eps / (1 + beta e^eps / 2)` and `slope = base beta / 2`.

    Source: Kairouz, Oh and Viswanath, JMLR 17 (2016), Theorem 2 (staircase mechanisms).
    """

    base: float
    slope: float

    @property
    def capacity(self) -> float:
        """The mass under p below which S must stay, so that m is positive."""
        return 1 / self.base if self.base > 1 else 1.0

    @property
    def constant(self) -> bool:
        """Whether the constant is the only column."""
        return self.base + self.slope <= 1

    def lower(self, mass: FloatArray) -> FloatArray:
        """m, by p(S)."""
        return (1 - self.base * mass) / (1 - mass + self.slope * mass)

    def fill(self, mass: FloatArray, between: FloatArray) -> tuple[FloatArray, FloatArray, FloatArray]:
        """(m, the step up from it, 0), so that the mean is one; see `Box.fill`."""
        low = self.lower(mass)
        return low, self.base + (self.slope - 1) * low, np.zeros(mass.shape)

    def stricter(self, share: float) -> Staircase:
        """The same with room of a share above, where there is any."""
        if self.constant:
            return self
        shrunk = max(1 / (self.base + self.slope), 1 - share)
        return Staircase(self.base * shrunk, self.slope * shrunk)


Family: TypeAlias = Box | Staircase
