"""Queries: functions of a dataset of n records, and the number of datasets behind each of their values."""

from __future__ import annotations

import math
import reprlib
from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Iterable
from numbers import Integral, Real
from typing import Any

import numpy as np

from pmlopt.core.numbers.arrays import FloatArray, IntArray, Label, Labels, check_integer
from pmlopt.core.numbers.differences import subtract_arrays, to_exact_array
from pmlopt.core.records.fields import Record
from pmlopt.errors import QueryError

MAX_LISTED_DATASETS = 2**20
"""The largest number of datasets that are listed one by one: a table of them takes 8 MB."""

MAX_RECORD_LETTERS = 2**12
"""The largest alphabet of a record: solvers take tables of twice its size squared, half a gigabyte."""
MAX_QUERY_VALUES = 10**5
"""The largest modulus: counts have a column for each value, and convolving them takes its square in terms."""
MAX_COUNT_ENTRIES = 2**26
"""Entries of one table of counts, letters times values: half a gigabyte."""


class Query(Record, ABC):
    """A function f of a dataset x = (x_1, ..., x_n), record x_i from {0, ..., k_i - 1}.

    What an adversary can learn depends on f only through `log_counts`: how many datasets have `x_i = a` and
    `f(x) = t`.
    """

    @property
    @abstractmethod
    def alphabets(self) -> tuple[int, ...]:
        """Return the (n,) alphabet size of each record."""

    @property
    @abstractmethod
    def values(self) -> Labels:
        """Return the (T,) distinct query values, the row labels of mechanisms; numbers ascending."""

    @property
    @abstractmethod
    def kinds(self) -> tuple[int, ...]:
        """Return one representative for each kind of record with equal `log_counts`."""

    @property
    def exchangeable(self) -> tuple[int, ...]:
        """Return representatives of exchangeable records; all records where unknown.

        Records of a kind need not be: under `x_1 + x_2 mod 2` the counts of an idle x_0 are those of x_1.
        """
        return tuple(range(self.records))

    @abstractmethod
    def log_counts(self, record: int) -> FloatArray:
        """Compute the (k_i, T) log-numbers of datasets with `x_i = a` and `f(x) = t`.

        Args:
            record: i, counted from 0.

        Raises:
            QueryError: there is no such record.
        """

    @property
    def sensitivity(self) -> float:
        """Return the sensitivity: the largest change of the query value when one record changes.

        Raises:
            QueryError: the values are not numbers.
        """
        numbers = values_as_numbers(self)
        return float(
            max(
                np.ptp(numbers[self.list_answers(record)], axis=1).max()
                for record in self.exchangeable
            )
        )

    @abstractmethod
    def table(self) -> IntArray:
        """Return the (k_1, ..., k_n) index into `values` for every dataset.

        Raises:
            QueryError: there are more than 2^20 datasets.
        """

    def list_answers(self, record: int) -> IntArray:
        """Return (K, k_i) indices of the query value as a record varies and the others are fixed.

        A row for each of the different outcomes, over all that the others may be.

        Args:
            record: i, counted from 0.

        Raises:
            QueryError: there is no such record, or there are more than 2^20 datasets to list.
        """
        place = check_record(self, record)
        flat = np.moveaxis(self.table(), place, -1).reshape(-1, self.alphabets[place])
        return np.unique(flat, axis=0)

    @property
    def records(self) -> int:
        """Return the number of records, n."""
        return len(self.alphabets)

    @property
    def log_size(self) -> float:
        """Return the logarithm of the number of datasets, in nats: the entropy of a uniform dataset."""
        return math.fsum(
            times * math.log(letters) for letters, times in Counter(self.alphabets).items()
        )


def check_query(query: Query) -> None:
    """Raise a QueryError for an argument that is not a query."""
    if not isinstance(query, Query):
        raise QueryError(f"the query is {query!r:.60}: give one such as queries.ModularSum(4, 2)")


