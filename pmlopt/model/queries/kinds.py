"""Queries by formula or table: sums modulo m, functions of the weight, and tables of values."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import cached_property
from itertools import chain, product
from typing import ClassVar

import numpy as np
from numpy.typing import ArrayLike

from pmlopt.core.lazy_imports import special
from pmlopt.core.numbers.arrays import FloatArray, IntArray, Label, Labels
from pmlopt.data.symmetry.independent import list_compositions
from pmlopt.errors import QueryError
from pmlopt.model.queries.query import (
    MAX_COUNT_ENTRIES,
    MAX_LISTED_DATASETS,
    Query,
    check_alphabets,
    check_record,
    check_record_count,
    check_within_limit,
    list_datasets,
    sort_distinct,
    values_as_numbers,
)


@dataclass(frozen=True, eq=False, init=False)
class Explicit(Query):
    """A query given by the table of its values.

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
    labels: Labels

    @classmethod
    def from_fields(cls, places: IntArray, labels: Labels) -> Explicit:
        """Build the query from a saved file's fields.

        Raises:
            QueryError: a place is none of the list, or the list is not that of the values in their order.
        """
        if (
            places.ndim == 0
            or places.size == 0
            or not ((places >= 0) & (places < len(labels))).all()
        ):
            raise QueryError(f"the places are none of the {len(labels)} values")
        # filled entry by entry: assigned at once, tuples as labels would become a further axis
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
        # numpy turns a mixed table into text, where 1 and "1" would be one value
        if array.dtype.kind in "US":  # numbers next to text stay numbers
            array = np.asarray(function, dtype=object)
        if array.ndim == 0 or array.size == 0 or array.size > MAX_LISTED_DATASETS:
            raise QueryError(
                f"the table of the query has shape {array.shape}: give one axis for each record, and from 1 "
                f"to {MAX_LISTED_DATASETS:,} entries"
            )
        entries = array.ravel().tolist()
        labels = sort_distinct(entries)
        place = {label: at for at, label in enumerate(labels)}
        places = np.array([place[entry] for entry in entries], dtype=np.int64).reshape(array.shape)
        # the query is hashed and cached by its table, which must not change
        places.setflags(write=False)
        vars(self).update(places=places, labels=labels)

    @property
    def alphabets(self) -> tuple[int, ...]:
        """Return the (n,) alphabet size of each record."""
        return self.places.shape

    @property
    def values(self) -> Labels:
        """Return the (T,) distinct query values, the row labels of mechanisms; numbers ascending."""
        return self.labels

    @cached_property
    def kinds(self) -> tuple[int, ...]:
        """Return one representative record for each dataset-count pattern."""
        first: dict[tuple[int, bytes], int] = {}
        for record, size in enumerate(self.alphabets):
            first.setdefault((size, self._count_datasets(record).tobytes()), record)
        return tuple(first.values())

    def log_counts(self, record: int) -> FloatArray:
        """Compute the (k_i, T) log-numbers of datasets with `x_i = a` and `f(x) = t`."""
        with np.errstate(divide="ignore"):
            return np.log(self._count_datasets(check_record(self, record)))

    @property
    def sensitivity(self) -> float:
        """Return the sensitivity: the largest change of the query value when one record changes."""
        numbers = values_as_numbers(self)[self.places]
        return float(max(np.ptp(numbers, axis=axis).max() for axis in range(self.records)))

    def table(self) -> IntArray:
        """Return the (k_1, ..., k_n) index into `values` for every dataset."""
        return self.places

    def _count_datasets(self, record: int) -> IntArray:
        """Count the (k_i, T) datasets by a record's letter and the query value."""
        # (k_i, rest): a row for each letter of the record, over all letters of the others
        flat = np.moveaxis(self.places, record, 0).reshape(self.alphabets[record], -1)
        return np.stack([np.bincount(row, minlength=len(self.labels)) for row in flat])


class FormulaQuery(Query):
    """The base of formula queries, which treat records of one kind alike."""

    @property
    def exchangeable(self) -> tuple[int, ...]:
        """Return representatives of exchangeable records; all records where unknown."""
        return self.kinds


