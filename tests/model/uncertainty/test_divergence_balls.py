"""Balls of priors that are no polytopes: against convex programs in a prior, and against their ends."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest
from oracles.divergence_balls import BALLS, least_mean, random_center
from oracles.set_comparisons import compare_columns, compare_designs, random_column

from pmlopt import (
    LDP,
    PML,
    ChiSquareBall,
    ExpectedGain,
    LikelihoodRegion,
    Prior,
    design,
    leakage_level,
    solve,
)
from pmlopt.errors import PrivacyError
from pmlopt.model.uncertainty import pointwise_capacity
from pmlopt.model.uncertainty.center import Center
from pmlopt.testing import check_prior_set

KINDS = tuple(BALLS)


@pytest.mark.parametrize("name", KINDS)
def test_columns_have_the_means_of_convex_programs(name: str) -> None:
    compare_columns(BALLS[name], 0, 12)


@pytest.mark.parametrize("name", KINDS)
def test_many_columns_have_the_means_of_convex_programs(name: str) -> None:
    compare_columns(BALLS[name], 1, 10)


@pytest.mark.parametrize("name", KINDS)
def test_a_design_is_that_of_cutting_planes(name: str) -> None:
    compare_designs(BALLS[name], 2, 1)


@pytest.mark.parametrize("name", KINDS)
def test_more_designs_are_those_of_cutting_planes(name: str) -> None:
    compare_designs(BALLS[name], 3, 1)


@pytest.mark.parametrize("name", KINDS)
def test_a_ball_of_all_priors_allows_levels_past_those_of_the_prior(name: str) -> None:
    """It is LDP, whose levels go on above -log min p, the largest one of PML under the prior."""
    p, epsilon = np.array([0.498, 0.502]), 0.72
    if math.isinf(BALLS[name].all_from(p)):
        pytest.skip("no ball of this kind has all priors")
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
    column = np.array([0.5, 0.125, 0.25])
    multipliers = point.find_multipliers(column[:, None])[:, 0]
    proved = point.bound_mean([Fraction(value) for value in column.tolist()], multipliers.tolist())
    assert Fraction(3375, 10_000) - Fraction(1, 10**9) <= proved <= Fraction(3375, 10_000)
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
    assert large.contains_all_priors
    assert not short.contains_all_priors
    gains = np.random.default_rng(6).normal(size=(3, 3))
    local = solve(design(p, LDP(0.8), ExpectedGain(gains), 3))
    found = solve(design(p, PML(0.8, over=large), ExpectedGain(gains), 3))
    near = solve(design(p, PML(0.8, over=short), ExpectedGain(gains), 3))
    assert found.value == pytest.approx(local.value, abs=1e-9)
    assert near.value == pytest.approx(local.value, abs=1e-4)
    assert large.min_mean(np.eye(3)) == pytest.approx([0, 0, 0], abs=1e-12)


def test_a_large_likelihood_region_comes_near_all_priors() -> None:
    p, gains = np.array([0.5, 0.3, 0.2]), np.random.default_rng(6).normal(size=(3, 3))
    local = solve(design(p, LDP(0.8), ExpectedGain(gains), 3))
    for radius in (20.0, 60.0, 1000.0):
        region = LikelihoodRegion(p, radius)
        found = solve(design(p, PML(0.8, over=region), ExpectedGain(gains), 3))
        assert found.certificate.verify()
        assert found.value == pytest.approx(local.value, abs=1e-6)
        assert region.min_mean(np.eye(3)).max() <= 6 * math.exp(-min(radius, 600))


def test_letters_that_were_not_observed_take_what_the_likelihood_leaves() -> None:
    """Of one observed letter, the region is the priors with at least e^-r on it."""
    region = LikelihoodRegion(Center.of([1.0, 0.0, 0.0]), 0.5)
    least = math.exp(-0.5)
    columns = np.array([[1.0, 0.0, 0.2], [0.0, 1.0, 0.5], [0.0, 0.5, 0.1]])
    expected = [least, 0.0, 0.2 * least + 0.1 * (1 - least)]
    assert region.min_mean(columns) == pytest.approx(expected, abs=1e-15)
    kind = BALLS["likelihood"]
    rng = np.random.default_rng(7)
    counts, unit = Center.of_counts((6, 3, 0, 1, 0), tuple(range(5))), 2**53
    for radius in (0.01, 0.3, 2.0):
        region = LikelihoodRegion(counts, radius)
        check_prior_set(region, instances=2)
        for _ in range(8):
            column = random_column(rng, 5)
            least = float(region.min_mean(column[:, None])[0])
            assert least == pytest.approx(least_mean(kind, counts.pmf, radius, column), abs=1e-6)
            whole = np.array([[int(value * unit)] for value in column.tolist()], dtype=object)
            (bound,), parts = region.min_mean_scaled(whole)
            member = region.project_to_rationals(region.minimizer(column))
            assert region.contains_rationals(member)
            mean = sum(member * whole[:, 0])
            assert Fraction(bound, parts) <= mean
            assert float((mean - Fraction(bound, parts)) / unit) <= 1e-12
    with pytest.raises(PrivacyError, match="position 2 has probability 0"):
        LikelihoodRegion(counts, 0.0)


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
