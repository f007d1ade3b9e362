"""The certificate of a design with a sub-convex utility."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from pmlopt.arrays import FloatArray
from pmlopt.exact.repair import repair
from pmlopt.mechanism import Mechanism
from pmlopt.programs.design_certificate import DesignCertificate

if TYPE_CHECKING:
    from pmlopt.programs.subconvex.program import ColumnDesign


@dataclass(frozen=True, eq=False, kw_only=True)
class ColumnCertificate(DesignCertificate):
    """The certificate of a sub-convex utility.

    The bound is `column_bound(prior, privacy, utility, multipliers)`, or, where that took a search, what
    the search proved for these multipliers.

    Attributes:
        utility: the name of the utility.
        pricing: what the bound on the extreme columns rests on: "counts" and "vertices" are exact,
            "search" is branch and bound, "relaxed" the chords of the utility.
    """

    utility: str
    pricing: str

    @property
    def flat(self) -> bool:
        return False

    def utility_record(self) -> dict[str, Any]:
        return {"kind": self.utility}

    def bound_record(self) -> dict[str, Any]:
        return {"pricing": self.pricing}


def certify_columns(
    program: ColumnDesign,
    matrix: FloatArray,
    multipliers: FloatArray | None,
    allowed: float,
    proved: float | None = None,
) -> ColumnCertificate:
    """Repair a matrix whose columns are within the requirement, recompute its value, bound the optimum.

    Args:
        program: the design problem.
        matrix: (N, M) weights times columns.
        multipliers: (N,) rho, best the multipliers of the rows over p.
        allowed: the gap at which a bound need not be sharper.
        proved: the bound that a search has proved already with these multipliers.

    Raises:
        MechanismError: the matrix is no mechanism even roughly.
    """
    if program.outputs is not None:  # the outputs that the optimum does not need never occur
        matrix = np.pad(matrix, ((0, 0), (0, len(program.outputs) - matrix.shape[1])))
    fixed = repair(program.prior, program.privacy, matrix, noise=0.0)
    mechanism = Mechanism(fixed.matrix, program.prior.labels, program.outputs)
    value = program.utility.value(program.prior, mechanism)
    closed = program.space.closed_bound[1]
    rho = closed if multipliers is None else multipliers
    bound, pricing = program.space.bound(rho, value + 0.95 * allowed, proved)
    if bound > value + allowed:
        relaxed, name = program.space.bound(closed, np.inf, None)
        if relaxed < bound:
            bound, pricing, rho = relaxed, name, closed
    return ColumnCertificate(
        prior=program.prior,
        privacy=program.privacy,
        mechanism=mechanism,
        levels=program.privacy.levels(program.prior, mechanism),
        value=value,
        bound=bound,
        gap=abs(bound - value),
        multipliers=rho,
        residuals={"rows": float(np.abs(fixed.matrix.sum(axis=1) - 1).max())},
        repair=fixed,
        utility=program.utility.name,
        pricing=pricing,
    )
