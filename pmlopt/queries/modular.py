"""The sum of records modulo m, and its counts by convolution."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from pmlopt.arrays import FloatArray, IntArray, Label
from pmlopt.errors import QueryError
from pmlopt.queries.query import LARGEST_COUNTS, Query, alphabets_of, checked_record, limited, listed


@dataclass(frozen=True, init=False)
class ModularSum(Query):
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
        """As a file has it."""
        return cls(records, modulus, letters)

    @property
    def letters(self) -> int | tuple[int, ...]:
        """How many letters a record has: one number where it is the same for all."""
        return self.sizes[0] if len(set(self.sizes)) == 1 else self.sizes

    def __init__(self, records: int, modulus: int, letters: int | Iterable[int] = 2) -> None:
        object.__setattr__(self, "modulus", limited(modulus, "the modulus", "MOST_VALUES"))
        object.__setattr__(self, "sizes", alphabets_of(records, letters))
        if (entries := self.modulus * max(self.sizes)) > LARGEST_COUNTS:
            raise QueryError(
                f"{max(self.sizes):,} letters and the modulus {self.modulus:,} make {entries:,} counts: at "
                f"most {LARGEST_COUNTS:,}; pmlopt.queries.query.LARGEST_COUNTS raises it"
            )

    @property
    def alphabets(self) -> tuple[int, ...]:
        return self.sizes

    @property
    def values(self) -> tuple[Label, ...]:
        return tuple(range(self.modulus))

    @property
    def kinds(self) -> tuple[int, ...]:
        return tuple(self.sizes.index(size) for size in dict.fromkeys(self.sizes))

    def log_counts(self, record: int) -> FloatArray:
        size = self.sizes[checked_record(self, record)]
        others = self._others(size)
        return np.stack([np.roll(others, letter) for letter in range(size)])

    def answers(self, record: int) -> IntArray:
        size = self.sizes[checked_record(self, record)]
        reached = np.flatnonzero(np.isfinite(self._others(size)))
        return np.asarray((reached[:, None] + np.arange(size)) % self.modulus)

    @property
    def sensitivity(self) -> float:
        widest = 0
        for size in dict.fromkeys(self.sizes):
            reached = np.flatnonzero(np.isfinite(self._others(size)))
            sums = (reached[:, None] + np.arange(min(size, self.modulus))) % self.modulus
            widest = max(widest, int(np.ptp(sums, axis=1).max()))
        return float(widest)

    def table(self) -> IntArray:
        return np.asarray(listed(self).sum(axis=0) % self.modulus)

    def _others(self, size: int) -> FloatArray:
        """(m,) the logarithms of the counts of each sum of all records but one with this alphabet size."""
        times = Counter(self.sizes)
        times[size] -= 1
        found = np.where(np.arange(self.modulus) == 0, 0.0, -np.inf)
        for letters, repeats in sorted(times.items()):
            one = np.bincount(np.arange(letters) % self.modulus, minlength=self.modulus)
            found = _convolved(found, _power(_logarithm(one), repeats))
        return found


def _logarithm(counts: IntArray) -> FloatArray:
    with np.errstate(divide="ignore"):
        return np.log(counts)


def _power(one: FloatArray, times: int) -> FloatArray:
    """The convolution power of logarithms of counts, by repeated squaring."""
    found = np.where(np.arange(len(one)) == 0, 0.0, -np.inf)
    while times:
        if times % 2:
            found = _convolved(found, one)
        times //= 2
        if times:
            one = _convolved(one, one)
    return found


def _convolved(left: FloatArray, right: FloatArray) -> FloatArray:
    """The cyclic convolution of two arrays of logarithms."""
    size = len(left)
    out = np.full(size, -np.inf)
    for place in np.flatnonzero(np.isfinite(left)):
        np.logaddexp(out, left[place] + np.roll(right, place), out=out)
    return out
