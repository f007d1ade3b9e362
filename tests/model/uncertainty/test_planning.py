"""Planning of samples: three functions that follow from one inequality, and a promise that is kept."""

from __future__ import annotations

import math
import sys
from collections.abc import Callable
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from refusals import refused
from scipy.stats import binom
from strategies import MODEST

from pmlopt import Prior, closed_forms, confidence_ball, confidence_box, leakage_level
from pmlopt.errors import PrivacyError
from pmlopt.model.uncertainty import (
    deviation_exponent,
    failure_bound,
    level_increase_within_distance,
    level_needed_at_centre,
    level_within_distance,
    samples_needed,
    true_level_with_confidence,
    weissman_delta,
    weissman_radius,
    weissman_samples,
)

LEVELS = st.floats(0, 3)
STEPS = st.floats(0.01, 2)
SIZES = st.integers(2, 60)
DELTAS = st.sampled_from([1e-9, 1e-5, 0.01, 0.1, 0.7])


@given(st.integers(1, 10**7), SIZES, LEVELS, STEPS, DELTAS)
@MODEST
def test_the_failure_bound_and_the_level_with_confidence_are_their_formulas(
    samples: int, size: int, epsilon: float, step: float, delta: float
) -> None:
    width = math.exp(-epsilon) - math.exp(-epsilon - step)
    logarithm = math.log(Fraction(2**size - 2)) - 2 * samples * width**2
    found = failure_bound(samples, size, epsilon, epsilon + step)
    assert found <= 1
    if logarithm > -600:
        assert math.log(found) == pytest.approx(min(0.0, logarithm), rel=1e-9, abs=1e-9)
    else:
        assert found < 1e-250
    moved = (
        math.sqrt(2 / samples * (math.log(2**size - 2) - math.log(delta))) / 2 * math.exp(epsilon)
    )
    assume(abs(moved - 1) > 1e-6)
    target = true_level_with_confidence(samples, size, epsilon, delta)
    assert target == (
        pytest.approx(epsilon - math.log(1 - moved), abs=1e-9) if moved < 1 else math.inf
    )
    if not math.isinf(target):  # one is the inverse of the other
        assert failure_bound(samples, size, epsilon, target) == pytest.approx(delta, rel=1e-6)


@pytest.mark.parametrize(
    ("size", "epsilon", "target", "delta"),
    [
        (37, 3.888186928539637, 3.8883304979156774, 2.694056577722661e-11), (2, 300.0, 301.0, 0.1),
        (5, 0.1, 0.1 + 1e-9, 1e-300),
    ],
)  # fmt: skip
def test_the_samples_needed_keep_the_promise_in_floats(
    size: int, epsilon: float, target: float, delta: float
) -> None:
    assert (
        failure_bound(samples_needed(size, epsilon, target, delta), size, epsilon, target) <= delta
    )


def test_no_sample_is_so_large_that_nothing_can_fail_and_one_letter_needs_none() -> None:
    for samples in (10**6, 10**300, int(1.7e308)):
        assert failure_bound(samples, 2, 0.0, 1.0) == sys.float_info.min
    assert samples_needed(3, 0.0, 1.0, 5e-324) < 1000
    refused(PrivacyError, failure_bound, "number of samples is too large", (10**400, 2, 0.0, 1.0))
    too_many = (10**5000, 2, 0.0, 0.1)
    refused(PrivacyError, true_level_with_confidence, "number of samples is too large", too_many)
    assert samples_needed(1, 0.0, 0.1, 0.1) == 1
    assert failure_bound(1, 1, 0.0, 0.1) == 0
    assert true_level_with_confidence(1, 1, 0.5, 0.1) == 0.5


def test_the_promise_is_kept() -> None:
    """Each of 400 mechanisms is above the promised level with probability 0.1 at most.

    The failures are allowed up to the 1 - 1e-6 quantile of Binomial(400, 0.1): with a seed at random, a
    correct implementation fails with probability 1e-6 at most.
    """
    truth, m, delta, runs = [0.6, 0.4], 400, 0.1, 400
    draws = np.random.default_rng(30).multinomial(m, truth, size=runs)
    failures = 0
    for counts in draws:
        estimate = Prior.from_counts(counts.tolist())
        mechanism = closed_forms.binary(estimate, 0.5)
        promised = true_level_with_confidence(m, 2, leakage_level(estimate, mechanism), delta)
        failures += leakage_level(truth, mechanism) > promised
    assert failures <= binom.ppf(1 - 1e-6, runs, delta)


