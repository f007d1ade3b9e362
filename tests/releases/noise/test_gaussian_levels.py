"""The level of Gaussian noise: of each number the largest leakage over a grid, and over laws of its mean."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from oracles import additive as oracle
from oracles.designs import FloatArray
from scipy.special import logsumexp

from pmlopt import ConvexHull, Prior
from pmlopt.releases.noise import Gaussian

SEEDS = st.integers(0, 2**32 - 1)
BETWEEN = Prior([0.4, 0.2, 0.4], [20, 40, 60])


def draw_case(seed: int) -> tuple[Prior, float]:
    rng = np.random.default_rng(seed)
    size = int(rng.integers(3, 7))
    shares = rng.dirichlet(np.full(size, 0.7)) * 0.98 + 0.02 / size
    return Prior(shares, rng.permutation(40)[:size].tolist()), 10.0 ** rng.uniform(-0.5, 2)


def largest_leakage(points: FloatArray, law: FloatArray, place: int, sigma: float) -> float:
    """The largest leakage of a number by grids of outcomes, each around the best of the last."""
    offsets = (points - points[place])[:, None] / sigma

    def leak(u: FloatArray) -> FloatArray:
        return np.asarray(-logsumexp(offsets * (u - offsets / 2), b=law[:, None], axis=0))

    reach = 700 / np.abs(np.diff(np.sort(points))).min() * sigma + np.ptp(points) / sigma
    low, high, best = -reach, reach, -math.inf
    for _ in range(14):
        grid = np.linspace(low, high, 201)
        found = leak(grid)
        best = max(best, float(found.max()))
        at = int(found.argmax())
        low, high = grid[max(at - 1, 0)], grid[min(at + 1, 200)]
    return best


@settings(max_examples=10, deadline=None)
@given(SEEDS)
def test_of_one_prior_it_is_the_largest_leakage(seed: int) -> None:
    prior, sigma = draw_case(seed)
    levels = list(Gaussian(sigma).letter_levels(prior).values())
    points = np.array(prior.labels, dtype=float)
    for place, level in enumerate(levels):
        best = largest_leakage(points, prior.pmf, place, sigma)
        assert best - 1e-11 <= level <= best + 1e-9
    assert Gaussian(sigma).level(prior) == max(levels)


@settings(max_examples=10, deadline=None)
@given(SEEDS)
def test_no_law_with_the_number_as_its_mean_is_nearer(seed: int) -> None:
    prior, sigma = draw_case(seed)
    points, rng = np.array(prior.labels, dtype=float), np.random.default_rng(seed)

    def bound_by(law: FloatArray, place: int) -> float:
        kept = law > 0
        divergence = law[kept] @ np.log(law[kept] / prior.pmf[kept])
        return float(divergence + law @ ((points - points[place]) / sigma) ** 2 / 2)

    for place, level in enumerate(Gaussian(sigma).letter_levels(prior).values()):
        alone = np.eye(len(points))[place]
        assert level <= bound_by(alone, place) + 1e-12
        for _ in range(20):
            tilted = rng.dirichlet(np.ones(len(points)))
            # a mixture with an end of the numbers has the mean of this one
            mean, goal = float(tilted @ points), points[place]
            end = int(points.argmax() if mean < goal else points.argmin())
            share = (mean - goal) / (mean - points[end]) if mean != goal else 0.0
            law = (1 - share) * tilted + share * np.eye(len(points))[end]
            assert level <= bound_by(law, place) + 1e-11


@pytest.mark.parametrize("kind", ["l1", "box", "hull"])
@pytest.mark.parametrize("seed", [1, 2, 3])
def test_over_a_set_it_is_the_largest_under_a_prior_of_it(kind: str, seed: int) -> None:
    # the leakage of a number is convex in the prior: an extreme one is the worst
    rng = np.random.default_rng(seed)
    prior = Prior(rng.dirichlet(np.ones(4)) * 0.2 + 0.2, rng.permutation(40)[:4].tolist())
    sigma, over = float(rng.uniform(3, 60)), oracle.draw_set(rng, kind, prior)
    assert over is not None
    points = np.array(prior.labels, dtype=float)
    extreme = [over.minimizer(np.array(one) + 0.0) for one in itertools.permutations(range(4))]
    laws = over.laws if isinstance(over, ConvexHull) else extreme
    levels = Gaussian(sigma).letter_levels(prior, over)
    for place, level in enumerate(levels.values()):
        best = max(largest_leakage(points, law, place, sigma) for law in laws)
        assert best - 1e-9 <= level <= best + 1e-9


@settings(max_examples=10, deadline=None)
@given(SEEDS)
def test_of_the_outermost_numbers_it_is_that_of_no_noise(seed: int) -> None:
    prior, sigma = draw_case(seed)
    found, released = (Gaussian(one).letter_levels(prior) for one in (sigma, 0.0))
    numbers = np.array(prior.labels, dtype=float)
    for end in (numbers.min(), numbers.max()):
        assert found[end] == released[end]
    assert all(found[one] <= released[one] for one in prior.labels)


@settings(max_examples=10, deadline=None)
@given(SEEDS, st.floats(1.0, 10.0))
def test_it_does_not_rise_with_the_noise(seed: int, factor: float) -> None:
    # more noise is noise on a noisy number
    prior, sigma = draw_case(seed)
    less, more = (
        list(Gaussian(one).letter_levels(prior).values()) for one in (sigma, factor * sigma)
    )
    assert (np.array(more) <= np.array(less) + 2e-12).all()


@example(2_147_483_645)  # of whose outcomes many leak as much as the level but for rounding
@settings(max_examples=10, deadline=None)
@given(SEEDS)
def test_no_outcome_leaks_more_and_from_the_level_on_none_fails(seed: int) -> None:
    prior, sigma = draw_case(seed)
    noise = Gaussian(sigma)
    level = noise.level(prior)
    outcomes = np.random.default_rng(seed).normal(20, 3 * sigma + 20, 200)
    assert noise.leakage(prior, outcomes).max() <= level + 1e-12
    assert noise.failure_probability(prior, level) == 0.0


@pytest.mark.parametrize("sigma", [8.0, 12.0])
def test_below_a_level_that_is_attained_between_some_fail(sigma: float) -> None:
    noise = Gaussian(sigma)
    level = noise.level(BETWEEN)
    assert level < BETWEEN.max_leakage
    assert noise.failure_probability(BETWEEN, level - 1e-6) > 1e-6


def test_with_much_noise_the_ends_are_left() -> None:
    levels = Gaussian(500.0).letter_levels(BETWEEN)
    assert levels[20] == levels[60] == pytest.approx(-math.log(0.4), abs=1e-14)
    assert levels[40] == pytest.approx(0.4 * 2 * (20 / 500) ** 2 / 2, rel=1e-3)


def test_vectors_on_one_axis_are_numbers_and_others_have_the_bound_of_no_noise() -> None:
    flat, bent = ([(7, 20), (7, 40), (7, 60)], [(0, 20), (1, 40), (0, 60)])
    numbers = list(Gaussian(9.0).letter_levels(BETWEEN).values())
    assert list(Gaussian(9.0).letter_levels(Prior(BETWEEN.pmf, flat)).values()) == numbers
    vectors = Prior(BETWEEN.pmf, bent)
    assert Gaussian(9.0).level(vectors) == Gaussian(0.0).level(vectors)


def test_a_sigma_is_calibrated_where_only_a_number_between_can_fail() -> None:
    noise = Gaussian.calibrate(BETWEEN, 1.2, 1e-9)
    assert noise.failure_probability(BETWEEN, 1.2) <= 1e-9
    assert noise.level(BETWEEN) == pytest.approx(1.2, abs=1e-8)
    assert Gaussian(noise.scale * (1 - 1e-6)).failure_probability(BETWEEN, 1.2) > 1e-9
