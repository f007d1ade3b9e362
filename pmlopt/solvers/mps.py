"""Linear programs in the free MPS format, with rows and columns named after letters and outputs.

Readers agree on what is written here and on no more: the objective is minimised, without a section that says
so; a constant of it is the cost of a column that is fixed at one; and numbers are decimals.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from math import gcd, lcm
from typing import Generic, TypeVar

from pmlopt.core.numbers.arrays import Label

CONSTANT_COLUMN = "objective_constant"
"""The column that is fixed at one, whose cost is the constant of the objective."""

Number = TypeVar("Number", float, Fraction)


@dataclass(frozen=True)
class NamedRow(Generic[Number]):
    """A row `terms <= right`, or `terms = right`.

    Attributes:
        name: of the row, without blanks.
        terms: the coefficients, by the place of the column; none is zero.
        right: the right side.
        equal: whether it is an equation.
    """

    name: str
    terms: Mapping[int, Number]
    right: Number
    equal: bool


@dataclass(frozen=True)
class NamedProgram(Generic[Number]):
    """A linear program with names, which is minimised.

    Attributes:
        name: of the program.
        columns: the names of the variables, without blanks.
        objective: its terms.
        rows: the rows.
        offset: what is added to the objective.
        bounds: the least and the largest value of variables, by place; those left out are at least 0.
        comment: the first line of the file; empty for none.
    """

    name: str
    columns: Sequence[str]
    objective: Mapping[int, Number]
    rows: Sequence[NamedRow[Number]]
    offset: Number | int = 0
    bounds: Mapping[int, tuple[float, float]] = field(default_factory=dict)
    comment: str = ""

    def iterate_lines(self) -> Iterator[str]:
        """Yield the lines of the file: floats by the digits that they take, whole numbers in full."""
        columns = list(self.columns)
        objective = dict(self.objective)
        bounds = dict(self.bounds)
        if self.offset:
            # of a constant in the section RHS some readers turn the sign, and some read nothing
            objective[len(columns)] = self.offset  # type: ignore[assignment]
            bounds[len(columns)] = (1.0, 1.0)
            columns.append(CONSTANT_COLUMN)
        if self.comment:
            yield f"* {self.comment}"
        yield f"NAME          {self.name}\nROWS\n N  objective"
        yield from (f" {'E' if row.equal else 'L'}  {row.name}" for row in self.rows)
        entries: list[list[str]] = [[] for _ in columns]
        for row in self.rows:
            for place, value in row.terms.items():
                entries[place].append(_write_entry(columns[place], row.name, value))
        yield "COLUMNS"
        for place, lines in enumerate(entries):
            if place in objective or not lines:
                yield _write_entry(columns[place], "objective", objective.get(place, 0))
            yield from lines
        yield "RHS"
        yield from (_write_entry("RHS", row.name, row.right) for row in self.rows if row.right)
        if bounds:
            yield "BOUNDS"
        for place, (least, most) in bounds.items():
            yield from _list_bounds(columns[place], least, most)
        yield "ENDATA"


def _write_entry(first: str, second: str, value: object, kind: str = "") -> str:
    """Write two names and a number where the fixed format has them: cbc takes short names to be of that."""
    return f" {kind:<2} {first:<8}  {second:<8}  {value}".rstrip()


def _list_bounds(column: str, least: float, most: float) -> Iterator[str]:
    """Yield the lines of the bounds of a variable."""
    infinity = float("inf")
    if least == most:
        yield _write_entry("b", column, least, "FX")
    elif -least == most == infinity:
        yield _write_entry("b", column, "", "FR")
    else:
        if least == -infinity:
            yield _write_entry("b", column, "", "MI")
        elif least:
            yield _write_entry("b", column, least, "LO")
        yield _write_entry(
            "b", column, "" if most == infinity else most, "PL" if most == infinity else "UP"
        )


def scale_to_integers(
    program: NamedProgram[Fraction], is_maximised: bool, comment: str
) -> NamedProgram[Fraction]:
    """Return a program in rationals as one in whole numbers, which no reader takes for others.

    A reader of floats takes `2/3` for 2. Rows are multiplied by what makes them whole; the objective, whose
    value must stay, is a free variable that a row of its own defines.

    Args:
        program: in rationals, without an offset and bounds.
        is_maximised: whether its objective is; that of the result is its negative then.
        comment: the first line of the file.
    """
    place = len(program.columns)
    sign = Fraction(-1 if is_maximised else 1)
    terms = {column: -sign * value for column, value in program.objective.items() if value}
    value = NamedRow("objective_value", {**terms, place: Fraction(1)}, Fraction(0), True)
    return replace(
        program,
        columns=[*program.columns, "objective_value"],
        objective={place: Fraction(1)},
        rows=[_scale_row(row) for row in (*program.rows, value)],
        bounds={place: (-float("inf"), float("inf"))},
        comment=comment,
    )


def _scale_row(row: NamedRow[Fraction]) -> NamedRow[Fraction]:
    """Multiply a row by the least positive number that makes it whole."""
    numbers = [*row.terms.values(), row.right]
    below = lcm(*(one.denominator for one in numbers))
    factor = Fraction(below, gcd(*(int(one * below) for one in numbers)) or 1)
    terms = {column: value * factor for column, value in row.terms.items()}
    return replace(row, terms=terms, right=row.right * factor)


def make_names(labels: Iterable[Label]) -> list[str]:
    """Return names without blanks, brackets and commas, distinct for distinct labels.

    Examples:
        >>> make_names(["ill", "not ill"]), make_names(["a b", "a,b"])
        (['ill', 'not_ill'], ['0', '1'])
    """
    found = [re.sub(r"[^\w.+-]", "_", str(label), flags=re.ASCII) for label in labels]
    # a name of the MPS format is longer than 255 characters nowhere, and has two labels in it
    plain = all(0 < len(name) <= 40 for name in found) and len(set(found)) == len(found)
    return found if plain else [str(place) for place in range(len(found))]
