"""From a matrix to the certificate of a sub-convex design: repair, recomputed numbers, a bound by pricing."""

from __future__ import annotations

import numpy as np

from pmlopt.arrays import FloatArray
from pmlopt.exact.polish import polished_repair
from pmlopt.mechanism import Mechanism
from pmlopt.programs.subconvex.certificate import ColumnCertificate
from pmlopt.programs.subconvex.program import ColumnDesign


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
    fixed = polished_repair(program.prior, program.privacy, matrix, noise=0.0)
    mechanism = Mechanism(fixed.matrix, program.prior.labels, program.outputs)
    value = program.utility.value(program.prior, mechanism)
    closed = program.space.closed_bound[1]
    rho = closed if multipliers is None else multipliers
    bound, pricing = program.space.bound(rho, value + 0.95 * allowed, proved)
    if bound > value + allowed:
        relaxed, name = program.space.bound(closed, np.inf, None)
        if relaxed < bound:
            bound, pricing, rho = relaxed, name, closed
    if program.space.everything_bound < bound:
        bound, pricing, rho = program.space.everything_bound, "everything", program.space.released
    return ColumnCertificate(
        prior=program.prior,
        privacy=program.privacy,
        mechanism=mechanism,
        value=value,
        bound=bound,
        multipliers=rho,
        residuals={"rows": float(np.abs(fixed.matrix.sum(axis=1) - 1).max())},
        repair=fixed,
        utility=program.utility.name,
        pricing=pricing,
    )
