"""The certificate of a linear design: expected gain or loss."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from pmlopt.arrays import FloatArray
from pmlopt.exact.repair import repair
from pmlopt.mechanism import Mechanism
from pmlopt.programs.design_certificate import DesignCertificate, finite
from pmlopt.programs.linear.dual_bound import raw_bound, rounding_in
from pmlopt.utility.linear import expectation

if TYPE_CHECKING:
    from pmlopt.programs.linear.program import LinearDesign


@dataclass(frozen=True, eq=False, kw_only=True)
class LinearCertificate(DesignCertificate):
    """The certificate of an expected gain or loss.

    The bound is `constant + utility_bound(prior, privacy, gains, multipliers)`, negated for a loss.

    Attributes:
        gains: (N, M) what `utility_bound` was applied to: the program's centred gains, changed by the
            multipliers of added constraints where there are any.
        constant: what was added to it.
        maximised: whether the table holds gains.
        table: (N, M) the gain or loss.
    """

    gains: FloatArray
    constant: float
    maximised: bool
    table: FloatArray

    @property
    def flat(self) -> bool:
        return bool((np.ptp(self.table, axis=1) == 0).all())

    def utility_record(self) -> dict[str, Any]:
        return {"kind": "gain" if self.maximised else "loss", "table": self.table.tolist()}

    def bound_record(self) -> dict[str, Any]:
        return {"gains": self.gains.tolist(), "constant": finite(self.constant)}


def certify_linear(
    program: LinearDesign, matrix: FloatArray, multipliers: FloatArray | None
) -> LinearCertificate:
    """Repair a matrix, recompute every number from it, and bound what can be reached.

    Args:
        program: the design problem; where constraints were added to it, they hold their multipliers.
        matrix: (N, M) a solver's answer, or any mechanism.
        multipliers: (N,) any rho for the centred gains, best the multipliers of the row sums over p. A few
            others that need no solver are tried too, and the best kept.

    Raises:
        MechanismError: the matrix is no mechanism even roughly.
    """
    fixed = repair(program.prior, program.privacy, matrix)
    program.assign(fixed.matrix)
    mechanism = Mechanism(fixed.matrix, program.prior.labels, program.outputs)
    gains, constant = _terms(program)
    rho, best = _best(program, gains, _guesses(program, gains, fixed.matrix, multipliers))
    gain = expectation(program.prior, program.centred, fixed.matrix)
    sign = 1.0 if program.utility.maximised else -1.0
    total = constant + sign * program.constant
    return LinearCertificate(
        prior=program.prior,
        privacy=program.privacy,
        mechanism=mechanism,
        levels=program.privacy.levels(program.prior, mechanism),
        value=program.constant + sign * gain,
        bound=sign * (total + best),
        gap=abs(constant + best - gain),
        multipliers=rho,
        gains=gains,
        constant=total,
        maximised=program.utility.maximised,
        table=program.table,
        residuals=_residuals(program, fixed.matrix),
        repair=fixed,
    )


def _terms(program: LinearDesign) -> tuple[FloatArray, float]:
    """The gains and the constant of the bound; added constraints enter through their multipliers."""
    if not program.added:
        return program.centred, 0.0
    from pmlopt.programs.linear.added_constraints import lagrangian

    return lagrangian(program)


def _guesses(
    program: LinearDesign, gains: FloatArray, matrix: FloatArray, given: FloatArray | None
) -> Iterator[FloatArray]:
    """Multipliers to try: the solver's; each letter's own gain, which is sharp at the ends; and the solver's
    but for the rarest letters, whose multipliers it cannot tell from noise: their largest gain.
    """
    own = (matrix * gains).sum(axis=1)
    if given is None or not np.isfinite(given).all():
        yield own
        return
    yield from (given, own)
    for rare in (1e-8, 1e-5):
        if (program.prior.pmf < rare).any():
            yield np.where(program.prior.pmf < rare, gains.max(axis=1), given)


def _best(
    program: LinearDesign, gains: FloatArray, guesses: Iterable[FloatArray]
) -> tuple[FloatArray | None, float]:
    """The multipliers with the least bound, and that bound."""
    best: tuple[FloatArray | None, float] = (None, math.inf)
    for rho in guesses:
        if not np.isfinite(rho).all():
            continue
        bound = raw_bound(program.prior, program.privacy, gains, rho)
        if bound < best[1]:  # rounding only adds to it
            bound += rounding_in(program.prior, program.privacy, gains, rho)
            if bound < best[1]:
                best = (rho, bound)
    return best


def _residuals(program: LinearDesign, matrix: FloatArray) -> dict[str, float]:
    residuals = {"rows": float(np.abs(matrix.sum(axis=1) - 1).max())}
    if program.added:
        from pmlopt.programs.linear.added_constraints import unit

        for name, constraint in program.added.items():
            residuals[name] = float(np.max(constraint.violation())) / unit(constraint)
    return residuals
