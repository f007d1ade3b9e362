"""Bands say what requirements say: by columns that fit just so, and columns that just do not."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import assume, example, given, settings
from hypothesis import strategies as st
from oracles import designs as oracles
from oracles.bands import FLOORED, KINDS, Shape, bounded, outside, support
from strategies import MODEST, priors

from pmlopt import LDP, LIP, PML, AllPriors, Box, ConvexHull, L1Ball, MaximalLeakage, MinimumMass, Prior
from pmlopt.model.privacy import Requirement
from pmlopt.solvers.structured.block_program import mean_block, ratio_block

kinds = pytest.mark.parametrize("kind", KINDS)

ROUNDING = 1e-9
"""What the oracle's LP may be off."""

STEP = 1e-5
"""The share by which limits are moved: it takes the ends of a band further than `ROUNDING`."""


@kinds
@settings(max_examples=25, deadline=None)
@given(case=oracles.cases(4))
def test_what_meets_the_requirement_fits_the_band(kind: str, case: oracles.Case) -> None:
    bound = bounded(kind, case.prior, case.rng)
    level, lower = bound.shape.level(case.matrix), bound.shape.lower_level(case.matrix)
    assume(level > 0.01)
    for epsilon, fits in ((level * (1 + STEP), True), (level * (1 - STEP), False)):
        privacy = bound.at(epsilon, lower + 1)
        assert privacy.holds(case.prior, case.matrix) is fits
        assert (outside(bound.block(epsilon, lower + 1), case.matrix) <= ROUNDING) is fits


@settings(max_examples=25, deadline=None)
@given(case=oracles.cases(4))
def test_the_lower_side_of_information_privacy_is_in_the_band(case: oracles.Case) -> None:
    bound = bounded("lip", case.prior, case.rng)
    level, lower = bound.shape.level(case.matrix), bound.shape.lower_level(case.matrix)
    assume(lower > 0.01)
    for factor, fits in ((1 + STEP, True), (1 - STEP, False)):
        assert LIP(lower * factor, level + 1).holds(case.prior, case.matrix) is fits
        assert (outside(bound.block(level + 1, lower * factor), case.matrix) <= ROUNDING) is fits


@kinds
@MODEST
@given(p=priors(2, 5), epsilon=st.floats(1e-9, 40), seed=st.integers(0, 2**32 - 1))
@example(p=np.array([1e-9, 1 - 1e-9]), epsilon=40.0, seed=0)
@example(p=np.full(5, 0.2), epsilon=1e-11, seed=1)
def test_the_column_of_ones_is_strictly_inside(
    kind: str, p: oracles.FloatArray, epsilon: float, seed: int
) -> None:
    rng = np.random.default_rng(seed)
    share = float(rng.choice([1e-9, 0.5, 1 - 1e-9]))
    band = bounded(kind, Prior(p), rng, share).block(epsilon, epsilon)
    assert (band.inside > 0).all()
    assert band.lower @ band.inside < 1 < band.upper @ band.inside
    assert (band.weights is None) is (band.mean is None)
    if band.weights is not None and band.mean is not None:
        assert (band.weights >= 0).all()
        assert band.mean[0] @ band.inside == pytest.approx(float(band.weights.sum()), rel=1e-14)
    assert len(band.lower) == len(band.upper) == len(band.inside)
    assert not band.floored or kind in (*FLOORED, "other centre")
    assert band.floored or kind != "mass"


@kinds
@pytest.mark.parametrize("epsilon", [0.0, 1e-18])
def test_at_a_level_of_zero_nothing_is_strictly_inside(kind: str, epsilon: float) -> None:
    prior = Prior([0.5, 0.3, 0.2])
    assert bounded(kind, prior, np.random.default_rng(0)).at(epsilon).block(prior) is None


