"""The leakage of a noisy parity by formula: its ends, its root, its prior."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from refusals import refused
from scipy.optimize import brentq
from strategies import MODEST

from pmlopt.errors import InputError
from pmlopt.measures import channel_capacity
from pmlopt.model.closed_forms import parity_leakage, parity_prior
from pmlopt.model.queries.record_leakage_measures import (
    compute_dataset_entropy,
    compute_record_information,
)

LOG2 = math.log(2)


def h(x: float) -> float:
    return 0.0 if x in (0, 1) else -x * math.log(x) - (1 - x) * math.log(1 - x)


def by_root(n: int, p: float, b: float) -> float:
    wanted = b - (n - 1) * LOG2
    e = 0.0 if wanted <= 0 or n == 1 else brentq(lambda x: h(x) - wanted, 0, 0.5, xtol=1e-15)
    return LOG2 - h(e * (1 - p) + p * (1 - e))


@MODEST
@given(st.integers(1, 12), st.floats(0, 1), st.floats(0, 0.9999))
def test_it_is_what_the_binary_entropy_says(n: int, p: float, share: float) -> None:
    b = share * n * LOG2
    assert parity_leakage(n, p, b) == pytest.approx(by_root(n, p, b), abs=1e-12)


@MODEST
@given(st.integers(2, 8), st.floats(0, 1), st.floats(0, 1))
def test_the_prior_has_the_entropy_and_leaks_it(n: int, p: float, share: float) -> None:
    b = share * n * LOG2
    joint = parity_prior(n, b)
    assert joint.sum() == pytest.approx(1, abs=1e-15)
    counts = np.full((2, 2), (n - 2) * LOG2)
    assert compute_dataset_entropy(joint, counts) >= b - 1e-12
    rows = np.array([[1 - p, p], [p, 1 - p]])
    assert compute_record_information(joint, rows) == pytest.approx(
        parity_leakage(n, p, b), abs=1e-12
    )


def test_the_ends() -> None:
    assert parity_leakage(4, 0.0, 0.0) == LOG2
    assert parity_leakage(4, 0.5, 1.0) == 0
    assert parity_leakage(4, 0.2, 4 * LOG2) == 0
    assert parity_leakage(1, 0.2, LOG2) == pytest.approx(LOG2 - h(0.2), abs=1e-15)
    # just below the top: a deficit d allows a bias of about sqrt(2 d)
    assert parity_leakage(4, 0.2, 4 * LOG2 - 1e-10) == pytest.approx(0.36 * 1e-10, rel=1e-3)
    many = parity_leakage(10_000, 0.1, 9_999.5 * LOG2)
    assert many == pytest.approx(by_root(2, 0.1, 1.5 * LOG2), abs=1e-10)


def test_it_refuses() -> None:
    bad = [(0, 0.1, 0), (2, -0.1, 0), (2, 1.1, 0), (2, 0.1, -1), (2, 0.1, 1.5), (2, math.nan, 0)]
    refused(InputError, parity_leakage, ".", *bad)


@MODEST
@given(st.integers(0, 10_000), st.integers(1, 5), st.integers(1, 5))
def test_the_capacity_is_between_its_bounds(seed: int, n: int, m: int) -> None:
    rows = np.random.default_rng(seed).dirichlet(np.full(m, 0.5), size=n)
    lower, upper = channel_capacity(rows)
    assert 0 <= lower <= upper + 1e-15
    assert upper - lower <= 1e-6
    assert upper <= math.log(min(n, m)) + 1e-9
    for law in np.random.default_rng(seed + 1).dirichlet(np.ones(n), size=20):
        joint = np.diag(law)
        assert compute_record_information(joint, rows) <= upper + 1e-12


def test_known_capacities() -> None:
    assert channel_capacity(np.eye(3)) == pytest.approx((math.log(3), math.log(3)), abs=1e-12)
    assert channel_capacity([[0.3, 0.7]] * 4) == (0.0, 0.0)
    erased = channel_capacity([[0.7, 0.0, 0.3], [0.0, 0.7, 0.3]])  # (1 - erasure) log 2
    assert erased == pytest.approx((0.7 * LOG2, 0.7 * LOG2), abs=1e-12)
    lower, upper = channel_capacity([[1.0, 0.0], [0.5, 0.5]])  # Z channel: log(5/4)
    assert (lower, upper) == pytest.approx((math.log(1.25), math.log(1.25)), abs=1e-10)
