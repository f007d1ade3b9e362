"""Pointwise leakage and information density against their definitions in exact arithmetic."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from strategies import MODEST, epsilons, exact, exact_law, log_of, mechanisms, pairs, priors

from pmlopt.core.arrays import FloatArray
from pmlopt.errors import PrivacyError
from pmlopt.measures import (
    failure_probability,
    information_density,
    leakage_level,
    lip_levels,
    pointwise_leakage,
)
from pmlopt.measures.leakage import log_entry_ratios, log_product_ratios


def output_law(prior: FloatArray, matrix: FloatArray) -> list[Fraction]:
    law = exact_law(prior)
    return [sum((p * v for p, v in zip(law, exact(c), strict=True)), Fraction(0)) for c in matrix.T]


def defined_density(prior: FloatArray, matrix: FloatArray) -> FloatArray:
    law = output_law(prior, matrix)
    return np.array(
        [
            [log_of(v / q) if v > 0 else -math.inf for v, q in zip(exact(row), law, strict=True)]
            for row in matrix
        ]
    )


def defined_leakage(prior: FloatArray, matrix: FloatArray) -> FloatArray:
    """l(y) = max over the letters of log P[x,y] / q[y], one outcome at a time."""
    return np.asarray(defined_density(prior, matrix).max(axis=0))


@given(pairs())
@MODEST
def test_pointwise_leakage_is_its_definition(pair: tuple[FloatArray, FloatArray]) -> None:
    assert pointwise_leakage(*pair) == pytest.approx(defined_leakage(*pair), rel=1e-12, abs=1e-14)


@given(pairs())
@MODEST
def test_leakage_level_is_the_largest_of_the_support(pair: tuple[FloatArray, FloatArray]) -> None:
    assert leakage_level(*pair) == pytest.approx(defined_leakage(*pair).max(), rel=1e-12, abs=1e-14)


@given(pairs())
@MODEST
def test_outputs_outside_the_support_count_in_no_maximum(pair: tuple[FloatArray, FloatArray]) -> None:
    prior, matrix = pair
    wider = np.insert(matrix, 0, 0.0, axis=1)
    assert pointwise_leakage(prior, wider)[0] == -math.inf
    assert (information_density(prior, wider)[:, 0] == -math.inf).all()
    # a product of other shape may round differently in its last place
    assert pointwise_leakage(prior, wider)[1:] == pytest.approx(
        pointwise_leakage(prior, matrix), rel=1e-14, abs=1e-15
    )
    assert leakage_level(prior, wider) == pytest.approx(leakage_level(prior, matrix), rel=1e-14, abs=1e-15)
    assert lip_levels(prior, wider) == pytest.approx(lip_levels(prior, matrix), rel=1e-14, abs=1e-15)
    assert failure_probability(prior, wider, 0.0) == pytest.approx(
        failure_probability(prior, matrix, 0.0), abs=1e-15
    )


@given(priors(), mechanisms(1))
@MODEST
def test_a_constant_mechanism_leaks_exactly_nothing(prior: FloatArray, row: FloatArray) -> None:
    matrix = np.tile(row, (len(prior), 1))
    assert leakage_level(prior, matrix) == 0.0
    assert lip_levels(prior, matrix) == (0.0, 0.0)
    assert failure_probability(prior, matrix, 0.0) == 0.0
    assert set(information_density(prior, matrix).ravel().tolist()) <= {0.0, -math.inf}


@pytest.mark.parametrize("smallest", [1e-9, 1e-13, 1e-17, 1e-30, 1e-200])
def test_a_very_unlikely_letter_leaks_what_it_should(smallest: float) -> None:
    level = leakage_level([smallest, 1 - smallest], np.eye(2))
    assert level == pytest.approx(-math.log(smallest), rel=1e-12)


@pytest.mark.parametrize("step", [1e-6, 1e-9, 1e-12, 1e-14])
def test_tiny_levels_have_their_digits(step: float) -> None:
    prior = np.array([0.3, 0.7])
    matrix = np.array([[0.6 + step, 0.4 - step], [0.6, 0.4]])
    densities = defined_density(prior, matrix)
    assert leakage_level(prior, matrix) == pytest.approx(densities.max(), rel=1e-6, abs=0)
    assert lip_levels(prior, matrix)[1] == pytest.approx(densities.max(), rel=1e-6, abs=0)
    assert lip_levels(prior, matrix)[0] == pytest.approx(-densities.min(), rel=1e-6, abs=0)


def test_a_matrix_of_subnormal_entries_is_measured() -> None:
    matrix = np.array([[1.0, 5e-324], [1.0, 0.0]])
    assert pointwise_leakage([0.25, 0.75], matrix)[1] == pytest.approx(math.log(4), rel=1e-12)


@given(pairs())
@MODEST
def test_information_density_is_its_definition(pair: tuple[FloatArray, FloatArray]) -> None:
    assert information_density(*pair) == pytest.approx(defined_density(*pair), rel=1e-12, abs=1e-14)


@given(pairs())
@MODEST
def test_lip_levels_are_the_ends_of_the_information_density(pair: tuple[FloatArray, FloatArray]) -> None:
    prior, matrix = pair
    densities = defined_density(prior, matrix)[:, matrix.max(axis=0) > 0]
    lower, upper = lip_levels(prior, matrix)
    assert lower == pytest.approx(-densities.min(), rel=1e-12, abs=1e-14)
    assert upper == leakage_level(prior, matrix)


@given(pairs(), epsilons())
@MODEST
def test_failure_probability_is_the_mass_above_epsilon(
    pair: tuple[FloatArray, FloatArray], epsilon: float
) -> None:
    law = [float(q) for q in output_law(*pair)]
    leakages = defined_leakage(*pair)
    slack = 1e-12
    least = math.fsum(q for q, leak in zip(law, leakages, strict=True) if leak > epsilon + slack)
    most = math.fsum(q for q, leak in zip(law, leakages, strict=True) if leak > epsilon - slack)
    assert least - 1e-14 <= failure_probability(*pair, epsilon) <= most + 1e-14


def test_failure_probability_by_hand() -> None:
    matrix = [[0.5, 0.5, 0.0], [0.25, 0.0, 0.75]]
    # leakages log 4/3, log 2 and log 2; output law 3/8, 1/4, 3/8
    assert failure_probability([0.5, 0.5], matrix, 0.0) == 1.0
    assert failure_probability([0.5, 0.5], matrix, math.log(1.5)) == 0.625
    assert failure_probability([0.5, 0.5], matrix, math.log(2) + 1e-12) == 0.0


@pytest.mark.parametrize("epsilon", [-1e-9, math.nan, math.inf])
def test_failure_probability_needs_a_level(epsilon: float) -> None:
    with pytest.raises(PrivacyError, match="epsilon"):
        failure_probability([0.5, 0.5], np.eye(2), epsilon)


def test_a_numerator_of_zeros_has_the_ratio_zero_whatever_rounds() -> None:
    rng = np.random.default_rng(0)
    for _ in range(200):
        below, matrix = rng.uniform(size=(2, 7)), rng.uniform(0.1, 1, size=(7, 3))
        assert (log_product_ratios(np.zeros((2, 7)), below, matrix) == -math.inf).all()


@given(pairs(tiny=False), st.integers(0, 2**32 - 1))
def test_ratios_of_products_are_those_of_fractions(pair: tuple[FloatArray, FloatArray], seed: int) -> None:
    # numerators and denominators with other sums than one another, so that the least entry does not cancel
    rng, matrix = np.random.default_rng(seed), pair[1]
    above, below = rng.integers(0, 4, (2, 3, len(matrix))).astype(float)
    found = log_product_ratios(above, below, matrix)
    for k, y in np.ndindex(found.shape):
        up, down = (
            sum(
                Fraction(w) * Fraction(v) for w, v in zip(row[k].tolist(), matrix[:, y].tolist(), strict=True)
            )
            for row in (above, below)
        )
        if down == 0:
            assert found[k, y] == (math.inf if up > 0 else -math.inf)
        elif up == 0:
            assert found[k, y] == -math.inf
        else:
            assert found[k, y] == pytest.approx(math.log(up / down), abs=1e-12 + 1e-14 * float(down / up))


def test_ratios_of_entries_at_the_ends() -> None:
    above, below = np.array([0.0, 0.5, 0.5, 0.25]), np.array([0.5, 0.0, 0.25, 0.5])
    assert log_entry_ratios(above, below) == pytest.approx([-math.inf, math.inf, math.log(2), -math.log(2)])
