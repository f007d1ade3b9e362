"""Orbits of datasets under the symmetries of a query, on which an optimal mechanism may be constant."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import combinations, permutations, product
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from pmlopt.core.numbers.arrays import SUM_ATOL, FloatArray, IntArray, copy_float_array
from pmlopt.data.symmetry.prior import compute_orbits
from pmlopt.errors import PriorError
from pmlopt.model.queries.kinds import (
    MAX_RESIDUE_CLASSES,
    Explicit,
    ModularSum,
    ResidueTypes,
    Weight,
)
from pmlopt.model.queries.query import Query, check_listable, check_query

Map = Callable[[NDArray[Any]], NDArray[Any]]
"""A map of datasets, as what it does to a table over them."""


def find_symmetries(table: IntArray, masses: FloatArray) -> list[Map]:
    """Find permutations of the datasets that leave a query table and a law invariant.

    Args:
        table: (k_1, ..., k_n) the value at each dataset.
        masses: (k_1, ..., k_n) the law, compared to 1e-12 of each entry.

    Examples:
        >>> parity = np.indices((2, 2)).sum(axis=0) % 2
        >>> places = np.arange(4).reshape(2, 2)
        >>> maps = find_symmetries(parity, np.full((2, 2), 0.25))
        >>> compute_orbits(4, (move(places).ravel() for move in maps)).tolist()
        [0, 1, 1, 0]
    """

    def is_invariant_under(move: Map) -> bool:
        moved = move(table)
        return (
            moved.shape == table.shape
            and bool((moved == table).all())
            and np.allclose(move(masses), masses, rtol=1e-12, atol=0)
        )

    single = [move for move in _list_single_moves(table.shape) if is_invariant_under(move)]
    # Entries that are compared in the search for relabellings of two records at a time, at most.
    budget = (2**27) // table.size
    both = (move for _, move in zip(range(budget), _list_double_moves(table.shape), strict=False))
    return [*single, *(move for move in both if is_invariant_under(move))]


def _list_single_moves(shape: tuple[int, ...]) -> Iterator[Map]:
    """Yield swaps of two records, relabellings of one record, and common relabellings of all."""
    for first, second in combinations(range(len(shape)), 2):
        if shape[first] == shape[second]:
            yield _make_exchange(first, second)
    for record, size in enumerate(shape):
        for order in _list_relabellings(size):
            yield _make_relabelling([(record, order)])
    for size in dict.fromkeys(shape):
        alike = [record for record, other in enumerate(shape) if other == size]
        if len(alike) > 2:
            yield from (
                _make_relabelling([(r, order) for r in alike]) for order in _list_relabellings(size)
            )


def _list_double_moves(shape: tuple[int, ...]) -> Iterator[Map]:
    """Yield simultaneous relabellings of two records."""
    for first, second in combinations(range(len(shape)), 2):
        for one, other in product(
            _list_relabellings(shape[first]), _list_relabellings(shape[second])
        ):
            yield _make_relabelling([(first, one), (second, other)])


def _list_relabellings(size: int) -> list[tuple[int, ...]]:
    """List candidate permutations of a record's letters, without the identity."""
    letters = tuple(range(size))
    # Up to so many letters all relabellings are tried; of more, those that exchange two letters or shift all.
    if size <= 3:
        return list(permutations(letters))[1:]
    found = [letters[1:] + letters[:1], letters[-1:] + letters[:-1]]
    for a, b in combinations(letters, 2):
        order = list(letters)
        order[a] = b
        order[b] = a
        found.append(tuple(order))
    return found


def _make_exchange(first: int, second: int) -> Map:
    """Return the function that swaps two axes of a dataset table."""
    return lambda table: np.swapaxes(table, first, second)


def _make_relabelling(orders: Sequence[tuple[int, tuple[int, ...]]]) -> Map:
    """Return the function that permutes letters along the axes of a dataset table."""

    def apply_relabelling(table: NDArray[Any]) -> NDArray[Any]:
        for record, order in orders:
            table = np.take(table, order, axis=record)
        return table

    return apply_relabelling


@dataclass(frozen=True, eq=False)
class DatasetOrbits:
    """The orbits of datasets on which a mechanism may be taken constant.

    Permutations of records, and relabellings of their letters, that leave f and the true law as they are map
    priors to priors of the same entropy. The largest leakage is convex in the mechanism: averaging over them
    raises neither it nor the expected distortion.

    Attributes:
        query: with the classes as its values; `log_counts` are those of the classes.
        values: (K,) the place of f among the values of the original query, for each class.
        masses: (K,) the probability of each class under the true law.
    """

    query: Query
    values: IntArray
    masses: FloatArray


