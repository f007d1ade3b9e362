"""A linear program over the rationals with a point of it: what every file of a proof is written from."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction

from pmlopt.core.arrays import FloatArray
from pmlopt.programs.exact.rounding import round_exp_down, round_exp_up
from pmlopt.solvers.mps import NamedRow

ZERO, ONE = Fraction(0), Fraction(1)

Terms = dict[int, Fraction]
"""The coefficients of a row or of the objective, by the place of the column; none is zero."""


@dataclass(frozen=True, eq=False)
class LeastMean:
    """How it follows from rows that a variable is at most the mean of an output under a law.

    Attributes:
        prove: returns, of a law in floats, one near it in rationals for which it does, and the multipliers of
            the rows, by their places.
        letters: the rows whose multipliers are the law; none where other rows prove it.
    """

    prove: Callable[[FloatArray], tuple[Sequence[Fraction], dict[int, Fraction]]]
    letters: Sequence[int] = ()


@dataclass(eq=False)
class ExactProgram:
    """A linear program over the rationals, whose variables are at least zero, with a point that it contains.

    Attributes:
        above: whether powers of e are replaced by rationals just above them, or all by such just below.
        powers: the rationals that were used, by exponent.
        is_maximised: whether more of the objective is better.
        columns: the names of the variables.
        values: those of the point.
        objective: its terms.
        rows: the rows; the first are those of the letters, where there is a mechanism.
        letter_count: how many rows those are.
        least_means: the variables that are at most a mean under each law of a set.
    """

    above: bool
    powers: dict[float, Fraction] = field(default_factory=dict)
    is_maximised: bool = True
    columns: list[str] = field(default_factory=list)
    values: list[Fraction] = field(default_factory=list)
    objective: Terms = field(default_factory=dict)
    rows: list[NamedRow[Fraction]] = field(default_factory=list)
    letter_count: int = 0
    least_means: dict[int, LeastMean] = field(default_factory=dict)

    def get_power(self, exponent: float) -> Fraction:
        """Return the rational for e^exponent, of an exponent of at least 0."""
        # binary digits after the point of the rationals above: short ones keep the multipliers short
        bits = 80
        if exponent not in self.powers:
            found = round_exp_down(exponent)
            if self.above:
                found = Fraction(math.ceil(round_exp_up(exponent) * 2**bits), 2**bits)
            self.powers[exponent] = found if exponent else ONE
        return self.powers[exponent]

    def add_column(self, name: str, value: Fraction) -> int:
        """Add a variable of at least zero with its value at the point, and return its place."""
        self.columns.append(name)
        self.values.append(value)
        return len(self.columns) - 1

    def add_row(
        self,
        name: str,
        terms: Mapping[int, Fraction],
        right: Fraction = ZERO,
        *,
        equal: bool = False,
    ) -> int:
        """Add a row, and return its place."""
        used = {column: value for column, value in terms.items() if value}
        self.rows.append(NamedRow(name, used, right, equal))
        return len(self.rows) - 1

    def define(self, name: str, terms: Mapping[int, Fraction]) -> int:
        """Add a variable that is equal to terms, with the row of the same name that requires it."""
        place = self.add_column(name, self.evaluate(terms))
        self.add_row(name, {place: ONE, **{k: -value for k, value in terms.items()}}, equal=True)
        return place

    def evaluate(self, terms: Mapping[int, Fraction]) -> Fraction:
        """Return the value of terms at the point."""
        return sum((value * self.values[column] for column, value in terms.items()), ZERO)

    @property
    def value(self) -> Fraction:
        """Return the objective at the point."""
        return self.evaluate(self.objective)

    @property
    def sign(self) -> int:
        """Return 1 where more of the objective is better, else -1."""
        return 1 if self.is_maximised else -1

    @property
    def costs(self) -> Terms:
        """Return the terms of what is maximised: the objective, or minus that."""
        return {column: self.sign * value for column, value in self.objective.items()}

    def find_broken_row(self) -> str | None:
        """Return the name of a row, or of a variable, that the point breaks; None where it breaks none."""
        for name, value in zip(self.columns, self.values, strict=True):
            if value < 0:
                return name
        for row in self.rows:
            found = self.evaluate(row.terms)
            if found > row.right or (row.equal and found < row.right):
                return row.name
        return None

    @property
    def entries_by_column(self) -> list[list[tuple[int, Fraction]]]:
        """Return the rows of each column with their coefficients."""
        found: list[list[tuple[int, Fraction]]] = [[] for _ in self.columns]
        for place, row in enumerate(self.rows):
            for column, value in row.terms.items():
                found[column].append((place, value))
        return found

    def combine(self, multipliers: Sequence[Fraction]) -> list[Fraction]:
        """Return the coefficients of all columns in a combination of the rows."""
        found = [ZERO] * len(self.columns)
        for multiplier, row in zip(multipliers, self.rows, strict=True):
            for column, value in row.terms.items() if multiplier else ():
                found[column] += multiplier * value
        return found

    def sum_right_sides(self, multipliers: Sequence[Fraction]) -> Fraction:
        """Return the right side of a combination of the rows."""
        pairs = zip(multipliers, self.rows, strict=True)
        return sum((multiplier * row.right for multiplier, row in pairs), ZERO)
