"""Extreme columns of a design in batches, and the interface of pricing."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import ClassVar, Generic, TypeAlias, TypeVar

import numpy as np
from numpy.typing import NDArray

from pmlopt.core.arrays import (
    BoolArray,
    FloatArray,
    IntArray,
    bound_sum_rounding,
    compute_subset_sums,
)
from pmlopt.model.uncertainty.columns import TIE_ATOL, BoxFamily, Family
from pmlopt.solvers.solver_result import NO_DEADLINE, Deadline

CAPACITY_RTOL, MASS_ATOL = 1e-13, 1e-15
"""By which rounding may put a set beyond a capacity, as a share, and a mass beyond an end, in all."""


@dataclass(frozen=True, eq=False)
class ColumnUtility:
    """The utility `mu(lam) = sum_x p[x] phi(lam[x])` of columns, with phi convex, under a prior.

    Attributes:
        p: (N,) the prior.
        phi: a function of an array of non-negative numbers, entry by entry.
    """

    p: FloatArray
    phi: Callable[[FloatArray], FloatArray]

    def evaluate_phi(self, value: float) -> float:
        """Evaluate phi at one number."""
        return float(self.phi(np.array([value]))[0])

    def column_values(self, lifts: FloatArray) -> FloatArray:
        """Compute (K,) mu of the columns of an (N, K) matrix."""
        return np.asarray(self.p @ self.phi(lifts))

    def two_level_values(
        self,
        mass: FloatArray,
        room: FloatArray,
        low: FloatArray,
        step: FloatArray,
        extra: FloatArray,
    ) -> FloatArray:
        """Compute (K,) mu of columns: low + step on a mass, low + extra on a room, low elsewhere."""
        ends = mass * self.phi(low + step) + (1 - mass - room) * self.phi(low)
        return np.asarray(ends + room * self.phi(np.maximum(low + extra, 0.0)))

    def max_entries(self, family: Family) -> FloatArray:
        """Compute (N,) the largest entry that a column of mean one can have at each letter."""
        if isinstance(family, BoxFamily):
            # mean one: a letter gets at most what is left when all others are at `low`
            return np.minimum(family.high, family.low + (1 - family.low) / self.p)
        # a staircase is at most base + slope, and mean one caps an entry at 1 / p[x]
        return np.minimum(family.base + family.slope, 1 / self.p)

    def chord_slopes(self, box: BoxFamily) -> FloatArray:
        """Compute (N,) the slopes of phi's chords from low to the cap of each letter; 0 at a single point."""
        # a letter whose cap is `low` has no chord: its slope does not matter, and is 0
        width = self.max_entries(box) - box.low
        rise = self.phi(self.max_entries(box)) - self.evaluate_phi(box.low)
        return np.where(width > 0, rise / np.where(width > 0, width, 1.0), 0.0)

    def bound_rounding(self, rho: FloatArray, caps: FloatArray) -> float:
        """Bound what rounding may take off a sum of N terms of these multipliers and of phi up to caps."""
        size = (
            float(np.abs(self.phi(caps) / np.maximum(caps, 1.0)).max())
            + abs(self.evaluate_phi(0.0))
            + 1.0
        )
        terms = float(np.abs(rho).max()) + float(self.p @ np.abs(rho)) + size
        return bound_sum_rounding(len(self.p), terms)


LETTERS_PER_WORD = 16
"""Letters to a word of a set."""


