"""Extreme columns of a design in batches, and the interface of pricing."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import ClassVar, Generic, TypeAlias, TypeVar

import numpy as np
from numpy.typing import NDArray

from pmlopt.core.arrays import BoolArray, FloatArray, IntArray, rounding_of, subset_sums
from pmlopt.model.uncertainty.columns import TIE, Box, Family
from pmlopt.solvers.outcome import FOREVER, Clock


@dataclass(frozen=True, eq=False)
class Kernel:
    """The utility `mu(lam) = sum_x p[x] phi(lam[x])` of columns, with phi convex, under a prior.

    Attributes:
        p: (N,) the prior.
        phi: a function of an array of non-negative numbers, entry by entry.
    """

    p: FloatArray
    phi: Callable[[FloatArray], FloatArray]

    def at(self, value: float) -> float:
        """Evaluate phi at one number."""
        return float(self.phi(np.array([value]))[0])

    def worth(self, lifts: FloatArray) -> FloatArray:
        """Compute (K,) mu of the columns of an (N, K) matrix."""
        return np.asarray(self.p @ self.phi(lifts))

    def worth_of(
        self, mass: FloatArray, room: FloatArray, low: FloatArray, step: FloatArray, extra: FloatArray
    ) -> FloatArray:
        """Compute (K,) mu of columns: low + step on a mass, low + extra on a room, low elsewhere."""
        ends = mass * self.phi(low + step) + (1 - mass - room) * self.phi(low)
        return np.asarray(ends + room * self.phi(np.maximum(low + extra, 0.0)))

    def caps(self, family: Family) -> FloatArray:
        """Compute (N,) the largest entry that a column of mean one can have at each letter."""
        if isinstance(family, Box):
            return np.minimum(family.high, family.low + (1 - family.low) / self.p)
        return np.minimum(family.base + family.slope, 1 / self.p)

    def chords(self, box: Box) -> FloatArray:
        """Compute (N,) the slopes of phi's chords from low to the cap of each letter; 0 at a single point."""
        width = self.caps(box) - box.low
        rise = self.phi(self.caps(box)) - self.at(box.low)
        return np.where(width > 0, rise / np.where(width > 0, width, 1.0), 0.0)

    def rounding(self, rho: FloatArray, caps: FloatArray) -> float:
        """Bound what rounding may take off a sum of N terms of these multipliers and of phi up to caps."""
        size = float(np.abs(self.phi(caps) / np.maximum(caps, 1.0)).max()) + abs(self.at(0.0)) + 1.0
        terms = float(np.abs(rho).max()) + float(self.p @ np.abs(rho)) + size
        return rounding_of(len(self.p), terms)


LETTERS_PER_WORD = 16
"""Letters to a word of a set."""


@dataclass(frozen=True, eq=False)
class Columns:
    """Several columns of one family, each by its set of high letters and the letter between.

    Attributes:
        family: what they are columns of.
        high: (K, N) whether a letter is in the set S.
        between: (K,) the letter f between, or -1.
    """

    family: Family
    high: BoolArray
    between: IntArray

    def lifts(self, p: FloatArray, share: float = 0.0) -> FloatArray:
        """Build (N, K) the columns, of mean one under p, with a relative margin to the requirement's bounds.

        Where the letter between has no room for what the others give up, all of them share it.
        """
        mass, letter, room = self._shape(p)
        high, family = self.high, self.family.stricter(share)
        low, step, extra = family.fill(mass, room)
        over = np.flatnonzero(extra > step)
        if len(over):
            high, room = high.copy(), room.copy()
            high[over, letter[over]], room[over] = True, 0.0
            low, step, extra = family.fill(np.where(high, p, 0.0).sum(axis=1), room)
        lifts = low[:, None] + step[:, None] * high
        lifts[np.arange(len(letter)), letter] += np.maximum(extra, 0.0)
        return np.asarray(lifts.T)

    def _shape(self, p: FloatArray) -> tuple[FloatArray, IntArray, FloatArray]:
        """Compute the mass of each high set, the letter between, and its mass; 0 where there is none."""
        has = self.between >= 0
        letter = np.where(has, self.between, 0)
        return np.where(self.high, p, 0.0).sum(axis=1), letter, np.where(has, p[letter], 0.0)

    def distinct(self, p: FloatArray) -> Columns:
        """Drop repeated columns: a letter between that is at an end belongs to that end."""
        mass, letter, room = self._shape(p)
        _, step, extra = self.family.fill(mass, room)
        has = self.between >= 0
        full = has & (np.abs(extra - step) * room <= TIE)
        none = full | (has & (np.abs(extra) * room <= TIE))
        high = self.high.copy()
        high[np.flatnonzero(full), letter[full]] = True
        between = np.where(none, -1, self.between)
        keys = np.packbits(np.column_stack([high, between[:, None] >> np.arange(16) & 1]), axis=1)
        _, first = np.unique(keys, axis=0, return_index=True)
        first.sort()
        return Columns(self.family, high, between)[first]

    def __len__(self) -> int:
        return len(self.between)

    def __getitem__(self, chosen: slice | BoolArray | IntArray) -> Columns:
        return Columns(self.family, self.high[chosen], self.between[chosen])


def joined(parts: Sequence[Columns]) -> Columns:
    """Join columns of one family in one batch."""
    high = np.concatenate([part.high for part in parts])
    return Columns(parts[0].family, high, np.concatenate([part.between for part in parts]))


