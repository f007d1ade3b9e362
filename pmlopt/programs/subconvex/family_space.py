"""Column spaces made of boxes and staircases."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from pmlopt.arrays import FloatArray, rounding_of
from pmlopt.backends.clock import FOREVER, Clock
from pmlopt.closed_forms.catalogue import forms
from pmlopt.errors import ProgramError
from pmlopt.programs.subconvex.column_batch import Batch, recognised, unit_columns
from pmlopt.programs.subconvex.column_space import ColumnSpace
from pmlopt.programs.subconvex.count_pricing import CountPricer
from pmlopt.programs.subconvex.knapsack_relaxation import closed_multipliers, relaxed
from pmlopt.programs.subconvex.pricing import Pricer
from pmlopt.programs.subconvex.search_pricing import SearchPricer
from pmlopt.programs.subconvex.vertex_enumeration import VertexPricer, count_vertices, vertices
from pmlopt.uncertainty.column_families import Box, Family

MOST_LISTED_UNCOUNTED = 100_000
"""Extreme columns up to which they are listed where the alphabet is too large to count them first."""


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
        tried = []
        for rho in (closed_multipliers(kernel, family) for family in self.families):
            upper = max(relaxed(kernel, family, rho) for family in self.families)
            tried.append((float(self.prior.pmf @ rho) + upper, rho))
        return min(tried, key=lambda found: found[0])

    @cached_property
    def largest(self) -> float:
        parts = self._all.parts if self._all else []
        return max((float(part.worth.max()) for part in parts), default=0.0)

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
        return SearchPricer(kernel, families)

    @cached_property
    def _all(self) -> VertexPricer | None:
        if self.count is not None and self.count > self.limit:
            return None
        listed = vertices(self.prior.pmf, self.families, self.limit)
        return None if listed is None else VertexPricer(self.prior.pmf, listed, self.kernel or self.worths)

    def bound(
        self, multipliers: FloatArray, enough: float, proved: float | None, clock: Clock = FOREVER
    ) -> tuple[float, str]:
        p, kernel = self.prior.pmf, self.kernel
        base = float(p @ multipliers)
        families = [family for family in self.families if not family.constant]
        if not families:
            return self.constant + rounding_of(len(p), 1.0 + abs(self.constant)), "constant"
        if kernel is not None:
            rounding = max(kernel.rounding(multipliers, family) for family in families)
            loose = base + max(relaxed(kernel, family, multipliers) for family in families) + rounding
            if loose <= enough:
                return loose, "relaxed"
        else:
            rounding = self.function_rounding(multipliers)
        pricer = self.pricer()
        if proved is not None and isinstance(pricer, SearchPricer):
            return proved + rounding, pricer.name
        return base + pricer.bound(multipliers, enough - base - rounding, clock) + rounding, pricer.name
