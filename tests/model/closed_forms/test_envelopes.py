"""Envelopes by formula: randomized response against a greedy oracle, ENV's Theorem 5 and its corners."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from refusals import refused

from pmlopt.core.numbers.arrays import FloatArray
from pmlopt.errors import PrivacyError
from pmlopt.measures import binary_envelope, envelope_bounds, leakage_quantile, pointwise_leakage
from pmlopt.model.closed_forms import (
    randomized_response,
    randomized_response_adp,
    randomized_response_condition,
    randomized_response_envelope,
    randomized_response_lower_bound,
    randomized_response_thresholds,
    randomized_response_upper_bound,
)

FORMS = (
    randomized_response_envelope,
    randomized_response_lower_bound,
    randomized_response_condition,
    randomized_response_upper_bound,
)

Case = tuple[FloatArray, float, float]


@st.composite
def cases(draw: st.DrawFn) -> Case:
    """A prior, an LDP level and delta."""
    k = draw(st.integers(2, 8))
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    spread = draw(st.sampled_from([0.05, 0.3, 1.0, 10.0, 1e6]))
    p = rng.dirichlet(np.full(k, spread)) + draw(st.sampled_from([1e-6, 1e-3])) / k
    epsilon = draw(st.one_of(st.floats(0.05, 4.0), st.sampled_from([1e-6, 10.0, 30.0])))
    return (
        p / p.sum(),
        epsilon,
        draw(st.one_of(st.floats(0.01, 0.99), st.sampled_from([1e-9, 1 - 1e-9]))),
    )


def filled(p: FloatArray, epsilon: float, t: float) -> float:
    """V(t) of randomized response for t > 1, by the greedy argument of the closed form's proof."""
    k = len(p)
    alpha = math.exp(epsilon) / (math.exp(epsilon) + k - 1)
    beta = 1 / (math.exp(epsilon) + k - 1)
    law = sorted(beta + (alpha - beta) * p)
    inside = [q for q in law if alpha >= t * q]
    spare = sum(alpha - t * q for q in inside)
    mass = float(sum(inside))
    for q in law[len(inside) :]:
        if t * q <= beta:  # costs nothing: cannot be, as beta <= q
            mass += q
            continue
        share = min(1.0, spare / (t * q - beta)) if inside else 0.0
        mass += share * q
        spare -= share * (t * q - beta)
    return mass


@given(cases())
@settings(max_examples=40, deadline=None)
def test_the_formula_is_where_the_greedy_mass_falls_below_delta(case: Case) -> None:
    p, epsilon, delta = case
    level = randomized_response_envelope(p, epsilon, delta)
    assert 0 <= level <= randomized_response_upper_bound(p, epsilon, delta) + 1e-12
    for step in (1e-6, 1e-3, 0.1):
        if level > 2 * step:
            assert filled(p, epsilon, math.exp(level - step)) >= delta * (1 - 1e-12)
        assert filled(p, epsilon, math.exp(level + step)) < delta * (1 + 1e-12)


@given(cases())
@settings(max_examples=40, deadline=None)
def test_theorem_5(case: Case) -> None:
    p, epsilon, delta = case
    mechanism = randomized_response(len(p), epsilon)
    level = randomized_response_envelope(p, epsilon, delta)
    reached = randomized_response_lower_bound(p, epsilon, delta)
    if randomized_response_condition(p, epsilon, delta):
        assert reached == pytest.approx(level, abs=1e-12)
    assert reached <= level + 1e-12
    assert level <= randomized_response_upper_bound(p, epsilon, delta) + 1e-12
    assert level >= binary_envelope(p, mechanism, delta) - 1e-12
    assert level >= leakage_quantile(p, mechanism, delta, upper=True) - 1e-12
    low, high = envelope_bounds(p, mechanism, delta)
    assert low - 1e-12 <= level <= high + 1e-12
    assert high <= randomized_response_upper_bound(p, epsilon, delta) + 1e-12


