"""Noise on any numbers: levels by brute force, calibration in sixty digits, failures by quadrature, draws."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable
from decimal import Decimal
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from oracles import additive as oracle
from oracles.noise import check_law
from scipy.stats import chisquare, expon, laplace, norm, uniform

from pmlopt import AllPriors, Box, Continuous, ConvexHull, L1Ball, Prior, confidence_ball
from pmlopt.errors import MechanismError, PrivacyError
from pmlopt.measures import leakage_level
from pmlopt.releases.noise import Gaussian, Geometric, Laplace, Promise

AGES = Prior([0.5, 0.3, 0.2], [20, 40, 60])
VECTORS = Prior([0.5, 0.3, 0.2], [(0.0, 0.0), (1.0, 2.0), (3.0, 1.0)])
SEEDS = st.integers(0, 2**32 - 1)


def draw_case(seed: int, kind: str) -> tuple[Any, Prior, Any, Any]:
    rng = np.random.default_rng(seed)
    dimensions, size = int(rng.integers(1, 3)), int(rng.integers(1, 13))
    whole = bool(rng.integers(2)) and dimensions == 1
    labels = oracle.draw_letters(rng, dimensions, size, whole)
    prior = Prior(rng.dirichlet(np.ones(size)) * 0.98 + 0.02 / size, labels)
    over = oracle.draw_set(rng, kind, prior)
    return rng, prior, over, Geometric if whole else Laplace


@pytest.mark.parametrize("kind", oracle.KINDS)
@settings(max_examples=3, deadline=None)  # 1,000 are in benchmarks/additive_noise.py
@given(SEEDS)
def test_the_level_is_the_largest_leakage_of_an_outcome(kind: str, seed: int) -> None:
    rng, prior, over, noise_kind = draw_case(seed, kind)
    points = np.array(prior.labels, dtype=float).reshape(prior.size, -1)
    scale = float(np.ptp(points, axis=0).max() or 1.0) * 10.0 ** rng.uniform(-1, 1.5)
    noise = noise_kind(scale)
    expected = oracle.level_by_outcomes(
        points, scale, over, prior.pmf, 9 if points.shape[1] == 1 else 3
    )
    level = noise.level(prior, over)
    assert level == pytest.approx(expected, abs=1e-9)
    assert level >= expected - 1e-13
    by_letter = noise.letter_levels(prior, over)
    assert max(by_letter.values()) == level
    if over is None:
        own = noise.leakage(prior, points[:, 0] if points.shape[1] == 1 else points)
        assert own == pytest.approx(list(by_letter.values()), abs=1e-12)


@pytest.mark.parametrize("kind", ["one", "hull", "all"])
@settings(max_examples=4, deadline=None)
@given(SEEDS, st.floats(0.01, 0.99))
def test_the_calibrated_level_is_at_most_epsilon_in_sixty_digits(
    kind: str, seed: int, part: float
) -> None:
    _, prior, over, noise_kind = draw_case(seed, kind)
    points = np.array(prior.labels, dtype=float).reshape(prior.size, -1)
    laws = {"one": prior.probabilities[None], "all": np.eye(prior.size)}.get(kind)
    laws = np.array(over.points if isinstance(over, ConvexHull) else laws)
    most = noise_kind(0.0).level(prior, over)
    epsilon = part * min(most, 5.0)
    if epsilon == 0:
        assert prior.size == 1
        return
    noise = noise_kind.calibrate(prior, epsilon, over)
    exact = oracle.level_in_digits(points, noise.scale, laws)
    assert exact <= Decimal(epsilon)
    assert float(Decimal(epsilon) - exact) <= 1e-9
    assert noise.level(prior, over) <= epsilon


def test_small_and_large_levels_keep_their_digits() -> None:
    for scale in (1e-3, 1.0, 1e6, 1e12):
        points = np.array(AGES.labels, dtype=float)[:, None]
        exact = float(oracle.level_in_digits(points, scale, AGES.probabilities[None]))
        assert Laplace(scale).level(AGES) == pytest.approx(exact, rel=1e-13)
        assert Laplace(scale).level(AGES, ConvexHull(AGES.probabilities[None])) == pytest.approx(
            exact, rel=1e-13
        )
    assert Laplace(1e-3).level(AGES, AllPriors(3)) == pytest.approx(40 / 1e-3, rel=1e-12)


def test_two_values_and_every_prior_are_the_known_cases() -> None:
    pair = Prior([0.3, 0.7], [-1, 1])
    known = 2 / 0.8 - math.log(
        1 - 0.3 + 0.3 * math.exp(2 / 0.8)
    )  # [grosse2025empirical, Proposition 3]
    assert Laplace(0.8).level(pair) == pytest.approx(known, abs=1e-14)
    assert Laplace.calibrate(AGES, 0.5, AllPriors(3)).scale == pytest.approx(40 / 0.5, rel=1e-12)
    assert Laplace.calibrate(AGES, -math.log(0.2) + 1e-12).scale == 0
    assert Geometric(0.7).level(AGES) == Laplace(0.7).level(AGES)


@pytest.mark.parametrize("factor", [1e-100, 1e-6, 1e6, 1e100])
def test_the_scale_of_letters_further_apart_is_larger_by_as_much(factor: float) -> None:
    far = Prior(AGES.pmf, [factor * age for age in (20, 40, 60)])
    scale = Laplace.calibrate(AGES, 0.5).scale
    assert Laplace.calibrate(far, 0.5).scale == pytest.approx(factor * scale, rel=1e-12)


def test_letters_off_the_grid_leak_what_is_drawn() -> None:
    """0.1 and 0.3 are no multiples of the step: the level counts the letters that noise is added to."""
    prior = Prior([0.5, 0.5], [0.1, 0.3])
    noise = Laplace(2.0**60)
    assert noise.grid_step == 1.0  # both letters are released as 0
    assert noise.level(prior) >= float(
        oracle.level_in_digits(np.array([[0.1], [0.3]]), noise.scale, prior.probabilities[None])
    )
    assert noise.failure_probability(prior, 1e-25) == 0.0
    wide = Prior([0.5, 0.5], [0.4, 0.6])
    assert noise.level(wide) >= float(
        oracle.level_in_digits(np.array([[0.0], [1.0]]), noise.scale, wide.probabilities[None])
    )


class TestContinuous:
    def test_a_uniform_number_by_its_closed_form(self) -> None:
        law = Continuous(uniform(2, 3))  # from 2 to 5
        for scale in (0.3, 3.0, 100.0):
            exact = -math.log(scale / 3 * -math.expm1(-3 / scale))  # at an end of the support
            level = Laplace(scale).level(law)
            assert exact <= level <= exact + 3 / scale * 2**-15
        noise = Laplace.calibrate(law, 0.5)
        exact = -math.log(noise.scale / 3 * -math.expm1(-3 / noise.scale))
        assert exact <= noise.level(law) <= 0.5
        assert exact >= 0.5 - 1e-4

    def test_a_gap_in_the_middle_leaks_most(self) -> None:
        sample = Continuous.from_samples(
            np.concatenate([np.full(99, 0.0), [5.0], np.full(100, 10.0)]), support=(0, 10)
        )
        letters = Prior([0.495, 0.005, 0.5], [0.0, 5.0, 10.0])
        exact = Laplace(2.0).level(letters)
        assert exact <= Laplace(2.0).level(sample) <= exact + 1e-3

    def test_of_independent_numbers_the_levels_add_up(self) -> None:
        """The mean of `e^(-||x - y|| / b)` is the product over the axes."""
        law = Continuous([uniform(2, 3), uniform(0, 1)])
        for scale in (0.7, 3.0):
            exact = -sum(math.log(scale / w * -math.expm1(-w / scale)) for w in (3, 1))
            level = Laplace(scale).level(law)
            assert exact <= level <= exact + 4 / scale / 1000

    def test_of_a_sample_of_pairs_the_level_is_that_of_its_letters(self) -> None:
        """Coordinates that depend on each other: only two of four corners occur."""
        sample = np.array([[0.0, 0.0]] * 30 + [[4.0, 1.0]] * 10)
        letters = Prior([0.75, 0.25], [(0.0, 0.0), (4.0, 1.0)])
        exact = Laplace(2.0).level(letters)
        law = Continuous.from_samples(sample, support=[(0, 4), (0, 1)])
        assert exact <= Laplace(2.0).level(law) <= exact + 6e-3

    @pytest.mark.parametrize(("sigma", "part"), [(2.0, 0.3)])
    def test_failures_of_a_uniform_number(self, sigma: float, part: float) -> None:
        """Its density is a difference of two normal tails, and the likeliest number the nearest one."""
        y = np.linspace(2 - 9 * sigma, 5 + 9 * sigma, 400_001)
        density = (norm.sf((2 - y) / sigma) - norm.sf((5 - y) / sigma)) / 3
        likeliest = norm.pdf(np.maximum(np.maximum(2 - y, y - 5), 0), 0, sigma)
        y, density, likeliest = (one[density > 1e-30] for one in (y, density, likeliest))
        leaks = np.log(likeliest) - np.log(density)
        change = 3 / 2**15 * ((3 + 1e-3) / sigma + 9) / sigma

        def exact(epsilon: float) -> float:
            return float((density * (leaks > epsilon)).sum() * (y[1] - y[0]))

        epsilon = float(np.quantile(leaks[density > 1e-6], part))
        found = Gaussian(sigma).failure_probability(Continuous(uniform(2, 3)), epsilon)
        looser = math.exp(change) * exact(epsilon - 2 * change) + 1e-4
        assert exact(epsilon) - 1e-4 <= found <= looser
        assert Gaussian(sigma).failure_probability(Continuous(uniform(2, 3)), 0.0) == 1.0

    def test_what_has_no_bound_is_refused(self) -> None:
        law = Continuous(expon(), support=(0, 5))
        asked: list[Callable[[], float]] = [
            lambda: Gaussian(1.0).level(law), lambda: Geometric(1.0).level(law),
            lambda: Laplace(1.0).level(law, AllPriors(3)),
            lambda: Gaussian(1.0).failure_probability(law, 0.5, AllPriors(3)),
            lambda: Gaussian(1.0).failure_probability(Continuous([uniform(), uniform()]), 0.5),
            lambda: Geometric(1.0).failure_probability(law, 0.5),
        ]  # fmt: skip
        for ask in asked:
            with pytest.raises(PrivacyError):
                ask()
        assert Laplace(0.0).level(law) == math.inf


class TestFailures:
    @settings(max_examples=6, deadline=None)  # 300 are in benchmarks/additive_noise.py
    @given(SEEDS, st.floats(0.05, 0.95))
    def test_of_gaussian_noise_by_quadrature(self, seed: int, part: float) -> None:
        rng = np.random.default_rng(seed)
        size = int(rng.integers(2, 9))
        prior = Prior(
            rng.dirichlet(np.ones(size)) * 0.9 + 0.1 / size, np.sort(rng.normal(size=size)).tolist()
        )
        sigma = 10.0 ** rng.uniform(-0.7, 1)
        epsilon = part * prior.max_leakage
        found = Gaussian(sigma).failure_probability(prior, epsilon)
        points = np.array(prior.labels, dtype=float)
        assert found == pytest.approx(
            oracle.gaussian_failure(points, prior.pmf, sigma, epsilon), abs=1e-9
        )

    @pytest.mark.parametrize(
        ("noise", "kind"),
        [*itertools.product([Gaussian(25.0), Laplace(25.0)], oracle.KINDS[1:]),
         (Geometric(25.0), "l1"), (Geometric(25.0), "hull")],
    )  # fmt: skip
    def test_over_a_set_it_is_not_below_that_of_its_priors(self, noise: Any, kind: str) -> None:
        rng = np.random.default_rng(3)
        over = oracle.draw_set(rng, kind, AGES)
        assert over is not None
        found = noise.failure_probability(AGES, 0.4, over)
        tried = [over.minimizer(rng.normal(size=3)) for _ in range(6)]
        mixed = [*tried, *(rng.dirichlet(np.ones(6)) @ np.array(tried) for _ in range(4))]
        for law in mixed:
            inside = np.maximum(law, 1e-9) / np.maximum(law, 1e-9).sum()
            assert found >= noise.failure_probability(Prior(inside, AGES.labels), 0.4) - 1e-6

    def test_of_laplace_noise_it_is_that_of_its_bins(self) -> None:
        """Within fine bins the leakage hardly moves: the matrix has nearly the same probability."""
        noise = Laplace(15.0)
        binned = noise.bin_outcomes(AGES, np.linspace(20, 60, 4001))
        for epsilon in (0.3, 0.6, 0.9):
            joint = AGES.pmf[:, None] * binned.matrix
            leaks = np.log(binned.matrix.max(axis=0) / joint.sum(axis=0))
            law = joint.sum(axis=0)
            low, high = (law[leaks > epsilon + off].sum() for off in (2e-3, -2e-3))
            assert low - 1e-9 <= noise.failure_probability(AGES, epsilon) <= high + 1e-9

    def test_two_vectors_are_two_numbers_at_their_distance(self) -> None:
        vectors, numbers = Prior([0.3, 0.7], [(0, 0), (3, 4)]), Prior([0.3, 0.7], [0, 5])
        for epsilon in (0.2, 0.7, 1.1):
            assert Gaussian(2.0).failure_probability(vectors, epsilon) == pytest.approx(
                Gaussian(2.0).failure_probability(numbers, epsilon), rel=1e-12
            )
        for line in ([(0, 0), (3, 4), (6, 8)], [(0, 0, 0), (2, 1, 2), (4, 2, 4)]):
            step = math.dist(*line[:2])
            flat = Prior(AGES.pmf, [0.0, step, 2 * step])
            assert Gaussian(3.0).failure_probability(Prior(AGES.pmf, line), 0.5) == pytest.approx(
                Gaussian(3.0).failure_probability(flat, 0.5), rel=1e-12
            )
        space = Prior([0.25] * 4, [(0, 0, 0), (1, 0, 0), (0, 1, 0), (0, 0, 1)])
        with pytest.raises(PrivacyError, match="3 dimensions"):
            Gaussian(2.0).failure_probability(space, 0.5)

    @pytest.mark.parametrize("seed", [1])
    def test_of_gaussian_noise_in_the_plane_by_sections(self, seed: int) -> None:
        rng = np.random.default_rng(seed)
        size = int(rng.integers(3, 6))
        points = rng.normal(size=(size, 2))
        prior = Prior(rng.dirichlet(np.ones(size)) * 0.8 + 0.2 / size, list(map(tuple, points)))
        epsilon = float(rng.uniform(0.3, 0.6)) * prior.max_leakage
        found = Gaussian(1.0).failure_probability(prior, epsilon)
        exact = oracle.plane_failure(points, prior.pmf, 1.0, epsilon)
        assert exact - 1e-11 <= found <= exact + 1e-9

    @pytest.mark.parametrize(
        ("labels", "epsilons"),
        [(VECTORS.labels, (0.8,)), ([(0.0, 0.0), (3.0, 4.0)], (0.55,))],
    )
    def test_of_laplace_noise_in_the_plane_it_is_between_that_of_bins(
        self, labels: Any, epsilons: tuple[float, ...]
    ) -> None:
        """The l1 norm: vectors are not two numbers at any distance, not even two."""
        prior, noise = (
            Prior(AGES.pmf[: len(labels)] / AGES.pmf[: len(labels)].sum(), labels),
            Laplace(2.0),
        )
        points = np.array(labels)
        grids = [np.linspace(axis.min(), axis.max(), 401) for axis in points.T]
        parts = [noise.compute_cell_masses(
            np.append(-np.inf, grid), np.append(grid, np.inf), axis)
            for grid, axis in zip(grids, points.T, strict=True)]  # fmt: skip
        law = np.einsum("ia,ib,i->ab", *parts, prior.pmf)
        # a log-ratio moves by twice the width of a bin over the scale at most, on each axis
        off = sum(2 * (grid[1] - grid[0]) / noise.scale for grid in grids)
        likelihoods = np.einsum("ia,ib->iab", *parts)
        leaks = np.log(likelihoods.max(axis=0) / law)
        for epsilon in epsilons:
            low, high = (float(law[leaks > epsilon + one].sum()) for one in (off, -off))
            assert low - 1e-9 <= noise.failure_probability(prior, epsilon) <= high + 1e-9
        assert noise.failure_probability(prior, 0.99 * noise.level(prior)) > 0

    def test_in_the_plane_over_a_set_it_is_not_below_that_of_its_priors(self) -> None:
        rng = np.random.default_rng(5)
        over, noise = L1Ball(VECTORS, 0.1), Gaussian(1.0)
        found = noise.failure_probability(VECTORS, 0.8, over)
        law = Prior(over.minimizer(rng.normal(size=3)), VECTORS.labels)
        assert 1 > found >= noise.failure_probability(law, 0.8) - 1e-9

    @pytest.mark.parametrize("kind", [Gaussian, Laplace])
    @pytest.mark.parametrize("scale", [1e-4, 1e-3, 0.01, 0.03])
    def test_little_noise_in_the_plane_reveals_the_rare_letters_only(
        self, kind: Any, scale: float
    ) -> None:
        prior = Prior([0.5, 0.3, 0.2], [(0.0, 0.0), (1.0, 0.1), (0.3, 1.0)])
        found = kind(scale).failure_probability(prior, 0.8)  # e^-0.8 is below one half
        assert found == pytest.approx(0.5, abs=1e-6)

    @pytest.mark.parametrize("epsilon", [0.55])
    def test_in_the_plane_it_is_the_same_along_either_axis(self, epsilon: float) -> None:
        """Of Laplace noise sections jump: the integral across must not miss where."""
        turned = Prior(VECTORS.pmf, [(0.0, 0.0), (2.0, 1.0), (1.0, 3.0)])
        one, other = (
            Laplace(2.0).failure_probability(prior, epsilon) for prior in (VECTORS, turned)
        )
        assert one == pytest.approx(other, abs=3e-11)

    def test_it_is_not_monotone_in_sigma(self) -> None:
        """Without noise the rare letter fails alone; with some, outcomes near it do that others have."""
        prior = Prior([0.01, 0.99], [0, 1])
        failures = [Gaussian(one).failure_probability(prior, 0.6) for one in (0.0, 0.6, 5.0)]
        assert failures[0] == pytest.approx(0.01, rel=1e-12)
        assert failures[1] > 1.2 * failures[0]
        assert failures[2] < failures[0]
        ages = Prior([0.01, 0.01, 0.98], [0, 20, 40])
        more = [Gaussian(one).failure_probability(ages, 0.6) for one in (0.0, 60.0, 150.0)]
        assert more[1] > more[0] > more[2]

    @pytest.mark.parametrize("labels", [[0.1, 0.3], [0.1, 0.3, 0.4], [(0.1, 0.2), (0.3, 0.1)]])
    def test_without_noise_letters_of_one_whole_number_are_revealed(self, labels: Any) -> None:
        prior = Prior.uniform(len(labels), labels)
        for kind in (Laplace, Gaussian):
            assert kind(0.0).failure_probability(prior, 0.3) == pytest.approx(1.0, abs=1e-12)
            assert kind(0.0).failure_probability(prior, 1.2) == 0.0

    def test_ends_and_tails(self) -> None:
        for noise in (Laplace(10.0), Gaussian(10.0), Geometric(10.0)):
            assert noise.failure_probability(AGES, 0.0) == 1.0
            assert noise.failure_probability(AGES, noise.level(AGES)) == 0.0
            tail = noise.leakage_tail(AGES, [0.2, 0.5, 0.8])
            assert (np.diff(tail) <= 0).all()
            assert tail[1] == noise.failure_probability(AGES, 0.5)
        none = Gaussian(0.0)
        assert none.failure_probability(AGES, 1.0) == pytest.approx(0.5, abs=1e-12)

    def test_a_promise_counts_the_sample_in(self) -> None:
        sample = Prior.from_counts([50, 30, 20], [20, 40, 60])
        ball = confidence_ball(sample, 0.05)
        first = Gaussian(60.0).failure_probability(sample, 0.5, ball)
        assert Gaussian(60.0).promise(sample, 0.5, ball) == Promise(
            0.5, first + 0.05 - first * 0.05
        )
        with pytest.raises(PrivacyError, match="give delta"):
            Gaussian(60.0).promise(sample, 0.5, L1Ball(sample, 0.1))

    @pytest.mark.parametrize("over", [None, L1Ball(AGES, 0.1)])
    def test_the_calibrated_sigma_meets_delta_and_a_smaller_one_does_not(self, over: Any) -> None:
        noise = Gaussian.calibrate(AGES, 0.5, 0.01, over)
        assert noise.failure_probability(AGES, 0.5, over) <= 0.01
        assert Gaussian(noise.scale * (1 - 1e-6)).failure_probability(AGES, 0.5, over) > 0.01


class TestMechanisms:
    @settings(max_examples=8, deadline=None)
    @given(SEEDS)
    def test_geometric_noise_as_a_matrix_leaks_the_same(self, seed: int) -> None:
        rng = np.random.default_rng(seed)
        size = int(rng.integers(1, 7))
        letters = rng.choice(20, size, replace=False).tolist()
        prior = Prior(rng.dirichlet(np.ones(size)) * 0.9 + 0.1 / size, letters)
        noise = Geometric(10.0 ** rng.uniform(-0.5, 1.5))
        mechanism = noise.to_mechanism(prior)
        assert leakage_level(prior, mechanism) == pytest.approx(noise.level(prior), abs=1e-11)
        # the law by its definition, the outcomes past the letters added up
        outcomes = np.arange(-2000, 2021)
        law = np.exp(-np.abs(outcomes - letters[0]) / noise.scale)
        law /= law.sum()
        clipped = np.clip(outcomes, min(letters), max(letters))
        row = [law[clipped == y].sum() for y in mechanism.outputs]
        assert mechanism.matrix[0] == pytest.approx(row, abs=1e-12)

    def test_geometric_noise_on_vectors_is_a_mechanism_too(self) -> None:
        prior = Prior([0.5, 0.3, 0.2], [(0, 0), (1, 2), (3, 1)])
        noise = Geometric(2.0)
        mechanism = noise.to_mechanism(prior)
        assert len(mechanism.outputs) == 4 * 3
        assert mechanism.outputs[-1] == (3, 2)
        assert leakage_level(prior, mechanism) == pytest.approx(noise.level(prior), abs=1e-12)
        # the law by its definition, outcomes past the letters added up
        z = np.arange(-200, 204)
        for label, row in zip([(0, 0), (1, 2), (3, 1)], mechanism.matrix, strict=True):
            law = np.ones((1, 1))
            for place, top in zip(label, (3, 2), strict=True):
                one = np.exp(-np.abs(z - place) / 2.0)
                clipped = np.bincount(np.clip(z, 0, top), one / one.sum())
                law = (law[:, :, None] * clipped).reshape(law.shape[0], -1)
            assert row == pytest.approx(law.ravel(), abs=1e-12)
        for epsilon in (0.2, 0.6):
            joint = prior.pmf[:, None] * mechanism.matrix
            leaks = np.log(mechanism.matrix.max(axis=0) / joint.sum(axis=0))
            expected = joint.sum(axis=0)[leaks > epsilon].sum()
            assert noise.failure_probability(prior, epsilon) == pytest.approx(expected, abs=1e-12)

    def test_bins_of_geometric_noise_have_its_law(self) -> None:
        prior, edges = Prior([0.5, 0.5], [0, 3]), [-2.5, 0, 1, 2.5, 4]
        binned = Geometric(1.7).bin_outcomes(prior, edges)
        z = np.arange(-300, 301)
        for label, row in zip((0, 3), binned.matrix, strict=True):
            law = np.exp(-np.abs(z - label) / 1.7)
            counts = np.bincount(np.searchsorted(edges, z, side="left"), law / law.sum())
            assert row == pytest.approx(counts, abs=1e-14)

    def test_bins_leak_no_more_and_nearly_all(self) -> None:
        for noise in (Laplace(12.0), Gaussian(12.0)):
            binned = noise.bin_outcomes(AGES, [20, 25, 30, 35, 40, 45, 50, 55, 60])
            assert leakage_level(AGES, binned) <= noise.level(AGES)
            assert binned.matrix[0, 0] == pytest.approx(0.5, abs=1e-12)
            with pytest.raises(PrivacyError, match="ascending"):
                noise.bin_outcomes(AGES, [3, 2])
        fine = Laplace(12.0).bin_outcomes(AGES, np.linspace(19, 61, 2000))
        assert leakage_level(AGES, fine) == pytest.approx(Laplace(12.0).level(AGES), abs=2e-3)

    def test_leakage_of_vectors(self) -> None:
        y = np.array([[0.5, 0.7], [9.0, -3.0]])
        for noise, power in ((Laplace(2.0), 1), (Gaussian(2.0), 2)):
            away = np.abs(y[None] - np.array(VECTORS.labels)[:, None])
            logs = -(away**power).sum(axis=2) / (power * 2.0**power)
            density = np.exp(logs)
            expected = np.log(density.max(axis=0) / (VECTORS.pmf @ density))
            assert noise.leakage(VECTORS, y) == pytest.approx(expected, abs=1e-12)


class TestDraws:
    def test_shapes_seeds_and_laws(self) -> None:
        values = [20, 40, 60.5, -3]
        for noise in (Laplace(2.0), Gaussian(2.0), Geometric(2.0)):
            given_values = [20, 40, 60, -3] if isinstance(noise, Geometric) else values
            first = noise.sample(given_values, seed=4)
            assert np.array_equal(first, noise.sample(given_values, seed=4))
            assert first.shape == (4,)
            assert noise.sample([]).shape == (0,)
        assert Laplace(2.0).sample([(1, 2), (3, 4)], seed=1).shape == (2, 2)
        assert (Geometric(3.0).sample([5] * 50, seed=1) % 1 == 0).all()
        check_law(Laplace(2.0).sample([0.25] * 20_000, seed=2), laplace(0.25, 2.0).cdf)
        check_law(Gaussian(2.0).sample([0.25] * 20_000, seed=2), norm(0.25, 2.0).cdf)
        plane = Gaussian(2.0).sample([(1, -1)] * 5_000, seed=9)
        assert abs(float(np.mean((plane[:, 0] - 1) * (plane[:, 1] + 1)))) / 4 < 0.07

    def test_geometric_draws_have_their_probabilities(self) -> None:
        scale = 1.7
        drawn = Geometric(scale).sample([0] * 40_000, seed=11).astype(int)
        counts = np.bincount(np.clip(drawn, -8, 8) + 8, minlength=17)
        q = math.exp(-1 / scale)
        law = np.array([(1 - q) / (1 + q) * q ** abs(z) for z in range(-8, 9)])
        law[[0, -1]] = q**8 / (1 + q)
        assert chisquare(counts, law * counts.sum()).pvalue > 1e-6

    def test_without_noise_values_are_returned(self) -> None:
        assert Laplace(0.0).sample([1.5, 2]).tolist() == [1.5, 2.0]

    @pytest.mark.parametrize("values", [["a"], [None], [math.nan], [True], [(1, 2), 3], [10**400]])
    def test_what_is_no_number(self, values: Any) -> None:
        for noise in (Laplace(1.0), Gaussian(1.0)):
            with pytest.raises(MechanismError):
                noise.sample(values)


@pytest.mark.parametrize(
    ("labels", "words"),
    [(["a", "b"], "no finite number"), ([(1, 2), (3,)], "equally many"), ([1, 2**53 + 1], "float"),
     ([True, False], "no finite number")],
)  # fmt: skip
def test_letters_that_are_no_numbers(labels: Any, words: str) -> None:
    with pytest.raises(PrivacyError, match=words):
        Laplace(1.0).level(Prior([0.5, 0.5], labels))


def test_geometric_noise_is_for_whole_numbers() -> None:
    halves = Prior([0.5, 0.5], [0.5, 1.5])
    for ask in (
        lambda: Geometric(1.0).level(halves), lambda: Geometric.calibrate(halves, 0.5),
        lambda: Geometric(1.0).to_mechanism(halves),
    ):  # fmt: skip
        with pytest.raises(PrivacyError, match=r"0\.5 is none"):
            ask()
    with pytest.raises(MechanismError, match=r"0\.5 is none"):
        Geometric(1.0).sample([0.5])
    with pytest.raises(PrivacyError, match="entries"):
        Geometric(1.0).to_mechanism(Prior([0.5, 0.5], [0, 10**8]))


@pytest.mark.parametrize("epsilon", [0.0, -1.0, math.nan, "1", None, 1e-310])
def test_levels_that_no_scale_has(epsilon: Any) -> None:
    with pytest.raises(PrivacyError, match="epsilon"):
        Laplace.calibrate(AGES, epsilon)
    with pytest.raises(PrivacyError, match="epsilon"):
        Gaussian.calibrate(AGES, epsilon, 0.01)


def test_sets_on_other_letters_are_refused() -> None:
    for over in (AllPriors(2), 0.1, Box([0.0] * 4, [1.0] * 4)):
        with pytest.raises(PrivacyError):
            Laplace(1.0).level(AGES, over)  # type: ignore[arg-type]
