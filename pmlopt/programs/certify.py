"""One entry for every kind of design."""

from __future__ import annotations

from typing import TYPE_CHECKING, overload

from pmlopt.arrays import FloatArray
from pmlopt.programs.design_certificate import DesignCertificate
from pmlopt.programs.linear.certificate import LinearCertificate, certify_linear
from pmlopt.programs.subconvex.certificate import ColumnCertificate, certify_columns

if TYPE_CHECKING:
    from pmlopt.program import Design
    from pmlopt.programs.linear.program import LinearDesign
    from pmlopt.programs.subconvex.program import ColumnDesign


@overload
def certify(
    program: LinearDesign,
    matrix: FloatArray,
    multipliers: FloatArray | None,
    allowed: float = 0.0,
    proved: float | None = None,
) -> LinearCertificate: ...
@overload
def certify(
    program: ColumnDesign,
    matrix: FloatArray,
    multipliers: FloatArray | None,
    allowed: float = 0.0,
    proved: float | None = None,
) -> ColumnCertificate: ...
@overload
def certify(
    program: Design,
    matrix: FloatArray,
    multipliers: FloatArray | None,
    allowed: float = 0.0,
    proved: float | None = None,
) -> DesignCertificate: ...
def certify(
    program: Design,
    matrix: FloatArray,
    multipliers: FloatArray | None,
    allowed: float = 0.0,
    proved: float | None = None,
) -> DesignCertificate:
    """Repair a matrix, recompute every number from it, and bound what can be reached.

    Args:
        program: the design problem; where constraints were added to it, they hold their multipliers.
        matrix: (N, M) a solver's answer, or any mechanism.
        multipliers: (N,) any rho, best the multipliers of the row sums over p. A few others that need no
            solver are tried too, and the best kept.
        allowed: the gap at which a bound need not be sharper, where a sharper one takes a search.
        proved: the bound that a search has proved already with these multipliers.

    Raises:
        MechanismError: the matrix is no mechanism even roughly.
    """
    from pmlopt.programs.linear.program import LinearDesign
    from pmlopt.programs.subconvex.program import ColumnDesign

    if isinstance(program, ColumnDesign):
        return certify_columns(program, matrix, multipliers, allowed, proved)
    assert isinstance(program, LinearDesign)
    return certify_linear(program, matrix, multipliers)
