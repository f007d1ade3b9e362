"""Maximal alpha-leakage: its level, its limits, its exact check, and designs beside cuts at priors."""

from __future__ import annotations

import math

import numpy as np
import pytest
from oracles.designs import random_prior
from oracles.every_prior import largest_gain_for_every_prior, sibson, worst_prior

from pmlopt import ExpectedGain, MaximalAlphaLeakage, MaximalLeakage, Prior, SibsonLeakage, design, solve
from pmlopt.errors import PrivacyError
from pmlopt.programs.exact.arithmetic import holds_exactly, snap

ORDERS = (1.2, 2.0, 5.0, 50.0)


@pytest.mark.parametrize("alpha", ORDERS)
def test_the_level_is_that_of_the_worst_prior(alpha: float) -> None:
    rng = np.random.default_rng(int(10 * alpha))
    for _ in range(3):
        matrix = rng.dirichlet(np.full(4, 0.5), 3)
        level = MaximalAlphaLeakage(alpha, 1.0).level(np.full(3, 1 / 3), matrix)
        assert level == pytest.approx(worst_prior(matrix, alpha)[1], abs=1e-6)
        assert level >= max(sibson(law, matrix, alpha) for law in rng.dirichlet(np.ones(3), 20)) - 1e-12


@pytest.mark.parametrize("alpha", ORDERS)
def test_designs_gain_what_cuts_at_priors_do(alpha: float) -> None:
    rng = np.random.default_rng(int(10 * alpha))
    for n, epsilon in ((2, 0.2), (4, 0.5)):
        p, gains = random_prior(rng, n), rng.random((n, 3))
        found = solve(design(Prior(p), MaximalAlphaLeakage(alpha, epsilon), ExpectedGain(gains)))
        low, high = largest_gain_for_every_prior(p, gains, alpha, epsilon)
        assert low - 1e-6 <= found.bound
        assert found.value <= high + 1e-6
        assert found.gap <= 1e-7
        assert found.level <= epsilon
        assert found.certificate.verify()


def test_a_large_order_is_maximal_leakage_and_it_bounds_the_information_of_the_prior() -> None:
    rng = np.random.default_rng(5)
    p, gains = random_prior(rng, 4), rng.random((4, 4))
    far, limit = (
        solve(design(p, one, ExpectedGain(gains)))
        for one in (MaximalAlphaLeakage(1e7, 0.5), MaximalLeakage(0.5))
    )
    assert far.value == pytest.approx(limit.value, abs=1e-6)
    own, every = SibsonLeakage(2, 0.5), MaximalAlphaLeakage(2, 0.5)
    found = solve(design(p, every, ExpectedGain(gains)))
    assert own.holds(p, found.mechanism)
    assert found.value <= solve(design(p, own, ExpectedGain(gains))).value + 1e-7


def test_the_check_is_exact_at_the_boundary() -> None:
    """Of order 2, 3/4 and 1/4 on two letters have (2 sqrt(5/16))^2 = 5/4 at the even prior, the worst one."""
    response, even = np.array([[0.75, 0.25], [0.25, 0.75]]), Prior.from_counts([1, 1])
    for step, holds in ((-4e-16, False), (4e-16, True)):
        assert holds_exactly(even, MaximalAlphaLeakage(2, math.log(1.25) + step), response) is holds


def test_where_every_row_is_as_far_from_the_centre_the_level_is_found() -> None:
    """Rows at one divergence from a centre, more than there are outputs: the worst prior is not unique."""
    rng = np.random.default_rng(2)
    for alpha in ORDERS:
        p, gains = random_prior(rng, 9), rng.random((9, 3))
        found = solve(design(p, MaximalAlphaLeakage(alpha, 0.3), ExpectedGain(gains)))
        assert found.level == pytest.approx(0.3, abs=1e-6)
        assert worst_prior(found.matrix, alpha)[1] == pytest.approx(found.level, abs=1e-6)


@pytest.mark.parametrize("alpha", [1.5, 2, 1000.0])
def test_constants_meet_every_order(alpha: float) -> None:
    rare, p = [1e-300, 0.5, 0.5], [0.2, 0.3, 0.5]
    for epsilon in (0.0, 1e-4, 800.0):
        requirement = MaximalAlphaLeakage(alpha, epsilon)
        constant = snap(np.full((3, 2), [0.3, 0.7]))
        assert requirement.holds(rare, constant)
        assert holds_exactly(Prior(rare), requirement, constant)
        assert solve(design(rare, requirement, ExpectedGain(np.eye(3)))).level <= epsilon
        found = solve(design(Prior(p), requirement, ExpectedGain(np.eye(3))))
        assert found.level <= epsilon
        assert found.gap <= 1e-5


@pytest.mark.parametrize(("alpha", "epsilon"), [(1, 0.3), (math.inf, 0.3), (2, -0.1), (2, math.nan)])
def test_impossible_orders_and_levels_are_refused(alpha: float, epsilon: float) -> None:
    with pytest.raises(PrivacyError, match=r"alpha|epsilon"):
        MaximalAlphaLeakage(alpha, epsilon)
