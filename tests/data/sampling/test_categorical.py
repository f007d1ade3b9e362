"""Exact draws below a bound and from rows: by enumeration of all bits, and the frequencies of many draws."""

from __future__ import annotations

import math
from collections import Counter
from fractions import Fraction
from itertools import accumulate

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pmlopt.core.numbers.arrays import FloatArray
from pmlopt.data.sampling.categorical import (
    WORD_BITS,
    RandomBits,
    RowSampler,
    SeededBits,
    SystemBits,
    Words,
    _compute_thresholds,
    make_random_bits,
)
from pmlopt.errors import MechanismError
from pmlopt.programs.exact.rounding import round_rows_to_grid


class Scripted(RandomBits):
    """Words that are given beforehand, one after another."""

    def __init__(self, *words: int) -> None:
        self.left = list(words)

    def draw_words(self, size: int) -> Words:
        taken, self.left = self.left[:size], self.left[size:]
        if len(taken) < size:
            raise LookupError("no words are left")
        return np.array(taken, dtype=np.uint64)


@pytest.mark.parametrize("bound", [1, 2, 3, 5, 7, 8, 11, 16])
def test_each_number_below_a_bound_has_as_many_words(bound: int) -> None:
    digits = max(1, (bound - 1).bit_length())

    def one(word: int) -> int:
        return Scripted(word).draw_below(bound)

    def many(word: int) -> int:
        return int(Scripted(word).draw_all_below(np.array([bound], dtype=np.uint64))[0])

    for draw in (one, many):
        found: Counter[int] = Counter()
        rejected = 0
        for first in range(2**digits):
            try:
                found[draw(first << (64 - digits))] += 1
            except LookupError:
                rejected += 1
        assert set(found) == set(range(bound))
        assert len(set(found.values())) == 1
        assert rejected <= 2**digits / 2


def test_large_bounds_are_held_and_reached() -> None:
    for bound in (2**53 - 1, 2**62 + 1, 2**63, 2**64 + 3, 10**40):
        drawn = [SystemBits().draw_below(bound) for _ in range(200)]
        if bound <= 2**63:
            drawn += SystemBits().draw_all_below(np.full(200, bound, dtype=np.uint64)).tolist()
        assert bound > max(drawn) > bound // 2  # fails with probability 2^-200


def test_seeds() -> None:
    first = make_random_bits(3).draw_words(5)
    assert np.array_equal(first, make_random_bits(np.random.default_rng(3)).draw_words(5))
    assert not np.array_equal(first, make_random_bits(4).draw_words(5))
    assert not np.array_equal(make_random_bits().draw_words(5), make_random_bits().draw_words(5))
    bits = make_random_bits(1)
    assert make_random_bits(bits) is bits
    for bad in (-1, "a", 1.5):
        with pytest.raises(MechanismError, match="cannot be used"):
            make_random_bits(bad)


# ---------------------------------------------------------------- draws from rows


@st.composite
def grid_rows(draw: st.DrawFn, width: int) -> FloatArray:
    """Rows of multiples of 2^-width that sum to one."""
    outputs = draw(st.integers(1, 6))
    ends = [
        sorted(draw(st.lists(st.integers(0, 2**width), min_size=outputs - 1, max_size=outputs - 1)))
        for _ in range(draw(st.integers(1, 3)))
    ]
    return np.asarray(np.array([np.diff([0, *row, 2**width]) for row in ends]) / 2**width)


@settings(max_examples=30, deadline=None)
@given(st.data(), st.integers(1, 8))
def test_on_the_grid_every_word_has_its_output(data: st.DataObject, width: int) -> None:
    matrix = data.draw(grid_rows(width))
    sampler = RowSampler(matrix, width)
    words = [word << (64 - width) for word in range(2**width)]
    for row, law in enumerate(matrix):
        drawn = sampler.draw_outputs(np.full(len(words), row), Scripted(*words))
        assert np.bincount(drawn, minlength=len(law)).tolist() == (law * 2**width).tolist()


@settings(max_examples=30, deadline=None)
@given(st.lists(st.integers(0, 50), min_size=1, max_size=5).filter(any), st.integers(1, 5))
def test_off_the_grid_more_bits_decide(weights: list[int], width: int) -> None:
    """No output is drawn by more words than its probability has room for, and more bits tell the rest."""
    row = np.array(weights, dtype=float)
    law = [Fraction(weight, sum(weights)) for weight in weights]
    found, opened = [Fraction(0)] * len(law), Fraction(0)
    sampler = RowSampler(row[None] / 64, width)  # of whatever sum
    for first in range(2**width):
        for second in range(2**width):
            words = [word << (64 - width) for word in (first, second)]
            try:
                found[int(sampler.draw_outputs(np.array([0]), Scripted(*words))[0])] += Fraction(
                    1, 4**width
                )
            except LookupError:
                opened += Fraction(1, 4**width)
    assert opened <= Fraction(len(law) - 1, 4**width)
    assert all(mass <= share <= mass + opened for mass, share in zip(found, law, strict=True))
    assert sum(found) + opened == 1


