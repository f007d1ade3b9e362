"""PML of finite order: its limits, its levels in rationals, and designs beside a plain program."""

from __future__ import annotations

import math
import warnings
from fractions import Fraction

import cvxpy as cp
import numpy as np
import pytest
from oracles.designs import random_prior

from pmlopt import PML, ExpectedGain, Mechanism, Prior, RenyiPML, design, solve
from pmlopt.core.arrays import FloatArray
from pmlopt.errors import PrivacyError
from pmlopt.programs.exact.arithmetic import holds_exactly


def largest_gain(prior: FloatArray, gains: FloatArray, alpha: float, epsilon: float) -> float:
    """The same design by power cones on the entries alone: `p v^alpha <= t`, `sum t <= K^alpha q^alpha` on a
    cone."""
    matrix = cp.Variable(gains.shape, nonneg=True)
    law, moments = prior @ matrix, cp.Variable(gains.shape, nonneg=True)
    most = math.exp((alpha - 1) * epsilon)
    rules = [cp.sum(matrix, axis=1) == 1]
    for y in range(gains.shape[1]):
        # moments[x] >= v^alpha / q^(alpha - 1), which is |v| <= moments^(1/alpha) q^(1 - 1/alpha)
        shares = np.full(len(prior), 1 / alpha)
        rules.append(cp.PowCone3D(moments[:, y], law[y] * np.ones(len(prior)), matrix[:, y], shares))
        rules.append(prior @ moments[:, y] <= most * law[y])
    gained = cp.sum(cp.multiply(prior[:, None] * gains, matrix))
    problem = cp.Problem(cp.Maximize(gained), rules)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # where Clarabel stops a digit early
        return float(problem.solve(solver="CLARABEL"))


@pytest.mark.parametrize("alpha", [1.2, 2.0, 5.0, 50.0])
def test_designs_gain_what_a_plain_program_does(alpha: float) -> None:
    rng = np.random.default_rng(int(10 * alpha))
    for n, epsilon in ((2, 0.2), (4, 0.5), (6, 1.0)):
        p, gains = random_prior(rng, n), rng.random((n, 4))
        found = solve(design(Prior(p), RenyiPML(alpha, epsilon), ExpectedGain(gains)))
        assert found.bound - found.value <= 1e-7
        if alpha < 10:  # the plain program has no digits at large orders
            assert found.value == pytest.approx(largest_gain(p, gains, alpha, epsilon), abs=5e-6)
        assert found.level <= epsilon
        assert found.certificate.verify()


def test_a_large_order_is_pml_and_one_near_1_the_divergence() -> None:
    rng = np.random.default_rng(5)
    p, matrix = random_prior(rng, 4), rng.dirichlet(np.ones(3), 4)
    lifts = matrix / (p @ matrix)
    divergences = (p[:, None] * lifts * np.log(lifts)).sum(axis=0)
    assert RenyiPML(1 + 1e-7, 1.0).level(p, matrix) == pytest.approx(divergences.max(), abs=1e-6)
    assert RenyiPML(1e7, 1.0).level(p, matrix) == pytest.approx(PML(1.0).level(p, matrix), abs=1e-6)
    levels = [RenyiPML(alpha, 1.0).level(p, matrix) for alpha in (1.1, 2.0, 3.5, 20.0)]
    assert levels == sorted(levels)


def test_the_check_is_exact_at_the_boundary() -> None:
    """At order 2 and the even prior on two letters, 3/4 and 1/4 have the moment 5/4."""
    response = np.array([[0.75, 0.25], [0.25, 0.75]])
    even = Prior.from_counts([1, 1])
    limit = math.log(1.25)
    for step, holds in ((-4e-16, False), (4e-16, True)):
        requirement = RenyiPML(2, limit + step)
        exact = Fraction(5, 4) <= Fraction(math.exp(0)) * Fraction(math.exp(requirement.epsilon))
        assert holds_exactly(even, requirement, response) is holds is exact
    half = RenyiPML(1.5, RenyiPML(1.5, 1.0).level(even, response))
    assert holds_exactly(even, RenyiPML(1.5, half.epsilon + 1e-15), response)
    assert not holds_exactly(even, RenyiPML(1.5, half.epsilon - 1e-15), response)


def test_constants_meet_every_order_and_ordinary_ends_are_no_exception() -> None:
    p = [1e-300, 0.5, 0.5]
    for alpha in (1.5, 2, 1000.0):
        for epsilon in (0.0, 1e-4, 800.0):
            requirement = RenyiPML(alpha, epsilon)
            assert requirement.holds(p, Mechanism(np.full((3, 2), 0.5)))
            assert holds_exactly(Prior(p), requirement, np.full((3, 2), 0.5))
            found = solve(design(Prior(p), requirement, ExpectedGain(np.eye(3))))
            assert found.level <= epsilon
            assert found.gap <= 1e-5
    assert solve(design([1.0], RenyiPML(2, 0.3), ExpectedGain([[1.0, 2.0]]))).value == pytest.approx(2)


BAD = [(1, 0.3), (0.5, 0.3), (math.inf, 0.3), (2, -0.1), (2, math.nan)]


@pytest.mark.parametrize(("alpha", "epsilon"), BAD)
def test_impossible_orders_and_levels_are_refused(alpha: float, epsilon: float) -> None:
    with pytest.raises(PrivacyError, match=r"alpha|epsilon"):
        RenyiPML(alpha, epsilon)
