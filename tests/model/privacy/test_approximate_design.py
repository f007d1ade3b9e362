"""Approximate PML as a requirement: its twins, and designs against a dense linear program."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from oracles import designs as oracles
from oracles.designs import violation

from pmlopt import (
    ApproximatePML,
    ExpectedGain,
    ExpectedLoss,
    Prior,
    design,
    solve,
)
from pmlopt.measures import approximate_pml_level
from pmlopt.programs import Status
from pmlopt.programs.exact.arithmetic import integers, power_below
from pmlopt.programs.linear.certificate import LinearCertificate, utility_bound
from pmlopt.programs.result import Result

GAP = 1e-7

DELTAS = st.one_of(st.floats(0.01, 0.99), st.sampled_from([1e-6, 1e-3, 0.999, 1 - 1e-9]))


def assert_proved(result: Result[LinearCertificate], epsilon: float, delta: float) -> None:
    """All that a result claims of itself."""
    privacy = result.certificate.privacy
    matrix, prior = result.mechanism.matrix, result.certificate.prior
    assert result.status is Status.OPTIMAL
    assert result.gap <= GAP
    assert result.certificate.verify()
    assert oracles.is_stochastic(matrix)
    assert privacy.holds(prior, matrix)
    level = approximate_pml_level(prior, matrix, delta)  # rounded up where it is claimed
    assert level <= result.certificate.levels["approximate_pml"] <= level + 1e-12
    assert result.level <= epsilon
    # the slack itself, from the definition
    over = np.maximum(matrix - math.exp(min(epsilon, 50.0)) * (prior.pmf @ matrix), 0.0)
    assert over.sum(axis=1).max() <= delta * (1 + 1e-12)


@pytest.mark.parametrize("seed", range(9))
def test_the_optimum_is_that_of_the_dense_program(seed: int) -> None:
    rng = np.random.default_rng([1301, seed])
    n, m = (int(number) for number in rng.integers(2, 6, 2))
    p = oracles.random_prior(rng, n, (0.3, 1.0, 10.0)[seed % 3])
    if seed >= 6:  # a rare letter
        p = np.append(p * (1 - 1e-6), 1e-6)
    epsilon, gains = float(rng.uniform(0, 1.1)) * -math.log(p.min()), rng.normal(size=(len(p), m))
    delta = float(rng.choice([1e-4, 0.01, 0.1, 0.3, 0.6]))
    utility: ExpectedGain | ExpectedLoss = ExpectedGain(gains) if seed % 2 else ExpectedLoss(-gains)
    result = solve(design(p, ApproximatePML(epsilon, delta), utility))
    assert_proved(result, epsilon, delta)
    sign = 1 if seed % 2 else -1
    best = oracles.optimum(p, ApproximatePML(epsilon, delta), gains).value
    assert sign * result.value == pytest.approx(best, abs=1e-7)
    assert sign * result.bound >= best - 1e-9


# ---------------------------------------------------------------- twins


MARGIN = 2.0**-39


@settings(max_examples=40, deadline=None)
@given(case=oracles.cases(), epsilon=st.floats(0.0, 3.0), zeros=st.none() | st.integers(0, 2**32 - 1))
def test_constraint_number_and_excess_agree_just_inside_and_outside(
    case: oracles.Case, epsilon: float, zeros: int | None
) -> None:
    """The least slack of a mechanism, by definition, decides; also with zeros and with unused outputs."""
    matrix = case.matrix
    if zeros is not None:
        matrix = matrix * (np.random.default_rng(zeros).random(matrix.shape) < 0.6)
        assume(bool((matrix.sum(axis=1) > 0).all()))
        matrix = np.hstack([matrix / matrix.sum(axis=1, keepdims=True), np.zeros((len(matrix), 1))])
    law = case.prior.pmf @ matrix
    least = float(np.maximum(matrix - math.exp(epsilon) * law, 0.0).sum(axis=1).max())
    assume(1e-6 < least < 0.99)
    weights = np.array(case.prior.weights, dtype=object)
    for factor in (1 + 1e-6, 1 - 1e-6):
        requirement = ApproximatePML(epsilon, least * factor)
        assert requirement.holds(case.prior, matrix) is (factor > 1)
        assert (violation(case.prior, requirement, matrix) <= len(matrix) * MARGIN * least) is (factor > 1)
        in_floats = requirement.excess(case.prior.pmf, matrix, math.exp)
        exactly = requirement.excess(weights, integers(matrix), power_below)
        assert bool(np.all(in_floats <= 0)) is (factor > 1)
        assert bool(np.all(exactly <= 0)) is (factor > 1)


# ---------------------------------------------------------------- the support function


@settings(max_examples=30, deadline=None)
@given(case=oracles.cases(), share=st.floats(0.0, 1.2), delta=DELTAS)
def test_relaxation_is_the_support_function(case: oracles.Case, share: float, delta: float) -> None:
    epsilon = share * case.prior.max_leakage
    requirement = ApproximatePML(epsilon, delta)
    expected = oracles.joint_support(case.prior.pmf, requirement, case.gains)
    relaxed = requirement.relaxation(case.prior, case.gains)
    assert relaxed >= expected - 1e-9
    assert relaxed == pytest.approx(expected, abs=1e-6)


@pytest.mark.parametrize("delta", [0.01, 0.5, 1 - 1e-9])
def test_at_the_largest_leakage_the_relaxation_is_the_largest_gain(delta: float) -> None:
    rng = np.random.default_rng(8)
    for _ in range(150):  # e^eps times the least mass is 1, or the float below it
        prior = Prior(rng.dirichlet(np.ones(int(rng.integers(2, 6)))))
        gains = rng.normal(size=(prior.size, 3))
        relaxed = ApproximatePML(prior.max_leakage, delta).relaxation(prior, gains)
        assert relaxed == pytest.approx(gains.max(), abs=1e-9)


@settings(max_examples=25, deadline=None)
@given(case=oracles.cases(), delta=DELTAS, spread=st.sampled_from([0.0, 1e-3, 1.0, 1e3, 1e9]))
def test_any_multipliers_bound_every_mechanism(case: oracles.Case, delta: float, spread: float) -> None:
    requirement = ApproximatePML(approximate_pml_level(case.prior, case.matrix, delta) + 1e-9, delta)
    value = float((case.prior.pmf[:, None] * case.gains * case.matrix).sum())
    assert requirement.relaxation(case.prior, case.gains) >= value - 1e-12
    multipliers = spread * case.rng.normal(size=case.prior.size)
    assert utility_bound(case.prior, requirement, case.gains, multipliers) >= value
