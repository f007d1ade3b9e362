"""Sub-convex utilities: the sum over the outputs, guessing, and functions that are none refused."""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from strategies import MODEST, pairs, priors

from pmlopt.core.arrays import FloatArray
from pmlopt.errors import UtilityError
from pmlopt.model.utility import GuessingProbability, SubConvex, informations

Function = Callable[[FloatArray, FloatArray], Any]

SPREAD = SubConvex(lambda column, p: p @ abs(column - p @ column))
PEAK = SubConvex(lambda column, p: column.max())


def guessed(prior: FloatArray, matrix: FloatArray) -> float:
    """The chance of guessing the letter, by loops."""
    n, m = matrix.shape
    return math.fsum(max(float(prior[x] * matrix[x, y]) for x in range(n)) for y in range(m))


@given(pairs())
@MODEST
def test_guessing_is_right_as_often_as_the_likeliest_letter(pair: tuple[FloatArray, FloatArray]) -> None:
    assert GuessingProbability().value(*pair) == pytest.approx(guessed(*pair), abs=1e-13)


@given(pairs())
@MODEST
def test_the_value_is_the_sum_of_the_function_over_the_columns(pair: tuple[FloatArray, FloatArray]) -> None:
    prior, matrix = pair
    columns = [matrix[:, y] for y in range(matrix.shape[1]) if matrix[:, y].max() > 0]
    spread = math.fsum(
        math.fsum(
            float(w) * abs(float(v) - float(prior @ column)) for w, v in zip(prior, column, strict=True)
        )
        for column in columns
    )
    assert SPREAD.value(prior, matrix) == pytest.approx(spread, abs=1e-12)
    assert PEAK.value(prior, matrix) == pytest.approx(math.fsum(float(c.max()) for c in columns), rel=1e-12)


@st.composite
def columns(draw: st.DrawFn) -> tuple[FloatArray, FloatArray, FloatArray]:
    """A prior and two columns of positive mean, some entries zero."""
    prior = draw(priors(1, 5, tiny=False))
    entries = st.one_of(st.just(0.0), st.floats(1e-3, 100.0))
    one, other = (
        np.array(draw(st.lists(entries, min_size=len(prior), max_size=len(prior)).filter(any))) for _ in "ab"
    )
    return prior, one, other


@pytest.mark.parametrize("name", informations())
@given(drawn=columns(), factor=st.floats(1e-3, 1e3), share=st.floats(0.0, 1.0))
@MODEST
def test_the_ready_made_are_homogeneous_and_convex(
    name: str, drawn: tuple[FloatArray, FloatArray, FloatArray], factor: float, share: float
) -> None:
    prior, one, other = drawn
    every = np.stack([one, other, share * one + (1 - share) * other, factor * one], axis=1)
    left, right, between, scaled = informations()[name]().worths(prior, every)
    assert between <= share * left + (1 - share) * right + 1e-9 * (1 + one.max() + other.max())
    assert scaled == pytest.approx(factor * left, rel=1e-9, abs=1e-12 * factor * one.max())


@given(priors(1, 8))
@MODEST
def test_what_is_convex_and_homogeneous_passes_every_probe(prior: FloatArray) -> None:
    for name, make in informations().items():
        make().check(prior)
        assert make().name == name
        assert make().maximised
    for utility in (SPREAD, PEAK, SubConvex(lambda column, p: -(p @ column)), SubConvex(lambda v, p: 0)):
        utility.check(prior)


def shown_column(message: str) -> FloatArray:
    """The first column that a message shows."""
    found = re.search(r"the column \[([^\]]*)\] \(p = \[0\.5, 0\.3, 0\.2\]\)", message)
    assert found, message
    return np.array([float(number) for number in found[1].split(",")])


def refusal(function: Function) -> str:
    with pytest.raises(UtilityError) as caught:
        SubConvex(function).check([0.5, 0.3, 0.2])
    return str(caught.value)


@pytest.mark.parametrize(
    ("function", "words"),
    [
        (lambda v, p: float("nan") if v[1] == 0 else float(v.max()), "is nan on"),
        (lambda v, p: math.inf, "is inf"),
        (lambda v, p: -math.inf, "is -inf"),
        (lambda v, p: [][3], "IndexError"),
        (lambda v, p: None, "fails on"),
        (lambda v, p: "far", "fails on"),
        (lambda v, p: np.zeros(3), "fails on"),
        (lambda v, p: 1j, "fails on"),
        (lambda v, p: 1.0, "not homogeneous"),
        (lambda v, p: np.sqrt(v).sum() ** 2, "not convex"),
        (lambda v, p: v.min(), "not convex"),
        (lambda v, p: -v.max(), "not convex"),
    ],
)
def test_what_is_no_sub_convex_number_is_refused_with_the_column(function: Function, words: str) -> None:
    message = refusal(function)
    assert words in message
    column = shown_column(message)
    assert len(column) == 3
    assert "nan" not in words or column[1] == 0


def test_a_function_that_is_not_homogeneous_is_refused() -> None:
    message = refusal(lambda v, p: (p @ v) ** 2)
    assert "not homogeneous" in message
    assert "p @ column" in message
    column = shown_column(message)
    factor = float(re.findall(r"on ([\d.]+) times that column", message)[0])
    once, scaled = (
        float(number) for number in re.findall(r"homogeneous: ([\d.]+) on .* but ([\d.]+) and", message)[0]
    )
    mean = float(np.array([0.5, 0.3, 0.2]) @ column)
    assert once == pytest.approx(mean**2, rel=1e-4)
    assert scaled == pytest.approx((factor * mean) ** 2, rel=1e-4)


def test_a_function_that_is_not_convex_is_refused() -> None:
    message = refusal(lambda v, p: -p @ abs(v - p @ v))
    assert "not convex" in message
    p, column = np.array([0.5, 0.3, 0.2]), shown_column(message)
    left = float(re.findall(r"where it is (-?[\d.]+), and", message)[0])
    assert left == pytest.approx(-float(p @ abs(column - p @ column)), abs=1e-5)
    assert message.count("the column [") == 2


@pytest.mark.parametrize("bad", [3, None, "mutual-information", np.eye(2)])
def test_what_is_no_function_is_refused(bad: Any) -> None:
    with pytest.raises(UtilityError, match="needs a function"):
        SubConvex(bad)


def test_a_function_may_fail_on_the_mechanism_only() -> None:
    fussy = SubConvex(lambda v, p: float("nan") if v[0] == 0 else v.max())
    assert fussy.value([0.5, 0.5], np.full((2, 2), 0.5)) == 1.0
    with pytest.raises(UtilityError, match="is nan on the column"):
        fussy.value([0.5, 0.5], np.eye(2))


def test_a_function_that_writes_into_its_column_is_refused() -> None:
    def careless(column: FloatArray, p: FloatArray) -> float:
        column *= 2
        return float(abs(column - p @ column).sum())

    with pytest.raises(UtilityError, match="read-only"):
        SubConvex(careless).check([0.5, 0.5])
