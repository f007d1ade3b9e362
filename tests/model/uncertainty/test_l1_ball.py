"""The l1 ball: its least mean, the robust requirement in all its forms, and what is refused."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
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
    solve,
)
from pmlopt.model.uncertainty.l1_ball import Center


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