@pytest.mark.parametrize(
    ("privacy", "scalars"),
    [
        (LIP(0, 1), None),
        (LIP(1, 0), None),
        (MaximalLeakage(1.0), 1),
        (PML(1.0, L1Ball([0.5, 0.3, 0.2], 0.4)), 3),  # empties the rarest letter
        (PML(1.0, L1Ball([0.5, 0.3, 0.2], 1.0)), 3),
        (PML(1.0, Box([0.1, 0.1, 0.1], [0.5, 0.5, 0.5])), 2),
        (PML(1.0, ConvexHull([[0.5, 0.3, 0.2], [0.2, 0.3, 0.5]])), 1),
    ],
)
def test_what_is_no_band_is_not_called_one(privacy: Requirement, scalars: int | None) -> None:
    block = privacy.block(Prior([0.5, 0.3, 0.2]))
    assert (None if block is None else len(block.inside)) == scalars
    assert block is None or not block.banded


def test_one_letter_alone_leaks_nothing() -> None:
    assert PML(1.0).block(Prior([1.0])) is None
    assert LIP(1.0, 1.0).block(Prior([1.0])) is None
    assert LDP(1.0).block(Prior([1.0])) is not None


@pytest.mark.parametrize("keep", [1.0, 1 + 1e-15])
def test_bands_end_where_the_column_of_ones_just_meets_the_bound(keep: float) -> None:
    assert ratio_block(keep) is None
    assert mean_block(np.array([0.25, 0.75]), keep) is None
    assert mean_block(np.array([0.25, 0.75]), keep, 0.125, 0.125) is None
    assert mean_block(np.zeros(2), keep, 1.0) is None


# ---------------------------------------------------------------- sets


def test_sets_that_are_one_law_or_all_are_such() -> None:
    one, every = MinimumMass(4, 0.25).block(0.5), AllPriors(4).block(0.5)
    assert one is not None
    assert every is not None
    assert one.weights == pytest.approx(np.full((1, 4), 0.25))
    assert one.mean is not None
    assert one.mean[0, 0] == pytest.approx(0.5)
    assert every.weights is None
    assert every.lower == pytest.approx(0.5)


# ---------------------------------------------------------------- the support function of a small ball


def extremes(p: oracles.FloatArray, half: float) -> oracles.FloatArray:
    unit = np.eye(len(p))
    return np.array([p + half * (unit[x] - unit[z]) for x in range(len(p)) for z in range(len(p))])


@settings(max_examples=40, deadline=None)
@given(
    p=priors(1, 6, tiny=False),
    share=st.one_of(st.floats(0.01, 0.99), st.sampled_from([0.0, 1e-3, 1 - 1e-6, 1 - 1e-12])),
    keep=st.one_of(st.floats(1e-6, 0.999), st.sampled_from([1e-300, 1e-12, 1 - 1e-6, 1 - 1e-9, 1.0])),
    seed=st.integers(0, 2**32 - 1),
)
@example(p=np.full(4, 0.25), share=0.5, keep=0.125, seed=0)  # the mass of a letter is keep + radius / 2
@example(p=np.full(6, 1 / 6), share=1 - 1e-12, keep=1e-300, seed=1)
def test_the_support_function_of_a_small_ball_is_that_of_a_program(
    p: oracles.FloatArray, share: float, keep: float, seed: int
) -> None:
    rng = np.random.default_rng(seed)
    half = share * float(p.min())
    gains = rng.normal(0, 1, (len(p), 2))
    if seed % 2:
        gains = gains.round()
    shape = Shape(extremes(p, half), p)
    expected = max(support(shape, p * column, keep) for column in gains.T)
    found = L1Ball(p, 2 * half).relaxation(p, gains, keep)
    # columns of mean one have entries of up to 1/p, each off by the LP's tolerance of 1e-10
    assert found == pytest.approx(expected, abs=1e-8 * max(1.0, float(np.abs(gains).max())))


def test_the_support_function_does_not_depend_on_the_order_of_the_letters() -> None:
    rng = np.random.default_rng(5)
    p, gains = oracles.random_prior(rng, 9), rng.normal(size=(9, 4))
    order = rng.permutation(9)
    for share in (0.1, 0.9):
        radius = share * 2 * float(p.min())
        there = L1Ball(p, radius).relaxation(p, gains, 0.3)
        back = L1Ball(p[order], radius).relaxation(p[order], gains[order], 0.3)
        assert there == pytest.approx(back, abs=1e-13)
