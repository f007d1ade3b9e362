"""The programs at one level: optimum and slope against a dense program, multipliers at the least level."""

from __future__ import annotations

from typing import Literal

import numpy as np
import pytest
from oracles.designs import FloatArray, linear_program
from scipy.optimize import brentq

from pmlopt import ConvexHull, ExpectedGain, least_leakage, worst_case_utility
from pmlopt.programs.least_leakage.certificate import bound_exp_neg_level
from pmlopt.programs.least_leakage.level_programs import (
    BestGainPrograms,
    LargestMassPrograms,
    LevelProgram,
    build_level_program,
)
from pmlopt.programs.least_leakage.program import LeastLeakage
from pmlopt.solvers.solver_result import NO_DEADLINE

P = np.array([0.3, 0.2, 0.4, 0.1])
ORDER = np.array([[3, 2, 1], [1, 3, 2], [2, 1, 3], [3, 1, 2]])
GAINS = np.array([[1.0, 0.2, 0.0], [0.1, 0.9, 0.3], [0.0, 0.4, 1.2], [0.7, 0.1, 0.2]])
LAWS = np.array([[0.1, 0.5, 0.2, 0.2], [0.4, 0.2, 0.2, 0.2], [0.3, 0.3, 0.3, 0.1]])

LEAST, LEAST_OVER_LAWS = 0.5, 0.5
"""The largest e^-level at which rows can be full, for the prior and for all of the laws."""

Aim = Literal["rows", "gain", "mass"]


def with_ranks() -> LeastLeakage:
    return worst_case_utility(P, ORDER, 2, 3)


def with_gains() -> LeastLeakage:
    return least_leakage(P, ExpectedGain(GAINS), expected=0.85, outputs=3)


def dense_value(program: LeastLeakage, share: float, aim: Aim, laws: FloatArray = P[None]) -> float:
    """The least mean of short rows, the largest normalized gain, or the largest mass, by a dense program."""
    n, m = program.allowed.shape
    size = n * m + m + n  # entries, the largest of each output, and what rows are short of
    levels, peaks, sums = (
        np.zeros((len(laws) * m, size)),
        np.zeros((n * m, size)),
        np.zeros((n, size)),
    )
    for y in range(m):
        levels[y::m, n * m + y] = share
        for x in range(n):
            entry = x * m + y
            levels[y::m, entry] = -laws[:, x]
            peaks[entry, [entry, n * m + y]] = 1.0, -1.0
            sums[x, entry] = 1.0
    sums[:, n * m + m :] = np.eye(n)
    cost = np.zeros(size)
    if aim == "gain":
        assert program.floor is not None
        cost[: n * m] = -(P[:, None] * program.floor.normalized_gains).ravel()
    else:
        cost[n * m + m :] = P if aim == "mass" else 1 / n
    ends = [(0.0, 1.0 if free else 0.0) for free in program.allowed.ravel()]
    short = (0.0, 0.0 if aim == "gain" else 1.0)
    found = linear_program(
        cost,
        A_ub=np.vstack([levels, peaks]),
        b_ub=np.zeros(len(levels) + n * m),
        A_eq=sums,
        b_eq=np.ones(n),
        bounds=[*ends, *[(0.0, 1.0)] * m, *[short] * n],
    )
    return float(found.fun)


def slope_of(program: LeastLeakage, share: float, aim: Aim, laws: FloatArray = P[None]) -> float:
    ends = [dense_value(program, share + step, aim, laws) for step in (1e-5, -1e-5)]
    return (ends[0] - ends[1]) / 2e-5


def test_rows_can_be_full_up_to_the_stated_levels() -> None:
    program = with_ranks()
    for least, laws in ((LEAST, P[None]), (LEAST_OVER_LAWS, LAWS)):
        assert dense_value(program, least, "rows", laws) == pytest.approx(0.0, abs=1e-12)
        assert dense_value(program, least * (1 + 1e-5), "rows", laws) > 1e-6


@pytest.mark.parametrize("above", [0.01, 0.05, 0.2])
def test_short_rows_are_those_of_a_dense_program_and_its_multipliers_prove_a_level(
    above: float,
) -> None:
    program = with_ranks()
    share = LEAST * (1 + above)
    found = LevelProgram(program).solve_at(share, NO_DEADLINE)
    assert found.infeasibility > 1e-3
    assert found.infeasibility == pytest.approx(dense_value(program, share, "rows"), abs=1e-8)
    assert found.slope == pytest.approx(slope_of(program, share, "rows"), rel=1e-4)
    rows = found.point.sum(axis=1)
    assert (1 - rows).mean() == pytest.approx(found.infeasibility, abs=1e-8)
    assert (share * found.point.max(axis=0) <= P @ found.point + 1e-9).all()
    proved = float(bound_exp_neg_level(program.prior, program.allowed, None, found.multipliers))
    assert LEAST - 1e-12 <= proved < share


