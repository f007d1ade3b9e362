"""Queries by their definitions: every dataset is listed, in plain Python."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import product
from typing import Any

import numpy as np
from hypothesis import strategies as st

from pmlopt.model.queries import Explicit, ModularSum, Quadratic, Query, Weight

Dataset = tuple[int, ...]
Function = Callable[[Dataset], Any]


@dataclass(frozen=True)
class Case:
    """A query, and what it should be."""

    query: Query
    alphabets: tuple[int, ...]
    values: tuple[Any, ...]
    function: Function

    @property
    def datasets(self) -> list[Dataset]:
        return list(product(*map(range, self.alphabets)))

    @property
    def neighbours(self) -> Iterator[tuple[Dataset, Dataset]]:
        """Datasets that differ in one record."""
        for x in self.datasets:
            for record, size in enumerate(self.alphabets):
                for letter in range(x[record] + 1, size):
                    yield x, (*x[:record], letter, *x[record + 1 :])

    @property
    def sensitivity(self) -> float:
        steps = (abs(self.function(x) - self.function(other)) for x, other in self.neighbours)
        return max(steps, default=0.0)

    def counts(self, record: int) -> list[list[int]]:
        """How many datasets have this letter of the record and this value."""
        found = [[0] * len(self.values) for _ in range(self.alphabets[record])]
        for x in self.datasets:
            found[x[record]][self.values.index(self.function(x))] += 1
        return found


def logs(counts: list[list[int]]) -> list[list[float]]:
    return [[math.log(count) if count else -math.inf for count in row] for row in counts]


def modular_sum(sizes: tuple[int, ...], modulus: int) -> Case:
    return Case(
        ModularSum(len(sizes), modulus, sizes),
        sizes,
        tuple(range(modulus)),
        lambda x: sum(x) % modulus,
    )


def quadratic(n: int) -> Case:
    def function(x: Dataset) -> int:
        return sum(x[i] * x[j] for j in range(n) for i in range(j))

    values = tuple(sorted({function(x) for x in product((0, 1), repeat=n)}))
    return Case(Quadratic(n), (2,) * n, values, function)


def weight(of_weight: list[Any] | None, n: int) -> Case:
    """The weight where no list is given, else its entry at the weight."""
    if of_weight is None:
        return Case(Weight(n), (2,) * n, tuple(range(n + 1)), sum)
    known = of_weight
    values = _distinct(known[: n + 1])
    return Case(Weight(n, lambda w: known[w]), (2,) * n, values, lambda x: known[sum(x)])


def explicit(sizes: tuple[int, ...], entries: list[Any]) -> Case:
    """The entries in lexicographic order of the datasets."""
    table = dict(zip(product(*map(range, sizes)), entries, strict=True))
    array = np.array(entries, dtype=object).reshape(sizes)
    return Case(Explicit(array), sizes, _distinct(entries), lambda x: table[x])


def _distinct(entries: list[Any]) -> tuple[Any, ...]:
    """Numbers sorted, text as it comes."""
    found = list(dict.fromkeys(entries))
    return tuple(found if any(isinstance(entry, str) for entry in found) else sorted(found))


SIZES = st.lists(st.integers(1, 4), min_size=1, max_size=4).map(tuple)
NUMBERS = st.one_of(st.integers(-3, 3), st.sampled_from([0.5, -1.25, 7.75]))
LABELS = st.one_of(NUMBERS, st.sampled_from(["a", "b", "no answer"]))


def _explicits(entries: st.SearchStrategy[Any]) -> st.SearchStrategy[Case]:
    def of_sizes(sizes: tuple[int, ...]) -> st.SearchStrategy[Case]:
        size = math.prod(sizes)
        return st.lists(entries, min_size=size, max_size=size).map(
            lambda known: explicit(sizes, known)
        )

    small = st.lists(st.integers(1, 3), min_size=1, max_size=3).map(tuple)
    return small.flatmap(of_sizes)


def cases(numeric: bool = False) -> st.SearchStrategy[Case]:
    """Queries of every class; `numeric` leaves out values that are text."""
    entries = NUMBERS if numeric else LABELS
    lengths = st.integers(1, 6)
    return st.one_of(
        st.builds(modular_sum, SIZES, st.integers(1, 12)),
        st.builds(quadratic, lengths),
        st.builds(weight, st.one_of(st.none(), st.lists(entries, min_size=7, max_size=7)), lengths),
        _explicits(entries),
    )