def orbits(query: Query, law: ArrayLike | None = None) -> DatasetOrbits:
    """Compute the orbits of datasets under the symmetries of a query and of the dataset law.

    For a sum modulo m how many records have each residue, and of records whose letters come in multiples of m
    their sum only, which is the value itself for a parity; the weight for functions of the weight of binary
    records, w and n - w as one where f is the same for them. For any other query, and with a law, the
    datasets up to the permutations of two records and the relabellings of letters that the tables of f and of
    the law do not reveal apart: of one record, of two at a time, or of all alike. Where there is one class
    for each value, the classes are the values in their order.

    Args:
        query: f.
        law: (k_1, ..., k_n) or (|X|,) the true law p_0 of the dataset; uniform where left out.

    Raises:
        PriorError: the law is none, or does not fit the query.
        QueryError: the query is none, or there are more than 2^20 datasets, and no structure helps.

    Examples:
        >>> from pmlopt.model.queries import Quadratic
        >>> found = orbits(Quadratic(3))
        >>> found.query.values, found.values.tolist(), found.masses.round(6).tolist()
        ((0, 1, 2, 3), [0, 0, 1, 2], [0.125, 0.375, 0.375, 0.125])
        >>> orbits(ModularSum(10, 2)).query.values
        (0, 1)
    """
    check_query(query)
    found = _find_structural_orbits(query) if law is None else None
    if found is None:
        found = _find_listed_orbits(query, law)
    if len(found.values) == len(query.values) == len(np.unique(found.values)):
        masses = np.zeros(len(query.values))
        masses[found.values] = found.masses
        return DatasetOrbits(query, np.arange(len(masses)), masses)
    return found


def _find_structural_orbits(query: Query) -> DatasetOrbits | None:
    """Derive the orbits from the query's structure, for a uniform dataset law."""
    if isinstance(query, ModularSum):
        if all(size % query.modulus == 0 for size in query.alphabets):
            return _count_orbits(query, np.arange(query.modulus))
        if set(query.alphabets) == {2}:
            return _count_orbits(
                Weight(query.records), np.arange(query.records + 1) % query.modulus
            )
        types = ResidueTypes(query)
        return _count_orbits(types, types.residues) if types.count <= MAX_RESIDUE_CLASSES else None
    if isinstance(query, Weight):
        places = query.value_indices
        n = query.records
        if n > 1 and (places == places[::-1]).all():  # all letters may be flipped at once
            return _count_orbits(Weight(n, _FoldedWeight(n)), places[: n // 2 + 1])
        return _count_orbits(Weight(n), places)
    return None


@dataclass(frozen=True)
class _FoldedWeight:
    """The query min(w, n - w) of a weight w."""

    records: int

    def __call__(self, weight: int) -> int:
        return min(weight, self.records - weight)


def _count_orbits(query: Query, values: IntArray) -> DatasetOrbits:
    """Compute orbits and their probabilities from dataset counts, for a uniform dataset law."""
    counts = np.logaddexp.reduce(query.log_counts(0), axis=0)
    return DatasetOrbits(query, values, np.exp(counts - query.log_size))


def _find_listed_orbits(query: Query, law: ArrayLike | None) -> DatasetOrbits:
    """Compute the orbits under symmetries found by search in the tables of query and law."""
    table = query.table()
    masses = check_dataset_law(query, law)
    places = np.arange(table.size).reshape(table.shape)
    classes = compute_orbits(
        table.size, (move(places).ravel() for move in find_symmetries(table, masses))
    )
    first = np.unique(classes, return_index=True)[1]
    return DatasetOrbits(
        Explicit(classes.reshape(table.shape)),
        table.ravel()[first],
        np.asarray(np.bincount(classes, weights=masses.ravel())),
    )


def check_dataset_law(query: Query, law: ArrayLike | None) -> FloatArray:
    """Validate the (k_1, ..., k_n) dataset law; uniform where none is given.

    Raises:
        PriorError: it is none, or does not fit the query.
        QueryError: there are more than 2^20 datasets.
    """
    check_listable(query)
    shape = query.alphabets
    size = math.prod(query.alphabets)
    if law is None:
        return np.full(shape, 1 / size)
    try:
        flat = np.reshape(np.asarray(law), -1) if np.shape(law) == shape else law
    except ValueError as cause:
        raise PriorError(f"the true law is not a regular array: {cause}") from None
    masses = copy_float_array(flat, 1, "the true law", PriorError)
    if len(masses) != size:
        raise PriorError(f"the true law has {len(masses)} entries for {size} datasets")
    if masses.min() < 0 or abs(masses.sum() - 1) > SUM_ATOL:
        raise PriorError(
            f"the true law has the least entry {masses.min():.6g} and the sum {masses.sum():.12g}: give a law"
        )
    return np.asarray(masses.reshape(shape) / masses.sum())
