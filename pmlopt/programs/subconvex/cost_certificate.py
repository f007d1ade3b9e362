"""The certificate of a sub-convex utility under a requirement that limits a cost of columns."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, ClassVar

from pmlopt.core.numbers.arrays import FloatArray, bound_sum_rounding
from pmlopt.core.records.record import Shape
from pmlopt.errors import PrivacyError
from pmlopt.programs.certificate import VERIFY_ROUNDING_FRACTION
from pmlopt.programs.subconvex.certificate import InformationCertificate
from pmlopt.programs.subconvex.cost_space import CostSpace


@dataclass(frozen=True, eq=False, kw_only=True)
class ColumnCostCertificate(InformationCertificate):
    """The certificate of a sub-convex utility under a limited cost of columns.

    The bound is `CostSpace.compute_bound(multipliers, price, slopes)`.

    Attributes:
        price: (1,) the multiplier of the largest cost; zero where each column is limited.
        slopes: (K, N) linear costs that are at most the cost; None where none is needed.
    """

    kind: ClassVar[str] = "sub-convex-cost"

    price: float
    slopes: Annotated[FloatArray, Shape("slopes", "letters")] | None = None

    def _build_space(self) -> CostSpace | None:
        """Build the columns again; None where no cost is limited, or the utility is a function."""
        cost, utility = self.privacy.column_cost(self.prior), self.known_utility
        return None if cost is None or utility is None else CostSpace(self.prior, utility, cost)

    @property
    def bound_rounding(self) -> float:
        """Return by how much rounding only may put the value beyond the bound."""
        space = self._build_space()
        size = abs(self.value) if space is None else abs(space.full_release_utility)
        return bound_sum_rounding(sum(self.mechanism.matrix.shape), max(1.0, size))

    def _prove_bound(self) -> float | None:
        """Compute what the multipliers prove; None where they are missing or of another shape."""
        rho, space = self.multipliers, self._build_space()
        if space is None or rho is None or rho.shape != (self.prior.size,):
            return None
        if self.slopes is not None and self.slopes.shape[1:] != (self.prior.size,):
            return None
        try:
            proved = space.compute_bound(rho, self.price, self.slopes)
        except PrivacyError:
            return None
        # sums in another order may differ by a part of the allowance
        return proved - VERIFY_ROUNDING_FRACTION * self.bound_rounding
