"""From a matrix and margins to the certificate of an envelope design: repair, and numbers computed again."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction

import numpy as np

from pmlopt.core.arrays import FloatArray
from pmlopt.data.mechanism import Mechanism
from pmlopt.errors import MechanismError
from pmlopt.programs.envelope.masses import leaking_mass
from pmlopt.programs.envelope.methods import worst_failure
from pmlopt.programs.envelope.program import failure_after_processing
from pmlopt.programs.envelope_design.certificate import EnvelopeDesignCertificate
from pmlopt.programs.envelope_design.margins import BoxProof
from pmlopt.programs.envelope_design.program import EnvelopeDesign
from pmlopt.programs.exact.arithmetic import snap
from pmlopt.programs.exact.repair import NOISE_THRESHOLD, Repair, without_noise
from pmlopt.solvers.outcome import Options

LEAST_MIXING = 2.0**-50
"""The first share of a constant that is tried; each next one is four times as large."""

LARGEST_SHARE = 1 - 1e-9
"""Of the largest margins, beyond which no mixing with a constant would mend a matrix."""

OPEN_ROW = 1e-12
"""A multiplier of the worst post-processing up to this is taken for 0, and its margin for the largest."""


def certify_design(
    program: EnvelopeDesign, matrix: FloatArray, margins: FloatArray, proof: BoxProof
) -> EnvelopeDesignCertificate:
    """Repair a matrix until it meets the condition with its margins, and compute every number from it.

    The margins (N,) are at least 0 and at most `LARGEST_SHARE` of the largest; any proof will do.

    Raises:
        MechanismError: the matrix is no mechanism, not even roughly.
    """
    fixed = repaired(program, matrix, margins)
    made = EnvelopeDesignCertificate(
        mechanism=Mechanism(fixed.matrix, program.prior.labels, program.outputs),
        value=0.0,
        bound=0.0,
        prior=program.prior,
        epsilon=program.epsilon,
        delta=program.delta,
        margins=margins,
        table=program.plain.table,
        maximised=program.maximised,
        proof=proof,
        repair=fixed.change,
    )
    value, bound = made.figures()
    return replace(made, value=value, bound=bound)


def repaired(program: EnvelopeDesign, matrix: FloatArray, margins: FloatArray) -> Repair:
    """The matrix on the exact grid, mixed with as little of a constant as the condition needs.

    Constants meet it with any margins below the largest, and with fixed margins it is convex. Entries
    that look like noise become zeros, unless that costs more than it mends; the constant is the law of
    the output, or uniform on the outputs.
    """
    found: list[tuple[float, FloatArray]] = []
    for noise in (NOISE_THRESHOLD, 0.0):
        clean = without_noise(matrix, noise)
        used = clean.max(axis=0) > 0
        laws = (program.prior.pmf @ clean, used / used.sum())
        found += [_mixed(program, clean, law, margins) for law in laws]
        if min(theta for theta, _ in found) == 0:
            break
    theta, best = min(found, key=lambda pair: pair[0])
    return Repair.between(matrix, best, theta)


def _mixed(
    program: EnvelopeDesign, clean: FloatArray, law: FloatArray, margins: FloatArray
) -> tuple[float, FloatArray]:
    """The first share of the constant with which the condition holds as rationals, and the mixture."""
    theta = 0.0
    while True:
        candidate = snap((1 - theta) * clean + theta * law)
        mass = leaking_mass(program.prior, candidate, program.epsilon, margins)
        if mass is not None and mass <= Fraction(program.delta):
            return theta, candidate
        if theta >= 1:
            raise MechanismError(
                "a constant does not meet the condition with these margins: they are too large"
            )
        theta = min(1.0, max(LEAST_MIXING, 4 * theta))


def margins_of(program: EnvelopeDesign, matrix: FloatArray, options: Options) -> FloatArray:
    """(N,) the margins with which a mechanism comes nearest to it: by its worst post-processing."""
    audited = failure_after_processing(program.prior, Mechanism(matrix), program.epsilon)
    _, found, _, _ = worst_failure(audited, options)
    closed = np.asarray(
        (audited.exact.gains(min(program.epsilon, program.prior.max_leakage)) <= 0).all(axis=1)
    )
    margins = 1 / np.maximum(found, OPEN_ROW)
    return within(program, np.where(closed, 0.0, margins))


def within(program: EnvelopeDesign, margins: FloatArray) -> FloatArray:
    """(N,) the margins cut to what a mechanism can be repaired with."""
    return np.asarray(np.clip(margins, 0.0, LARGEST_SHARE * program.span.largest))
