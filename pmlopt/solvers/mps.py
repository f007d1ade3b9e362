"""Linear programs in the free MPS format, with rows and columns named after letters and outputs."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Generic, TypeVar

from pmlopt.core.arrays import Label

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
    """A linear program with names.

    Attributes:
        name: of the program.
        is_maximised: whether more of the objective is better.
        columns: the names of the variables, without blanks.
        objective: its terms.
        rows: the rows.
        offset: what is added to the objective.
        bounds: the least and the largest value of variables, by place; those left out are at least 0.
    """

    name: str
    is_maximised: bool
    columns: Sequence[str]
    objective: Mapping[int, Number]
    rows: Sequence[NamedRow[Number]]
    offset: Number | int = 0
    bounds: Mapping[int, tuple[float, float]] = field(default_factory=dict)

    def iterate_lines(self) -> Iterator[str]:
        """Yield the lines of the file: floats by the digits that they take, rationals as `p/q`."""
        sense = "MAX" if self.is_maximised else "MIN"
        yield f"NAME {self.name}\nOBJSENSE\n    {sense}\nROWS\n N objective"
        yield from (f" {'E' if row.equal else 'L'} {row.name}" for row in self.rows)
        entries: list[list[str]] = [[] for _ in self.columns]
        for row in self.rows:
            for place, value in row.terms.items():
                entries[place].append(f" {self.columns[place]} {row.name} {value}")
        yield "COLUMNS"
        for place, lines in enumerate(entries):
            if place in self.objective or not lines:
                yield f" {self.columns[place]} objective {self.objective.get(place, 0)}"
            yield from lines
        yield "RHS"
        if self.offset:  # the format has it with the other sign
            yield f" RHS objective {-self.offset}"
        yield from (f" RHS {row.name} {row.right}" for row in self.rows if row.right)
        if self.bounds:
            yield "BOUNDS"
        for place, ends in self.bounds.items():
            for kind, end, free in zip(("LO", "UP"), ends, ("MI", "PL"), strict=True):
                column = self.columns[place]
                yield (
                    f" {free} b {column}"
                    if abs(end) == float("inf")
                    else f" {kind} b {column} {end}"
                )
        yield "ENDATA"


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
