"""Multipliers of PML at one prior, output by output: fixed points in fractions, without a solver.

Of costs h an output has weights `w_x = max(0, h_x + E p_x T)`, and T is their sum: a fixed point, of which the
least is found by Newton's steps in fractions. Where the pairs that may occur all but exclude an output, the
weights are larger than a solver in floats finds them.
"""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction

from pmlopt.programs.proofs.exact_program import ONE, ZERO, Terms
from pmlopt.programs.proofs.mechanism_rows import MechanismRows


def find_fixed_point_multipliers(rows: MechanismRows, costs: Terms) -> list[Fraction]:
    """Find multipliers of the rows of PML at one prior for costs of the entries."""
    program, size = rows.program, len(rows.letters)
    found = [ZERO] * len(program.rows)
    (factor,) = program.powers.used.values()
    laws, limits = (program.find_rows(kind) for kind in ("q[", "most["))
    excluded = {
        column for place in program.find_rows("never[") for column in program.rows[place].terms
    }
    for y, law in enumerate(laws):
        places = zip(
            limits[y * size : (y + 1) * size], rows.list_column(y), rows.shares, strict=True
        )
        own = [(place, p, costs[cell]) for place, cell, p in places if cell not in excluded]
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
