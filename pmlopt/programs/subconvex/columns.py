"""The extreme columns of a design: what is known without solving, and many at once as knapsacks."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import ClassVar, Generic, Protocol, TypeVar

import numpy as np
from numpy.typing import NDArray

from pmlopt.core.arrays import BoolArray, FloatArray, IntArray, rounding_of, subset_sums
from pmlopt.data.prior import Prior
from pmlopt.errors import ProgramError
from pmlopt.model.privacy import Requirement
from pmlopt.model.uncertainty.columns import TIE, Box, Family
from pmlopt.model.utility import FInformation, SubConvex
from pmlopt.solvers.clock import FOREVER, Clock


@dataclass(frozen=True, eq=False)
class Kernel:
    """`mu(lam) = sum_x p[x] phi(lam[x])` with phi convex, under a prior.

    Attributes:
        p: (N,) the prior.
        phi: a function of an array of non-negative numbers, entry by entry.
    """

    p: FloatArray
    phi: Callable[[FloatArray], FloatArray]

    def at(self, value: float) -> float:
        """The value of phi at one number."""
        return float(self.phi(np.array([value]))[0])

    def worth(self, lifts: FloatArray) -> FloatArray:
        """(K,) mu of the columns of an (N, K) matrix."""
        return np.asarray(self.p @ self.phi(lifts))

    def worth_of(
        self, mass: FloatArray, room: FloatArray, low: FloatArray, step: FloatArray, extra: FloatArray
    ) -> FloatArray:
        """(K,) mu of columns that are low + step on a mass, low + extra on a room, and low elsewhere."""
        ends = mass * self.phi(low + step) + (1 - mass - room) * self.phi(low)
        return np.asarray(ends + room * self.phi(np.maximum(low + extra, 0.0)))

    def caps(self, family: Family) -> FloatArray:
        """(N,) the largest entry that a column of mean one can have at each letter."""
        low, high = 0.0, 0.0
        if isinstance(family, Box):
            low, high = family.low, family.high
        else:
            high = family.base + family.slope
        return np.minimum(high, low + (1 - low) / self.p)

    def chords(self, box: Box) -> FloatArray:
        """(N,) the slopes of phi's chords from low to the cap of each letter; 0 where they are one point."""
        width = self.caps(box) - box.low
        rise = self.phi(self.caps(box)) - self.at(box.low)
        return np.where(width > 0, rise / np.where(width > 0, width, 1.0), 0.0)

    def rounding(self, multipliers: FloatArray, family: Family) -> float:
        """What rounding may take off a bound that sums N terms of these multipliers and of phi."""
        caps = self.caps(family)
        size = float(np.abs(self.phi(caps) / np.maximum(caps, 1.0)).max()) + abs(self.at(0.0)) + 1.0
        terms = float(np.abs(multipliers).max()) + float(self.p @ np.abs(multipliers)) + size
        return rounding_of(len(self.p), terms)


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


RAISED_MARGINS = 64.0
"""By how many margins the entries between 0 and the largest are raised."""


@dataclass(frozen=True, eq=False)
class Explicit:
    """K columns of mean one as they are.

    Attributes:
        entries: (N, K).
        raisable: whether raising entries between 0 and the largest gives a requirement room.
        margins: by how many margins they are raised.
    """

    entries: FloatArray
    raisable: bool = True
    margins: float = RAISED_MARGINS

    def lifts(self, p: FloatArray, share: float = 0.0) -> FloatArray:
        """(N, K) the columns, of mean one under p; entries between are raised a little where `share` > 0.

        Raising them only gives a requirement room: the largest entry stays, and so do the zeros.
        """
        if share == 0 or not self.raisable:
            return self.entries
        room = np.where(self.entries > 0, self.entries.max(axis=0) - self.entries, 0.0)
        raised = self.entries + self.margins * share * room
        return np.asarray(raised / (p @ raised))

    def distinct(self, p: FloatArray) -> Explicit:
        """The same columns without repetition, up to 1e-12."""
        _, first = np.unique(np.round(self.entries, 12) + 0.0, axis=1, return_index=True)
        return self[np.sort(first)]

    def __len__(self) -> int:
        return int(self.entries.shape[1])

    def __getitem__(self, chosen: slice | BoolArray | IntArray) -> Explicit:
        return replace(self, entries=self.entries[:, chosen])


B_co = TypeVar("B_co", bound=Batch, covariant=True)


@dataclass(frozen=True, eq=False)
class Priced(Generic[B_co]):
    """What one round of pricing found.

    Attributes:
        best: the largest `mu(lam) - <p rho, lam>` among `columns`.
        upper: what no column exceeds; `best` itself, but for rounding, where pricing is exact.
        columns: good columns, by family.
    """

    best: float
    upper: float
    columns: Sequence[B_co]


class Pricer(Protocol):
    """One way of pricing."""

    name: ClassVar[str]

    def price(
        self, multipliers: FloatArray, most: int, enough: float, clock: Clock = FOREVER
    ) -> Priced[Batch]:
        """Look for columns with the largest `mu(lam) - <p rho, lam>`.

        Args:
            multipliers: (N,) rho.
            most: how many columns are wanted.
            enough: columns worth no more than this are of no use.
            clock: what is left of the time: after it the bound is what is proved by then.
        """
        ...

    def bound(self, multipliers: FloatArray, enough: float, clock: Clock = FOREVER) -> float:
        """An upper bound on `mu(lam) - <p rho, lam>`; one of `enough` need not be lowered."""
        ...


