"""The dense simplex method has the optimum of another solver, and keeps its deadline."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.optimize import linprog

from pmlopt.solvers.solver_result import Deadline
from pmlopt.solvers.structured.dense_simplex import solve_dense_lp


@pytest.mark.parametrize("seed", range(5))
def test_the_optimum_is_that_of_another_solver(seed: int) -> None:
    """From bases with negative weights, and past the number of exchanges at which the inverse is renewed."""
    rng = np.random.default_rng(seed)
    rows = 60
    # a column of ones keeps the program feasible
    columns = np.hstack([np.ones((rows, 1)), rng.random((rows, 400)) + 2 * np.eye(rows, 400)])
    costs = rng.random(401)
    basis = 1 + np.arange(rows)
    assert np.linalg.solve(columns[:, basis], np.ones(rows)).min() < 0
    found = solve_dense_lp(columns, costs, basis)
    assert found is not None
    weights = found.weights
    assert weights.min() >= 0
    np.testing.assert_allclose(columns @ weights, 1, atol=1e-9)
    other = linprog(costs, A_eq=columns, b_eq=np.ones(rows))
    # prices that no column undercuts prove the optimum
    assert (costs - found.prices @ columns).min() >= -1e-8
    assert found.prices.sum() == pytest.approx(other.fun, abs=1e-8)
    assert not np.delete(weights, found.basis).any()
    assert costs @ weights == pytest.approx(other.fun, abs=1e-8)


def test_none_without_an_inverse_without_time_or_without_weights() -> None:
    columns, costs = np.array([[1.0, 1.0, 0.5], [1.0, 1.0, 2.0]]), np.ones(3)
    assert solve_dense_lp(columns, costs, np.array([0, 1])) is None
    found = solve_dense_lp(columns, costs, np.array([0, 2]))
    assert found is not None
    assert found.weights == pytest.approx([1.0, 0.0, 0.0])
    stopped = Deadline.after(1e-9)
    assert solve_dense_lp(columns, costs, np.array([0, 2]), stopped) is None
    # both columns lie on one side of the ones
    assert solve_dense_lp(np.array([[1.0, 2.0], [0.1, 0.1]]), costs[:2], np.arange(2)) is None
