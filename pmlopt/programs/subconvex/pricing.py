"""Pricing: the column whose worth exceeds its cost by most, and an upper bound on every column's."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar, Generic, Protocol, TypeVar

from pmlopt.arrays import FloatArray
from pmlopt.backends.clock import FOREVER, Clock
from pmlopt.programs.subconvex.column_batch import Batch

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
