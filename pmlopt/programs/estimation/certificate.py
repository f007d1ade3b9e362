"""The certificate of a mechanism that was designed for estimation."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Annotated, ClassVar

import numpy as np

from pmlopt.core.arrays import FloatArray, rounding_of
from pmlopt.core.records import Shape
from pmlopt.model.utility.estimation_error import Criterion, WorkloadRows, error_of
from pmlopt.programs.certificate import RATIONAL, Claim, bound_claim, gap_claim, value_claim
from pmlopt.programs.design_program import DesignCertificate
from pmlopt.programs.estimation.bounds import Objective, Proof
from pmlopt.programs.estimation.columns import design_columns


@dataclass(frozen=True, eq=False, kw_only=True)
class EstimationCertificate(DesignCertificate):
    """The certificate of a design for estimation.

    The bound is `information_bound(columns, p, workload, criterion, sensitivities, multipliers)`, the maximum
    over the listed extreme columns being taken one by one.

    Attributes:
        criterion: "A" or "D".
        workload: (L, N) W; for "A" each row may be less a number, which does not change the error.
        sensitivities: (N, L) the Z of the bound.
        columns: how many extreme columns there are; None where they were not listed, and the bound is
            `relaxed_bound` of the same numbers and `products` on the cones of the requirement.
        products: the weights of the products of linear forms in that bound, for each cone of columns.
    """

    kind: ClassVar[str] = "estimation"
    flat = False

    criterion: Criterion
    workload: Annotated[FloatArray, Shape("L", "N")]
    sensitivities: Annotated[FloatArray, Shape("N", "L")]
    columns: int | None
    products: tuple[FloatArray, ...] = ()

    @property
    def is_maximised(self) -> bool:
        return False

    @property
    def bound_rounding(self) -> float:
        # an error has the unit of the workload, whatever that is; a logarithm has none
        return 1e-9 * (abs(self.value) if self.criterion == "A" else max(1.0, abs(self.value)))

    def checks(self) -> tuple[Claim, ...]:
        """Return the claims of level, value and bound, with the extreme columns listed again."""
        rows = WorkloadRows((), self.workload)
        wanted = rows.matrix if self.criterion == "D" else rows.centred(self.prior.pmf)
        value = error_of(self.prior, self.mechanism, wanted, self.criterion)
        claims = (
            value_claim(self.value, value, self.bound_rounding),
            gap_claim(self, self.bound_rounding, self.is_maximised),
        )
        found: tuple[Claim, ...] = (*self.level_checks, *claims)
        if self.criterion == "D" and not np.array_equal(self.workload, np.eye(self.prior.size)):
            text = "the criterion D is of all frequencies, and not of another workload"
            found = (*found, Claim("workload", False, RATIONAL, text))
        if self.multipliers is None:
            if self.bound == 0.0 and self.criterion == "A":
                return (*found, Claim("bound", True, RATIONAL, "no error is negative", 0.0, 0.0))
            return (*found, bound_claim(self.bound, None, False))
        slack = rounding_of(self.prior.size, abs(self.bound))
        proved = self._proved_bound(Proof(self.sensitivities, self.multipliers, self.products))
        return (*found, bound_claim(self.bound, proved + slack, False))

    def _proved_bound(self, proof: Proof) -> float:
        """Compute what the numbers prove; -inf where the columns are other ones."""
        columns = design_columns(self.prior, self.privacy)
        if (columns.exact.shape[1] if columns.complete else None) != self.columns:
            return -math.inf
        return Objective(self.prior.pmf, self.workload, self.criterion).proved(columns, proof)