@dataclass(frozen=True, eq=False)
class ColumnFamily:
    """Several columns of one family, each by its set of high letters and the letter between.

    Attributes:
        family: what they are columns of.
        high: (K, N) whether a letter is in the set S.
        between: (K,) the letter f between, or -1.
    """

    family: Family
    high: BoolArray
    between: IntArray

    def build_lifts(self, p: FloatArray, margin: float = 0.0) -> FloatArray:
        """Build (N, K) the columns, of mean one under p, with a relative margin to the requirement's bounds.

        Where the letter between has no room for what the others give up, all of them share it.
        """
        mass, letter, room = self._compute_masses(p)
        high, family = self.high, self.family.tightened_by(margin)
        low, step, extra = family.compute_values(mass, room)
        # under tightened bounds the letter between would exceed `high`: it joins the high set
        over = np.flatnonzero(extra > step)
        if len(over):
            high, room = high.copy(), room.copy()
            high[over, letter[over]], room[over] = True, 0.0
            low, step, extra = family.compute_values(np.where(high, p, 0.0).sum(axis=1), room)
        lifts = low[:, None] + step[:, None] * high
        lifts[np.arange(len(letter)), letter] += np.maximum(extra, 0.0)
        return np.asarray(lifts.T)

    def _compute_masses(self, p: FloatArray) -> tuple[FloatArray, IntArray, FloatArray]:
        """Compute the mass of each high set, the letter between, and its mass; 0 where there is none."""
        has = self.between >= 0
        letter = np.where(has, self.between, 0)
        return np.where(self.high, p, 0.0).sum(axis=1), letter, np.where(has, p[letter], 0.0)

    def drop_duplicates(self, p: FloatArray) -> ColumnFamily:
        """Drop repeated columns: a letter between that is at an end belongs to that end."""
        mass, letter, room = self._compute_masses(p)
        _, step, extra = self.family.compute_values(mass, room)
        has = self.between >= 0
        full = has & (np.abs(extra - step) * room <= TIE_ATOL)
        none = full | (has & (np.abs(extra) * room <= TIE_ATOL))
        high = self.high.copy()
        high[np.flatnonzero(full), letter[full]] = True
        between = np.where(none, -1, self.between)
        # high sets and the letter between, as bits: a row of bytes is one key of np.unique
        keys = np.packbits(np.column_stack([high, between[:, None] >> np.arange(16) & 1]), axis=1)
        _, first = np.unique(keys, axis=0, return_index=True)
        # np.unique sorts by key; the order of columns must not depend on it
        first.sort()
        return ColumnFamily(self.family, high, between)[first]

    def __len__(self) -> int:
        return len(self.between)

    def __getitem__(self, chosen: slice | BoolArray | IntArray) -> ColumnFamily:
        return ColumnFamily(self.family, self.high[chosen], self.between[chosen])


def join_columns(parts: Sequence[ColumnFamily]) -> ColumnFamily:
    """Join columns of one family in one batch."""
    high = np.concatenate([part.high for part in parts])
    return ColumnFamily(parts[0].family, high, np.concatenate([part.between for part in parts]))


def build_unit_columns(family: Family, p: FloatArray) -> ColumnFamily:
    """Build a box's columns that are high at one letter, where those are allowed; none for staircases."""
    alone = (
        np.flatnonzero(p >= family.max_mass) if isinstance(family, BoxFamily) else np.empty(0, int)
    )
    return ColumnFamily(family, np.zeros((len(alone), len(p)), bool), alone)


def recognize_columns(family: BoxFamily, lifts: FloatArray) -> ColumnFamily:
    """Find which (N, K) columns of mean one are extreme in a box, up to 1e-9; skip the others."""
    high = lifts >= family.high * (1 - 1e-9)
    # an extreme column of a box has at most one letter strictly between its ends
    between = ~high & (lifts > family.low + 1e-9 * family.high)
    extreme = between.sum(axis=0) <= 1
    letter = np.where(between.any(axis=0), between.argmax(axis=0), -1)
    return ColumnFamily(family, high.T[extreme], letter[extreme])


def argsort_largest(values: FloatArray, max_count: int) -> IntArray:
    """Return the indices of the largest values, in descending order."""
    chosen = (
        np.argpartition(-values, max_count - 1)[:max_count]
        if len(values) > max_count
        else np.arange(len(values))
    )
    return np.asarray(chosen[np.argsort(-values[chosen], kind="stable")])


