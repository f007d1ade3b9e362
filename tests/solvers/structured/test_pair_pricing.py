"""Proofs that columns cost no less than the prices of rows, beside scipy's linear programs on their cones."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from scipy.optimize import linprog

from pmlopt.core.numbers.arrays import BoolArray, FloatArray
from pmlopt.solvers.solver_result import Deadline
from pmlopt.solvers.structured.pair_columns import PairLP
from pmlopt.solvers.structured.pair_pricing import price_columns

SIZE = 8
POINTS = np.random.default_rng(5).random((SIZE, 2)) * 2
APART = np.linalg.norm(POINTS[:, None] - POINTS, axis=2)
EVERY = ~np.eye(SIZE, dtype=bool)
FACTORS = np.exp(-APART) * EVERY
ALL = np.tile(np.arange(SIZE), (SIZE, 1))
COSTS = APART / APART.max()
RING = np.eye(SIZE, k=1, dtype=bool) | np.eye(SIZE, k=SIZE - 1, dtype=bool)
START = np.ones((SIZE, SIZE))
ALLOWED = 1e-6


def find_least_by_scipy(costs: FloatArray, own: list[int]) -> float:
    """Return the least cost of a column of sum one within the pairs of some letters."""
    rows = []
    for a, b in itertools.permutations(own, 2):
        row = np.zeros(SIZE)
        row[a], row[b] = FACTORS[a, b], -1.0
        rows.append(row[own])
    sums = np.ones((1, len(own)))
    return float(linprog(costs[own], rows, np.zeros(len(rows)), sums, [1.0]).fun)


@pytest.mark.parametrize("first", [EVERY, RING | RING.T])
@pytest.mark.parametrize("letters", [SIZE, 6])
@pytest.mark.parametrize("seed", range(3))
def test_a_column_is_proved_where_none_of_its_cone_costs_less(
    seed: int, letters: int, first: BoolArray
) -> None:
    members = np.sort(np.argsort(COSTS, axis=0)[:letters], axis=0).T
    prices = np.random.default_rng(seed).uniform(0.1, 0.6, SIZE)
    least = np.array([
        find_least_by_scipy(COSTS[:, output] - prices, own.tolist())
        for output, own in enumerate(members)
    ])  # fmt: skip
    assert (least > ALLOWED).any()
    assert (least < -ALLOWED).any()
    program = PairLP.from_table(COSTS, members, FACTORS, first)
    priced = price_columns(program, prices, START, ALLOWED)
    np.testing.assert_array_equal(priced.proved, least > 0)
    left = program.costs - prices[members] - priced.rows.price(priced.weights)
    assert priced.weights.min() > 0
    assert left[priced.proved].min() >= -ALLOWED


def test_without_time_nothing_is_proved() -> None:
    program = PairLP.from_table(COSTS, ALL, FACTORS, EVERY)
    priced = price_columns(program, np.zeros(SIZE), START, ALLOWED, Deadline.after(1e-9))
    assert not priced.proved.any()
    assert not len(priced.weights)
