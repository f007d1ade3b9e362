"""Balls of priors that are no polytopes: against convex programs in a prior, and against their ends."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest
from oracles.divergence_balls import BALLS, best_gain, least_mean, random_center

from pmlopt import LDP, PML, ChiSquareBall, ExpectedGain, Prior, design, leakage_level, solve
from pmlopt.core.arrays import FloatArray
from pmlopt.errors import PrivacyError
from pmlopt.model.uncertainty import pointwise_capacity
from pmlopt.testing import check_prior_set

KINDS = tuple(BALLS)


def random_column(rng: np.random.Generator, n: int) -> FloatArray:
    """Entries in [0, 1], now and then with ties, zeros, or all alike but for 1e-6."""
    column = rng.uniform(size=n)
    kind = int(rng.integers(5))
    if kind == 1:
        return np.asarray(column.round(1))
    if kind == 2:
        return (column > 0.5).astype(float)
    return 0.7 + 1e-6 * column if kind == 3 else column


def check_columns(name: str, seed: int, count: int) -> None:
    """Hold least means, minimizers and rational bounds of random columns against convex programs."""
    rng, kind = np.random.default_rng(seed), BALLS[name]
    for _ in range(count):
        n = int(rng.integers(2, 8))
        p, radius = random_center(rng, n), float(rng.choice(kind.radii))
        ball, column = kind.make(p, radius), random_column(rng, n)
        least = float(ball.min_mean(column[:, None])[0])
        assert least == pytest.approx(least_mean(kind, p, radius, column), abs=1e-6)
        worst = ball.minimizer(column)
        assert worst @ column == pytest.approx(least, abs=1e-14)
        assert ball.contains_law(worst)
        assert (
            not ball.contains_law(worst + 1e-6 * (worst - p))
            or ball.has_all_priors
            or (np.ptp(column) == 0 or worst.min() == 0)
        )
        whole = np.array([[int(value * 2**53)] for value in column.tolist()], dtype=object)
        (bound,), unit = ball.min_mean_scaled(whole)
        member = ball.project_to_rationals(worst)
        assert ball.contains_rationals(member)
        mean = sum((q * v for q, v in zip(member, whole[:, 0], strict=True)), Fraction(0))
        # the bound is below every prior of the ball, without rounding, and hardly
        assert Fraction(bound, unit) <= mean
        assert float((mean - Fraction(bound, unit)) / 2**53) <= 1e-13


def check_designs(name: str, seed: int, count: int) -> None:
    """Hold random designs against cutting planes, and their levels against the worst priors found."""
    rng, kind = np.random.default_rng(seed), BALLS[name]
    for _ in range(count):
        n, m = int(rng.integers(2, 6)), int(rng.integers(2, 5))
        p, radius = random_center(rng, n), float(rng.choice(kind.radii))
        gains, epsilon = rng.normal(size=(n, m)), float(rng.uniform(0.1, 2.0))
        over = kind.make(p, radius)
        result = solve(design(p, PML(epsilon, over=over), ExpectedGain(gains), m))
        low, high = best_gain(kind, p, radius, gains, epsilon)
        assert result.status.value == "optimal"
        assert result.certificate.verify()
        assert low - 1e-6 <= result.value <= high + 1e-6
        assert result.bound >= low - 1e-7
        for column in result.mechanism.matrix.T:
            if column.max() > 0:
                least = least_mean(kind, p, radius, column / column.max())
                assert -math.log(least) <= epsilon + 1e-6


@pytest.mark.parametrize("name", KINDS)
def test_columns_have_the_means_of_convex_programs(name: str) -> None:
    check_columns(name, 0, 12)


@pytest.mark.parametrize("name", KINDS)
def test_many_columns_have_the_means_of_convex_programs(name: str) -> None:
    check_columns(name, 1, 100)


@pytest.mark.parametrize("name", KINDS)
def test_a_design_is_that_of_cutting_planes(name: str) -> None:
    check_designs(name, 2, 1)


@pytest.mark.parametrize("name", KINDS)
def test_more_designs_are_those_of_cutting_planes(name: str) -> None:
    check_designs(name, 3, 4)


@pytest.mark.parametrize("name", KINDS)
def test_a_ball_of_all_priors_allows_levels_past_those_of_the_prior(name: str) -> None:
    """It is LDP, whose levels go on above -log min p, the largest one of PML under the prior."""
    p, epsilon = np.array([0.498, 0.502]), 0.72
    gains = ExpectedGain([[1.0, 0.0], [0.0, 1.0]])
    over = BALLS[name].make(p, 2.0)
    found = solve(design(p, PML(epsilon, over=over), gains))
    assert found.value == pytest.approx(1 / (1 + math.exp(-epsilon)), abs=1e-9)
    assert found.bound >= found.value


@pytest.mark.parametrize("name", KINDS)
def test_any_multipliers_bound_the_mean_from_below(name: str) -> None:
    rng, kind = np.random.default_rng(4), BALLS[name]
    for _ in range(40):
        n = int(rng.integers(2, 6))
        ball = kind.make(random_center(rng, n), float(rng.choice(kind.radii)))
        column = random_column(rng, n)
        exact = [Fraction(value) for value in column.tolist()]
        near = ball.find_multipliers(column[:, None])[:, 0]
        member = ball.project_to_rationals(ball.minimizer(column))
        mean = sum((q * v for q, v in zip(member, exact, strict=True)), Fraction(0))
        for moved in (
            near,
            near * rng.uniform(0, 2, len(near)),
            rng.normal(size=len(near)),
            0 * near,
        ):
            assert ball.bound_mean(exact, moved.tolist()) <= mean


@pytest.mark.parametrize("name", KINDS)
def test_all_forms_agree(name: str) -> None:
    for radius in BALLS[name].radii[::2]:
        check_prior_set(BALLS[name].make(np.array([0.4, 0.3, 0.2, 0.1]), radius), instances=2)


@pytest.mark.parametrize("name", KINDS)
def test_a_ball_of_radius_0_is_its_centre(name: str) -> None:
    kind, p = BALLS[name], Prior.from_counts([5, 3, 2])
    point = kind.make(p, 0.0)
    gains = np.random.default_rng(5).normal(size=(3, 3))
    plain = solve(design(p, PML(0.4), ExpectedGain(gains), 3))
    found = solve(design(p, PML(0.4, over=point), ExpectedGain(gains), 3))
    assert found.value == pytest.approx(plain.value, abs=1e-12)
    matrix = [[0.5, 0.5], [0.25, 0.75], [0.125, 0.875]]
    assert pointwise_capacity(point, matrix).max() == pytest.approx(leakage_level(p, matrix))
    least, total = point.min_mean_scaled(np.array([[1], [2], [4]], dtype=object))
    assert Fraction(int(least[0]), total) == Fraction(5 + 6 + 8, 10)
    other = solve(design([0.2, 0.3, 0.5], PML(0.4, over=point), ExpectedGain(gains), 3))
    assert other.level <= 0.4
    assert other.certificate.verify()


@pytest.mark.parametrize("name", KINDS)
def test_a_large_ball_is_all_priors(name: str) -> None:
    kind, p = BALLS[name], np.array([0.5, 0.3, 0.2])
    end = kind.all_from(p)
    if math.isinf(end):
        pytest.skip("no ball of this kind has all priors")
    large, short = kind.make(p, end * (1 + 1e-9)), kind.make(p, end * (1 - 1e-6))
    assert large.has_all_priors
    assert not short.has_all_priors
    gains = np.random.default_rng(6).normal(size=(3, 3))
    local = solve(design(p, LDP(0.8), ExpectedGain(gains), 3))
    found = solve(design(p, PML(0.8, over=large), ExpectedGain(gains), 3))
    near = solve(design(p, PML(0.8, over=short), ExpectedGain(gains), 3))
    assert found.value == pytest.approx(local.value, abs=1e-9)
    assert near.value == pytest.approx(local.value, abs=1e-4)
    assert large.min_mean(np.eye(3)) == pytest.approx([0, 0, 0], abs=1e-12)


@pytest.mark.parametrize("name", KINDS)
def test_what_is_no_ball_is_refused(name: str) -> None:
    make = BALLS[name].make
    for radius in (-0.1, math.nan, math.inf):
        with pytest.raises(PrivacyError, match="the radius"):
            make(np.array([0.5, 0.5]), radius)
    with pytest.raises(PrivacyError, match="is on 2 letters"):
        make(np.array([0.5, 0.5]), 0.1).contains([0.2, 0.3, 0.5])


def test_no_letter_is_emptied_below_its_odds() -> None:
    """While none is emptied the least mean is that of Cauchy and Schwarz, `<p, v> - sqrt(r Var v)`."""
    p, column = np.array([0.5, 0.3, 0.2]), np.array([0.0, 1.0, 3.0])
    mean = p @ column
    deviation = math.sqrt(p @ (column - mean) ** 2)
    for radius in (1e-12, 1e-3, 0.05):
        expected = mean - math.sqrt(radius) * deviation
        assert ChiSquareBall(p, radius).min_mean(column[:, None])[0] == pytest.approx(
            expected, abs=1e-14
        )
    # a letter of mass a is emptied at a / (1 - a)
    assert ChiSquareBall(p, 0.25).min_mean(np.array([[0.0], [0.0], [1.0]]))[0] == pytest.approx(
        0, abs=1e-12
    )
    assert ChiSquareBall(p, 0.24).min_mean(np.array([[0.0], [0.0], [1.0]]))[0] > 0.003
