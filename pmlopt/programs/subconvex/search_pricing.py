"""Pricing for any prior and any number of letters: subsets of a core of letters, then branch and bound."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

import numpy as np

from pmlopt.arrays import FloatArray, IntArray, subset_sums
from pmlopt.backends.clock import FOREVER, Clock
from pmlopt.programs.subconvex.column_batch import Columns, joined
from pmlopt.programs.subconvex.kernel import Kernel
from pmlopt.programs.subconvex.knapsack_branch_and_bound import BranchAndBound, largest
from pmlopt.programs.subconvex.knapsack_meeting import columns_above
from pmlopt.programs.subconvex.knapsack_relaxation import relaxed
from pmlopt.programs.subconvex.near_perfect import near_perfect
from pmlopt.programs.subconvex.pricing import Priced
from pmlopt.programs.subconvex.staircase_search import staircase_bound
from pmlopt.uncertainty.column_families import Box, Family, Staircase

CORE_LETTERS = 16
"""Letters whose every subset is tried, around the letter at which the knapsack is full."""

_NEARBY_ORDERS = 4
"""Orders of the letters that are tried beside that of the multipliers."""

MAX_NODES_WITH_COLUMNS = 5_000_000
"""Nodes of branch and bound after which a round ends that has found columns."""

MAX_ROUND_NODES = 100_000_000
"""Nodes of branch and bound in one round that has found nothing: a proof, where they suffice."""

MAX_NODES_IN_ALL = 2 * MAX_ROUND_NODES
"""Nodes of branch and bound that a pricer has in all; past them it only has the relaxed bound."""


class SearchPricer:
    """Prices by a heuristic first, and by branch and bound where that finds nothing.

    Every number of nodes is fixed, so the same problem always ends the same way, unless time runs out.

    Args:
        kernel: the prior and phi.
        families: what the columns may be.
    """

    name: ClassVar[str] = "search"

    def __init__(self, kernel: Kernel, families: Sequence[Family]) -> None:
        self.kernel, self.families = kernel, [family for family in families if not family.constant]
        self.left = MAX_NODES_IN_ALL
        self._rng = np.random.default_rng(0)

    def seeds(self, count: int) -> list[Columns]:
        """Columns of little loss on random sets, `count` of each family: together they cover the letters."""
        return [self._seeds(family, count) for family in self.families]

    def _seeds(self, family: Family, count: int) -> Columns:
        found = near_perfect(family, self.kernel.p, count, self._rng) if isinstance(family, Box) else None
        if found is not None:
            return found
        free = np.zeros(len(self.kernel.p))
        return joined(
            [self._core(family, free, self._rng.permutation(len(free)), 1)[1] for _ in range(count)]
        )

    def price(
        self, multipliers: FloatArray, most: int, enough: float, clock: Clock = FOREVER
    ) -> Priced[Columns]:
        """The best columns of the core, or of branch and bound; see `Pricer.price`."""
        best, upper, found = -np.inf, -np.inf, []
        for family in self.families:
            bound = relaxed(self.kernel, family, multipliers)
            value, columns = self._near(family, multipliers, most)
            if value <= enough < bound and isinstance(family, Staircase):
                bound = staircase_bound(self.kernel, family, multipliers, enough, clock)
            elif value <= enough < bound and isinstance(family, Box):
                upper_bound, better, more = self._exact(family, multipliers, enough, most, clock)
                bound = min(bound, max(value, upper_bound))
                columns, value = joined([columns, *more]), max(value, better)
            best, upper = max(best, value), max(upper, bound)
            found.append(columns)
        return Priced(best, upper, found)

    def bound(self, multipliers: FloatArray, enough: float, clock: Clock = FOREVER) -> float:
        """The relaxed bound, or that of branch and bound where it is too large; see `Pricer.bound`."""
        upper = -np.inf
        for family in self.families:
            bound = relaxed(self.kernel, family, multipliers)
            if bound > enough and isinstance(family, Staircase):
                bound = staircase_bound(self.kernel, family, multipliers, enough, clock)
            elif bound > enough and isinstance(family, Box):
                value, _ = self._near(family, multipliers, 1)
                bound = min(bound, self._exact(family, multipliers, max(value, enough), 1, clock)[0])
            upper = max(upper, bound)
        return upper

    def _exact(
        self, box: Box, multipliers: FloatArray, threshold: float, most: int, clock: Clock
    ) -> tuple[float, float, list[Columns]]:
        """A bound, and the best columns above a threshold: met in the middle, else by branch and bound."""
        if clock.late:
            return np.inf, -np.inf, []
        meeting = columns_above(self.kernel, box, multipliers, threshold, most)
        if meeting is not None:
            return max(threshold, meeting.best), meeting.best, [meeting.columns]
        if self.left <= 0:
            return np.inf, -np.inf, []
        proof = self._proof(box, multipliers, threshold, most, clock)
        return proof.upper, proof.best, proof.columns()

    def _proof(
        self, box: Box, multipliers: FloatArray, threshold: float, most: int, clock: Clock
    ) -> BranchAndBound:
        proof = BranchAndBound(self.kernel, box, multipliers, threshold, most)
        proof.run(min(MAX_NODES_WITH_COLUMNS, self.left), clock)
        if proof.best <= threshold:
            proof.run(min(MAX_ROUND_NODES, self.left), clock)
        self.left -= proof.nodes
        return proof

    def _near(self, family: Family, multipliers: FloatArray, most: int) -> tuple[float, Columns]:
        """The best columns of the cores in the order of the multipliers, and in orders near to it."""
        gain = -multipliers
        if isinstance(family, Box):
            gain = gain + self.kernel.chords(family)
        spread = 0.5 * float(np.abs(gain - gain.mean()).mean())
        parts = []
        for near in range(1 + _NEARBY_ORDERS):
            shift = self._rng.normal(size=len(gain)) * spread if near else 0.0
            order = np.argsort(-(gain + shift), kind="stable")
            parts.append(self._core(family, multipliers, order, most if near == 0 else most // 4 + 1))
        return max(value for value, _ in parts), joined([columns for _, columns in parts])

    def _core(
        self, family: Family, multipliers: FloatArray, order: IntArray, most: int
    ) -> tuple[float, Columns]:
        """The best columns that hold the first letters of the order, any of the next, none of the last."""
        p = self.kernel.p
        fitting = order[p[order] <= family.capacity * (1 + 1e-13)]
        place = self._edge(family, multipliers, fitting)
        first = max(0, min(place - CORE_LETTERS // 2, len(fitting) - CORE_LETTERS))
        core, fixed = fitting[first : first + CORE_LETTERS], fitting[:first]
        mass = p[fixed].sum() + subset_sums(p[core])
        cost = (p * multipliers)[fixed].sum() + subset_sums((p * multipliers)[core])
        if isinstance(family, Box):
            others = [int(letter) for letter in order if p[letter] > family.capacity]
            value, subset, letter = self._between(family, multipliers, core, others, mass, cost, most)
        else:
            value, subset = self._steps(family, multipliers, mass, cost, most)
            letter = np.full(len(subset), -1)
        high = np.zeros((len(subset), len(p)), bool)
        high[:, fixed] = True
        high[:, core] = (subset[:, None] >> np.arange(len(core))) & 1 == 1
        return float(value.max(initial=-np.inf)), Columns(family, high, letter)

    def _edge(self, family: Family, multipliers: FloatArray, order: IntArray) -> int:
        """The place in the order at which the best column stops, roughly."""
        mass = np.cumsum(self.kernel.p[order])
        if isinstance(family, Box):
            return int(np.searchsorted(mass, family.capacity))
        inside = mass < family.capacity * (1 - 1e-13)
        spent = np.cumsum((self.kernel.p * multipliers)[order])
        values = self._stair_values(family, multipliers, mass[inside], spent[inside])
        return int(values.argmax()) + 1 if len(values) else 0

    def _between(
        self,
        box: Box,
        multipliers: FloatArray,
        core: IntArray,
        others: list[int],
        mass: FloatArray,
        cost: FloatArray,
        most: int,
    ) -> tuple[FloatArray, IntArray, IntArray]:
        """The best subsets of a core with a letter between: their values, subsets and letters."""
        p, phi, rise = self.kernel.p, self.kernel.phi, box.high - box.low
        rest = 1 - box.low - rise * mass
        ends = self.kernel.at(box.low), self.kernel.at(box.high)
        base = ends[0] - box.low * float(p @ multipliers)
        subsets = np.flatnonzero((rest >= -1e-15) & (rest <= rise * p[[*core, *others]].max()))
        values, chosen, letters = [], [], []
        for letter in [*map(int, core), *others]:
            bit = np.flatnonzero(core == letter)
            free = subsets if len(bit) == 0 else subsets[(subsets >> bit[0]) & 1 == 0]
            left = np.maximum(rest[free], 0.0)
            here = np.flatnonzero(left <= rise * p[letter])
            if len(here) == 0:
                continue
            free, left = free[here], left[here]
            value = (
                base
                + mass[free] * (ends[1] - ends[0])
                - rise * cost[free]
                + p[letter] * (phi(box.low + left / p[letter]) - ends[0])
                - left * multipliers[letter]
            )
            top = largest(value, most)
            values.append(value[top])
            chosen.append(free[top])
            letters.append(np.full(len(top), letter))
        if not values:
            return np.empty(0), np.empty(0, int), np.empty(0, int)
        value = np.concatenate(values)
        top = largest(value, most)
        return value[top], np.concatenate(chosen)[top], np.concatenate(letters)[top]

    def _steps(
        self, family: Staircase, multipliers: FloatArray, mass: FloatArray, cost: FloatArray, most: int
    ) -> tuple[FloatArray, IntArray]:
        """The best staircases on subsets of a core: their values and subsets."""
        inside = np.flatnonzero((mass > 0) & (mass < family.capacity * (1 - 1e-13)))
        values = self._stair_values(family, multipliers, mass[inside], cost[inside])
        top = largest(values, most)
        return values[top], inside[top]

    def _stair_values(
        self, family: Staircase, multipliers: FloatArray, mass: FloatArray, cost: FloatArray
    ) -> FloatArray:
        low, step, _ = family.fill(mass, np.zeros(mass.shape))
        low, phi = np.maximum(low, 0.0), self.kernel.phi
        worth = mass * phi(low + step) + (1 - mass) * phi(low)
        return np.asarray(worth - low * float(self.kernel.p @ multipliers) - step * cost)
