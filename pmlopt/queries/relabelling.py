"""Permutations of records and relabellings of letters that leave tables over all datasets as they are."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from itertools import combinations, permutations, product
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pmlopt.arrays import FloatArray, IntArray

FEW_LETTERS = 3
"""Up to so many letters all relabellings are tried; of more, those that exchange two letters or shift all."""

MOST_COMPARED = 2**27
"""Entries that are compared in the search for relabellings of two records at a time, at most."""

Map = Callable[[NDArray[Any]], NDArray[Any]]
"""A map of datasets, as what it does to a table over them."""


def symmetries(table: IntArray, masses: FloatArray) -> list[Map]:
    """Maps of the datasets that leave a table and a law as they are; with them, so do all compositions.

    Args:
        table: (k_1, ..., k_n) the value at each dataset.
        masses: (k_1, ..., k_n) the law, compared to 1e-12 of each entry.

    Examples:
        >>> parity = np.indices((2, 2)).sum(axis=0) % 2
        >>> orbits_of(symmetries(parity, np.full((2, 2), 0.25)), (2, 2)).tolist()
        [0, 1, 1, 0]
    """

    def kept(move: Map) -> bool:
        moved = move(table)
        return (
            moved.shape == table.shape
            and bool((moved == table).all())
            and np.allclose(move(masses), masses, rtol=1e-12, atol=0)
        )

    single = [move for move in _single(table.shape) if kept(move)]
    budget = MOST_COMPARED // table.size
    both = (move for _, move in zip(range(budget), _double(table.shape), strict=False))
    return [*single, *(move for move in both if kept(move))]


def orbits_of(maps: Sequence[Map], shape: tuple[int, ...]) -> IntArray:
    """(N,) the orbit of each dataset under some maps, numbered by the first dataset of each."""
    from scipy import sparse
    from scipy.sparse.csgraph import connected_components

    places = np.arange(int(np.prod(shape))).reshape(shape)
    size = places.size
    label = np.arange(size)
    for move in maps:
        moved = move(places).ravel()
        if (label[moved] == label).all():  # no news after the maps so far
            continue
        links = (np.tile(np.arange(size), 2), np.concatenate([label, moved]))
        graph = sparse.coo_array((np.ones(2 * size, dtype=bool), links), shape=(size, size))
        found = connected_components(graph, directed=False)[1]
        first = np.full(int(found.max()) + 1, size)
        np.minimum.at(first, found, np.arange(size))
        label = first[found]
    return np.asarray(np.unique(label, return_inverse=True)[1].ravel())


def _single(shape: tuple[int, ...]) -> Iterator[Map]:
    """The exchanges of two records, the relabellings of one, and those of all records alike."""
    for first, second in combinations(range(len(shape)), 2):
        if shape[first] == shape[second]:
            yield _exchanged(first, second)
    for record, size in enumerate(shape):
        for order in _relabellings(size):
            yield _relabelled([(record, order)])
    for size in dict.fromkeys(shape):
        alike = [record for record, other in enumerate(shape) if other == size]
        if len(alike) > 2:
            yield from (_relabelled([(r, order) for r in alike]) for order in _relabellings(size))


def _double(shape: tuple[int, ...]) -> Iterator[Map]:
    """The relabellings of two records at a time."""
    for first, second in combinations(range(len(shape)), 2):
        for one, other in product(_relabellings(shape[first]), _relabellings(shape[second])):
            yield _relabelled([(first, one), (second, other)])


def _relabellings(size: int) -> list[tuple[int, ...]]:
    """Orders of the letters of a record other than their own."""
    letters = tuple(range(size))
    if size <= FEW_LETTERS:
        return list(permutations(letters))[1:]
    found = [letters[1:] + letters[:1], letters[-1:] + letters[:-1]]
    for a, b in combinations(letters, 2):
        order = list(letters)
        order[a], order[b] = b, a
        found.append(tuple(order))
    return found


def _exchanged(first: int, second: int) -> Map:
    return lambda table: np.swapaxes(table, first, second)


def _relabelled(orders: Sequence[tuple[int, tuple[int, ...]]]) -> Map:
    def move(table: NDArray[Any]) -> NDArray[Any]:
        for record, order in orders:
            table = np.take(table, order, axis=record)
        return table

    return move
