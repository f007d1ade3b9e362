"""Dual points of linear programs over the rationals: from HiGHS in floats, completed in fractions."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from pmlopt.core.arrays import FloatArray
from pmlopt.core.lazy_imports import sparse
from pmlopt.errors import SolverError
from pmlopt.programs.proofs.exact_program import ONE, ZERO, ExactProgram, Terms
from pmlopt.programs.proofs.requirement_rows import MechanismRows


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


def prove_bound(program: ExactProgram, costs: Terms) -> DualPoint:
    """Find a dual point of the maximum of costs: what HiGHS finds, completed in rationals.

    Raises:
        SolverError: HiGHS finds none, or what a variable lacks cannot be made good.
    """
    return complete_duals(program, costs, find_multipliers(program, costs))


def find_multipliers(program: ExactProgram, costs: Terms) -> list[Fraction]:
    """Find multipliers of the rows by HiGHS, rounded to short binary fractions."""
    # what all entries of a row of the mechanism share of the costs would hide their differences
    rest = [costs.get(column, ZERO) for column in range(len(program.columns))]
    common = {}
    for place, row in enumerate(program.rows[: program.letter_count]):
        common[place] = max((rest[k] / value for k, value in row.terms.items()), default=ZERO)
        for column, value in row.terms.items():
            rest[column] -= common[place] * value
    unit = round_to_power_of_two(rest)
    duals = _solve_for_duals(program, np.array([float(cost / unit) for cost in rest]))
    grid, found = compute_grid([unit]), []
    for place, (row, dual) in enumerate(zip(program.rows, duals.tolist(), strict=True)):
        value = Fraction(round(Fraction(dual) * unit * grid)) / grid + common.get(place, ZERO)
        found.append(value if row.equal else max(value, ZERO))
    return found


def _solve_for_duals(program: ExactProgram, costs: FloatArray) -> FloatArray:
    """Return the multipliers of the rows where costs are maximised, in floats."""
    from pmlopt.solvers import highs

    rows = program.rows
    data = np.array([float(value) for row in rows for value in row.terms.values()])
    columns = [column for row in rows for column in row.terms]
    starts = np.cumsum([0, *(len(row.terms) for row in rows)])
    matrix = sparse.csr_array((data, columns, starts), (len(rows), len(costs)))
    right = np.array([float(row.right) for row in rows])
    left = np.where([row.equal for row in rows], right, -np.inf)
    # the objective in large units, since the tolerance of a multiplier is absolute
    large, options = 2.0**10, dict(highs.RESTART_OPTIONS)
    model = highs.build_sparse_model(-costs * large, (0.0, np.inf), (left, right), matrix)
    # of many outputs together the simplex takes hours
    if len(costs) > 3000:
        options |= {"solver": "ipm", "presolve": "on"}
    solver = highs.load_model(model, options)
    solver.run()
    duals = -np.array(solver.getSolution().row_dual) / large
    if len(duals) != len(rows) or not np.isfinite(duals).all():
        raise SolverError("HiGHS finds no multipliers of the linear program")
    return duals


def round_to_power_of_two(numbers: Iterable[Fraction]) -> Fraction:
    """Return a power of two near the largest size of some numbers; 1 where all are 0."""
    largest = max(map(abs, numbers), default=ZERO)
    if not largest:
        return Fraction(1)
    return Fraction(2) ** (largest.numerator.bit_length() - largest.denominator.bit_length())


def compute_grid(numbers: Iterable[Fraction]) -> Fraction:
    """Return how many steps one has on the grid of multipliers: 2^64 for the largest of some numbers."""
    return Fraction(2**64) / round_to_power_of_two(numbers)


def complete_duals(
    program: ExactProgram, costs: Terms, multipliers: Sequence[Fraction]
) -> DualPoint:
    """Raise multipliers until the combination of the rows is at least the costs, column by column.

    Columns come last first: what a row adds for one of them is no less for those before. In the end the rows
    of the mechanism make good what is left.

    Raises:
        SolverError: a variable that no row supports lacks something.
    """
    entries, supports = program.entries_by_column, _find_supports(program)
    found, grid = list(multipliers), compute_grid([*costs.values(), *multipliers])
    for column in reversed(range(len(program.columns))):
        if column in program.completions:
            program.completions[column](found)
        lack = costs.get(column, ZERO) - sum(
            (value * found[row] for row, value in entries[column]), ZERO
        )
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
        sum((value * found[row] for row, value in own), -costs.get(column, ZERO))
        for column, own in enumerate(entries)
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
        cost = abs(row.right) - sum((value for value in row.terms.values() if value < 0), ZERO)
        for column in sorted(row.terms, reverse=True):
            if row.terms[column] < 0:
                break
            found[column].append((cost / row.terms[column], place))
    return found


def find_fixed_point_multipliers(rows: MechanismRows, costs: Terms) -> list[Fraction]:
    """Find multipliers of the rows of PML at one prior, and of the mean, without a solver.

    The mean, in the first row, has a little less than the letters collect of the costs. Of what it leaves an
    output has weights `w_x = max(0, h_x + E p_x T)`, and T is their sum: a fixed point. Where the pairs that
    may occur all but exclude an output, the weights are larger than a solver in floats finds them.
    """
    program, size = rows.program, len(rows.letters)
    found = [ZERO] * len(program.rows)
    letters = (costs.get(rows.get_cell(x, 0), ZERO) for x in range(size))
    found[0] = sum(letters, ZERO) * (1 - Fraction(1, 2**40))
    (factor,) = program.powers.values()
    laws, limits = (program.find_rows(kind) for kind in ("q[", "most["))
    excluded = {
        column for place in program.find_rows("never[") for column in program.rows[place].terms
    }
    for y, law in enumerate(laws):
        places = zip(
            limits[y * size : (y + 1) * size], rows.list_column(y), rows.shares, strict=True
        )
        own = [
            (place, p, costs.get(cell, ZERO) - p * found[0])
            for place, cell, p in places
            if cell not in excluded
        ]
        total = _find_fixed_point([(p, cost) for _, p, cost in own], factor)
        found[law] = factor * total
        for place, p, cost in own:
            found[place] = max(ZERO, cost + factor * p * total)
    return found


def _find_fixed_point(pairs: Sequence[tuple[Fraction, Fraction]], factor: Fraction) -> Fraction:
    """Find the least T >= 0 with `sum max(0, cost + factor share T) <= T`, or the nearest to that."""
    total = ZERO
    while True:
        used = [(share, cost) for share, cost in pairs if cost + factor * share * total > 0]
        slope = ONE - factor * sum((share for share, _ in used), ZERO)
        gained = sum((cost for _, cost in used), ZERO)
        if gained <= slope * total or slope <= 0:
            return total
        total = gained / slope
