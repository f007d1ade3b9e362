"""All extreme columns: how many there are, listed without repetition, and priced from the list."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import ClassVar, Generic, TypeAlias, TypeVar

import numpy as np

from pmlopt.core.arrays import FloatArray, subset_sums
from pmlopt.model.uncertainty.columns import TIE, Box, Family, Staircase
from pmlopt.programs.subconvex.columns import (
    LETTERS_PER_WORD,
    Columns,
    Explicit,
    Kernel,
    Priced,
    Pricer,
    joined,
    largest,
    sets_of,
    sums_over,
    words,
)
from pmlopt.solvers.outcome import FOREVER, Clock

_FEASIBILITY_SLACK = 1e-13


def count_vertices(p: FloatArray, families: Sequence[Family]) -> int | None:
    """Count the extreme columns, without listing them; None past 40 letters.

    For a box it is the sum of N - 2 |S| over the sets S with p(S) within the capacity, since each extreme
    column is a set within it and a letter that does not fit any more. The sets are counted from two
    halves, so that N letters cost 2^(N/2). Where a set fits exactly, the columns that coincide are counted
    as often as they occur.

    Examples:
        >>> count_vertices(np.full(4, 0.25), [Box(0.0, 1.6)])  # two letters of 0.25 fit, a third not
        12
    """
    # on more than 40 letters listing stops at the limit, without counting first
    return None if len(p) > 40 else sum(_count(p, family) for family in families)


def _count(p: FloatArray, family: Family) -> int:
    n = len(p)
    if family.constant:
        return 1
    left, right = p[: n // 2], p[n // 2 :]
    masses, sizes = subset_sums(left), subset_sums(np.ones(len(left)))
    order = np.argsort(subset_sums(right))
    others = subset_sums(right)[order]
    filled = np.concatenate([[0.0], np.cumsum(subset_sums(np.ones(len(right)))[order])])
    strict = isinstance(family, Staircase)
    room = family.capacity * (1 - _FEASIBILITY_SLACK if strict else 1 + _FEASIBILITY_SLACK) - masses
    fitting = np.searchsorted(others, room, side="left" if strict else "right")
    if strict:
        return int(fitting.sum()) - 1  # all but the empty set
    return round(float(((n - 2 * sizes) * fitting - 2 * filled[fitting]).sum()))


def vertices(p: FloatArray, families: Sequence[Family], limit: int) -> list[Columns] | None:
    """List every extreme column, each once, by family; None where there are more than `limit`.

    Examples:
        >>> [columns] = vertices(np.full(4, 0.25), [Box(0.0, 2.0)], 100)
        >>> columns.lifts(np.full(4, 0.25)).T.tolist()[:2], len(columns)
        ([[2.0, 2.0, 0.0, 0.0], [2.0, 0.0, 2.0, 0.0]], 6)
    """
    listed = []
    for family in families:
        if family.constant:
            continue
        found = _box(p, family, limit) if isinstance(family, Box) else _stairs(p, family, limit)
        if found is None:
            return None
        limit -= len(found)
        if len(found):
            listed.append(found)
    return listed


def _box(p: FloatArray, box: Box, limit: int) -> Columns | None:
    """List a box's columns letter by letter, the largest first, and drop partial columns that cannot end."""
    n, most = len(p), box.capacity * (1 + _FEASIBILITY_SLACK)
    least = box.capacity * (1 - _FEASIBILITY_SLACK)
    order = np.argsort(-p, kind="stable")
    suffix = np.append(np.cumsum(p[order][::-1])[::-1], 0.0)
    sets = np.zeros((1, -(-n // LETTERS_PER_WORD)), np.uint16)
    mass, between = np.zeros(1), np.full(1, -1)
    for place, letter in enumerate(order):
        fits, free = np.flatnonzero(mass + p[letter] <= most), np.flatnonzero(between < 0)
        joined = sets[fits]
        joined[:, letter // LETTERS_PER_WORD] |= np.uint16(1 << letter % LETTERS_PER_WORD)
        sets = np.concatenate([sets, joined, sets[free]])
        mass = np.concatenate([mass, mass[fits] + p[letter], mass[free]])
        between = np.concatenate([between, between[fits], np.full(len(free), letter)])
        alive = np.flatnonzero(mass + np.where(between >= 0, p[between], 0.0) + suffix[place + 1] >= least)
        if len(alive) > 4 * limit:
            return None
        sets, mass, between = sets[alive], mass[alive], between[alive]
    if len(mass) > limit:
        return None
    return _distinct(Columns(box, sets_of(sets, n), between), mass, p)


def _distinct(columns: Columns, mass: FloatArray, p: FloatArray) -> Columns:
    """Put the columns that fit exactly into one form and list them once: only those can coincide."""
    room = np.where(columns.between >= 0, p[columns.between], 0.0)
    capacity = columns.family.capacity
    exact = np.minimum(np.abs(mass - capacity), np.abs(mass + room - capacity)) <= 4 * TIE
    return joined([columns[exact].distinct(p), columns[~exact]]) if exact.any() else columns


def _stairs(p: FloatArray, family: Staircase, limit: int) -> Columns | None:
    """List every set whose mass leaves room below, but the empty one."""
    n = len(p)
    if 2**n > 4 * limit:
        return None
    index = np.arange(1, 2**n - 1)
    index = index[subset_sums(p)[1:-1] < family.capacity * (1 - _FEASIBILITY_SLACK)]
    if len(index) > limit:
        return None
    return Columns(family, (index[:, None] >> np.arange(n)) & 1 == 1, np.full(len(index), -1))


Worths: TypeAlias = Kernel | Callable[[FloatArray], FloatArray]
"""The utility's kernel, or a function from (N, K) columns of mean one to (K,) worths."""


B = TypeVar("B", Columns, Explicit)


class VertexPricer(Pricer, Generic[B]):
    """The pricing from the list of all extreme columns: exact, for any utility."""

    name: ClassVar[str] = "vertices"

    def __init__(self, p: FloatArray, listed: Sequence[B], worths: Worths) -> None:
        self.p = p
        self.listed: Sequence[B] = listed
        self.parts = [_Listed(p, one, worths) for one in listed]

    @property
    def largest(self) -> float:
        """Return the largest value of a column; 0 without one."""
        return max((float(part.worth.max()) for part in self.parts), default=0.0)

    def price(self, rho: FloatArray, most: int, enough: float, clock: Clock = FOREVER) -> Priced[B]:
        """Find the best columns of the list; see `ColumnPricer.price_columns`."""
        best, found = -np.inf, []
        for part, columns in zip(self.parts, self.listed, strict=True):
            values = part.worth - part.costs(self.p * rho)
            top = largest(values, most)
            best = max(best, float(values[top[0]]))
            found.append(columns[top])
        return Priced(best, best, found)


class _Listed:
    """The columns of one list, with their values and costs.

    Those of a family are lam = low + step on S + extra at f, with S as words of 16 letters.
    """

    def __init__(self, p: FloatArray, columns: Columns | Explicit, worths: Worths) -> None:
        # in blocks, to limit the memory
        sets_at_a_time = 50_000
        self.columns, of = columns, worths.worth if isinstance(worths, Kernel) else worths
        if isinstance(columns, Explicit):
            self.worth = of(columns.entries)
            return
        self.sets = words(columns.high)
        self.letter = np.where(columns.between >= 0, columns.between, 0)
        room = np.where(columns.between >= 0, p[self.letter], 0.0)
        mass = sums_over(self.sets, p)
        self.low, self.step, self.extra = columns.family.fill(mass, room)
        if isinstance(worths, Kernel):
            self.worth = worths.worth_of(mass, room, self.low, self.step, self.extra)
            return
        parts = [slice(start, start + sets_at_a_time) for start in range(0, len(columns), sets_at_a_time)]
        self.worth = np.concatenate([of(columns[part].lifts(p)) for part in parts])

    def costs(self, prices: FloatArray) -> FloatArray:
        """Compute (K,) the costs of the columns, at the prices p[x] rho[x] of the letters."""
        if isinstance(self.columns, Explicit):
            return np.asarray(prices @ self.columns.entries)
        spent = self.low * prices.sum() + self.step * sums_over(self.sets, prices)
        return np.asarray(spent + self.extra * prices[self.letter])
