"""The extreme columns of a design: what is known of them without solving, and how they are priced."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from pmlopt.arrays import FloatArray, rounding_of
from pmlopt.backends.clock import FOREVER, Clock
from pmlopt.errors import ProgramError
from pmlopt.prior import Prior
from pmlopt.privacy import Requirement
from pmlopt.programs.subconvex.column_batch import Batch
from pmlopt.programs.subconvex.kernel import Kernel
from pmlopt.programs.subconvex.pricing import Pricer
from pmlopt.utility import FInformation, SubConvex

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
