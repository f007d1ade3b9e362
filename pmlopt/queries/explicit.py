"""Queries given as a table of values on a small product alphabet."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import ClassVar

import numpy as np
from numpy.typing import ArrayLike

from pmlopt.arrays import FloatArray, IntArray, Label
from pmlopt.errors import QueryError
from pmlopt.queries.query import LARGEST_TABLE, Query, checked_record, in_order, numbers_of


@dataclass(frozen=True, eq=False, init=False)
class Explicit(Query):
    """A query given as the table of its values; records may have alphabets of any size.

    Args:
        function: (k_1, ..., k_n) the value f(x) at each x: numbers or other labels.

    Raises:
        QueryError: the table is ragged, empty or has more than 2^20 entries, or a value cannot be a label.

    Examples:
        >>> query = Explicit([[0, 1, 2], [1, 2, 3]])  # x_1 + x_2, of 2 and 3 letters
        >>> query.alphabets, query.values
        ((2, 3), (0, 1, 2, 3))
        >>> np.exp(query.log_counts(1)).round(9).tolist()
        [[1.0, 1.0, 0.0, 0.0], [0.0, 1.0, 1.0, 0.0], [0.0, 0.0, 1.0, 1.0]]
    """

    kind: ClassVar[str] = "explicit"
    places: IntArray
    labels: tuple[Label, ...]

    @classmethod
    def from_fields(cls, places: IntArray, labels: tuple[Label, ...]) -> Explicit:
        """As a file has it: by the places of its values in the list of them.

        Raises:
            QueryError: a place is none of the list, or the list is not that of the values in their order.
        """
        if places.ndim == 0 or places.size == 0 or not ((places >= 0) & (places < len(labels))).all():
            raise QueryError(f"the places are none of the {len(labels)} values")
        table = np.empty(places.shape, dtype=object)
        for index, place in np.ndenumerate(places):
            table[index] = labels[place]
        found = cls(table)
        if found.labels != tuple(labels) or not np.array_equal(found.places, places):
            raise QueryError("the list is not that of the values in their order, each once")
        return found

    def __init__(self, function: ArrayLike) -> None:
        try:
            array = np.asarray(function)
        except ValueError as cause:
            raise QueryError(f"the table of the query is not a regular array: {cause}") from None
        if array.dtype.kind in "US":  # numbers beside text stay numbers
            array = np.asarray(function, dtype=object)
        if array.ndim == 0 or array.size == 0 or array.size > LARGEST_TABLE:
            raise QueryError(
                f"the table of the query has shape {array.shape}: give one axis for each record, and from 1 "
                f"to {LARGEST_TABLE:,} entries"
            )
        entries = array.ravel().tolist()
        labels = in_order(entries)
        place = {label: at for at, label in enumerate(labels)}
        places = np.array([place[entry] for entry in entries], dtype=np.int64).reshape(array.shape)
        places.setflags(write=False)
        object.__setattr__(self, "places", places)
        object.__setattr__(self, "labels", labels)

    @property
    def alphabets(self) -> tuple[int, ...]:
        return self.places.shape

    @property
    def values(self) -> tuple[Label, ...]:
        return self.labels

    @cached_property
    def kinds(self) -> tuple[int, ...]:
        """One record of each kind; records are of a kind where their counts are equal."""
        first: dict[tuple[int, bytes], int] = {}
        for record, size in enumerate(self.alphabets):
            first.setdefault((size, self._counts(record).tobytes()), record)
        return tuple(first.values())

    def log_counts(self, record: int) -> FloatArray:
        with np.errstate(divide="ignore"):
            return np.log(self._counts(checked_record(self, record)))

    @property
    def sensitivity(self) -> float:
        numbers = numbers_of(self)[self.places]
        return float(max(np.ptp(numbers, axis=axis).max() for axis in range(self.records)))

    def table(self) -> IntArray:
        return self.places

    def _counts(self, record: int) -> IntArray:
        """(k_i, T) the number of datasets with each letter of a record and each value."""
        flat = np.moveaxis(self.places, record, 0).reshape(self.alphabets[record], -1)
        return np.stack([np.bincount(row, minlength=len(self.labels)) for row in flat])
