"""Noise on a grid: exact coins, the laws of the draws, and what outcomes on the grid leak."""

from __future__ import annotations

import itertools
import math
from decimal import Decimal, localcontext
from fractions import Fraction

import numpy as np
import pytest
from data.sampling.test_categorical import Scripted
from hypothesis import given, settings
from hypothesis import strategies as st
from oracles.two_letters import BinaryGaussian, BinaryLaplace
from scipy import stats

from pmlopt import leakage_level
from pmlopt.data.sampling.categorical import SeededBits, flip_exponential_coins, is_below
from pmlopt.data.sampling.grid_noise import (
    GRID_STEP_BITS,
    choose_grid_step,
    draw_gaussian_noise,
    draw_laplace_noise,
)
from pmlopt.releases.noise import laplace_level
from pmlopt.releases.noise.leakage_tails import raise_for_grid

DIGITS = (0x5E2D58D8B3BCDF1A, 0xBADEC7829054F90D, 0xDA9805AAB56C7733)
"""The first 192 bits of 1/e."""


def bits(seed: int) -> SeededBits:
    return SeededBits(np.random.default_rng(seed))


def test_the_digits_are_those_of_1_over_e() -> None:
    with localcontext(prec=80):
        scaled = Decimal(-1).exp() * 2**192
    assert int(scaled) == DIGITS[0] << 128 | DIGITS[1] << 64 | DIGITS[2]


@pytest.mark.parametrize("deep", [0, 1, 2])
def test_a_coin_is_decided_by_the_first_bit_that_differs(deep: int) -> None:
    for change, heads in ((-1, True), (1, False)):
        words = [*DIGITS[:deep], DIGITS[deep] + change]
        assert is_below(words[0], Fraction(1), Scripted(*words[1:])) is heads
        found = flip_exponential_coins(np.ones(1), lambda place: Fraction(1), Scripted(*words))
        assert found.tolist() == [heads]


@settings(max_examples=25, deadline=None)
@given(st.fractions(0, 60, max_denominator=10**6))
def test_coins_agree_with_the_exact_comparison_near_the_edge(exponent: Fraction) -> None:
    with localcontext(prec=120):
        exact = (Decimal(-exponent.numerator) / Decimal(exponent.denominator)).exp() * 2**64
    near = min(int(exact), 2**64 - 1)
    words = [
        word
        for word in (near - 2**34, near - 2048, near - 1, near + 1, near + 2**34)
        if 0 <= word < 2**64
    ]
    for word in words:
        coin = flip_exponential_coins(
            np.array([float(exponent)]), lambda place: exponent, Scripted(word)
        )
        assert bool(coin[0]) is (word + 1 <= exact)


@pytest.mark.parametrize(
    ("scale", "step"), [(0.3, 1.0), (2.5, 1.0), (2.5, 0.5), (0.01, 2.0**-10), (3.0, 1.0)]
)
def test_laplace_draws_have_the_discrete_law(scale: float, step: float) -> None:
    """Chi-square of 40,000 draws; a false alarm has probability 1e-9 over the seeds."""
    drawn = np.rint(draw_laplace_noise(scale, step, 40_000, bits(5)) / step).astype(int)
    q = math.exp(-step / scale)
    check_law(drawn, lambda k: (1 - q) / (1 + q) * q ** np.abs(k))


@pytest.mark.parametrize(("sigma", "step"), [(0.4, 1.0), (2.5, 1.0), (0.7, 0.25), (3.0, 1.0)])
def test_gaussian_draws_have_the_discrete_law(sigma: float, step: float) -> None:
    """The same of the discrete Gaussian, normalised by its own sum."""
    drawn = np.rint(draw_gaussian_noise(sigma, step, 40_000, bits(6)) / step).astype(int)
    every = np.arange(-2000, 2001)
    total = np.exp(-((every * step / sigma) ** 2) / 2).sum()
    check_law(drawn, lambda k: np.exp(-((k * step / sigma) ** 2) / 2) / total)


