"""The l1 ball: its least mean, the robust requirement in all its forms, and what is refused."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from oracles import designs as oracles
from oracles.designs import FloatArray
from scipy.optimize import linprog
from strategies import MODEST, mechanisms

from pmlopt import (
    PML,
    AllPriors,
    ExpectedGain,
    L1Ball,
    MutualInformation,
    Prior,
    confidence_ball,
    design,
    leakage_level,
    mutual_information,
    solve,
)
from pmlopt.model.uncertainty.l1_ball import Center
from pmlopt.programs.linear.certificate import utility_bound


def least_mean(p: FloatArray, radius: float, column: FloatArray) -> float:
    """min <Q, v> over the ball, as an LP in Q and its distance to p, letter by letter."""
    n = len(p)
    cost = np.concatenate([column, np.zeros(n)])
    apart = np.vstack([np.hstack([np.eye(n), -np.eye(n)]), np.hstack([-np.eye(n), -np.eye(n)])])
    rows = np.vstack([apart, np.concatenate([np.zeros(n), np.ones(n)])])
    right = np.concatenate([p, -p, [radius]])
    sums = np.concatenate([np.ones(n), np.zeros(n)])[None, :]
    tight = {"primal_feasibility_tolerance": 1e-10, "dual_feasibility_tolerance": 1e-10}
    answer = linprog(cost, A_ub=rows, b_ub=right, A_eq=sums, b_eq=[1.0], method="highs", options=tight)
    assert answer.status == 0
    return float(answer.fun)


def printed_rows(p: FloatArray, m: int, epsilon: float, radius: float) -> FloatArray:
    """EMP, eq. (10): `P[i,j] <= e^eps' (sum_x p[x] P[x,j] + radius/2 P[k,j])`, for all i, k, j."""
    n, scale = len(p), math.exp(epsilon) / (1 + math.exp(epsilon) * radius / 2)
    rows = np.zeros((n, n, m, n, m))
    for i in range(n):
        for k in range(n):
            for j in range(m):
                rows[i, k, j, :, j] -= scale * p
                rows[i, k, j, k, j] -= scale * radius / 2
                rows[i, k, j, i, j] += 1.0
    return rows.reshape(n * n * m, n * m)


@pytest.mark.parametrize("seed", range(8))
def test_linear_designs_equal_the_printed_program(seed: int) -> None:
    rng = np.random.default_rng([7, seed])
    n = int(rng.integers(2, 6))
    p = oracles.random_prior(rng, n, 2.0)
    epsilon = float(rng.uniform(0, 2))
    radius = float(rng.uniform(0, 1)) * 2 * float(Prior(p).pmf.min())
    gains = rng.normal(size=(n, n))
    rows = printed_rows(p, n, epsilon, radius)
    best = oracles.optimum(p, PML(50.0), gains, rows, np.zeros(len(rows)))
    requirement = PML(epsilon, over=L1Ball(p, radius))
    result = solve(design(p, requirement, ExpectedGain(gains)))
    assert result.value == pytest.approx(best.value, abs=1e-7)
    assert result.certificate.verify()
    assert result.level <= epsilon
    near = best.multipliers + rng.normal(size=n) * 0.1
    assert utility_bound(Prior(p), requirement, gains, near) >= best.value - 1e-9


@pytest.mark.parametrize("radius", [0.0, 0.1, 0.4, 0.79])
@pytest.mark.parametrize("epsilon", [0.05, 0.2, 0.4])
def test_two_letters_have_the_form_of_theorem_5(radius: float, epsilon: float) -> None:
    p1, p2, t = 0.6, 0.4, math.exp(epsilon)
    if epsilon > -math.log(p1 - radius / 2):
        pytest.skip("past the first privacy region of the ball")
    rows = [
        [t * (p2 + radius / 2), 1 - t * (p2 - radius / 2)],
        [1 - t * (p1 - radius / 2), t * (p1 + radius / 2)],
    ]
    form = np.array(rows) / (1 + radius * t)
    program = design([p1, p2], PML(epsilon, over=L1Ball([p1, p2], radius)), MutualInformation())
    assert solve(program).value == pytest.approx(mutual_information([p1, p2], form), abs=1e-10)


@pytest.mark.parametrize("share", [0.0, 0.3, 0.9])
def test_constants_leak_exactly_nothing(share: float) -> None:
    prior = Prior.from_counts([4253, 10501, 7291, 2449, 5355, 2712])
    ball = L1Ball(prior, share * 2 * float(prior.pmf.min()))
    constant = np.tile(np.array([[0.1, 0.2, 0.7]]), (6, 1))
    assert PML(0.0, over=ball).levels(prior, constant) == {"pml": 0.0}
    result = solve(design(prior, PML(0.0, over=ball), MutualInformation()))
    assert result.level == 0
    assert result.value == pytest.approx(0, abs=1e-15)
    assert solve(design(prior, PML(0.0, over=ball), ExpectedGain(np.eye(6)))).level == 0


# ---------------------------------------------------------------- letters that were not seen


@MODEST
@given(st.lists(st.integers(0, 6), min_size=2, max_size=5), st.floats(0.01, 2), st.data())
def test_a_centre_with_zeros_has_the_least_means_of_its_definition(
    counts: list[int], radius: float, data: st.DataObject
) -> None:
    assume(any(counts))
    p = np.array(counts) / sum(counts)
    matrix = data.draw(mechanisms(len(p)))
    expected = [least_mean(p, radius, column) for column in matrix.T]
    for center in (p, Center.of_counts(tuple(counts), tuple(range(len(p))))):
        ball = L1Ball(center, radius)
        assert ball.least_mean(matrix) == pytest.approx(expected, abs=1e-9)
        for column, least in zip(matrix.T, expected, strict=True):
            worst = ball.worst_prior(column)
            assert ball.holds(worst)
            assert float(worst @ column) == pytest.approx(least, abs=1e-9)


def test_a_centre_with_zeros_is_exact_in_integers() -> None:
    ball = L1Ball(Center.of_counts((2, 1, 0), ("a", "b", "c")), 0.5)
    least, total = ball.least_sum(np.array([[1, 0], [0, 1], [0, 0]], dtype=object))
    assert [Fraction(value, total) for value in least] == [Fraction(5, 12), Fraction(1, 12)]
    assert ball.labels == ("a", "b", "c")


@pytest.mark.parametrize("epsilon", [0.3, 1.0, 2.0])
def test_a_design_over_a_ball_of_raw_counts_takes_any_prior_on_the_letters(epsilon: float) -> None:
    ball = confidence_ball({"a": 60, "b": 40, "c": 0}, 0.01)
    guess = Prior.from_counts({"a": 61, "b": 41, "c": 1})
    for utility in (ExpectedGain(np.eye(3)), MutualInformation()):
        result = solve(design(guess, PML(epsilon, over=ball), utility))
        assert result.level <= epsilon
        assert result.certificate.verify()
        for corner in ([0.6, 0.4 - ball.half, ball.half], [0.6 - ball.half, 0.4, ball.half]):
            assert leakage_level(Prior(corner, labels=guess.labels), result.mechanism) <= epsilon + 1e-12
    ldp = solve(design(guess, PML(epsilon, over=AllPriors(3)), ExpectedGain(np.eye(3)))).value
    assert solve(design(guess, PML(epsilon, over=ball), ExpectedGain(np.eye(3)))).value >= ldp - 1e-9
