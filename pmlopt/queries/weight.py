"""Queries on binary records that depend on the number of ones alone."""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import ClassVar

import numpy as np

from pmlopt.arrays import FloatArray, IntArray, Label
from pmlopt.errors import QueryError
from pmlopt.queries.query import (
    Query,
    checked_record,
    in_order,
    listed,
    numbers_of,
    record_count,
    widest_step,
)


class OfWeight(Query):
    """A query that is a function of the weight `w = x_1 + ... + x_n` of n binary records.

    Its counts are sums of binomial coefficients.
    """

    count: int

    @abstractmethod
    def of_weights(self) -> Sequence[Label]:
        """(n + 1,) the value of the query at each weight."""

    def places(self) -> IntArray:
        """(n + 1,) the index of each weight's value among `values`."""
        return self._places[1]

    @property
    def alphabets(self) -> tuple[int, ...]:
        return (2,) * self.count

    @property
    def values(self) -> tuple[Label, ...]:
        return self._places[0]

    @property
    def kinds(self) -> tuple[int, ...]:
        return (0,)

    def log_counts(self, record: int) -> FloatArray:
        checked_record(self, record)
        values, places = self._places
        others = _log_binomials(self.records - 1)
        counts = np.full((2, len(values)), -np.inf)
        for letter in (0, 1):
            np.logaddexp.at(counts[letter], places[letter : letter + self.records], others)
        return counts

    def answers(self, record: int) -> IntArray:
        checked_record(self, record)
        places = self._places[1]
        return np.asarray(np.unique(np.stack([places[:-1], places[1:]], axis=1), axis=0))

    @property
    def sensitivity(self) -> float:
        return widest_step(numbers_of(self)[self._places[1]].tolist())

    def table(self) -> IntArray:
        return np.asarray(self._places[1][listed(self).sum(axis=0)])

    @cached_property
    def _places(self) -> tuple[tuple[Label, ...], IntArray]:
        """The distinct values, and the index of each weight's value among them."""
        found = self.of_weights()
        values = in_order(found)
        place = {value: at for at, value in enumerate(values)}
        return values, np.array([place[value] for value in found])


@dataclass(frozen=True, eq=False, init=False)
class Weight(OfWeight):
    """The weight query on n binary records: the number of ones, or a function of it.

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
    def from_fields(cls, outcomes: tuple[Label, ...]) -> Weight:
        """As a file has it: by the value at each weight, 0 to n."""
        return cls(len(outcomes) - 1, outcomes.__getitem__)

    @property
    def outcomes(self) -> tuple[Label, ...]:
        """(n + 1,) the value at each weight."""
        return tuple(self.of_weights())

    def __init__(self, records: int, function: Callable[[int], Label] | None = None) -> None:
        object.__setattr__(self, "count", record_count(records))
        if not (function is None or callable(function)):
            raise QueryError(f"the function of the weight is {function!r:.60}: give one that can be called")
        object.__setattr__(self, "function", function)

    def of_weights(self) -> Sequence[Label]:
        weights = range(self.count + 1)
        return weights if self.function is None else [self.function(weight) for weight in weights]


@dataclass(frozen=True, init=False)
class Quadratic(OfWeight):
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
    count: int

    def __init__(self, records: int) -> None:
        object.__setattr__(self, "count", record_count(records))

    def of_weights(self) -> Sequence[Label]:
        return [weight * (weight - 1) // 2 for weight in range(self.count + 1)]


def _log_binomials(n: int) -> FloatArray:
    """(n + 1,) the logarithms of the binomial coefficients C(n, w), from exact integers."""
    found, binomial = [0.0], 1
    for weight in range(n // 2):
        binomial = binomial * (n - weight) // (weight + 1)
        found.append(math.log(binomial))
    return np.array([*found, *reversed(found[: (n + 1) // 2])])
