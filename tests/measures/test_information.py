"""Mutual information against its definition in exact arithmetic."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from strategies import MODEST, exact, exact_law, log_of, mechanisms, pairs, priors

from pmlopt.core.arrays import FloatArray
from pmlopt.measures import mutual_information


def defined(prior: FloatArray, matrix: FloatArray) -> float:
    """Sum over all pairs of p P log(P / q), the ratio exact."""
    law = exact_law(prior)
    terms = []
    for column in (exact(c) for c in matrix.T):
        q = sum((p * v for p, v in zip(law, column, strict=True)), Fraction(0))
        terms += [float(p * v) * log_of(v / q) for p, v in zip(law, column, strict=True) if v > 0]
    return math.fsum(terms)


@given(pairs())
@MODEST
def test_mutual_information_is_its_definition(pair: tuple[FloatArray, FloatArray]) -> None:
    assert mutual_information(*pair) == pytest.approx(defined(*pair), abs=1e-14)


@given(priors(), mechanisms(1))
@MODEST
def test_a_constant_mechanism_tells_exactly_nothing(prior: FloatArray, row: FloatArray) -> None:
    assert mutual_information(prior, np.tile(row, (len(prior), 1))) == 0.0


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
