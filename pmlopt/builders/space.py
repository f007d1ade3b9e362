"""The extreme columns of a design: what is known of them without solving, and how they are priced."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from pmlopt.checks import FloatArray, rounding_of
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

LISTED = 3_000_000
"""Extreme columns up to which they are listed for pricing; a tenth where each is a call of a function."""

UNCOUNTED = 100_000
"""The same where the alphabet is too large to count them first."""


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
        parts = self._listed.parts if self._listed else []
        return max((float(part.worth.max()) for part in parts), default=0.0)

    @cached_property
    def steepest(self) -> float:
        """How fast the utility grows with the bounds on columns, at most, per share of a bound.

        `sum_xy q[y] p[x] lam_y[x] phi'(lam_y[x]) <= sum_x p[x] phi'(cap[x])`, since each row sums to one.
        """
        kernel = self.kernel
        if kernel is None:
            return 10 + 4 * abs(self.largest)
        caps = np.max([kernel.caps(family) for family in self.families], axis=0)
        slopes = np.abs(kernel.phi(caps) - kernel.phi(caps * (1 - 1e-6))) / (caps * 1e-6)
        return 10 + float(kernel.p @ slopes)  # where phi starts as t log t does, slopes near 0 are about 10

    @cached_property
    def blur(self) -> float:
        """What rounding leaves of a bound at sensible multipliers."""
        if self.kernel is None:
            return rounding_of(self.prior.size, 8 * (1 + abs(self.largest)))
        rho = self.closed_bound[1]
        return max(self.kernel.rounding(rho, family) for family in self.families)

    def pricer(self) -> Pricer:
        """The way of pricing columns that is exact and cheapest here, or a search.

        Raises:
            ProgramError: the utility needs the list, and it is too long.
        """
        kernel, counts = self.kernel, self.prior.counts
        families = [family for family in self.families if not family.constant]
        if kernel is not None and families and counts and CountPricer.affordable(families, counts):
            return CountPricer(kernel, families, counts)
        if self._listed is not None:
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
        p, utility = self.prior.pmf, self.utility
        return VertexPricer(p, listed, self.kernel or (lambda lifts: utility.worths(p, lifts)))

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
