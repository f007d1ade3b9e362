"""The worst case of a mechanism over a set: against linear programs, against sampling, and its identities."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from oracles.designs import FloatArray, random_prior
from oracles.prior_sets import KINDS, Case, Definition, ball_case, random_matrix, random_set
from strategies import MODEST, mechanisms

from pmlopt import (
    PML,
    AllPriors,
    Box,
    L1Ball,
    Mechanism,
    MinimumMass,
    MutualInformation,
    Prior,
    confidence_box,
    design,
    ldp_level,
)
from pmlopt.errors import PrivacyError
from pmlopt.model.uncertainty import (
    PriorSet,
    leakage_capacity,
    leakage_sensitivity,
    lipschitz_bound,
    pointwise_capacity,
)

SEEDS = st.integers(0, 2**32 - 1)


def capacity(defined: Definition, matrix: FloatArray) -> float:
    """The largest leakage of an output that occurs, by a linear program each."""
    least = min(defined.least(column / column.max()) for column in matrix.T if column.max() > 0)
    return -math.log(least) if least > 1e-9 else math.inf


def level_under(q: FloatArray, matrix: FloatArray) -> float:
    """max_y log(max_x P[x,y] / q(y)), from the definition."""
    return float(np.log(matrix.max(axis=0) / (q @ matrix)).max())


def smooth_case(kind: str, seed: int) -> tuple[Case, FloatArray]:
    """A set and a matrix without zeros."""
    rng = np.random.default_rng([seed, KINDS.index(kind)])
    case = random_set(kind, rng, 4)
    matrix = rng.dirichlet(np.full(4, 2.0), 4) + 0.02
    return case, matrix / matrix.sum(axis=1, keepdims=True)


@settings(max_examples=30, deadline=None)
@given(SEEDS, st.sampled_from(KINDS))
def test_capacity_is_that_of_the_linear_programs(seed: int, kind: str) -> None:
    rng = np.random.default_rng(seed)
    n = int(rng.integers(1, 6))
    case, matrix = random_set(kind, rng, n), random_matrix(rng, n, 3)
    expected = capacity(case.defined, matrix)
    worst = leakage_capacity(case.priors, matrix)
    if math.isinf(expected):
        assert worst > 15
    else:
        assert worst == pytest.approx(expected, abs=1e-8 * math.exp(expected))


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("seed", range(2))
def test_the_worst_prior_is_in_the_set_and_attains_the_capacity(kind: str, seed: int) -> None:
    case, matrix = smooth_case(kind, seed)
    worst = leakage_capacity(case.priors, matrix)
    assert case.defined.outside(worst.prior) <= 1e-9
    column = matrix[:, worst.output]
    assert math.log(column.max() / (worst.prior @ column)) == pytest.approx(float(worst), abs=1e-12)


@given(st.integers(1, 5).flatmap(mechanisms))
@MODEST
def test_over_all_priors_it_is_the_ldp_level(matrix: FloatArray) -> None:
    worst = leakage_capacity(AllPriors(len(matrix)), matrix)
    assert worst == pytest.approx(ldp_level(matrix), abs=1e-12)


@pytest.mark.parametrize("kind", KINDS)
def test_each_output_has_its_own_capacity(kind: str) -> None:
    case, matrix = smooth_case(kind, 9)
    each = pointwise_capacity(case.priors, matrix)
    for y, column in enumerate(matrix.T):
        assert each[y] == pytest.approx(math.log(column.max() / case.defined.least(column)), abs=1e-9)
    worst = leakage_capacity(case.priors, matrix)
    assert float(worst) == each.max() == each[worst.output]
    assert PML(1.0, over=case.priors).level(case.p, matrix) == float(worst)


def test_outputs_that_never_occur_leak_nothing() -> None:
    each = pointwise_capacity(AllPriors(2), [[0.5, 0.0, 0.5], [0.25, 0.0, 0.75]])
    assert each[1] == -math.inf
    assert leakage_capacity(AllPriors(2), [[0.5, 0.0, 0.5], [0.25, 0.0, 0.75]]).output == 0


def test_a_letter_that_may_be_impossible_is_given_away_by_its_zero() -> None:
    worst = leakage_capacity(L1Ball([0.5, 0.5], 1.0), [[1.0, 0.0], [0.5, 0.5]])
    assert worst == math.inf
    assert worst.prior.tolist() == [1.0, 0.0]
    assert worst.output == 1
    assert leakage_capacity(MinimumMass(2, 1e-9), np.eye(2)) == pytest.approx(9 * math.log(10))


# ---------------------------------------------------------------- sensitivity


@pytest.mark.parametrize("seed", range(4))
def test_sensitivity_is_what_the_set_adds_to_the_level(seed: int) -> None:
    rng = np.random.default_rng(seed)
    p, matrix = random_prior(rng, 4), rng.dirichlet(np.ones(3), 4) + 0.01
    matrix /= matrix.sum(axis=1, keepdims=True)
    case = ball_case(p, float(rng.uniform(0, 2)))
    added = leakage_sensitivity(p, case.priors, matrix)
    assert added == pytest.approx(capacity(case.defined, matrix) - level_under(p, matrix), abs=1e-8)
    assert added >= 0
    corners = case.defined.corners()
    gains = [level_under(q, matrix) - level_under(p, matrix) for q in corners]
    assert max(gains) == pytest.approx(float(added), abs=1e-8)
    assert level_under(added.prior, matrix) - level_under(p, matrix) == pytest.approx(float(added), abs=1e-9)


def test_sensitivity_to_a_set_that_the_prior_is_not_in_is_refused() -> None:
    with pytest.raises(PrivacyError, match="not in L1Ball"):
        leakage_sensitivity([0.6, 0.4], L1Ball([0.5, 0.5], 0.1), np.eye(2))


# ---------------------------------------------------------------- refusals


@pytest.mark.parametrize("no_set", [None, 0.1, [0.5, 0.5], "l1-ball"])
def test_what_is_no_set_is_refused(no_set: object) -> None:
    with pytest.raises(PrivacyError, match="no set of priors"):
        leakage_capacity(no_set, np.eye(2))  # type: ignore[arg-type]
    with pytest.raises(PrivacyError, match="no set of priors"):
        lipschitz_bound(no_set, np.eye(2), [0.5, 0.5], [0.6, 0.4])  # type: ignore[arg-type]


@pytest.mark.parametrize(
    "priors",
    [
        L1Ball(Prior([0.7, 0.3], labels=["a", "b"]), 0.1),
        Box([0.6, 0.2], [0.8, 0.4], labels=["a", "b"]),
        confidence_box({"a": 70, "b": 30}, 0.1),
    ],
)
def test_letters_must_be_the_same_in_the_same_order(priors: PriorSet) -> None:
    p = Prior([0.3, 0.7], labels=["b", "a"])
    turned = Mechanism(np.eye(2), ["b", "a"])
    for attempt in (
        lambda: leakage_capacity(priors, turned),
        lambda: pointwise_capacity(priors, turned),
        lambda: leakage_sensitivity(p, priors, turned),
        lambda: leakage_sensitivity(p, priors, np.eye(2)),
        lambda: priors.contains(p),
        lambda: lipschitz_bound(priors, np.eye(2), p, p),
        lambda: design(p, PML(0.5, over=priors), MutualInformation()),
        lambda: PML(0.5, over=priors).level(p, np.eye(2)),
    ):
        with pytest.raises(PrivacyError, match="same in another order"):
            attempt()
    right = p.reordered(["a", "b"])
    assert priors.contains(right)
    assert priors.contains([0.7, 0.3])
    assert leakage_sensitivity(right, priors, np.eye(2)) > 0
