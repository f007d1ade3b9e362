"""Exact pricing for integer-count priors by dynamic programming over the total count."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from functools import partial
from heapq import nlargest
from typing import ClassVar

import numpy as np

from pmlopt.core.lazy_imports import optimize, sparse
from pmlopt.core.numbers.arrays import BoolArray, FloatArray, IntArray
from pmlopt.model.uncertainty.columns import BoxFamily, Family, StaircaseFamily
from pmlopt.programs.subconvex.columns import (
    CAPACITY_RTOL,
    ColumnFamily,
    ColumnPricer,
    ColumnUtility,
    PricingResult,
    join_columns,
)
from pmlopt.programs.subconvex.subset_cores import MAX_CORE_LETTERS, SubsetCore, build_random_sets
from pmlopt.solvers.solver_result import NO_DEADLINE, Deadline


def draw_sets(
    counts: IntArray, letters: IntArray, total: int, wanted: int, rng: np.random.Generator
) -> BoolArray:
    """Draw (K, N) random sets of letters with a given total count.

    Letters in a random order are taken until little is missing, and that is filled up from a core of other
    letters, whose subsets are met in the middle.

    Source: Horowitz and Sahni, Computing partitions with applications to the knapsack problem, J. ACM 21
    (1974), for the search.

    Examples:
        >>> draw_sets(np.array([1, 2, 3, 4]), np.array([0, 1, 3]), 5, 1, np.random.default_rng(0))
        array([[ True, False, False,  True]])
    """
    # six letters more than there are bits of the total give some 64 subsets for each total
    size = min(MAX_CORE_LETTERS, int(counts.sum()).bit_length() + 6)
    rest = partial(SubsetCore.draw_subsets_of_mass, rng=rng)
    # one core of letters completes ten random sets
    return build_random_sets(counts.astype(float), letters, total, (wanted, 10), size, rest, rng)


NEGLIGIBLE_WEIGHT = 1e-9
"""Weights of kinds of columns, and prices as a share of the losses, that are more than rounding."""


def mix_least_loss(
    kernel: ColumnUtility,
    box: BoxFamily,
    counts: Sequence[int],
    count: int,
    rng: np.random.Generator,
) -> tuple[ColumnFamily, FloatArray] | None:
    """Return the columns of an optimal mixture by a small LP, where every total count is feasible.

    A set S at `high` holds a whole number of counts. Where the capacity R, in counts, is none, each column
    has a letter f between, of which a rest `r = R - c(S)` of its c[f] counts is high, so to speak, and it is
    worth less than the chords of phi by a concave function of r. So it loses least at the ends, where
    `c(S) = floor(R)` or `floor(R) - c[f] + 1`. How the 2 N kinds of columns are mixed is a linear program in
    their weights w: `min <loss, w>` over `sum w = 1`, where what a letter has from the columns in which it
    is between, and may have from the others, meets its row. Its multipliers, on top of the slopes of the
    chords, are rho. The columns are random sets of these totals, without the letters whose price is above
    zero, and with those below.

    The columns were not compared with all others: pricing decides whether rho bounds them.

    Returns:
        The columns, on random sets, and rho, at which none of them is worth more than the others; None where
        the letters below the capacity are too few to exceed it, or no sets were found.

    Raises:
        ArithmeticError: the linear program does not end at an optimum.
    """
    numbers = np.array(counts)
    limit = box.max_mass * float(numbers.sum())
    # a letter above the capacity is never high as a whole: it can only be the one between
    light = numbers < limit
    # all light letters fit at once: no set of them fills the capacity
    if numbers[light].sum() <= limit:
        return None
    kinds = _CountKinds(kernel, box, numbers, np.flatnonzero(light), limit)
    weights, prices = kinds.solve_mixture(limit / float(numbers[light].sum()))
    parts = []
    for kind in np.flatnonzero(weights > NEGLIGIBLE_WEIGHT):
        letter = int(kinds.letter[kind])
        others = light & (np.arange(len(numbers)) != letter)
        # complementary slackness: a negative price puts the letter in, a positive one out
        always = others & (prices < 0)
        free = np.flatnonzero(others & (prices == 0))
        inside = int(kinds.inside[kind] - numbers[always].sum())
        high = draw_sets(numbers, free, inside, math.ceil(count * weights[kind]), rng)
        high[:, always] = True  # what the prices require
        parts.append(ColumnFamily(box, high, np.full(len(high), letter)))
    columns = join_columns(parts)
    if len(columns) == 0:
        return None
    # a heavy letter's own column loses nothing: its multiplier makes it worth as much as the others
    above = np.where(
        light, prices / (kernel.p * (box.high - box.low)), kinds.min_loss(prices) / (1 - box.low)
    )
    return columns, kernel.chord_slopes(box) + above


class _CountKinds:
    """Two kinds of columns for each fractional letter: next to the lower and next to the upper bound.

    Attributes:
        letter: (K,) f.
        share: (K,) how far it is from low to high.
        inside: (K,) the total count of the set.
        loss: (K,) what the column is worth less than the chords of phi.
    """

    def __init__(
        self,
        kernel: ColumnUtility,
        box: BoxFamily,
        counts: IntArray,
        letters: IntArray,
        limit: float,
    ) -> None:
        # a total count may be off an integer by rounding
        whole = math.floor(limit + 1e-9)
        # rest in [0, 1) of a count is what no set of whole counts can fill
        rest = max(0.0, limit - whole)
        own = counts[letters]
        self.letter = np.tile(letters, 2)
        self._size = len(counts)
        self.inside = np.concatenate([np.full(len(letters), whole), whole - own + 1])
        # the two ends of a concave loss: the letter between holds r, or c[f] - 1 + r counts
        self.share = np.concatenate([rest / own, (own - 1 + rest) / own])
        low = kernel.evaluate_phi(box.low)
        high = kernel.evaluate_phi(box.high)
        chord = low + self.share * (high - low)
        short = chord - kernel.phi(box.low + self.share * (box.high - box.low))
        # phi is convex, so the chord is above it; a negative loss is rounding
        self.loss = np.maximum(kernel.p[self.letter] * short, 0.0)

    def solve_mixture(self, mean: float) -> tuple[FloatArray, FloatArray]:
        """Solve for the (K,) optimal mixture weights and the (N,) multipliers.

        Args:
            mean: how far each letter goes from low to high, in the mean over the columns.

        Raises:
            ArithmeticError: HiGHS does not end at an optimum.
        """
        places = np.arange(len(self.letter))
        scale = float(self.loss.max()) or 1.0
        shape = (self._size, len(places))
        parts = (self.share, 1 - self.share)
        rows = [sparse.csr_array((part, (self.letter, places)), shape=shape) for part in parts]
        solved = optimize.linprog(
            self.loss / scale,
            A_ub=sparse.vstack(rows),  # neither more nor less than the row requires
            b_ub=np.repeat([mean, 1 - mean], self._size),
            A_eq=np.ones((1, len(places))),
            b_eq=[1.0],
            method="highs",
        )
        if not solved.success:
            raise ArithmeticError(f"the mixture of columns: {solved.message}")
        # one-sided marginals of the two rows of a letter; at most one of them binds
        more, less = -solved.ineqlin.marginals.reshape(2, self._size)
        prices = more - less
        kept = np.where(np.abs(prices) > NEGLIGIBLE_WEIGHT, prices, 0.0)
        return np.asarray(solved.x), kept * scale

    def min_loss(self, prices: FloatArray) -> float:
        """Compute the smallest reduced loss of a column at given multipliers."""
        # letters of negative price are in every best set, but for the letter between
        cheap = np.minimum(prices, 0.0)
        return float(
            (self.loss + prices[self.letter] * self.share - cheap[self.letter]).min() + cheap.sum()
        )


class CountPricer(ColumnPricer):
    """The exact pricing for priors with integer counts of modest total.

    `K[t]`, the least cost of a set of total count t, is a knapsack table. A column with a letter f between
    needs the table of all other letters; these N tables come from halving the alphabet again and again, so
    that N log N updates of a table suffice.
    """

    MAX_COLUMNS_PER_ROUND: ClassVar[int] = 15
    """Columns of one round: finding the set of each costs a table for every letter."""

    name: ClassVar[str] = "counts"

    def __init__(
        self, kernel: ColumnUtility, families: Sequence[Family], counts: Sequence[int]
    ) -> None:
        self.kernel = kernel
        self.families = [family for family in families if not family.is_constant_only]
        # a common factor only makes the tables longer
        divisor = math.gcd(*counts)
        self.counts = [count // divisor for count in counts]
        self.total = sum(self.counts)

    @staticmethod
    def is_affordable(families: Sequence[Family], counts: Sequence[int]) -> bool:
        """Return whether one pricing round fits the computing budget."""
        total = sum(counts) // math.gcd(*counts)
        # a table ends at the capacity, and N log N updates of it are one round
        size = max(family.max_mass for family in families) * total
        # one round of pricing computes at most 1e8 table entries
        return size * len(counts) * (1 + math.log2(len(counts))) <= 100_000_000

    def mix_least_loss(self, count: int) -> tuple[ColumnFamily, FloatArray] | None:
        """Return an optimal mixture with its multipliers for a single box family; else None."""
        if len(self.families) > 1 or not isinstance(self.families[0], BoxFamily):
            return None
        return mix_least_loss(
            self.kernel, self.families[0], self.counts, count, np.random.default_rng(0)
        )

    def price_columns(
        self, rho: FloatArray, max_columns: int, cutoff: float, deadline: Deadline = NO_DEADLINE
    ) -> PricingResult[ColumnFamily]:
        """Find the best column for each fractional letter; see `ColumnPricer.price_columns`."""
        costs = self.kernel.p * rho
        best = -math.inf
        found = []
        for family in self.families:
            price = self._price_box if isinstance(family, BoxFamily) else self._price_staircases
            value, columns = price(family, costs, max_columns)  # type: ignore[arg-type]
            best = max(best, value)
            if len(columns):
                found.append(columns)
        return PricingResult(best, best, found)

    def _price_box(
        self, box: BoxFamily, costs: FloatArray, max_columns: int
    ) -> tuple[float, ColumnFamily]:
        """Price a box family by knapsack dynamic programming over integer counts."""
        p = self.kernel.p
        limit = math.floor(box.max_mass * self.total * (1 + 1e-13))
        ends = self.kernel.evaluate_phi(box.low), self.kernel.evaluate_phi(box.high)
        tops: list[tuple[float, int, int]] = []  # value, letter between, total count of the set
        for letter, table in self._tables_without_each(
            np.arange(len(p)), costs, _make_empty_table(limit)
        ):
            first = max(
                0,
                math.ceil((box.max_mass * self.total) * (1 - CAPACITY_RTOL)) - self.counts[letter],
            )
            mass = np.arange(first, limit + 1) / self.total
            # what the letter between holds, by mean one; below zero by rounding only
            rest = np.maximum(1 - box.low - (box.high - box.low) * mass, 0.0)
            entry = np.minimum(box.low + rest / p[letter], box.high)
            utilities = (
                mass * ends[1]
                + p[letter] * self.kernel.phi(entry)
                + (1 - mass - p[letter]) * ends[0]
            )
            # unreachable totals cost inf, so that their value is -inf and they drop out
            paid = (box.high - box.low) * table[first:] + (entry - box.low) * costs[letter]
            values = utilities - paid - box.low * costs.sum()
            if len(values):
                place = int(values.argmax())
                tops.append((float(values[place]), letter, first + place))
        tops = [
            top
            for top in nlargest(min(max_columns, self.MAX_COLUMNS_PER_ROUND), tops)
            if top[0] > -math.inf
        ]
        sets = [self._trace_set(costs, total, without=letter) for _, letter, total in tops]
        best = tops[0][0] if tops else -math.inf
        letters = np.array([letter for _, letter, _ in tops], int)
        return best, ColumnFamily(box, np.array(sets, bool).reshape(-1, len(costs)), letters)

    def _price_staircases(
        self, family: StaircaseFamily, costs: FloatArray, max_columns: int
    ) -> tuple[float, ColumnFamily]:
        # strictly below the capacity: at it the base of the staircase vanishes
        """Find the best columns of a staircase family by a knapsack table over the prior's counts."""
        limit = math.ceil(family.max_mass * self.total * (1 - CAPACITY_RTOL)) - 1
        table = _make_empty_table(limit)
        for letter in range(len(costs)):
            table = _add_letter(table, self.counts[letter], costs[letter])
        mass = np.arange(1, limit + 1) / self.total
        low, step, _ = family.compute_values(mass, np.zeros(limit))
        utilities = mass * self.kernel.phi(low + step) + (1 - mass) * self.kernel.phi(low)
        values = utilities - low * costs.sum() - step * table[1:]
        # stable: ties end the same way on every machine
        top = np.argsort(-values, kind="stable")[: min(max_columns, self.MAX_COLUMNS_PER_ROUND)]
        top = top[values[top] > -math.inf]
        sets = [self._trace_set(costs, int(place) + 1) for place in top]
        best = float(values[top[0]]) if len(top) else -math.inf
        return best, ColumnFamily(
            family, np.array(sets, bool).reshape(-1, len(costs)), np.full(len(top), -1)
        )

    def _tables_without_each(
        self, letters: IntArray, costs: FloatArray, table: FloatArray
    ) -> Iterator[tuple[int, FloatArray]]:
        """Yield each letter with the knapsack table of all other letters, by divide and conquer."""
        if len(letters) == 1:
            yield int(letters[0]), table
            return
        # each half sees the table with the other half added: N log N updates, not N^2
        halves = letters[: len(letters) // 2], letters[len(letters) // 2 :]
        for kept, added in (halves, halves[::-1]):
            extended = table
            for letter in added:
                extended = _add_letter(extended, self.counts[letter], costs[letter])
            yield from self._tables_without_each(kept, costs, extended)

    def _trace_set(self, costs: FloatArray, total: int, without: int = -1) -> list[bool]:
        """Recover the cheapest set of a total count by backtracking through the tables."""
        letters = [letter for letter in range(len(costs)) if letter != without]
        table = _make_empty_table(total)
        taken = []
        for letter in letters:
            extended = _add_letter(table, self.counts[letter], costs[letter])
            # strict: on ties the letter stays out, the same way forwards and backwards
            taken.append(extended < table)
            table = extended
        chosen = [False] * len(costs)
        left = total
        for letter, took in zip(reversed(letters), reversed(taken), strict=True):
            if took[left]:
                chosen[letter] = True
                left -= self.counts[letter]
        return chosen


def _make_empty_table(limit: int) -> FloatArray:
    """Build the knapsack table of the empty set."""
    table = np.full(limit + 1, np.inf)
    table[0] = 0.0
    return table


def _add_letter(table: FloatArray, count: int, cost: float) -> FloatArray:
    """Extend the knapsack table by one letter."""
    extended = table.copy()
    if count < len(table):
        # from a copy: in place a letter could be taken twice
        np.minimum(extended[count:], table[: len(table) - count] + cost, out=extended[count:])
    return extended
