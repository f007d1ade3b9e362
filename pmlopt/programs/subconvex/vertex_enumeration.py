"""Enumeration of all extreme columns: counting, listing without duplicates, and pricing."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import ClassVar, Generic, TypeAlias, TypeVar

import numpy as np

from pmlopt.core.numbers.arrays import FloatArray, compute_subset_sums
from pmlopt.model.uncertainty.columns import TIE_ATOL, BoxFamily, Family, StaircaseFamily
from pmlopt.programs.subconvex.columns import (
    CAPACITY_RTOL,
    LETTERS_PER_WORD,
    ColumnFamily,
    ColumnPricer,
    ColumnUtility,
    DenseBatch,
    PricingResult,
    argsort_largest,
    join_columns,
    pack_sets,
    sum_over_sets,
    unpack_sets,
)
from pmlopt.solvers.solver_result import NO_DEADLINE, Deadline


def count_vertices(p: FloatArray, families: Sequence[Family]) -> int | None:
    """Count the extreme columns of families; None past 40 letters.

    For a box it is the sum of N - 2 |S| over the sets S with p(S) within the capacity, since each extreme
    column is a set within it and a letter that does not fit any more. The sets are counted from two
    halves, so that N letters cost 2^(N/2). Where a set fits exactly, the columns that coincide are counted
    as often as they occur.

    Examples:
        >>> count_vertices(np.full(4, 0.25), [BoxFamily(0.0, 1.6)])  # two letters of 0.25 fit, a third not
        12
    """
    # on more than 40 letters listing stops at the limit, without counting first
    return None if len(p) > 40 else sum(_count_family(p, family) for family in families)


def _count_family(p: FloatArray, family: Family) -> int:
    """Count the extreme columns of a family."""
    n = len(p)
    if family.is_constant_only:
        return 1
    # each set is a pair of subsets of the halves: 2^(N/2) sums on either side
    left = p[: n // 2]
    right = p[n // 2 :]
    masses = compute_subset_sums(left)
    sizes = compute_subset_sums(np.ones(len(left)))
    # sorted once, so that each left subset finds its partners by one bisection
    order = np.argsort(compute_subset_sums(right))
    others = compute_subset_sums(right)[order]
    # prefix sums of |S| over the right subsets, to add up N - 2 |S| without listing pairs
    filled = np.concatenate([[0.0], np.cumsum(compute_subset_sums(np.ones(len(right)))[order])])
    # a staircase needs a set strictly lighter than the capacity; a box may fill it exactly
    strict = isinstance(family, StaircaseFamily)
    room = family.max_mass * (1 - CAPACITY_RTOL if strict else 1 + CAPACITY_RTOL) - masses
    fitting = np.searchsorted(others, room, side="left" if strict else "right")
    if strict:
        return int(fitting.sum()) - 1  # all but the empty set
    return round(float(((n - 2 * sizes) * fitting - 2 * filled[fitting]).sum()))


def list_vertices(
    p: FloatArray, families: Sequence[Family], limit: int
) -> list[ColumnFamily] | None:
    """List every extreme column once, by family; None where there are more than `limit`.

    Examples:
        >>> [columns] = list_vertices(np.full(4, 0.25), [BoxFamily(0.0, 2.0)], 100)
        >>> columns.build_lifts(np.full(4, 0.25)).T.tolist()[:2], len(columns)
        ([[2.0, 2.0, 0.0, 0.0], [2.0, 0.0, 2.0, 0.0]], 6)
    """
    listed = []
    for family in families:
        if family.is_constant_only:
            continue
        found = (
            _list_box(p, family, limit)
            if isinstance(family, BoxFamily)
            else _list_staircases(p, family, limit)
        )
        if found is None:
            return None
        # the limit is for all families together
        limit -= len(found)
        if len(found):
            listed.append(found)
    return listed


def _list_box(p: FloatArray, box: BoxFamily, limit: int) -> ColumnFamily | None:
    """Enumerate a box family's columns letter by letter, pruning infeasible partial sets."""
    n = len(p)
    max_mass = box.max_mass * (1 + CAPACITY_RTOL)
    least = box.max_mass * (1 - CAPACITY_RTOL)
    # the largest letters first: partial columns that exceed the capacity die early
    order = np.argsort(-p, kind="stable")
    # the mass of all later letters: what a partial column can still gain
    suffix = np.append(np.cumsum(p[order][::-1])[::-1], 0.0)
    sets = np.zeros((1, -(-n // LETTERS_PER_WORD)), np.uint16)
    mass = np.zeros(1)
    between = np.full(1, -1)
    for place, letter in enumerate(order):
        fits = np.flatnonzero(mass + p[letter] <= max_mass)
        free = np.flatnonzero(between < 0)
        joined = sets[fits]
        joined[:, letter // LETTERS_PER_WORD] |= np.uint16(1 << letter % LETTERS_PER_WORD)
        sets = np.concatenate([sets, joined, sets[free]])
        mass = np.concatenate([mass, mass[fits] + p[letter], mass[free]])
        between = np.concatenate([between, between[fits], np.full(len(free), letter)])
        # a partial column that cannot reach the capacity with all later letters is dropped
        alive = np.flatnonzero(
            mass + np.where(between >= 0, p[between], 0.0) + suffix[place + 1] >= least
        )
        # partial columns end in about as many columns; past four times the limit it is given up
        if len(alive) > 4 * limit:
            return None
        sets = sets[alive]
        mass = mass[alive]
        between = between[alive]
    if len(mass) > limit:
        return None
    return _drop_duplicates(ColumnFamily(box, unpack_sets(sets, n), between), mass, p)


def _drop_duplicates(columns: ColumnFamily, mass: FloatArray, p: FloatArray) -> ColumnFamily:
    """Drop duplicates among columns without a fractional letter, in a canonical form."""
    room = np.where(columns.between >= 0, p[columns.between], 0.0)
    capacity = columns.family.max_mass
    # where a set fills the capacity exactly any letter outside may be the one between
    exact = np.minimum(np.abs(mass - capacity), np.abs(mass + room - capacity)) <= 4 * TIE_ATOL
    if exact.any():
        return join_columns([columns[exact].drop_duplicates(p), columns[~exact]])
    return columns


def _list_staircases(p: FloatArray, family: StaircaseFamily, limit: int) -> ColumnFamily | None:
    """Enumerate the staircases: non-empty sets below the capacity."""
    n = len(p)
    if 2**n > 4 * limit:
        return None
    # bit x of the index is letter x; neither the empty set nor that of all letters
    index = np.arange(1, 2**n - 1)
    index = index[compute_subset_sums(p)[1:-1] < family.max_mass * (1 - CAPACITY_RTOL)]
    if len(index) > limit:
        return None
    return ColumnFamily(family, (index[:, None] >> np.arange(n)) & 1 == 1, np.full(len(index), -1))


ColumnValues: TypeAlias = ColumnUtility | Callable[[FloatArray], FloatArray]
"""The utility's kernel, or a function from (N, K) columns of mean one to (K,) worths."""


B = TypeVar("B", ColumnFamily, DenseBatch)


class VertexPricer(ColumnPricer, Generic[B]):
    """The pricing by enumeration of all extreme columns: exact, for any utility."""

    name: ClassVar[str] = "vertices"

    def __init__(self, p: FloatArray, listed: Sequence[B], worths: ColumnValues) -> None:
        self.p = p
        self.listed: Sequence[B] = listed
        self.parts = [_ListedColumns(p, one, worths) for one in listed]

    @property
    def max_value(self) -> float:
        """Return the largest utility of a listed column."""
        return max((float(part.utilities.max()) for part in self.parts), default=0.0)

    def price_columns(
        self, rho: FloatArray, max_columns: int, cutoff: float, deadline: Deadline = NO_DEADLINE
    ) -> PricingResult[B]:
        """Find the best columns of the list; see `ColumnPricer.price_columns`."""
        best = -np.inf
        found = []
        for part, columns in zip(self.parts, self.listed, strict=True):
            values = part.utilities - part.costs(self.p * rho)
            # exact: the list has every extreme column, so the best value is the bound, too
            top = argsort_largest(values, max_columns)
            best = max(best, float(values[top[0]]))
            found.append(columns[top])
        return PricingResult(best, best, found)


class _ListedColumns:
    """The columns of one list with cached utilities and costs.

    Those of a family are lam = low + step on S + extra at f, with S as words of 16 letters.
    """

    def __init__(
        self, p: FloatArray, columns: ColumnFamily | DenseBatch, worths: ColumnValues
    ) -> None:
        # in blocks, to limit the memory
        sets_at_a_time = 50_000
        self.columns = columns
        of = worths.column_values if isinstance(worths, ColumnUtility) else worths
        if isinstance(columns, DenseBatch):
            self.utilities = of(columns.entries)
            return
        self.sets = pack_sets(columns.high)
        self.letter = np.where(columns.between >= 0, columns.between, 0)
        room = np.where(columns.between >= 0, p[self.letter], 0.0)
        mass = sum_over_sets(self.sets, p)
        self.low, self.step, self.extra = columns.family.compute_values(mass, room)
        if isinstance(worths, ColumnUtility):
            self.utilities = worths.two_level_values(mass, room, self.low, self.step, self.extra)
            return
        parts = [
            slice(start, start + sets_at_a_time) for start in range(0, len(columns), sets_at_a_time)
        ]
        self.utilities = np.concatenate([of(columns[part].build_lifts(p)) for part in parts])

    def costs(self, prices: FloatArray) -> FloatArray:
        """Compute the (K,) costs of the columns at letter multipliers p[x] rho[x]."""
        if isinstance(self.columns, DenseBatch):
            return prices @ self.columns.entries
        # linear in the column: low everywhere, step on S, extra on the letter between
        spent = self.low * prices.sum() + self.step * sum_over_sets(self.sets, prices)
        return np.asarray(spent + self.extra * prices[self.letter])
