"""A mechanism as variables of a linear program over the rationals, and the rows that its entries share."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any

import numpy as np

from pmlopt.core.arrays import MAX_EXPONENT, BoolArray, FloatArray
from pmlopt.data.mechanism import Mechanism
from pmlopt.data.prior import Prior
from pmlopt.programs.proofs.exact_program import (
    ONE,
    ZERO,
    ExactProgram,
    RationalPowers,
    Terms,
    make_names,
)


@dataclass(eq=False)
class MechanismRows:
    """The variables of a mechanism in a linear program over the rationals, and what rows on them share.

    Attributes:
        program: that has them, letter by letter, as its first columns.
        weights: (N,) the prior as whole numbers.
        shares: the prior, in rationals that sum to one.
        letters, outputs: the names.
    """

    program: ExactProgram
    weights: Any
    shares: list[Fraction]
    letters: list[str]
    outputs: list[str]
    _laws: dict[int, int] = field(default_factory=dict)

    @classmethod
    def build(
        cls,
        prior: Prior,
        mechanism: Mechanism,
        *,
        above: bool,
        allowed: BoolArray | None = None,
    ) -> MechanismRows:
        """Add the variables of a mechanism, whose rows sum to one.

        Args:
            prior: of its letters.
            mechanism: the point of the program.
            above: whether powers of e are replaced by rationals above them.
            allowed: (N, M) the pairs that may occur; left out, all.
        """
        program = ExactProgram(RationalPowers(above))
        weights = np.array(prior.weights, dtype=object)
        shares = [Fraction(weight) / weights.sum() for weight in prior.weights]
        found = cls(
            program, weights, shares, make_names(prior.labels), make_names(mechanism.outputs)
        )
        for letter, row in zip(found.letters, mechanism.matrix.tolist(), strict=True):
            for output, value in zip(found.outputs, row, strict=True):
                program.add_column(f"P[{letter},{output}]", Fraction(value))
        for x, letter in enumerate(found.letters):
            cells = [found.get_cell(x, y) for y in range(len(found.outputs))]
            program.add_row(f"row[{letter}]", dict.fromkeys(cells, ONE), ONE, equal=True)
        program.shares = shares
        for x, y in [] if allowed is None else np.argwhere(~allowed).tolist():
            name = f"never[{found.letters[x]},{found.outputs[y]}]"
            program.add_row(name, {found.get_cell(x, y): ONE})
        return found

    @property
    def vacuous_exponent(self) -> float:
        """Return an exponent beyond which no letter can become more likely, since it is certain."""
        return min(MAX_EXPONENT, math.log(1 / min(self.shares)) + 1e-6)

    def get_cell(self, x: int, y: int) -> int:
        """Return the variable of an entry."""
        return x * len(self.outputs) + y

    def list_column(self, y: int) -> list[int]:
        """Return the variables of the probabilities of an output."""
        return [self.get_cell(x, y) for x in range(len(self.letters))]

    def get_values(self, y: int) -> list[Fraction]:
        """Return the probabilities of an output given each letter."""
        return [self.program.values[cell] for cell in self.list_column(y)]

    def weigh(self, y: int, weights: Sequence[Fraction]) -> Terms:
        """Return the terms of a weighted sum of the probabilities of an output."""
        return dict(zip(self.list_column(y), weights, strict=True))

    def weigh_table(self, table: FloatArray) -> Terms:
        """Return the terms of the expectation of a table, the floats of which count as rationals."""
        return {
            self.get_cell(x, y): self.shares[x] * Fraction(value)
            for x, row in enumerate(table.tolist())
            for y, value in enumerate(row)
            if value
        }

    def get_law(self, y: int) -> int:
        """Return the variable of the probability of an output, which is added where it is new."""
        if y not in self._laws:
            name, terms = f"q[{self.outputs[y]}]", self.weigh(y, self.shares)
            self._laws[y] = self.program.define(name, terms)
        return self._laws[y]

    def add_letter_rows(
        self, kind: str, y: int, terms: Mapping[int, Fraction], sign: int = 1
    ) -> None:
        """Require of each probability of an output, times a sign, and terms that the sum is at most 0."""
        for letter, cell in zip(self.letters, self.list_column(y), strict=True):
            name = f"{kind},{letter},{self.outputs[y]}]"
            self.program.add_row(name, {cell: Fraction(sign), **terms})

    def add_affine_rows(
        self, name: str, coefficients: Any, offset: Sequence[float], *, equal: bool
    ) -> Fraction:
        """Add rows `C P + offset <= 0`, or `= 0`, relaxed by what the mechanism breaks them.

        The coefficients are the stored floats, as rationals. The most that a row is relaxed by is returned.
        """
        program, most = self.program, ZERO
        for place, (table, constant) in enumerate(zip(coefficients, offset, strict=True)):
            used = np.argwhere(table).tolist()
            terms = {self.get_cell(x, y): Fraction(float(table[x, y])) for x, y in used}
            right = -Fraction(float(constant))
            over = program.evaluate(terms) - right
            slack = abs(over) if equal else max(over, ZERO)
            most, exact = max(most, slack), equal and not slack
            program.add_row(f"added[{name},{place}]", terms, right + slack, equal=exact)
            if equal and not exact:
                other = {cell: -value for cell, value in terms.items()}
                program.add_row(f"added_back[{name},{place}]", other, slack - right)
        return most