@given(cases())
@settings(max_examples=20, deadline=None)
def test_the_curve_does_not_rise(case: Case) -> None:
    p, epsilon, _ = case
    law = np.sort(p @ randomized_response(len(p), epsilon).matrix)
    edges = np.cumsum(law)[:-1]
    deltas = np.sort(
        np.concatenate([np.linspace(0.01, 0.99, 50), edges, edges - 1e-9, edges + 1e-9])
    )
    inside = deltas[(deltas > 0) & (deltas < 1)]
    curve = np.array([randomized_response_envelope(p, epsilon, delta) for delta in inside])
    assert (np.diff(curve) <= 1e-12).all()
    up_to_first = randomized_response_envelope(p, epsilon, float(law[0]))
    assert up_to_first == pytest.approx(
        pointwise_leakage(p, randomized_response(len(p), epsilon)).max()
    )


def test_the_thresholds_by_hand() -> None:
    # alpha = 1/2, beta = 1/4, q = 0.3, 0.325, 0.375; 0.7 is past 0.625: N = 3, theta = 0.2
    first, second = randomized_response_thresholds([0.2, 0.3, 0.5], math.log(2), 0.7)
    assert first == pytest.approx(0.5 * (0.325 - 0.3) / (0.5 * 0.375 - 0.25 * 0.325), abs=1e-12)
    assert second == pytest.approx(0.5 * (0.75 - 0.625) / (0.375 * 0.25), abs=1e-12)
    assert first < 0.2 < second
    level = math.log((2 * 0.5 + 0.2 * 0.25) / 0.7)
    assert randomized_response_lower_bound([0.2, 0.3, 0.5], math.log(2), 0.7) == pytest.approx(
        level
    )
    assert randomized_response_envelope([0.2, 0.3, 0.5], math.log(2), 0.7) == pytest.approx(level)
    # past theta_2: the leakage of the third outcome; up to theta_1: that of the second
    for delta, q in ((0.9, 0.375), (0.63, 0.325)):
        found = randomized_response_lower_bound([0.2, 0.3, 0.5], math.log(2), delta)
        assert found == pytest.approx(math.log(0.5 / q))


@given(st.integers(2, 8), st.floats(0.0, 20.0), st.floats(1e-6, 1 - 1e-6))
@settings(max_examples=40, deadline=None)
def test_approximate_dp_is_its_definition(k: int, epsilon: float, delta: float) -> None:
    level = randomized_response_adp(k, epsilon, delta)
    matrix = randomized_response(k, epsilon).matrix

    def excess(at: float) -> float:
        return float(max(np.maximum(a - math.exp(at) * b, 0).sum() for a in matrix for b in matrix))

    assert 0 <= level <= epsilon
    assert excess(level) <= delta + 1e-9
    if level > 1e-3:
        assert excess(level - 1e-4) > delta


@pytest.mark.parametrize("epsilon", [100.0, 700.0, 800.0, 1e6])
def test_levels_past_every_float(epsilon: float) -> None:
    """Randomized response is the identity, in floats; from 746 nats on e^-epsilon is 0."""
    p = [0.2, 0.3, 0.5]
    for form in (randomized_response_envelope, randomized_response_lower_bound):
        for delta, level in (
            (0.15, math.log(1 / 0.2)),
            (0.45, math.log(1 / 0.3)),
            (0.95, math.log(2 / 0.95)),
        ):
            assert form(p, epsilon, delta) == pytest.approx(level, abs=1e-12)
    # N = 2: p_2 <= (alpha p_1 + beta) / beta, which has no end
    assert randomized_response_condition([0.4, 0.6], epsilon, 0.9)
    assert randomized_response_adp(4, epsilon, 0.5) == pytest.approx(
        epsilon + math.log(0.5), rel=1e-12
    )


def test_what_cannot_be_meant_is_refused() -> None:
    deltas = (0, 1, -0.5, 1.5, math.nan, math.inf, "half", None)
    levels = (-1e-9, math.nan, math.inf, "one", None)
    for form in (*FORMS, randomized_response_thresholds):
        refused(
            PrivacyError, form, ".", ([1.0], 1.0, 0.5), *(([0.4, 0.6], 1.0, bad) for bad in deltas)
        )
        refused(PrivacyError, form, ".", *(([0.4, 0.6], bad, 0.5) for bad in levels))
    refused(
        PrivacyError,
        randomized_response_thresholds,
        ".",
        ([0.4, 0.6], 1.0, 0.1),
        ([0.4, 0.6], 0.0, 0.9),
    )
    refused(PrivacyError, randomized_response_adp, ".", *((3, 1.0, bad) for bad in deltas))
