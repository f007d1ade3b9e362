"""Pricing for arbitrary priors and many letters: core heuristics, and meet-in-the-middle enumeration."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
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
    join_columns,
    sort_subset_sums,
)
from pmlopt.programs.subconvex.relaxations import FractionalKnapsack, bound_family, bound_staircases
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
    below, above = (max(float(part.max()), 0.0) for part in (letters.below, letters.above))
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
        self._kernel, self._box, self._rho = kernel, box, rho
        knapsack = FractionalKnapsack(kernel, box, rho)
        self.total, self.threshold = 1 - box.low, threshold
        self._base = kernel.evaluate_phi(box.low) - box.low * float(kernel.p @ rho)
        upper = self._base + float(knapsack.fill_mass(0, np.array([self.total]))[0])
        self.budget = upper - threshold + BUDGET_RTOL * (1 + abs(upper) + abs(threshold))
        self.room = kernel.p * (kernel.max_entries(box) - box.low)
        self._gain = kernel.chord_slopes(box) - rho
        self._fits = kernel.p <= box.max_mass * (1 + CAPACITY_RTOL)
        filled = np.cumsum(knapsack.room)
        # the multiplier of the mass constraint: the gain of the letter at which the sack is full
        edge = float(knapsack.gain[min(int(np.searchsorted(filled, self.total)), len(filled) - 1)])
        self._edge, self.inside = edge, self._gain > edge
        # reduced costs of the knapsack: what a letter on the wrong side of the edge takes off U
        self.lost = self.room * np.abs(self._gain - edge)
        self.below, self.above = self._find_mass_windows()

    def compute_shortfall(self, rest: FloatArray) -> FloatArray:
        """Compute the (N,) loss from a fractional letter with a given mass; concave in the mass."""
        p, phi, low = self._kernel.p, self._kernel.phi, self._box.low
        bottom, slope = self._kernel.evaluate_phi(low), self._kernel.chord_slopes(self._box)
        # phi below its chord, a concave function of the rest: zero at both ends
        loss = p * (bottom - phi(low + rest / p)) + slope * rest
        away = np.where(self.inside, self.room - rest, rest)
        return np.asarray(loss + away * np.abs(self._gain - self._edge))

    def _find_mass_windows(self) -> tuple[FloatArray, FloatArray]:
        """Find the mass intervals near empty and full in which each letter stays within its allowance."""
        zeros, room = np.zeros(len(self.room)), self.room
        # ternary search of a concave function, for all (N,) letters at once
        low, high = zeros, room
        # an interval of masses loses a third 60 times
        for _ in range(60):  # towards the mass that takes off most
            third = (high - low) / 3
            rising = self.compute_shortfall(low + third) < self.compute_shortfall(high - third)
            low, high = np.where(rising, low + third, low), np.where(rising, high, high - third)
        peak = (low + high) / 2
        # a letter within the budget even at its worst may hold any mass
        every = self.compute_shortfall(peak) <= self.budget
        below = np.where(every, room, self._bisect_towards(zeros, peak))
        above = np.where(every, room, room - self._bisect_towards(room, peak))
        empty = self.compute_shortfall(zeros) > self.budget
        full = self.compute_shortfall(room) > self.budget
        return np.where(empty & ~every, -1.0, below), np.where(full & ~every, -1.0, above)

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
            member, room = sets[:, letter], self.room[letter]
            # mean one fixes what the letter between holds once the set is known
            rest = self.total - mass + member * room
            window = np.where(member, room - rest <= self.above[letter], rest <= self.below[letter])
            window &= (alone == 0) if self._fits[letter] else (alone == member)
            here = np.flatnonzero(
                window & (rest >= -MASS_ATOL) & (rest <= room * (1 + CAPACITY_RTOL))
            )
            if len(here) == 0:
                continue
            left, gained = np.maximum(rest[here], 0.0), room * self._gain[letter]
            value = profit[here] - member[here] * gained + self._value_between(letter, left)
            good = np.flatnonzero(value > self.threshold)
            good = good[argsort_largest(value[good], max_columns)]
            found.append((value[good], here[good], np.full(len(good), letter)))
        if not found:
            return np.empty(0), np.empty(0, int), np.empty(0, int)
        values, places, letters = (np.concatenate(part) for part in zip(*found, strict=True))
        return values, places, letters

    def _value_between(self, letter: int, rest: FloatArray) -> FloatArray:
        """Compute the contribution of a fractional letter to the reduced value."""
        p, low = self._kernel.p[letter], self._box.low
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
        mass, off, codes = np.zeros(1), np.zeros(1), np.zeros(1, int)
        for place, letter in enumerate(half):
            out, into = (lost[letter], 0.0) if inside[letter] else (0.0, lost[letter])
            mass = np.concatenate([mass, mass + room[letter]])
            off = np.concatenate([off + out, off + into])
            codes = np.concatenate([codes, codes | 1 << place])
            # losses may reach twice the budget here, as the letter between counts in both places
            kept = (mass <= upper) & (off <= 2 * budget)
            mass, off, codes = mass[kept], off[kept], codes[kept]
            # at most a million subsets of half of the letters
            if len(mass) > 1_000_000:
                return None
        return mass, off, codes

    # every other letter by mass: both halves have large and small ones, and similar sums
    halves = [list_subsets(free[::2]), list_subsets(free[1::2])]
    if halves[0] is None or halves[1] is None:
        return None
    (one, off, first), (other, lacks, second) = halves[0], halves[1]
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
    for half, codes in ((free[::2], first[mine[good]]), (free[1::2], second[theirs[good]])):
        sets[:, half] = (codes[:, None] >> np.arange(len(half))) & 1 == 1
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
        step = float(family.compute_values(np.array([high]), np.zeros(1))[1][0])
        budget = (upper - threshold + BUDGET_RTOL * (1 + abs(upper) + abs(threshold))) / step
        lost = p * np.abs(rho - edge)
        sets = _find_sets_within(p, lost, rho < edge, budget, (low - BUDGET_RTOL, high + MASS_ATOL))
    if sets is None:
        return None
    mass = sets @ p
    sets = sets[(mass > 0) & (mass < family.max_mass * (1 - CAPACITY_RTOL))]
    values = _compute_stair_values(kernel, family, rho, sets @ p, sets @ (p * rho))
    top = argsort_largest(values, max_columns)
    top = top[values[top] > threshold]
    return float(values[top].max(initial=-np.inf)), ColumnFamily(
        family, sets[top], np.full(len(top), -1)
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
        wanted, rest = (count, 50), partial(SubsetCore.list_covering_subsets, count=1)
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
    found, fraction = [np.zeros((0, len(p)), bool)], mass / max(1e-300, float(p[letters].sum()))
    for first in range(0, wanted[0], wanted[1]):
        order = rng.permutation(letters)
        core = SubsetCore(p, order[:size], 0.43)  # fewer to look up, in more that are sorted once
        for _ in range(first, min(first + wanted[1], wanted[0])):
            others = rng.permutation(order[size:])
            # the mass wanted of the core varies by 10 % at random
            aim = mass - core.mass * min(1.0, fraction * (1 + 0.1 * rng.normal()))
            taken = int(np.searchsorted(np.cumsum(p[others]), aim))
            if taken < len(others) and mass - float(p[others[:taken]].sum()) > core.mass:
                taken += 1  # a letter more, or the core is too light for the missing mass
            sets = rest(core, mass - float(p[others[:taken]].sum()))
            sets[:, others[:taken]] = True
            found.append(sets)
    return np.concatenate(found)


class SubsetCore:
    """A core of letters whose subsets of given mass are found by meeting in the middle, or before it."""

    def __init__(self, p: FloatArray, letters: IntArray, middle: float = 0.5) -> None:
        self.mass, self.size = float(p[letters].sum()), len(p)
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
        return self._make_sets(
            np.array([first]), np.array([int(end[first] - (pairs[first] - place))])
        )

    def _make_sets(self, first: IntArray, second: IntArray) -> BoolArray:
        """Combine subsets of both halves to (K, N) sets."""
        high = np.zeros((len(first), self.size), bool)
        for half, order, places in zip(self.halves, self.orders, (first, second), strict=True):
            # bit b of the code is letter b of the half: (K, 1) >> (B,) is (K, B)
            high[:, half] = (order[places][:, None] >> np.arange(len(half))) & 1 == 1
        return high


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
    low, phi = np.maximum(low, 0.0), kernel.phi
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
        best, upper, found = -np.inf, -np.inf, []
        for family in self.families:
            bound = bound_family(self.kernel, family, rho)
            value, columns = self._search_near_orders(family, rho, max_columns)
            # the exact search is dear: it runs only if the heuristic failed and the bound is open
            if value <= cutoff < bound and not deadline.expired:
                above = self._enumerate_above(family, rho, cutoff, max_columns)
                if above is not None:
                    columns, value = join_columns([columns, above[1]]), max(value, above[0])
                    # the exhaustive search found all columns above `cutoff`: no other exceeds it
                    bound = min(bound, max(value, cutoff))
            best, upper = max(best, value), max(upper, bound)
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
        edge = float(rho[order[min(self._find_order_cutoff(family, rho, order), len(order) - 1)]])
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
        return max(value for value, _ in parts), join_columns([columns for _, columns in parts])

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
        core, fixed = fitting[first : first + CORE_LETTERS], fitting[:first]
        mass = p[fixed].sum() + compute_subset_sums(p[core])
        cost = (p * rho)[fixed].sum() + compute_subset_sums((p * rho)[core])
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
        high[:, core] = (subset[:, None] >> np.arange(len(core))) & 1 == 1
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
        p, phi, rise = self.kernel.p, self.kernel.phi, box.high - box.low
        rest = 1 - box.low - rise * mass
        ends = self.kernel.evaluate_phi(box.low), self.kernel.evaluate_phi(box.high)
        base = ends[0] - box.low * float(p @ rho)
        # the rest has to fit on one letter: columns of a box have at most one between
        subsets = np.flatnonzero((rest >= -MASS_ATOL) & (rest <= rise * p[[*core, *others]].max()))
        values, chosen, letters = [], [], []
        for letter in [*map(int, core), *others]:
            bit = np.flatnonzero(core == letter)
            # a letter between is in no high set: subsets with its bit are left out
            free = subsets if len(bit) == 0 else subsets[(subsets >> bit[0]) & 1 == 0]
            left = np.maximum(rest[free], 0.0)
            here = np.flatnonzero(left <= rise * p[letter])
            if len(here) == 0:
                continue
            free, left = free[here], left[here]
            value = base + mass[free] * (ends[1] - ends[0]) - rise * cost[free] - left * rho[letter]
            value += p[letter] * (phi(box.low + left / p[letter]) - ends[0])
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
        inside = np.flatnonzero((mass > 0) & (mass < family.max_mass * (1 - CAPACITY_RTOL)))
        values = _compute_stair_values(self.kernel, family, rho, mass[inside], cost[inside])
        top = argsort_largest(values, max_columns)
        return values[top], inside[top]
