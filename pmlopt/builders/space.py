"""The extreme columns of a design: what is known of them without solving, and how they are priced."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from pmlopt.checks import FloatArray
from pmlopt.columns import (
    Box,
    Columns,
    CountPricer,
    Family,
    Kernel,
    Pricer,
    SearchPricer,
    VertexPricer,
    closed_multipliers,
    count_vertices,
    relaxed,
    vertices,
)
from pmlopt.errors import ProgramError
from pmlopt.prior import Prior
from pmlopt.privacy import Requirement
from pmlopt.utility import FInformation, SubConvex

UNCOUNTED = 100_000
"""The same where the alphabet is too large to count them first."""

LISTED = 3_000_000
"""Extreme columns up to which they are listed for pricing; a tenth where each is a call of a function."""


@dataclass(frozen=True, eq=False)
class ColumnSpace:
    """The columns of mean one that a requirement allows, with their worths under a sub-convex utility."""

    prior: Prior
    privacy: Requirement
    utility: SubConvex

    @property
    def families(self) -> tuple[Family, ...]:
        """What the requirement allows a column of mean one to be."""
        families = self.privacy.columns(self.prior)
        return families if self.prior.size > 1 else (Box(1.0, 1.0),)

    @cached_property
    def count(self) -> int | None:
        """The number of extreme columns, without listing them; None past 40 letters."""
        return count_vertices(self.prior.pmf, self.families)

    @property
    def _limit(self) -> int:
        limit = LISTED if self.utility.vectorised else LISTED // 10
        return limit if self.count is not None else UNCOUNTED

    @property
    def kernel(self) -> Kernel | None:
        """The utility as a sum over letters, where it is one."""
        if isinstance(self.utility, FInformation):
            return Kernel(self.prior.pmf, self.utility.phi)
        return None

    @cached_property
    def closed_bound(self) -> tuple[float, FloatArray]:
        """A bound that needs no solving, and its multipliers; infinite where the utility has no kernel."""
        kernel = self.kernel
        if kernel is None:
            return np.inf, np.zeros(self.prior.size)
        tried = []
        for rho in (closed_multipliers(kernel, family) for family in self.families):
            upper = max(relaxed(kernel, family, rho) for family in self.families)
            tried.append((float(self.prior.pmf @ rho) + upper, rho))
        return min(tried, key=lambda found: found[0])

    @cached_property
    def largest(self) -> float:
        """The largest worth of an extreme column, where they are listed."""
        return (
            max((float(part.worth.max()) for part in self._listed.parts), default=0.0)
            if self._listed
            else 0.0
        )

    def pricer(self, listing: bool = True) -> Pricer:
        """The way of pricing columns that is exact and cheapest here, or a search.

        Args:
            listing: whether a list of all extreme columns may be used.

        Raises:
            ProgramError: the utility needs the list, and it is too long.
        """
        kernel, counts = self.kernel, self.prior.counts
        families = [family for family in self.families if not family.constant]
        if kernel is not None and families and counts and CountPricer.affordable(families, counts):
            return CountPricer(kernel, families, counts)
        if listing and self._listed is not None:
            return self._listed
        if kernel is None:
            raise ProgramError(self._too_many())
        return SearchPricer(kernel, families)

    @cached_property
    def _listed(self) -> VertexPricer | None:
        if self.count is not None and self.count > self._limit:
            return None
        listed = vertices(self.prior.pmf, self.families, self._limit)
        if listed is None:
            return None
        return VertexPricer(self.prior.pmf, listed, lambda lifts: self.utility.worths(self.prior.pmf, lifts))

    def every_column(self) -> list[Columns]:
        """All extreme columns, by family.

        Raises:
            ProgramError: there are too many; the message says how many.
        """
        if self._listed is None:
            raise ProgramError(self._too_many())
        return list(self._listed.listed)

    def _too_many(self) -> str:
        number = "too many" if self.count is None else f"{self.count:,}"
        return (
            f"under {self.privacy} there are {number} extreme columns on {self.prior.size} letters, and at "
            f"most {self._limit:,} can be listed for the utility {self.utility.name}: merge letters, or use "
            "an FInformation (such as MutualInformation, TotalVariation, ChiSquare, Hellinger) or a linear "
            "utility, which need no list"
        )
