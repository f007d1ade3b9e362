"""Dual points of linear programs over the rationals: from HiGHS in floats, completed in fractions."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from pmlopt.core.arrays import FloatArray
from pmlopt.core.lazy_imports import sparse
from pmlopt.errors import SolverError
from pmlopt.programs.proofs.exact_program import ZERO, ExactProgram


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


def prove_bound(program: ExactProgram, prices: Sequence[Fraction] = ()) -> DualPoint:
    """Find a dual point of a program: what HiGHS finds of the maximum, completed in rationals.

    Args:
        program: feasible.
        prices: multipliers of the first rows, those of the letters of a mechanism, where they are known: the
            program then falls into one for each output, which takes seconds where the whole takes an hour.

    Raises:
        SolverError: HiGHS finds none, or what a variable lacks cannot be made good.
    """
    costs = list_costs(program)
    if prices:
        return complete_duals(program, costs, find_separate_multipliers(program, costs, prices))
    return complete_duals(program, costs, find_multipliers(program, costs))


def list_costs(program: ExactProgram) -> list[Fraction]:
    """List the coefficients of what is maximised: the objective, or minus that."""
    sign = 1 if program.is_maximised else -1
    return [sign * program.objective.get(column, ZERO) for column in range(len(program.columns))]


def find_multipliers(program: ExactProgram, costs: Sequence[Fraction]) -> list[Fraction]:
    """Find multipliers of the rows by HiGHS, rounded to short binary fractions.

    What all entries of a row of the mechanism share of the costs is taken off first, and added in rationals.
    """
    offsets = _find_common_costs(program, costs)
    centred = list(costs)
    for row, offset in offsets.items():
        for column in program.rows[row].terms:
            centred[column] -= offset
    matrix, units = build_float_rows(program)
    right = np.array([float(row.right / units[k]) for k, row in enumerate(program.rows)])
    low = np.where([row.equal for row in program.rows], right, -np.inf)
    unit = _round_to_power_of_two(max(map(abs, centred), default=ZERO))
    duals = _solve_for_duals(matrix, low, right, np.array([float(cost / unit) for cost in centred]))
    found = _round_multipliers(
        program,
        [Fraction(dual) * unit / own for dual, own in zip(duals.tolist(), units, strict=True)],
        unit,
    )
    for row, offset in offsets.items():
        found[row] += offset
    return found


def _solve_for_duals(
    matrix: sparse.csr_array, low: FloatArray, high: FloatArray, costs: FloatArray
) -> FloatArray:
    """Return the multipliers of the rows in `max <costs, v>`, `low <= A v <= high`, `v >= 0`."""
    from pmlopt.solvers import highs

    # the objective in large units, since the tolerance of a multiplier is absolute
    large = 2.0**10
    model = highs.build_sparse_model(-costs * large, (0.0, np.inf), (low, high), matrix)
    solver = highs.load_model(model, highs.RESTART_OPTIONS)
    solver.run()
    duals = -np.array(solver.getSolution().row_dual) / large
    if len(duals) != len(low) or not np.isfinite(duals).all():
        raise SolverError("HiGHS finds no multipliers of the linear program")
    return duals


def _round_multipliers(
    program: ExactProgram, duals: Sequence[Fraction], unit: Fraction
) -> list[Fraction]:
    """Round multipliers to short binary fractions, those of inequalities of at least 0."""
    grid = compute_grid([unit])
    rounded = [Fraction(round(dual * grid)) / grid for dual in duals]
    return [
        value if row.equal else max(value, ZERO)
        for value, row in zip(rounded, program.rows, strict=True)
    ]


def find_separate_multipliers(
    program: ExactProgram, costs: Sequence[Fraction], prices: Sequence[Fraction]
) -> list[Fraction]:
    """Find multipliers of the other rows for given ones of the letters, part by part of the program.

    Parts are what no row but those of the letters couples, such as the outputs. Of each the most that a
    column of mean one collects is found; the largest of these, times the prior, is added to the given ones.
    """
    from scipy.sparse.csgraph import connected_components

    count = len(prices)
    priced = list(costs)
    for row, price in zip(program.rows, prices, strict=False):
        for column in row.terms:
            priced[column] -= price
    unit = _round_to_power_of_two(max(map(abs, priced), default=ZERO))
    scaled = np.array([float(cost / unit) for cost in priced])
    masses = np.zeros(len(program.columns))
    for row, mass in zip(program.rows, program.masses, strict=False):
        masses[list(row.terms)] = float(mass)
    matrix, units = build_float_rows(program)
    matrix, own_units = matrix[count:], units[count:]
    links = sparse.block_array([[None, matrix.T], [matrix, None]], format="csr")
    parts, part_of = connected_components(links, directed=False)
    # where no column of mean one is allowed, what it would collect is as little as this
    least = -2 * float((np.abs(scaled) / np.where(masses > 0, masses, np.inf)).max(initial=1.0))
    duals, excess = np.zeros(len(own_units)), least
    for part in range(parts):
        columns = np.flatnonzero(part_of[: len(costs)] == part)
        within = matrix[:, columns]
        rows = np.flatnonzero(np.diff(within.indptr))
        # one more column takes what is short of the mean of one
        mean = np.append(masses[columns], 1.0)[None]
        none = sparse.csr_array((len(rows), 1))
        system = sparse.vstack(
            [sparse.hstack([within[rows], none]), sparse.csr_array(mean)], format="csr"
        )
        right = np.array(
            [float(program.rows[count + k].right / own_units[k]) for k in rows] + [1.0]
        )
        equal = np.array([program.rows[count + k].equal for k in rows] + [True])
        own_costs = np.append(scaled[columns], least)
        found = _solve_for_duals(system, np.where(equal, right, -np.inf), right, own_costs)
        duals[rows], excess = found[:-1], max(excess, float(found[-1]))
    multipliers = [
        Fraction(dual) * unit / own for dual, own in zip(duals.tolist(), own_units, strict=True)
    ]
    raised = [
        price + Fraction(excess) * unit * mass
        for price, mass in zip(prices, program.masses, strict=True)
    ]
    return _round_multipliers(program, [*raised, *multipliers], unit)


def _find_common_costs(program: ExactProgram, costs: Sequence[Fraction]) -> dict[int, Fraction]:
    """Return for each equation of a row of the mechanism the largest cost of its entries."""
    found = {}
    for place, row in enumerate(program.rows):
        if row.equal and row.name.startswith("row["):
            found[place] = max((costs[column] for column in row.terms), default=ZERO)
    return found


def _round_to_power_of_two(number: Fraction) -> Fraction:
    """Return a power of two near a number of at least 0; 1 for 0."""
    if not number:
        return Fraction(1)
    return Fraction(2) ** (number.numerator.bit_length() - number.denominator.bit_length())


def compute_grid(numbers: Sequence[Fraction]) -> Fraction:
    """Return how many steps one has on the grid of multipliers: 2^64 for the largest of some numbers."""
    return Fraction(2**64) / _round_to_power_of_two(max(map(abs, numbers), default=ZERO))


def build_float_rows(program: ExactProgram) -> tuple[sparse.csr_array, list[Fraction]]:
    """Return the rows in floats, each divided by a power of two, and those powers."""
    units, data, columns, starts = [], [], [], [0]
    for row in program.rows:
        units.append(_round_to_power_of_two(max(map(abs, row.terms.values()), default=ZERO)))
        data += [float(value / units[-1]) for value in row.terms.values()]
        columns += list(row.terms)
        starts.append(len(data))
    shape = (len(program.rows), len(program.columns))
    return sparse.csr_array((np.array(data, dtype=float), columns, starts), shape=shape), units


def complete_duals(
    program: ExactProgram, costs: Sequence[Fraction], multipliers: list[Fraction]
) -> DualPoint:
    """Raise multipliers until the combination of the rows is at least the costs, column by column.

    Columns come last first: what a row adds for one of them is no less for those before. In the end the rows
    of the mechanism make good what is left.

    Raises:
        SolverError: a variable that no row supports lacks something.
    """
    entries, found = program.entries_by_column, list(multipliers)
    grid = compute_grid([*costs, *multipliers])
    signs = [ZERO] * len(program.columns)
    for column in reversed(range(len(program.columns))):
        if column in program.completions:
            program.completions[column](found)
        own = entries[column]
        lack = costs[column] - sum((value * found[row] for row, value in own), ZERO)
        if lack > 0:
            support = max(program.supports[column], key=found.__getitem__, default=-1)
            if support < 0:
                raise SolverError(
                    f"the multipliers of the linear program lack {float(lack):.3g} at the variable "
                    f"{program.columns[column]}, and no row makes it good"
                )
            coefficient = dict(own)[support]
            found[support] += Fraction(math.ceil(lack / coefficient * grid)) / grid
    for column, own in enumerate(entries):
        signs[column] = sum((value * found[row] for row, value in own), ZERO) - costs[column]
    bound = sum((value * row.right for value, row in zip(found, program.rows, strict=True)), ZERO)
    assert min(signs, default=ZERO) >= 0  # exact: nothing was raised after its column was looked at
    return DualPoint(found, signs, bound)
