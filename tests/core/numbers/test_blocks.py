"""Passes in blocks give what one pass gives, and arrays that nobody can change are not copied."""

import numpy as np
import pytest

from pmlopt.core.numbers.arrays import copy_float_array
from pmlopt.core.numbers.blocks import (
    freeze,
    is_frozen,
    iterate_column_blocks,
    iterate_row_blocks,
    shrink_whole_numbers,
    sum_row_products,
)
from pmlopt.errors import MechanismError

SHAPES = (1, 1), (3, 7), (500, 1_000), (1_000, 500), (2, 400_000), (300_000, 1)


@pytest.mark.parametrize("shape", SHAPES)
def test_blocks_cover_each_row_and_column_once(shape: tuple[int, int]) -> None:
    for axis, blocks in enumerate((iterate_row_blocks(shape), iterate_column_blocks(shape))):
        places = [place for part in blocks for place in range(part.start, part.stop)]
        assert places == list(range(shape[axis]))


@pytest.mark.parametrize("shape", SHAPES)
def test_sums_of_products_are_those_of_whole_matrices(shape: tuple[int, int]) -> None:
    random = np.random.default_rng(0)
    one, other = random.random(shape), random.random(shape)
    assert np.array_equal(sum_row_products(one, other), (one * other).sum(axis=1))


@pytest.mark.parametrize(
    ("values", "kind"),
    [
        ([[0.0, 1.0]], "uint8"),
        ([[0.0, 255.0]], "uint8"),
        ([[0.0, 256.0]], "uint16"),
        ([[-1.0, 1.0]], "int16"),
        ([[2.0**31 - 1]], "uint32"),
        ([[2.0**31]], "float64"),
        ([[0.0, 0.5]], "float64"),
        ([[np.nan, 1.0]], "float64"),
        ([[np.inf, 1.0]], "float64"),
        ([[-0.0, 1.0]], "float64"),
    ],
)
def test_whole_numbers_come_back_from_the_smallest_integers(
    values: list[list[float]], kind: str
) -> None:
    array = np.array(values)
    found = shrink_whole_numbers(array)
    assert found.dtype.itemsize <= np.dtype(kind).itemsize
    assert (found.dtype == np.float64) == (kind == "float64")
    assert found.astype(float).tobytes() == array.tobytes()


def test_only_an_array_that_is_read_only_for_all_is_taken_without_a_copy() -> None:
    own = freeze(np.arange(120_000.0).reshape(2, 60_000))
    assert copy_float_array(own, 2, "it", MechanismError) is own
    shared = np.arange(120_000.0).reshape(2, 60_000)
    view = shared[:]
    view.setflags(write=False)
    assert [is_frozen(one) for one in (own, view, shared)] == [True, False, False]
    for given in (view, shared, np.broadcast_to(shared[0], (2, 60_000))):
        taken = copy_float_array(given, 2, "it", MechanismError)
        assert not np.shares_memory(taken, shared)


@pytest.mark.parametrize("wrong", [np.nan, np.inf, -np.inf])
def test_one_entry_of_many_that_is_not_finite_is_found(wrong: float) -> None:
    array = np.zeros((700, 600))
    array[699, 599] = wrong
    for given in (array, freeze(array)):
        with pytest.raises(MechanismError, match=r"at .*699.*599"):
            copy_float_array(given, 2, "it", MechanismError)
