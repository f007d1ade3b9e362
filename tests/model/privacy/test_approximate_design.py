"""Approximate PML as a requirement: its twins, and designs against a dense linear program."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from oracles import designs as oracles
from oracles.designs import FloatArray, violation
from scipy.optimize import linprog

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

# ---------------------------------------------------------------- a dense linear program


def dense(
    p: FloatArray,
    gains: FloatArray,
    epsilon: float,
    delta: float,
    *,
    rows: bool = True,
    cap: float = math.inf,
) -> float:
    """The best expected gain with `sum_y s[x,y] <= delta`, `s[x,y] >= P[x,y] - e^eps q[y]`.

    Over mechanisms, or (not `rows`) over P >= 0 whose output law is one; P[0,0] at most `cap`.
    """
    n, m = gains.shape
    size, down = n * m, math.exp(-epsilon)
    over = np.zeros((n, m, 2, n, m))
    budget = np.zeros((n, 2, n, m))
    for x in range(n):
        budget[x, 1, x] = 1.0
        for y in range(m):
            over[x, y, 0, x, y] += down
            over[x, y, 0, :, y] -= p
            over[x, y, 1, x, y] -= down
    equal = np.kron(np.eye(n), np.ones((1, m))) if rows else np.repeat(p, m)[None, :]
    tight = {"primal_feasibility_tolerance": 1e-10, "dual_feasibility_tolerance": 1e-10}
    bounds = [(0.0, cap if place == 0 else math.inf) for place in range(2 * size)]
    answer: Any = None
    for options in (tight, {**tight, "presolve": False}):
        answer = linprog(
            np.concatenate([-(p[:, None] * gains).ravel(), np.zeros(size)]),
            A_ub=np.vstack([over.reshape(size, 2 * size), budget.reshape(n, 2 * size)]),
            b_ub=np.concatenate([np.zeros(size), np.full(n, delta)]),
            A_eq=np.hstack([equal, np.zeros_like(equal)]),
            b_eq=np.ones(len(equal)),
            bounds=bounds,
            method="highs",
            options=options,
        )
        if answer.status == 0:
            return -float(answer.fun)
    raise AssertionError(answer.message)


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


def random_problem(seed: int, size: int = 6) -> tuple[FloatArray, FloatArray, float, float]:
    """A prior, gains, epsilon and delta."""
    rng = np.random.default_rng([1301, seed])
    n, m = (int(number) for number in rng.integers(2, size, 2))
    p = oracles.random_prior(rng, n, (0.3, 1.0, 10.0)[seed % 3])
    epsilon = float(rng.uniform(0, 1.1)) * -math.log(p.min())
    return p, rng.normal(size=(n, m)), epsilon, float(rng.choice([1e-4, 0.01, 0.1, 0.3, 0.6]))


# ---------------------------------------------------------------- designs


@pytest.mark.parametrize("seed", range(12))
def test_the_optimum_is_that_of_the_dense_program(seed: int) -> None:
    p, gains, epsilon, delta = random_problem(seed)
    utility: ExpectedGain | ExpectedLoss = ExpectedGain(gains) if seed % 2 else ExpectedLoss(-gains)
    result = solve(design(p, ApproximatePML(epsilon, delta), utility))
    assert_proved(result, epsilon, delta)
    sign = 1 if seed % 2 else -1
    assert sign * result.value == pytest.approx(dense(p, gains, epsilon, delta), abs=1e-7)
    assert sign * result.bound >= dense(p, gains, epsilon, delta) - 1e-9


@pytest.mark.parametrize("rare", [1e-6, 1e-4])
@pytest.mark.parametrize("epsilon", [0.1, 1.0, 5.0])
def test_rare_letters(rare: float, epsilon: float) -> None:
    prior = Prior([rare, 0.3, 0.3, 0.4 - rare])
    gains = np.random.default_rng(1302).normal(size=(4, 4))
    result = solve(design(prior, ApproximatePML(epsilon, 0.05), ExpectedGain(gains)))
    assert_proved(result, epsilon, 0.05)
    assert result.value == pytest.approx(dense(prior.pmf, gains, epsilon, 0.05), abs=1e-7)


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
    expected = dense(case.prior.pmf, case.gains, epsilon, delta, rows=False)
    relaxed = requirement.relaxation(case.prior, case.gains)
    assert relaxed >= expected - 1e-9
    assert relaxed == pytest.approx(expected, abs=1e-6)


@pytest.mark.parametrize("delta", [0.01, 0.5, 1 - 1e-9])
def test_at_the_largest_leakage_the_relaxation_is_the_largest_gain(delta: float) -> None:
    rng = np.random.default_rng(8)
    for _ in range(400):  # e^eps times the least mass is 1, or the float below it
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
