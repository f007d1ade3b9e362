"""Programs with bounds on many pairs of letters: which pairs matter, and one solved by Clarabel."""

from __future__ import annotations

import itertools
import time

import numpy as np
import pytest
from oracles.designs import FloatArray
from scipy.optimize import linprog

from pmlopt import ExpectedGain, MetricPrivacy, Prior, design
from pmlopt.model.privacy.ratios import RatioBounds
from pmlopt.programs.linear import constraint_generation
from pmlopt.programs.linear.constraint_generation import _run_clarabel, find_essential_pairs
from pmlopt.programs.linear.program import LinearDesign
from pmlopt.solvers.solver_result import NO_DEADLINE, make_options


def pairs_of(lengths: FloatArray) -> RatioBounds:
    n = len(lengths)
    above, below = np.array(list(itertools.permutations(range(n), 2))).T
    return RatioBounds(n, np.zeros((0, n)), np.zeros(0), above, below, lengths[above, below])


def test_a_pair_is_left_out_where_two_others_bound_it_nearly_as_well() -> None:
    """Up to the share of a detour: the bound of the third side of a triangle is the sum."""
    share = constraint_generation.MAX_DETOUR_FRACTION
    for excess, essential in ((share / 2, False), (share * 2, True), (-0.3, False)):
        lengths = np.array([[0.0, 1.0, 1.0], [1.0, 0.0, 1.0], [1.0, 1.0, 0.0]])
        lengths[0, 2] = 2.0 / (1 + excess)
        ratios = pairs_of(lengths)
        found = dict(zip(zip(ratios.above.tolist(), ratios.below.tolist(), strict=True),
                         find_essential_pairs(ratios, 3).tolist(), strict=True))  # fmt: skip
        assert found[0, 2] is essential
        assert all(kept for pair, kept in found.items() if pair != (0, 2))


def test_a_program_with_bounds_on_pairs_is_solved_with_its_multipliers() -> None:
    random = np.random.default_rng(0)
    gains = random.random((3, 3))
    ratios = pairs_of(np.full((3, 3), 0.8))
    size, keep = len(ratios.above), np.exp(-0.8)
    kept, chosen = np.full((size, 1), keep)[:, 0], np.ones((size, 3), dtype=bool)
    point, finished, steps = _run_clarabel(gains, ratios, kept, chosen, 1e-9, NO_DEADLINE)
    rows = []
    for k, y in itertools.product(range(size), range(3)):
        row = np.zeros((3, 3))
        row[ratios.above[k], y], row[ratios.below[k], y] = keep, -1.0
        rows.append(row.ravel())
    sums = np.kron(np.eye(3), np.ones((1, 3)))
    solved = linprog(
        -gains.ravel(), A_ub=rows, b_ub=np.zeros(len(rows)), A_eq=sums, b_eq=np.ones(3)
    )
    assert finished
    assert steps > 0
    assert (gains * point.matrix).sum() == pytest.approx(-solved.fun, abs=1e-6)
    assert point.multipliers is not None
    assert point.multipliers.sum() == pytest.approx(-solved.fun, abs=1e-6)


def test_what_a_program_with_bounds_on_pairs_took_is_no_more_than_has_passed() -> None:
    gains = np.array([[1.0, 0.2, 0.0], [0.1, 0.9, 0.3], [0.0, 0.4, 1.2]])
    program = design(Prior.uniform(3), MetricPrivacy(0.5, "absolute"), ExpectedGain(gains))
    assert isinstance(program, LinearDesign)
    ratios = program.list_ratios()
    assert ratios is not None
    begin = time.perf_counter()
    outcome = constraint_generation.solve_by_simplex(program, ratios, make_options(None, 1e-9))
    passed = time.perf_counter() - begin
    assert outcome.state == "point"
    assert outcome.compile_seconds >= 0
    assert outcome.compile_seconds + outcome.solve_seconds <= passed