CALLS: list[Callable[..., float]] = [
    lambda size=3, epsilon=0.5, target=0.6, delta=0.1, **known:
        samples_needed(size, epsilon, target, delta, **known),
    lambda samples=10, size=3, epsilon=0.5, target=0.6, **known:
        failure_bound(samples, size, epsilon, target, **known),
    lambda samples=10, size=3, epsilon=0.5, delta=0.1, **known:
        true_level_with_confidence(samples, size, epsilon, delta, **known),
    lambda samples=10, size=3, delta=0.1, kappa=None: weissman_radius(samples, size, delta, kappa),
    lambda radius=0.1, size=3, delta=0.1, kappa=None: weissman_samples(radius, size, delta, kappa),
    lambda radius=0.1, samples=10, size=3, kappa=None: weissman_delta(radius, samples, size, kappa),
    lambda delta=0.1, kappa=None: confidence_ball([3, 4], delta, kappa=kappa).radius,
    lambda delta=0.1: confidence_box([3, 4], delta).upper[0],
    lambda delta=0.1: confidence_box([3], delta).upper[0],
    lambda kappa=0.5: deviation_exponent(kappa),
    lambda epsilon=0.5, distance=0.1: level_increase_within_distance([0.6, 0.4], epsilon, distance),
    lambda epsilon=0.5, distance=0.1, least=None: level_within_distance(epsilon, distance, least),
    lambda epsilon=0.5, distance=0.1: level_needed_at_centre(epsilon, distance),
]  # fmt: skip
NUMBERS = [0, -1, 2.5, math.nan, "ten", True]
IMPOSSIBLE: dict[str, tuple[str, list[Any]]] = {
    "samples": ("number of samples", NUMBERS),
    "size": ("size of the alphabet", NUMBERS),
    "epsilon": ("epsilon", [-0.1, math.nan, math.inf, "low"]),
    "target": ("target level", [-0.1, math.nan, math.inf]),
    "delta": ("delta", [0.0, 1.0, -0.1, 2.0, math.nan]),
    "kappa": ("kappa", [0.0, -0.1, 0.6, math.nan, "half"]),
    "least": ("least probability", [0.0, -0.1, 1.1, math.nan, "small"]),
    "radius": ("radius", [0.0, -0.1, 2.1, math.nan, "wide"]),
    "distance": ("the radius", [-0.1, 2.1, math.nan, math.inf, "wide"]),
}


@pytest.mark.parametrize("name", IMPOSSIBLE)
def test_what_cannot_be_meant_is_refused(name: str) -> None:
    words, values = IMPOSSIBLE[name]
    for call in CALLS:
        code = call.__code__
        own = name in code.co_varnames or (
            name in ("kappa", "least") and "known" in code.co_varnames
        )
        for bad in values if own else ():
            with pytest.raises(PrivacyError, match=words):
                call(**{name: bad})
    refused(PrivacyError, samples_needed, "delta", (1, 0.5, 0.6, 1.0))
    refused(PrivacyError, true_level_with_confidence, "delta", (10, 1, 0.5, 1.0))
    refused(PrivacyError, weissman_samples, "radius", (1e-200, 3, 0.1))
    for target in (0.4, 0.5, 0.0):
        refused(PrivacyError, samples_needed, "is not above the level", (3, 0.5, target, 0.1))
        refused(PrivacyError, failure_bound, "is not above the level", (100, 3, 0.5, target))


# ---------------------------------------------------------------- what is known beforehand

KAPPAS = st.floats(1e-6, 0.5)


@given(st.integers(1, 10**6), SIZES, st.floats(1e-3, 1.999), KAPPAS, DELTAS)
@MODEST
def test_radius_samples_and_delta_follow_from_each_other(
    samples: int, size: int, radius: float, kappa: float, asked: float
) -> None:
    fewest = weissman_samples(radius, size, asked, kappa)
    assert weissman_radius(fewest, size, asked, kappa) <= radius
    if fewest > 1:
        assert weissman_radius(fewest - 1, size, asked, kappa) > radius * (1 - 1e-9)
    if radius < 1.99:
        assert (
            weissman_samples(weissman_radius(fewest, size, asked, kappa), size, asked, kappa)
            <= fewest
        )
    delta = weissman_delta(radius, samples, size, kappa)
    logarithm = (
        math.log(Fraction(2**size - 2)) - samples * deviation_exponent(kappa) * radius**2 / 4
    )
    assert delta <= 1
    if logarithm > -600:
        assert math.log(delta) == pytest.approx(min(0.0, logarithm), rel=1e-9, abs=1e-9)
    if 1e-300 < delta < 0.99:
        assert weissman_radius(samples, size, delta, kappa) == pytest.approx(radius, rel=1e-6)
        needed = weissman_samples(radius * (1 + 1e-9), size, delta, kappa)
        assert needed <= samples <= needed * (1 + 1e-6) + 1


@given(SIZES, st.floats(0.0, 2.0), STEPS, DELTAS, KAPPAS, st.floats(1e-3, 0.5))
@MODEST
def test_what_is_known_takes_fewer_samples_and_keeps_the_promise(
    size: int, epsilon: float, step: float, delta: float, kappa: float, least: float
) -> None:
    target = epsilon + step
    plain = samples_needed(size, epsilon, target, delta)
    both = {"kappa": kappa, "least": least}
    for known in ({}, {"kappa": kappa}, {"least": least}, both):
        m = samples_needed(size, epsilon, target, delta, **known)
        assert m <= plain
        assert failure_bound(m, size, epsilon, target, **known) <= delta * (1 + 1e-12)
        assert true_level_with_confidence(m, size, epsilon, delta, **known) <= target + 1e-9
        if m > 1:
            assert failure_bound(m - 1, size, epsilon, target, **known) > delta * (1 - 1e-9)


def test_the_first_region_by_hand() -> None:
    """N = 2, min p = 0.4 and e^eps = 1.25 < 1 / 0.6: the half radius is (1 - e^-0.1) 0.4 / 0.25."""
    epsilon, width = math.log(1.25), -math.expm1(-0.1) * 0.4 / 0.25
    found = failure_bound(100, 2, epsilon, epsilon + 0.1, least=0.4)
    assert found == pytest.approx(2 * math.exp(-2 * 100 * width**2), rel=1e-9)
    past = failure_bound(100, 2, math.log(2), math.log(2.5), least=0.4)
    assert past == failure_bound(100, 2, math.log(2), math.log(2.5))
    far = failure_bound(10, 2, 1e-9, 1.0, least=0.4)  # no law is farther than a half radius of one
    assert far == pytest.approx(2 * math.exp(-20), rel=1e-9)
