"""Local differential privacy: the classical mechanisms and what LDP means in PML."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from refusals import refused
from strategies import MODEST, epsilons, pairs, priors

from pmlopt.core.numbers.arrays import FloatArray
from pmlopt.data.prior import Prior
from pmlopt.errors import PrivacyError, UtilityError
from pmlopt.measures import ldp_level, leakage_level
from pmlopt.model.closed_forms import exponential, ldp_for_pml, pml_of_ldp, randomized_response

TABLES = st.tuples(st.integers(1, 5), st.integers(1, 5)).flatmap(
    lambda shape: st.lists(
        st.lists(st.integers(-80, 80).map(lambda v: v / 8), min_size=shape[1], max_size=shape[1]),
        min_size=shape[0],
        max_size=shape[0],
    )
)


@given(st.integers(2, 6), epsilons(40.0))
@MODEST
def test_randomized_response_has_exactly_its_level(size: int, epsilon: float) -> None:
    mechanism = randomized_response(size, epsilon)
    assert np.abs(mechanism.matrix.sum(axis=1) - 1).max() <= 1e-15
    assert ldp_level(mechanism) == pytest.approx(epsilon, rel=1e-12, abs=1e-15)


def test_the_ends() -> None:
    assert randomized_response(1, 1.0).matrix.tolist() == [[1.0]]
    assert randomized_response(4, 0.0).matrix.tolist() == np.full((4, 4), 0.25).tolist()
    assert randomized_response(3, 5000.0).matrix.tolist() == np.eye(3).tolist()
    assert ldp_level(exponential([[1.0, 0.0], [1.0, 0.0]], 2.0)) == 0.0  # without sensitivity
    assert (
        ldp_for_pml([0.4, 0.6], 0.0) == pml_of_ldp([0.4, 0.6], 0.0) == pml_of_ldp([1.0], 3.0) == 0.0
    )
    for size in (1, 2, 3, 7, 49, 1000):  # from the maximum on any mechanism will do
        prior = Prior.uniform(size)
        assert (
            ldp_for_pml(prior, prior.max_leakage)
            == ldp_for_pml(prior, prior.max_leakage + 1)
            == math.inf
        )
    for smallest in (1e-9, 1e-20, 1e-100):
        exact = -math.log(smallest + (1 - smallest) * math.exp(-40.0))
        assert pml_of_ldp([smallest, 1 - smallest], 40.0) == pytest.approx(exact, rel=1e-12)


@given(TABLES, epsilons())
@MODEST
def test_exponential_mechanism_prefers_by_the_scores(
    scores: list[list[float]], epsilon: float
) -> None:
    table = np.array(scores)
    sensitivity = max(max(column) - min(column) for column in table.T)
    matrix = exponential(scores, epsilon).matrix
    if sensitivity > 0:
        log_ratio = np.log(matrix / matrix[:, :1])
        expected = epsilon * (table - table[:, :1]) / (2 * sensitivity)
        assert log_ratio == pytest.approx(expected, rel=1e-11, abs=1e-12)


@given(priors(2, 5), st.floats(0.0, 0.999))
@MODEST
def test_the_level_in_ldp_and_the_one_in_pml_are_inverses(prior: FloatArray, share: float) -> None:
    epsilon = share * Prior(prior).max_leakage
    assert pml_of_ldp(prior, ldp_for_pml(prior, epsilon)) == pytest.approx(
        epsilon, rel=1e-9, abs=1e-14
    )


@given(pairs())
@MODEST
def test_no_mechanism_leaks_more_than_its_ldp_level_allows(
    pair: tuple[FloatArray, FloatArray],
) -> None:
    # WCU, Proposition 1
    prior, matrix = pair
    smoothed = 0.9 * matrix + 0.1 / matrix.shape[1]
    assert leakage_level(prior, smoothed) <= pml_of_ldp(prior, ldp_level(smoothed)) + 1e-12


@given(priors(2, 5), epsilons(3.0))
@MODEST
def test_the_pml_level_of_an_ldp_level_is_reached(prior: FloatArray, epsilon: float) -> None:
    rare = np.full(len(prior), math.exp(-epsilon) / 20)
    rare[prior.argmin()] = 1 / 20
    matrix = np.column_stack([rare, 1 - rare])
    expected = pml_of_ldp(prior, ldp_level(matrix))
    assert ldp_level(matrix) == pytest.approx(epsilon, abs=1e-12)
    assert leakage_level(prior, matrix) == pytest.approx(expected, abs=1e-12)


@given(priors(2, 5, tiny=False), st.floats(0.01, 0.99))
@MODEST
def test_a_larger_ldp_level_guarantees_no_more(prior: FloatArray, share: float) -> None:
    epsilon = share * Prior(prior).max_leakage
    level = ldp_for_pml(prior, epsilon)
    assert math.isfinite(level)
    assert pml_of_ldp(prior, level + 0.01) > epsilon


def test_what_cannot_be_meant_is_refused() -> None:
    none = (-0.1, math.nan, math.inf)
    tables: list[Any] = [[1.0, 2.0], [[math.nan, 1.0]], [[1.0], [1.0, 2.0]], []]
    half = [0.5, 0.5]
    for form, of in (
        (ldp_for_pml, half),
        (pml_of_ldp, half),
        (randomized_response, 3),
        (exponential, [[1.0]]),
    ):
        refused(PrivacyError, form, "epsilon", *((of, epsilon) for epsilon in none))
    refused(PrivacyError, exponential, "epsilon", *(([[1.0]], epsilon) for epsilon in none))
    sizes = (0, -2, 1.5, "many")
    refused(
        PrivacyError, randomized_response, "size of the alphabet", *((size, 1.0) for size in sizes)
    )
    refused(UtilityError, exponential, "the scores", *((scores, 1.0) for scores in tables))
