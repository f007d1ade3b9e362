"""The method for envelope designs: branch and bound over the margins."""

from __future__ import annotations

import time

import numpy as np

from pmlopt.core.arrays import FloatArray
from pmlopt.data.mechanism import as_mechanism, paired
from pmlopt.errors import ProgramError
from pmlopt.programs.certificate import Restart, WarmStart, mechanism_of
from pmlopt.programs.envelope_design.branch_and_bound import search_margins
from pmlopt.programs.envelope_design.certificate import EnvelopeDesignCertificate
from pmlopt.programs.envelope_design.certifying import certify_design, margins_of, within
from pmlopt.programs.envelope_design.margin_programs import Ascent, MarginPrograms
from pmlopt.programs.envelope_design.margins import BoxProof, trivial_proof
from pmlopt.programs.envelope_design.program import EnvelopeDesign, check_shape
from pmlopt.programs.question import Found, Method, MethodError, Question, certified
from pmlopt.solvers.clock import FOREVER
from pmlopt.solvers.outcome import Options

STRICTER = (1e-9, 1e-7, 1e-5)
"""By which share t and delta are made smaller for the final program, so that a solver's tolerances are within
what is asked: the least with which the certified value is as good as it can be."""

LARGEST_MIXING = 1e-8
"""A repair that mixes in more of a constant is tried again with a stricter program."""


MarginStart = list[FloatArray]
"""Margins (N,) that the search may start from."""


def _by_margins(
    program: EnvelopeDesign, options: Options, start: MarginStart
) -> Found[EnvelopeDesignCertificate]:
    """Search, repair and certify; `iterations` counts the linear programs."""
    begin = time.perf_counter()
    programs = MarginPrograms(program.span, program.gains, options)
    try:
        best, proof, finished, ending = search_margins(
            programs, start, program.allowed_gap(options.tolerance) / 2
        )
    except ArithmeticError as cause:
        raise MethodError(f"no design was found: {cause}. Allow more time") from cause
    clock = time.perf_counter()
    certificate = _certified(program, programs, best, proof)
    return Found(
        certificate=certificate,
        finished=finished,
        message=ending,
        detail=ending,
        iterations=programs.solved,
        warm_started=bool(start),
        solve_seconds=clock - begin,
        certify_seconds=time.perf_counter() - clock,
        arrays={"matrix": certificate.mechanism.matrix, "margins": certificate.margins},
    )


def _certified(
    program: EnvelopeDesign, programs: MarginPrograms, best: Ascent, proof: BoxProof
) -> EnvelopeDesignCertificate:
    """The best certificate of the margins that were found, the last program solved a little more strictly."""
    span = program.span
    certificates = [certify_design(program, best.point.matrix, within(program, best.margins), proof)]
    for stricter in STRICTER:
        if certificates[-1].repair.theta <= LARGEST_MIXING:
            break
        ratio, delta = span.ratio * (1 - stricter), span.delta * (1 - stricter)
        margins = np.clip(best.margins, 0.0, max(0.0, (ratio - 1) / (1 - delta)))
        margins = within(program, np.minimum(margins, span.largest))
        try:
            point = programs.solve(ratio - margins, margins, delta=delta)
        except ArithmeticError:
            continue
        certificates.append(certify_design(program, point.matrix, margins, proof))
    return max(certificates, key=lambda found: found.value if program.maximised else -found.value)


def _start(program: EnvelopeDesign, warm_start: WarmStart) -> MarginStart:
    """The margins of the mechanism that was given, or of an earlier end."""
    if warm_start is None or warm_start is False:
        return []
    if isinstance(warm_start, Restart):
        margins = warm_start.arrays.get("margins")
        fits = margins is not None and np.shape(margins) == program.span.largest.shape
        return [np.asarray(margins)] if fits else []
    given = paired(program.prior, as_mechanism(mechanism_of(warm_start)))[1].matrix
    check_shape(program, given)
    return [margins_of(program, given, Options(FOREVER, program.tolerance))]


def _certify(
    program: EnvelopeDesign, matrix: FloatArray, multipliers: FloatArray | None
) -> Found[EnvelopeDesignCertificate]:
    """Repaired with the margins of its worst post-processing; nothing but the largest gain bounds it."""
    check_shape(program, matrix)
    if multipliers is not None:
        raise ProgramError("multipliers of rows alone bound no envelope design: certify the matrix alone")
    margins = margins_of(program, matrix, Options(FOREVER, program.tolerance))
    return certified(certify_design(program, matrix, margins, trivial_proof(program.gains)))


QUESTION = Question(
    EnvelopeDesign,
    (
        Method(
            "branch-and-bound",
            "linear programs at fixed margins, branch and bound over the margins",
            _by_margins,
        ),
    ),
    _start,
    _certify,
)
"""Designs within an envelope: the mechanism in hand is returned with its gap."""