def pack_sets(sets: BoolArray) -> NDArray[np.uint16]:
    """Encode sets as (K, W) words of 16 letters."""
    # -(-N // 16) rounds up: the last word is filled with letters that are in no set
    padded = np.zeros((len(sets), -(-sets.shape[1] // LETTERS_PER_WORD) * LETTERS_PER_WORD), bool)
    padded[:, : sets.shape[1]] = sets
    packed = np.packbits(padded, axis=1, bitorder="little")
    # an explicit byte order: the codes are the same on every machine
    return np.ascontiguousarray(packed).view("<u2").astype(np.uint16)


def unpack_sets(packed: NDArray[np.uint16], size: int) -> BoolArray:
    """Decode (K, N) sets from words of 16 letters."""
    bits = np.unpackbits(packed.astype("<u2").view(np.uint8), axis=1, bitorder="little")
    return bits[:, :size].astype(bool)


def sum_over_sets(packed: NDArray[np.uint16], values: FloatArray) -> FloatArray:
    """Compute (K,) the sum of N numbers over each set, by one table for each word."""
    # a table of 2^16 sums for each word: K lookups in place of a (K, N) product
    total = np.zeros(len(packed))
    for word in range(packed.shape[1]):
        total += compute_subset_sums(
            values[LETTERS_PER_WORD * word : LETTERS_PER_WORD * (word + 1)]
        )[packed[:, word]]
    return total


RAISED_MARGIN_COUNT = 64.0
"""By how many margins the entries between 0 and the largest are raised."""


@dataclass(frozen=True, eq=False)
class DenseBatch:
    """Several columns of mean one, stored entry by entry.

    Attributes:
        entries: (N, K).
        raisable: whether raising entries between 0 and the largest gives a requirement room.
        margins: by how many margins they are raised.
    """

    entries: FloatArray
    raisable: bool = True
    margins: float = RAISED_MARGIN_COUNT

    def build_lifts(self, p: FloatArray, margin: float = 0.0) -> FloatArray:
        """Return (N, K) the columns, of mean one under p; for `margin` > 0 entries between are raised.

        Raising them only gives a requirement room: the largest entry stays, and so do the zeros.
        """
        if margin == 0 or not self.raisable:
            return self.entries
        room = np.where(self.entries > 0, self.entries.max(axis=0) - self.entries, 0.0)
        raised = self.entries + self.margins * margin * room
        return np.asarray(raised / (p @ raised))

    def drop_duplicates(self, p: FloatArray) -> DenseBatch:
        """Drop repeated columns, up to 1e-12."""
        # adding 0.0 turns -0.0 into 0.0, so that both are the same column
        _, first = np.unique(np.round(self.entries, 12) + 0.0, axis=1, return_index=True)
        return self[np.sort(first)]

    def __len__(self) -> int:
        return int(self.entries.shape[1])

    def __getitem__(self, chosen: slice | BoolArray | IntArray) -> DenseBatch:
        return replace(self, entries=self.entries[:, chosen])


ColumnBatch: TypeAlias = ColumnFamily | DenseBatch
"""Several columns of a design at once, each of mean one under the prior."""

B_co = TypeVar("B_co", bound=ColumnBatch, covariant=True)


@dataclass(frozen=True, eq=False)
class PricingResult(Generic[B_co]):
    """The result of one round of pricing: columns, the best value, and an upper bound.

    Attributes:
        best_value: the largest `mu(lam) - <p rho, lam>` among `columns`.
        upper_bound: what no column exceeds; `best_value` itself, but for rounding, where pricing is exact.
        columns: good columns, by family.
    """

    best_value: float
    upper_bound: float
    columns: Sequence[B_co]


@dataclass(frozen=True, eq=False)
class RelaxedPricing:
    """The result of one search of relaxed columns, with an upper bound.

    Attributes:
        upper_bound: what no column is worth beyond its cost.
        lifts: (N, K) relaxed columns, whose letters may be in part at each of the values.
        worths: (K,) what they are worth, by the chords of phi.
        nearby_columns: columns near to them.
    """

    upper_bound: float
    lifts: FloatArray
    worths: FloatArray
    nearby_columns: list[DenseBatch]


class ColumnPricer(ABC):
    """The base of the ways of pricing columns."""

    name: ClassVar[str]

    def build_seeds(self, count: int) -> Sequence[ColumnBatch]:
        """Build columns to start from, about so many of each family; none where the first round suffices."""
        return ()

    @abstractmethod
    def price_columns(
        self, rho: FloatArray, max_columns: int, cutoff: float, deadline: Deadline = NO_DEADLINE
    ) -> PricingResult[ColumnBatch]:
        """Search for columns with the largest `mu(lam) - <p rho, lam>`.

        Args:
            rho: (N,) the multipliers.
            max_columns: how many columns are wanted.
            cutoff: columns whose reduced value is at most this are not wanted.
            deadline: of the search; after it the bound is what is proved by then.
        """

    def bound_reduced_values(
        self, rho: FloatArray, cutoff: float, deadline: Deadline = NO_DEADLINE
    ) -> float:
        """Bound `mu(lam) - <p rho, lam>` from above; a bound of `cutoff` need not be lowered."""
        return self.price_columns(rho, 1, cutoff, deadline).upper_bound
