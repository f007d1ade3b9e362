"""Leakage within several guesses: the gain of every set of letters, without listing the sets."""

from __future__ import annotations

from itertools import combinations

import numpy as np
import pytest
from oracles.designs import random_prior

from pmlopt import ExpectedGain, GainLeakage, GuessLeakage, Prior, design, solve
from pmlopt.core.arrays import FloatArray


def sets_of(letters: int, guesses: int) -> FloatArray:
    """(N over k, N) the gain of each set of letters."""
    return np.array(
        [[x in chosen for x in range(letters)] for chosen in combinations(range(letters), guesses)], float
    )


@pytest.mark.parametrize(("letters", "guesses"), [(4, 1), (5, 2), (6, 3)])
def test_it_is_the_leakage_of_the_gains_of_all_sets(letters: int, guesses: int) -> None:
    rng = np.random.default_rng([letters, guesses])
    for epsilon in (1e-3, 0.6):
        p, gains = random_prior(rng, letters), rng.random((letters, 5))
        many = GainLeakage(epsilon, sets_of(letters, guesses))
        matrix = rng.dirichlet(np.ones(4), letters)
        few = GuessLeakage(guesses, epsilon)
        assert few.level(p, matrix) == pytest.approx(many.level(p, matrix), abs=1e-12)
        found, wanted = (solve(design(Prior(p), one, ExpectedGain(gains))) for one in (few, many))
        assert found.value == pytest.approx(wanted.value, abs=1e-8)
        assert found.bound - found.value <= 1e-7
        assert found.level <= epsilon
        assert found.certificate.verify()


def test_as_many_guesses_as_letters_tell_nothing() -> None:
    everything = GuessLeakage(3, 0.0)
    assert everything.level([0.5, 0.3, 0.2], np.eye(3)) == 0
    assert GuessLeakage(5, 0.0).holds([0.5, 0.3, 0.2], np.eye(3))
    assert solve(design([0.5, 0.3, 0.2], everything, ExpectedGain(np.eye(3)))).value == pytest.approx(1)
    assert solve(design([1e-300, 0.5, 0.5], GuessLeakage(1, 0.3), ExpectedGain(np.eye(3)))).level <= 0.3


@pytest.mark.parametrize("guesses", [1, 2])
def test_at_zero_nats_more_than_a_constant_is_released(guesses: int) -> None:
    # letters outside of the best guess may be told apart: the optimum is that of the bounds for all sets
    rng = np.random.default_rng(guesses)
    prior, gains = Prior(rng.dirichlet(np.ones(3))), rng.normal(size=(3, 3))
    still, near = (solve(design(prior, GuessLeakage(guesses, e), ExpectedGain(gains))) for e in (0.0, 1e-9))
    other = solve(design(prior, GainLeakage(0.0, sets_of(3, guesses)), ExpectedGain(gains)))
    assert still.value == pytest.approx(other.value, abs=1e-8)
    assert still.gap <= 1e-7
    assert still.level <= 1e-13
    assert still.value >= max(float((prior.pmf @ gains).max()) - 1e-12, near.value - 1e-6)
    assert still.certificate.privacy.limits["guess_leakage"] <= 2.0**-46
    assert still.certificate.verify()
