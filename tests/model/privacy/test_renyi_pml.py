"""PML of finite order: its limits, its levels in rationals, and designs beside a plain program."""

from __future__ import annotations

import math
import warnings
from fractions import Fraction

import cvxpy as cp
import numpy as np
import pytest
from oracles.designs import random_prior

from pmlopt import (
    PML,
    AllPriors,
    Box,
    ConvexHull,
    ExpectedGain,
    ExpectedLoss,
    IIDPrior,
    L1Ball,
    Mechanism,
    Prior,
    RenyiPML,
    Secret,
    design,
    solve,
)
from pmlopt.core.arrays import FloatArray
from pmlopt.errors import PrivacyError
from pmlopt.model.utility import CoordinateLoss
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


SECRET = Secret(
    [[[0.1, 0.2, 0.1], [0.4, 0.1, 0.1]], [[0.2, 0.2, 0.1], [0.2, 0.2, 0.1]]],
    values=["ill", "well"],
    name="health",
)


@pytest.mark.parametrize("alpha", [1.5, 2.0, 6.0])
def test_about_a_secret_it_is_the_bound_on_the_letters_of_the_secret(alpha: float) -> None:
    rng = np.random.default_rng(int(10 * alpha))
    prior = Prior(SECRET.joint[0].sum(axis=0))
    requirement = RenyiPML(alpha, 0.05, about=SECRET)
    laws = [(law.sum(axis=1), law / law.sum(axis=1, keepdims=True)) for law in SECRET.joint]
    matrix = rng.dirichlet(np.ones(3), 3)
    levels = [RenyiPML(alpha, 1.0).level(law, given @ matrix) for law, given in laws]
    assert requirement.levels(prior, matrix) == {
        "renyi_pml_about_health": pytest.approx(max(levels), abs=1e-12)
    }
    gains = rng.random((3, 3))
    found = solve(design(prior, requirement, ExpectedGain(gains)))
    free = cp.Variable((3, 3), nonneg=True)
    rules = [cp.sum(free, axis=1) == 1]
    most = math.exp((alpha - 1) / alpha * 0.05)
    for law, given in laws:
        seen = given @ free
        for y in range(3):
            norm = cp.pnorm(cp.multiply(law ** (1 / alpha), seen[:, y]), alpha, approx=False)
            rules.append(norm <= most * (law @ seen[:, y]))
    goal = cp.Maximize(cp.sum(cp.multiply(prior.pmf[:, None] * gains, free)))
    assert found.value == pytest.approx(cp.Problem(goal, rules).solve(solver="CLARABEL"), abs=1e-6)
    assert found.gap <= 1e-7
    assert found.level <= 0.05
    assert found.certificate.verify()


def test_a_secret_that_is_the_data_changes_nothing() -> None:
    p, gains = np.array([0.5, 0.3, 0.2]), np.random.default_rng(3).random((3, 3))
    same = Secret(np.diag(p))
    own, about = (
        solve(design(p, one, ExpectedGain(gains))) for one in (RenyiPML(3, 0.2), RenyiPML(3, 0.2, about=same))
    )
    assert own.value == pytest.approx(about.value, abs=1e-7)
    still = np.full((3, 2), 0.5)
    assert RenyiPML(3, 0.0, about=same).holds(p, still)
    assert holds_exactly(Prior(p), RenyiPML(3, 0.0, about=same), still)


TWO = ConvexHull([[0.5, 0.3, 0.2], [0.2, 0.3, 0.5]])


@pytest.mark.parametrize("alpha", [1.5, 2.0, 20.0])
def test_over_a_set_the_level_is_that_of_its_worst_prior(alpha: float) -> None:
    rng = np.random.default_rng(int(10 * alpha))
    for _ in range(3):
        matrix = rng.dirichlet(np.ones(3), 3)
        shares = np.linspace(0, 1, 1001)[:, None]
        priors = shares * TWO.laws[0] + (1 - shares) * TWO.laws[1]
        levels = [RenyiPML(alpha, 1.0).level(prior, matrix) for prior in priors]
        found = RenyiPML(alpha, 1.0, over=TWO).level([0.5, 0.3, 0.2], matrix)
        assert max(levels) <= found + 1e-12
        assert found == pytest.approx(max(levels), abs=1e-5)