@settings(max_examples=60, deadline=None)
@given(st.data(), st.sampled_from([1, 5, 24, 53]))
def test_thresholds_are_the_exact_sums_rounded_up(data: st.DataObject, width: int) -> None:
    """Each threshold is `ceil(2^W (p_0 + ... + p_y) / sum p)`, by fractions, whatever the entries sum to."""
    outputs = data.draw(st.integers(1, 7))
    weight = st.one_of(
        st.sampled_from([0.0, 1.0, 0.1, 1e-300, 2.0**-53, 3.0, 1e9]),
        st.floats(0, 1, allow_subnormal=True),
    )
    rows = data.draw(
        st.lists(
            st.lists(weight, min_size=outputs, max_size=outputs).filter(any), min_size=1, max_size=4
        )
    )
    matrix = np.array(rows)
    if data.draw(st.booleans()):  # laws, but for the rounding of floats
        matrix = matrix / matrix.sum(axis=1, keepdims=True)
    sums, undecided = _compute_thresholds(matrix, width)
    for row, law in enumerate(matrix):
        exact = list(accumulate(Fraction(part) for part in law.tolist()))
        scaled = [part / exact[-1] * 2**width for part in exact]
        assert sums[row].tolist() == [math.ceil(part) for part in scaled]
        found = [False] * outputs if undecided is None else undecided[row].tolist()
        assert found == [part.denominator != 1 for part in scaled]


def test_thresholds_of_long_rows_that_miss_a_sum_of_one() -> None:
    """Rows that sum to 1 within 1e-7, beside the same in fractions: most are decided by floats."""
    rng = np.random.default_rng(5)
    matrix = rng.dirichlet(np.ones(300), 3) * np.array([[1.0], [1 + 1e-7], [1 - 3e-10]])
    sums, undecided = _compute_thresholds(matrix, 53)
    assert undecided is not None
    for row, law in enumerate(matrix):
        exact = list(accumulate(Fraction(part) for part in law.tolist()))
        assert sums[row].tolist() == [math.ceil(part / exact[-1] * 2**53) for part in exact]
        assert undecided[row].tolist() == [True] * 299 + [False]


def test_the_ends_of_a_row_of_many_outputs() -> None:
    """Words below and above each sum of a snapped row fall on its two sides."""
    rng = np.random.default_rng(0)
    matrix = round_rows_to_grid(rng.dirichlet(np.full(300, 0.2), 4))
    sampler = RowSampler(matrix)
    sums = np.cumsum((matrix * 2.0**WORD_BITS).astype(np.uint64), axis=1)
    for row in range(4):
        occurring = np.flatnonzero(matrix[row] > 0)
        ends = sums[row, occurring].tolist()
        words = [(end - 1) << (64 - WORD_BITS) for end in ends]
        assert (
            sampler.draw_outputs(np.full(len(words), row), Scripted(*words)).tolist()
            == occurring.tolist()
        )
        words = [end << (64 - WORD_BITS) for end in ends[:-1]]
        assert (
            sampler.draw_outputs(np.full(len(words), row), Scripted(*words)).tolist()
            == occurring[1:].tolist()
        )


def test_frequencies() -> None:
    # Hoeffding: each of 12 frequencies of 100,000 draws is off by 0.01 with probability at most 2 exp(-20)
    matrix = np.array([[0.1, 0.2, 0.3, 0.4], [1 / 3, 0, 1 / 3, 1 / 3], [0, 0, 0, 1.0]])
    for sampler in (RowSampler(round_rows_to_grid(matrix)), RowSampler(matrix)):
        for row in range(3):
            drawn = sampler.draw_outputs(np.full(100_000, row), SystemBits())
            assert np.abs(np.bincount(drawn, minlength=4) / 100_000 - matrix[row]).max() < 0.01


def test_the_length_of_batches_changes_nothing() -> None:
    sampler = RowSampler(round_rows_to_grid(np.random.default_rng(1).dirichlet(np.ones(7), 3)))
    rows = np.random.default_rng(2).integers(0, 3, 200_000)
    whole = sampler.draw_outputs(rows, SeededBits(np.random.default_rng(3)))
    bits = SeededBits(np.random.default_rng(3))
    parts = [sampler.draw_outputs(part, bits) for part in np.array_split(rows, 7)]
    assert np.array_equal(whole, np.concatenate(parts))
    # an entry of 1e-30 takes the words of its 2^-53 only as often as more bits say
    tiny, most = RowSampler(np.array([[1e-30, 1.0 - 1e-16]])), (1 << 64) - 1
    assert tiny.draw_outputs(np.array([0]), Scripted(0, most)).tolist() == [1]
    assert tiny.draw_outputs(np.array([0]), Scripted(0, 0)).tolist() == [0]
