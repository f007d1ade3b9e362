"""The channel from the records of a query to a mechanism's output, by classes of datasets with equal rows."""

from __future__ import annotations

import math
import reprlib
from dataclasses import dataclass
from itertools import product

import numpy as np
from numpy.typing import ArrayLike

from pmlopt.arrays import FloatArray, IntArray, Label, Positions
from pmlopt.errors import MechanismError, QueryError
from pmlopt.mechanism import Mechanism, MechanismLike, as_mechanism
from pmlopt.queries.explicit import Explicit
from pmlopt.queries.query import Query, check_listable, check_query
from pmlopt.queries.symmetry import orbits


@dataclass(frozen=True, eq=False)
class RecordChannel:
    """The channel from a query's records to the output: all that the leakage of the records depends on.

    Y depends on the dataset through the row q(.|x) alone, and a class is a set of datasets with the same row.
    Given the law J of (X_i, T), T the class, the entropy of the dataset is largest when it is uniform inside
    each cell, so that J and the counts `log_counts` stand for the whole prior:
    [wu2026entropy, Definition 2.1] in |X_i| T variables instead of |X|. The proof is in docs/records.md.

    Attributes:
        query: whose records they are; with one value for each class where the mechanism is q(y|x).
        mechanism: as it was given.
        rows: (T, M) the distinct rows, each over its sum.
        classes: (number of values of `query`,) the class of each; -1 for a value that no dataset has.
        names: (T,) what each class is called: the values of the query behind it.
    """

    query: Query
    mechanism: Mechanism
    rows: FloatArray
    classes: IntArray
    names: tuple[tuple[Label, ...], ...]

    def log_counts(self, record: int) -> FloatArray:
        """(k_i, T) the logarithms of the numbers of datasets with `x_i = a` and class t; -inf for none."""
        counts = self.query.log_counts(record)
        merged = np.full((len(counts), len(self.rows)), -np.inf)
        known = np.flatnonzero(self.classes >= 0)
        for letter, row in enumerate(counts):
            np.logaddexp.at(merged[letter], self.classes[known], row[known])
        return merged

    def table(self) -> IntArray:
        """(k_1, ..., k_n) the class of every dataset; a QueryError where there are too many."""
        return np.asarray(self.classes[self.query.table()])


def record_channel(query: Query, mechanism: MechanismLike, law: ArrayLike | None = None) -> RecordChannel:
    """The channel from a query's records to the output of a mechanism on the same datasets.

    Args:
        query: f.
        mechanism: (T, M) q(y|f(x)), a row for each of the query's values in their order; or (|X|, M) q(y|x),
            a row for each dataset in lexicographic order, the last record's letter running fastest; or
            (K, M), a row for each class of `queries.orbits(query, law)`, as a designed mechanism has. Rows
            without names that fit several of these are taken for the first.
        law: the true law of the dataset that the classes belong to; uniform where left out.

    Raises:
        MechanismError: the rows fit none, or their labels are others.
        QueryError: the query is none, or q(y|x) is given for more than 2^20 datasets.

    Examples:
        >>> from pmlopt.queries import ModularSum, Quadratic
        >>> record_channel(ModularSum(2, 2), [[0.9, 0.1], [0.1, 0.9]]).names
        ((0,), (1,))
        >>> record_channel(ModularSum(2, 2), [[1, 0], [0, 1], [0, 1], [0, 1]]).rows.tolist()
        [[1.0, 0.0], [0.0, 1.0]]
        >>> record_channel(Quadratic(3), [[1, 0], [1, 0], [0, 1], [0, 1]]).names  # a row for each weight
        ((0, 1), (2, 3))
    """
    check_query(query)
    known = as_mechanism(mechanism)
    if not _named(known, query.values) and not _by_datasets(query, known):
        classes = _classes(query, known, law)
        if classes is not None:
            return _channel(classes, known, known.matrix)
    if _by_dataset(query, known):
        rows, places = _distinct(known.matrix)
        return _channel(Explicit(places.reshape(query.alphabets)), known, rows)
    _match(known, query.values, "the query's values")
    return _channel(query, known, known.matrix)


def _named(mechanism: Mechanism, names: tuple[Label, ...]) -> bool:
    """Whether the rows are as many as some names, and have these names or none."""
    unnamed = isinstance(mechanism.inputs, Positions)
    return len(mechanism.inputs) == len(names) and (unnamed or mechanism.inputs == names)


def _by_datasets(query: Query, mechanism: Mechanism) -> bool:
    """Whether the rows are as many as the datasets, and have their names or none."""
    if abs(len(mechanism.inputs) - np.exp(min(query.log_size, 50.0))) >= 0.5:
        return False
    return isinstance(mechanism.inputs, Positions) or _named_by_dataset(query, mechanism)


def _classes(query: Query, mechanism: Mechanism, law: ArrayLike | None) -> Query | None:
    """The query of the classes that an optimal mechanism tells apart, where the rows are those."""
    try:
        found = orbits(query, law).query
    except QueryError:  # there are too many datasets to look for classes
        return None
    return found if _named(mechanism, found.values) else None


def _by_dataset(query: Query, mechanism: Mechanism) -> bool:
    """Whether the rows of the mechanism stand for datasets, not for values of the query."""
    rows, values = len(mechanism.inputs), len(query.values)
    size = np.exp(min(query.log_size, 50.0))
    many = abs(rows - size) < 0.5
    if rows == values and not (many and _named_by_dataset(query, mechanism)):
        return False
    if not many:
        datasets = math.prod(query.alphabets) if query.log_size < 35 else f"e^{query.log_size:.6g}"
        raise MechanismError(
            f"the mechanism has {rows} rows; give one for each of the query's {values} values, one for each "
            f"class of queries.orbits(query, law), or one for each of its {datasets} datasets"
        )
    check_listable(query)
    _match(mechanism, tuple(product(*map(range, query.alphabets))), "the datasets, as tuples of letters,")
    return True


def _match(mechanism: Mechanism, names: tuple[Label, ...], what: str) -> None:
    """Raise a MechanismError unless the rows are unnamed, or named as expected and in that order."""
    if mechanism.inputs == names or isinstance(mechanism.inputs, Positions):
        return
    how = "the same in another order: reorder the rows" if set(mechanism.inputs) == set(names) else "others"
    raise MechanismError(
        f"the mechanism's inputs {reprlib.repr(mechanism.inputs)} differ from {what} {reprlib.repr(names)}: "
        f"they are {how}"
    )


def _named_by_dataset(query: Query, mechanism: Mechanism) -> bool:
    return mechanism.inputs == tuple(product(*map(range, query.alphabets)))


def _channel(query: Query, mechanism: Mechanism, matrix: FloatArray) -> RecordChannel:
    """The channel with equal rows merged, and rows of values that no dataset has left out."""
    reached = np.flatnonzero(np.isfinite(query.log_counts(0)).any(axis=0))
    rows, places = _distinct(matrix[reached] / matrix[reached].sum(axis=1, keepdims=True))
    classes = np.full(len(query.values), -1)
    classes[reached] = places
    names = tuple(
        tuple(query.values[value] for value in np.flatnonzero(classes == place)) for place in range(len(rows))
    )
    return RecordChannel(query, mechanism, rows, classes, names)


def _distinct(matrix: FloatArray) -> tuple[FloatArray, IntArray]:
    """The distinct rows in order of appearance, and the index of each row among them."""
    _, first, places = np.unique(matrix, axis=0, return_index=True, return_inverse=True)
    order = np.argsort(first)
    rank = np.argsort(order)
    return matrix[first[order]], np.asarray(rank[places.ravel()])
