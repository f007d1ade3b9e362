"""Randomized response over sets of priors that treat all letters alike: optimal, tight, and its ends."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from oracles.robust_designs import robust_optimum
from refusals import refused
from strategies import MODEST

from pmlopt import PML, Box, ExpectedLoss, L1Ball, MinimumMass, Prior, design, solve
from pmlopt.errors import PrivacyError
from pmlopt.model.closed_forms import randomized_response, robust_randomized_response, uniform
from pmlopt.model.uncertainty import PriorSet
from pmlopt.model.utility import hamming


def sets(size: int, share: float) -> dict[str, tuple[PriorSet, float]]:
    """Sets that treat all letters alike, each with the least probability of a letter."""
    prior, lowest = Prior.uniform(size), share / size
    return {
        "ball": (L1Ball(prior, 2 * (1 - share) / size), lowest),
        "masses": (MinimumMass(size, lowest), lowest),
        "box": (
            Box(np.full(size, lowest), np.full(size, 1.5 / size)),
            max(lowest, 1 - 1.5 * (size - 1) / size),
        ),
    }


@MODEST
@given(st.integers(3, 7), st.floats(0.05, 0.95), st.floats(0.0, 3.0))
def test_the_bound_is_met_with_equality_up_to_the_identity(
    size: int, share: float, epsilon: float
) -> None:
    for priors, lowest in sets(size, share).values():
        form = robust_randomized_response(size, lowest, epsilon)
        level = PML(epsilon, over=priors).level(Prior.uniform(size), form)
        expected = min(epsilon, -math.log(lowest))
        assert level == pytest.approx(expected, abs=1e-11)


@pytest.mark.parametrize("kind", ["ball", "masses", "box"])
@pytest.mark.parametrize(
    ("size", "share", "epsilon"), [(3, 0.5, 0.4), (4, 0.7, 1.1), (6, 0.2, 0.2), (5, 0.9, 1.5)]
)
def test_it_loses_least(kind: str, size: int, share: float, epsilon: float) -> None:
    priors, lowest = sets(size, share)[kind]
    form, prior = robust_randomized_response(size, lowest, epsilon), Prior.uniform(size)
    loss = 1 - float(np.trace(form.matrix)) / size
    best = robust_optimum(prior.pmf, priors, epsilon, np.eye(size))
    assert 1 - best == pytest.approx(loss, abs=1e-9)
    result = solve(design(prior, PML(epsilon, over=priors), ExpectedLoss(hamming)))
    assert result.value == pytest.approx(loss, abs=1e-9)
    assert result.closed_form is not None
    assert result.closed_form.name == "robust_randomized_response"


def test_its_ends_are_the_forms_that_are_known() -> None:
    for size in (3, 5):
        for epsilon in (0.0, 0.3, 1.0):
            everywhere = robust_randomized_response(size, 0.0, epsilon).matrix
            np.testing.assert_allclose(
                everywhere, randomized_response(size, epsilon).matrix, atol=1e-15
            )
            known = robust_randomized_response(size, 1 / size, epsilon).matrix
            gain = float(np.trace(uniform(size, epsilon).matrix))
            assert float(np.trace(known)) == pytest.approx(gain, abs=1e-14)
    assert (robust_randomized_response(4, 0.2, math.log(5.1)).matrix == np.eye(4)).all()
    assert (robust_randomized_response(3, 0.0, 1e6).matrix.round(300) == np.eye(3)).all()
    assert robust_randomized_response(1, 1.0, 0.0).matrix.tolist() == [[1.0]]


def test_a_small_case_in_fractions() -> None:
    # N = 3, L = 1/6, t = 2: off = 1 - 1/3 = 2/3, t - 1 = 1, row sum 3
    expected = [[Fraction(5, 9), Fraction(2, 9), Fraction(2, 9)]]
    found = robust_randomized_response(3, 1 / 6, math.log(2)).matrix[:1]
    np.testing.assert_allclose(found, np.array(expected, dtype=float), atol=1e-15)


def test_what_cannot_be_meant_is_refused() -> None:
    refused(PrivacyError, robust_randomized_response, "1/3", (3, 0.5, 1.0))
    refused(PrivacyError, robust_randomized_response, "1/3", (3, -0.1, 1.0))
    refused(PrivacyError, robust_randomized_response, "at least 0", (3, 0.1, -1.0))
    refused(PrivacyError, robust_randomized_response, "whole number", (0, 0.1, 1.0))
