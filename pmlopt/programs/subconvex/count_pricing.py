"""Exact pricing for priors of whole counts: dynamic programming over the total count."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import ClassVar

import numpy as np

from pmlopt.arrays import FloatArray, IntArray
from pmlopt.backends.clock import FOREVER, Clock
from pmlopt.programs.subconvex.column_batch import Columns
from pmlopt.programs.subconvex.kernel import Kernel
from pmlopt.programs.subconvex.least_loss import LeastLoss, least_loss
from pmlopt.programs.subconvex.pricing import Priced
from pmlopt.uncertainty.column_families import Box, Family, Staircase

MOST_TABLE_ENTRIES = 100_000_000
"""Table entries that one round of pricing may compute."""


class CountPricer:
    """Prices exactly where the prior is whole counts with a modest total.

    `K[t]`, the least cost of a set of total count t, is a knapsack table. A column with a letter f between
    needs the table of all other letters; these N tables come from halving the alphabet again and again, so
    that N log N updates of a table suffice.

    Args:
        kernel: the prior and phi.
        families: what the columns may be.
        counts: N whole numbers proportional to the prior.
    """

    name: ClassVar[str] = "counts"

    def __init__(self, kernel: Kernel, families: Sequence[Family], counts: Sequence[int]) -> None:
        self.kernel, self.families = kernel, [family for family in families if not family.constant]
        divisor = math.gcd(*counts)
        self.counts = [count // divisor for count in counts]
        self.total = sum(self.counts)

    @staticmethod
    def affordable(families: Sequence[Family], counts: Sequence[int]) -> bool:
        """Whether one round stays within the budget."""
        total = sum(counts) // math.gcd(*counts)
        size = max(family.capacity for family in families) * total
        return size * len(counts) * (1 + math.log2(len(counts))) <= MOST_TABLE_ENTRIES

    def least_loss(self, count: int) -> LeastLoss | None:
        """Columns that lose least, where all columns are of one box; else None."""
        if len(self.families) > 1 or not isinstance(self.families[0], Box):
            return None
        return least_loss(self.kernel, self.families[0], self.counts, count, np.random.default_rng(0))

    def price(
        self, multipliers: FloatArray, most: int, enough: float, clock: Clock = FOREVER
    ) -> Priced[Columns]:
        """The best column for each letter between; see `Pricer.price`."""
        costs = self.kernel.p * multipliers
        best, found = -math.inf, []
        for family in self.families:
            price = self._box if isinstance(family, Box) else self._stairs
            value, columns = price(family, costs, most)  # type: ignore[arg-type]
            best = max(best, value)
            if len(columns):
                found.append(columns)
        return Priced(best, best, found)

    def bound(self, multipliers: FloatArray, enough: float, clock: Clock = FOREVER) -> float:
        """The best column's; see `Pricer.bound`."""
        return self.price(multipliers, 1, enough, clock).upper

    def _box(self, box: Box, costs: FloatArray, most: int) -> tuple[float, Columns]:
        p, limit = self.kernel.p, math.floor(box.capacity * self.total * (1 + 1e-13))
        ends = self.kernel.at(box.low), self.kernel.at(box.high)
        tops: list[tuple[float, int, int]] = []  # value, letter between, total count of the set
        for letter, table in self._without_each(np.arange(len(p)), costs, _empty(limit)):
            first = max(0, math.ceil((box.capacity * self.total) * (1 - 1e-13)) - self.counts[letter])
            mass = np.arange(first, limit + 1) / self.total
            rest = np.maximum(1 - box.low - (box.high - box.low) * mass, 0.0)
            entry = np.minimum(box.low + rest / p[letter], box.high)
            worth = mass * ends[1] + p[letter] * self.kernel.phi(entry) + (1 - mass - p[letter]) * ends[0]
            paid = (box.high - box.low) * table[first:] + (entry - box.low) * costs[letter]
            values = worth - paid - box.low * costs.sum()
            if len(values):
                place = int(values.argmax())
                tops.append((float(values[place]), letter, first + place))
        tops = [
            top for top in sorted(tops, reverse=True)[: min(most, _COLUMNS_PER_ROUND)] if top[0] > -math.inf
        ]
        sets = [self._set(costs, total, without=letter) for _, letter, total in tops]
        best = tops[0][0] if tops else -math.inf
        letters = np.array([letter for _, letter, _ in tops], int)
        return best, Columns(box, np.array(sets, bool).reshape(-1, len(costs)), letters)

    def _stairs(self, family: Staircase, costs: FloatArray, most: int) -> tuple[float, Columns]:
        limit = math.ceil(family.capacity * self.total * (1 - 1e-13)) - 1
        table = _empty(limit)
        for letter in range(len(costs)):
            table = _with(table, self.counts[letter], costs[letter])
        mass = np.arange(1, limit + 1) / self.total
        low, step, _ = family.fill(mass, np.zeros(limit))
        worth = mass * self.kernel.phi(low + step) + (1 - mass) * self.kernel.phi(low)
        values = worth - low * costs.sum() - step * table[1:]
        top = np.argsort(-values, kind="stable")[: min(most, _COLUMNS_PER_ROUND)]
        top = top[values[top] > -math.inf]
        sets = [self._set(costs, int(place) + 1) for place in top]
        best = float(values[top[0]]) if len(top) else -math.inf
        return best, Columns(family, np.array(sets, bool).reshape(-1, len(costs)), np.full(len(top), -1))

    def _without_each(
        self, letters: IntArray, costs: FloatArray, table: FloatArray
    ) -> Iterator[tuple[int, FloatArray]]:
        """For each of the letters, the table of all letters but it, given that of all but these letters."""
        if len(letters) == 1:
            yield int(letters[0]), table
            return
        halves = letters[: len(letters) // 2], letters[len(letters) // 2 :]
        for kept, added in (halves, halves[::-1]):
            extended = table
            for letter in added:
                extended = _with(extended, self.counts[letter], costs[letter])
            yield from self._without_each(kept, costs, extended)

    def _set(self, costs: FloatArray, total: int, without: int = -1) -> list[bool]:
        """The cheapest set of a total count, by walking back through the tables."""
        letters = [letter for letter in range(len(costs)) if letter != without]
        table, taken = _empty(total), []
        for letter in letters:
            extended = _with(table, self.counts[letter], costs[letter])
            taken.append(extended < table)
            table = extended
        chosen, left = [False] * len(costs), total
        for letter, took in zip(reversed(letters), reversed(taken), strict=True):
            if took[left]:
                chosen[letter] = True
                left -= self.counts[letter]
        return chosen


_COLUMNS_PER_ROUND = 15
"""Columns of one round: finding the set of each costs a table for every letter."""


def _empty(limit: int) -> FloatArray:
    """The table of no letters: only the total 0 can be had."""
    table = np.full(limit + 1, np.inf)
    table[0] = 0.0
    return table


def _with(table: FloatArray, count: int, cost: float) -> FloatArray:
    """The table with one more letter."""
    extended = table.copy()
    if count < len(table):
        np.minimum(extended[count:], table[: len(table) - count] + cost, out=extended[count:])
    return extended