MOST_LISTED_COLUMNS = 3_000_000
"""Extreme columns up to which they are listed for pricing; a tenth where each is a call of a function."""


@dataclass(frozen=True, eq=False)
class ColumnSpace(ABC):
    """The columns of mean one that a requirement allows, with their worths under a sub-convex utility."""

    prior: Prior
    privacy: Requirement
    utility: SubConvex

    @property
    @abstractmethod
    def count(self) -> int | None:
        """The number of extreme columns, or of candidates, without listing them; None where unknown."""

    @abstractmethod
    def listed(self, limit: int) -> list[Batch] | None:
        """All extreme columns but the constant, up to a limit; None past it."""

    @abstractmethod
    def starts(self) -> list[Batch]:
        """Columns to start from where they cannot all be declared."""

    @property
    @abstractmethod
    def closed_bound(self) -> tuple[float, FloatArray]:
        """A bound that needs no solving, and its multipliers; infinite where the utility has no kernel."""

    @property
    @abstractmethod
    def largest(self) -> float:
        """The largest worth of an extreme column, where they are listed; else 0."""

    @property
    @abstractmethod
    def caps(self) -> FloatArray:
        """(N,) the largest entry at each letter of a column of mean one."""

    @property
    @abstractmethod
    def blur(self) -> float:
        """What rounding leaves of a bound at sensible multipliers."""

    @abstractmethod
    def pricer(self) -> Pricer:
        """The way of pricing columns that is exact and cheapest here, or a search.

        Raises:
            ProgramError: the utility needs the list, and it is too long.
        """

    @abstractmethod
    def bound(
        self, multipliers: FloatArray, enough: float, proved: float | None, clock: Clock = FOREVER
    ) -> tuple[float, str]:
        """A bound on the utility of every mechanism, and what it rests on.

        Args:
            multipliers: (N,) rho, any numbers.
            enough: a bound of this much need not be lowered.
            proved: what a search has proved already with these multipliers.
            clock: what is left of the time for a search.
        """

    @property
    def limit(self) -> int:
        """Extreme columns up to which they are listed."""
        return MOST_LISTED_COLUMNS if self.utility.vectorised else MOST_LISTED_COLUMNS // 10

    @property
    def kernel(self) -> Kernel | None:
        """The utility as a sum over letters, where it is one."""
        if isinstance(self.utility, FInformation):
            return Kernel(self.prior.pmf, self.utility.phi)
        return None

    def worths(self, lifts: FloatArray) -> FloatArray:
        """(K,) the utility of columns."""
        return self.utility.worths(self.prior.pmf, lifts)

    @cached_property
    def constant(self) -> float:
        """The utility of releasing nothing."""
        return float(self.worths(np.ones((self.prior.size, 1)))[0])

    @cached_property
    def released(self) -> FloatArray:
        """(N,) what each letter tells if released: multipliers at which no column is worth its cost."""
        return self.worths(np.diag(1 / self.prior.pmf))

    @cached_property
    def everything(self) -> float:
        """The utility of releasing the secret, which no mechanism exceeds: `sum_x p[x] mu(e_x / p[x])`."""
        return float(self.prior.pmf @ self.released)

    @cached_property
    def everything_bound(self) -> float:
        """The same with what rounding may hide: the bound of the multipliers `released`."""
        p = self.prior.pmf
        return self.everything + rounding_of(len(p), float(p @ np.abs(self.released)))

    @cached_property
    def steepest(self) -> float:
        """How fast the utility grows with the bounds on columns, roughly, per share of a bound.

        `sum_xy q[y] p[x] lam_y[x] phi'(lam_y[x]) <= sum_x p[x] phi'(cap[x])`, since each row sums to one,
        where phi' grows; near 0 the slope of t log t over a margin is about 10.
        """
        kernel = self.kernel
        if kernel is None:
            return 10 + 4 * abs(self.largest)
        slopes = np.abs(kernel.phi(self.caps) - kernel.phi(self.caps * (1 - 1e-6))) / (self.caps * 1e-6)
        return 10 + float(kernel.p @ slopes)

    def every_column(self) -> list[Batch]:
        """All extreme columns but the constant.

        Raises:
            ProgramError: there are too many; the message says how many.
        """
        listed = self.listed(self.limit)
        if listed is None:
            raise ProgramError(self.too_many())
        return listed

    def too_many(self) -> str:
        """Why the columns are not listed, and what to do."""
        number = "too many" if self.count is None else f"{self.count:,}"
        return (
            f"under {self.privacy} there are {number} extreme columns on {self.prior.size} letters, and at "
            f"most {self.limit:,} can be listed for the utility {self.utility.name}: merge letters, or use "
            "an FInformation (such as MutualInformation, TotalVariation, ChiSquare, Hellinger) or a linear "
            "utility, which need no list"
        )

    def function_rounding(self, multipliers: FloatArray) -> float:
        """What rounding may take off a bound where the utility is a function."""
        p = self.prior.pmf
        size = float(np.abs(multipliers).max()) + float(p @ np.abs(multipliers)) + abs(self.largest)
        return rounding_of(len(p), size)
