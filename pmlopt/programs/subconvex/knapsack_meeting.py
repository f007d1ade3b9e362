"""Exact pricing of the columns of a box by subsets of either half of the letters, met in the middle."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from pmlopt.arrays import BoolArray, FloatArray, IntArray
from pmlopt.programs.subconvex.column_batch import Columns
from pmlopt.programs.subconvex.kernel import Kernel
from pmlopt.programs.subconvex.knapsack_branch_and_bound import largest
from pmlopt.programs.subconvex.knapsack_relaxation import Knapsack
from pmlopt.uncertainty.column_families import Box

MOST_HALF_SUBSETS = 1_000_000
"""Subsets of half of the letters that are listed."""

MOST_MEETINGS = 2_000_000
"""Pairs of subsets that are looked at."""

_BISECTIONS = 60
"""Halvings of an interval of masses: to its rounding."""

_ROUNDING = 1e-13
"""Share of a value that is added to a budget, so that no column is lost by rounding."""


@dataclass(frozen=True, eq=False)
class Meeting:
    """All columns of a box that are worth more than a threshold.

    Attributes:
        best: the largest value among them; -inf where there is none.
        columns: the best of them.
    """

    best: float
    columns: Columns


def columns_above(
    kernel: Kernel, box: Box, multipliers: FloatArray, threshold: float, most: int
) -> Meeting | None:
    """The columns lam of a box with `mu(lam) - <p rho, lam>` above a threshold; None where it takes too long.

    With the chords of phi in place of phi, a column is worth at most U, what the fractional knapsack holds.
    What it falls short of U by is at most the budget `U - threshold`: each letter in the wrong set takes off
    its mass times what it gains less than the letter at the edge, and the letter between what phi is below
    its chord. So letters whose place is sure are fixed, and the letter between is next to empty or next to
    full: the mass of the set is within a small window. Of the other letters all subsets of either half are
    listed, and pairs with a mass in the window are met by bisection: 2^(N/2) in place of 2^N.

    Args:
        kernel: the prior and phi.
        box: the bounds on a column.
        multipliers: (N,) rho.
        threshold: what a column must be worth more than.
        most: how many columns are wanted.

    Source: Horowitz and Sahni, Computing partitions with applications to the knapsack problem, J. ACM 21
    (1974), for meeting in the middle.
    """
    letters = _Letters(kernel, box, multipliers, threshold)
    sets = _within(letters)
    if sets is None:
        return None
    values, codes, between = letters.columns(sets, most)
    top = largest(values, most)
    high = sets[codes[top]]
    high[np.arange(len(top)), between[top]] = False
    return Meeting(float(values.max(initial=-np.inf)), Columns(box, high, between[top]))


class _Letters:
    """What each letter holds, gains and may lose.

    Attributes:
        room: (N,) the mass that a letter takes when it is high.
        lost: (N,) what a letter in the wrong set takes off, of U.
        inside: (N,) whether the fractional knapsack holds it.
        budget: U - threshold.
        below, above: (N,) the largest mass of a letter between that is next to empty; the largest that one
            that is next to full lacks; negative where there is none.
        total: the mass of a column.
    """

    def __init__(self, kernel: Kernel, box: Box, multipliers: FloatArray, threshold: float) -> None:
        self._kernel, self._box, self._rho = kernel, box, multipliers
        knapsack = Knapsack(kernel, box, multipliers)
        self.total, self.threshold = 1 - box.low, threshold
        self._base = kernel.at(box.low) - box.low * float(kernel.p @ multipliers)
        upper = self._base + float(knapsack.fill(0, np.array([self.total]))[0])
        self.budget = upper - threshold + _ROUNDING * (1 + abs(upper) + abs(threshold))
        self.room = kernel.p * (kernel.caps(box) - box.low)
        self._gain = kernel.chords(box) - multipliers
        self._fits = kernel.p <= box.capacity * (1 + 1e-13)
        filled = np.cumsum(knapsack.room)
        edge = float(knapsack.gain[min(int(np.searchsorted(filled, self.total)), len(filled) - 1)])
        self._edge, self.inside = edge, self._gain > edge
        self.lost = self.room * np.abs(self._gain - edge)
        self.below, self.above = self._windows()

    def short(self, rest: FloatArray) -> FloatArray:
        """(N,) what a letter between of this mass takes off U; concave in the mass."""
        p, phi, low = self._kernel.p, self._kernel.phi, self._box.low
        bottom, slope = self._kernel.at(low), self._kernel.chords(self._box)
        loss = p * (bottom - phi(low + rest / p)) + slope * rest
        away = np.where(self.inside, self.room - rest, rest)
        return np.asarray(loss + away * np.abs(self._gain - self._edge))

    def _windows(self) -> tuple[FloatArray, FloatArray]:
        zeros, room = np.zeros(len(self.room)), self.room
        low, high = zeros, room
        for _ in range(_BISECTIONS):  # towards the mass that takes off most
            third = (high - low) / 3
            rising = self.short(low + third) < self.short(high - third)
            low, high = np.where(rising, low + third, low), np.where(rising, high, high - third)
        peak = (low + high) / 2
        every = self.short(peak) <= self.budget
        below = np.where(every, room, self._reach(zeros, peak))
        above = np.where(every, room, room - self._reach(room, peak))
        empty, full = self.short(zeros) > self.budget, self.short(room) > self.budget
        return np.where(empty & ~every, -1.0, below), np.where(full & ~every, -1.0, above)

    def _reach(self, end: FloatArray, peak: FloatArray) -> FloatArray:
        """(N,) from an end towards the peak: the first mass found that is past the budget."""
        near, past = end, peak
        for _ in range(_BISECTIONS):
            middle = (near + past) / 2
            within = self.short(middle) <= self.budget
            near, past = np.where(within, middle, near), np.where(within, past, middle)
        return past

    def columns(self, sets: BoolArray, most: int) -> tuple[FloatArray, IntArray, IntArray]:
        """(K,) values above the threshold, places of their sets, and letters between, perhaps of the set."""
        mass = sets @ self.room
        profit = self._base + sets @ (self.room * self._gain)
        alone = sets[:, ~self._fits].sum(
            axis=1
        )  # letters that are the one between wherever they are more than low
        found = []
        for letter in range(len(self.room)):
            member, room = sets[:, letter], self.room[letter]
            rest = self.total - mass + member * room
            window = np.where(member, room - rest <= self.above[letter], rest <= self.below[letter])
            window &= (alone == 0) if self._fits[letter] else (alone == member)
            here = np.flatnonzero(window & (rest >= -1e-15) & (rest <= room * (1 + 1e-13)))
            if len(here) == 0:
                continue
            left, gained = np.maximum(rest[here], 0.0), room * self._gain[letter]
            value = profit[here] - member[here] * gained + self._between(letter, left)
            good = np.flatnonzero(value > self.threshold)
            good = good[largest(value[good], most)]
            found.append((value[good], here[good], np.full(len(good), letter)))
        if not found:
            return np.empty(0), np.empty(0, int), np.empty(0, int)
        values, places, letters = (np.concatenate(part) for part in zip(*found, strict=True))
        return values, places, letters

    def _between(self, letter: int, rest: FloatArray) -> FloatArray:
        p, low = self._kernel.p[letter], self._box.low
        worth = p * (self._kernel.phi(low + rest / p) - self._kernel.at(low))
        return np.asarray(worth - rest * self._rho[letter])


def _within(letters: _Letters) -> BoolArray | None:
    """(K, N) the sets whose mass is in the window, with letters within the budget; None if too many."""
    below, above = float(letters.below.max()), float(letters.above.max())
    sure = letters.lost > letters.budget
    free = np.flatnonzero(~sure)
    least = letters.total - float(letters.room[sure & letters.inside].sum()) - max(below, 0.0) - 1e-15
    most = least + max(below, 0.0) + max(above, 0.0) + 2e-15
    free = free[np.argsort(-letters.room[free], kind="stable")]
    one_half = _subsets(letters, free[::2], most)
    other_half = None if one_half is None else _subsets(letters, free[1::2], most)
    if one_half is None or other_half is None:
        return None
    (one, lost, first), (other, lacks, second) = one_half, other_half
    order = np.argsort(other, kind="stable")
    start = np.searchsorted(other[order], least - one)
    count = np.searchsorted(other[order], most - one, side="right") - start
    if count.sum() > MOST_MEETINGS:
        return None
    mine = np.repeat(np.arange(len(one)), count)
    steps = np.arange(len(mine)) - np.repeat(np.cumsum(count) - count, count)
    theirs = order[np.repeat(start, count) + steps]
    good = np.flatnonzero(lost[mine] + lacks[theirs] <= 2 * letters.budget)
    sets = np.tile(sure & letters.inside, (len(good), 1))
    for half, codes in ((free[::2], first[mine[good]]), (free[1::2], second[theirs[good]])):
        sets[:, half] = (codes[:, None] >> np.arange(len(half))) & 1 == 1
    return sets


def _subsets(
    letters: _Letters, half: IntArray, most: float
) -> tuple[FloatArray, FloatArray, IntArray] | None:
    """The masses, what is taken off U, and the codes of all subsets of some letters that may be of use."""
    mass, lost, codes = np.zeros(1), np.zeros(1), np.zeros(1, int)
    for place, letter in enumerate(half):
        out, into = (0.0, letters.lost[letter]) if not letters.inside[letter] else (letters.lost[letter], 0.0)
        mass = np.concatenate([mass, mass + letters.room[letter]])
        lost = np.concatenate([lost + out, lost + into])
        codes = np.concatenate([codes, codes | 1 << place])
        kept = (mass <= most) & (lost <= 2 * letters.budget)  # the letter between counts as a whole here
        mass, lost, codes = mass[kept], lost[kept], codes[kept]
        if len(mass) > MOST_HALF_SUBSETS:
            return None
    return mass, lost, codes
