"""Maximal leakage and the LDP level against their definitions in exact arithmetic."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from strategies import MODEST, exact_columns, exact_law, log_of, mechanisms, pairs

from pmlopt.core.arrays import FloatArray
from pmlopt.data.mechanism import Mechanism
from pmlopt.measures import ldp_level, maximal_leakage, pointwise_leakage

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
def test_maximal_leakage_is_at_most_the_smaller_alphabet(matrix: FloatArray) -> None:
    assert 0 <= maximal_leakage(matrix) <= math.log(min(matrix.shape)) + 1e-12


@given(pairs())
@MODEST
def test_maximal_leakage_averages_the_exponential_of_pointwise_leakage(
    pair: tuple[FloatArray, FloatArray],
) -> None:
    prior, matrix = pair
    law = [sum(p * v for p, v in zip(exact_law(prior), c, strict=True)) for c in exact_columns(matrix)]
    leakages = pointwise_leakage(prior, matrix)
    total = math.fsum(
        float(q) * math.exp(leak) for q, leak in zip(law, leakages[leakages > -math.inf], strict=True)
    )
    assert maximal_leakage(matrix) == pytest.approx(math.log(total), abs=1e-12)


@given(CHANNELS)
@MODEST
def test_ldp_level_is_its_definition(matrix: FloatArray) -> None:
    assert ldp_level(matrix) == pytest.approx(defined_ldp_level(matrix), rel=1e-12, abs=1e-15)


@given(CHANNELS, st.data())
@MODEST
def test_post_processing_never_leaks_more(matrix: FloatArray, data: st.DataObject) -> None:
    after = Mechanism(matrix).post_process(data.draw(mechanisms(matrix.shape[1])))
    assert maximal_leakage(after) <= maximal_leakage(matrix) + 1e-12
    assert ldp_level(after) <= ldp_level(matrix) + 1e-12


@given(CHANNELS, st.integers(0, 5))
@MODEST
def test_outputs_that_never_occur_do_not_matter(matrix: FloatArray, place: int) -> None:
    wider = np.insert(matrix, min(place, matrix.shape[1]), 0.0, axis=1)
    assert maximal_leakage(wider) == pytest.approx(maximal_leakage(matrix), rel=1e-14, abs=1e-16)
    assert ldp_level(wider) == ldp_level(matrix)


@given(mechanisms(1), st.integers(1, 5))
@MODEST
def test_a_constant_mechanism_leaks_exactly_nothing(row: FloatArray, size: int) -> None:
    matrix = np.tile(row, (size, 1))
    assert maximal_leakage(matrix) == 0.0
    assert ldp_level(matrix) == 0.0


@pytest.mark.parametrize("size", [2, 3, 10])
def test_the_identity_leaks_everything(size: int) -> None:
    assert maximal_leakage(np.eye(size)) == pytest.approx(math.log(size), rel=1e-15)
    assert ldp_level(np.eye(size)) == math.inf


def test_one_letter_leaks_nothing() -> None:
    assert ldp_level([[0.5, 0.5]]) == 0.0
    assert maximal_leakage([[0.5, 0.5]]) == 0.0


@pytest.mark.parametrize("step", [1e-6, 1e-9, 1e-12, 1e-14])
def test_tiny_levels_have_their_digits(step: float) -> None:
    matrix = np.array([[0.6 + step, 0.4 - step], [0.6, 0.4]])
    assert maximal_leakage(matrix) == pytest.approx(defined_maximal_leakage(matrix), rel=1e-6, abs=0)
    assert ldp_level(matrix) == pytest.approx(defined_ldp_level(matrix), rel=1e-6, abs=0)


@pytest.mark.parametrize("smallest", [1e-3, 1e-9, 1e-13, 1e-17, 1e-100])
def test_large_ldp_levels_have_their_digits(smallest: float) -> None:
    matrix = np.array([[smallest, 1 - smallest], [0.5, 0.5]])
    assert ldp_level(matrix) == pytest.approx(math.log(0.5) - math.log(smallest), rel=1e-12)