@dataclass(frozen=True, init=False)
class ModularSum(FormulaQuery):
    """The sum of n records modulo m, `f(x) = x_1 + ... + x_n mod m`; parity for m = 2 and binary records.

    Counts are found by convolution, in logarithms: log2(n) of them, m^2 terms each.

    Args:
        records: n.
        modulus: m; a plain sum is one with a modulus above its largest value.
        letters: how many letters a record has, one number or n of them.

    Raises:
        QueryError: a number is not whole, below 1, or so large that the counts would fill the memory.

    Source: [wu2026entropy, Section 4.1.1].

    Examples:
        >>> parity = ModularSum(4, 2)
        >>> parity.values, np.exp(parity.log_counts(0)).round(9).tolist()
        ((0, 1), [[4.0, 4.0], [4.0, 4.0]])
        >>> np.exp(ModularSum(3, 3).log_counts(0)).round(9).tolist()  # weights 0 to 3, 3 counting as 0
        [[1.0, 2.0, 1.0], [1.0, 1.0, 2.0]]
    """

    kind: ClassVar[str] = "modular-sum"
    modulus: int
    sizes: tuple[int, ...]

    @classmethod
    def from_fields(cls, records: int, modulus: int, letters: int | tuple[int, ...]) -> ModularSum:
        """Build the query from a saved file's fields."""
        return cls(records, modulus, letters)

    @property
    def letters(self) -> int | tuple[int, ...]:
        """Return the alphabet size of the records, one number where they agree."""
        return self.sizes[0] if len(set(self.sizes)) == 1 else self.sizes

    def __init__(self, records: int, modulus: int, letters: int | Iterable[int] = 2) -> None:
        vars(self).update(
            modulus=check_within_limit(modulus, "the modulus", "MAX_QUERY_VALUES"),
            sizes=check_alphabets(records, letters),
        )
        if (entries := self.modulus * max(self.sizes)) > MAX_COUNT_ENTRIES:
            raise QueryError(
                f"{max(self.sizes):,} letters and the modulus {self.modulus:,} make {entries:,} counts: at "
                f"most {MAX_COUNT_ENTRIES:,}; pmlopt.model.queries.query.MAX_COUNT_ENTRIES raises it"
            )

    @property
    def alphabets(self) -> tuple[int, ...]:
        """Return the (n,) alphabet size of each record."""
        return self.sizes

    @property
    def values(self) -> Labels:
        """Return the (T,) distinct query values, the row labels of mechanisms; numbers ascending."""
        return tuple(range(self.modulus))

    @property
    def kinds(self) -> tuple[int, ...]:
        """Return one representative for each kind of record with equal `log_counts`."""
        return tuple(self.sizes.index(size) for size in dict.fromkeys(self.sizes))

    def log_counts(self, record: int) -> FloatArray:
        """Compute the (k_i, T) log-numbers of datasets with `x_i = a` and `f(x) = t`."""
        size = self.sizes[check_record(self, record)]
        others = self._count_others(size)
        return np.stack([np.roll(others, letter) for letter in range(size)])

    def list_answers(self, record: int) -> IntArray:
        """Return (K, k_i) indices of the query value as a record varies and the others are fixed."""
        size = self.sizes[check_record(self, record)]
        reached = np.flatnonzero(np.isfinite(self._count_others(size)))
        return (reached[:, None] + np.arange(size)) % self.modulus

    def table(self) -> IntArray:
        """Return the (k_1, ..., k_n) index into `values` for every dataset."""
        return np.asarray(list_datasets(self).sum(axis=0) % self.modulus)

    def _count_others(self, size: int) -> FloatArray:
        """Return the (m,) log-counts of sums of all other records."""
        # records of one alphabet size have one law, so a power of it replaces their product
        times = Counter(self.sizes)
        times[size] -= 1
        found = np.where(np.arange(self.modulus) == 0, 0.0, -np.inf)
        for letters, repeats in sorted(times.items()):
            with np.errstate(divide="ignore"):
                one = np.log(np.bincount(np.arange(letters) % self.modulus, minlength=self.modulus))
            found = _convolve_logs(found, _convolution_power(one, repeats))
        return found


