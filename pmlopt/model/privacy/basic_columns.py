"""The basic solutions of ratio-bound systems, which include all extreme columns."""

from __future__ import annotations

import math
from collections.abc import Iterator
from itertools import chain, combinations

import numpy as np

from pmlopt.core.numbers.arrays import FloatArray, IntArray


def list_basic_columns(pairs: FloatArray, sizes: FloatArray) -> FloatArray:
    """List the (N, K') feasible basic columns of ratio bounds, and the constant column.

    Args:
        pairs: (K, N) numerators less e^eps times denominators.
        sizes: (K, N) their sums, to measure violations by.
    """
    # Systems of equations that are solved at once.
    chunk = 20_000
    size = pairs.shape[1]
    found = [np.ones((size, 1))]
    for tight in range(min(len(pairs), size - 1) + 1):
        letters = _list_subsets(size, tight + 1)
        for rows in _split_chunks(_list_subsets(len(pairs), tight), max(1, chunk // len(letters))):
            found += [
                _compute_basic_columns(pairs, sizes, rows, some)
                for some in _split_chunks(letters, chunk)
            ]
    return np.hstack(found)


def _compute_basic_columns(
    pairs: FloatArray, sizes: FloatArray, rows: IntArray, letters: IntArray
) -> FloatArray:
    """Compute the (N, K') basic columns of some bases, and keep the feasible ones.

    Args:
        pairs: (K, N) numerators less e^eps times denominators.
        sizes: (K, N) their sums, to measure violations by.
        rows: (R, t) the pairs that hold with equality.
        letters: (L, t + 1) the letters outside of which the column is zero; each with each of the rows.
    """
    # Violation of a bound by an extreme column, as a share of its terms, that is put down to rounding.
    feasibility_tolerance = 1e-12
    tight = rows.shape[1]
    minors = np.ones((len(rows), len(letters), tight + 1))
    if tight:
        systems = pairs[rows][:, :, letters].transpose(0, 2, 1, 3)  # (R, L, t, t + 1)
        for left in range(tight + 1):
            others = [place for place in range(tight + 1) if place != left]
            minors[:, :, left] = (-1) ** left * np.linalg.det(systems[..., others])
    minors = minors.reshape(-1, tight + 1)
    largest = np.abs(minors).max(axis=1, keepdims=True)
    sign = np.where(minors.sum(axis=1, keepdims=True) < 0, -1.0, 1.0)
    with np.errstate(divide="ignore", invalid="ignore"):
        entries = sign * minors / largest
    # Minors below this are zero: the equations of a basis depend on one another.
    able = (largest[:, 0] > 1e-300) & (entries >= -feasibility_tolerance).all(axis=1)
    columns = np.zeros((pairs.shape[1], int(able.sum())))
    places = np.tile(letters, (len(rows), 1))[able]
    np.put_along_axis(columns, places.T, np.maximum(entries[able].T, 0.0), axis=0)
    met = (pairs @ columns <= feasibility_tolerance * (sizes @ columns)).all(axis=0)
    return columns[:, met]


def _list_subsets(size: int, count: int) -> IntArray:
    """List all (K, count) index subsets of range(size)."""
    number = math.comb(size, count)
    flat = np.fromiter(
        chain.from_iterable(combinations(range(size), count)), dtype=int, count=number * count
    )
    return flat.reshape(number, count)


def _split_chunks(items: IntArray, max_size: int) -> Iterator[IntArray]:
    """Yield the items in chunks of at most `max_size`."""
    for first in range(0, len(items), max_size):
        yield items[first : first + max_size]
