"""The certificate of a mechanism that was designed for estimation."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Annotated, ClassVar

import numpy as np

from pmlopt.core.numbers.arrays import FloatArray, bound_sum_rounding
from pmlopt.core.records.fields import INFINITE, Shape
from pmlopt.model.utility.estimation_error import Criterion, WorkloadRows, compute_error
from pmlopt.programs.certificate import DesignCertificate
from pmlopt.programs.claims import RATIONAL, Claim, check_bound, check_value
from pmlopt.programs.estimation.bounds import ErrorBoundProof, EstimationObjective
from pmlopt.programs.estimation.columns import build_design_columns


@dataclass(frozen=True, eq=False, kw_only=True)
class EstimationCertificate(DesignCertificate):
    """The certificate of the estimation error of a mechanism, with its lower bound.

    The bound is `bound_from_columns(columns, p, workload, criterion, sensitivities, multipliers)`, the
    maximum over the listed extreme columns being taken one by one.

    Attributes:
        value: the error; infinite where the workload cannot be estimated from the outputs.
        criterion: "A" or "D".
        workload: (L, N) W; for "A" each row may be less a number, which does not change the error.
        sensitivities: (N, L) the Z of the bound.
        columns: how many extreme columns there are; None where they were not listed, and the bound is
            `bound_from_cones` of the same numbers and `products` on the cones of the requirement.
        products: the weights of the products of linear forms in that bound, for each cone of columns.
    """

    kind: ClassVar[str] = "estimation"
    maximised: ClassVar[bool] = False
    has_constant_utility = False

    value: Annotated[float, INFINITE]
    criterion: Criterion
    workload: Annotated[FloatArray, Shape("L", "N")]
    sensitivities: Annotated[FloatArray, Shape("N", "L")]
    columns: int | None
    products: tuple[FloatArray, ...] = ()

    @property
    def bound_rounding(self) -> float:
        # an error has the unit of the workload, whatever that is; a logarithm has none
        """Return the floating-point allowance by which the value may pass its bound."""
        return 1e-9 * (abs(self.value) if self.criterion == "A" else max(1.0, abs(self.value)))

    @property
    def value_name(self) -> str:
        """Return what the value is, in words."""
        if self.criterion == "D":
            return "log-determinant of the covariance of estimates from one person"
        return "summed variance of estimates from one person"

    def _check_value(self) -> Claim:
        """Check the claim that the value is the error of estimates from the mechanism."""
        rows = WorkloadRows((), self.workload)
        wanted = rows.matrix if self.criterion == "D" else rows.center_rows(self.prior.pmf)
        value = compute_error(self.prior, self.mechanism, wanted, self.criterion)
        return check_value(self.value, value, self.bound_rounding, name=self.value_name)

    def _check_constraints(self) -> tuple[Claim, ...]:
        """Check that the workload of the criterion D is all frequencies."""
        if self.criterion == "A" or np.array_equal(self.workload, np.eye(self.prior.size)):
            return ()
        text = "the criterion D is of all frequencies, and not of another workload"
        return (Claim("workload", False, RATIONAL, text),)

    def _check_bound(self) -> Claim:
        """Check the claim of a bound by the sensitivities; the extreme columns are enumerated again."""
        if self.multipliers is None:
            if self.bound == 0.0 and self.criterion == "A":
                return Claim("bound", True, RATIONAL, "no error is negative", 0.0, 0.0)
            return check_bound(self.bound, None, False)
        slack = bound_sum_rounding(self.prior.size, abs(self.bound))
        proved = self._recompute_bound(
            ErrorBoundProof(self.sensitivities, self.multipliers, self.products)
        )
        return check_bound(self.bound, proved + slack, False)

    def _recompute_bound(self, proof: ErrorBoundProof) -> float:
        """Recompute the bound that the multipliers prove; -inf where they belong to other columns."""
        columns = build_design_columns(self.prior, self.privacy)
        if (columns.exact.shape[1] if columns.is_complete else None) != self.columns:
            return -math.inf
        return EstimationObjective(self.prior.pmf, self.workload, self.criterion).compute_bound(
            columns, proof
        )
