"""Columns of a box that fall short of the closed bound by next to nothing: sets of hardly too much mass."""

from __future__ import annotations

import numpy as np

from pmlopt.arrays import BoolArray, FloatArray, IntArray, subset_sums
from pmlopt.programs.subconvex.column_batch import Columns
from pmlopt.programs.subconvex.knapsack_branch_and_bound import largest
from pmlopt.uncertainty.column_families import Box

MOST_CORE_LETTERS = 30
"""Letters of which all subsets are weighed, as pairs of subsets of either half."""

MOST_WHOLE_LETTERS = 40
"""Letters up to which they are one core: a million subsets of either half."""

SETS_PER_CORE = 50
"""Random sets that one core of letters fills up."""

_SPREAD = 0.1
"""By what share, at random, more or less of the core is wanted than of everything."""


def near_perfect(box: Box, p: FloatArray, count: int, rng: np.random.Generator) -> Columns | None:
    """Columns that are high on a set whose mass is the capacity, or hardly more.

    A column that is low or high at every letter is worth all that the closed bound allows, and its set has
    the mass `box.capacity`. Here a random set is filled up from a core of 30 other letters: for each subset
    of one half of the core, the smallest of the other half that is enough. Of 2^30 subsets the best is over
    by about 1e-10; the largest letter of the set is lowered by so much. Random sets point in so many
    directions that four columns for each letter have a mechanism among them.

    Args:
        box: the bounds on a column.
        p: (N,) the prior.
        count: how many columns.
        rng: where the random sets come from.

    Returns:
        The columns; None where the letters below the capacity are too few to exceed it.

    Source: Horowitz and Sahni, Computing partitions with applications to the knapsack problem, J. ACM 21
    (1974), for the search.
    """
    small = np.flatnonzero(p < box.capacity)
    if p[small].sum() <= box.capacity:
        return None
    if len(small) <= MOST_WHOLE_LETTERS:
        high = _Core(p, small).coverings(box.capacity, count)
    else:
        high = _filled_up(box.capacity, p, small, count, rng)
    between = np.where(high, p, 0.0).argmax(axis=1)
    high[np.arange(len(high)), between] = False
    fitting = high @ p <= box.capacity
    return Columns(box, high[fitting], between[fitting])


def _filled_up(
    capacity: float, p: FloatArray, small: IntArray, count: int, rng: np.random.Generator
) -> BoolArray:
    """(K, N) at most `count` random sets, each filled up to the capacity from the core of its turn."""
    found, share = [], capacity / float(p[small].sum())
    for first in range(0, count, SETS_PER_CORE):
        letters = rng.permutation(small)
        core = _Core(p, letters[:MOST_CORE_LETTERS])
        for _ in range(first, min(first + SETS_PER_CORE, count)):
            rest = rng.permutation(letters[MOST_CORE_LETTERS:])
            aim = capacity - core.mass * min(1.0, share * (1 + _SPREAD * rng.normal()))
            masses = np.cumsum(p[rest])
            taken = int(np.searchsorted(masses, aim))
            if taken < len(rest) and capacity - float(p[rest[:taken]].sum()) > core.mass:
                taken += 1  # a letter more, or the core is too light for what is missing
            base = rest[:taken]
            sets = core.coverings(capacity - float(p[base].sum()), 1)
            sets[:, base] = True
            found.append(sets)
    return np.concatenate(found)


class _Core:
    """Letters of which the subsets of the least mass beyond a limit are found."""

    def __init__(self, p: FloatArray, letters: IntArray) -> None:
        self.mass, self.size = float(p[letters].sum()), len(p)
        self.halves = np.array_split(letters, 2)
        sums = [subset_sums(p[half]) for half in self.halves]
        self.orders = [np.argsort(half, kind="stable") for half in sums]
        self.sums = [half[order] for half, order in zip(sums, self.orders, strict=True)]

    def coverings(self, limit: float, count: int) -> BoolArray:
        """(K, N) at most `count` sets of a mass of hardly more than the limit, of each first half one."""
        one, other = self.sums
        place = np.searchsorted(other, limit - one)
        over = one + np.append(other, np.inf)[place] - limit
        best = largest(-over, count)
        best = best[np.isfinite(over[best])]
        high = np.zeros((len(best), self.size), bool)
        for half, subsets in zip(
            self.halves, (self.orders[0][best], self.orders[1][place[best]]), strict=True
        ):
            high[:, half] = (subsets[:, None] >> np.arange(len(half))) & 1 == 1
        return high
