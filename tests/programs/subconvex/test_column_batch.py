"""Many columns at once: the words of sets, sums over subsets, and columns in one form."""

from __future__ import annotations

import math
from itertools import product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from oracles import designs as oracles
from oracles.brute_force_columns import assert_allowed, extreme, rounded
from strategies import MODEST, exact_law

from pmlopt.core.arrays import BoolArray, subset_sums
from pmlopt.model.uncertainty.columns import Box, Staircase
from pmlopt.model.utility import MutualInformation
from pmlopt.programs.subconvex.columns import (
    Columns,
    Explicit,
    Kernel,
    recognised,
    sums_over,
    unit_columns,
    words,
)
from pmlopt.programs.subconvex.vertex_enumeration import VertexPricer


@st.composite
def families_of_sets(draw: st.DrawFn) -> BoolArray:
    """(K, N) random sets, N up to 40."""
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    shape = draw(st.integers(0, 6)), draw(st.integers(1, 40))
    return np.asarray(rng.random(shape) < draw(st.sampled_from([0.0, 0.3, 1.0])))


@given(families_of_sets(), st.integers(0, 2**32 - 1))
@MODEST
def test_sums_over_sets_are_sums(sets: BoolArray, seed: int) -> None:
    values = np.random.default_rng(seed).normal(size=(1, sets.shape[1]))[0]
    expected = [math.fsum(values[chosen]) for chosen in sets]
    assert sums_over(words(sets), values) == pytest.approx(np.array(expected), abs=1e-12)


@pytest.mark.parametrize("size", range(9))
def test_subset_sums_are_those_of_every_subset_by_its_index(size: int) -> None:
    values = np.random.default_rng(size).integers(-50, 50, size=size).astype(float)
    expected = [0.0] * 2**size
    for bits in product((0, 1), repeat=size):
        expected[sum(b << i for i, b in enumerate(bits))] = sum(
            float(v) for b, v in zip(bits, values, strict=True) if b
        )
    assert subset_sums(values).tolist() == expected


def test_columns_as_they_are_written_out() -> None:
    p = np.array([0.5, 0.25, 0.125, 0.125])
    high = np.array([[False, True, False, False], [True, False, False, False]])
    columns = Columns(Box(0.0, 2.0), high, np.array([0, -1]))
    assert columns.lifts(p).T.tolist() == [[1.0, 2.0, 0.0, 0.0], [2.0, 0.0, 0.0, 0.0]]
    lifted = Columns(Box(0.5, 1.5), high, np.array([0, -1]))
    assert lifted.lifts(p).T.tolist() == [[1.0, 1.5, 0.5, 0.5], [1.5, 0.5, 0.5, 0.5]]
    stairs = Columns(Staircase(0.0, 3.0), high[1:], np.array([-1]))
    assert stairs.lifts(p).T.tolist() == [[1.5, 0.5, 0.5, 0.5]]
    assert len(columns) == 2
    assert len(stairs) == 1


def test_one_column_written_in_several_ways_is_kept_once() -> None:
    p = np.full(4, 0.25)
    high = np.array(
        [[1, 1, 0, 0], [1, 0, 0, 0], [0, 1, 0, 0], [1, 1, 0, 0], [1, 1, 0, 0], [0, 0, 1, 0]], bool
    )
    columns = Columns(Box(0.0, 2.0), high, np.array([-1, 1, 0, 2, 3, 3])).distinct(p)
    assert columns.lifts(p).T.tolist() == [[2.0, 2.0, 0.0, 0.0], [0.0, 0.0, 2.0, 2.0]]
    assert columns.between.tolist() == [-1, -1]


@pytest.mark.parametrize("low", [0.0, 0.3])
def test_unit_columns_are_low_but_at_one_letter(low: float) -> None:
    p = np.array([0.5, 0.3, 0.1, 0.1])
    family = Box(low, 2.5)
    columns = unit_columns(family, p)
    alone = [x for x in range(4) if low + (1 - low) / p[x] <= 2.5]
    expected = [[low + (1 - low) / p[x] * (i == x) for i in range(4)] for x in alone]
    assert pytest.approx(np.array(expected)) == columns.lifts(p).T
    assert_allowed(p, columns.lifts(p), family)
    assert len(unit_columns(Staircase(0.0, 2.0), p)) == 0


@given(st.integers(0, 2**32 - 1), st.sampled_from([0.0, 0.2]))
@MODEST
def test_extreme_columns_are_recognised_and_mixtures_are_not(seed: int, low: float) -> None:
    rng = np.random.default_rng(seed)
    p = rng.dirichlet(np.full(4, 3.0)) + 0.01
    p /= p.sum()
    family = Box(low, float(rng.uniform(1.05, 1 / p.min())))
    law = exact_law(p)
    every = np.array([[float(v) for v in c] for c in sorted(extreme(law, family))]).T
    found = recognised(family, every)
    assert rounded(found.lifts(p)) == rounded(every)
    assert len(recognised(family, np.ones((4, 1)))) == 0
    again = recognised(family, every * (1 + 1e-11 * rng.uniform(-1, 1, every.shape)))
    assert rounded(again.lifts(p)) == rounded(every)


# ---------------------------------------------------------------- pricing from a list


P = np.array([0.5, 0.3, 0.2])
COLUMNS = Explicit(np.array([[2.0, 1.0, 0.0, 2.0], [0.0, 1.0, 2.0, 0.0], [0.0, 1.0, 2.0, 0.0]]))


def test_a_share_raises_what_lies_between_only() -> None:
    between = Explicit(np.array([[1.0], [0.5], [0.0]]) / 0.65)
    raised = between.lifts(P, 1e-6)[:, 0]
    assert raised[2] == 0
    assert raised[1] / raised[0] > 0.5
    assert raised[1] / raised[0] == pytest.approx(0.5, abs=1e-4)
    assert P @ raised == pytest.approx(1, abs=1e-15)
    assert COLUMNS.lifts(P) is COLUMNS.entries


@pytest.mark.parametrize("seed", range(8))
def test_the_best_columns_come_first(seed: int) -> None:
    rng = np.random.default_rng([72, seed])
    p = oracles.random_prior(rng, 4)
    entries = rng.exponential(size=(4, 30))
    columns = Explicit(entries / (p @ entries))
    rho = rng.normal(size=4)
    kernel = Kernel(p, MutualInformation().phi)
    values = p @ (columns.entries * np.log(columns.entries)) - (p * rho) @ columns.entries
    for worths in (kernel, kernel.worth):
        priced = VertexPricer(p, [columns], worths).price(rho, 5, 0.0)
        assert priced.best == priced.upper == pytest.approx(values.max(), abs=1e-12)
        best = np.argsort(-values)[:5]
        assert np.array_equal(priced.columns[0].entries, columns.entries[:, best])
        assert VertexPricer(p, [columns], worths).bound(rho, 0.0) == priced.upper
