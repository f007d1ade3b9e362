"""Passes over large matrices in blocks, so that what a pass makes on its way stays in the cache."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pmlopt.core.arrays import iterate_row_blocks


def iterate_column_blocks(shape: tuple[int, int]) -> Iterator[slice]:
    """Yield slices of columns that cover a matrix, for what needs whole columns.

    Examples:
        >>> list(iterate_column_blocks((3, 10)))
        [slice(0, 10, None)]
        >>> [part.stop for part in iterate_column_blocks((10_000, 200))]
        [64, 128, 192, 200]
    """
    # at least 64: rows of a block are then whole lines of the cache
    width = max(64, 2**19 // max(1, shape[0]))
    for start in range(0, shape[1], width):
        yield slice(start, min(start + width, shape[1]))


def freeze(array: NDArray[Any]) -> NDArray[Any]:
    """Make an array that nobody else has read-only, with the array whose memory it shares, and return it.

    Examples:
        >>> freeze(np.arange(4.0).reshape(2, 2)).flags.writeable
        False
    """
    owner: Any = array
    while isinstance(owner, np.ndarray):
        owner.setflags(write=False)
        owner = owner.base
    return array


def shrink_whole_numbers(array: NDArray[Any]) -> NDArray[Any]:
    """Return floats that are whole numbers as integers of the smallest type that holds them, others as given.

    A table of distances then takes an eighth or a quarter of the room in a file. Floats come back by a
    conversion, without rounding.

    Examples:
        >>> shrink_whole_numbers(np.array([[0.0, 1.0]])).dtype, shrink_whole_numbers(np.array([0.5])).dtype
        (dtype('uint8'), dtype('float64'))
    """
    if array.dtype != np.float64 or not array.size:
        return array
    low, high = float(array.min()), float(array.max())
    # negated, so that what is no number is not converted
    if not (low >= -(2.0**31) and high < 2.0**31):
        return array
    for rows in iterate_row_blocks(array.shape):
        part = array[rows]
        # the sign of a zero has no integer
        if (part != np.rint(part)).any() or (low <= 0 and np.signbit(part[part == 0]).any()):
            return array
    smallest = np.promote_types(np.min_scalar_type(int(low)), np.min_scalar_type(int(high)))
    return array.astype(smallest)


def is_large_matrix(value: object) -> bool:
    """Return whether a value is a matrix that is too large to be written as text where numbers will do.

    Examples:
        >>> is_large_matrix(np.zeros((3, 3))), is_large_matrix(np.zeros((400, 400)))
        (False, True)
    """
    return isinstance(value, np.ndarray) and value.ndim == 2 and value.size > 100_000
