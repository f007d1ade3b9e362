"""Batches of extreme columns, and the interface of pricing."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import ClassVar, Generic, TypeAlias, TypeVar

import numpy as np
from numpy.typing import NDArray

from pmlopt.core.numbers.arrays import (
    BoolArray,
    FloatArray,
    IntArray,
    bound_sum_rounding,
    compute_subset_sums,
)
from pmlopt.data.prior import Prior
from pmlopt.model.uncertainty.columns import TIE_ATOL, BoxFamily, Family
from pmlopt.model.utility import SubConvex
from pmlopt.solvers.solver_result import NO_DEADLINE, Deadline

CAPACITY_RTOL, MASS_ATOL, MASS_SUM_TOLERANCE = 1e-13, 1e-15, 2e-12
"""By which rounding may put a set beyond a capacity, a mass beyond an end, and a sum of many masses."""


@dataclass(frozen=True, eq=False)
class InformationSpace:
    """The base of spaces of columns of mean one, with their values for a sub-convex utility.

    Attributes:
        prior: N letters.
        utility: of columns.
    """

    prior: Prior
    utility: SubConvex

    def column_values(self, lifts: FloatArray) -> FloatArray:
        """Compute the (K,) utilities of columns."""
        return self.utility.column_values(self.prior.pmf, lifts)

    @cached_property
    def constant_utility(self) -> float:
        """Return the utility of the constant mechanism."""
        return float(self.column_values(np.ones((self.prior.size, 1)))[0])

    @cached_property
    def release_multipliers(self) -> FloatArray:
        """Return the (N,) dual multipliers of the full release: no column has a positive reduced value."""
        return self.column_values(np.diag(1 / self.prior.pmf))

    @cached_property
    def full_release_utility(self) -> float:
        """Return the utility of the full release, an upper bound: `sum_x p[x] mu(e_x / p[x])`."""
        return float(self.prior.pmf @ self.release_multipliers)


@dataclass(frozen=True, eq=False)
class ColumnUtility:
    """A separable utility `mu(lam) = sum_x p[x] phi(lam[x])` of columns, with phi convex.

    Attributes:
        p: (N,) the prior.
        phi: a function of an array of non-negative numbers, entry by entry.
    """

    p: FloatArray
    phi: Callable[[FloatArray], FloatArray]

    def evaluate_phi(self, value: float) -> float:
        """Evaluate the convex function phi at one number."""
        return float(self.phi(np.array([value]))[0])

    def column_values(self, lifts: FloatArray) -> FloatArray:
        """Compute the (K,) utilities of an (N, K) matrix of columns."""
        return self.p @ self.phi(lifts)

    def two_level_values(
        self,
        mass: FloatArray,
        room: FloatArray,
        low: FloatArray,
        step: FloatArray,
        extra: FloatArray,
    ) -> FloatArray:
        """Compute the (K,) utilities of columns with up to three values, from the masses of these."""
        ends = mass * self.phi(low + step) + (1 - mass - room) * self.phi(low)
        return ends + room * self.phi(np.maximum(low + extra, 0.0))

    def max_entries(self, family: Family) -> FloatArray:
        """Compute (N,) the largest entry that a column of mean one can have at each letter."""
        if isinstance(family, BoxFamily):
            # mean one: a letter gets at most what is left when all others are at `low`
            return np.minimum(family.high, family.low + (1 - family.low) / self.p)
        # a staircase is at most base + slope, and mean one caps an entry at 1 / p[x]
        return np.minimum(family.base + family.slope, 1 / self.p)

    def chord_slopes(self, box: BoxFamily) -> FloatArray:
        """Compute the (N,) chord slopes of phi between the bounds of each letter."""
        # a letter whose cap is `low` has no chord: its slope does not matter, and is 0
        width = self.max_entries(box) - box.low
        rise = self.phi(self.max_entries(box)) - self.evaluate_phi(box.low)
        return np.where(width > 0, rise / np.where(width > 0, width, 1.0), 0.0)

    def bound_rounding(self, rho: FloatArray, caps: FloatArray) -> float:
        """Bound the rounding error of a sum of N terms of multipliers and phi values."""
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
    """A batch of columns of one family, each given by its high set and fractional letter.

    Attributes:
        family: what they are columns of.
        high: (K, N) whether a letter is in the set S.
        between: (K,) the letter f between, or -1.
    """

    family: Family
    high: BoolArray
    between: IntArray

    def build_lifts(self, p: FloatArray, margin: float = 0.0) -> FloatArray:
        """Build the (N, K) columns of mean one, with a relative margin to the bounds.

        Where the letter between has no room for what the others give up, all of them share it.
        """
        mass, letter, room = self._compute_masses(p)
        high = self.high
        family = self.family.tightened_by(margin)
        low, step, extra = family.compute_values(mass, room)
        # under tightened bounds the letter between would exceed `high`: it joins the high set
        over = np.flatnonzero(extra > step)
        if len(over):
            high = high.copy()
            room = room.copy()
            high[over, letter[over]] = True
            room[over] = 0.0
            low, step, extra = family.compute_values(np.where(high, p, 0.0).sum(axis=1), room)
        lifts = low[:, None] + step[:, None] * high
        lifts[np.arange(len(letter)), letter] += np.maximum(extra, 0.0)
        return lifts.T

    def _compute_masses(self, p: FloatArray) -> tuple[FloatArray, IntArray, FloatArray]:
        """Compute the masses of the high sets and of the fractional letters."""
        has = self.between >= 0
        letter = np.where(has, self.between, 0)
        return np.where(self.high, p, 0.0).sum(axis=1), letter, np.where(has, p[letter], 0.0)

    def drop_duplicates(self, p: FloatArray) -> ColumnFamily:
        """Drop duplicate columns; a fractional letter at its bound is moved to that bound's set."""
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
    """Concatenate column batches of one family."""
    high = np.concatenate([part.high for part in parts])
    return ColumnFamily(parts[0].family, high, np.concatenate([part.between for part in parts]))