def check_law(drawn: np.ndarray, mass: object) -> None:
    values = np.arange(-60, 61)
    expected = mass(values) * len(drawn)  # type: ignore[operator]
    kept = expected >= 5
    counts = np.array([(drawn == value).sum() for value in values[kept]])
    rest = (len(drawn) - counts.sum(), len(drawn) - expected[kept].sum())
    statistic = ((counts - expected[kept]) ** 2 / expected[kept]).sum() + (
        rest[0] - rest[1]
    ) ** 2 / max(rest[1], 5)
    assert stats.chi2.sf(statistic, kept.sum()) > 1e-9


@pytest.mark.parametrize("scale", [1e-300, 1e-5, 0.3, 7.1, 1e15, 1e20, 1e300])
def test_fine_draws_have_the_continuous_law_but_for_the_step(scale: float) -> None:
    """Kolmogorov and Smirnov; the step moves the law by 2^-48, and a false alarm has probability 1e-9."""
    step = choose_grid_step(scale)
    assert step <= scale * 2.0**-GRID_STEP_BITS or step == 2.0**-1074
    laplace = draw_laplace_noise(scale, step, 3000, bits(7))
    assert (np.mod(laplace, step) == 0).all()
    assert stats.kstest(laplace / scale, "laplace").pvalue > 1e-9
    assert (
        stats.kstest(draw_gaussian_noise(scale, step, 3000, bits(8)) / scale, "norm").pvalue > 1e-9
    )


# ---------------------------------------------------------------- what outcomes on a grid leak


def masses(law: str, scale: float, steps: int, reach: int) -> np.ndarray:
    """(2, n) the probabilities of -reach .. reach steps, both ends included, given -1 and 1; steps to 1."""
    places = np.arange(-reach, reach + 1)
    power = 1 if law == "laplace" else 2
    found = []
    for centre in (-steps, steps):
        weight = np.exp(-(np.abs((places - centre) / steps / scale) ** power) / power)
        found.append(weight / weight.sum())
    return np.array(found)


@pytest.mark.parametrize("scale", [0.5, 2.0])
def test_the_level_on_a_grid_is_that_of_the_density(scale: float) -> None:
    for steps, share in itertools.product((1, 2, 7), (0.05, 0.5)):
        prior = [share, 1 - share]
        matrix = masses("laplace", scale, steps, round(steps * (2 + 45 * scale)))
        inner = slice(steps, -steps)  # without the ends that are cut off
        assert leakage_level(prior, matrix) == pytest.approx(laplace_level(scale, share), abs=1e-9)
        outcomes = np.arange(-(matrix.shape[1] // 2), matrix.shape[1] // 2 + 1)[inner] / steps
        leaks = np.log(matrix.max(axis=0) / (np.array(prior) @ matrix))[inner]
        assert leaks == pytest.approx(BinaryLaplace(prior, scale).leakage(outcomes), abs=1e-9)


@settings(max_examples=40, deadline=None)
@given(
    st.sampled_from(["laplace", "gaussian"]),
    st.floats(0.3, 4.0),
    st.floats(0.05, 0.95),
    st.floats(0.02, 0.98),
    st.integers(6, 9),
)
def test_failures_on_a_grid_are_within_the_bound(
    law: str, scale: float, share: float, part: float, fineness: int
) -> None:
    """`raise_for_grid` bounds the failure of the discrete law by that of the density."""
    steps = 2 ** math.ceil(fineness - math.log2(scale))
    noise = (BinaryLaplace if law == "laplace" else BinaryGaussian)([share, 1 - share], scale)
    reach = round(steps * (2 + 40 * scale if law == "laplace" else 2 + 9 * scale))
    outcomes = np.arange(-reach, reach + 1) / steps
    epsilon = part * (noise.level if isinstance(noise, BinaryLaplace) else noise.prior.max_leakage)
    above = noise.leakage(outcomes) > epsilon
    failure = float((np.array([share, 1 - share]) @ masses(law, scale, steps, reach))[above].sum())
    assert (
        failure
        <= raise_for_grid(noise.failure_probability(epsilon), 1 / (steps * scale)) * (1 + 1e-9)
        + 1e-12
    )