def unit_columns(family: Family, p: FloatArray) -> Columns:
    """Build a box's columns that are high at one letter, where those are allowed; none for staircases."""
    alone = np.flatnonzero(p >= family.capacity) if isinstance(family, Box) else np.empty(0, int)
    return Columns(family, np.zeros((len(alone), len(p)), bool), alone)


def recognised(family: Box, lifts: FloatArray) -> Columns:
    """Find which (N, K) columns of mean one are extreme in a box, up to 1e-9; skip the others."""
    high = lifts >= family.high * (1 - 1e-9)
    between = ~high & (lifts > family.low + 1e-9 * family.high)
    extreme = between.sum(axis=0) <= 1
    letter = np.where(between.any(axis=0), between.argmax(axis=0), -1)
    return Columns(family, high.T[extreme], letter[extreme])


def largest(values: FloatArray, most: int) -> IntArray:
    """Return the indices of the largest values, in descending order."""
    chosen = np.argpartition(-values, most - 1)[:most] if len(values) > most else np.arange(len(values))
    return np.asarray(chosen[np.argsort(-values[chosen], kind="stable")])


def words(sets: BoolArray) -> NDArray[np.uint16]:
    """Encode sets as (K, W) words of 16 letters."""
    padded = np.zeros((len(sets), -(-sets.shape[1] // LETTERS_PER_WORD) * LETTERS_PER_WORD), bool)
    padded[:, : sets.shape[1]] = sets
    packed = np.packbits(padded, axis=1, bitorder="little")
    return np.ascontiguousarray(packed).view("<u2").astype(np.uint16)


def sets_of(packed: NDArray[np.uint16], size: int) -> BoolArray:
    """Decode (K, N) sets from words of 16 letters."""
    bits = np.unpackbits(packed.astype("<u2").view(np.uint8), axis=1, bitorder="little")
    return bits[:, :size].astype(bool)


def sums_over(packed: NDArray[np.uint16], values: FloatArray) -> FloatArray:
    """Compute (K,) the sum of N numbers over each set, by one table for each word."""
    total = np.zeros(len(packed))
    for word in range(packed.shape[1]):
        total += subset_sums(values[LETTERS_PER_WORD * word : LETTERS_PER_WORD * (word + 1)])[packed[:, word]]
    return total


RAISED_MARGINS = 64.0
"""By how many margins the entries between 0 and the largest are raised."""


@dataclass(frozen=True, eq=False)
class Explicit:
    """Several columns of mean one, stored entry by entry.

    Attributes:
        entries: (N, K).
        raisable: whether raising entries between 0 and the largest gives a requirement room.
        margins: by how many margins they are raised.
    """

    entries: FloatArray
    raisable: bool = True
    margins: float = RAISED_MARGINS

    def lifts(self, p: FloatArray, share: float = 0.0) -> FloatArray:
        """Return (N, K) the columns, of mean one under p; for `share` > 0 entries between are raised.

        Raising them only gives a requirement room: the largest entry stays, and so do the zeros.
        """
        if share == 0 or not self.raisable:
            return self.entries
        room = np.where(self.entries > 0, self.entries.max(axis=0) - self.entries, 0.0)
        raised = self.entries + self.margins * share * room
        return np.asarray(raised / (p @ raised))

    def distinct(self, p: FloatArray) -> Explicit:
        """Drop repeated columns, up to 1e-12."""
        _, first = np.unique(np.round(self.entries, 12) + 0.0, axis=1, return_index=True)
        return self[np.sort(first)]

    def __len__(self) -> int:
        return int(self.entries.shape[1])

    def __getitem__(self, chosen: slice | BoolArray | IntArray) -> Explicit:
        return replace(self, entries=self.entries[:, chosen])


Batch: TypeAlias = Columns | Explicit
"""Several columns of a design at once, each of mean one under the prior."""

B_co = TypeVar("B_co", bound=Batch, covariant=True)


@dataclass(frozen=True, eq=False)
class Priced(Generic[B_co]):
    """The result of one round of pricing: columns, the best value, and an upper bound.

    Attributes:
        best: the largest `mu(lam) - <p rho, lam>` among `columns`.
        upper: what no column exceeds; `best` itself, but for rounding, where pricing is exact.
        columns: good columns, by family.
    """

    best: float
    upper: float
    columns: Sequence[B_co]


@dataclass(frozen=True, eq=False)
class Relaxed:
    """The result of one search of relaxed columns, with an upper bound.

    Attributes:
        upper: what no column is worth beyond its cost.
        lifts: (N, K) relaxed columns, whose letters may be in part at each of the values.
        worths: (K,) what they are worth, by the chords of phi.
        guesses: columns near to them.
    """

    upper: float
    lifts: FloatArray
    worths: FloatArray
    guesses: list[Explicit]


class Pricer(ABC):
    """The base of the ways of pricing columns."""

    name: ClassVar[str]

    def seeds(self, count: int) -> Sequence[Batch]:
        """Build columns to start from, about so many of each family; none where the first round suffices."""
        return ()

    @abstractmethod
    def price(self, rho: FloatArray, most: int, enough: float, clock: Clock = FOREVER) -> Priced[Batch]:
        """Search for columns with the largest `mu(lam) - <p rho, lam>`.

        Args:
            rho: (N,) the multipliers.
            most: how many columns are wanted.
            enough: columns worth no more than this are of no use.
            clock: what is left of the time: after it the bound is what is proved by then.
        """

    def bound(self, rho: FloatArray, enough: float, clock: Clock = FOREVER) -> float:
        """Bound `mu(lam) - <p rho, lam>` from above; a bound of `enough` need not be lowered."""
        return self.price(rho, 1, enough, clock).upper
