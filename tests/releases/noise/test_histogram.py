"""Laplace histograms: Theorem 4 by enumeration of the joint law of few records, and the release."""

from __future__ import annotations

import itertools
import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from oracles.designs import FloatArray
from oracles.noise import check_law
from scipy.special import logsumexp
from scipy.stats import laplace
from strategies import MODEST

from pmlopt.errors import PrivacyError
from pmlopt.releases.noise import LaplaceHistogram, laplace_level, laplace_scale

SCALES = st.floats(-1.0, 2.0).map(lambda exponent: 10.0**exponent)
SEEDS = st.integers(0, 2**32 - 1)


def leakage(y: FloatArray, records: FloatArray, who: int, scale: float) -> FloatArray:
    """(k,) `log f(y | record `who` is in class t) / f(y)`, the classes of the others by enumeration."""
    n, k = records.shape
    others = [i for i in range(n) if i != who]
    tuples = list(itertools.product(range(k), repeat=n - 1))
    counts = np.array([np.bincount(t, minlength=k) for t in tuples]).reshape(len(tuples), k)
    weights = np.array(
        [math.prod(records[i, t] for i, t in zip(others, ts, strict=True)) for ts in tuples]
    )
    given_class = np.array(
        [
            logsumexp(-np.abs(y - counts - np.eye(k)[t]).sum(axis=1) / scale, b=weights)
            for t in range(k)
        ]
    )
    return np.asarray(given_class - logsumexp(given_class, b=records[who]))


def counting_leakage(y: float, records: FloatArray, scale: float) -> FloatArray:
    """(2,) of the first record, for the noisy count of the first of two classes."""
    n = len(records)
    sums = np.array([1.0])  # the law of how many of the others are in the class
    for share in records[1:, 0]:
        sums = np.convolve(sums, [1 - share, share])
    counts = np.arange(n)
    logs = np.array([logsumexp(-np.abs(y - counts - inside) / scale, b=sums) for inside in (1, 0)])
    return np.asarray(logs - logsumexp(logs, b=records[0]))


def random_records(rng: np.random.Generator, n: int, k: int, alpha: float) -> FloatArray:
    """(n, k) laws with every entry at least alpha, the records unlike one another."""
    return alpha + (1 - k * alpha) * rng.dirichlet(np.full(k, 0.5), n)


def random_outcomes(
    rng: np.random.Generator, n: int, k: int, scale: float, size: int
) -> list[FloatArray]:
    """Outcomes near the counts, at kinks, and far out."""
    near = rng.uniform(-2, n + 2, (size, k))
    kinks = rng.integers(-1, n + 2, (size, k)).astype(float)
    far = rng.normal(scale=10 * scale + n, size=(size, k))
    drawn = rng.multinomial(n, np.full(k, 1 / k), size) + rng.laplace(scale=scale, size=(size, k))
    return [*near, *kinks, *far, *drawn]


def outcome_of_the_proof(n: int, k: int, first: int = 0) -> FloatArray:
    """y_1 large and the others very negative."""
    y = np.full(k, -30.0)
    y[first] = n + 30.0
    return y


class TestTheorem4:
    @settings(max_examples=12, deadline=None)
    @given(st.integers(1, 6), st.integers(2, 3), st.floats(0.0, 1.0), SCALES, SEEDS)
    def test_no_outcome_leaks_more_about_a_record(
        self, n: int, k: int, part: float, scale: float, seed: int
    ) -> None:
        rng, alpha = np.random.default_rng(seed), part / k
        records = random_records(rng, n, k, alpha)
        level = LaplaceHistogram(scale, alpha).level
        outcomes = random_outcomes(rng, n, k, scale, 2)
        outcomes += [outcome_of_the_proof(n, k, t) for t in range(k)]
        for who in {0, n - 1}:
            for y in outcomes:
                assert leakage(y, records, who, scale).max() <= level + 1e-11

    @settings(max_examples=12, deadline=None)
    @given(st.integers(1, 6), st.integers(2, 3), st.floats(1e-3, 1.0), SCALES, SEEDS)
    def test_the_bound_is_attained(
        self, n: int, k: int, part: float, scale: float, seed: int
    ) -> None:
        rng, alpha = np.random.default_rng(seed), part / k
        records = random_records(rng, n, k, alpha)
        who, rare = int(rng.integers(n)), int(rng.integers(k))
        rest = alpha + (1 - k * alpha) * rng.dirichlet(np.ones(k - 1))
        records[who] = np.insert(rest, rare, alpha)
        leaked = leakage(outcome_of_the_proof(n, k, rare), records, who, scale)
        assert leaked.argmax() == rare
        level = LaplaceHistogram(scale, alpha).level
        assert leaked[rare] == pytest.approx(level, abs=1e-9)


