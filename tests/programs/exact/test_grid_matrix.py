"""Sums of large matrices by products of floats are those of Python integers, to the last unit."""

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pmlopt import LDP, LIP, PML, AllPriors, MaximalLeakage, Prior
from pmlopt.core.numbers.arrays import GRID_DENOMINATOR, FloatArray
from pmlopt.model.privacy import Requirement
from pmlopt.programs.exact.grid_matrix import GridMatrix
from pmlopt.programs.exact.rounding import (
    is_met_exactly,
    round_exp_down,
    round_rows_to_grid,
    scale_to_integers,
)


def draw_matrix(seed: int, shape: tuple[int, int]) -> FloatArray:
    """Draw rows on the grid, some entries of which are 0 or a unit."""
    random = np.random.default_rng(seed)
    matrix = random.random(shape) ** 9 * (random.random(shape) < 0.8)
    matrix[:, 0] += 1e-3
    return round_rows_to_grid(matrix / matrix.sum(axis=1, keepdims=True))


def list_integers(matrix: FloatArray) -> list[list[int]]:
    """Return the numerators over 2^53, as Python integers."""
    return [[int(entry * GRID_DENOMINATOR) for entry in row] for row in matrix.tolist()]


@given(
    st.integers(0, 2**32), st.sampled_from([(20, 60), (60, 20), (1, 1000), (1000, 1)]), st.data()
)
def test_weighted_sums_and_ends_of_columns_are_exact(
    seed: int, shape: tuple[int, int], data: st.DataObject
) -> None:
    matrix = draw_matrix(seed, shape)
    numbers = GridMatrix.from_floats(matrix)
    assert numbers is not None
    # from counts of people to numerators of floats over their common denominator
    size = data.draw(st.sampled_from([1, 10, 2**26, 2**53, 2**200]))
    weights = data.draw(st.lists(st.integers(0, size), min_size=shape[0], max_size=shape[0]))
    whole = list_integers(matrix)
    columns = list(zip(*whole, strict=True))
    wanted = [sum(w * v for w, v in zip(weights, column, strict=True)) for column in columns]
    assert (np.array(weights, dtype=object) @ numbers).tolist() == wanted
    assert numbers.max(axis=0).tolist() == list(map(max, columns))
    assert numbers.min(axis=0).tolist() == list(map(min, columns))
    assert numbers.sum(axis=1).tolist() == list(map(sum, whole))


def test_ones_and_large_weights_fill_all_bits() -> None:
    matrix = np.ones((1000, 2))
    matrix[:, 1] = 1 - 2.0**-53
    numbers = GridMatrix.from_floats(matrix)
    weights = np.array([2**90 - 1] * 1000, dtype=object)
    total = 1000 * (2**90 - 1)
    assert (weights @ numbers).tolist() == [total * 2**53, total * (2**53 - 1)]


@pytest.mark.parametrize("entry", [2.0**-54, -(2.0**-53), 1 + 2.0**-52, np.nan, np.inf])
def test_what_is_not_on_the_grid_is_left_to_python_integers(entry: float) -> None:
    matrix = np.full((1000, 2), 0.5)
    assert GridMatrix.from_floats(matrix) is not None
    matrix[999, 1] = entry
    assert GridMatrix.from_floats(matrix) is None


@pytest.mark.parametrize(
    "privacy", [PML(0.5), LDP(0.5), LIP(0.4, 0.5), MaximalLeakage(0.5), PML(0.5) & LDP(0.9)]
)
@given(st.integers(0, 2**32))
def test_violations_are_those_of_python_integers_up_to_their_unit(
    privacy: Requirement, seed: int
) -> None:
    prior = Prior.from_counts(np.random.default_rng(seed).integers(1, 99, 40).tolist())
    # next to a constant, so that both signs occur
    matrix = round_rows_to_grid(0.98 / 30 + 0.02 * draw_matrix(seed, (40, 30)))
    own = privacy.for_prior(prior)
    assert own.compares_means
    numbers = GridMatrix.from_floats(matrix)
    found = np.atleast_1d(own.violation(prior.integer_weights, numbers, round_exp_down))
    whole = scale_to_integers(matrix)
    wanted = np.atleast_1d(own.violation(prior.integer_weights, whole, round_exp_down))
    # a power of two, by which the integers of one side are larger
    unit = Fraction(int(GRID_DENOMINATOR * matrix.max()), int(whole.max()))
    assert found.tolist() == [one * unit for one in wanted]
    assert is_met_exactly(prior, privacy, matrix) == all(one <= 0 for one in wanted)


def test_a_unit_beyond_a_tight_bound_is_found() -> None:
    """Both columns have `max = 2 mean` exactly; a unit less in the mean of the first one breaks it."""
    prior, privacy = Prior.uniform(1000), PML(float(np.log(2)))
    matrix = np.zeros((1000, 2))
    matrix[:500, 0] = matrix[500:, 1] = 1.0
    numbers = GridMatrix.from_floats(matrix)
    assert numbers is not None
    weights = prior.integer_weights
    law = weights @ numbers
    assert (numbers.max(axis=0) * weights.sum() - 2 * law == 0).all()
    matrix[0] = 1 - 2.0**-53, 2.0**-53
    moved = weights @ GridMatrix(matrix)
    assert (law - moved).tolist() == [weights[0], -weights[0]]
    assert is_met_exactly(prior, PML(0.7), matrix)
    assert not is_met_exactly(prior, PML(0.69), matrix)
    assert not is_met_exactly(prior, privacy, matrix)


def test_bounds_over_sets_of_priors_take_whole_columns() -> None:
    assert PML(0.5).compares_means
    assert not PML(0.5, over=AllPriors(1000)).compares_means
