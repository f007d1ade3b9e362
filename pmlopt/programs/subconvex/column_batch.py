"""Many columns at once, in the words of a knapsack: a set S each, and one letter between."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from pmlopt.arrays import BoolArray, FloatArray, IntArray, subset_sums
from pmlopt.uncertainty.column_families import TIE, Box, Family

LETTERS_PER_WORD = 16
"""Letters to a word of a set."""


class Batch(Protocol):
    """Several columns of a design at once, each of mean one under the prior."""

    def lifts(self, p: FloatArray, share: float = 0.0) -> FloatArray:
        """(N, K) the columns, of mean one under p, with room of that share to the requirement's bounds."""
        ...

    def distinct(self, p: FloatArray) -> Batch:
        """The same columns without repetition."""
        ...

    def __len__(self) -> int: ...


@dataclass(frozen=True, eq=False)
class Columns:
    """K columns of one family.

    Attributes:
        family: what they are columns of.
        high: (K, N) whether a letter is in the set S.
        between: (K,) the letter f between, or -1.
    """

    family: Family
    high: BoolArray
    between: IntArray

    def lifts(self, p: FloatArray, share: float = 0.0) -> FloatArray:
        """(N, K) the columns, of mean one under p, with room of that share to the requirement's bounds.

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
        """p(S); the letter between, 0 where there is none; its mass, 0 where there is none."""
        has = self.between >= 0
        letter = np.where(has, self.between, 0)
        return np.where(self.high, p, 0.0).sum(axis=1), letter, np.where(has, p[letter], 0.0)

    def distinct(self, p: FloatArray) -> Columns:
        """The same columns without repetition: a letter between that is at an end belongs to that end."""
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
    """Columns of one family in one batch."""
    high = np.concatenate([part.high for part in parts])
    return Columns(parts[0].family, high, np.concatenate([part.between for part in parts]))


def unit_columns(family: Family, p: FloatArray) -> Columns:
    """For a box: the columns that are low but at one letter, where those are allowed; none for staircases."""
    alone = np.flatnonzero(p >= family.capacity) if isinstance(family, Box) else np.empty(0, int)
    return Columns(family, np.zeros((len(alone), len(p)), bool), alone)


def recognised(family: Box, lifts: FloatArray) -> Columns:
    """The extreme columns of a box that (N, K) columns of mean one are, up to 1e-9; others are left out."""
    high = lifts >= family.high * (1 - 1e-9)
    between = ~high & (lifts > family.low + 1e-9 * family.high)
    extreme = between.sum(axis=0) <= 1
    letter = np.where(between.any(axis=0), between.argmax(axis=0), -1)
    return Columns(family, high.T[extreme], letter[extreme])


def words(sets: BoolArray) -> NDArray[np.uint16]:
    """(K, W) the sets, 16 letters to a word."""
    padded = np.zeros((len(sets), -(-sets.shape[1] // LETTERS_PER_WORD) * LETTERS_PER_WORD), bool)
    padded[:, : sets.shape[1]] = sets
    packed = np.packbits(padded, axis=1, bitorder="little")
    return np.ascontiguousarray(packed).view("<u2").astype(np.uint16)


def sets_of(packed: NDArray[np.uint16], size: int) -> BoolArray:
    """(K, N) the sets of these words."""
    bits = np.unpackbits(packed.astype("<u2").view(np.uint8), axis=1, bitorder="little")
    return bits[:, :size].astype(bool)


def sums_over(packed: NDArray[np.uint16], values: FloatArray) -> FloatArray:
    """(K,) the sum of N numbers over each set, by one table for each word."""
    total = np.zeros(len(packed))
    for word in range(packed.shape[1]):
        total += subset_sums(values[LETTERS_PER_WORD * word : LETTERS_PER_WORD * (word + 1)])[packed[:, word]]
    return total
