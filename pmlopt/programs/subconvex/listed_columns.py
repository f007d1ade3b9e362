"""Columns that are given by their entries, and pricing from a list of them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from pmlopt.arrays import BoolArray, FloatArray, IntArray
from pmlopt.backends.clock import FOREVER, Clock
from pmlopt.programs.subconvex.kernel import Kernel
from pmlopt.programs.subconvex.pricing import Priced

_RAISED_MARGINS = 64.0
"""By how many margins the entries between 0 and the largest are raised."""


@dataclass(frozen=True, eq=False)
class Explicit:
    """K columns of mean one as they are.

    Attributes:
        entries: (N, K).
        raisable: whether raising entries between 0 and the largest gives a requirement room.
    """

    entries: FloatArray
    raisable: bool = True

    def lifts(self, p: FloatArray, share: float = 0.0) -> FloatArray:
        """(N, K) the columns, of mean one under p; entries between are raised a little where `share` > 0.

        Raising them only gives a requirement room: the largest entry stays, and so do the zeros.
        """
        if share == 0 or not self.raisable:
            return self.entries
        room = np.where(self.entries > 0, self.entries.max(axis=0) - self.entries, 0.0)
        raised = self.entries + _RAISED_MARGINS * share * room
        return np.asarray(raised / (p @ raised))

    def distinct(self, p: FloatArray) -> Explicit:
        """The same columns without repetition, up to 1e-12."""
        _, first = np.unique(np.round(self.entries, 12) + 0.0, axis=1, return_index=True)
        return self[np.sort(first)]

    def __len__(self) -> int:
        return int(self.entries.shape[1])

    def __getitem__(self, chosen: slice | BoolArray | IntArray) -> Explicit:
        return Explicit(self.entries[:, chosen], self.raisable)


class ExplicitPricer:
    """Prices from a list of all extreme columns: exact, for any utility.

    Args:
        p: (N,) the prior.
        listed: all extreme columns.
        worths: the utility's kernel, or a function from (N, K) columns of mean one to (K,) worths.
    """

    name: ClassVar[str] = "vertices"

    def __init__(
        self, p: FloatArray, listed: Explicit, worths: Kernel | Callable[[FloatArray], FloatArray]
    ) -> None:
        self.p, self.listed = p, listed
        self.worth = worths.worth(listed.entries) if isinstance(worths, Kernel) else worths(listed.entries)

    def price(
        self, multipliers: FloatArray, most: int, enough: float, clock: Clock = FOREVER
    ) -> Priced[Explicit]:
        """The best columns of the list; see `Pricer.price`."""
        values = self.worth - (self.p * multipliers) @ self.listed.entries
        count = min(most, len(values))
        top = np.argpartition(-values, count - 1)[:count]
        top = top[np.argsort(-values[top], kind="stable")]
        best = float(values[top[0]])
        return Priced(best, best, [self.listed[top]])

    def bound(self, multipliers: FloatArray, enough: float, clock: Clock = FOREVER) -> float:
        """The best column's; see `Pricer.bound`."""
        return self.price(multipliers, 1, enough, clock).upper
