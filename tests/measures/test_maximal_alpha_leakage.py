"""Maximal alpha-leakage from both sides, beside Sibson's information of many priors and its limits."""

from __future__ import annotations

import math

import cvxpy as cp
import numpy as np
import pytest

from pmlopt import SibsonLeakage, maximal_leakage
from pmlopt.errors import PrivacyError
from pmlopt.measures import channel_capacity, maximal_alpha_leakage

ORDERS = (1.2, 2.0, 5.0, 50.0)


def concave_program(matrix: np.ndarray, alpha: float) -> float:
    """The largest sum over priors, as a conic program of its own."""
    law = cp.Variable(len(matrix), nonneg=True)
    peaks = matrix.max(axis=0)
    total = peaks @ cp.power(law @ (matrix / peaks) ** alpha, 1 / alpha, approx=False)
    problem = cp.Problem(cp.Maximize(total), [cp.sum(law) == 1])
    problem.solve(solver="CLARABEL")
    return float(alpha / (alpha - 1) * math.log(problem.value))


@pytest.mark.parametrize("alpha", ORDERS)
def test_both_ends_are_the_optimum_over_priors(alpha: float) -> None:
    rng = np.random.default_rng(int(alpha))
    for _ in range(4):
        matrix = rng.dirichlet(np.ones(4) * 0.7, size=3)
        lower, upper = maximal_alpha_leakage(matrix, alpha, 1e-10)
        assert upper - lower <= 1e-10
        assert lower == pytest.approx(concave_program(matrix, alpha), abs=1e-6)
        for law in rng.dirichlet(np.ones(3), size=20):
            assert SibsonLeakage(alpha, 1.0).level(law, matrix) <= upper + 1e-12


@pytest.mark.parametrize("alpha", ORDERS)
def test_of_a_symmetric_channel_it_is_that_of_even_letters(alpha: float) -> None:
    matrix = np.full((5, 5), 0.1) + 0.5 * np.eye(5)
    lower, upper = maximal_alpha_leakage(matrix, alpha)
    even = SibsonLeakage(alpha, 1.0).level(np.full(5, 0.2), matrix)
    assert lower == pytest.approx(even, abs=1e-12)
    assert upper == pytest.approx(even, abs=1e-11)


def test_its_limits_are_the_capacity_and_the_maximal_leakage() -> None:
    matrix = [[0.7, 0.2, 0.1], [0.1, 0.6, 0.3]]
    assert maximal_alpha_leakage(matrix, 1 + 1e-6)[0] == pytest.approx(channel_capacity(matrix)[0], abs=1e-5)
    assert maximal_alpha_leakage(matrix, 1e5)[0] == pytest.approx(maximal_leakage(matrix), abs=1e-4)
    assert maximal_alpha_leakage([[0.5, 0.5], [0.5, 0.5]], 3)[1] == pytest.approx(0, abs=1e-12)


@pytest.mark.parametrize("iterations", [1, 2])
def test_both_ends_hold_however_soon_it_ends(iterations: int) -> None:
    z_channel = [[1.0, 0.0], [0.5, 0.5]]
    pairs = (
        (math.log(5 / 4), channel_capacity(z_channel, iterations=iterations)),
        (maximal_alpha_leakage(z_channel, 2)[0], maximal_alpha_leakage(z_channel, 2, iterations=iterations)),
    )
    for exact, (lower, upper) in pairs:
        assert lower < exact < upper
        assert upper - lower > 1e-6


@pytest.mark.parametrize("alpha", [1.0, 0.5, math.inf, math.nan])
def test_orders_that_are_other_measures_are_refused(alpha: float) -> None:
    with pytest.raises(PrivacyError, match="above 1"):
        maximal_alpha_leakage([[1.0]], alpha)
