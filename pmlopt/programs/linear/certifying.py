"""From numbers to the certificate of a linear design: repair, recomputed numbers, the best dual bound."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

import numpy as np

from pmlopt.core.arrays import FloatArray
from pmlopt.data.mechanism import Mechanism
from pmlopt.model.privacy.requirement import Witness
from pmlopt.programs.exact.repair import polished_repair
from pmlopt.programs.linear.added_constraints import affine_constraints, lagrangian, unit
from pmlopt.programs.linear.certificate import AffineConstraint, LinearCertificate, SymmetricCertificate
from pmlopt.programs.linear.orbit_repair import repair_orbits
from pmlopt.programs.linear.program import Expectation, LinearDesign, SymmetricDesign

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
    columns, gain = program.columns, program.columns.expectation(program.centred, fixed.matrix)
    enough = gain - constant + CLOSED * program.scale
    rho: FloatArray | None
    if witness is not None and multipliers is not None:
        free = {name: np.zeros_like(array) for name, array in witness.items()}  # as if nothing were private
        best, rho, witness = min(
            (
                (columns.proved(gains, one, numbers) + columns.rounding_in(gains, one), one, numbers)
                for one, numbers in ((multipliers, witness), (gains.max(axis=1), free))
            ),
            key=lambda found: found[0],
        )
    else:
        rho, best = _best(program, gains, fixed.matrix, multipliers, enough)
        witness, best = _witnessed(program, gains, rho, best)
        if best > enough:
            rho, witness, best = min(
                (rho, witness, best), _priced(program, gains), key=lambda found: found[2]
            )
    return LinearCertificate(
        prior=program.prior,
        privacy=program.privacy,
        mechanism=mechanism,
        value=program.of_gain(gain),
        bound=program.of_gain(constant + best),
        multipliers=rho,
        maximised=program.maximised,
        table=program.table,
        residuals={"rows": float(np.abs(fixed.matrix.sum(axis=1) - 1).max()), **residuals},
        repair=fixed.change,
        witness=witness,
        added=added,
    )


def certify_symmetric(
    program: SymmetricDesign, lifts: FloatArray, multipliers: FloatArray | None
) -> SymmetricCertificate:
    """The same of (C,) lifts on orbits of pairs, with (L,) multipliers of the rows over their masses.

    Raises:
        MechanismError: the numbers are no mechanism even roughly.
    """
    mechanism, change = repair_orbits(program.space, program.columns, program.privacy, lifts)
    gain = program.columns.expectation(program.centred, mechanism.lifts)
    enough = gain + CLOSED * program.scale
    rho, best = _best(program, program.centred, mechanism.lifts, multipliers, enough)
    return SymmetricCertificate(
        mechanism=mechanism,
        value=program.of_gain(gain),
        bound=program.of_gain(best),
        privacy=program.privacy,
        multipliers=rho,
        table=program.table,
        maximised=program.maximised,
        repair=change,
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
    columns = program.columns
    witness = columns.witness(gains, rho)
    if not witness:
        return witness, best
    proved = columns.proved(gains, rho, witness) + columns.rounding_in(gains, rho)
    return (witness, max(best, proved)) if proved <= best + WITNESSED * program.scale else ({}, best)


def _priced(program: LinearDesign, gains: FloatArray) -> tuple[FloatArray | None, Witness, float]:
    """Multipliers, a witness and the bound that they prove from all columns at once, where pairs prove it."""
    columns, p = program.columns, program.prior.pmf
    ratios = program.privacy.ratios(p) if program.privacy.by_pairs else None
    found = None if ratios is None else ratios.prices(p, gains)
    if found is None:
        return None, {}, math.inf
    rho, weights = found
    witness = {"weights": weights}
    return rho, witness, columns.proved(gains, rho, witness) + columns.rounding_in(gains, rho)


RARE = (1e-14, 1e-11, 1e-8, 1e-5)
"""Probabilities below which a solver's multiplier of a letter may be noise."""


def _guesses(
    program: Expectation[Any], gains: FloatArray, lifts: FloatArray, given: FloatArray | None
) -> Iterator[FloatArray]:
    """Multipliers to try: the solver's; each letter's own gain, which is sharp at the ends; and the solver's
    but for the rarest letters, whose multipliers it cannot tell from noise: their largest gain.
    """
    columns = program.columns
    own = columns.by_letter(gains, lifts)
    if given is None or not np.isfinite(given).all():
        yield own
        return
    yield from (given, own)
    for rare in RARE:
        if (columns.masses < rare).any():
            yield np.where(columns.masses < rare, columns.largest(gains), given)


def _best(
    program: Expectation[Any], gains: FloatArray, lifts: FloatArray, given: FloatArray | None, enough: float
) -> tuple[FloatArray | None, float]:
    """The multipliers with the least bound, and that bound; the first with a bound of at most `enough`."""
    best: tuple[FloatArray | None, float] = (None, math.inf)
    for rho in _guesses(program, gains, lifts, given):
        if not np.isfinite(rho).all():
            continue
        bound = program.columns.raw_bound(gains, rho)
        if bound < best[1]:  # rounding only adds to it
            bound += program.columns.rounding_in(gains, rho)
            if bound < best[1]:
                best = (rho, bound)
        if best[1] <= enough:
            break
    return best
