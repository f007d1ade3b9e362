"""A linear program over the rationals with a point and a proof of it, and its files: VIPR, and MPS."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from functools import cached_property
from typing import Literal

from pmlopt.core.numbers.arrays import FloatArray
from pmlopt.errors import ProgramError
from pmlopt.programs.exact.rounding import round_exp_down, round_exp_up
from pmlopt.solvers.mps import NamedProgram, NamedRow, scale_to_integers

ZERO = Fraction(0)
ONE = Fraction(1)

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
        sign: 1 where more of the objective is better, else -1.
        columns: the names of the variables.
        values: those of the point.
        objective: its terms.
        rows: the rows; the first are those of the letters, where there is a mechanism.
        letter_count: how many rows those are.
        least_means: the variables that are at most a mean under each law of a set.
    """

    above: bool
    powers: dict[float, Fraction] = field(default_factory=dict)
    sign: int = 1
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
        self, name: str, terms: Terms, right: Fraction = ZERO, *, equal: bool = False
    ) -> int:
        """Add a row, and return its place."""
        used = {column: value for column, value in terms.items() if value}
        self.rows.append(NamedRow(name, used, right, equal))
        return len(self.rows) - 1

    def add_limit(self, name: str, column: int | None, terms: Terms, *, equal: bool = False) -> int:
        """Add the row that a variable, or left out zero, is at most terms, or equal to them."""
        own = {} if column is None else {column: ONE}
        return self.add_row(name, {**own, **{k: -value for k, value in terms.items()}}, equal=equal)

    def define(self, name: str, terms: Terms) -> int:
        """Add a variable that is equal to terms, with the row of the same name that requires it."""
        place = self.add_column(name, self.evaluate(terms))
        self.add_limit(name, place, terms, equal=True)
        return place

    def evaluate(self, terms: Mapping[int, Fraction]) -> Fraction:
        """Return the value of terms at the point."""
        return sum((value * self.values[column] for column, value in terms.items()), ZERO)

    @property
    def value(self) -> Fraction:
        """Return the objective at the point."""
        return self.evaluate(self.objective)

    @property
    def kinds(self) -> set[str]:
        """Return what variables and rows are: the parts of their names before the brackets."""
        names = *self.columns, *(row.name for row in self.rows)
        return {name.partition("[")[0] for name in names}

    @property
    def costs(self) -> Terms:
        """Return the terms of what is maximised: the objective, or minus that."""
        return {column: self.sign * value for column, value in self.objective.items()}

    def list_broken(self) -> list[str]:
        """List the names of the variables and the rows that the point breaks."""
        pairs = zip(self.columns, self.values, strict=True)
        excesses = [(row, self.evaluate(row.terms) - row.right) for row in self.rows]
        broken = [row.name for row, excess in excesses if excess > 0 or (row.equal and excess)]
        return [*(name for name, value in pairs if value < 0), *broken]

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


@dataclass(frozen=True, eq=False)
class ProvedProgram:
    """A linear program with what a file proves of it.

    Attributes:
        name: of the files: feasibility, that the point meets the rows; optimum, that nothing is better than a
            bound, either; infeasibility, that nothing meets the rows.
        program: the program.
        sentence: what is proved, in words.
        duals: multipliers of the rows that prove the bound, or the contradiction.
        level: the level in nats that it is about, where a least level, or that of an envelope, is claimed.
    """

    name: Literal["feasibility", "optimum", "infeasibility"]
    program: ExactProgram
    sentence: str
    duals: Sequence[Fraction] = ()
    level: float | None = None

    def __post_init__(self) -> None:
        """Raise a ProgramError where it is to be proved that the point meets the rows, and it does not."""
        if self.name == "feasibility" and (broken := self.program.list_broken()):
            text = f"the result breaks {broken[0]} of the linear program: check it with `verify`"
            raise ProgramError(text)

    @cached_property
    def bound(self) -> Fraction | None:
        """Return the proved bound on the objective; None where none is."""
        if self.name != "optimum":
            return None
        return self.program.sign * self.program.sum_right_sides(self.duals)

    @property
    def proved_range(self) -> tuple[str, str]:
        """Return between which numbers the optimum is proved to be."""
        value = str(self.program.value)
        is_maximised = self.program.sign > 0
        if self.bound is None:
            return (value, "inf") if is_maximised else ("-inf", value)
        return (value, str(self.bound)) if is_maximised else (str(self.bound), value)


def iterate_mps_lines(proved: ProvedProgram) -> Iterator[str]:
    """Yield the lines of the program in the format MPS, in whole numbers and minimised."""
    own = proved.program
    is_maximised = own.sign > 0
    turned = "minus the optimum" if is_maximised else "the optimum"
    comment = f"whole numbers, exact; minimised: objective_value is {turned} of the .vipr file"
    named = NamedProgram(proved.name, own.columns, own.objective, own.rows)
    return scale_to_integers(named, is_maximised, comment).iterate_lines()


def _format_terms(terms: Mapping[int, Fraction]) -> str:
    """Return the number of terms, and the place and coefficient of each."""
    parts = (f"{column} {value}" for column, value in sorted(terms.items()))
    return " ".join([str(len(terms)), *parts])


def iterate_vipr_lines(proved: ProvedProgram) -> Iterator[str]:
    """Yield the lines of a certificate in the format VIPR 1.0, signs of variables first."""
    program = proved.program
    columns = len(proved.program.columns)
    yield f"% {proved.sentence}"
    yield f"VER 1.0\nVAR {columns}"
    yield from program.columns
    yield f"INT 0\nOBJ {'max' if program.sign > 0 else 'min'}"
    yield _format_terms(program.objective)
    yield f"CON {columns + len(program.rows)} {columns}"
    for place, name in enumerate(program.columns):
        yield f"sign:{name} G 0 1 {place} 1"
    for row in program.rows:
        yield f"{row.name} {'E' if row.equal else 'L'} {row.right} {_format_terms(row.terms)}"
    if proved.name == "infeasibility":
        yield "RTP infeas\nSOL 0"
    else:
        point = {place: value for place, value in enumerate(program.values) if value}
        yield f"RTP range {' '.join(proved.proved_range)}\nSOL 1\nmechanism {_format_terms(point)}"
    yield f"DER {int(proved.name != 'feasibility')}"
    if proved.name != "feasibility":
        yield _format_derivation(proved)


def _format_derivation(proved: ProvedProgram) -> str:
    """Return the bound, or the contradiction, as one combination of the rows."""
    program = proved.program
    sign = proved.program.sign
    left = f"bound {'L' if sign > 0 else 'G'} {proved.bound} OBJ"
    costs = program.costs
    if proved.bound is None:
        left, costs = f"contradiction L {program.sum_right_sides(proved.duals)} 0", {}
    # the signs of variables are the first rows, with `at least`
    sums = program.combine(proved.duals)
    signs = (costs.get(column, ZERO) - value for column, value in enumerate(sums))
    weights = {place: sign * value for place, value in enumerate([*signs, *proved.duals]) if value}
    return f"{left} {{ lin {_format_terms(weights)} }} -1"
