"""The largest value of a concave function over laws, and the least number at which a condition holds."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from strategies import MODEST

from pmlopt.core.numbers.concave import make_power_sum, maximize_over_laws
from pmlopt.core.numbers.roots import bisect, find_min_holding


@given(st.integers(1, 8), st.integers(0, 10**6))
@settings(max_examples=30)
def test_of_logarithms_the_law_is_that_of_the_weights(size: int, seed: int) -> None:
    weights = np.random.default_rng(seed).dirichlet(np.ones(size)) + 1e-6

    def local(p: np.ndarray) -> tuple[float, np.ndarray, np.ndarray]:
        return float(weights @ np.log(p)), weights / p, np.diag(weights / p**2)

    law, lower, upper = maximize_over_laws(local, size, 1e-11)
    best = weights / weights.sum()
    assert law == pytest.approx(best, abs=1e-5)
    assert lower - 1e-12 <= float(weights @ np.log(best)) <= upper + 1e-12
    assert upper - lower <= 1e-11


@pytest.mark.parametrize("order", [1.05, 2.0, 30.0])
def test_power_sums_of_unit_powers_have_the_dual_norm(order: float) -> None:
    """`max_p sum_x w[x] p[x]^(1/order)` is `(sum_x w[x]^d)^(1/d)`, with `1 / order + 1 / d = 1`."""
    weights = np.array([0.2, 1.0, 3.0])
    dual = order / (order - 1)
    _, lower, upper = maximize_over_laws(make_power_sum(weights, np.eye(3), order), 3, 1e-12)
    assert lower == pytest.approx((weights**dual).sum() ** (1 / dual), rel=1e-10)
    assert upper - lower <= 1e-12 * max(1.0, upper) + 4e-15


def test_a_linear_function_is_largest_at_a_letter_and_the_bound_holds_where_steps_stop() -> None:
    slopes = np.array([1.0, 3.0, 2.0])

    def local(p: np.ndarray) -> tuple[float, np.ndarray, np.ndarray]:
        return float(p @ slopes), slopes, np.zeros((3, 3))

    for iterations in (1, 2, 200):
        law, lower, upper = maximize_over_laws(local, 3, 1e-12, iterations)
        assert lower <= 3 + 1e-12
        assert upper >= 3 - 1e-12
        assert math.isclose(law.sum(), 1)
    assert upper - lower <= 1e-12


@given(st.floats(1e-300, 1e300), st.integers(0, 2000))
@MODEST
def test_it_finds_the_next_float_that_holds(start: float, ulps: int) -> None:
    wanted = start + ulps * math.ulp(start)
    assert find_min_holding(lambda x: x >= wanted, start) == wanted


def test_where_nothing_holds_it_says_infinity() -> None:
    assert find_min_holding(lambda _: False, 1.0) == math.inf


@given(st.floats(1.0, 2.0), st.sampled_from([0.0, 1e-12, 1e-3]))
@MODEST
def test_halving_ends_where_it_holds(wanted: float, width: float) -> None:
    found = bisect(lambda x: x >= wanted, 0.5, 3.0, width)
    assert wanted <= found <= wanted * (1 + 1.001 * width) + math.ulp(2.0)
