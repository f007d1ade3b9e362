"""Extremal mechanisms against the privacy bound and against an LP over all vertices."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from oracles.columns import information, optimum
from refusals import refused
from strategies import MODEST, epsilons, priors

from pmlopt import PML
from pmlopt.core.numbers.arrays import FloatArray
from pmlopt.data.mechanism import Mechanism
from pmlopt.data.prior import Prior
from pmlopt.errors import PrivacyError
from pmlopt.measures import leakage_level, mutual_information
from pmlopt.model.closed_forms import binary, high_privacy, k_singular, uniform

# at levels below 0.01 the vertices lie closer together than an LP solver's tolerance
ORACLE_SHARES = st.floats(0.05, 1.0)
SHARES = st.one_of(st.sampled_from([0.0, 0.5, 1.0]), st.floats(0.0, 1.0))


def assert_extremal(prior: FloatArray, mechanism: Mechanism, epsilon: float) -> None:
    """Each column over its mean is 0, e^eps, or at most once a value between."""
    top = math.exp(epsilon)
    for column in mechanism.matrix.T[mechanism.matrix.max(axis=0) > 0]:
        lam = column / math.fsum(prior * column)
        between = (lam > 1e-9) & (lam < top - 1e-9)
        assert lam.max() <= top * (1 + 1e-12)
        assert between.sum() <= 1


def assert_stochastic(mechanism: Mechanism) -> None:
    assert (mechanism.matrix >= 0).all()
    assert np.abs(mechanism.matrix.sum(axis=1) - 1).max() <= 1e-14


Priors = Callable[[bool], st.SearchStrategy[FloatArray]]
FORMS: dict[str, tuple[Priors, Callable[[FloatArray], float], Any]] = {
    "binary": (lambda tiny: priors(2, 2, tiny), lambda p: Prior(p).max_leakage, binary),
    "high_privacy": (
        lambda tiny: priors(2, 5, tiny=False), lambda p: -math.log1p(-float(p.min())), high_privacy
    ),
    "uniform": (
        lambda tiny: st.integers(2, 8 if tiny else 5).map(lambda n: np.full(n, 1 / n)),
        lambda p: math.log(len(p)), lambda p, epsilon: uniform(len(p), epsilon),
    ),
}  # fmt: skip
"""By name: the priors, with letters that are unlikely or not, the last level, and the mechanism."""


@pytest.mark.parametrize("name", FORMS)
@given(st.data(), SHARES)
@MODEST
def test_each_form_attains_its_level_up_to_the_last_one(
    name: str, data: st.DataObject, share: float
) -> None:
    drawn, last, form = FORMS[name]
    prior = data.draw(drawn(True))
    epsilon = share * last(prior)
    mechanism = form(prior, epsilon)
    assert_stochastic(mechanism)
    assert leakage_level(prior, mechanism) == pytest.approx(epsilon, abs=1e-12)
    if prior.min() > 1e-3:
        assert_extremal(prior, mechanism, epsilon)


@pytest.mark.parametrize("name", FORMS)
@given(st.data(), ORACLE_SHARES)
@MODEST
def test_each_form_is_optimal_for_mutual_information(
    name: str, data: st.DataObject, share: float
) -> None:
    drawn, last, form = FORMS[name]
    prior = data.draw(drawn(False))
    epsilon = share * last(prior) * (1 if name != "high_privacy" else 0.999)
    value = mutual_information(prior, form(prior, epsilon))
    assert value == pytest.approx(optimum(prior, PML(epsilon), information).value, abs=1e-9)


@given(st.integers(1, 8), epsilons(), priors(2, 2))
@MODEST
def test_past_the_last_level_nothing_changes(size: int, extra: float, prior: FloatArray) -> None:
    assert uniform(size, math.log(size) + extra).matrix == pytest.approx(np.eye(size), abs=1e-14)
    assert uniform(size, extra).matrix.sum(axis=0) == pytest.approx(np.ones(size), abs=1e-14)
    past = Prior(prior).max_leakage + 1e-9 + 100 * extra
    assert binary(prior, past).matrix == pytest.approx(np.eye(2), abs=1e-14)


def test_high_privacy_takes_the_end_of_its_region() -> None:
    for size in range(1, 150, 9):
        prior = Prior.from_counts([size, size, 1])
        mechanism = high_privacy(prior, -math.log1p(-float(prior.pmf.min())))
        assert mechanism.matrix.diagonal().min() == pytest.approx(0, abs=1e-15)
    assert high_privacy([0.4, 0.2, 0.2, 0.2], math.log(1.25) - 1e-12).matrix.min() >= 0


def test_high_privacy_of_the_printed_example() -> None:
    # EMP, Example 1
    expected = np.full((4, 4), 0.225) - 0.125 * np.diag([0, 1, 1, 1])
    expected[:, 0] = [0.325, 0.45, 0.45, 0.45]
    mechanism = high_privacy([2 / 5, 1 / 5, 1 / 5, 1 / 5], math.log(9 / 8))
    assert mechanism.matrix == pytest.approx(expected, abs=1e-15)


@pytest.mark.parametrize("size", [1, 2, 3, 10])
def test_k_singular_is_uniform_at_log_n_over_k(size: int) -> None:
    for k in range(1, size + 1):
        singular = k_singular(size, k)
        assert uniform(size, math.log(size / k)).matrix == pytest.approx(singular.matrix, abs=1e-13)
        assert (singular.matrix > 0).sum(axis=0).tolist() == [k] * size
        assert (singular.matrix > 0).sum(axis=1).tolist() == [k] * size
        level = leakage_level(np.full(size, 1 / size), singular)
        assert level == pytest.approx(math.log(size / k), abs=1e-12)


def test_what_cannot_be_meant_is_refused() -> None:
    none = (-0.1, math.nan, math.inf)
    for form, of in ((binary, [0.6, 0.4]), (high_privacy, [0.6, 0.4]), (uniform, 3)):
        refused(PrivacyError, form, "epsilon", *((of, epsilon) for epsilon in none))
    refused(PrivacyError, binary, "2 letters, not 3", ([0.5, 0.25, 0.25], 0.1))
    refused(
        PrivacyError, high_privacy, r"0\.2231435513", ([0.4, 0.2, 0.2, 0.2], math.log(1.25) + 1e-9)
    )
    refused(PrivacyError, k_singular, ".", (3, 4), (3, 0), (0, 1), (3, 1.5), (2.5, 1))
    refused(
        PrivacyError,
        uniform,
        "size of the alphabet",
        *((size, 1.0) for size in (0, -1, 2.5, "many")),
    )
