"""The interior point for columns within bounds on pairs of entries, beside scipy's linear programs."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pytest
from oracles.designs import FloatArray
from scipy.optimize import linprog

from pmlopt.solvers.solver_result import Deadline
from pmlopt.solvers.structured.pair_columns import PairLP, solve_pair_lp

SIZE = 7
POINTS = np.random.default_rng(2).random((SIZE, 2)) * 3
APART = np.linalg.norm(POINTS[:, None] - POINTS, axis=2)
EVERY = ~np.eye(SIZE, dtype=bool)
FACTORS = np.exp(-APART) * EVERY
ALL = np.tile(np.arange(SIZE), (SIZE, 1))
COSTS = APART / APART.max() / SIZE


def solve_by_scipy(costs: FloatArray, members: Any = ALL) -> float:
    """Return the least cost, with the bounds of each column on its members only."""
    n, m = costs.shape
    rows = []
    for y, own in enumerate(members.tolist()):
        for a, b in itertools.permutations(own, 2):
            row = np.zeros((n, m))
            row[a, y], row[b, y] = FACTORS[a, b], -1.0
            rows.append(row.ravel())
    sums = np.kron(np.eye(n), np.ones((1, m)))
    found = linprog(costs.ravel(), A_ub=rows, b_ub=np.zeros(len(rows)), A_eq=sums, b_eq=np.ones(n))
    return float(found.fun)


def start(columns: int = SIZE) -> FloatArray:
    return np.full((SIZE, columns), 1 / columns)


@pytest.mark.parametrize("share", [0.0, 0.3, 1.0])
def test_any_pairs_to_begin_with_lead_to_the_optimum_within_all_pairs(share: float) -> None:
    """Pairs that have no row at first limit the steps, and come in before they are broken."""
    random = np.random.default_rng(3)
    first = random.random((SIZE, SIZE)) < share
    ring = np.eye(SIZE, k=1, dtype=bool) | np.eye(SIZE, k=SIZE - 1, dtype=bool)
    first = (first | first.T | ring | ring.T) & EVERY
    ending = solve_pair_lp(PairLP.from_table(COSTS, ALL, FACTORS, first), start(), 1e-10)
    best = solve_by_scipy(COSTS)
    assert ending.gap <= 1e-10
    assert float((COSTS * ending.matrix).sum()) == pytest.approx(best, abs=2e-10)
    assert ending.proof.bound <= best + 1e-12
    broken = FACTORS[:, :, None] * ending.matrix[:, None] - ending.matrix[None]
    assert broken.max() <= 0
    np.testing.assert_allclose(ending.matrix.sum(axis=1), 1, atol=1e-12)


def test_costs_of_either_sign_and_fewer_columns() -> None:
    random = np.random.default_rng(4)
    costs = random.normal(size=(SIZE, 3)) / 5
    members = ALL[:3]
    ending = solve_pair_lp(PairLP.from_table(costs, members, FACTORS, EVERY), start(3), 1e-10)
    assert float((costs * ending.matrix).sum()) == pytest.approx(
        solve_by_scipy(costs, members), abs=1e-9
    )


def test_columns_of_few_members_are_the_relaxation() -> None:
    members = np.sort(np.argsort(COSTS, axis=0)[:5], axis=0).T
    task = PairLP.from_table(COSTS, members, FACTORS, EVERY)
    ending = solve_pair_lp(task, start(), 1e-9)
    assert ending.gap <= 1e-9
    relaxed = solve_by_scipy(COSTS, members)
    assert relaxed < solve_by_scipy(COSTS) - 1e-4
    assert ending.proof.bound == pytest.approx(relaxed, abs=2e-9)
    assert float((COSTS * ending.matrix).sum()) == pytest.approx(relaxed, abs=2e-6)


def test_at_the_deadline_there_is_a_point_within_all_pairs() -> None:
    task = PairLP.from_table(COSTS, ALL, FACTORS, EVERY)
    ending = solve_pair_lp(task, start(), 1e-10, Deadline.after(1e-9))
    assert ending.iterations == 0
    assert ending.message == "stopped by the time limit"
    np.testing.assert_array_equal(ending.matrix, start())
    assert ending.proof.bound <= solve_by_scipy(COSTS)
