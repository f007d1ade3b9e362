"""The robust binary mechanism: optimal in all its shapes, and the form that is printed."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import assume, example, given
from hypothesis import strategies as st
from oracles import designs as oracles
from oracles.designs import FloatArray
from refusals import refused
from strategies import MODEST

from pmlopt import (
    LDP,
    PML,
    AllPriors,
    Box,
    ConvexHull,
    ExpectedGain,
    L1Ball,
    MutualInformation,
    design,
    mutual_information,
    solve,
)
from pmlopt.errors import PrivacyError
from pmlopt.model.closed_forms import binary, randomized_response, robust_binary
from pmlopt.model.uncertainty import leakage_capacity

SHAPES = {
    "no zero": (0.5, 0.7, 0.3),
    "no zero, turned": (0.2, 0.55, 0.3),
    "a zero in the second row": (0.55, 0.7, 0.7),
    "a zero in the first row": (0.25, 0.4, 0.7),
    "the identity": (0.3, 0.6, 2.5),
}
"""Intervals for the first probability, and a level, by what the mechanism looks like."""


def worst_ratio(lowest: float, highest: float, matrix: FloatArray) -> float:
    """max over y, and over both ends of the interval, of `max_x P[x,y] / P(y)`, from the definition."""
    ends = np.array([[lowest, 1 - lowest], [highest, 1 - highest]])
    occurring = matrix[:, matrix.max(axis=0) > 0]
    with np.errstate(divide="ignore"):
        return float((occurring.max(axis=0) / (ends @ occurring)).max())


def ends_rows(lowest: float, highest: float, epsilon: float) -> FloatArray:
    """The bound under both ends of the interval."""
    ends = ([lowest, 1 - lowest], [highest, 1 - highest])
    return np.vstack([oracles.pml_rows(np.array(end), 2, epsilon) for end in ends])


def appendix(p1: float, epsilon: float, beta: float) -> FloatArray:
    """EMP, Appendix C, as printed."""
    t = math.exp(epsilon)
    first = t * (1 - p1 - beta / 2) / (1 + beta * t)
    second = 1 - t * (p1 + beta / 2) / (1 + beta * t)
    return np.array([[first, 1 - first], [second, 1 - second]])


@given(st.floats(0, 1), st.floats(0, 1), st.floats(0, 6))
@example(0.0, 1e-8, 0.0)
@MODEST
def test_it_attains_its_level_or_is_the_identity(one: float, other: float, epsilon: float) -> None:
    alone = robust_binary(one, one, epsilon).matrix if 0.01 <= one <= 0.99 else None
    assert alone is None or alone == pytest.approx(
        binary([one, 1 - one], epsilon).matrix, abs=1e-12
    )
    lowest, highest = sorted([one, other])
    assume(lowest < 1 - 1e-9 and highest > 1e-9)
    matrix = robust_binary(lowest, highest, epsilon).matrix
    assert oracles.is_stochastic(matrix) or np.abs(matrix.sum(axis=1) - 1).max() <= 1e-15
    assert matrix.min() >= 0
    ratio = worst_ratio(lowest, highest, matrix)
    if np.array_equal(matrix, np.eye(2)):
        assert ratio <= math.exp(epsilon) * (1 + 1e-9)
    else:
        assert ratio == pytest.approx(math.exp(epsilon), rel=1e-9)


@pytest.mark.parametrize("epsilon", [0.05, 0.2, 0.4])
@pytest.mark.parametrize("beta", [0.0, 0.1, 0.4, 0.79])
def test_the_printed_matrix_up_to_the_end_of_the_first_region(beta: float, epsilon: float) -> None:
    p1, t = 0.6, math.exp(epsilon)
    found = robust_binary(p1 - beta / 2, p1 + beta / 2, epsilon).matrix
    rows = [
        [t * (1 - p1 + beta / 2), 1 - t * (1 - p1 - beta / 2)],
        [1 - t * (p1 - beta / 2), t * (p1 + beta / 2)],
    ]
    within = epsilon <= -math.log(p1 - beta / 2)
    assert within == (found.min() > 0)
    if within:
        assert found == pytest.approx(np.array(rows) / (1 + beta * t), abs=1e-15)


def test_the_matrix_of_the_appendix_breaks_the_bound() -> None:
    p1, epsilon, beta = 0.6, 0.3, 0.79
    printed, right = (
        appendix(p1, epsilon, beta),
        robust_binary(p1 - beta / 2, p1 + beta / 2, epsilon).matrix,
    )
    assert printed.sum(axis=1) == pytest.approx([1, 1])
    assert printed.min() > 0
    ball = L1Ball([p1, 1 - p1], beta)
    assert not PML(epsilon, over=ball).holds([p1, 1 - p1], printed)
    assert worst_ratio(p1 - beta / 2, p1 + beta / 2, printed) > 10 * math.exp(epsilon)
    assert PML(epsilon + 1e-12, over=ball).holds([p1, 1 - p1], right)


@pytest.mark.parametrize("name", SHAPES)
def test_it_is_optimal_for_mutual_information(name: str) -> None:
    lowest, highest, epsilon = SHAPES[name]
    middle = (lowest + highest) / 2
    law = [middle, 1 - middle]
    found = mutual_information(law, robust_binary(lowest, highest, epsilon))
    for one in (L1Ball(law, highest - lowest), Box([lowest, 1 - highest], [highest, 1 - lowest])):
        result = solve(design(law, PML(epsilon, over=one), MutualInformation()))
        assert result.value == pytest.approx(found, abs=1e-9)
        assert result.closed_form is not None
        assert result.closed_form.name in ("robust_binary", "deterministic")


@pytest.mark.parametrize("name", SHAPES)
@pytest.mark.parametrize("seed", range(2))
def test_with_its_turn_and_the_constants_it_is_optimal_for_every_gain(name: str, seed: int) -> None:
    lowest, highest, epsilon = SHAPES[name]
    rng = np.random.default_rng(seed)
    p1 = float(rng.uniform(0.1, 0.9))
    law, gains = np.array([p1, 1 - p1]), rng.normal(size=(2, 2))
    form = robust_binary(lowest, highest, epsilon).matrix
    every = [form, form[:, ::-1], np.array([[1.0, 0.0]] * 2), np.array([[0.0, 1.0]] * 2)]
    reached = max(float((law[:, None] * gains * matrix).sum()) for matrix in every)
    rows = ends_rows(lowest, highest, epsilon)
    best = oracles.optimum(law, PML(50.0), gains, rows, np.zeros(len(rows))).value
    assert reached == pytest.approx(best, abs=1e-9)
    over = ConvexHull([[lowest, 1 - lowest], [highest, 1 - highest]])
    found = solve(design(law, PML(epsilon, over=over), ExpectedGain(gains)))
    assert found.value == pytest.approx(best, abs=1e-9)


def test_the_widest_ball_gives_warners_randomized_response() -> None:
    # EMP, Remark 3
    for epsilon in (0.1, 1.0, 3.0):
        t = math.exp(epsilon)
        warner = np.array([[t, 1], [1, t]]) / (1 + t)
        assert robust_binary(0.0, 1.0, epsilon).matrix == pytest.approx(warner, abs=1e-15)
        assert randomized_response(2, epsilon).matrix == pytest.approx(warner, abs=1e-15)
        assert leakage_capacity(AllPriors(2), robust_binary(0.0, 1.0, epsilon)) == pytest.approx(
            epsilon
        )
        for center, radius in (([0.5, 0.5], 1.0), ([0.6, 0.4], 2.0)):
            ball = L1Ball(center, radius)
            told = solve(design(center, PML(epsilon, over=ball), MutualInformation())).value
            assert told == pytest.approx(mutual_information(center, warner), abs=1e-10)
            ldp = solve(design(center, LDP(epsilon), MutualInformation())).value
            assert told == pytest.approx(ldp, abs=1e-10)


def test_what_cannot_be_meant_is_refused() -> None:
    ends = ((0.6, 0.5), (-0.1, 0.5), (0.5, 1.1), (1.0, 1.0), (0.0, 0.0), (math.nan, 0.5))
    refused(PrivacyError, robust_binary, "interval", *((*pair, 0.5) for pair in ends))
    none = (-0.1, math.nan, math.inf)
    refused(PrivacyError, robust_binary, "epsilon", *((0.3, 0.6, epsilon) for epsilon in none))


@pytest.mark.parametrize("points", [[[1.0, 1e-17]], [[1e-17, 1.0]], [[1.0, 1e-17], [1.0, 1e-20]]])
def test_where_a_letter_is_impossible_but_for_rounding_a_design_needs_no_form(points: Any) -> None:
    for epsilon in (0.5, 1.0):
        result = solve(
            design([0.5, 0.5], PML(epsilon, over=ConvexHull(points)), MutualInformation())
        )
        assert result.level <= epsilon


@pytest.mark.parametrize("epsilon", [1.0, 36.0, 37.0, 690.0])
@pytest.mark.parametrize("other", [0.5, 1e-9, 0.0])
@pytest.mark.parametrize("turned", [False, True])
def test_where_a_letter_may_be_impossible_it_keeps_its_level_at_any_epsilon(
    epsilon: float, other: float, turned: bool
) -> None:
    """With a letter of probability 0 under some prior, only an entry of `e^-eps` keeps the level."""
    lowest, highest = (0.0, 1 - other) if turned else (other, 1.0)
    matrix = robust_binary(lowest, highest, epsilon).matrix
    ends = [[Fraction(end), 1 - Fraction(end)] for end in (lowest, highest)]
    for column in matrix.T.tolist():
        least = min(sum(q * Fraction(v) for q, v in zip(law, column, strict=True)) for law in ends)
        assert least > 0
        assert math.log(Fraction(max(column)) / least) <= epsilon * (1 + 1e-14)
    assert leakage_capacity(ConvexHull(np.array(ends, dtype=float)), matrix) <= epsilon * (
        1 + 1e-12
    )
