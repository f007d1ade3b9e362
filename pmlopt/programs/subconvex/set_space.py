"""Column spaces of PML over a set of priors in general, and of ratio bounds."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from pmlopt.arrays import FloatArray, rounding_of
from pmlopt.backends.clock import FOREVER, Clock
from pmlopt.errors import ProgramError
from pmlopt.privacy.ratios import Ratios
from pmlopt.programs.subconvex.column_batch import Batch
from pmlopt.programs.subconvex.column_space import ColumnSpace
from pmlopt.programs.subconvex.family_space import FamilySpace
from pmlopt.programs.subconvex.listed_columns import Explicit, ExplicitPricer
from pmlopt.programs.subconvex.nested_pricing import BallPricer, NestedPricer
from pmlopt.programs.subconvex.plateau_pricing import Plateau, PlateauSearch
from pmlopt.programs.subconvex.pricing import Pricer
from pmlopt.programs.subconvex.split_pricing import ROUGH_DIGITS, SplitPricer
from pmlopt.uncertainty.cone import Cone
from pmlopt.uncertainty.l1_ball import L1Ball


@dataclass(frozen=True, eq=False)
class SetSpace(ColumnSpace):
    """The columns of a cone."""

    cone: Cone | Ratios

    @property
    def count(self) -> int:
        return self.cone.count

    def listed(self, limit: int) -> list[Batch] | None:
        return [self._all.listed] if self._all is not None and len(self._all.listed) <= limit else None

    def starts(self) -> list[Batch]:
        return [] if self._search is None else [*self._search.seeds()]

    @cached_property
    def closed_bound(self) -> tuple[float, FloatArray]:
        p, search = self.prior.pmf, self._search
        if search is None:
            return np.inf, np.zeros(len(p))
        if isinstance(search, BallPricer):
            bound, rho = self._families.closed_bound
            plateau = PlateauSearch(search.nested.kernel, search.plateau, rho, np.inf).upper
            return max(bound, float(p @ rho) + plateau), rho
        tried = (search.nested.chords.slopes, np.zeros(len(p)))
        rho = min(tried, key=lambda rho: float(p @ rho) + search.nested.chords.upper(rho))
        return float(p @ rho) + search.bound(rho, -np.inf, digits=ROUGH_DIGITS), rho

    @cached_property
    def largest(self) -> float:
        return 0.0 if self._all is None else float(self._all.worth.max())

    @cached_property
    def caps(self) -> FloatArray:
        if self._search is not None:
            return self._search.nested.chords.caps
        assert self._all is not None
        return np.asarray(self._all.listed.entries.max(axis=1))

    @cached_property
    def blur(self) -> float:
        return rounding_of(self.prior.size, 8 * (1 + abs(self.everything)))

    def pricer(self) -> Pricer:
        if self._all is not None:
            return self._all
        if self._search is None:
            raise ProgramError(self.too_many())
        return self._search

    def bound(
        self, multipliers: FloatArray, enough: float, proved: float | None, clock: Clock = FOREVER
    ) -> tuple[float, str]:
        p, pricer = self.prior.pmf, self.pricer()
        base = float(p @ multipliers)
        size = float(np.abs(multipliers).max()) + float(p @ np.abs(multipliers)) + abs(self.everything)
        rounding = rounding_of(len(p), size)
        if proved is not None and pricer is self._search:
            return proved + rounding, pricer.name
        return base + pricer.bound(multipliers, enough - base - rounding, clock) + rounding, pricer.name

    @cached_property
    def _all(self) -> ExplicitPricer | None:
        p, raised = self.prior.pmf, isinstance(self.cone, Cone)
        lifts = self.cone.extreme(p, self.limit)
        return (
            None if lifts is None else ExplicitPricer(p, Explicit(lifts, raised), self.kernel or self.worths)
        )

    @cached_property
    def _search(self) -> SplitPricer | BallPricer | None:
        if self._all is not None or self.kernel is None or not isinstance(self.cone, Cone):
            return None
        ball = self.cone.priors
        if not isinstance(ball, L1Ball) or (ball.center.pmf != self.prior.pmf).any():
            return SplitPricer(self.kernel, self.cone)
        nested = NestedPricer(self.kernel, self.cone)
        return BallPricer(self._families.pricer(), nested, Plateau(ball.half, self.cone.keep))

    @property
    def _families(self) -> FamilySpace:
        """The columns over an l1 ball that have no plateau."""
        assert isinstance(self.cone, Cone)
        assert isinstance(self.cone.priors, L1Ball)
        families = self.cone.priors.families(self.cone.keep)
        return FamilySpace(self.prior, self.privacy, self.utility, families)
