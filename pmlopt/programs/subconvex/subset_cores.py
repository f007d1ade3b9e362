"""Random sets of letters of about a given mass, completed from a core whose subsets are all known."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import numpy as np

from pmlopt.core.numbers.arrays import BoolArray, FloatArray, IntArray
from pmlopt.model.uncertainty.columns import BoxFamily
from pmlopt.programs.subconvex.columns import (
    ColumnFamily,
    argsort_largest,
    decode_masks,
    sort_subset_sums,
)

MAX_CORE_LETTERS = 30
"""Letters of which all subsets are weighed, as pairs of subsets of either half."""


def build_columns_near_capacity(
    box: BoxFamily, p: FloatArray, count: int, rng: np.random.Generator
) -> ColumnFamily | None:
    """Build columns whose high set has the capacity as mass, or slightly more.

    A column that is low or high at every letter is worth all that the closed bound allows, and its set has
    the mass `box.max_mass`. Here a random set is filled up from a core of 30 other letters: for each subset
    of one half of the core, the smallest of the other half that is enough. Of 2^30 subsets the best is over
    by about 1e-10; the largest letter of the set is lowered by so much. Random sets point in so many
    directions that four columns for each letter have a mechanism among them.

    Returns:
        The columns; None where the letters below the capacity are too few to exceed it.

    Source: Horowitz and Sahni, Computing partitions with applications to the knapsack problem, J. ACM 21
    (1974), for the search.
    """
    small = np.flatnonzero(p < box.max_mass)
    # all letters that fit are within the capacity at once: no set exceeds it
    if p[small].sum() <= box.max_mass:
        return None
    # up to 40 letters are one core: a million subsets of either half
    if len(small) <= 40:
        high = SubsetCore(p, small).list_covering_subsets(box.max_mass, count)
    else:
        # one core of letters completes 50 random sets
        wanted = (count, 50)
        rest = partial(SubsetCore.list_covering_subsets, count=1)
        high = build_random_sets(p, small, box.max_mass, wanted, MAX_CORE_LETTERS, rest, rng)
    # the largest letter takes the excess: relative to its mass it is lowered least
    between = np.where(high, p, 0.0).argmax(axis=1)
    high[np.arange(len(high)), between] = False
    # without its largest letter a set has to leave room, or the letter would be negative
    fitting = high @ p <= box.max_mass
    return ColumnFamily(box, high[fitting], between[fitting])


def build_random_sets(
    p: FloatArray,
    letters: IntArray,
    mass: float,
    wanted: tuple[int, int],
    size: int,
    rest: Callable[[SubsetCore, float], BoolArray],
    rng: np.random.Generator,
) -> BoolArray:
    """Draw (K, N) random sets of about a given mass, completed from a core of letters.

    Args:
        p: (N,) the masses of letters.
        letters: those of which the sets are.
        mass: of a set.
        wanted: how many sets, and how many of them one core fills up.
        size: letters of a core.
        rest: the sets of a core for a mass that is missing.
        rng: of the orders.
    """
    found = [np.zeros((0, len(p)), bool)]
    fraction = mass / max(1e-300, float(p[letters].sum()))
    for first in range(0, wanted[0], wanted[1]):
        order = rng.permutation(letters)
        core = SubsetCore(p, order[:size], 0.43)  # fewer to look up, in more that are sorted once
        for _ in range(first, min(first + wanted[1], wanted[0])):
            others = rng.permutation(order[size:])
            # the mass wanted of the core varies by 10 % at random
            aim = mass - core.mass * min(1.0, fraction * (1 + 0.1 * rng.normal()))
            taken = int(np.searchsorted(np.cumsum(p[others]), aim))
            missing = mass - float(p[others[:taken]].sum())
            if taken < len(others) and missing > core.mass:
                taken += 1  # a letter more, or the core is too light for the missing mass
                missing = mass - float(p[others[:taken]].sum())
            sets = rest(core, missing)
            sets[:, others[:taken]] = True
            found.append(sets)
    return np.concatenate(found)


class SubsetCore:
    """A core of letters whose subsets of given mass are found by meeting in the middle, or before it."""

    def __init__(self, p: FloatArray, letters: IntArray, middle: float = 0.5) -> None:
        self.mass = float(p[letters].sum())
        self.size = len(p)
        self.halves = np.split(letters, [round(middle * len(letters))])
        pairs = [sort_subset_sums(p[half]) for half in self.halves]
        self.sums, self.orders = zip(*pairs, strict=True)
        self.partner_sums = np.append(self.sums[1], np.inf)  # inf: no partner reaches the limit

    def list_covering_subsets(self, limit: float, count: int) -> BoolArray:
        """List (K, N) at most `count` core subsets of mass slightly above a limit."""
        one, other = self.sums
        # the lightest partner that reaches the limit; keys in rising order take a quarter less time
        place = np.searchsorted(other, (limit - one)[::-1])[::-1]
        reached = one + self.partner_sums[place]
        best = argsort_largest(-reached, count)
        best = best[np.isfinite(reached[best])]
        return self._make_sets(best, place[best])

    def draw_subsets_of_mass(self, mass: float, rng: np.random.Generator) -> BoolArray:
        """Draw (K, N) core subsets of an exact mass, uniformly; none where there is none."""
        one, other = self.sums
        # the runs of equal sums between left and right are the pairs of exactly this mass
        end = np.searchsorted(other, mass - one, side="right")
        pairs = np.cumsum(end - np.searchsorted(other, mass - one))
        if pairs[-1] == 0:
            return np.zeros((0, self.size), bool)
        # uniform over pairs: a first subset is drawn in proportion to its partners
        place = int(rng.integers(pairs[-1]))
        first = int(np.searchsorted(pairs, place, side="right"))
        second = int(end[first] - (pairs[first] - place))
        return self._make_sets(np.array([first]), np.array([second]))

    def _make_sets(self, first: IntArray, second: IntArray) -> BoolArray:
        """Combine subsets of both halves to (K, N) sets."""
        high = np.zeros((len(first), self.size), bool)
        for half, order, places in zip(self.halves, self.orders, (first, second), strict=True):
            high[:, half] = decode_masks(order[places], len(half))
        return high
