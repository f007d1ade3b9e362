"""The privacy loss and approximate differential privacy against their definitions over all events."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from refusals import refused

from pmlopt import Mechanism, ldp_level
from pmlopt.core.numbers.arrays import FloatArray
from pmlopt.errors import MechanismError, PrivacyError
from pmlopt.measures import (
    approximate_dp_delta,
    approximate_dp_level,
    failure_probability,
    leakage_law,
    pointwise_leakage,
    privacy_loss,
    privacy_loss_law,
    probabilistic_dp_delta,
)


@st.composite
def channels(draw: st.DrawFn) -> FloatArray:
    """Rows of small whole numbers over their sums, zeros among them."""
    shape = draw(st.integers(1, 4)), draw(st.integers(1, 5))
    weights = draw(arrays(np.int64, shape, elements=st.integers(0, 6)))
    weights[:, 0] += weights.sum(axis=1) == 0
    return np.asarray(weights / weights.sum(axis=1, keepdims=True))


def largest_excess(matrix: FloatArray, epsilon: float) -> float:
    """max over pairs and all events of P(E | x) - e^eps P(E | x')."""
    events = np.array(list(itertools.product([0, 1], repeat=matrix.shape[1]))).T
    chances = matrix @ events
    return float((chances[:, None] - math.exp(epsilon) * chances[None]).max())


@given(channels(), st.sampled_from([0.0, 0.1, math.log(2), 1.5, 5.0]))
@settings(max_examples=30, deadline=None)
def test_the_profile_is_the_largest_excess_of_an_event(matrix: FloatArray, epsilon: float) -> None:
    found = approximate_dp_delta(matrix, epsilon)
    assert found == pytest.approx(largest_excess(matrix, epsilon), abs=1e-12)
    assert found <= probabilistic_dp_delta(matrix, epsilon) + 1e-12


@given(channels(), st.sampled_from([0.01, 0.1, 0.3, 0.9]))
@settings(max_examples=30, deadline=None)
def test_the_level_is_where_the_profile_meets_delta(matrix: FloatArray, delta: float) -> None:
    level = approximate_dp_level(matrix, delta)
    assert level <= ldp_level(matrix) + 1e-12
    if math.isinf(level):
        assert approximate_dp_delta(matrix, 600.0) > delta - 1e-12
    else:
        assert approximate_dp_delta(matrix, level) <= delta + 1e-12
        if level > 1e-6:
            assert approximate_dp_delta(matrix, level - 1e-7) >= delta


@given(channels(), st.sampled_from([0.3, math.log(2), 1.0]), st.integers(2, 4))
@settings(max_examples=25, deadline=None)
def test_approximate_bounds_probabilistic_privacy_at_multiples(
    matrix: FloatArray, epsilon: float, times: int
) -> None:
    # [saeidian2026envelopes, eq. (4)]
    bound = approximate_dp_delta(matrix, epsilon) / -math.expm1(-(times - 1) * epsilon)
    assert probabilistic_dp_delta(matrix, times * epsilon) <= bound + 1e-12


@given(channels())
@settings(max_examples=25, deadline=None)
def test_laws_have_the_probabilities_of_their_tails(matrix: FloatArray) -> None:
    p = np.arange(1.0, len(matrix) + 1) / np.arange(1.0, len(matrix) + 1).sum()
    levels, masses = leakage_law(p, matrix)
    assert (np.diff(levels) > 0).all()
    assert masses.sum() == pytest.approx(1, abs=1e-12)
    assert levels[-1] == pytest.approx(pointwise_leakage(p, matrix).max(), abs=1e-12)
    for level in (*levels, *(levels / 2)):
        assert masses[levels > level + 1e-12].sum() == pytest.approx(
            failure_probability(p, matrix, level), abs=1e-12
        )
    for first, second in itertools.permutations(range(len(matrix)), 2):
        losses, chances = privacy_loss_law(matrix, first, second)
        assert chances.sum() == pytest.approx(1, abs=1e-12)
        # E e^-L is what the second letter gives the outcomes of the first
        assert chances @ np.exp(-losses) == pytest.approx(
            matrix[second, matrix[first] > 0].sum(), abs=1e-12
        )


def test_losses_by_letters_and_where_they_are_infinite() -> None:
    mechanism = Mechanism([[0.5, 0.5, 0, 0], [0.25, 0, 0.75, 0]], ["a", "b"])
    assert privacy_loss(mechanism, "a", "b")[:3].tolist() == [math.log(2), math.inf, -math.inf]
    assert math.isnan(privacy_loss(mechanism, "a", "b")[3])
    assert approximate_dp_delta(mechanism, 800.0) == 0.75
    assert approximate_dp_level(mechanism, 0.8) == 0.0
    # an event that one letter gives no more than delta may be impossible for another
    assert approximate_dp_level([[0.25, 0.75], [0.0, 1.0]], 0.25) == 0.0
    assert approximate_dp_level([[0.25, 0.75], [0.0, 1.0]], 0.24) == math.inf
    with pytest.raises(MechanismError, match="no letter 'c'"):
        privacy_loss(mechanism, "a", "c")


def test_what_is_no_level_is_refused() -> None:
    for measure in (approximate_dp_delta, probabilistic_dp_delta, approximate_dp_level):
        refused(
            PrivacyError,
            measure,
            ".",
            *((np.eye(2), bad) for bad in (-1.0, math.nan, math.inf, "one")),
        )
