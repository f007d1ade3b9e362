"""Random sets of letters with a given total of whole counts."""

from __future__ import annotations

import numpy as np

from pmlopt.arrays import BoolArray, IntArray, subset_sums
from pmlopt.programs.subconvex.near_perfect import MOST_CORE_LETTERS

SPARE_CORE_LETTERS = 6
"""Letters of a core beyond those that have as many subsets as there are totals: some 64 sets for each."""

SETS_PER_CORE = 10
"""Random sets that one core of letters fills up."""

_SPREAD = 0.1
"""By what share, at random, more or less of the core is wanted than of everything."""


def random_sets(
    counts: IntArray, letters: IntArray, total: int, wanted: int, rng: np.random.Generator
) -> BoolArray:
    """(K, N) sets of some of the letters with a total count; fewer than are wanted where it is not met.

    Letters in a random order are taken until little is missing, and that is filled up from a core of other
    letters, whose subsets are met in the middle.

    Args:
        counts: N whole numbers.
        letters: of which the sets are made.
        total: of the counts of a set.
        wanted: how many sets.
        rng: where they come from.

    Source: Horowitz and Sahni, Computing partitions with applications to the knapsack problem, J. ACM 21
    (1974), for the search.

    Examples:
        >>> random_sets(np.array([1, 2, 3, 4]), np.array([0, 1, 3]), 5, 1, np.random.default_rng(0))
        array([[ True, False, False,  True]])
    """
    size = min(MOST_CORE_LETTERS, int(counts.sum()).bit_length() + SPARE_CORE_LETTERS)
    share, found = total / max(1, int(counts[letters].sum())), []
    for first in range(0, wanted, SETS_PER_CORE):
        order = rng.permutation(letters)
        core, others = _Core(counts, order[:size]), order[size:]
        for _ in range(first, min(first + SETS_PER_CORE, wanted)):
            rest = rng.permutation(others)
            aim = total - core.total * min(1.0, share * (1 + _SPREAD * rng.normal()))
            base = rest[: np.searchsorted(np.cumsum(counts[rest]), aim)]
            chosen = core.of_total(total - int(counts[base].sum()), rng)
            if chosen is not None:
                chosen[base] = True
                found.append(chosen)
    return np.array(found, bool).reshape(-1, len(counts))


class _Core:
    """Letters of which the subsets with a total count are found."""

    def __init__(self, counts: IntArray, letters: IntArray) -> None:
        self.total, self._size = int(counts[letters].sum()), len(counts)
        self._halves = np.array_split(letters, 2)
        self._first, second = (subset_sums(counts[half].astype(float)) for half in self._halves)
        self._order = np.argsort(second, kind="stable")
        self._second = second[self._order]

    def of_total(self, total: int, rng: np.random.Generator) -> BoolArray | None:
        """(N,) one of the subsets with this total, each as likely; None where there is none."""
        end = np.searchsorted(self._second, total - self._first, side="right")
        pairs = np.cumsum(end - np.searchsorted(self._second, total - self._first))
        if pairs[-1] == 0:
            return None
        place = int(rng.integers(pairs[-1]))
        first = int(np.searchsorted(pairs, place, side="right"))
        second = int(self._order[end[first] - (pairs[first] - place)])
        chosen = np.zeros(self._size, bool)
        for half, code in zip(self._halves, (first, second), strict=True):
            chosen[half] = (code >> np.arange(len(half))) & 1 == 1
        return chosen
