"""Maximal leakage and the LDP level against their definitions in exact arithmetic."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from strategies import MODEST, exact_columns, log_of, mechanisms

from pmlopt.core.arrays import FloatArray
from pmlopt.measures import ldp_level, maximal_leakage

CHANNELS = st.integers(1, 5).flatmap(mechanisms)


def defined_maximal_leakage(matrix: FloatArray) -> float:
    return log_of(sum((max(column) for column in exact_columns(matrix)), Fraction(0)))


def defined_ldp_level(matrix: FloatArray) -> float:
    columns = exact_columns(matrix)
    if any(min(column) == 0 for column in columns):
        return math.inf
    return max(log_of(max(column) / min(column)) for column in columns)


@given(CHANNELS)
@MODEST
def test_maximal_leakage_is_its_definition(matrix: FloatArray) -> None:
    assert maximal_leakage(matrix) == pytest.approx(defined_maximal_leakage(matrix), rel=1e-12, abs=1e-15)


@given(CHANNELS)
@MODEST
def test_ldp_level_is_its_definition(matrix: FloatArray) -> None:
    assert ldp_level(matrix) == pytest.approx(defined_ldp_level(matrix), rel=1e-12, abs=1e-15)


@given(mechanisms(1), st.integers(1, 5))
@MODEST
def test_a_constant_mechanism_leaks_exactly_nothing(row: FloatArray, size: int) -> None:
    matrix = np.tile(row, (size, 1))
    assert maximal_leakage(matrix) == 0.0
    assert ldp_level(matrix) == 0.0


@pytest.mark.parametrize("step", [1e-6, 1e-9, 1e-12, 1e-14])
def test_tiny_levels_have_their_digits(step: float) -> None:
    matrix = np.array([[0.6 + step, 0.4 - step], [0.6, 0.4]])
    assert maximal_leakage(matrix) == pytest.approx(defined_maximal_leakage(matrix), rel=1e-6, abs=0)
    assert ldp_level(matrix) == pytest.approx(defined_ldp_level(matrix), rel=1e-6, abs=0)


@pytest.mark.parametrize("smallest", [1e-3, 1e-9, 1e-13, 1e-17, 1e-100])
def test_large_ldp_levels_have_their_digits(smallest: float) -> None:
    matrix = np.array([[smallest, 1 - smallest], [0.5, 0.5]])
    assert ldp_level(matrix) == pytest.approx(math.log(0.5) - math.log(smallest), rel=1e-12)
