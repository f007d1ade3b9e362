"""Passes over large matrices in blocks, so that what a pass makes on its way stays in the cache."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray


def iterate_row_blocks(shape: tuple[int, ...]) -> Iterable[slice]:
    """Return slices of rows that cover an array, each with few enough entries for the cache.

    Examples:
        >>> list(iterate_row_blocks((3, 10)))
        [slice(0, 3, None)]
        >>> list(iterate_row_blocks((3, 100_000)))
        [slice(0, 1, None), slice(1, 2, None), slice(2, 3, None)]
    """
    most = 2**17  # 1 MiB of floats
    if 0 < math.prod(shape) <= most:  # a small array is passed over a hundred times in a design
        return (slice(0, shape[0]),)
    height = max(1, most // max(1, math.prod(shape[1:])))
    return (slice(start, min(start + height, shape[0])) for start in range(0, shape[0], height))


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


def sum_row_products(one: NDArray[Any], other: NDArray[Any]) -> NDArray[Any]:
    """Compute the sum of the products of the entries of two matrices in each row.

    Examples:
        >>> sum_row_products(np.ones((2, 3)), np.array([[1.0, 2.0, 3.0], [0.0, 0.0, 1.0]]))
        array([6., 1.])
    """
    parts = [(one[rows] * other[rows]).sum(axis=1) for rows in iterate_row_blocks(one.shape)]
    return parts[0] if len(parts) == 1 else np.concatenate([np.zeros(0), *parts])


def is_all_finite(array: NDArray[Any]) -> bool:
    """Return whether all entries of a non-empty array are finite, without a copy.

    Examples:
        >>> is_all_finite(np.array([1.0, 2.0])), is_all_finite(np.array([1.0, np.nan]))
        (True, False)
    """
    # what is no number is both the least and the largest entry
    return math.isfinite(array.min()) and math.isfinite(array.max())


def find_max_size(array: NDArray[Any]) -> float:
    """Find the largest absolute entry of an array of finite numbers, without a copy; 0 where it is empty.

    Examples:
        >>> find_max_size(np.array([1.0, -2.0])), find_max_size(np.zeros(0))
        (2.0, 0.0)
    """
    return max(float(array.max()), -float(array.min())) if array.size else 0.0


def is_frozen(array: NDArray[Any]) -> bool:
    """Return whether an array is read-only, with every array whose memory it shares: it needs no copy.

    Examples:
        >>> array = np.zeros(3)
        >>> array.setflags(write=False)
        >>> is_frozen(array), is_frozen(np.zeros(3)), is_frozen(np.broadcast_to(np.zeros(1), 3))
        (True, False, False)
    """
    owner: Any = array
    while isinstance(owner, np.ndarray) and not owner.flags.writeable:
        owner = owner.base
    return owner is None


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
    low = float(array.min())
    high = float(array.max())
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