def test_multipliers_just_above_the_least_level_prove_it() -> None:
    program = with_ranks()
    for task in (LevelProgram(program), LargestMassPrograms(program)):
        found = task.solve_at(LEAST * (1 + 1e-6), NO_DEADLINE)
        proved = bound_exp_neg_level(program.prior, program.allowed, None, found.multipliers)
        assert float(proved) == pytest.approx(LEAST, rel=2e-6)


def test_all_rows_are_full_where_a_level_is_reached() -> None:
    program = with_ranks()
    share = 0.9 * LEAST
    for task in (LevelProgram(program), LargestMassPrograms(program)):
        found = task.solve_at(share, NO_DEADLINE)
        assert found.infeasibility == pytest.approx(0.0, abs=1e-9)
        assert found.point.sum(axis=1) == pytest.approx(np.ones(4), abs=1e-8)


@pytest.mark.parametrize("above", [0.01, 0.05, 0.2])
def test_the_largest_mass_is_that_of_a_dense_program(above: float) -> None:
    program = with_ranks()
    share = LEAST * (1 + above)
    found = LargestMassPrograms(program).solve_at(share, NO_DEADLINE)
    assert found.infeasibility == pytest.approx(dense_value(program, share, "mass"), abs=1e-8)
    assert found.slope == pytest.approx(slope_of(program, share, "mass"), rel=1e-3)
    assert 1 - float((P @ found.point).sum()) == pytest.approx(found.infeasibility, abs=1e-9)
    proved = float(bound_exp_neg_level(program.prior, program.allowed, None, found.multipliers))
    assert LEAST - 1e-12 <= proved < share


@pytest.mark.parametrize("factor", [0.9, 1.001, 1.1])
def test_the_best_gain_is_that_of_a_dense_program(factor: float) -> None:
    program = with_gains()
    floor = program.floor
    assert floor is not None
    least = brentq(lambda at: dense_value(program, at, "gain") + floor.min_gain, 0.2, 0.9)
    share = factor * least
    lost = dense_value(program, share, "gain")
    slope = slope_of(program, share, "gain")
    for task in (LevelProgram(program), BestGainPrograms(program)):
        found = task.solve_at(share, NO_DEADLINE)
        unit = -floor.min_gain if isinstance(task, LevelProgram) else 1.0
        assert found.infeasibility == pytest.approx((lost + floor.min_gain) / unit, abs=1e-7)
        assert found.slope == pytest.approx(slope / unit, rel=1e-3)
        gained = float((P[:, None] * floor.normalized_gains * found.point).sum())
        assert gained == pytest.approx(-lost, abs=1e-7)
        assert found.point.sum(axis=1) == pytest.approx(np.ones(4), abs=1e-8)
        proved = bound_exp_neg_level(program.prior, program.allowed, floor, found.multipliers)
        assert least - 1e-9 <= float(proved)
        if factor > 1:
            assert float(proved) < share
        if factor == 1.001:
            assert float(proved) == pytest.approx(least, rel=1e-3)


@pytest.mark.parametrize("above", [0.001, 0.05, 0.09])
def test_a_level_over_a_set_binds_at_each_of_its_corners(above: float) -> None:
    hull = ConvexHull(LAWS)
    program = worst_case_utility(P, ORDER, 2, 3, over=hull)
    share = LEAST_OVER_LAWS * (1 + above)
    found = build_level_program(program).solve_at(share, NO_DEADLINE)
    expected = dense_value(program, share, "rows", LAWS)
    assert found.infeasibility == pytest.approx(expected, abs=1e-8)
    assert found.slope == pytest.approx(slope_of(program, share, "rows", LAWS), rel=1e-3)
    assert (share * found.point.max(axis=0) <= (LAWS @ found.point).min(axis=0) + 1e-9).all()
    proved = float(
        bound_exp_neg_level(program.prior, program.allowed, None, found.multipliers, hull)
    )
    assert LEAST_OVER_LAWS - 1e-12 <= proved < share
