"""The column spaces of requirements: boxes and staircases, sets of priors, and ratio bounds."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from pmlopt.core.arrays import FloatArray, rounding_of
from pmlopt.data.prior import Prior
from pmlopt.errors import ProgramError
from pmlopt.model.closed_forms.catalogue import forms
from pmlopt.model.privacy import Requirement
from pmlopt.model.privacy.ratios import MOST_BASES, Ratios
from pmlopt.model.uncertainty.columns import Box, Cone, Family, Staircase
from pmlopt.model.uncertainty.l1_ball import L1Ball
from pmlopt.model.utility import FInformation, MutualInformation, SubConvex
from pmlopt.programs.subconvex.ball_pricing import BallPricer, most_of_ball
from pmlopt.programs.subconvex.columns import (
    Batch,
    Columns,
    Explicit,
    Kernel,
    Pricer,
    recognised,
    unit_columns,
)
from pmlopt.programs.subconvex.count_pricing import CountPricer
from pmlopt.programs.subconvex.relaxations import closed_multipliers, relaxed
from pmlopt.programs.subconvex.search_pricing import SearchPricer
from pmlopt.programs.subconvex.split_pricing import ROUGH_DIGITS, ChordBound, SplitPricer, splits
from pmlopt.programs.subconvex.tangents import KindPricer, least_mass
from pmlopt.programs.subconvex.vertex_enumeration import VertexPricer, count_vertices, vertices
from pmlopt.solvers.outcome import FOREVER, Clock

MOST_LISTED_UNCOUNTED = 100_000
"""Extreme columns up to which they are listed where the alphabet is too large to count them first."""

SHORT_LIST = 20_000
"""Extreme columns up to which the list is priced in place of a bound, or of a pricing that needs none."""


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

    @cached_property
    @abstractmethod
    def _all(self) -> VertexPricer[Any] | None:
        """Pricing from the list of all extreme columns; None where they are too many."""

    @cached_property
    def largest(self) -> float:
        """The largest worth of an extreme column, where they are listed; else 0."""
        return 0.0 if self._all is None else self._all.largest

    @abstractmethod
    def rounding(self, multipliers: FloatArray) -> float:
        """What rounding may take off a bound."""

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
        p, pricer = self.prior.pmf, self.pricer()
        base, rounding = float(p @ multipliers), self.rounding(multipliers)
        if proved is not None and not isinstance(pricer, CountPricer | VertexPricer):
            return proved + rounding, pricer.name
        return base + pricer.bound(multipliers, enough - base - rounding, clock) + rounding, pricer.name

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

    def _rounding(self, multipliers: FloatArray, largest: float) -> float:
        """The same where no utility of a column is larger than this."""
        p = self.prior.pmf
        size = float(np.abs(multipliers).max()) + float(p @ np.abs(multipliers)) + abs(largest)
        return rounding_of(len(p), size)


@dataclass(frozen=True, eq=False)
class FamilySpace(ColumnSpace):
    """The columns of a few families."""

    families: tuple[Family, ...]

    @cached_property
    def count(self) -> int | None:
        return count_vertices(self.prior.pmf, self.families)

    @property
    def limit(self) -> int:
        return super().limit if self.count is not None else MOST_LISTED_UNCOUNTED

    def listed(self, limit: int) -> list[Batch] | None:
        if self.count is not None and self.count > limit:
            return None
        found = vertices(self.prior.pmf, self.families, limit)
        return None if found is None else list(found)

    def starts(self) -> list[Batch]:
        p = self.prior.pmf
        boxes = [family for family in self.families if isinstance(family, Box)]
        known = [
            recognised(box, form.matrix / (p @ form.matrix))
            for _, form in forms(self.prior, self.privacy)
            for box in boxes
        ]
        return [*known, *(unit_columns(family, p) for family in self.families)]

    @cached_property
    def closed_bound(self) -> tuple[float, FloatArray]:
        kernel = self.kernel
        if kernel is None:
            return np.inf, np.zeros(self.prior.size)
        rhos = (closed_multipliers(kernel, family) for family in self.families)
        tried = [(float(self.prior.pmf @ rho) + self._loose(rho), rho) for rho in rhos]
        return min(tried, key=lambda found: found[0])

    def _loose(self, multipliers: FloatArray) -> float:
        """A bound on what columns are worth beyond their cost: relaxed, or from a short list of stairs."""
        kernel = self.kernel
        assert kernel is not None
        stairs = any(isinstance(family, Staircase) and not family.constant for family in self.families)
        if stairs and self.count is not None and self.count <= SHORT_LIST and self._all and self._all.parts:
            return max(self._all.bound(multipliers, -np.inf), kernel.at(1.0) - float(kernel.p @ multipliers))
        told = most_of_ball(self.families) if isinstance(self.utility, MutualInformation) else np.inf
        loose = max(relaxed(kernel, family, multipliers) for family in self.families)
        return min(loose, told - float(multipliers.min()))

    @cached_property
    def caps(self) -> FloatArray:
        kernel = self.kernel
        assert kernel is not None
        return np.asarray(np.max([kernel.caps(family) for family in self.families], axis=0))

    @cached_property
    def blur(self) -> float:
        if self.kernel is None:
            return rounding_of(self.prior.size, 8 * (1 + abs(self.largest)))
        rho = self.closed_bound[1]
        return max(self.kernel.rounding(rho, family) for family in self.families)

    def pricer(self) -> Pricer:
        kernel, counts = self.kernel, self.prior.counts
        families = [family for family in self.families if not family.constant]
        if kernel is not None and families and counts and CountPricer.affordable(families, counts):
            return CountPricer(kernel, families, counts)
        if self._all is not None:
            return self._all
        if kernel is None:
            raise ProgramError(self.too_many())
        if isinstance(self.utility, MutualInformation) and len(families) == 1:
            [one] = families
            if isinstance(one, Staircase) and one.base == 0:
                return KindPricer.least_mass(self.prior.pmf, 0.0, 1 / one.slope)
        return SearchPricer(kernel, families)

    @cached_property
    def _all(self) -> VertexPricer[Columns] | None:
        if self.count is not None and self.count > self.limit:
            return None
        listed = vertices(self.prior.pmf, self.families, self.limit)
        return None if listed is None else VertexPricer(self.prior.pmf, listed, self.kernel or self.worths)

    def bound(
        self, multipliers: FloatArray, enough: float, proved: float | None, clock: Clock = FOREVER
    ) -> tuple[float, str]:
        p, kernel = self.prior.pmf, self.kernel
        if all(family.constant for family in self.families):
            return self.constant + rounding_of(len(p), 1.0 + abs(self.constant)), "constant"
        if kernel is not None:
            loose = float(p @ multipliers) + self._loose(multipliers) + self.rounding(multipliers)
            if loose <= enough:
                return loose, "relaxed"
        return super().bound(multipliers, enough, proved, clock)

    def rounding(self, multipliers: FloatArray) -> float:
        kernel = self.kernel
        if kernel is None:
            return self._rounding(multipliers, self.largest)
        return max(kernel.rounding(multipliers, one) for one in self.families if not one.constant)


@dataclass(frozen=True, eq=False)
class SetSpace(ColumnSpace):
    """The columns of a cone."""

    cone: Cone | Ratios

    @property
    def count(self) -> int:
        return self.cone.count

    def too_many(self) -> str:
        if not isinstance(self.cone, Ratios):
            return super().too_many()
        return (
            f"the extreme columns under {self.privacy} are sought among {self.count:,} bases, of "
            f"{len(self.cone.exponents):,} bounds on {self.prior.size} letters, and at most "
            f"{min(self.limit, MOST_BASES):,} are tried for the utility {self.utility.name}: merge letters, "
            "merge values of the secret or leave out bounds, or take an expected gain or loss, which needs "
            "no columns"
        )

    def listed(self, limit: int) -> list[Batch] | None:
        if self._all is None or len(self._all.listed[0]) > limit:
            return None
        return [self._all.listed[0]]

    def starts(self) -> list[Batch]:
        return [] if self._search is None else [*self._search.seeds()]

    @cached_property
    def closed_bound(self) -> tuple[float, FloatArray]:
        p, search = self.prior.pmf, self._search
        if search is None:
            return np.inf, np.zeros(len(p))
        if isinstance(search, BallPricer):
            known = search.closed(np.zeros(len(p)))
            if known < np.inf:
                return known + rounding_of(len(p), known), np.zeros(len(p))
            bound, rho = self._families.closed_bound
            plateaus = search.split.bound(rho, -np.inf, digits=ROUGH_DIGITS)
            return max(bound, float(p @ rho) + plateaus), rho
        tried = (self._chords.slopes, np.zeros(len(p)))
        rho = min(tried, key=lambda rho: float(p @ rho) + self._chords.upper(rho))
        if isinstance(search, KindPricer):
            return float(p @ rho) + search.relaxed(rho, 0.0, 0.0).upper, rho
        return float(p @ rho) + search.bound(rho, -np.inf, digits=ROUGH_DIGITS), rho

    @cached_property
    def caps(self) -> FloatArray:
        if self._search is not None:
            return self._chords.caps
        assert self._all is not None
        return np.asarray(self._all.listed[0].lifts(self.prior.pmf).max(axis=1))

    @cached_property
    def blur(self) -> float:
        return rounding_of(self.prior.size, 8 * (1 + abs(self.everything)))

    def pricer(self) -> Pricer:
        if self._all is not None:
            return self._all
        if self._search is None:
            raise ProgramError(self.too_many())
        return self._search

    def rounding(self, multipliers: FloatArray) -> float:
        return self._rounding(multipliers, self.everything)

    @cached_property
    def _all(self) -> VertexPricer[Explicit] | None:
        p, raised = self.prior.pmf, isinstance(self.cone, Cone)
        lifts = self.cone.extreme(p, min(self.limit, SHORT_LIST) if self._by_tangents else self.limit)
        return (
            None if lifts is None else VertexPricer(p, [Explicit(lifts, raised)], self.kernel or self.worths)
        )

    @cached_property
    def _chords(self) -> ChordBound:
        assert self.kernel is not None
        assert isinstance(self.cone, Cone)
        if isinstance(self._search, SplitPricer | BallPricer):
            return self._search.nested.chords
        return ChordBound(self.kernel, self.cone)

    @cached_property
    def _search(self) -> SplitPricer | BallPricer | KindPricer | None:
        return self._search_beyond if self._all is None else None

    @cached_property
    def _search_beyond(self) -> SplitPricer | BallPricer | KindPricer | None:
        """Pricing without a list, where there is one."""
        if self.kernel is None or not isinstance(self.cone, Cone):
            return None
        if self._least_mass is not None:
            return KindPricer.least_mass(self.prior.pmf, self._least_mass, self.cone.keep)
        ball = self.cone.priors
        if not isinstance(ball, L1Ball) or (ball.center.pmf != self.prior.pmf).any():
            return SplitPricer(self.kernel, self.cone, splits(self.cone))
        plateaus = SplitPricer(self.kernel, self.cone, splits(self.cone)[:1])
        information = isinstance(self.utility, MutualInformation)
        return BallPricer(self._families.pricer(), plateaus, ball.half, information)

    @property
    def _by_tangents(self) -> bool:
        """Whether tangents price mutual information, so that a list need not be long."""
        if self._least_mass is not None:
            return True
        return isinstance(self._search_beyond, BallPricer) and self._search_beyond.plateaus is not None

    @property
    def _least_mass(self) -> float | None:
        """The mass that every letter has at least, where tangents price mutual information."""
        if not isinstance(self.utility, MutualInformation) or not isinstance(self.cone, Cone):
            return None
        return least_mass(self.cone)

    @property
    def _families(self) -> FamilySpace:
        """The columns over an l1 ball that have no plateau."""
        assert isinstance(self.cone, Cone)
        assert isinstance(self.cone.priors, L1Ball)
        families = self.cone.priors.families(self.cone.keep)
        return FamilySpace(self.prior, self.privacy, self.utility, families)


def column_space(prior: Prior, privacy: Requirement, utility: SubConvex) -> ColumnSpace:
    """The space of what the requirement allows; one letter has the constant column only."""
    allowed = privacy.columns(prior)
    if prior.size == 1:
        return FamilySpace(prior, privacy, utility, (Box(1.0, 1.0),))
    if isinstance(allowed, Cone | Ratios):
        return SetSpace(prior, privacy, utility, allowed)
    return FamilySpace(prior, privacy, utility, allowed)


def column_bound(
    prior: Prior, privacy: Requirement, utility: SubConvex, multipliers: FloatArray, enough: float = -np.inf
) -> float:
    """An upper bound on a sub-convex utility of every mechanism that meets the requirement.

    For every rho in R^N: `sum_y q[y] mu(lam_y) = <p, rho> + sum_y q[y] (mu(lam_y) - <p rho, lam_y>)`, and the
    last sum is at most the largest term over the extreme columns. rho may be anything, and what rounding
    may have taken off is added.

    Args:
        prior: N letters.
        privacy: the requirement.
        utility: the sub-convex utility.
        multipliers: (N,) rho; the multipliers of the rows over p reach the optimum.
        enough: a bound of this much need not be lowered, which can save a search.

    Raises:
        ProgramError: there are too many extreme columns for this utility.

    Source: [gilmore1961cutting] (pricing); [grosse2024extremal, Theorem 6] (the columns).

    Examples:
        >>> from pmlopt import MutualInformation, PML
        >>> bound = column_bound(Prior.uniform(4), PML(np.log(2)), MutualInformation(), np.zeros(4))
        >>> round(np.exp(bound).item(), 12)
        2.0
    """
    return column_space(prior, privacy, utility).bound(multipliers, enough, None)[0]
