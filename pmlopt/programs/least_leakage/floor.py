"""A floor on the expected utility, in units that keep its digits."""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import Annotated

import numpy as np

from pmlopt.core.arrays import BoolArray, FloatArray, rounding_of
from pmlopt.core.records import Shape
from pmlopt.programs.linear.columns import Columns


@dataclass(frozen=True, eq=False)
class Expected:
    """An expected gain that is asked for at least, or an expected loss at most.

    Attributes:
        maximised: whether the table holds gains.
        table: (N, M) the gain or loss.
        value: the floor, or the ceiling.
    """

    maximised: bool
    table: Annotated[FloatArray, Shape("N", "M")]
    value: float


@dataclass(frozen=True, eq=False)
class Floor:
    """What an expected gain must reach, or an expected loss must not exceed.

    It works on gains less the best that a letter can have, in units of what lies between the best constant
    output and those: neither an offset nor a rare letter takes digits from it.

    Attributes:
        columns: the letters and outputs.
        allowed: the pairs that may occur.
        expected: the gain or loss on pairs, and the floor (of a loss, the ceiling), in its units.
    """

    columns: Columns
    allowed: BoolArray
    expected: Expected

    @property
    def what(self) -> str:
        """Gain or loss."""
        return "gain" if self.expected.maximised else "loss"

    @cached_property
    def gains(self) -> FloatArray:
        """What an output gains, 0 at a letter's best and less elsewhere, over `unit`."""
        return np.asarray((self._signed - self.columns.of_pairs(self._best)) / self._room)

    @cached_property
    def least(self) -> float:
        """What the expectation of `gains` must reach: 0 is the most. Computed as a rational."""
        weights = self.columns.weights_of_letters
        best = sum((w * Fraction(b) for w, b in zip(weights, self._best.tolist(), strict=True)), Fraction(0))
        wanted = Fraction(self._sign * self.expected.value) / Fraction(2) ** self._exponent
        return float((wanted - best / sum(weights)) / Fraction(self._room))

    @property
    def unit(self) -> float:
        """What lies between the expectation of the best constant output and the most there is."""
        return math.ldexp(self._room, self._exponent)

    @cached_property
    def rounding(self) -> float:
        """What rounding may have taken off the floor that was given, and an expectation of `gains`."""
        return rounding_of(self.columns.terms, 2.0 + abs(self.least)) + self._digits

    @property
    def relaxed(self) -> float:
        """What a solver is to reach: `least` but for most of the rounding of what was given."""
        return self.least - 0.9 * self._digits

    @cached_property
    def _digits(self) -> float:
        """Two units in the last place of the terms of an expectation of the table, before they cancel."""
        table = np.ldexp(np.abs(self.expected.table), -self._exponent)
        asked = float(abs(Fraction(self.expected.value)) / Fraction(2) ** self._exponent)
        size = float(self.columns.masses @ self.columns.largest(table)) + asked
        return 2 * float(np.finfo(float).eps) * size / self._room

    @cached_property
    def _room(self) -> float:
        """`unit` over the power of two by which the largest entry is of size 1: nothing underflows."""
        short = self.columns.of_pairs(self._best) - self._signed
        constants = self.columns.means(np.where(self.allowed, short, np.inf))
        room = float(constants.min())
        if not math.isfinite(room):
            room = float(self.columns.masses @ self.columns.largest(np.where(self.allowed, short, 0)))
        return room or 1.0

    def slack(self, lifts: FloatArray) -> float:
        """By how much a mechanism is above, in units of `gains`; negative where it is below."""
        return self.columns.expectation(np.where(self.allowed, self.gains, 0.0), lifts) - self.least

    @property
    def most(self) -> float:
        """The largest expected gain that there is, or the smallest expected loss, in the utility's units."""
        return math.ldexp(float(self._sign * (self.columns.masses @ self._best)), self._exponent) + 0.0

    @property
    def _sign(self) -> float:
        return 1.0 if self.expected.maximised else -1.0

    @cached_property
    def _exponent(self) -> int:
        return int(np.frexp(np.abs(self.expected.table).max())[1])

    @cached_property
    def _signed(self) -> FloatArray:
        return np.asarray(self._sign * np.ldexp(self.expected.table, -self._exponent))

    @cached_property
    def _best(self) -> FloatArray:
        """(N,) each letter's largest allowed gain."""
        return self.columns.largest(np.where(self.allowed, self._signed, -np.inf))
