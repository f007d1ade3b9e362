"""Mutual information against its definition in exact arithmetic."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from strategies import MODEST, exact, exact_law, log_of, mechanisms, pairs, priors

from pmlopt.core.arrays import FloatArray
from pmlopt.data.mechanism import Mechanism
from pmlopt.measures import information_density, leakage_level, maximal_leakage, mutual_information


def defined(prior: FloatArray, matrix: FloatArray) -> float:
    """Sum over all pairs of p P log(P / q), the ratio exact."""
    law = exact_law(prior)
    terms = []
    for column in (exact(c) for c in matrix.T):
        q = sum((p * v for p, v in zip(law, column, strict=True)), Fraction(0))
        terms += [float(p * v) * log_of(v / q) for p, v in zip(law, column, strict=True) if v > 0]
    return math.fsum(terms)


def entropy(prior: FloatArray) -> float:
    return math.fsum(-float(p) * log_of(p) for p in exact_law(prior))


@given(pairs())
@MODEST
def test_mutual_information_is_its_definition(pair: tuple[FloatArray, FloatArray]) -> None:
    assert mutual_information(*pair) == pytest.approx(defined(*pair), abs=1e-14)


@given(pairs())
@MODEST
def test_mutual_information_is_the_mean_of_the_density(pair: tuple[FloatArray, FloatArray]) -> None:
    prior, matrix = pair
    joint = prior[:, None] * matrix
    mean = math.fsum((joint * np.where(matrix > 0, information_density(*pair), 0.0))[matrix > 0])
    assert mutual_information(*pair) == pytest.approx(mean, abs=1e-13)


@given(pairs())
@MODEST
def test_mutual_information_lies_between_zero_and_both_entropies(
    pair: tuple[FloatArray, FloatArray],
) -> None:
    information = mutual_information(*pair)
    assert 0 <= information <= min(entropy(pair[0]), math.log(pair[1].shape[1])) + 1e-14


@given(pairs())
@MODEST
def test_mutual_information_is_at_most_both_leakages(pair: tuple[FloatArray, FloatArray]) -> None:
    information = mutual_information(*pair)
    assert information <= leakage_level(*pair) + 1e-12
    assert information <= maximal_leakage(pair[1]) + 1e-12


@given(pairs(), st.data())
@MODEST
def test_post_processing_never_adds_information(
    pair: tuple[FloatArray, FloatArray], data: st.DataObject
) -> None:
    prior, matrix = pair
    after = Mechanism(matrix).post_process(data.draw(mechanisms(matrix.shape[1])))
    assert mutual_information(prior, after) <= mutual_information(prior, matrix) + 1e-14


@given(pairs())
@MODEST
def test_outputs_that_never_occur_do_not_matter(pair: tuple[FloatArray, FloatArray]) -> None:
    prior, matrix = pair
    wider = np.insert(matrix, 0, 0.0, axis=1)
    assert mutual_information(prior, wider) == pytest.approx(mutual_information(prior, matrix), abs=1e-15)


@given(priors(), mechanisms(1))
@MODEST
def test_a_constant_mechanism_tells_exactly_nothing(prior: FloatArray, row: FloatArray) -> None:
    assert mutual_information(prior, np.tile(row, (len(prior), 1))) == 0.0


@given(priors(2, 6))
@MODEST
def test_the_identity_tells_the_entropy(prior: FloatArray) -> None:
    assert mutual_information(prior, np.eye(len(prior))) == pytest.approx(entropy(prior), abs=1e-14)


def test_a_binary_symmetric_channel() -> None:
    expected = math.log(2) + 0.9 * math.log(0.9) + 0.1 * math.log(0.1)
    assert mutual_information([0.5, 0.5], [[0.9, 0.1], [0.1, 0.9]]) == pytest.approx(expected, rel=1e-14)


@pytest.mark.parametrize("step", [1e-3, 1e-5, 1e-6])
def test_little_information_has_its_digits(step: float) -> None:
    prior = np.array([0.5, 0.5])
    matrix = np.array([[0.5 + step, 0.5 - step], [0.5 - step, 0.5 + step]])
    # the series of the capacity of a binary symmetric channel: 2 s^2 + 4/3 s^4 + 32/15 s^6 + ...
    expected = 2 * step**2 + 4 / 3 * step**4 + 32 / 15 * step**6
    assert mutual_information(prior, matrix) == pytest.approx(expected, rel=1e-6, abs=0)


def test_a_matrix_of_subnormal_entries_is_measured() -> None:
    matrix = np.array([[1.0, 5e-324], [1.0, 0.0]])
    assert mutual_information([0.25, 0.75], matrix) == pytest.approx(0.0, abs=1e-15)