class TestLevels:
    @given(SCALES, st.floats(0.0, 0.5))
    @MODEST
    def test_the_formulas(self, b: float, alpha: float) -> None:
        noise = LaplaceHistogram(b, alpha)
        assert noise.level == laplace_level(b, alpha)
        assert noise.loose_level == pytest.approx(
            2 * (1 - alpha) / b + 2 * alpha**2 / b**2, rel=1e-13
        )
        assert noise.loose_level >= noise.level * (1 - 1e-14)
        assert noise.dp_level == 2 / b
        assert noise.dp_level >= noise.level * (1 - 1e-14)
        for k in (1, 2, 3, 10):
            printed = (k - 1) * ((1 - alpha) / b + alpha**2 / (2 * b**2))
            assert noise.composed_level(k, released=k - 1) == pytest.approx(printed, rel=1e-13)
            every = k * ((1 - alpha) / b + alpha**2 / (2 * b**2))
            assert noise.composed_level(k) == pytest.approx(every, rel=1e-13)
            assert k == 1 or noise.composed_level(k) >= noise.level * (1 - 1e-12)

    @given(SCALES)
    @MODEST
    def test_where_nothing_is_known_it_is_differential_privacy(self, b: float) -> None:
        noise = LaplaceHistogram(b)
        assert noise.min_mass == 0.0
        assert noise.level == pytest.approx(noise.dp_level, rel=1e-14)
        assert noise.loose_level == pytest.approx(noise.dp_level, rel=1e-14)
        assert LaplaceHistogram.calibrate(epsilon=2 / b).scale == pytest.approx(b, rel=1e-12)

    def test_without_noise_and_with_hardly_any(self) -> None:
        noise = LaplaceHistogram(0.0, 0.25)
        assert noise.level == pytest.approx(math.log(4), abs=1e-15)
        assert noise.loose_level == noise.dp_level == noise.composed_level(3) == math.inf
        assert noise.composed_level(1, released=0) == 0.0
        assert LaplaceHistogram(0.0).level == math.inf
        for scale in (1e-3, 1e-150, 1e-200, 1e-300):
            noise = LaplaceHistogram(scale, 0.25)
            assert noise.level == pytest.approx(math.log(4), abs=1e-15)
            assert noise.dp_level == 2 / scale
            assert noise.loose_level >= noise.level
            assert noise.composed_level(2) > 0

    @given(st.floats(0.0, 0.5), st.floats(1e-3, 0.99), st.sampled_from([2.0, 0.01, 1.0, 7.3]))
    @MODEST
    def test_calibrated(self, alpha: float, part: float, sensitivity: float) -> None:
        epsilon = part * min(-math.log(alpha) if alpha else 5.0, 5.0)
        noise = LaplaceHistogram.calibrate(epsilon=epsilon, min_mass=alpha, sensitivity=sensitivity)
        assert noise.scale == pytest.approx(
            laplace_scale(epsilon, alpha) * sensitivity / 2, rel=1e-12
        )
        assert noise.min_mass == alpha
        assert noise.level <= epsilon
        assert noise.level == pytest.approx(epsilon, rel=1e-12)
        assert noise.scale <= sensitivity / epsilon * (1 + 1e-14)
        assert noise.dp_level == sensitivity / noise.scale
        assert noise.loose_level >= noise.level * (1 - 1e-13)


class TestComposition:
    """What so many of the counts leak together, by enumeration, is never above the bound for so many."""

    @settings(max_examples=15, deadline=None)
    @given(st.integers(1, 5), st.integers(2, 3), st.floats(0.0, 1.0), SCALES, SEEDS)
    def test_one_count_leaks_as_a_counting_query(
        self, n: int, k: int, part: float, scale: float, seed: int
    ) -> None:
        """The other classes are one: the record is in the class or it is not."""
        rng, alpha = np.random.default_rng(seed), part / k
        records = random_records(rng, n, k, alpha)
        merged = np.column_stack([records[:, 0], records[:, 1:].sum(axis=1)])
        one = LaplaceHistogram(scale, alpha, sensitivity=1)
        assert one.level == laplace_level(2 * scale, alpha)
        ends = [-30.0, n + 30.0]
        for y in [*rng.uniform(-2, n + 2, 5), *ends]:
            leaked = counting_leakage(float(y), merged, scale).max()
            assert leaked <= one.level + 1e-11
        rare = float(merged[0].min())
        exact = max(counting_leakage(y, merged, scale).max() for y in ends)
        assert exact == pytest.approx(laplace_level(2 * scale, rare), abs=1e-9)
        assert one.level <= LaplaceHistogram(scale, alpha).composed_level(2, released=1) + 1e-12

    def test_one_count_has_its_own_sensitivity(self) -> None:
        noise = LaplaceHistogram(1.0, 0.1, sensitivity=1)
        assert noise.release([5], 1).shape == (1,)
        assert noise.release([[5], [7]], 1).shape == (2, 1)
        with pytest.raises(PrivacyError, match="2 counts by 2"):
            noise.release([5, 6], 1)
        with pytest.raises(PrivacyError, match="which is 2"):
            noise.composed_level(2)
        for bad in (0.0, -1.0, math.nan, math.inf, "1", None):
            with pytest.raises(PrivacyError, match="sensitivity"):
                LaplaceHistogram(1.0, 0.1, bad)  # type: ignore[arg-type]
        for released in (-1, 3, 0.5, "1"):
            with pytest.raises(PrivacyError, match="released"):
                LaplaceHistogram(1.0).composed_level(2, released=released)  # type: ignore[arg-type]


