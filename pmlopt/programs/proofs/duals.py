"""Dual points of linear programs over the rationals: from HiGHS in floats, completed in fractions."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np

from pmlopt.core.arrays import FloatArray
from pmlopt.core.lazy_imports import sparse
from pmlopt.errors import SolverError
from pmlopt.programs.proofs.exact_program import ZERO, ExactProgram, Terms


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
    """Find multipliers of the rows by HiGHS, and correct their rounding at its basis."""
    # what all entries of a row of the mechanism share of the costs would hide their differences
    rest, found = dict(costs), [ZERO] * len(program.rows)
    for place, row in enumerate(program.rows[: program.letter_count]):
        found[place] = max(
            (rest.get(k, ZERO) / value for k, value in row.terms.items()), default=ZERO
        )
        for column, value in row.terms.items():
            rest[column] = rest.get(column, ZERO) - found[place] * value
    unit = round_to_power_of_two(rest.values())
    solved = [float(rest.get(column, ZERO) / unit) for column in range(len(program.columns))]
    rows, columns, system = _find_basis(program, np.array(solved))
    # each step has all digits of a float of what the steps before it left
    for _ in range(3):
        lacks = [program.compute_lack(column, costs, found) for column in columns]
        size = round_to_power_of_two(lacks)
        step = system.solve(np.array([float(lack / size) for lack in lacks]))
        for row, value in zip(rows, step.tolist(), strict=True):
            found[row] += Fraction(value) * size
    grid = compute_grid([unit])
    rounded = [Fraction(round(value * grid)) / grid for value in found]
    pairs = zip(program.rows, rounded, strict=True)
    return [value if row.equal else max(value, ZERO) for row, value in pairs]


def _find_basis(program: ExactProgram, costs: FloatArray) -> tuple[list[int], list[int], Any]:
    """Find the rows and columns of the basis where costs are maximised, and factors of its system."""
    from scipy.sparse.linalg import splu

    from pmlopt.solvers import highs

    rows = program.rows
    data = np.array([float(value) for row in rows for value in row.terms.values()])
    places = [column for row in rows for column in row.terms]
    starts = np.cumsum([0, *(len(row.terms) for row in rows)])
    matrix = sparse.csr_array((data, places, starts), (len(rows), len(costs)))
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
    basis = solver.getBasis()
    tight = [place for place, one in enumerate(basis.row_status) if one.name != "kBasic"]
    basic = [place for place, one in enumerate(basis.col_status) if one.name == "kBasic"]
    if not basis.valid or len(tight) != len(basic):
        raise SolverError("HiGHS finds no multipliers of the linear program")
    return tight, basic, splu(matrix[tight][:, basic].T.tocsc())


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
    supports = _find_supports(program)
    found, grid = list(multipliers), compute_grid([*costs.values(), *multipliers])
    for column in reversed(range(len(program.columns))):
        if column in program.completions:
            program.completions[column](found)
        lack = program.compute_lack(column, costs, found)
        if lack > 0:
            if not supports[column]:
                raise SolverError(
                    f"the multipliers of the linear program lack {float(lack):.3g} at the variable "
                    f"{program.columns[column]}, and no row makes it good"
                )
            _, place = min(supports[column], key=lambda one: (one[0], -found[one[1]]))
            coefficient = program.rows[place].terms[column]
            found[place] += Fraction(math.ceil(lack / coefficient * grid)) / grid
    columns = range(len(program.columns))
    signs = [-program.compute_lack(column, costs, found) for column in columns]
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
