"""The columns under a requirement that limits a cost of them, and what multipliers prove of a utility."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from pmlopt.core.numbers.arrays import FloatArray, bound_sum_rounding
from pmlopt.data.prior import Prior
from pmlopt.errors import PrivacyError
from pmlopt.model.privacy.column_cost import ColumnCost
from pmlopt.model.uncertainty.columns import MAX_CUT_VERTICES
from pmlopt.model.uncertainty.cut_polytopes import TIGHT_ATOL, CutCube
from pmlopt.programs.subconvex.columns import InformationSpace


@dataclass(frozen=True, eq=False)
class CostPolytope:
    """The columns `v >= 0` whose linear costs are at most one each, by its vertices.

    The linear costs are those of single letters, and the slopes that were cut so far; none is above the cost.
    A letter without any cost is left out: its unit column is in addition.

    Attributes:
        prior: N letters.
        cost: of columns.
        cube: the polytope of the L letters with a cost, each in units of the column that costs one.
        slopes: (K, N) the linear costs cut so far.
    """

    prior: Prior
    cost: ColumnCost
    cube: CutCube
    slopes: FloatArray

    @classmethod
    def from_cost(cls, prior: Prior, cost: ColumnCost, max_cost: float) -> CostPolytope:
        """Build the polytope of the first linear costs, and of a mean where each column is limited."""
        costly = cost.unit_costs > 0
        cube = CutCube.from_size(int(costly.sum()))
        if cost.per_outcome:
            cube = cube.cut_by(prior.pmf[costly] / cost.unit_costs[costly], 1 / max_cost)
        whole = cls(prior, cost, cube, np.empty((0, prior.size)))
        found = whole.cut_by(cost.first_slopes)
        return whole if found is None else found

    def cut_by(self, slopes: FloatArray) -> CostPolytope | None:
        """Return the part within more linear costs; None past the largest number of vertices."""
        cube = self.cube
        costly = self.cost.unit_costs > 0
        for slope in slopes:
            cube = cube.cut_by(-slope[costly] / self.cost.unit_costs[costly], -1.0)
            if len(cube.vertices) > MAX_CUT_VERTICES:
                return None
        return CostPolytope(self.prior, self.cost, cube, np.vstack([self.slopes, slopes]))

    def list_columns(self) -> tuple[FloatArray, FloatArray]:
        """Return (N, K) columns of mean one, and (K,) their linear costs.

        They span all columns within these linear costs. A utility that is convex and homogeneous is
        largest at one of them.
        """
        p = self.prior.pmf
        units = self.cost.unit_costs
        costly = units > 0
        columns = np.zeros((len(p), len(self.cube.vertices)))
        columns[costly] = (self.cube.vertices / units[costly]).T
        columns = columns[:, columns.max(axis=0) > 0]
        free = np.eye(len(p))[:, ~costly]
        lifts = np.hstack([np.ones((len(p), 1)), columns / (p @ columns), free / p[~costly]])
        linear = np.vstack([np.diag(units), self.slopes])
        return lifts, (linear @ lifts).max(axis=0)


@dataclass(frozen=True, eq=False)
class CostSpace(InformationSpace):
    """The columns of mean one and their values under a sub-convex utility, with a limited cost.

    Attributes:
        cost: what the requirement limits.
    """

    cost: ColumnCost

    def compute_bound(
        self, multipliers: FloatArray, price: float, slopes: FloatArray | None
    ) -> float:
        """Compute a bound on the utility of every mechanism within the requirement.

        For every rho and every price nu >= 0 it is `<p, rho> + nu C` and the largest
        `mu(lam) - <p rho, lam> - nu c(lam)` over the columns, with C the largest cost. Linear costs c that
        are at most the cost can only raise it, and the largest value is then at one of finitely many columns.

        Args:
            multipliers: (N,) rho, any numbers.
            price: nu.
            slopes: (K, N) linear costs; each is divided as far as needed to be at most the cost.

        Raises:
            PrivacyError: the linear costs leave too many columns to list.
        """
        p = self.prior.pmf
        max_cost = self.cost.max_cost
        nu = max(price, 0.0)
        polytope = CostPolytope.from_cost(self.prior, self.cost, max_cost)
        if slopes is not None:
            cut = polytope.cut_by(self.cost.shrink_slopes(slopes))
            if cut is None:
                raise PrivacyError(
                    f"the {len(slopes)} linear costs leave more than {MAX_CUT_VERTICES:,} columns"
                )
            polytope = cut
        lifts, costs = polytope.list_columns()
        reduced = self.column_values(lifts) - (p * multipliers) @ lifts - nu * costs
        size = (
            float(np.abs(multipliers).max() + p @ np.abs(multipliers))
            + nu * (max_cost + float(costs.max()))
            + abs(self.full_release_utility)
        )
        # vertices are kept that miss a cut by TIGHT_ATOL, and found to about as much
        rounding = bound_sum_rounding(len(p), size) + TIGHT_ATOL * size
        return float(p @ multipliers) + nu * max_cost + float(reduced.max()) + rounding
