"""The method for envelope designs: branch and bound over the margins, repair, and the certificate."""

from __future__ import annotations

import time
from dataclasses import replace
from fractions import Fraction

import numpy as np

from pmlopt.core.arrays import FloatArray
from pmlopt.core.programming_errors import raise_if_strict
from pmlopt.data.mechanism import Mechanism
from pmlopt.errors import ProgramError
from pmlopt.model.closed_forms import constant
from pmlopt.programs.envelope.masses import leaking_mass
from pmlopt.programs.envelope.methods import worst_failure
from pmlopt.programs.envelope.program import failure_after_processing
from pmlopt.programs.envelope_design.branch_and_bound import search_margins
from pmlopt.programs.envelope_design.certificate import EnvelopeDesignCertificate
from pmlopt.programs.envelope_design.margin_programs import BoxProof, MarginPrograms, trivial_proof
from pmlopt.programs.envelope_design.program import EnvelopeDesign
from pmlopt.programs.exact.arithmetic import snap
from pmlopt.programs.exact.repair import NOISE_THRESHOLD, Repair, mixed_with_laws, without_noise
from pmlopt.programs.program import (
    Found,
    Method,
    MethodError,
    Question,
    certified,
    check_shape,
    starts_cold,
)
from pmlopt.solvers.outcome import FOREVER, Options

LARGEST_SHARE = 1 - 1e-9
"""Of the largest margins, beyond which no mixing with a constant would mend a matrix."""


def _by_margins(program: EnvelopeDesign, options: Options, _: None) -> Found[EnvelopeDesignCertificate]:
    """Search, repair and certify; `iterations` counts the linear programs."""
    begin = time.perf_counter()
    programs = MarginPrograms(program.span, program.centred, options)
    try:
        best, proof, finished, ending = search_margins(programs, program.allowed_gap(options.tolerance) / 2)
    except ArithmeticError as cause:
        raise_if_strict(cause)
        raise MethodError(f"no design was found: {cause}. Allow more time") from cause
    clock = time.perf_counter()
    certificate = certify_design(program, best.point.matrix, within(program, best.margins), proof)
    return Found(
        certificate=certificate,
        finished=finished,
        message=ending,
        iterations=programs.solved,
        solve_seconds=clock - begin,
        certify_seconds=time.perf_counter() - clock,
    )


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
        table=program.table,
        maximised=program.maximised,
        proof=proof,
        repair=fixed.change,
    )
    value, bound = made.figures()
    return replace(made, value=value, bound=bound)


def repaired(program: EnvelopeDesign, matrix: FloatArray, margins: FloatArray) -> Repair:
    """Put the matrix on the exact grid, mixed with as little of a constant as the condition needs.

    Constants meet it with any margins below the largest, and with fixed margins it is convex. Entries
    that look like noise become zeros, unless that costs more than it mends; the constant is the law of
    the output, or uniform on the outputs.
    """

    def holds(candidate: FloatArray) -> bool:
        mass = leaking_mass(program.prior, candidate, program.epsilon, margins)
        return mass is not None and mass <= Fraction(program.delta)

    found: list[tuple[float, FloatArray]] = []
    for noise in (NOISE_THRESHOLD, 0.0):
        clean = without_noise(matrix, noise)
        if holds(plain := snap(clean)):
            return Repair.between(matrix, plain, 0.0)
        # the first share of a constant; each next one is twice as large
        found.append(mixed_with_laws(program.prior, clean, holds, lambda *_: 2.0**-50))
    theta, best = min(found, key=lambda pair: pair[0])
    return Repair.between(matrix, best, theta)


def margins_of(program: EnvelopeDesign, matrix: FloatArray, options: Options) -> FloatArray:
    """Find (N,) the margins by which a mechanism is nearest to the condition, from its worst attack."""
    audited = failure_after_processing(program.prior, Mechanism(matrix), program.epsilon)
    _, found, *_ = worst_failure(audited, options)
    assert found is not None
    gains = audited.exact.gains(min(program.epsilon, program.prior.max_leakage))
    open_ = (gains > 0).any(axis=1)
    # multipliers below 1e-12 count as 0, and their margins as the largest
    return within(program, np.where(open_, 1 / np.maximum(found, 1e-12), 0.0))


def within(program: EnvelopeDesign, margins: FloatArray) -> FloatArray:
    """Clip (N,) the margins to those with which a mechanism can be repaired."""
    return np.asarray(np.clip(margins, 0.0, LARGEST_SHARE * program.span.largest))


def _certify(
    program: EnvelopeDesign, matrix: FloatArray, multipliers: FloatArray | None
) -> Found[EnvelopeDesignCertificate]:
    """Repair and certify a matrix with the margins of its worst post-processing, and the trivial bound."""
    check_shape(matrix, program.table, "the mechanism")
    if multipliers is not None:
        raise ProgramError("multipliers of rows alone bound no envelope design: certify the matrix alone")
    margins = margins_of(program, matrix, Options(FOREVER, program.tolerance))
    return certified(certify_design(program, matrix, margins, trivial_proof(program.centred)))


def _find_first(program: EnvelopeDesign) -> Found[EnvelopeDesignCertificate]:
    """Certify the best constant, which meets the condition with any margins."""
    matrix = constant(program.prior, program.centred).matrix
    margins = np.zeros(program.prior.size)
    certificate = certify_design(program, matrix, margins, trivial_proof(program.centred))
    return Found(certificate=certificate, finished=False, message="a mechanism by formula")


QUESTION = Question(
    EnvelopeDesign,
    (
        Method(
            "branch-and-bound",
            "linear programs at fixed margins, branch and bound over the margins",
            _by_margins,
        ),
    ),
    starts_cold("an envelope design starts from margins of its own: leave out the mechanism"),
    _certify,
    first=_find_first,
)
"""Designs within an envelope: the mechanism in hand is returned with its gap."""
