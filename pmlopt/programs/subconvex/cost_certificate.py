"""The certificate of a sub-convex utility under a requirement that limits a cost of columns."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, ClassVar

from pmlopt.core.arrays import FloatArray, bound_sum_rounding
from pmlopt.core.records import Shape
from pmlopt.errors import PrivacyError
from pmlopt.model.utility import list_informations
from pmlopt.programs.certificate import VERIFY_ROUNDING_FRACTION, DesignCertificate, check_gap
from pmlopt.programs.claims import FLOATS, Claim, check_bound, check_value
from pmlopt.programs.subconvex.certificate import name_information
from pmlopt.programs.subconvex.cost_space import CostSpace


@dataclass(frozen=True, eq=False, kw_only=True)
class ColumnCostCertificate(DesignCertificate):
    """The certificate of a sub-convex utility under a limited cost of columns.

    The bound is `CostSpace.compute_bound(multipliers, price, slopes)`.

    Attributes:
        utility: the name of the utility.
        price: (1,) the multiplier of the largest cost; zero where each column is limited.
        slopes: (K, N) linear costs that are at most the cost; None where none is needed.
    """

    kind: ClassVar[str] = "sub-convex-cost"
    has_constant_utility = False

    utility: str
    price: float
    slopes: Annotated[FloatArray, Shape("slopes", "letters")] | None = None

    def _build_space(self) -> CostSpace | None:
        """Build the columns again; None where the requirement limits no cost."""
        cost = self.privacy.column_cost(self.prior)
        return (
            None
            if cost is None
            else CostSpace(self.prior, list_informations()[self.utility](), cost)
        )

    @property
    def bound_rounding(self) -> float:
        """Return by how much rounding only may put the value beyond the bound."""
        space = self._build_space() if self.utility in list_informations() else None
        size = abs(self.value) if space is None else abs(space.full_release_utility)
        return bound_sum_rounding(sum(self.mechanism.matrix.shape), max(1.0, size))

    @property
    def value_name(self) -> str:
        """Return what the value is, in words."""
        return name_information(self.utility)

    def checks(self) -> tuple[Claim, ...]:
        """Return the claims of level, value and bound, with the columns priced again."""
        gap = check_gap(self, self.bound_rounding, self.is_maximised)
        if self.utility not in list_informations():
            text = f"the utility {self.utility!r} is a function, which no file holds"
            claims = (Claim(name, None, FLOATS, text) for name in ("value", "bound"))
            return (*self.level_claims, *claims, gap)
        utility = list_informations()[self.utility]()
        value = check_value(
            self.value,
            utility.value(self.prior, self.mechanism),
            self.bound_rounding,
            name=self.value_name,
        )
        proved = self._prove_bound()
        return (*self.level_claims, value, gap, check_bound(self.bound, proved, True))

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
