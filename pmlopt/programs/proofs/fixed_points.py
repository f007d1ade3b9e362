"""Multipliers of PML at one prior, output by output: fixed points in fractions, without a solver.

For prices r of the letters an output has weights `w_x = max(0, h_x + E p_x T)` with `h_x = c_x - r_x` and
their sum T: that is a fixed point, and the least one is found by Newton's steps in fractions. There is one
where no column of mean one collects more than nothing of h; prices are moved along the prior until none does.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from fractions import Fraction

from pmlopt.programs.proofs.exact_program import ONE, ZERO, ExactProgram
from pmlopt.programs.proofs.mechanism_rows import MechanismRows


def has_one_limit(program: ExactProgram) -> bool:
    """Return whether the rows of a program are those of PML at one prior only."""
    kinds = {row.name.partition("[")[0] for row in program.rows}
    return kinds <= {"row", "law", "power", "most"} and len(program.powers.used) == 1


def find_fixed_point_multipliers(
    rows: MechanismRows, costs: Sequence[Fraction], prices: Sequence[Fraction], grid: Fraction
) -> list[Fraction]:
    """Find multipliers of the rows for given ones of the letters, which are moved along the prior.

    Args:
        rows: of PML at one prior only.
        costs: of the columns.
        prices: of the letters.
        grid: how many steps one has, to which weights are rounded up.
    """
    program, shares = rows.program, rows.prior
    bounds = {
        column: place
        for place, row in enumerate(program.rows)
        if not row.equal
        for column, value in row.terms.items()
        if value == 1
    }
    factor = max(program.powers.used.values(), default=ONE)
    outputs = [rows.list_column(y) for y in range(len(rows.outputs))]
    excesses = [
        _find_largest_mean([(shares[x], costs[cell] - prices[x]) for x, cell in own], factor)
        for own in outputs
    ]
    # no column of mean one has its letters among those of such an output
    shift = max((one for one in excesses if one is not None), default=-ONE)
    shift = Fraction(math.ceil(shift * grid)) / grid
    found = [ZERO] * len(program.rows)
    found[: len(prices)] = [r + shift * p for r, p in zip(prices, shares, strict=True)]
    for own in outputs:
        pairs = [(shares[x], costs[cell] - found[x]) for x, cell in own]
        total = _find_fixed_point(pairs, factor)
        for (_, cell), (share, rest) in zip(own, pairs, strict=True):
            weight = max(ZERO, rest + factor * share * total)
            found[bounds[cell]] = Fraction(math.ceil(weight * grid)) / grid
    return found


def _find_largest_mean(
    pairs: Sequence[tuple[Fraction, Fraction]], factor: Fraction
) -> Fraction | None:
    """Find the most that a column of mean one, with entries up to a factor, collects; None without a column.

    Args:
        pairs: the probability of each letter, and what is collected of it by an entry of one.
        factor: the largest entry.
    """
    room, total = ONE, ZERO
    for share, rest in sorted(pairs, key=lambda pair: pair[1] / pair[0], reverse=True):
        taken = min(factor * share, room)
        total, room = total + taken / share * rest, room - taken
        if not room:
            return total
    return None


def _find_fixed_point(pairs: Sequence[tuple[Fraction, Fraction]], factor: Fraction) -> Fraction:
    """Find the least T >= 0 with `sum max(0, rest + factor share T) <= T`, or the nearest to that."""
    total = ZERO
    while True:
        used = [(share, rest) for share, rest in pairs if rest + factor * share * total > 0]
        slope = ONE - factor * sum((share for share, _ in used), ZERO)
        gained = sum((rest for _, rest in used), ZERO)
        if gained <= slope * total or slope <= 0:
            return total
        total = gained / slope
