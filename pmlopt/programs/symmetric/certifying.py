"""From numbers on orbits to the certificate of a design: repair, recomputed numbers, the best dual bound."""

from __future__ import annotations

import math
from collections.abc import Iterator

import numpy as np

from pmlopt.arrays import FloatArray
from pmlopt.programs.symmetric.certificate import SymmetricCertificate
from pmlopt.programs.symmetric.program import SymmetricDesign
from pmlopt.programs.symmetric.repair import repair_orbits

_RARE = (1e-14, 1e-11, 1e-8, 1e-5)
"""Probabilities of an orbit of letters below which a solver's multiplier may be noise."""


def certify_symmetric(
    program: SymmetricDesign, lifts: FloatArray, multipliers: FloatArray | None
) -> SymmetricCertificate:
    """Repair numbers on orbits, recompute all others from them, and bound what can be reached.

    Args:
        program: the design problem.
        lifts: (C,) a solver's answer, or any mechanism by orbits.
        multipliers: (L,) any rho for the centred gains, best the multipliers of the rows over their masses. A
            few others that need no solver are tried too, and the best kept.

    Raises:
        MechanismError: the numbers are no mechanism even roughly.
    """
    columns = program.columns
    fixed = repair_orbits(program.space, columns, program.privacy, lifts)
    own = fixed.mechanism.lifts
    gain = float((columns.weights * own) @ program.centred)
    best, rho = math.inf, None
    for guess in _guesses(program, own, multipliers):
        if np.isfinite(guess).all() and (bound := columns.raw_bound(program.centred, guess)) < best:
            best, rho = bound, guess
    if rho is not None:
        best += columns.rounding_in(program.centred, rho)
    sign = 1.0 if program.maximised else -1.0
    return SymmetricCertificate(
        mechanism=fixed.mechanism,
        value=program.constant + sign * gain,
        bound=program.constant + sign * best,
        privacy=program.privacy,
        columns=columns,
        multipliers=rho,
        values=program.values,
        maximised=program.maximised,
        repair=fixed,
    )


def _guesses(program: SymmetricDesign, lifts: FloatArray, given: FloatArray | None) -> Iterator[FloatArray]:
    """Multipliers to try: the solver's; each letter's own gain, which is sharp at the ends; and the solver's
    but for the rarest letters, whose multipliers it cannot tell from noise: their largest gain, which is 0.
    """
    orbits = program.space.orbits
    own: FloatArray = program.columns.rows @ (lifts * program.centred)
    if given is None or not np.isfinite(given).all():
        yield own
        return
    yield from (given, own)
    largest = np.full(len(orbits.letters), -np.inf)
    np.maximum.at(largest, orbits.letter, program.centred)
    for rare in _RARE:
        if (orbits.masses < rare).any():
            yield np.where(orbits.masses < rare, largest, given)
