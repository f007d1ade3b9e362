"""Datasets by how many records have each residue: classes of a sum modulo m, letters of a residue merged."""

from __future__ import annotations

import math
from collections import Counter
from dataclasses import dataclass
from functools import cached_property
from itertools import combinations, pairwise, product
from typing import ClassVar

import numpy as np

from pmlopt.arrays import FloatArray, IntArray, Label
from pmlopt.queries.modular import ModularSum
from pmlopt.queries.query import Query, checked_record, listed, numbers_of

MOST_CLASSES = 2**14
"""Classes at most: a mechanism has a row for each, and a search costs more than its square."""


@dataclass(frozen=True, eq=False)
class ResidueTypes(Query):
    """The classes of datasets that differ in no residue: letters of equal residue count as one.

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
        return self.sums.alphabets

    @property
    def kinds(self) -> tuple[int, ...]:
        return self.sums.kinds

    @property
    def values(self) -> tuple[Label, ...]:
        sums, start = bool(self._closed), 1 if self._closed else 0
        return tuple(
            (f"sum {row[0]}; " if sums else "") + "counts " + "+".join(map(str, row[start:]))
            for row in self._types.tolist()
        )

    @property
    def residues(self) -> IntArray:
        """(K,) the sum modulo m of each class."""
        return np.asarray(self._types @ self._weights % self.sums.modulus)

    @property
    def count(self) -> int:
        """The number of classes, K, without listing them."""
        parts = [math.comb(times + self._width(size) - 1, times) for size, times in self._open]
        return math.prod(parts) * (self.sums.modulus if self._closed else 1)

    def log_counts(self, record: int) -> FloatArray:
        modulus, size = self.sums.modulus, self.alphabets[checked_record(self, record)]
        found = np.empty((size, len(self._types)))
        for letter in range(min(size, modulus)):
            found[letter::modulus] = self._with_letter(size, letter)
        return found

    @property
    def sensitivity(self) -> float:
        return float(numbers_of(self)[0])  # which says that the classes are no numbers

    def table(self) -> IntArray:
        data = listed(self)
        columns = []
        if self._closed:
            shifted = [i for i, size in enumerate(self.alphabets) if size in self._closed]
            columns.append(data[shifted].sum(axis=0) % self.sums.modulus)
        for size, _ in self._open:
            alike = data[[i for i, other in enumerate(self.alphabets) if other == size]] % self.sums.modulus
            columns += [(alike == residue).sum(axis=0) for residue in range(self._width(size))]
        bases = (np.max(self._types, axis=0) + 1).tolist()
        codes = np.ravel_multi_index(tuple(self._types.T), bases)
        order = np.argsort(codes)
        places = np.searchsorted(codes[order], np.ravel_multi_index(tuple(columns), bases).ravel())
        return np.asarray(order[places].reshape(self.alphabets))

    @cached_property
    def _closed(self) -> dict[int, int]:
        """How many records have each size that is a multiple of m."""
        return {k: n for k, n in Counter(self.alphabets).items() if k % self.sums.modulus == 0}

    @cached_property
    def _open(self) -> list[tuple[int, int]]:
        """The other sizes with how many records have them."""
        return sorted((k, n) for k, n in Counter(self.alphabets).items() if k not in self._closed)

    def _width(self, size: int) -> int:
        """How many residues letters 0 to k - 1 have."""
        return min(size, self.sums.modulus)

    @cached_property
    def _types(self) -> IntArray:
        """(K, W) the classes: the sum of the records that can be shifted, and the counts of residues."""
        sums = [[(value,) for value in range(self.sums.modulus)]] if self._closed else []
        parts = [_compositions(times, self._width(size)) for size, times in self._open]
        return np.array([sum(chosen, ()) for chosen in product(*sums, *parts)], dtype=np.int64)

    @cached_property
    def _weights(self) -> IntArray:
        """(W,) what each column of the classes adds to the sum."""
        lists = [range(self._width(size)) for size, _ in self._open]
        return np.array([*([1] if self._closed else []), *(r for one in lists for r in one)], dtype=np.int64)

    def _with_letter(self, size: int, letter: int) -> FloatArray:
        """(K,) the logarithms of how many datasets of each class have a letter in a record of some size."""
        from scipy.special import xlogy

        modulus = self.sums.modulus
        types, place = self._types, 0
        found = np.zeros(len(types))
        if self._closed:
            place = 1
            others = math.fsum(n * math.log(k) for k, n in self._closed.items())
            if size in self._closed and sum(self._closed.values()) == 1:
                found += np.where(types[:, 0] == letter, 0.0, -np.inf)
            else:
                found += others - math.log(modulus) - (math.log(size) if size in self._closed else 0.0)
        for other, _ in self._open:
            width = self._width(other)
            rest = types[:, place : place + width].astype(float)
            if other == size:
                rest[:, letter] -= 1
            letters = np.bincount(np.arange(other) % modulus, minlength=width)[:width]
            found += _log_multinomials(rest) + xlogy(np.maximum(rest, 0.0), letters).sum(axis=1)
            place += width
        return found


def _compositions(total: int, parts: int) -> list[tuple[int, ...]]:
    """The ways to write a number as an ordered sum of numbers of at least 0, the first part falling."""
    found = []
    for bars in combinations(range(total + parts - 1), parts - 1):
        ends = (-1, *bars, total + parts - 1)
        found.append(tuple(after - before - 1 for before, after in pairwise(ends)))
    return found[::-1]


def _log_multinomials(counts: FloatArray) -> FloatArray:
    """(K,) the logarithms of the multinomial coefficients of rows; -inf where a part is negative."""
    from scipy.special import gammaln

    inside = np.maximum(counts, 0.0)
    logs = gammaln(inside.sum(axis=1) + 1) - gammaln(inside + 1).sum(axis=1)
    return np.where((counts >= 0).all(axis=1), logs, -np.inf)