def build_unit_columns(family: Family, p: FloatArray) -> ColumnFamily:
    """Build the columns of a box family that are high at a single letter."""
    alone = (
        np.flatnonzero(p >= family.max_mass) if isinstance(family, BoxFamily) else np.empty(0, int)
    )
    return ColumnFamily(family, np.zeros((len(alone), len(p)), bool), alone)


def recognize_columns(family: BoxFamily, lifts: FloatArray) -> ColumnFamily:
    """Convert (N, K) columns to their form in a box family, up to 1e-9; skip non-extreme ones."""
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


def sort_subset_sums(values: FloatArray) -> tuple[FloatArray, IntArray]:
    """Return the (2^n,) sums over all subsets of n numbers in rising order, and their bitmasks."""
    sums = np.zeros(1)
    masks = np.zeros(1, dtype=np.intp)
    for bit, value in enumerate(values):
        sums = np.concatenate([sums, sums + value])
        masks = np.concatenate([masks, masks + (1 << bit)])
        # a stable sort merges the two sorted halves, in half the time of one sort at the end
        order = np.argsort(sums, kind="stable")
        sums = sums[order]
        masks = masks[order]
    return sums, masks


def decode_masks(masks: IntArray, size: int) -> BoolArray:
    """Decode (K, N) sets from their bitmasks: bit b of a mask is letter b."""
    return np.asarray((masks[:, None] >> np.arange(size)) & 1 == 1)


def pack_sets(sets: BoolArray) -> NDArray[np.uint16]:
    """Pack sets as (K, W) words of 16 bits."""
    # -(-N // 16) rounds up: the last word is filled with letters that are in no set
    padded = np.zeros((len(sets), -(-sets.shape[1] // LETTERS_PER_WORD) * LETTERS_PER_WORD), bool)
    padded[:, : sets.shape[1]] = sets
    packed = np.packbits(padded, axis=1, bitorder="little")
    # an explicit byte order: the codes are the same on every machine
    return np.ascontiguousarray(packed).view("<u2").astype(np.uint16)


def unpack_sets(packed: NDArray[np.uint16], size: int) -> BoolArray:
    """Unpack (K, N) sets from words of 16 bits."""
    bits = np.unpackbits(packed.astype("<u2").view(np.uint8), axis=1, bitorder="little")
    return bits[:, :size].astype(bool)


def sum_over_sets(packed: NDArray[np.uint16], values: FloatArray) -> FloatArray:
    """Sum N numbers over each packed set, by lookup tables."""
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
    """A batch of mean-one columns stored as a dense matrix.

    Attributes:
        entries: (N, K).
        raisable: whether raising entries between 0 and the largest gives a requirement room.
        margins: by how many margins they are raised.
    """

    entries: FloatArray
    raisable: bool = True
    margins: float = RAISED_MARGIN_COUNT

    def build_lifts(self, p: FloatArray, margin: float = 0.0) -> FloatArray:
        """Return the (N, K) columns of mean one; a positive `margin` moves them into the interior.

        Raising them only gives a requirement room: the largest entry stays, and so do the zeros.
        """
        if margin == 0 or not self.raisable:
            return self.entries
        room = np.where(self.entries > 0, self.entries.max(axis=0) - self.entries, 0.0)
        raised = self.entries + self.margins * margin * room
        return raised / (p @ raised)

    def drop_duplicates(self, p: FloatArray) -> DenseBatch:
        """Drop repeated columns, up to 1e-12."""
        _, first = np.unique(np.round(self.entries, 12), axis=1, return_index=True)
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
    """The result of one pricing round: new columns, best reduced value, and its upper bound.

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
    """The result of pricing relaxed columns, with an upper bound.

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
    """The interface of pricing methods for column generation."""

    name: ClassVar[str]

    def build_seeds(self, count: int) -> Sequence[ColumnBatch]:
        """Build about `count` initial columns per family."""
        return ()

    @abstractmethod
    def price_columns(
        self, rho: FloatArray, max_columns: int, cutoff: float, deadline: Deadline = NO_DEADLINE
    ) -> PricingResult[ColumnBatch]:
        """Find the columns with the largest reduced value `mu(lam) - <p rho, lam>`.

        Args:
            rho: (N,) the multipliers.
            max_columns: how many columns are wanted.
            cutoff: columns whose reduced value is at most this are not wanted.
            deadline: of the search; after it the bound is what is proved by then.
        """

    def bound_reduced_values(
        self, rho: FloatArray, cutoff: float, deadline: Deadline = NO_DEADLINE
    ) -> float:
        """Bound the reduced value `mu(lam) - <p rho, lam>` over all columns; `cutoff` suffices."""
        return self.price_columns(rho, 1, cutoff, deadline).upper_bound
