"""Dual points of linear programs over the rationals: from HiGHS in floats, completed until they prove exactly."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from pmlopt.core.lazy_imports import sparse
from pmlopt.errors import SolverError
from pmlopt.programs.proofs.exact_program import ZERO, ExactProgram

MULTIPLIER_BITS = 64
"""Binary digits after the point of multipliers, in units of the largest coefficient of the objective."""


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


def prove_bound(program: ExactProgram, guess: Sequence[Fraction] | None = None) -> DualPoint:
    """Find a dual point of a program: what HiGHS finds of the maximum, completed in rationals.

    Args:
        program: feasible.
        guess: multipliers of the rows from which to start; left out, those of HiGHS.

    Raises:
        SolverError: HiGHS finds none, or what a variable lacks cannot be made good.
    """
    sign = 1 if program.is_maximised else -1
    costs = [ZERO] * len(program.columns)
    for column, value in program.objective.items():
        costs[column] = sign * value
    found = list(guess) if guess is not None else find_multipliers(program, costs)
    return complete_duals(program, costs, found)


def find_multipliers(program: ExactProgram, costs: Sequence[Fraction]) -> list[Fraction]:
    """Find multipliers of the rows by HiGHS, rounded to short binary fractions.

    What all entries of a row of the mechanism share of the costs is taken off first, and added in rationals.
    """
    from pmlopt.solvers import highs

    offsets = _find_common_costs(program, costs)
    centred = list(costs)
    for row, offset in offsets.items():
        for column in program.rows[row].terms:
            centred[column] -= offset
    unit = _round_to_power_of_two(max((abs(value) for value in centred), default=ZERO))
    matrix, units = build_float_rows(program)
    right = np.array([float(row.right / units[k]) for k, row in enumerate(program.rows)])
    low = np.where([row.equal for row in program.rows], right, -np.inf)
    # the objective in large units, since the tolerance of a multiplier is absolute
    large = 2.0**10
    scaled = np.array([float(value / unit) for value in centred]) * large
    model = highs.build_sparse_model(-scaled, (0.0, np.inf), (low, right), matrix)
    solver = highs.load_model(model, highs.RESTART_OPTIONS)
    solver.run()
    duals = -np.array(solver.getSolution().row_dual) / large
    if len(duals) != len(program.rows) or not np.isfinite(duals).all():
        raise SolverError("HiGHS finds no multipliers of the linear program")
    grid = Fraction(2**MULTIPLIER_BITS)
    found = []
    for place, (row, dual) in enumerate(zip(program.rows, duals.tolist(), strict=True)):
        value = Fraction(round(Fraction(dual) / units[place] * grid)) / grid * unit
        found.append((value if row.equal else max(value, ZERO)) + offsets.get(place, ZERO))
    return found


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
    top = max((abs(value) for value in costs), default=ZERO)
    grid = Fraction(2**MULTIPLIER_BITS) / _round_to_power_of_two(top)
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
