"""Classes of datasets on which an optimal mechanism may be constant: orbits of the symmetries of a query."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from pmlopt.arrays import SUM_TOLERANCE, FloatArray, IntArray, float_array
from pmlopt.errors import PriorError, QueryError
from pmlopt.queries.explicit import Explicit
from pmlopt.queries.modular import ModularSum
from pmlopt.queries.query import LARGEST_TABLE, Query, check_query
from pmlopt.queries.weight import OfWeight, Weight


@dataclass(frozen=True, eq=False)
class Orbits:
    """The classes of datasets on which a mechanism may be taken constant.

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


def orbits(query: Query, law: ArrayLike | None = None) -> Orbits:
    """The orbits of datasets under the symmetries of a query and of the true law of the dataset.

    The values of f themselves for a sum modulo m whose records each have a multiple of m letters, such as the
    parity; the weight for other sums and functions of the weight of binary records; for any other query the
    datasets up to permutations of records that the table of f, and the law, do not tell apart.

    Args:
        query: f.
        law: (k_1, ..., k_n) or (|X|,) the true law p_0 of the dataset; uniform where left out.

    Raises:
        PriorError: the law is none, or does not fit the query.
        QueryError: the query is none, or there are more than 2^20 datasets, and no structure helps.

    Examples:
        >>> from pmlopt.queries import Quadratic
        >>> found = orbits(Quadratic(3))
        >>> found.query.values, found.values.tolist(), found.masses.round(6).tolist()
        ((0, 1, 2, 3), [0, 0, 1, 2], [0.125, 0.375, 0.375, 0.125])
        >>> orbits(ModularSum(10, 2)).query.values
        (0, 1)
    """
    check_query(query)
    if law is None and isinstance(query, ModularSum):
        if all(size % query.modulus == 0 for size in query.alphabets):
            return _counted(query, np.arange(query.modulus))
        if set(query.alphabets) == {2}:
            weight = Weight(query.records)
            return _counted(weight, np.arange(query.records + 1) % query.modulus)
    if law is None and isinstance(query, OfWeight):
        return _counted(Weight(query.records), query.places())
    return _listed(query, law)


def _counted(query: Query, values: IntArray) -> Orbits:
    """The orbits of a query by its counts, with their probabilities under a uniform dataset."""
    counts = np.logaddexp.reduce(query.log_counts(0), axis=0)
    return Orbits(query, values, np.exp(counts - query.log_size))


def _listed(query: Query, law: ArrayLike | None) -> Orbits:
    """The orbits under permutations of records, from the table of the query and of the law."""
    table = query.table()
    masses = np.full(table.shape, 1 / table.size) if law is None else _law(law, table.shape)
    sets = _exchangeable(table, masses)
    letters = np.indices(table.shape, dtype=np.int64).reshape(table.ndim, -1)
    for records in sets:
        letters[records] = np.sort(letters[records], axis=0)
    flat = np.ravel_multi_index(tuple(letters), table.shape)
    first, classes = np.unique(flat, return_inverse=True)
    return Orbits(
        Explicit(classes.reshape(table.shape)),
        table.ravel()[first],
        np.asarray(np.bincount(classes.ravel(), weights=masses.ravel())),
    )


def _exchangeable(table: IntArray, masses: FloatArray) -> list[list[int]]:
    """The sets of records whose permutations leave the table and the law as they are."""
    sets: list[list[int]] = []
    for record in range(table.ndim):
        for records in sets:
            if _alike(table, masses, records[0], record):
                records.append(record)
                break
        else:
            sets.append([record])
    return sets


def _alike(table: IntArray, masses: FloatArray, first: int, second: int) -> bool:
    if table.shape[first] != table.shape[second]:
        return False
    return bool(
        (table == np.swapaxes(table, first, second)).all()
        and np.allclose(masses, np.swapaxes(masses, first, second), rtol=1e-12, atol=0)
    )


def _law(law: ArrayLike, shape: tuple[int, ...]) -> FloatArray:
    if math.prod(shape) > LARGEST_TABLE:
        raise QueryError("a law of the dataset can be given for at most 2^20 datasets")
    try:
        flat = np.reshape(np.asarray(law), -1) if np.shape(law) == shape else law
    except ValueError as cause:
        raise PriorError(f"the true law is not a regular array: {cause}") from None
    masses = float_array(flat, 1, "the true law", PriorError)
    if len(masses) != math.prod(shape):
        raise PriorError(f"the true law has {len(masses)} entries for {math.prod(shape)} datasets")
    if masses.min() < 0 or abs(masses.sum() - 1) > SUM_TOLERANCE:
        raise PriorError(
            f"the true law has the least entry {masses.min():.6g} and the sum {masses.sum():.12g}: give a law"
        )
    return np.asarray(masses.reshape(shape) / masses.sum())