class TestRelease:
    NOISE = LaplaceHistogram(2.0, 0.1)

    def test_shapes_and_seeds(self) -> None:
        for shape in ((1,), (4,), (3, 4), (2, 3, 4)):
            counts = np.random.default_rng(0).integers(0, 50, shape)
            released = self.NOISE.release(counts, 1)
            assert released.shape == shape
            assert released.dtype == np.float64
            bare = self.NOISE.release(counts, 1, clip=False, round_to_whole=False) - counts
            assert len(np.unique(bare)) == counts.size  # every count has noise of its own

        def release(seed: int | np.random.Generator | None) -> tuple[float, ...]:
            return tuple(self.NOISE.release([5, 6, 7], seed, clip=False, round_to_whole=False))

        assert release(3) == release(np.random.default_rng(3)) != release(4)
        assert release(None) != release(None)
        going = np.random.default_rng(3)
        assert release(going) != release(going)

    def test_clipping_and_rounding_come_after_the_noise(self) -> None:
        counts = np.array([0, 1, 2, 3, 100])
        ask = {"counts": counts, "seed": 5}
        bare = np.array(
            [self.NOISE.release(counts, s, clip=False, round_to_whole=False) for s in range(50)]
        )
        assert (bare < 0).any()
        assert (bare != np.rint(bare)).all()
        whole = np.array([self.NOISE.release(counts, s, clip=False) for s in range(50)])
        clipped = np.array([self.NOISE.release(counts, s, round_to_whole=False) for s in range(50)])
        both = np.array([self.NOISE.release(counts, s) for s in range(50)])
        assert np.array_equal(whole, np.rint(bare))
        assert np.array_equal(clipped, np.maximum(bare, 0))
        assert np.array_equal(both, np.maximum(np.rint(bare), 0))
        for released in (whole, clipped, both):
            assert not np.signbit(released[released == 0]).any()
        assert np.array_equal(self.NOISE.release(**ask), both[5])  # type: ignore[arg-type]

    def test_without_noise_they_are_the_counts(self) -> None:
        counts = np.array([[3, 0], [7, 2**40]])
        for options in ({}, {"clip": False}, {"round_to_whole": False}):
            released = LaplaceHistogram(0.0, 0.5).release(counts, **options)
            assert np.array_equal(released, counts)
            released[:] = 0  # a copy
            assert counts[0, 0] == 3

    @pytest.mark.parametrize("scale", [0.0, 2.0])
    def test_what_are_no_counts(self, scale: float) -> None:
        none: Any = [
            [-1, 2],
            [0.5, 1],
            [math.nan, 1],
            [math.inf, 1],
            [],
            ["a", "b"],
            [True, False],
            None,
        ]
        for counts in (*none, [[1, 2], [3]]):
            with pytest.raises(PrivacyError):
                LaplaceHistogram(scale, 0.1).release(counts, 1)

    @pytest.mark.parametrize("scale", [0.0, 2.0])
    def test_more_classes_than_the_mass_allows(self, scale: float) -> None:
        noise = LaplaceHistogram(scale, 0.3)
        assert noise.release([1, 2, 3], 1).shape == (3,)
        for counts in ([1, 2, 3, 4], np.ones((2, 4))):
            with pytest.raises(PrivacyError, match="4 classes"):
                noise.release(counts, 1)
        for k in (3, 7, 49):
            assert LaplaceHistogram(scale, 1 / k).release(np.ones(k), 1).shape == (k,)
            with pytest.raises(PrivacyError):
                LaplaceHistogram(scale, 1 / k + 1e-9).release(np.ones(k), 1)

    def test_the_noise_is_laplace(self) -> None:
        noisy = self.NOISE.release(np.full((25_000, 4), 50), 12, clip=False, round_to_whole=False)
        check_law(noisy.ravel(), laplace(50, 2.0).cdf)
