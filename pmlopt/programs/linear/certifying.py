"""From a matrix to the certificate of a linear design: repair, recomputed numbers, the best dual bound."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator

import numpy as np

from pmlopt.core.arrays import FloatArray
from pmlopt.data.mechanism import Mechanism
from pmlopt.model.privacy.requirement import Witness
from pmlopt.model.utility.linear import expectation
from pmlopt.programs.exact.repair import polished_repair
from pmlopt.programs.linear.added_constraints import affine_constraints, lagrangian, unit
from pmlopt.programs.linear.certificate import (
    AffineConstraint,
    LinearCertificate,
    proved_bound,
    raw_bound,
    rounding_in,
)
from pmlopt.programs.linear.program import LinearDesign

CLOSED = 1e-10
"""A gap of this share of the gain's range leaves nothing to look for."""


WITNESSED = 1e-10
"""By how much, as a share of the gain's range, a bound may grow so that numbers in a file prove it."""


def certify_linear(
    program: LinearDesign,
    matrix: FloatArray,
    multipliers: FloatArray | None,
    witness: Witness | None = None,
) -> LinearCertificate:
    """Repair a matrix, recompute every number from it, and bound what can be reached.

    Args:
        program: the design problem; where constraints were added to it, they hold their multipliers.
        matrix: (N, M) a solver's answer, or any mechanism.
        multipliers: (N,) any rho for the centred gains, best the multipliers of the row sums over p. A few
            others that need no solver are tried too, and the best kept.
        witness: of the requirement for these multipliers, where the solver has it: the bound is then what
            the two prove, and no other is looked for.

    Raises:
        MechanismError: the matrix is no mechanism even roughly.
    """
    fixed = polished_repair(program.prior, program.privacy, matrix)
    mechanism = Mechanism(fixed.matrix, program.prior.labels, program.outputs)
    gains, constant, residuals, added = _with_added(program, fixed.matrix)
    gain = expectation(program.prior, program.centred, fixed.matrix)
    enough = gain - constant + CLOSED * program.scale
    rho: FloatArray | None
    if witness is not None and multipliers is not None:
        free = {name: np.zeros_like(array) for name, array in witness.items()}  # as if nothing were private
        best, rho, witness = min(
            (
                (proved_bound(program.prior, program.privacy, gains, one, numbers), one, numbers)
                for one, numbers in ((multipliers, witness), (gains.max(axis=1), free))
            ),
            key=lambda found: found[0],
        )
    else:
        rho, best = _best(program, gains, _guesses(program, gains, fixed.matrix, multipliers), enough)
        witness, best = _witnessed(program, gains, rho, best)
        if best > enough:
            rho, witness, best = min(
                (rho, witness, best), _priced(program, gains), key=lambda found: found[2]
            )
    sign = 1.0 if program.utility.maximised else -1.0
    total = constant + sign * program.constant
    return LinearCertificate(
        prior=program.prior,
        privacy=program.privacy,
        mechanism=mechanism,
        value=program.constant + sign * gain,
        bound=sign * (total + best),
        multipliers=rho,
        maximised=program.utility.maximised,
        table=program.table,
        residuals={"rows": float(np.abs(fixed.matrix.sum(axis=1) - 1).max()), **residuals},
        repair=fixed.change,
        witness=witness,
        added=added,
    )


def _with_added(
    program: LinearDesign, matrix: FloatArray
) -> tuple[FloatArray, float, dict[str, float], tuple[AffineConstraint, ...] | None]:
    """The gains and the constant of the bound, and the added constraints with their violations.

    Added constraints enter the bound through their multipliers.
    """
    if not program.added:
        return program.centred, 0.0, {}, ()
    with program.holding(matrix):
        gains, constant = lagrangian(program)
        affine = affine_constraints(program)
        if affine is not None:  # by the numbers that a file holds, so that its check finds the same
            residuals = {one.name: one.violation(matrix) / one.unit for one in affine}
        else:
            residuals = {
                name: float(np.max(constraint.violation())) / unit(constraint)
                for name, constraint in program.added.items()
            }
        return gains, constant, residuals, affine


def _witnessed(
    program: LinearDesign, gains: FloatArray, rho: FloatArray | None, best: float
) -> tuple[Witness, float]:
    """The witness of the bound for these multipliers, and a bound that it proves.

    Where a letter is so rare that digits cancel in the search, a closed form proves more: no witness then.
    """
    if rho is None or not math.isfinite(best):
        return {}, best
    prior, privacy = program.prior, program.privacy
    witness = privacy.witness(prior, gains - rho[:, None])
    if not witness:
        return witness, best
    proved = proved_bound(prior, privacy, gains, rho, witness)
    return (witness, max(best, proved)) if proved <= best + WITNESSED * program.scale else ({}, best)


def _priced(program: LinearDesign, gains: FloatArray) -> tuple[FloatArray | None, Witness, float]:
    """Multipliers, a witness and the bound that they prove from all columns at once, where pairs prove it."""
    prior, privacy = program.prior, program.privacy
    ratios = privacy.ratios(prior.pmf) if privacy.by_pairs else None
    found = None if ratios is None else ratios.prices(prior.pmf, gains)
    if found is None:
        return None, {}, math.inf
    rho, weights = found
    witness = {"weights": weights}
    return rho, witness, proved_bound(prior, privacy, gains, rho, witness)


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
    program: LinearDesign, gains: FloatArray, guesses: Iterable[FloatArray], enough: float
) -> tuple[FloatArray | None, float]:
    """The multipliers with the least bound, and that bound; the first with a bound of at most `enough`."""
    best: tuple[FloatArray | None, float] = (None, math.inf)
    for rho in guesses:
        if not np.isfinite(rho).all():
            continue
        bound = raw_bound(program.prior, program.privacy, gains, rho)
        if bound < best[1]:  # rounding only adds to it
            bound += rounding_in(program.prior, program.privacy, gains, rho)
            if bound < best[1]:
                best = (rho, bound)
        if best[1] <= enough:
            break
    return best
