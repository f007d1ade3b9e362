"""The spaces of extreme columns of requirements: boxes, staircases, sets of priors, ratio bounds."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, ClassVar

import numpy as np

from pmlopt.core.numbers.arrays import FloatArray, bound_sum_rounding
from pmlopt.data.prior import Prior
from pmlopt.errors import ProgramError
from pmlopt.model.closed_forms.catalogue import build_closed_forms
from pmlopt.model.privacy import Requirement
from pmlopt.model.privacy.ratios import MAX_BASES, RatioBounds
from pmlopt.model.uncertainty.columns import BoxFamily, ColumnCone, Family, StaircaseFamily
from pmlopt.model.utility import FInformation, MutualInformation, SubConvex
from pmlopt.programs.subconvex.ball_pricing import BallPricer, bound_family_information
from pmlopt.programs.subconvex.columns import (
    ColumnBatch,
    ColumnPricer,
    ColumnUtility,
    DenseBatch,
    InformationSpace,
    build_unit_columns,
    recognize_columns,
)
from pmlopt.programs.subconvex.count_pricing import CountPricer
from pmlopt.programs.subconvex.relaxations import ChordBound, bound_family, find_closed_multipliers
from pmlopt.programs.subconvex.search_pricing import SearchPricer
from pmlopt.programs.subconvex.split_pricing import SplitPricer, build_split_families
from pmlopt.programs.subconvex.tangents import TangentPricer, get_common_min_mass
from pmlopt.programs.subconvex.vertex_enumeration import VertexPricer, count_vertices, list_vertices
from pmlopt.solvers.solver_result import NO_DEADLINE, Deadline

MAX_ENUMERATED_COLUMNS = 3_000_000
"""Extreme columns up to which they are listed for pricing; a tenth where each is a call of a function."""


@dataclass(frozen=True, eq=False)
class ColumnSpace(InformationSpace):
    """The extreme columns of mean one under a requirement, with their values for a sub-convex utility.

    Attributes:
        allowed: a few families, or those of a cone, or of ratio bounds.
        laws: (K, N) the priors of a set that is no polytope of which the cone is; None for those that it has
            without a search.
    """

    MAX_SHORT_LIST_COLUMNS: ClassVar[int] = 20_000
    """Extreme columns up to which the list is priced in place of a bound, or of a pricing that needs none."""

    privacy: Requirement
    allowed: tuple[Family, ...] | ColumnCone | RatioBounds
    laws: FloatArray | None = None

    @cached_property
    def families(self) -> tuple[Family, ...]:
        """Return the parametric families of the columns; none for a general cone."""
        if isinstance(self.allowed, tuple):
            return self.allowed
        if not isinstance(self.allowed, ColumnCone):
            return ()
        known = self.allowed.priors.column_families(self.prior.pmf, self.allowed.exp_neg_epsilon)
        return known or ()

    @cached_property
    def column_count(self) -> int | None:
        """Return the number of extreme columns without listing them; None where unknown."""
        if isinstance(self.allowed, tuple):
            return count_vertices(self.prior.pmf, self.allowed)
        return self.allowed.candidate_count

    @property
    def listing_limit(self) -> int:
        """Return the largest number of extreme columns that are listed."""
        if self.column_count is None:
            # large alphabets are listed without counting first, up to 100,000 columns
            return 100_000
        return MAX_ENUMERATED_COLUMNS if self.utility.vectorised else MAX_ENUMERATED_COLUMNS // 10

    def list_columns(self, limit: int) -> Sequence[ColumnBatch] | None:
        """List all non-constant extreme columns, if at most `limit`; else None."""
        if isinstance(self.allowed, tuple):
            if self.column_count is not None and self.column_count > limit:
                return None
            known: Sequence[ColumnBatch] | None = self.__dict__.get("_listed_columns")
            if known is not None and sum(map(len, known)) <= limit:
                return known
            found = list_vertices(self.prior.pmf, self.allowed, limit)
            if found is not None:
                self.__dict__["_listed_columns"] = found
            return found
        if self._vertex_pricer is None or len(self._vertex_pricer.listed[0]) > limit:
            return None
        return self._vertex_pricer.listed

    def explain_too_many(self) -> str:
        """Explain why the extreme columns are too many to list, and the alternatives."""
        number = "too many" if self.column_count is None else f"{self.column_count:,}"
        if isinstance(self.allowed, RatioBounds):
            return (
                f"the extreme columns under {self.privacy} are sought among {number} bases, of "
                f"{len(self.allowed.exponents):,} bounds on {self.prior.size} letters, and at most "
                f"{min(self.listing_limit, MAX_BASES):,} are tried for the utility {self.utility.name}: "
                "merge "
                "letters, merge values of the secret or leave out bounds, or take an expected gain or loss, "
                "which needs no columns"
            )
        return (
            f"under {self.privacy} there are {number} extreme columns on {self.prior.size} letters, and at "
            f"most {self.listing_limit:,} can be listed for the utility {self.utility.name}: merge "
            "letters, or use "
            "an FInformation (such as MutualInformation, TotalVariation, ChiSquare, Hellinger) or a linear "
            "utility, which need no list"
        )

    def build_starts(self) -> list[ColumnBatch]:
        """Build initial columns where the complete list is too long."""
        if not isinstance(self.allowed, tuple):
            return []
        p = self.prior.pmf
        boxes = [family for family in self.allowed if isinstance(family, BoxFamily)]
        columns = [
            form.matrix / (p @ form.matrix)
            for _, form in build_closed_forms(self.prior, self.privacy)
        ]
        known = [recognize_columns(box, lifts) for lifts in columns for box in boxes]
        return [*known, *(build_unit_columns(family, p) for family in self.allowed)]

    # ------------------------------------------------------------ what the utility states

    @cached_property
    def column_utility(self) -> ColumnUtility | None:
        """Return the utility as a separable function of the letters; None where it is not one."""
        if isinstance(self.utility, FInformation):
            return ColumnUtility(self.prior.pmf, self.utility.phi)
        return None

    @cached_property
    def full_release_bound(self) -> float:
        """Return the utility of the full release as an upper bound with a rounding allowance."""
        p = self.prior.pmf
        return self.full_release_utility + bound_sum_rounding(
            len(p), float(p @ np.abs(self.release_multipliers))
        )

    @cached_property
    def ball_information_bound(self) -> float:
        """Return the closed-form bound on mutual information over an l1 ball; infinite where unproved."""
        if isinstance(self.utility, MutualInformation):
            return bound_family_information(self.families)
        return math.inf

    @cached_property
    def max_entries(self) -> FloatArray:
        """Return the (N,) largest entries of mean-one columns by letter."""
        p = self.prior.pmf
        allowed = self.allowed
        kernel = self.column_utility
        if isinstance(allowed, tuple) and kernel is not None:
            return np.asarray(np.max([kernel.max_entries(family) for family in allowed], axis=0))
        if isinstance(allowed, ColumnCone) and allowed.priors.contains_law(p):
            return np.minimum(1 / allowed.exp_neg_epsilon, 1 / p)
        return 1 / p

    @cached_property
    def utility_slope(self) -> float:
        """Estimate the sensitivity of the utility to relative changes of the column bounds.

        `sum_xy q[y] p[x] lam_y[x] phi'(lam_y[x]) <= sum_x p[x] phi'(cap[x])`, since each row sums to one,
        where phi' grows; near 0 the slope of t log t over a margin is about 10.
        """
        kernel = self.column_utility
        if kernel is None:
            return 10 + 4 * abs(self.max_column_value)
        # a difference just below the cap, where the slope of a convex phi is largest
        slopes = np.abs(
            kernel.phi(self.max_entries) - kernel.phi(self.max_entries * (1 - 1e-6))
        ) / (self.max_entries * 1e-6)
        return 10 + float(kernel.p @ slopes)

    @cached_property
    def max_column_value(self) -> float:
        """Return the largest utility of a listed extreme column; 0 without a list."""
        return 0.0 if self._vertex_pricer is None else self._vertex_pricer.max_value

    def bound_rounding(self, multipliers: FloatArray) -> float:
        """Bound the rounding error of a dual bound."""
        p = self.prior.pmf
        if self.column_utility is not None and isinstance(self.allowed, tuple):
            return self.column_utility.bound_rounding(multipliers, self.max_entries)
        # both <p, rho> and <p rho, lam> round, the latter at most like max |rho|
        size = float(np.abs(multipliers).max()) + float(p @ np.abs(multipliers))
        return bound_sum_rounding(
            len(p),
            size + abs(self.full_release_utility if self.column_utility else self.max_column_value),
        )

    @cached_property
    def typical_rounding(self) -> float:
        """Return the rounding error of a dual bound at typical multipliers."""
        if self.column_utility is not None and isinstance(self.allowed, tuple):
            return self.bound_rounding(self.closed_bound[1])
        return bound_sum_rounding(
            self.prior.size,
            8
            * (
                1 + abs(self.full_release_utility if self.column_utility else self.max_column_value)
            ),
        )

    # ------------------------------------------------------------ bounds and pricing

    @cached_property
    def closed_bound(self) -> tuple[float, FloatArray]:
        """Return an upper bound without optimization, with its multipliers; infinite where there is none."""
        kernel = self.column_utility
        p = self.prior.pmf
        free = np.zeros(len(p))
        if kernel is None or (self._set_pricer is None and not isinstance(self.allowed, tuple)):
            return math.inf, free
        # zero multipliers suffice, as this bound is on the worth of a column as a whole
        if self.ball_information_bound < math.inf and not isinstance(self.allowed, tuple):
            return self.ball_information_bound + bound_sum_rounding(
                len(p), self.ball_information_bound
            ), free
        if self.families:
            tried = [find_closed_multipliers(kernel, family) for family in self.families]
        else:
            assert isinstance(self.allowed, ColumnCone)
            search = self._set_pricer
            chords = (
                search.nested.chords
                if isinstance(search, SplitPricer)
                else ChordBound(kernel, self.allowed)
            )
            tried = [
                min(
                    (chords.slopes, free),
                    key=lambda rho: float(p @ rho) + chords.compute_bound(rho),
                )
            ]
        return min(
            ((float(p @ rho) + self._rough_bound(rho), rho) for rho in tried),
            key=lambda found: found[0],
        )

    def _rough_bound(self, multipliers: FloatArray) -> float:
        """Bound the reduced values cheaply, by a relaxation or a short list of staircases."""
        kernel = self.column_utility
        bound = -math.inf
        assert kernel is not None
        stairs = any(
            isinstance(family, StaircaseFamily) and not family.is_constant_only
            for family in self.families
        )
        if self._set_pricer is not None:
            bound = self._set_pricer.bound_roughly(multipliers)
        elif (
            stairs
            and self.column_count is not None
            and self.column_count <= self.MAX_SHORT_LIST_COLUMNS
            and self._vertex_pricer
            and self._vertex_pricer.parts
        ):
            return max(
                self._vertex_pricer.bound_reduced_values(multipliers, -np.inf),
                kernel.evaluate_phi(1.0) - float(kernel.p @ multipliers),
            )
        bound = max(
            [bound, *(bound_family(kernel, family, multipliers) for family in self.families)]
        )
        # <p rho, lam> >= min rho for a column of mean one
        return min(bound, self.ball_information_bound - float(multipliers.min()))

    def compute_bound(
        self,
        multipliers: FloatArray,
        cutoff: float,
        proved: float | None,
        deadline: Deadline = NO_DEADLINE,
    ) -> tuple[float, str]:
        """Compute a dual upper bound on the utility of every mechanism, with the name of its method.

        Args:
            multipliers: (N,) rho, any numbers.
            cutoff: a bound of this much need not be lowered.
            proved: what a search has proved already with these multipliers.
            deadline: of a search.
        """
        p = self.prior.pmf
        rounding = self.bound_rounding(multipliers)
        base = float(p @ multipliers)
        if isinstance(self.allowed, tuple):
            if all(family.is_constant_only for family in self.allowed):
                return self.constant_utility + bound_sum_rounding(
                    len(p), 1.0 + abs(self.constant_utility)
                ), "constant"
            if self.column_utility is not None:
                # the relaxed bound costs a sort; exact pricing is tried only where it is too weak
                loose = base + self._rough_bound(multipliers) + rounding
                if loose <= cutoff:
                    return loose, "relaxed"
        pricer = self.choose_pricer()
        # a search costs as much as the solve: its proof at the same multipliers is reused
        if proved is not None and not isinstance(pricer, CountPricer | VertexPricer):
            return proved + rounding, pricer.name
        return base + pricer.bound_reduced_values(
            multipliers, cutoff - base - rounding, deadline
        ) + rounding, pricer.name

    def choose_pricer(self) -> ColumnPricer:
        """Choose the cheapest exact pricing method for this space, or a heuristic search.

        Raises:
            ProgramError: the utility needs the list, and it is too long.
        """
        kernel = self.column_utility
        counts = self.prior.counts
        if isinstance(self.allowed, tuple) and kernel is not None and counts:
            varied = [family for family in self.allowed if not family.is_constant_only]
            # dynamic programming first: it is exact whatever the number of extreme columns
            if varied and CountPricer.is_affordable(varied, counts):
                return CountPricer(kernel, varied, counts)
        if self._vertex_pricer is not None:
            return self._vertex_pricer
        if kernel is None or isinstance(self.allowed, RatioBounds):
            raise ProgramError(self.explain_too_many())
        return self._ball_pricer or self._set_pricer or SearchPricer(kernel, self.families)

    @cached_property
    def _ball_pricer(self) -> BallPricer | None:
        """Return the pricer over an l1 ball around the prior; None where it does not apply."""
        if not self.families or not isinstance(self._set_pricer, SplitPricer):
            return None
        # columns without plateau are those of a few families, with their exact pricers
        exact = replace(self, allowed=self.families).choose_pricer()
        return BallPricer(
            exact,
            self._set_pricer,
            self.ball_information_bound,
            isinstance(self.utility, MutualInformation),
        )

    @cached_property
    def _vertex_pricer(self) -> VertexPricer[Any] | None:
        """Return the pricer by enumeration of extreme columns; None where they are too many."""
        p = self.prior.pmf
        worths = self.column_utility or self.column_values
        if isinstance(self.allowed, tuple):
            listed = self.list_columns(self.listing_limit)
            return None if listed is None else VertexPricer(p, listed, worths)
        # which need no long list
        by_tangents = self._common_min_mass is not None or self.ball_information_bound < math.inf
        lifts = self.allowed.extreme_columns(
            p,
            min(self.listing_limit, self.MAX_SHORT_LIST_COLUMNS)
            if by_tangents
            else self.listing_limit,
        )
        raised = isinstance(self.allowed, ColumnCone)
        return None if lifts is None else VertexPricer(p, [DenseBatch(lifts, raised)], worths)

    @cached_property
    def _set_pricer(self) -> SplitPricer | TangentPricer | None:
        """Return the pricer over a set of priors without enumeration; None where it does not apply."""
        kernel = self.column_utility
        cone = self.allowed
        if kernel is None or not isinstance(cone, ColumnCone) or self._vertex_pricer is not None:
            return None
        if self._common_min_mass is not None:
            return TangentPricer.for_min_mass(
                self.prior.pmf, self._common_min_mass, cone.exp_neg_epsilon
            )
        return SplitPricer(
            kernel,
            cone,
            build_split_families(cone)[:1] if self.families else build_split_families(cone),
        )

    @cached_property
    def _common_min_mass(self) -> float | None:
        """Return the common minimum mass of all letters, where tangent pricing applies; else None."""
        if not isinstance(self.utility, MutualInformation) or not isinstance(
            self.allowed, ColumnCone
        ):
            return None
        return get_common_min_mass(self.allowed)


def build_column_space(
    prior: Prior, privacy: Requirement, utility: SubConvex, laws: FloatArray | None = None
) -> ColumnSpace:
    """Build the space of extreme columns of a requirement.

    Args:
        prior: N letters.
        privacy: the requirement.
        utility: the sub-convex utility.
        laws: (K, N) the priors to take of a set that is no polytope; any do, in place of those that are
            taken without a search.

    Raises:
        ProgramError: there are laws, and the requirement is not over such a set on these letters.
    """
    allowed = privacy.require_extreme_columns(prior, "designs with a sub-convex utility")
    if prior.size == 1:
        allowed = (BoxFamily(1.0, 1.0),)
    if laws is None:
        return ColumnSpace(prior, utility, privacy, allowed)
    if (
        not isinstance(allowed, ColumnCone)
        or allowed.relaxed is None
        or not _are_valid_measures(laws, prior)
    ):
        raise ProgramError(
            f"there are priors of a set that is no polytope, and {privacy!r} is over none on these letters"
        )
    cone = ColumnCone.from_members(allowed.relaxed, allowed.exp_neg_epsilon, laws)
    return ColumnSpace(prior, utility, privacy, cone, laws)


def _are_valid_measures(laws: FloatArray, prior: Prior) -> bool:
    """Return whether rows are finite nonnegative measures on the letters, at least one row."""
    fits = laws.ndim == 2 and laws.shape[1:] == (prior.size,) and len(laws) > 0
    return fits and bool(np.isfinite(laws).all())
