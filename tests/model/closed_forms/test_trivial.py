"""The two ends of every trade-off."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from strategies import MODEST, mechanisms, pairs

from pmlopt.core.arrays import FloatArray
from pmlopt.data.prior import Prior
from pmlopt.errors import UtilityError
from pmlopt.measures import ldp_level, leakage_level, maximal_leakage, mutual_information
from pmlopt.model.closed_forms import constant, deterministic


@st.composite
def tables(draw: st.DrawFn) -> tuple[FloatArray, FloatArray, FloatArray]:
    """A prior, a mechanism, and gains of the mechanism's shape."""
    prior, matrix = draw(pairs())
    cells = st.lists(st.floats(-100, 100), min_size=matrix.size, max_size=matrix.size)
    return prior, matrix, np.array(draw(cells)).reshape(matrix.shape)


def value(prior: FloatArray, matrix: FloatArray, gains: FloatArray) -> float:
    return math.fsum((prior[:, None] * matrix * gains).ravel())


@given(tables())
@MODEST
def test_constant_leaks_exactly_nothing(table: tuple[FloatArray, FloatArray, FloatArray]) -> None:
    prior, _, gains = table
    mechanism = constant(prior, gains)
    assert sorted(mechanism.matrix.sum(axis=0).tolist())[-1] == len(prior)
    assert leakage_level(prior, mechanism) == 0.0
    assert ldp_level(mechanism) == 0.0
    assert maximal_leakage(mechanism) == 0.0
    assert mutual_information(prior, mechanism) == 0.0


@given(tables(), st.data())
@MODEST
def test_no_mechanism_without_leakage_gains_more_than_constant(
    table: tuple[FloatArray, FloatArray, FloatArray], data: st.DataObject
) -> None:
    prior, matrix, gains = table
    best = value(prior, constant(prior, gains).matrix, gains)
    rows = data.draw(mechanisms(1, max_outputs=matrix.shape[1]))
    same = np.zeros_like(matrix)
    same[:, : rows.shape[1]] = rows
    assert value(prior, same, gains) <= best + 1e-11


@given(tables())
@MODEST
def test_no_mechanism_gains_more_than_deterministic(
    table: tuple[FloatArray, FloatArray, FloatArray],
) -> None:
    prior, matrix, gains = table
    best = deterministic(prior, gains)
    assert (np.sort(best.matrix, axis=1)[:, -1] == 1).all()
    assert value(prior, matrix, gains) <= value(prior, best.matrix, gains) + 1e-11


def test_the_first_of_equals_is_taken() -> None:
    assert constant([0.5, 0.5], np.eye(2)).matrix.tolist() == [[1.0, 0.0], [1.0, 0.0]]
    assert deterministic([0.5, 0.5], np.ones((2, 3))).matrix.tolist() == [[1.0, 0.0, 0.0]] * 2


def test_the_inputs_are_the_letters_of_the_prior() -> None:
    prior = Prior([0.5, 0.5], ["a", "b"])
    for form in (constant, deterministic):
        assert form(prior, np.eye(2)).inputs == ("a", "b")


@pytest.mark.parametrize(
    ("gains", "message"),
    [
        ([[1.0, 0.0]], "1 rows for 2 letters"),
        ([1.0, 0.0], "2 dimension"),
        ([[math.nan, 0.0], [0.0, 1.0]], "nan at row 0, column 0"),
        ([["a", "b"], ["c", "d"]], "numbers"),
    ],
)
def test_gains_that_do_not_fit_are_refused(gains: Any, message: str) -> None:
    for form in (constant, deterministic):
        with pytest.raises(UtilityError, match=message):
            form([0.5, 0.5], gains)
