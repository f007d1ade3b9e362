"""Pricing for arbitrary priors and many letters: core heuristics, and meet-in-the-middle enumeration."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

import numpy as np

from pmlopt.core.numbers.arrays import BoolArray, FloatArray, IntArray, compute_subset_sums
from pmlopt.core.numbers.roots import bisect_intervals
from pmlopt.model.uncertainty.columns import BoxFamily, Family, StaircaseFamily
from pmlopt.programs.subconvex.columns import (
    CAPACITY_RTOL,
    MASS_ATOL,
    ColumnFamily,
    ColumnPricer,
    ColumnUtility,
    PricingResult,
    argsort_largest,
    decode_masks,
    join_columns,
)
from pmlopt.programs.subconvex.relaxations import FractionalKnapsack, bound_family, bound_staircases
from pmlopt.programs.subconvex.subset_cores import build_columns_near_capacity
from pmlopt.solvers.solver_result import NO_DEADLINE, Deadline

MAX_SUBSET_PAIRS = 2_000_000
"""Pairs of subsets that are looked at."""

BUDGET_RTOL = 1e-13
"""Share of a value that is added to a budget, so that no column is lost by rounding."""


def find_columns_above(
    kernel: ColumnUtility, box: BoxFamily, rho: FloatArray, threshold: float, max_columns: int
) -> tuple[float, ColumnFamily] | None:
    """Enumerate box columns with `mu(lam) - <p rho, lam>` above a threshold; None if too many.

    The largest value comes first, -inf where there is none, and with it the columns of the largest values.

    With the chords of phi in place of phi, a column is worth at most U, what the fractional knapsack holds.
    What it falls short of U by is at most the budget `U - threshold`: each letter in the wrong set takes off
    its mass times what it gains less than the letter at the edge, and the letter between what phi is below
    its chord. So letters whose place is sure are fixed, and the letter between is next to empty or next to
    full: the mass of the set is within a small window. Of the other letters all subsets of either half are
    listed, and pairs with a mass in the window are met by bisection: 2^(N/2) in place of 2^N.

    Source: Horowitz and Sahni, Computing partitions with applications to the knapsack problem, J. ACM 21
    (1974), for meeting in the middle.
    """
    letters = _LetterBudgets(kernel, box, rho, threshold)
    below = max(float(letters.below.max()), 0.0)
    above = max(float(letters.above.max()), 0.0)
    # the letter between is not in the set: next to empty it lacks, next to full it exceeds
    window = letters.total - below - MASS_ATOL, letters.total + above + MASS_ATOL
    sets = _find_sets_within(letters.room, letters.lost, letters.inside, letters.budget, window)
    if sets is None:
        return None
    values, codes, between = letters.list_columns(sets, max_columns)
    top = argsort_largest(values, max_columns)
    high = sets[codes[top]]
    # sets were listed with the letter between as a member; in a column it is its own kind
    high[np.arange(len(top)), between[top]] = False
    return float(values.max(initial=-np.inf)), ColumnFamily(box, high, between[top])


def _compute_budget(upper: float, threshold: float) -> float:
    """Compute what a column above a threshold may fall short of an upper bound by."""
    return upper - threshold + BUDGET_RTOL * (1 + abs(upper) + abs(threshold))


class _LetterBudgets:
    """The mass, gain and loss allowance of each letter, for pruning the enumeration.

    Attributes:
        room: (N,) the mass that a letter takes when it is high.
        lost: (N,) what a letter in the wrong set takes off, of U.
        inside: (N,) whether the fractional knapsack holds it.
        budget: U - threshold.
        below, above: (N,) the largest mass of a letter between that is next to empty; the largest that one
            that is next to full lacks; negative where there is none.
        total: the mass of a column.
    """

    def __init__(
        self, kernel: ColumnUtility, box: BoxFamily, rho: FloatArray, threshold: float
    ) -> None:
        self._kernel = kernel
        self._box = box
        self._rho = rho
        knapsack = FractionalKnapsack(kernel, box, rho)
        self.total = 1 - box.low
        self.threshold = threshold
        self._base = kernel.evaluate_phi(box.low) - box.low * float(kernel.p @ rho)
        upper = self._base + float(knapsack.fill_mass(0, np.array([self.total]))[0])
        self.budget = _compute_budget(upper, threshold)
        self.room = kernel.p * (kernel.max_entries(box) - box.low)
        self._gain = kernel.chord_slopes(box) - rho
        self._fits = kernel.p <= box.max_mass * (1 + CAPACITY_RTOL)
        filled = np.cumsum(knapsack.room)
        # the multiplier of the mass constraint: the gain of the letter at which the sack is full
        last = min(int(np.searchsorted(filled, self.total)), len(filled) - 1)
        edge = float(knapsack.gain[last])
        self._edge = edge
        self.inside = self._gain > edge
        # reduced costs of the knapsack: what a letter on the wrong side of the edge takes off U
        self.lost = self.room * np.abs(self._gain - edge)
        self.below, self.above = self._find_mass_windows()

    def compute_shortfall(self, rest: FloatArray) -> FloatArray:
        """Compute the (N,) loss from a fractional letter with a given mass; concave in the mass."""
        p = self._kernel.p
        phi = self._kernel.phi
        low = self._box.low
        bottom = self._kernel.evaluate_phi(low)
        slope = self._kernel.chord_slopes(self._box)
        # phi below its chord, a concave function of the rest: zero at both ends
        loss = p * (bottom - phi(low + rest / p)) + slope * rest
        away = np.where(self.inside, self.room - rest, rest)
        return np.asarray(loss + away * np.abs(self._gain - self._edge))

    def _find_mass_windows(self) -> tuple[FloatArray, FloatArray]:
        """Find the mass intervals near empty and full in which each letter stays within its allowance."""
        zeros = np.zeros(len(self.room))
        room = self.room
        # ternary search of a concave function, for all (N,) letters at once
        low, high = zeros, room
        # an interval of masses loses a third 60 times
        for _ in range(60):  # towards the mass that takes off most
            third = (high - low) / 3
            rising = self.compute_shortfall(low + third) < self.compute_shortfall(high - third)
            low = np.where(rising, low + third, low)
            high = np.where(rising, high, high - third)
        peak = (low + high) / 2
        # a letter within the budget even at its worst may hold any mass
        every = self.compute_shortfall(peak) <= self.budget
        below = np.where(every, room, self._bisect_towards(zeros, peak))
        above = np.where(every, room, room - self._bisect_towards(room, peak))
        empty = self.compute_shortfall(zeros) > self.budget
        full = self.compute_shortfall(room) > self.budget
        below = np.where(empty & ~every, -1.0, below)
        above = np.where(full & ~every, -1.0, above)
        return below, above

    def _bisect_towards(self, end: FloatArray, peak: FloatArray) -> FloatArray:
        """Bisect (N,) from an end towards the peak for the first mass outside the allowance."""
        return bisect_intervals(
            lambda mass: self.compute_shortfall(mass) <= self.budget, end, peak
        )[1]

    def list_columns(
        self, sets: BoolArray, max_columns: int
    ) -> tuple[FloatArray, IntArray, IntArray]:
        """List (K,) reduced values above the threshold, with their sets and fractional letters."""
        # (K,) masses of the sets; (K, N) @ (N,) in place of a loop over sets
        mass = sets @ self.room
        profit = self._base + sets @ (self.room * self._gain)
        # letters that are the one between wherever they are more than low
        alone = sets[:, ~self._fits].sum(axis=1)
        found = []
        for letter in range(len(self.room)):
            member = sets[:, letter]
            room = self.room[letter]
            # mean one fixes what the letter between holds once the set is known
            rest = self.total - mass + member * room
            full = room - rest <= self.above[letter]
            empty = rest <= self.below[letter]
            window = np.where(member, full, empty)
            window &= (alone == 0) if self._fits[letter] else (alone == member)
            here = np.flatnonzero(
                window & (rest >= -MASS_ATOL) & (rest <= room * (1 + CAPACITY_RTOL))
            )
            if len(here) == 0:
                continue
            left = np.maximum(rest[here], 0.0)
            gained = room * self._gain[letter]
            value = profit[here] - member[here] * gained + self._value_between(letter, left)
            good = np.flatnonzero(value > self.threshold)
            good = good[argsort_largest(value[good], max_columns)]
            found.append((value[good], here[good], np.full(len(good), letter)))
        if not found:
            return np.empty(0), np.empty(0, int), np.empty(0, int)
        values, places, letters = map(np.concatenate, zip(*found, strict=True))
        return values, places, letters

    def _value_between(self, letter: int, rest: FloatArray) -> FloatArray:
        """Compute the contribution of a fractional letter to the reduced value."""
        p = self._kernel.p[letter]
        low = self._box.low
        utility = p * (self._kernel.phi(low + rest / p) - self._kernel.evaluate_phi(low))
        return np.asarray(utility - rest * self._rho[letter])


def _find_sets_within(
    room: FloatArray,
    lost: FloatArray,
    inside: BoolArray,
    budget: float,
    window: tuple[float, float],
) -> BoolArray | None:
    """Enumerate (K, N) sets within a mass window and loss budget (meet in the middle), or None.

    Args:
        room: (N,) the mass of each letter.
        lost: (N,) what a letter in the wrong set takes off the budget.
        inside: (N,) which set is the right one.
        budget: what may be taken off, where the letter between counts as a whole twice.
        window: the least and the largest mass.
    """
    # one such letter in the wrong set spends the whole budget: its place is fixed
    sure = lost > budget
    fixed = float(room[sure & inside].sum())
    lower, upper = (mass - fixed for mass in window)
    free = np.flatnonzero(~sure)
    # large letters first: subsets over the largest mass are dropped early
    free = free[np.argsort(-room[free], kind="stable")]

    def list_subsets(half: IntArray) -> tuple[FloatArray, FloatArray, IntArray] | None:
        """List the masses, the losses and the codes of all subsets of some letters that may be of use."""
        mass = np.zeros(1)
        off = np.zeros(1)
        codes = np.zeros(1, int)
        for place, letter in enumerate(half):
            out = lost[letter] if inside[letter] else 0.0
            into = 0.0 if inside[letter] else lost[letter]
            mass = np.concatenate([mass, mass + room[letter]])
            off = np.concatenate([off + out, off + into])
            codes = np.concatenate([codes, codes | 1 << place])
            # losses may reach twice the budget here, as the letter between counts in both places
            kept = (mass <= upper) & (off <= 2 * budget)
            mass = mass[kept]
            off = off[kept]
            codes = codes[kept]
            # at most a million subsets of half of the letters
            if len(mass) > 1_000_000:
                return None
        return mass, off, codes

    # every other letter by mass: both halves have large and small ones, and similar sums
    first_half = free[::2]
    second_half = free[1::2]
    first_subsets = list_subsets(first_half)
    second_subsets = list_subsets(second_half)
    if first_subsets is None or second_subsets is None:
        return None
    one, off, first = first_subsets
    other, lacks, second = second_subsets
    order = np.argsort(other, kind="stable")
    # for each first subset the partners of fitting mass are one run of the sorted second half
    start = np.searchsorted(other[order], lower - one)
    count = np.searchsorted(other[order], upper - one, side="right") - start
    # counted before any is formed: a pair takes memory for N letters
    if count.sum() > MAX_SUBSET_PAIRS:
        return None
    mine = np.repeat(np.arange(len(one)), count)
    # positions within each run: a global range less the start of each run
    steps = np.arange(len(mine)) - np.repeat(np.cumsum(count) - count, count)
    theirs = order[np.repeat(start, count) + steps]
    # each half was within the budget; together they may not be
    good = np.flatnonzero(off[mine] + lacks[theirs] <= 2 * budget)
    sets = np.tile(sure & inside, (len(good), 1))
    sets[:, first_half] = decode_masks(first[mine[good]], len(first_half))
    sets[:, second_half] = decode_masks(second[theirs[good]], len(second_half))
    return sets


def find_staircases_above(
    kernel: ColumnUtility,
    family: StaircaseFamily,
    rho: FloatArray,
    threshold: float,
    max_columns: int,
    edge: float,
) -> tuple[float, ColumnFamily] | None:
    """Enumerate staircases with `mu(lam) - <p rho, lam>` above a threshold; None if too many.

    A set costs what letters below the price `edge` cost, its mass times the edge, and what letters in the
    wrong place lose. Without the last part the value depends on the mass only: masses at which it is above
    the threshold are a window, and sets are met in the middle as for a box.
    """
    # with an infinite budget every set qualifies: there are 2^N of them
    if threshold == -np.inf:
        return None
    p = kernel.p
    upper, low, high = bound_staircases(kernel, family, rho, threshold, edge)
    sets: BoolArray | None = np.zeros((0, len(p)), bool)
    if upper > threshold:
        # steps fall in the mass, so the one at the heaviest set gives the largest budget
        _, steps, _ = family.compute_values(np.array([high]), np.zeros(1))
        step = float(steps[0])
        budget = _compute_budget(upper, threshold) / step
        lost = p * np.abs(rho - edge)
        window = low - BUDGET_RTOL, high + MASS_ATOL
        sets = _find_sets_within(p, lost, rho < edge, budget, window)
    if sets is None:
        return None
    sets = sets[_leave_room(family, sets @ p)]
    values = _compute_stair_values(kernel, family, rho, sets @ p, sets @ (p * rho))
    top = argsort_largest(values, max_columns)
    top = top[values[top] > threshold]
    return float(values[top].max(initial=-np.inf)), ColumnFamily(
        family, sets[top], np.full(len(top), -1)
    )


def _leave_room(family: StaircaseFamily, mass: FloatArray) -> BoolArray:
    """Return whether sets of (K,) masses are the upper steps of staircases that are above 0."""
    return (mass > 0) & (mass < family.max_mass * (1 - CAPACITY_RTOL))


def _compute_stair_values(
    kernel: ColumnUtility,
    family: StaircaseFamily,
    rho: FloatArray,
    mass: FloatArray,
    cost: FloatArray,
) -> FloatArray:
    """Compute the reduced values of staircase columns from masses and costs."""
    low, step, _ = family.compute_values(mass, np.zeros(mass.shape))
    # rounding may push the low value below 0, where t log t is nan
    low = np.maximum(low, 0.0)
    phi = kernel.phi
    utilities = mass * phi(low + step) + (1 - mass) * phi(low)
    return utilities - low * float(kernel.p @ rho) - step * cost


CORE_LETTERS = 16
"""Letters whose every subset is tried, around the letter at which the knapsack is full."""


class SearchPricer(ColumnPricer):
    """The pricing by a core heuristic, with meet-in-the-middle enumeration where that finds nothing.

    All work is counted, so the same problem always ends the same way, unless time runs out.
    """

    name: ClassVar[str] = "search"

    def __init__(self, kernel: ColumnUtility, families: Sequence[Family]) -> None:
        self.kernel = kernel
        self.families = [family for family in families if not family.is_constant_only]
        self._rng = np.random.default_rng(0)

    def build_seeds(self, count: int) -> list[ColumnFamily]:
        """Build `count` initial columns per family on random sets that cover all letters."""
        return [self._build_family_seeds(family, count) for family in self.families]

    def _build_family_seeds(self, family: Family, count: int) -> ColumnFamily:
        """Build initial columns of one family on random sets."""
        found = (
            build_columns_near_capacity(family, self.kernel.p, count, self._rng)
            if isinstance(family, BoxFamily)
            else None
        )
        if found is not None:
            return found
        free = np.zeros(len(self.kernel.p))
        orders = (self._rng.permutation(len(free)) for _ in range(count))
        return join_columns([self._search_core(family, free, order, 1)[1] for order in orders])

    def price_columns(
        self, rho: FloatArray, max_columns: int, cutoff: float, deadline: Deadline = NO_DEADLINE
    ) -> PricingResult[ColumnFamily]:
        """Find the best columns on a core of letters, or on all; see `ColumnPricer.price_columns`."""
        best = -np.inf
        upper = -np.inf
        found = []
        for family in self.families:
            bound = bound_family(self.kernel, family, rho)
            value, columns = self._search_near_orders(family, rho, max_columns)
            # the exact search is dear: it runs only if the heuristic failed and the bound is open
            if value <= cutoff < bound and not deadline.expired:
                above = self._enumerate_above(family, rho, cutoff, max_columns)
                if above is not None:
                    columns = join_columns([columns, above[1]])
                    value = max(value, above[0])
                    # the exhaustive search found all columns above `cutoff`: no other exceeds it
                    bound = min(bound, max(value, cutoff))
            best = max(best, value)
            upper = max(upper, bound)
            found.append(columns)
        return PricingResult(best, upper, found)

    def bound_reduced_values(
        self, rho: FloatArray, cutoff: float, deadline: Deadline = NO_DEADLINE
    ) -> float:
        """Compute the relaxed bound, or the exact one where that is too weak."""
        upper = -np.inf
        for family in self.families:
            bound = bound_family(self.kernel, family, rho)
            if bound > cutoff and not deadline.expired:
                # a good column raises the threshold, and so shrinks the exact search's budget
                threshold = max(self._search_near_orders(family, rho, 1)[0], cutoff)
                above = self._enumerate_above(family, rho, threshold, 1)
                if above is not None:
                    bound = min(bound, max(threshold, above[0]))
            upper = max(upper, bound)
        return upper

    def _enumerate_above(
        self, family: Family, rho: FloatArray, threshold: float, max_columns: int
    ) -> tuple[float, ColumnFamily] | None:
        """Enumerate a family's columns above a threshold; None where that takes too long."""
        if isinstance(family, BoxFamily):
            return find_columns_above(self.kernel, family, rho, threshold, max_columns)
        order = np.argsort(rho, kind="stable")
        last = min(self._find_order_cutoff(family, rho, order), len(order) - 1)
        edge = float(rho[order[last]])
        return find_staircases_above(self.kernel, family, rho, threshold, max_columns, edge)

    def _search_near_orders(
        self, family: Family, rho: FloatArray, max_columns: int
    ) -> tuple[float, ColumnFamily]:
        """Search cores in the order of the multipliers and in perturbed orders."""
        # without chords, as for staircases, a letter gains where its multiplier is small
        gain = -rho
        if isinstance(family, BoxFamily):
            gain = gain + self.kernel.chord_slopes(family)
        spread = 0.5 * float(np.abs(gain - gain.mean()).mean())
        parts = []
        # four orders near that of the multipliers are tried, too
        for near in range(1 + 4):
            shift = self._rng.normal(size=len(gain)) * spread if near else 0.0
            order = np.argsort(-(gain + shift), kind="stable")
            parts.append(
                self._search_core(
                    family, rho, order, max_columns if near == 0 else max_columns // 4 + 1
                )
            )
        values, columns = zip(*parts, strict=True)
        return max(values), join_columns(columns)

    def _search_core(
        self, family: Family, rho: FloatArray, order: IntArray, max_columns: int
    ) -> tuple[float, ColumnFamily]:
        """Search columns that contain the first letters of an order and any subset of the next ones."""
        p = self.kernel.p
        # heavier letters than the capacity can only be between, and are tried as such
        fitting = order[p[order] <= family.max_mass * (1 + CAPACITY_RTOL)]
        place = self._find_order_cutoff(family, rho, fitting)
        # the core is centred on the edge, where the knapsack is least sure of letters
        first = max(0, min(place - CORE_LETTERS // 2, len(fitting) - CORE_LETTERS))
        core = fitting[first : first + CORE_LETTERS]
        fixed = fitting[:first]
        mass = p[fixed].sum() + compute_subset_sums(p[core])
        costs = p * rho
        cost = costs[fixed].sum() + compute_subset_sums(costs[core])
        if isinstance(family, BoxFamily):
            others = [int(letter) for letter in order if p[letter] > family.max_mass]
            value, subset, letter = self._search_between(
                family, rho, core, others, mass, cost, max_columns
            )
        else:
            value, subset = self._search_staircases(family, rho, mass, cost, max_columns)
            letter = np.full(len(subset), -1)
        high = np.zeros((len(subset), len(p)), bool)
        high[:, fixed] = True
        high[:, core] = decode_masks(subset, len(core))
        return float(value.max(initial=-np.inf)), ColumnFamily(family, high, letter)

    def _find_order_cutoff(self, family: Family, rho: FloatArray, order: IntArray) -> int:
        """Estimate the position in the order up to which the best column contains letters."""
        mass = np.cumsum(self.kernel.p[order])
        if isinstance(family, BoxFamily):
            return int(np.searchsorted(mass, family.max_mass))
        inside = mass < family.max_mass * (1 - CAPACITY_RTOL)
        spent = np.cumsum((self.kernel.p * rho)[order])
        # every prefix of the order is a candidate set: one vectorised evaluation
        values = _compute_stair_values(self.kernel, family, rho, mass[inside], spent[inside])
        return int(values.argmax()) + 1 if len(values) else 0

    def _search_between(
        self,
        box: BoxFamily,
        rho: FloatArray,
        core: IntArray,
        others: list[int],
        mass: FloatArray,
        cost: FloatArray,
        max_columns: int,
    ) -> tuple[FloatArray, IntArray, IntArray]:
        """Find the best core subsets completed by one fractional letter."""
        p = self.kernel.p
        phi = self.kernel.phi
        rise = box.high - box.low
        rest = 1 - box.low - rise * mass
        bottom = self.kernel.evaluate_phi(box.low)
        phi_rise = self.kernel.evaluate_phi(box.high) - bottom
        base = bottom - box.low * float(p @ rho)
        # the rest has to fit on one letter: columns of a box have at most one between
        largest = p[[*core, *others]].max()
        subsets = np.flatnonzero((rest >= -MASS_ATOL) & (rest <= rise * largest))
        values = []
        chosen = []
        letters = []
        for letter in [*map(int, core), *others]:
            bit = np.flatnonzero(core == letter)
            # a letter between is in no high set: subsets with its bit are left out
            free = subsets
            if len(bit):
                free = subsets[(subsets >> bit[0]) & 1 == 0]
            left = np.maximum(rest[free], 0.0)
            here = np.flatnonzero(left <= rise * p[letter])
            if len(here) == 0:
                continue
            free = free[here]
            left = left[here]
            value = base + mass[free] * phi_rise - rise * cost[free] - left * rho[letter]
            value += p[letter] * (phi(box.low + left / p[letter]) - bottom)
            top = argsort_largest(value, max_columns)
            values.append(value[top])
            chosen.append(free[top])
            letters.append(np.full(len(top), letter))
        if not values:
            return np.empty(0), np.empty(0, int), np.empty(0, int)
        value = np.concatenate(values)
        top = argsort_largest(value, max_columns)
        return value[top], np.concatenate(chosen)[top], np.concatenate(letters)[top]

    def _search_staircases(
        self,
        family: StaircaseFamily,
        rho: FloatArray,
        mass: FloatArray,
        cost: FloatArray,
        max_columns: int,
    ) -> tuple[FloatArray, IntArray]:
        """Find the best staircases on subsets of a core: their values and subsets."""
        inside = np.flatnonzero(_leave_room(family, mass))
        values = _compute_stair_values(self.kernel, family, rho, mass[inside], cost[inside])
        top = argsort_largest(values, max_columns)
        return values[top], inside[top]
