"""Dual points of linear programs over the rationals: the basis of HiGHS, completed in fractions."""

from __future__ import annotations

import math
from collections.abc import Iterable
from fractions import Fraction
from typing import Any

import numpy as np

from pmlopt.core.lazy_imports import sparse
from pmlopt.core.numbers.arrays import FloatArray
from pmlopt.errors import SolverError
from pmlopt.programs.proofs.exact_program import ONE, ZERO, ExactProgram, Terms


def prove_bound(program: ExactProgram, costs: Terms) -> list[Fraction]:
    """Find multipliers of the rows whose combination is at least the costs, column by column.

    Args:
        program: whose rows they are: at least 0 of inequalities.
        costs: the terms of which the right side of the combination is a bound.

    Raises:
        SolverError: HiGHS finds no basis, or a variable that no row supports lacks something.
    """
    found, grid = _find_multipliers(program, costs)
    entries = program.entries_by_column
    for column, mean in program.least_means.items():
        if mean.letters:
            # as much as the variable needs, of a law of the set near the multipliers
            needs = (-value * found[row] for row, value in entries[column] if value < 0)
            size = sum(needs, ZERO)
            law = np.array([float(found[row] / size) if size else 1.0 for row in mean.letters])
            _, shares = mean.prove(law)
            for row, share in shares.items():
                found[row] = size * share
    complete_multipliers(program, costs, found, grid)
    return found


def complete_multipliers(
    program: ExactProgram, costs: Terms, found: list[Fraction], grid: Fraction
) -> None:
    """Raise multipliers by steps of a grid, so that their combination is at least the costs.

    Columns come last first: what a row adds for one of them is no less for those before. In the end the rows
    of the mechanism make good what is left.

    Raises:
        SolverError: a variable that no row supports lacks something.
    """
    entries = program.entries_by_column
    supports = _find_supports(program)
    for column in reversed(range(len(program.columns))):
        products = (value * found[row] for row, value in entries[column])
        lack = costs.get(column, ZERO) - sum(products, ZERO)
        if lack > 0:
            if not supports[column]:
                raise SolverError(
                    f"the multipliers of the linear program lack {float(lack):.3g} at the variable "
                    f"{program.columns[column]}, and no row makes it good"
                )
            _, place = min(supports[column], key=lambda one: (one[0], -found[one[1]]))
            coefficient = program.rows[place].terms[column]
            found[place] += Fraction(math.ceil(lack / coefficient * grid)) / grid


def find_least_size(costs: Any, shares: Any) -> Fraction | None:
    """Find the least `t >= 0` with `sum max(0, costs + t shares) <= t`, by Newton steps; None without any.

    Examples:
        >>> costs = np.array([Fraction(1), Fraction(-1)])
        >>> find_least_size(costs, np.array([Fraction(1, 4), Fraction(1, 2)]))
        Fraction(4, 3)
    """
    size = ZERO
    while (raised := costs + size * shares)[raised > 0].sum() > size:
        room = 1 - shares[raised >= 0].sum()
        if room <= 0:
            return None
        size = costs[raised >= 0].sum() / room
    return size


def _find_multipliers(program: ExactProgram, costs: Terms) -> tuple[list[Fraction], Fraction]:
    """Find the multipliers of a basis, rounded to a grid, and how many of its steps one has."""
    found = [ZERO] * len(program.rows)

    def list_lacks() -> list[Fraction]:
        sums = program.combine(found)
        return [costs.get(column, ZERO) - value for column, value in enumerate(sums)]

    # what all entries of a row of the mechanism share of the costs would hide their differences
    for place, row in enumerate(program.rows[: program.letter_count]):
        found[place] = max(costs.get(column, ZERO) for column in row.terms)
    lacks = list_lacks()
    unit = _round_to_power_of_two(lacks)
    tight, basic = _find_basis(program, np.array([float(lack / unit) for lack in lacks]))
    basis = _to_sparse(program)[tight][:, basic]
    system = sparse.linalg.splu(basis.T.tocsc())
    # each step has some digits of what the steps before it left
    for _ in range(5):
        lacks = np.array(list_lacks())[basic].tolist()
        size = _round_to_power_of_two(lacks)
        step = system.solve(np.array([float(lack / size) for lack in lacks]))
        for place, value in zip(tight, step.tolist(), strict=True):
            found[place] += Fraction(value) * size
    grid = 2**64 / unit
    rounded = [Fraction(round(value * grid)) / grid for value in found]
    pairs = zip(program.rows, rounded, strict=True)
    return [value if row.equal else max(value, ZERO) for row, value in pairs], grid


def _find_basis(program: ExactProgram, costs: FloatArray) -> tuple[list[int], list[int]]:
    """Find the rows and the columns of the basis where costs are maximised, in floats."""
    from pmlopt.solvers import highs

    right = np.array([float(row.right) for row in program.rows])
    left = np.where([row.equal for row in program.rows], right, -np.inf)
    # the objective in large units, since the tolerance of a multiplier is absolute
    costs = -costs * 2.0**10
    model = highs.build_sparse_model(costs, (0.0, np.inf), (left, right), _to_sparse(program))
    solver = highs.load_model(model, highs.RESTART_OPTIONS)
    # of many outputs together the simplex takes hours, and it ends with an error now and then
    if len(costs) > 3000 or solver.run().name == "kError":
        options = {**highs.RESTART_OPTIONS, "solver": "ipm", "presolve": "on"}
        solver = highs.load_model(model, options)
        solver.run()
    tight, basic = highs.read_basis(solver)
    if not tight or len(tight) != len(basic):
        raise SolverError("HiGHS finds no basis of the linear program")
    return tight, basic


def _to_sparse(program: ExactProgram) -> sparse.csr_array:
    """Return the coefficients of the rows in floats."""
    data = np.array([float(value) for row in program.rows for value in row.terms.values()])
    places = [column for row in program.rows for column in row.terms]
    starts = np.cumsum([0, *(len(row.terms) for row in program.rows)])
    return sparse.csr_array((data, places, starts), (len(program.rows), len(program.columns)))


def _round_to_power_of_two(numbers: Iterable[Fraction]) -> Fraction:
    """Return a power of two near the largest size of some numbers; 1 where all are 0."""
    largest = max(map(abs, numbers), default=ZERO) or ONE
    return Fraction(2) ** (largest.numerator.bit_length() - largest.denominator.bit_length())


def _find_supports(program: ExactProgram) -> list[list[tuple[Fraction, int]]]:
    """List for each column the rows that can make good what a dual point lacks of it, and at what cost.

    Their coefficient on it is positive, and on columns that came after it none is negative. The cost of one
    is what the bound grows by, and what is then lacking of the columns before.
    """
    found: list[list[tuple[Fraction, int]]] = [[] for _ in program.columns]
    for place, row in enumerate(program.rows):
        negative = (value for value in row.terms.values() if value < 0)
        cost = abs(row.right) - sum(negative, ZERO)
        for column in sorted(row.terms, reverse=True):
            if row.terms[column] < 0:
                break
            found[column].append((cost / row.terms[column], place))
    return found
