"""Weights of bounds on pairs of letters: on a line of letters by formula."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.optimize import linprog

from pmlopt.core.numbers.arrays import FloatArray
from pmlopt.model.privacy.pair_weights import find_line_weights
from pmlopt.model.privacy.ratios import RatioBounds, make_letter_ratios


def line_of(rng: np.random.Generator, size: int, unit: float) -> RatioBounds:
    """Bounds between neighbours, both ways, in any order."""
    first = np.arange(size - 1)
    pairs = np.vstack([np.column_stack([first, first + 1]), np.column_stack([first + 1, first])])
    pairs = rng.permutation(pairs)
    return make_letter_ratios(np.ones(size), pairs, rng.exponential(unit, len(pairs)))


def largest_gain(ratios: RatioBounds, p: FloatArray, gains: FloatArray) -> float:
    """The largest `<p g, v>` of the columns, by a linear program for each g."""
    rows = np.zeros((len(ratios.exponents), ratios.size))
    places = np.arange(len(rows))
    rows[places, ratios.above] = np.exp(-ratios.exponents)
    rows[places, ratios.below] -= 1.0
    found = [
        linprog(-p * g, rows, np.zeros(len(rows)), p[None, :], [1.0], method="highs-ds").fun
        for g in gains.T
    ]
    return -float(min(found))


@given(
    seed=st.integers(0, 2**32 - 1),
    size=st.integers(2, 9),
    outputs=st.integers(1, 5),
    unit=st.sampled_from([0.0, 0.01, 0.5, 2.0]),
)
def test_on_a_line_they_prove_the_largest_gain(
    seed: int, size: int, outputs: int, unit: float
) -> None:
    rng = np.random.default_rng(seed)
    ratios, p = line_of(rng, size, unit), rng.dirichlet(np.full(size, 3.0)) * 0.99 + 0.01 / size
    gains = rng.normal(size=(size, outputs))
    best = largest_gain(ratios, p, gains)
    proved = ratios.support_function(p, gains)
    assert proved == pytest.approx(best, abs=1e-7)
    assert proved >= best - 1e-7


def test_next_to_a_rare_letter_they_prove_as_much() -> None:
    """A letter of 1e-12 gains next to nothing: the bound is about that of the others."""
    rng = np.random.default_rng(3)
    p = np.array([0.3, 0.2, 1e-12, 0.3, 0.2 - 1e-12])
    ratios = line_of(rng, 5, 1.0)
    gains = rng.normal(size=(5, 4))
    gains[2] = 0.0
    weights = ratios.find_weights(p, gains)
    assert ratios.bound_gains(p, gains, weights) == pytest.approx(
        largest_gain(ratios, p, gains), abs=1e-7
    )


def test_weights_are_not_negative_and_belong_to_one_of_both_bounds() -> None:
    rng = np.random.default_rng(1)
    found = find_line_weights(
        np.full(6, 1 / 6), rng.normal(size=(6, 3)), rng.exponential(size=5), rng.exponential(size=5)
    )
    assert found is not None
    rises, falls = found
    assert (rises >= 0).all()
    assert (falls >= 0).all()
    assert (rises * falls == 0).all()


def test_numbers_past_all_floats_are_left_to_a_linear_program() -> None:
    steep = np.full(5, 699.0)
    gains = np.array([[1.0], [1.0], [0.9], [0.9], [0.9], [1.0]])
    found = find_line_weights(np.full(6, 1 / 6), gains, steep, steep)
    assert found is None or all(np.isfinite(one).all() for one in found)


@pytest.mark.parametrize("left_out", [0, 3])
def test_other_lists_of_pairs_are_no_line(left_out: int) -> None:
    line = line_of(np.random.default_rng(0), 4, 1.0)
    kept = np.arange(6) != left_out
    assert line._line_places is not None
    assert (
        RatioBounds(
            4, line.rows, line.scales, line.above[kept], line.below[kept], line.exponents[kept]
        )._line_places
        is None
    )
    twice = line.above.copy()
    twice[left_out] = (
        line.below[left_out] + 2 if line.below[left_out] < 2 else line.below[left_out] - 2
    )
    assert (
        RatioBounds(4, line.rows, line.scales, twice, line.below, line.exponents)._line_places
        is None
    )


def test_where_the_best_letters_may_stand_alone_no_weights_are_looked_for() -> None:
    """Letters 0 and 1 are bound to one another, and letter 2 to nothing: a column may be there only."""
    ratios = make_letter_ratios(np.ones(3), np.array([[0, 1], [1, 0]]), np.array([0.5, 0.5]))
    p, gains = np.full(3, 1 / 3), np.array([[-1.0, -3.0], [-2.0, -1.0], [0.0, -5.0]])
    assert not ratios.find_weights(p, gains).any()
    assert ratios.support_function(p, gains) == pytest.approx(0.0, abs=1e-12)
    gains[2, 0] = -4.0
    assert ratios.find_weights(p, gains).any()