def _convolution_power(one: FloatArray, times: int) -> FloatArray:
    """Compute a convolution power of log-counts by repeated squaring."""
    # the unit of convolution: one way to have the sum 0, in logarithms
    found = np.where(np.arange(len(one)) == 0, 0.0, -np.inf)
    while times:
        if times % 2:
            found = _convolve_logs(found, one)
        times //= 2
        # the last square would not be used, and costs as much as all others
        if times:
            one = _convolve_logs(one, one)
    return found


def _convolve_logs(left: FloatArray, right: FloatArray) -> FloatArray:
    """Compute the cyclic convolution of two log-count arrays."""
    out = np.full(len(left), -np.inf)
    # logaddexp by terms: a Fourier transform would lose small counts next to large ones
    for place in np.flatnonzero(np.isfinite(left)):
        np.logaddexp(out, left[place] + np.roll(right, place), out=out)
    return out


MAX_RESIDUE_CLASSES = 2**14
"""Classes at most: a mechanism has a row for each, and a search costs more than its square."""


@dataclass(frozen=True, eq=False)
class ResidueTypes(FormulaQuery):
    """The dataset classes with equal residue counts.

    Records whose letters come in multiples of m can be shifted against each other: of them the sum modulo m
    is left. Of the others with k letters each, the class is how many have each residue, r_0 to r_{R-1} with
    R = min(k, m); the counts are multinomial coefficients times powers of the number of letters of a residue.

    Attributes:
        sums: the sum modulo m that they are classes of.

    Examples:
        >>> types = ResidueTypes(ModularSum(2, 2, 3))  # letters 0, 1, 2: two of them even
        >>> types.values, types.residues.tolist()
        (('counts 2+0', 'counts 1+1', 'counts 0+2'), [0, 1, 0])
        >>> np.exp(types.log_counts(0)).round(9).tolist()
        [[2.0, 1.0, 0.0], [0.0, 2.0, 1.0], [2.0, 1.0, 0.0]]
    """

    kind: ClassVar[str] = "residue-types"
    sums: ModularSum

    @property
    def alphabets(self) -> tuple[int, ...]:
        """Return the (n,) alphabet size of each record."""
        return self.sums.alphabets

    @property
    def kinds(self) -> tuple[int, ...]:
        """Return one representative for each kind of record with equal `log_counts`."""
        return self.sums.kinds

    @property
    def values(self) -> Labels:
        """Return the (T,) distinct query values, the row labels of mechanisms; numbers ascending."""
        sums = bool(self._full_cycle_sizes)
        start = 1 if self._full_cycle_sizes else 0
        return tuple(
            (f"sum {row[0]}; " if sums else "") + "counts " + "+".join(map(str, row[start:]))
            for row in self._class_table.tolist()
        )

    @property
    def residues(self) -> IntArray:
        """Return the (K,) residue of the sum of each class."""
        return self._class_table @ self._column_weights % self.sums.modulus

    @property
    def count(self) -> int:
        """Return the number of classes, K."""
        parts = [
            math.comb(times + self._count_residues(size) - 1, times)
            for size, times in self._other_sizes
        ]
        return math.prod(parts) * (self.sums.modulus if self._full_cycle_sizes else 1)

    def log_counts(self, record: int) -> FloatArray:
        """Compute the (k_i, T) log-numbers of datasets with `x_i = a` and `f(x) = t`."""
        modulus = self.sums.modulus
        size = self.alphabets[check_record(self, record)]
        found = np.empty((size, len(self._class_table)))
        for letter in range(min(size, modulus)):
            found[letter::modulus] = self._count_with_letter(size, letter)
        return found

    def table(self) -> IntArray:
        """Return the (k_1, ..., k_n) index into `values` for every dataset."""
        data = list_datasets(self)
        columns = []
        if self._full_cycle_sizes:
            shifted = [i for i, size in enumerate(self.alphabets) if size in self._full_cycle_sizes]
            columns.append(data[shifted].sum(axis=0) % self.sums.modulus)
        for size, _ in self._other_sizes:
            alike = (
                data[[i for i, other in enumerate(self.alphabets) if other == size]]
                % self.sums.modulus
            )
            columns += [
                (alike == residue).sum(axis=0) for residue in range(self._count_residues(size))
            ]
        # mixed radix: each row of counts becomes one integer, and rows are found by a search
        bases = (np.max(self._class_table, axis=0) + 1).tolist()
        codes = np.ravel_multi_index(tuple(self._class_table.T), bases)
        # the search needs sorted codes, and the classes keep another order
        order = np.argsort(codes)
        places = np.searchsorted(codes[order], np.ravel_multi_index(tuple(columns), bases).ravel())
        return np.asarray(order[places].reshape(self.alphabets))

    @cached_property
    def _full_cycle_sizes(self) -> dict[int, int]:
        """Return how many records have each alphabet size that is a multiple of m."""
        return {k: n for k, n in Counter(self.alphabets).items() if k % self.sums.modulus == 0}

    @cached_property
    def _other_sizes(self) -> list[tuple[int, int]]:
        """Return the other alphabet sizes with their record counts."""
        return sorted(
            (k, n) for k, n in Counter(self.alphabets).items() if k not in self._full_cycle_sizes
        )

    def _count_residues(self, size: int) -> int:
        """Return the number of distinct residues of letters 0 to k - 1."""
        return min(size, self.sums.modulus)

    @cached_property
    def _class_table(self) -> IntArray:
        """Return the (K, W) table of classes as sums and residue counts."""
        sums = [[[value] for value in range(self.sums.modulus)]] if self._full_cycle_sizes else []
        parts = [
            list_compositions(times, self._count_residues(size))[::-1].tolist()
            for size, times in self._other_sizes
        ]
        return np.array([[*chain(*chosen)] for chosen in product(*sums, *parts)], dtype=np.int64)

    @cached_property
    def _column_weights(self) -> IntArray:
        """Return the (W,) contribution of each table column to the sum."""
        lists = [range(self._count_residues(size)) for size, _ in self._other_sizes]
        return np.array(
            [*([1] if self._full_cycle_sizes else []), *(r for one in lists for r in one)],
            dtype=np.int64,
        )

    def _count_with_letter(self, size: int, letter: int) -> FloatArray:
        """Return (K,) log-counts of datasets by class, given one record's letter."""
        modulus = self.sums.modulus
        # columns of the table in the order of the sizes: `place` is where those of a size begin
        types = self._class_table
        place = 0
        found = np.zeros(len(types))
        if self._full_cycle_sizes:
            place = 1
            others = math.fsum(n * math.log(k) for k, n in self._full_cycle_sizes.items())
            if size in self._full_cycle_sizes and sum(self._full_cycle_sizes.values()) == 1:
                found += np.where(types[:, 0] == letter, 0.0, -np.inf)
            else:
                found += (
                    others
                    - math.log(modulus)
                    - (math.log(size) if size in self._full_cycle_sizes else 0.0)
                )
        for other, _ in self._other_sizes:
            width = self._count_residues(other)
            rest = types[:, place : place + width].astype(float)
            if other == size:
                rest[:, letter] -= 1
            letters = np.bincount(np.arange(other) % modulus, minlength=width)[:width]
            found += _compute_log_multinomials(rest) + special.xlogy(
                np.maximum(rest, 0.0), letters
            ).sum(axis=1)
            place += width
        return found


