"""The column spaces of requirements: boxes and staircases, sets of priors, and ratio bounds."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
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
    Explicit,
    Kernel,
    Pricer,
    recognised,
    unit_columns,
)
from pmlopt.programs.subconvex.count_pricing import CountPricer
from pmlopt.programs.subconvex.relaxations import closed_multipliers, relaxed
from pmlopt.programs.subconvex.search_pricing import SearchPricer
from pmlopt.programs.subconvex.split_pricing import ChordBound, SplitPricer, splits
from pmlopt.programs.subconvex.tangents import KindPricer, least_mass
from pmlopt.programs.subconvex.vertex_enumeration import VertexPricer, count_vertices, vertices
from pmlopt.solvers.outcome import FOREVER, Clock

SHORT_LIST = 20_000
"""Extreme columns up to which the list is priced in place of a bound, or of a pricing that needs none."""


MOST_LISTED_COLUMNS = 3_000_000
"""Extreme columns up to which they are listed for pricing; a tenth where each is a call of a function."""


@dataclass(frozen=True, eq=False)
class ColumnSpace:
    """The columns of mean one that a requirement allows, with their values under a sub-convex utility.

    Attributes:
        allowed: a few families, or those of a cone, or of ratio bounds.
    """

    prior: Prior
    privacy: Requirement
    utility: SubConvex
    allowed: tuple[Family, ...] | Cone | Ratios

    @cached_property
    def families(self) -> tuple[Family, ...]:
        """Return the families of the columns; over an l1 ball those without plateau; else none."""
        if isinstance(self.allowed, tuple):
            return self.allowed
        if isinstance(self.allowed, Cone) and isinstance(self.allowed.priors, L1Ball):
            ball = self.allowed.priors
            if (ball.center.pmf == self.prior.pmf).all():
                return ball.families(self.allowed.keep)
        return ()

    @cached_property
    def count(self) -> int | None:
        """Return the number of extreme columns, or of candidates, without a list; None where unknown."""
        if isinstance(self.allowed, tuple):
            return count_vertices(self.prior.pmf, self.allowed)
        return self.allowed.count

    @property
    def limit(self) -> int:
        """Return the number of extreme columns up to which they are listed."""
        if self.count is None:
            # large alphabets are listed without counting first, up to 100,000 columns
            return 100_000
        return MOST_LISTED_COLUMNS if self.utility.vectorised else MOST_LISTED_COLUMNS // 10

    def listed(self, limit: int) -> Sequence[Batch] | None:
        """List all extreme columns but the constant, up to a limit; None past it."""
        if isinstance(self.allowed, tuple):
            few = self.count is None or self.count <= limit
            return vertices(self.prior.pmf, self.allowed, limit) if few else None
        return None if self._all is None or len(self._all.listed[0]) > limit else self._all.listed

    def too_many(self) -> str:
        """Explain why the columns are not listed, and what to do."""
        number = "too many" if self.count is None else f"{self.count:,}"
        if isinstance(self.allowed, Ratios):
            return (
                f"the extreme columns under {self.privacy} are sought among {number} bases, of "
                f"{len(self.allowed.exponents):,} bounds on {self.prior.size} letters, and at most "
                f"{min(self.limit, MOST_BASES):,} are tried for the utility {self.utility.name}: merge "
                "letters, merge values of the secret or leave out bounds, or take an expected gain or loss, "
                "which needs no columns"
            )
        return (
            f"under {self.privacy} there are {number} extreme columns on {self.prior.size} letters, and at "
            f"most {self.limit:,} can be listed for the utility {self.utility.name}: merge letters, or use "
            "an FInformation (such as MutualInformation, TotalVariation, ChiSquare, Hellinger) or a linear "
            "utility, which need no list"
        )

    def starts(self) -> list[Batch]:
        """Build columns to start from where they cannot all be declared."""
        if not isinstance(self.allowed, tuple):
            return []
        p, boxes = self.prior.pmf, [family for family in self.allowed if isinstance(family, Box)]
        columns = [form.matrix / (p @ form.matrix) for _, form in forms(self.prior, self.privacy)]
        known = [recognised(box, lifts) for lifts in columns for box in boxes]
        return [*known, *(unit_columns(family, p) for family in self.allowed)]

    # ------------------------------------------------------------ what the utility says

    @cached_property
    def kernel(self) -> Kernel | None:
        """Return the utility as a sum over letters, where it is one; else None."""
        return Kernel(self.prior.pmf, self.utility.phi) if isinstance(self.utility, FInformation) else None

    def worths(self, lifts: FloatArray) -> FloatArray:
        """Compute (K,) the utility of columns."""
        return self.utility.worths(self.prior.pmf, lifts)

    @cached_property
    def constant(self) -> float:
        """Return the utility of releasing nothing."""
        return float(self.worths(np.ones((self.prior.size, 1)))[0])

    @cached_property
    def released(self) -> FloatArray:
        """Return (N,) the information of each letter if released: multipliers at which no column gains."""
        return self.worths(np.diag(1 / self.prior.pmf))

    @cached_property
    def everything(self) -> float:
        """Return the utility of releasing the secret, which none exceeds: `sum_x p[x] mu(e_x / p[x])`."""
        return float(self.prior.pmf @ self.released)

    @cached_property
    def everything_bound(self) -> float:
        """Return the utility of releasing the secret, with an allowance for rounding, as a bound."""
        p = self.prior.pmf
        return self.everything + rounding_of(len(p), float(p @ np.abs(self.released)))

    @cached_property
    def told(self) -> float:
        """Return the bound on mutual information over an l1 ball, where it is proved; else infinity."""
        return most_of_ball(self.families) if isinstance(self.utility, MutualInformation) else math.inf

    @cached_property
    def caps(self) -> FloatArray:
        """Return (N,) bounds on the entries of a column of mean one, by letter."""
        p, allowed, kernel = self.prior.pmf, self.allowed, self.kernel
        if isinstance(allowed, tuple) and kernel is not None:
            return np.asarray(np.max([kernel.caps(family) for family in allowed], axis=0))
        if isinstance(allowed, Cone) and allowed.priors.holds(p):
            return np.asarray(np.minimum(1 / allowed.keep, 1 / p))
        return np.asarray(1 / p)

    @cached_property
    def steepest(self) -> float:
        """Estimate how fast the utility grows with the bounds on columns, per share of a bound.

        `sum_xy q[y] p[x] lam_y[x] phi'(lam_y[x]) <= sum_x p[x] phi'(cap[x])`, since each row sums to one,
        where phi' grows; near 0 the slope of t log t over a margin is about 10.
        """
        kernel = self.kernel
        if kernel is None:
            return 10 + 4 * abs(self.largest)
        slopes = np.abs(kernel.phi(self.caps) - kernel.phi(self.caps * (1 - 1e-6))) / (self.caps * 1e-6)
        return 10 + float(kernel.p @ slopes)

    @cached_property
    def largest(self) -> float:
        """Return the largest value of an extreme column, where they are listed; else 0."""
        return 0.0 if self._all is None else self._all.largest

    def rounding(self, multipliers: FloatArray) -> float:
        """Bound what rounding may take off a bound."""
        p = self.prior.pmf
        if self.kernel is not None and isinstance(self.allowed, tuple):
            return self.kernel.rounding(multipliers, self.caps)
        size = float(np.abs(multipliers).max()) + float(p @ np.abs(multipliers))
        return rounding_of(len(p), size + abs(self.everything if self.kernel else self.largest))

    @cached_property
    def blur(self) -> float:
        """Return the rounding of a bound at typical multipliers."""
        if self.kernel is not None and isinstance(self.allowed, tuple):
            return self.rounding(self.closed_bound[1])
        return rounding_of(self.prior.size, 8 * (1 + abs(self.everything if self.kernel else self.largest)))

    # ------------------------------------------------------------ bounds and pricing

    @cached_property
    def closed_bound(self) -> tuple[float, FloatArray]:
        """Return a bound that needs no solving, and its multipliers; infinite where there is none."""
        kernel, p = self.kernel, self.prior.pmf
        free = np.zeros(len(p))
        if kernel is None or (self._search is None and not isinstance(self.allowed, tuple)):
            return math.inf, free
        if self.told < math.inf and not isinstance(self.allowed, tuple):
            return self.told + rounding_of(len(p), self.told), free
        if self.families:
            tried = [closed_multipliers(kernel, family) for family in self.families]
        else:
            assert isinstance(self.allowed, Cone)
            search = self._search
            chords = (
                search.nested.chords if isinstance(search, SplitPricer) else ChordBound(kernel, self.allowed)
            )
            tried = [min((chords.slopes, free), key=lambda rho: float(p @ rho) + chords.upper(rho))]
        return min(((float(p @ rho) + self._rough(rho), rho) for rho in tried), key=lambda found: found[0])

    def _rough(self, multipliers: FloatArray) -> float:
        """Bound the reduced values of columns: relaxed, or from a short list of staircases."""
        kernel, bound = self.kernel, -math.inf
        assert kernel is not None
        stairs = any(isinstance(family, Staircase) and not family.constant for family in self.families)
        if self._search is not None:
            bound = self._search.rough(multipliers)
        elif stairs and self.count is not None and self.count <= SHORT_LIST and self._all and self._all.parts:
            return max(self._all.bound(multipliers, -np.inf), kernel.at(1.0) - float(kernel.p @ multipliers))
        bound = max([bound, *(relaxed(kernel, family, multipliers) for family in self.families)])
        return min(bound, self.told - float(multipliers.min()))

    def bound(
        self, multipliers: FloatArray, enough: float, proved: float | None, clock: Clock = FOREVER
    ) -> tuple[float, str]:
        """Compute a bound on the utility of every mechanism, and return what it rests on.

        Args:
            multipliers: (N,) rho, any numbers.
            enough: a bound of this much need not be lowered.
            proved: what a search has proved already with these multipliers.
            clock: what is left of the time for a search.
        """
        p, rounding = self.prior.pmf, self.rounding(multipliers)
        base = float(p @ multipliers)
        if isinstance(self.allowed, tuple):
            if all(family.constant for family in self.allowed):
                return self.constant + rounding_of(len(p), 1.0 + abs(self.constant)), "constant"
            if self.kernel is not None:
                loose = base + self._rough(multipliers) + rounding
                if loose <= enough:
                    return loose, "relaxed"
        pricer = self.pricer()
        if proved is not None and not isinstance(pricer, CountPricer | VertexPricer):
            return proved + rounding, pricer.name
        return base + pricer.bound(multipliers, enough - base - rounding, clock) + rounding, pricer.name

    def pricer(self) -> Pricer:
        """Choose the way of pricing columns that is exact and cheapest here, or a search.

        Raises:
            ProgramError: the utility needs the list, and it is too long.
        """
        kernel, counts = self.kernel, self.prior.counts
        if isinstance(self.allowed, tuple) and kernel is not None and counts:
            varied = [family for family in self.allowed if not family.constant]
            if varied and CountPricer.affordable(varied, counts):
                return CountPricer(kernel, varied, counts)
        if self._all is not None:
            return self._all
        if kernel is None or isinstance(self.allowed, Ratios):
            raise ProgramError(self.too_many())
        return self._ball or self._search or SearchPricer(kernel, self.families)

    @cached_property
    def _ball(self) -> BallPricer | None:
        """Return the pricing over an l1 ball around the prior; None where there is none."""
        if not self.families or not isinstance(self._search, SplitPricer):
            return None
        exact = replace(self, allowed=self.families).pricer()
        return BallPricer(exact, self._search, self.told, isinstance(self.utility, MutualInformation))

    @cached_property
    def _all(self) -> VertexPricer[Any] | None:
        """Return the pricing from the list of all extreme columns; None where they are too many."""
        p, worths = self.prior.pmf, self.kernel or self.worths
        if isinstance(self.allowed, tuple):
            listed = self.listed(self.limit)
            return None if listed is None else VertexPricer(p, listed, worths)
        by_tangents = self._least_mass is not None or self.told < math.inf  # which need no long list
        lifts = self.allowed.extreme(p, min(self.limit, SHORT_LIST) if by_tangents else self.limit)
        raised = isinstance(self.allowed, Cone)
        return None if lifts is None else VertexPricer(p, [Explicit(lifts, raised)], worths)

    @cached_property
    def _search(self) -> SplitPricer | KindPricer | None:
        """Return the pricing over a set of priors without a list; None where it does not apply."""
        kernel, cone = self.kernel, self.allowed
        if kernel is None or not isinstance(cone, Cone) or self._all is not None:
            return None
        if self._least_mass is not None:
            return KindPricer.least_mass(self.prior.pmf, self._least_mass, cone.keep)
        return SplitPricer(kernel, cone, splits(cone)[:1] if self.families else splits(cone))

    @cached_property
    def _least_mass(self) -> float | None:
        """Return the minimum mass of every letter, where tangents price mutual information; else None."""
        if not isinstance(self.utility, MutualInformation) or not isinstance(self.allowed, Cone):
            return None
        return least_mass(self.allowed)


def column_space(prior: Prior, privacy: Requirement, utility: SubConvex) -> ColumnSpace:
    """Build the space of the allowed columns; one letter has the constant column only."""
    allowed = privacy.columns(prior)
    return ColumnSpace(prior, privacy, utility, (Box(1.0, 1.0),) if prior.size == 1 else allowed)


def column_bound(
    prior: Prior, privacy: Requirement, utility: SubConvex, multipliers: FloatArray, enough: float = -np.inf
) -> float:
    """Bound a sub-convex utility of every mechanism that meets the requirement from above.

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
