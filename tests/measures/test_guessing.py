"""Guesses within a few and guesswork, beside the sums over all orders of guessing."""

from __future__ import annotations

import math
from itertools import combinations, permutations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pmlopt import GuessLeakage
from pmlopt.errors import PrivacyError
from pmlopt.measures import guessing_probability, guesswork


@given(st.integers(1, 4), st.integers(1, 3), st.integers(0, 10**6))
@settings(max_examples=30)
def test_no_list_and_no_order_of_guesses_is_better(letters: int, outputs: int, seed: int) -> None:
    rng = np.random.default_rng(seed)
    p, matrix = rng.dirichlet(np.ones(letters)), rng.dirichlet(np.ones(outputs), letters)
    joint = p[:, None] * matrix
    for k in range(1, letters + 1):
        best = sum(
            max(joint[list(some), y].sum() for some in combinations(range(letters), k))
            for y in range(outputs)
        )
        assert guessing_probability(p, matrix, k) == pytest.approx(best, abs=1e-12)
    for order in (0.5, 1.0, 2.0):
        numbers = np.arange(1, letters + 1) ** order
        least = sum(
            min(float(numbers @ joint[list(own), y]) for own in permutations(range(letters)))
            for y in range(outputs)
        )
        assert guesswork(p, matrix, order) == pytest.approx(least, abs=1e-12)


def test_the_mean_success_grows_by_no_more_than_the_worst_outcome_tells() -> None:
    rng = np.random.default_rng(3)
    p, matrix = rng.dirichlet(np.ones(5)), rng.dirichlet(np.ones(3), 5)
    still = np.ones((5, 1))
    for k in (1, 2, 4):
        grown = guessing_probability(p, matrix, k) / guessing_probability(p, still, k)
        assert 1 - 1e-12 <= grown <= math.exp(GuessLeakage(k, 1.0).level(p, matrix)) + 1e-12
    assert guesswork(p, np.eye(5)) == pytest.approx(1)
    assert guesswork(p, matrix) <= guesswork(p, still) + 1e-12


def test_impossible_numbers_are_refused() -> None:
    with pytest.raises(PrivacyError, match="guesses"):
        guessing_probability([0.5, 0.5], np.eye(2), 0)
    for order in (0, -1.0, math.inf, math.nan):
        with pytest.raises(PrivacyError, match="order"):
            guesswork([0.5, 0.5], np.eye(2), order)