def test_over_a_set_designs_gain_what_many_of_its_priors_allow() -> None:
    rng = np.random.default_rng(4)
    p, gains, most = TWO.laws[0], rng.random((3, 3)), math.exp(0.1)
    found = solve(design(p, RenyiPML(2, 0.2, over=TWO), ExpectedGain(gains)))
    free = cp.Variable((3, 3), nonneg=True)
    rules = [cp.sum(free, axis=1) == 1]
    for share in np.linspace(0, 1, 201):
        prior = share * TWO.laws[0] + (1 - share) * TWO.laws[1]
        lengths = cp.norm(cp.multiply(np.sqrt(prior)[:, None], free), 2, axis=0)
        rules.append(lengths <= most * (prior @ free))
    best = cp.Problem(cp.Maximize(cp.sum(cp.multiply(p[:, None] * gains, free))), rules).solve(
        solver="CLARABEL"
    )
    assert found.value <= best + 1e-6
    assert found.value == pytest.approx(best, abs=1e-5)
    assert found.gap <= 1e-7
    assert found.certificate.verify()
    point = RenyiPML(2, 0.2, over=ConvexHull([p]))
    one, own = (solve(design(p, each, ExpectedGain(gains))) for each in (point, RenyiPML(2, 0.2)))
    assert one.value == pytest.approx(own.value, abs=1e-7)


def test_the_check_over_a_set_is_exact_at_the_boundary() -> None:
    """The worst prior of the ball is (0.4, 0.6), where the moment is 0.2625 / 0.45^2 = 35 / 27."""
    response, even = np.array([[0.75, 0.25], [0.25, 0.75]]), Prior.from_counts([1, 1])
    ball = Box([0.4, 0.4], [0.6, 0.6])
    for step, holds in ((-1e-14, False), (1e-14, True)):
        requirement = RenyiPML(2, math.log(35 / 27) + step, over=ball)
        assert holds_exactly(even, requirement, response) is holds


def test_a_column_that_a_prior_of_the_set_may_never_see_has_no_level() -> None:
    over = RenyiPML(2, 1.0, over=AllPriors(2))
    assert over.level([0.5, 0.5], np.eye(2)) == math.inf
    with pytest.raises(PrivacyError, match="one of them"):
        RenyiPML(2, 1.0, over=AllPriors(2), about=Secret([[0.5, 0.5]]))
    with pytest.raises(PrivacyError, match="no set of priors"):
        RenyiPML(2, 1.0, over=[0.5, 0.5])  # type: ignore[arg-type]
    with pytest.raises(PrivacyError, match="no secret"):
        RenyiPML(2, 1.0, about=[0.5, 0.5])  # type: ignore[arg-type]


def test_on_records_alike_it_is_solved_by_orbits() -> None:
    bits, loss = IIDPrior([0.7, 0.3], 3), CoordinateLoss([[0, 1], [1, 0]])
    listed = bits.listed()
    letters: list[tuple[int, ...]] = list(listed.labels)  # type: ignore[arg-type]
    table = np.array([[sum(a != b for a, b in zip(x, y, strict=True)) for y in letters] for x in letters])
    for alpha in (1.5, 2.0):
        found = solve(design(bits, RenyiPML(alpha, 0.4), loss))
        other = solve(design(listed, RenyiPML(alpha, 0.4), ExpectedLoss(table.astype(float))))
        assert found.value == pytest.approx(other.value, abs=1e-6)
        assert found.gap <= 1e-7
        assert found.certificate.verify()
    ball = RenyiPML(2, 0.4, over=L1Ball(bits, 0.05))
    assert solve(design(bits, ball, loss)).value >= found.value - 1e-9


BAD = [(1, 0.3), (0.5, 0.3), (math.inf, 0.3), (2, -0.1), (2, math.nan)]


@pytest.mark.parametrize(("alpha", "epsilon"), BAD)
def test_impossible_orders_and_levels_are_refused(alpha: float, epsilon: float) -> None:
    with pytest.raises(PrivacyError, match=r"alpha|epsilon"):
        RenyiPML(alpha, epsilon)
