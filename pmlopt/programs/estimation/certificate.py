"""The certificate of a mechanism that was designed for estimation."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

from pmlopt.arrays import FloatArray
from pmlopt.programs.design_certificate import DesignCertificate
from pmlopt.utility.estimation_error import Criterion


@dataclass(frozen=True, eq=False, kw_only=True)
class EstimationCertificate(DesignCertificate):
    """The certificate of a design for estimation.

    The bound is `information_bound(columns, p, workload, criterion, sensitivities, multipliers)`, the maximum
    over the listed extreme columns being taken one by one.

    Attributes:
        criterion: "A" or "D".
        workload: (L, N) W.
        sensitivities: (N, L) the Z of the bound.
        columns: how many extreme columns there are; None where they were not listed, and the bound is
            `relaxed_bound` of the same numbers and `products` on the cones of the requirement.
        products: the weights of the products of linear forms in that bound, for each cone of columns.
    """

    kind: ClassVar[str] = "estimation"

    criterion: Criterion
    workload: FloatArray
    sensitivities: FloatArray
    columns: int | None
    products: tuple[FloatArray, ...] = ()

    @property
    def flat(self) -> bool:
        return False

    def utility_record(self) -> dict[str, Any]:
        return {
            "kind": "estimation-error",
            "criterion": self.criterion,
            "workload": self.workload.tolist(),
        }

    def bound_record(self) -> dict[str, Any]:
        return {
            "sensitivities": self.sensitivities.tolist(),
            "extreme_columns": self.columns,
            "products": [weights.tolist() for weights in self.products],
        }
