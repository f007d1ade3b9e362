"""The search for the best trade-off: mechanisms by formula, a row for each value, then for each class."""

from __future__ import annotations

from pmlopt.core.arrays import FloatArray
from pmlopt.programs.tradeoff.certifying import likely_within
from pmlopt.programs.tradeoff.cutting_planes import (
    AUDIT_SHARE,
    LONG_AUDIT_SHARE,
    MET,
    OUT_OF_TIME,
    CuttingPlanePhase,
    SearchState,
)
from pmlopt.programs.tradeoff.grouped_rows import (
    Family,
    GroupedRows,
    families,
    heaviest,
    searched_rows,
    within_distortion,
)

COARSE_SHARE = 0.75
"""The part of the time for mechanisms with a row for each value of the query, where there are many more
classes than values: audits of more rows hardly ever end in time."""

MANY_CLASSES = 2
"""For each value of the query."""

FAMILY_STEPS = 3
"""Members of a family that are audited to find one that leaks as much as is allowed."""


def search(state: SearchState, first: FloatArray | None) -> str:
    """Search few rows, then all; how it ended, in words.

    Mechanisms by formula are audited first, so that there is something in hand whatever happens. Where there
    are many more classes than values, the best with a row for each value is audited before others are sought:
    the local method alone may go round for hours among priors that are nearly alike. Otherwise it is where
    these begin, and audited where the gap stays open.

    Args:
        state: what is known so far, which the search adds to.
        first: (K, M) a mechanism against which the first priors are found; None for one of no account.
    """
    plans = searched_rows(state.program)
    _consider_families(state, plans[0])
    ending, coarse = OUT_OF_TIME, None
    first_certain = plans[-1].count > MANY_CLASSES * plans[0].count
    for rows in plans:
        if state.late and state.best is not None and rows is not plans[0]:
            break
        last = rows is plans[-1]
        until = state.clock if last else state.clock.part(COARSE_SHARE)
        long = state.program.sense == "distortion" or (first_certain and not last)
        phase = CuttingPlanePhase(
            state,
            rows,
            until,
            last or first_certain,
            LONG_AUDIT_SHARE if long else AUDIT_SHARE,
            first,
        )
        ending = phase.run()
        if state.met:
            return MET
        if not last:  # among many priors that are nearly alike multipliers blur
            coarse = phase.last
            state.priors = state.priors if phase.proof is None else heaviest(phase.proof)
    if not (first_certain or state.late) and coarse is not None:
        state.consider(coarse)
        ending = MET if state.met else ending
    if state.best is None:
        state.consider(state.program.constant)
    return ending


def _consider_families(state: SearchState, rows: GroupedRows) -> None:
    """The symmetric channel and the exponential mechanism, each by one relaxation."""
    if state.program.sense == "distortion":
        state.consider(state.program.constant, 1)
    for family in families(rows):
        if state.best is not None and state.late:
            return
        if state.program.sense == "leakage":
            state.consider(within_distortion(rows, family), 1)
        else:
            _within_leakage(state, family)


def _within_leakage(state: SearchState, family: Family) -> None:
    """Look for the member of a family that leaks as much as is allowed, and audit it."""
    matrix = family(0.5)
    for _ in range(FAMILY_STEPS):
        audit = state.consider(matrix, 1)
        if audit.value <= 0 or state.late:
            return
        matrix = likely_within(state.program, family, audit, state.program.limit)
    state.consider(matrix, 1)
