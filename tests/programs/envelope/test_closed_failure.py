"""The closed failure probability: linear programs by other means, a formula, jumps, and what is claimed."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from oracles.envelopes import HALVES, QUARTERS, most_mass, random_mechanism, solved

from pmlopt import PML, ApproximatePML, ExpectedLoss, certify, design, leakage_level, maximal_leakage, solve
from pmlopt.core.arrays import FloatArray
from pmlopt.errors import MechanismError, PrivacyError
from pmlopt.measures import envelope_slack, failure_probability, slack
from pmlopt.model.closed_forms import randomized_response
from pmlopt.model.utility import hamming
from pmlopt.programs import Status, failure_after_processing


def knapsack(p: FloatArray, epsilon: float, t: float) -> float:
    """V(t) of randomized response: the credit of the letters that may leak t, spent on the rarest others."""
    k = len(p)
    alpha, beta = math.exp(epsilon) / (math.exp(epsilon) + k - 1), 1 / (math.exp(epsilon) + k - 1)
    q = np.sort(beta + (alpha - beta) * p)
    own = q[t * q <= alpha]
    if not len(own):
        return 0.0
    credit, mass = float((alpha - t * own).sum()), float(own.sum())
    for other in q[len(own) :]:
        share = min(1.0, credit / (t * other - beta))
        credit, mass = credit - share * (t * other - beta), mass + share * other
    return mass


@pytest.mark.parametrize("seed", range(0, 60, 8))
def test_it_is_the_linear_program(seed: int) -> None:
    p, matrix = random_mechanism(seed)
    epsilon = float(np.random.default_rng([1230, seed]).uniform(0, 1.1)) * leakage_level(p, matrix)
    found = solve(failure_after_processing(p, matrix, epsilon))
    assert found.status is Status.OPTIMAL
    assert found.certificate.verify()
    assert found.value == pytest.approx(most_mass(p, matrix, math.exp(epsilon)), abs=1e-8)
    assert found.bound - found.value == found.gap
    assert found.level == epsilon
    processed = matrix @ found.certificate.attack.matrix
    if epsilon > 0:
        assert failure_probability(p, processed, epsilon * (1 - 1e-9)) >= found.value - 1e-9
    assert failure_probability(p, matrix, epsilon) <= found.bound + 1e-12
    assert found.bound <= math.exp(maximal_leakage(matrix) - epsilon) * (1 + 1e-12)


@given(st.integers(2, 6), st.floats(0.1, 3), st.floats(0.01, 0.99), st.integers(0, 1000))
@settings(max_examples=25, deadline=None)
def test_randomized_response_by_formula(size: int, epsilon: float, share: float, seed: int) -> None:
    p = np.random.default_rng([1231, seed]).dirichlet(np.ones(size)) + 1e-3
    p /= p.sum()
    matrix = randomized_response(size, epsilon)
    level = share * leakage_level(p, matrix)
    found = solve(failure_after_processing(p, matrix, level))
    assert found.status is Status.OPTIMAL
    assert found.value == pytest.approx(knapsack(p, epsilon, math.exp(level)), abs=1e-8)


@pytest.mark.parametrize("seed", range(1, 40, 6))
def test_it_is_the_inverse_of_the_envelope(seed: int) -> None:
    p, matrix = random_mechanism(seed)
    for delta in (0.1, 0.6):
        level = solved(p, matrix, delta)
        assert solve(failure_after_processing(p, matrix, level.value)).bound >= delta
        assert solve(failure_after_processing(p, matrix, level.bound + 1e-12)).value <= delta * (1 + 1e-12)


@pytest.mark.parametrize("seed", [2, 16, 28, 44, 86, 107])
def test_jumps_are_decided_exactly(seed: int) -> None:
    # just at the leakage of an outcome, and one float below and above
    p, matrix = random_mechanism(seed)
    law = p @ matrix
    used = law > 0
    for level in np.log((matrix[:, used] / law[used]).max(axis=0)):
        around = [float(np.nextafter(level, toward)) for toward in (-1, level, 9)]
        found = [solve(failure_after_processing(p, matrix, max(0.0, near))) for near in around]
        assert all(one.certificate.verify() and one.gap <= 1e-8 for one in found)
        values = [one.value for one in found]
        assert values == sorted(values, reverse=True) or max(values) - min(values) <= 1e-8


@pytest.mark.parametrize("seed", range(0, 30, 5))
def test_a_slack_bounds_what_leaks(seed: int) -> None:
    p, matrix = random_mechanism(seed)
    level = leakage_level(p, matrix)
    for low, high in ((0.0, 0.5 * level), (0.2 * level, 0.7 * level), (0.6 * level, level)):
        if not low < high:
            continue
        least = slack(p, matrix, low)
        found = solve(failure_after_processing(p, matrix, high))
        assert found.value <= len(p) * least / (math.exp(high) - math.exp(low)) + 1e-9
        for delta in (0.05, 0.5):  # the promise of a design that meets it
            if least <= envelope_slack(len(p), high, delta, low):
                assert solved(p, matrix, delta).value <= high + 1e-9


def test_a_design_promises_an_envelope() -> None:
    prior = [0.7, 0.1, 0.1, 0.05, 0.05]
    made = solve(design(prior, ApproximatePML(0.0, envelope_slack(5, 0.5, 0.5)), ExpectedLoss(hamming)))
    assert solved(prior, made.mechanism, 0.5).bound <= 0.5
    assert made.value < solve(design(prior, PML(0.5), ExpectedLoss(hamming))).value - 0.02
    assert envelope_slack(5, 800.0, 0.5) == math.inf
    for bad in ((5, 0.5, 1.0, 0.0), (5, 0.5, 0.5, 0.5), (5, -0.5, 0.5, 0.0), (0, 0.5, 0.5, 0.0)):
        with pytest.raises(PrivacyError):
            envelope_slack(*bad)


def test_the_ends() -> None:
    at_nothing = solve(failure_after_processing(QUARTERS, HALVES, 0.0))
    assert (at_nothing.value, at_nothing.bound) == (1.0, 1.0)
    for high in (math.log(4) + 1e-9, 5.0, 800.0, 1e300):
        found = solve(failure_after_processing(QUARTERS, HALVES, high))
        assert (found.value, found.bound, found.iterations) == (0.0, 0.0, 0)
        assert found.certificate.verify()
    alone = solve(failure_after_processing([1.0], [[0.5, 0.5]], 0.1))
    assert (alone.value, alone.bound) == (0.0, 0.0)


@pytest.mark.parametrize("bad", [-0.1, math.nan, math.inf, "much", None])
def test_levels_that_are_none_are_refused(bad: Any) -> None:
    with pytest.raises(PrivacyError):
        failure_after_processing(QUARTERS, HALVES, bad)


def test_a_post_processing_of_ones_own_is_certified() -> None:
    program = failure_after_processing(QUARTERS, HALVES, math.log(3))
    plain = certify(program, np.eye(4))
    assert plain.value == pytest.approx(0.1, abs=1e-15)  # the two rare outputs
    assert plain.bound == pytest.approx(1.4 / 3, abs=1e-15)  # from the maximal leakage
    assert plain.certificate.verify()
    best = solve(program)
    again = certify(program, best.certificate.attack, best.certificate.multipliers)
    assert (again.value, again.bound, again.status) == (best.value, best.bound, Status.OPTIMAL)
    assert best.value == pytest.approx(14 / 95, abs=1e-12)
    for matrix, multipliers in ((np.eye(3), None), (np.eye(4), [1.0] * 3)):
        with pytest.raises(MechanismError):
            certify(program, matrix, multipliers)