def check_alphabets(records: int, letters: int | Iterable[int]) -> tuple[int, ...]:
    """Validate alphabet sizes, given as one number for all records or one per record."""
    n = check_record_count(records)
    if isinstance(letters, Iterable) and getattr(letters, "ndim", None) != 0:
        sizes = tuple(
            check_within_limit(size, "an alphabet's size", "MAX_RECORD_LETTERS") for size in letters
        )
        if len(sizes) != n:
            raise QueryError(
                f"{len(sizes)} alphabets for {n} records: give one size for each record"
            )
        return sizes
    return (check_within_limit(letters, "the alphabets' size", "MAX_RECORD_LETTERS"),) * n


def check_within_limit(value: Any, what: str, limit: str) -> int:
    """Validate an integer between 1 and a named limit of this module."""
    number = check_integer(value, what, QueryError)
    max_number = globals()[limit]
    if number > max_number:
        raise QueryError(
            f"{what} is {value!r}: at most {max_number:,}; pmlopt.model.queries.query.{limit} raises it"
        )
    return number


def check_record_count(records: int) -> int:
    """Validate a number of records between 1 and ten million."""
    # The largest number of records: their alphabets are a tuple with an entry for each.
    largest_record_count = 10**7
    n = check_integer(records, "the number of records", QueryError)
    if n > largest_record_count:
        raise QueryError(f"{n:,} records are too many: at most {largest_record_count:,}")
    return n


def check_record(query: Query, record: int) -> int:
    """Validate the index of a record, counted from 0."""
    if not isinstance(record, Integral) or record not in range(query.records):
        raise QueryError(
            f"there is no record {record!r}: the query has the records 0 to {query.records - 1}"
        )
    return int(record)


def check_listable(query: Query) -> None:
    """Raise a QueryError for a query on more than 2^20 datasets, or of more than 32 records."""
    if query.log_size > math.log(MAX_LISTED_DATASETS) + 1e-9 or query.records > 32:
        raise QueryError(
            f"e^{query.log_size:.6g} datasets of {query.records} records are too many to list (at most "
            f"{MAX_LISTED_DATASETS:,} of 32): describe the mechanism by the values of the query, q(y|f(x))"
        )


def list_datasets(query: Query) -> IntArray:
    """Return all datasets as an (n, k_1, ..., k_n) array of the records' letters.

    Raises:
        QueryError: there are more than 2^20, or more than 32 records.
    """
    check_listable(query)
    return np.asarray(np.indices(query.alphabets), dtype=np.int64)


def values_as_numbers(query: Query) -> FloatArray:
    """Return the (T,) values of a query as floats, in strictly increasing order.

    All that counts is their differences. Of whole numbers past 2^53, which floats would round, they are the
    differences from the least.

    Raises:
        QueryError: they are not, or as floats they are too large or no longer distinct.
    """
    values: list[Any] = list(query.values)
    if not all(isinstance(value, Real) for value in values):
        raise QueryError(
            f"the values {values[:5]} are not numbers: there is no distance between them"
        )
    try:
        numbers = np.array(values, dtype=float)
    except OverflowError:
        numbers = np.array([np.inf])
    if np.abs(numbers).max() > 1e307:  # sums and differences of two are floats too
        raise QueryError(
            f"the values {reprlib.repr(values)} are not all finite: keep them below 1e307"
        )
    same = np.flatnonzero(np.diff(numbers) <= 0)
    if len(same):
        raise QueryError(
            f"the values {values[same[0]]!r} and {values[same[0] + 1]!r} are the same float: noise cannot "
            "hide their difference; subtract what they have in common"
        )
    exact = to_exact_array(values)
    return numbers if exact.dtype == float else subtract_arrays(exact, exact[:1])


def sort_distinct(values: Iterable[Label]) -> Labels:
    """Return the distinct values: in ascending order where all are numbers, in order of appearance otherwise.

    Raises:
        QueryError: a value cannot be a label.
    """
    try:
        distinct: list[Any] = list(dict.fromkeys(values))
    except TypeError as cause:
        raise QueryError(f"a value of the query cannot be a label: {cause}") from None
    unlike = [label for label in distinct if label != label]
    if unlike:
        raise QueryError(
            f"the query has the value {unlike[0]!r}: give values that equal themselves"
        )
    if all(isinstance(value, Real) for value in distinct):
        distinct.sort()
    return tuple(distinct)