def _compute_log_multinomials(counts: FloatArray) -> FloatArray:
    """Compute (K,) log-multinomial coefficients of rows; -inf for negative parts."""
    # gammaln has poles at negative integers, and is not meant there
    inside = np.maximum(counts, 0.0)
    logs = special.gammaln(inside.sum(axis=1) + 1) - special.gammaln(inside + 1).sum(axis=1)
    return np.where((counts >= 0).all(axis=1), logs, -np.inf)


@dataclass(frozen=True, eq=False, init=False)
class Weight(FormulaQuery):
    """The weight query on n binary records: the number of ones, or a function of it.

    Its counts are sums of binomial coefficients.

    Args:
        records: n.
        function: from a weight, 0 to n, to the value of f; the weight itself where left out.

    Raises:
        QueryError: the number of records is not whole or below 1, or the function is none.

    Examples:
        >>> np.exp(Weight(3).log_counts(0)).round(9).tolist()
        [[1.0, 2.0, 1.0, 0.0], [0.0, 1.0, 2.0, 1.0]]
        >>> Weight(3, lambda w: "many" if w > 1 else "few").values
        ('few', 'many')
    """

    kind: ClassVar[str] = "weight"
    count: int
    function: Callable[[int], Label] | None

    @classmethod
    def from_fields(cls, outcomes: Labels) -> Weight:
        """Build the query from a saved file's fields, by the value at each weight."""
        return cls(len(outcomes) - 1, outcomes.__getitem__)

    def __init__(self, records: int, function: Callable[[int], Label] | None = None) -> None:
        object.__setattr__(self, "count", check_record_count(records))
        if not (function is None or callable(function)):
            raise QueryError(
                f"the function of the weight is {function!r:.60}: give one that can be called"
            )
        object.__setattr__(self, "function", function)

    @cached_property
    def outcomes(self) -> Labels:
        """Return the (n + 1,) value at each weight."""
        return tuple(
            map(self.function, range(self.count + 1)) if self.function else range(self.count + 1)
        )

    @property
    def alphabets(self) -> tuple[int, ...]:
        """Return the (n,) alphabet size of each record."""
        return (2,) * self.count

    @cached_property
    def values(self) -> Labels:
        """Return the (T,) distinct query values, the row labels of mechanisms; numbers ascending."""
        return sort_distinct(self.outcomes)

    @property
    def kinds(self) -> tuple[int, ...]:
        """Return one representative for each kind of record with equal `log_counts`."""
        return (0,)

    def log_counts(self, record: int) -> FloatArray:
        """Compute the (k_i, T) log-numbers of datasets with `x_i = a` and `f(x) = t`."""
        check_record(self, record)
        # with one letter fixed the other n - 1 records are free: C(n - 1, w) of each weight
        others = _compute_log_binomials(self.records - 1)
        counts = np.full((2, len(self.values)), -np.inf)
        for letter in (0, 1):
            np.logaddexp.at(
                counts[letter], self.value_indices[letter : letter + self.records], others
            )
        return counts

    def list_answers(self, record: int) -> IntArray:
        """Return (K, k_i) indices of the query value as a record varies and the others are fixed."""
        check_record(self, record)
        return np.asarray(
            np.unique(np.stack([self.value_indices[:-1], self.value_indices[1:]], axis=1), axis=0)
        )

    def table(self) -> IntArray:
        """Return the (k_1, ..., k_n) index into `values` for every dataset."""
        return np.asarray(self.value_indices[list_datasets(self).sum(axis=0)])

    @cached_property
    def value_indices(self) -> IntArray:
        """Return the (n + 1,) index into `values` for each weight."""
        place = {value: at for at, value in enumerate(self.values)}
        return np.array([place[value] for value in self.outcomes])


class Quadratic(Weight):
    """The quadratic query `f(x) = sum_{i<j} x_i x_j` over n binary records: w (w - 1) / 2 at the weight w.

    Args:
        records: n.

    Raises:
        QueryError: the number of records is not whole or below 1.

    Source: [wu2026entropy, Section 4.1.1].

    Examples:
        >>> Quadratic(3).values, Quadratic(3).sensitivity
        ((0, 1, 3), 2.0)
    """

    kind: ClassVar[str] = "quadratic"

    def __init__(self, records: int) -> None:
        super().__init__(records, _count_pairs)


def _count_pairs(weight: int) -> int:
    """Return the number of pairs of ones, w (w - 1) / 2."""
    return weight * (weight - 1) // 2


def _compute_log_binomials(n: int) -> FloatArray:
    """Compute the (n + 1,) logarithms of the binomial coefficients C(n, w), from exact integers."""
    found = [0.0]
    binomial = 1
    # exact integers, and one rounding in each logarithm; the other half is symmetric
    for weight in range(n // 2):
        binomial = binomial * (n - weight) // (weight + 1)
        found.append(math.log(binomial))
    return np.array([*found, *reversed(found[: (n + 1) // 2])])
