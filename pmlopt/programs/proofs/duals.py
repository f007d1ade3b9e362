"""Dual points of linear programs over the rationals: from HiGHS in floats, completed in fractions."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from pmlopt.core.arrays import FloatArray, IntArray
from pmlopt.core.lazy_imports import sparse
from pmlopt.errors import SolverError
from pmlopt.programs.proofs.exact_program import ZERO, ExactProgram, ExactRow


@dataclass(frozen=True, eq=False)
class DualPoint:
    """Multipliers of the rows of a program, and of the signs of its variables, that prove a bound exactly.

    Attributes:
        rows: the multipliers of the rows: at least 0 of inequalities.
        signs: those of `0 <= variable`: by how much the combination of the rows is above the objective.
        bound: on the objective, or on minus the objective where that is minimised.
    """

    rows: list[Fraction]
    signs: list[Fraction]
    bound: Fraction


def prove_bound(program: ExactProgram, known: Sequence[Fraction] = ()) -> DualPoint:
    """Find a dual point of a program: what HiGHS finds of the maximum, completed in rationals.

    Args:
        program: of a mechanism, or another one.
        known: multipliers of the first rows, which are near the best, where there are some.

    Raises:
        SolverError: HiGHS finds none, or what a variable lacks cannot be made good.
    """
    sign = 1 if program.is_maximised else -1
    costs = [sign * program.objective.get(column, ZERO) for column in range(len(program.columns))]
    # beyond that the program of all outputs together takes minutes
    if known and len(program.columns) > 3000:
        return complete_duals(program, costs, find_separate_multipliers(program, costs, known))
    return complete_duals(program, costs, find_multipliers(program, costs))


def find_multipliers(program: ExactProgram, costs: Sequence[Fraction]) -> list[Fraction]:
    """Find multipliers of the rows by HiGHS, rounded to short binary fractions."""
    # what all entries of a row of the mechanism share of the costs would hide their differences
    offsets = {
        place: max((costs[column] for column in row.terms), default=ZERO)
        for place, row in enumerate(program.rows)
        if row.name.startswith("row[")
    }
    scaled = ScaledProgram.build(program, subtract_rows(program, costs, offsets))
    duals = scaled.solve_part(np.arange(len(program.rows)), np.arange(len(program.columns)))
    return scaled.round_multipliers(duals, offsets)


def find_separate_multipliers(
    program: ExactProgram, costs: Sequence[Fraction], known: Sequence[Fraction]
) -> list[Fraction]:
    """Find multipliers of the other rows for known ones of the first, part by part of the program.

    Parts are what no other row couples, such as the outputs: seconds where the whole takes an hour. Of each
    the most that a column of mean one collects is found; the largest of these, times the prior, is added to
    the multipliers of the letters.
    """
    from scipy.sparse.csgraph import connected_components

    given = dict(enumerate(known))
    scaled = ScaledProgram.build(program, subtract_rows(program, costs, given))
    others = np.arange(len(known), len(program.rows))
    within = scaled.matrix[others]
    links = sparse.block_array([[None, within.T], [within, None]], format="csr")
    count, part_of = connected_components(links, directed=False)
    column_parts, row_parts = np.split(part_of, [len(program.columns)])
    mean = subtract_rows(
        program, [ZERO] * len(costs), {k: -p for k, p in enumerate(program.shares)}
    )
    masses = np.array([float(mass) for mass in mean])
    duals, excesses = np.zeros(len(program.rows)), []
    for part in range(count):
        columns, rows = np.flatnonzero(column_parts == part), others[row_parts == part]
        found = scaled.solve_part(rows, columns, masses[columns])
        duals[rows] = found[:-1]
        excesses.append(Fraction(found[-1]) * scaled.unit)
    multipliers = scaled.round_multipliers(duals, given)
    for place, share in enumerate(program.shares):
        multipliers[place] += max(excesses) * share
    return multipliers


def subtract_rows(
    program: ExactProgram, costs: Sequence[Fraction], multipliers: Mapping[int, Fraction]
) -> list[Fraction]:
    """Return what multipliers of rows leave of the costs."""
    found = list(costs)
    for place, multiplier in multipliers.items():
        for column, value in program.rows[place].terms.items():
            found[column] -= multiplier * value
    return found


@dataclass(frozen=True, eq=False)
class ScaledProgram:
    """A program in floats, its rows and its costs each divided by a power of two.

    Attributes:
        program: in rationals.
        matrix: (R, C) the rows.
        right: (R,) the right sides.
        costs: (C,) what is maximised.
        row_units: (R,) by what the rows were divided.
        unit: by what the costs were.
    """

    program: ExactProgram
    matrix: sparse.csr_array
    right: FloatArray
    costs: FloatArray
    row_units: list[Fraction]
    unit: Fraction

    @classmethod
    def build(cls, program: ExactProgram, costs: Sequence[Fraction]) -> ScaledProgram:
        """Scale a program, with these costs in place of its own."""
        units = [_round_to_power_of_two(row.terms.values()) for row in program.rows]
        pairs = list(zip(program.rows, units, strict=True))
        data = [float(value / unit) for row, unit in pairs for value in row.terms.values()]
        columns = [column for row in program.rows for column in row.terms]
        starts = np.cumsum([0, *(len(row.terms) for row in program.rows)])
        matrix = sparse.csr_array(
            (np.array(data, dtype=float), columns, starts), shape=(len(units), len(costs))
        )
        right = np.array([float(row.right / unit) for row, unit in pairs])
        unit = _round_to_power_of_two(costs)
        scaled = np.array([float(cost / unit) for cost in costs])
        return cls(program, matrix, right, scaled, units, unit)

    def solve_part(
        self, rows: IntArray, columns: IntArray, mean: FloatArray | None = None
    ) -> FloatArray:
        """Find the multipliers of some rows for some columns by HiGHS.

        Args:
            rows: their places.
            columns: the same.
            mean: what is one, as the last row; left out, there is no such row.
        """
        from pmlopt.solvers import highs

        matrix, right = self.matrix[rows][:, columns], self.right[rows]
        equal = np.array([self.program.rows[row].equal for row in rows], dtype=bool)
        costs = self.costs[columns]
        if mean is not None:
            # one more column takes what is short of the mean of one, for as little as no other
            least = -2 * float((np.abs(costs) / np.where(mean > 0, mean, np.inf)).max(initial=1.0))
            matrix = sparse.block_array(
                [[matrix, sparse.csr_array((len(rows), 1))], [mean[None], np.ones((1, 1))]]
            )
            right, equal, costs = (
                np.append(right, 1),
                np.append(equal, True),
                np.append(costs, least),
            )
        # the objective in large units, since the tolerance of a multiplier is absolute
        large = 2.0**10
        limits = np.where(equal, right, -np.inf), right
        model = highs.build_sparse_model(-costs * large, (0.0, np.inf), limits, matrix)
        solver = highs.load_model(model, highs.RESTART_OPTIONS)
        solver.run()
        duals = -np.array(solver.getSolution().row_dual) / large
        if len(duals) != len(right) or not np.isfinite(duals).all():
            raise SolverError("HiGHS finds no multipliers of the linear program")
        return duals

    def round_multipliers(
        self, duals: FloatArray, offsets: Mapping[int, Fraction]
    ) -> list[Fraction]:
        """Return multipliers of the unscaled rows: short binary fractions, and what was known of them."""
        found = []
        grid = compute_grid([self.unit])
        pairs = zip(duals.tolist(), self.row_units, self.program.rows, strict=True)
        for place, (dual, unit, row) in enumerate(pairs):
            value = Fraction(round(Fraction(dual) * self.unit / unit * grid)) / grid
            value += offsets.get(place, ZERO)
            found.append(value if row.equal else max(value, ZERO))
        return found


def _round_to_power_of_two(numbers: Sequence[Fraction]) -> Fraction:
    """Return a power of two near the largest size of some numbers; 1 where all are 0."""
    largest = max(map(abs, numbers), default=ZERO)
    if not largest:
        return Fraction(1)
    return Fraction(2) ** (largest.numerator.bit_length() - largest.denominator.bit_length())


def compute_grid(numbers: Sequence[Fraction]) -> Fraction:
    """Return how many steps one has on the grid of multipliers: 2^64 for the largest of some numbers."""
    return Fraction(2**64) / _round_to_power_of_two(numbers)


def complete_duals(
    program: ExactProgram, costs: Sequence[Fraction], multipliers: Sequence[Fraction]
) -> DualPoint:
    """Raise multipliers until the combination of the rows is at least the costs, column by column.

    Columns come last first: what a row adds for one of them is no less for those before. In the end the rows
    of the mechanism make good what is left.

    Raises:
        SolverError: a variable that no row supports lacks something.
    """
    entries, found = program.entries_by_column, list(multipliers)
    supports = _find_supports(program)
    grid = compute_grid([*costs, *multipliers])
    for column in reversed(range(len(program.columns))):
        if column in program.completions:
            program.completions[column](found)
        lack = costs[column] - sum((value * found[row] for row, value in entries[column]), ZERO)
        if lack > 0:
            if not supports[column]:
                raise SolverError(
                    f"the multipliers of the linear program lack {float(lack):.3g} at the variable "
                    f"{program.columns[column]}, and no row makes it good"
                )
            _, place = min(supports[column], key=lambda one: (one[0], -found[one[1]]))
            coefficient = program.rows[place].terms[column]
            found[place] += Fraction(math.ceil(lack / coefficient * grid)) / grid
    signs = [
        sum((value * found[row] for row, value in own), ZERO) - cost
        for own, cost in zip(entries, costs, strict=True)
    ]
    bound = sum((value * row.right for value, row in zip(found, program.rows, strict=True)), ZERO)
    assert min(signs, default=ZERO) >= 0  # exact: nothing was raised after its column was looked at
    return DualPoint(found, signs, bound)


def _find_supports(program: ExactProgram) -> list[list[tuple[Fraction, int]]]:
    """List for each column the rows that can make good what a dual point lacks of it, and at what cost.

    Their coefficient on it is positive, and on columns that came after it none is negative. The cost of one
    is what the bound grows by, and what is then lacking of the columns before.
    """
    found: list[list[tuple[Fraction, int]]] = [[] for _ in program.columns]
    for place, row in enumerate(program.rows):
        price = _price_row(row)
        for column in sorted(row.terms, reverse=True):
            if row.terms[column] < 0:
                break
            found[column].append((price / row.terms[column], place))
    return found


def _price_row(row: ExactRow) -> Fraction:
    """Return what one of a row costs: its right side, and its negative coefficients."""
    return abs(row.right) - sum((value for value in row.terms.values() if value < 0), ZERO)
