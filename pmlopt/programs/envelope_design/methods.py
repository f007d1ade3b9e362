"""The method for envelope designs: branch and bound over the margins, then repair and certification."""

from __future__ import annotations

import time
from dataclasses import replace
from fractions import Fraction

import numpy as np

from pmlopt.core.numbers.arrays import FloatArray
from pmlopt.core.programming_errors import raise_if_strict
from pmlopt.data.mechanism import Mechanism
from pmlopt.errors import ProgramError
from pmlopt.model.utility.linear import build_best_constant
from pmlopt.programs.envelope.masses import bound_leaking_mass
from pmlopt.programs.envelope.methods import solve_worst_failure
from pmlopt.programs.envelope.program import failure_after_processing
from pmlopt.programs.envelope_design.branch_and_bound import search_margins
from pmlopt.programs.envelope_design.certificate import EnvelopeDesignCertificate
from pmlopt.programs.envelope_design.margin_programs import (
    BoxProof,
    MarginPrograms,
    build_trivial_proof,
)
from pmlopt.programs.envelope_design.program import EnvelopeDesign
from pmlopt.programs.exact.rounding import (
    ENTRY_NOISE_ATOL,
    RepairedMatrix,
    drop_noise,
    mix_with_constant,
    round_rows_to_grid,
)
from pmlopt.programs.program import (
    Method,
    MethodError,
    MethodRegistry,
    MethodResult,
    check_shape,
    reject_warm_start,
    wrap_given_certificate,
)
from pmlopt.programs.registry import register_question
from pmlopt.solvers.solver_result import NO_DEADLINE, MethodOptions


def _solve_by_margins(
    program: EnvelopeDesign, options: MethodOptions, _: None
) -> MethodResult[EnvelopeDesignCertificate]:
    """Search the margins, repair the mechanism and certify it; `iterations` counts linear programs."""
    begin = time.perf_counter()
    programs = MarginPrograms(program.margin_range, program.centered_gains, options)
    try:
        best, proof, finished, ending = search_margins(
            programs, program.compute_allowed_gap(options.tolerance) / 2
        )
    except ArithmeticError as cause:
        raise_if_strict(cause)
        raise MethodError(f"no design was found: {cause}. Allow more time") from cause
    solved_at = time.perf_counter()
    certificate = certify_envelope_design(
        program, best.solution.matrix, clip_margins(program, best.margins), proof
    )
    return MethodResult(
        certificate=certificate,
        finished=finished,
        message=ending,
        iterations=programs.solved,
        solve_seconds=solved_at - begin,
        certify_seconds=time.perf_counter() - solved_at,
    )


def certify_envelope_design(
    program: EnvelopeDesign, matrix: FloatArray, margins: FloatArray, proof: BoxProof
) -> EnvelopeDesignCertificate:
    """Repair a matrix to meet the envelope condition with its margins, and build its certificate.

    The margins (N,) are at least 0 and less than the largest by a share of 1e-9 or more; any proof will do.

    Raises:
        MechanismError: the matrix is no mechanism, not even roughly.
    """
    fixed = repair_design(program, matrix, margins)
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
        repair=fixed.to_record,
    )
    value, bound = made.recompute_numbers()
    return replace(made, value=value, bound=bound)


def repair_design(
    program: EnvelopeDesign, matrix: FloatArray, margins: FloatArray
) -> RepairedMatrix:
    """Round a matrix to the exact grid, and mix in the smallest constant part that makes it feasible.

    Constants meet it with any margins below the largest, and with fixed margins it is convex. Entries
    that look like noise become zeros, unless that costs more than it mends; the constant is the law of
    the output, or uniform on the outputs.
    """

    def meets_condition(candidate: FloatArray) -> bool:
        mass = bound_leaking_mass(program.prior, candidate, program.epsilon, margins)
        return mass is not None and mass <= Fraction(program.delta)

    found: list[tuple[float, FloatArray]] = []
    for noise in (ENTRY_NOISE_ATOL, 0.0):
        clean = drop_noise(matrix, noise)
        # nothing to mend: the grid changes entries by its spacing only
        if meets_condition(plain := round_rows_to_grid(clean)):
            return RepairedMatrix.from_matrices(matrix, plain, 0.0)
        # the first share of a constant; each next one is twice as large
        found.append(mix_with_constant(program.prior, clean, meets_condition, lambda *_: 2.0**-50))
    # dropping noise helps, or costs more than it mends: the smaller share decides
    theta, best = min(found, key=lambda pair: pair[0])
    return RepairedMatrix.from_matrices(matrix, best, theta)


def find_margins(program: EnvelopeDesign, matrix: FloatArray, options: MethodOptions) -> FloatArray:
    """Find the (N,) margins of smallest violation for a mechanism, from its worst post-processing."""
    audited = failure_after_processing(program.prior, Mechanism(matrix), program.epsilon)
    _, found, *_ = solve_worst_failure(audited, options)
    assert found is not None
    gains = audited.rational_mechanism.compute_gains(
        min(program.epsilon, program.prior.max_leakage)
    )
    # a letter that never exceeds the level has no attack: it needs no margin
    open_ = (gains > 0).any(axis=1)
    # multipliers below 1e-12 count as 0, and their margins as the largest
    return clip_margins(program, np.where(open_, 1 / np.maximum(found, 1e-12), 0.0))


def clip_margins(program: EnvelopeDesign, margins: FloatArray) -> FloatArray:
    """Clip (N,) margins to the range in which a mechanism can be repaired."""
    # no mixing with a constant would mend a matrix with the largest margins themselves
    return np.clip(margins, 0.0, (1 - 1e-9) * program.margin_range.max_margins)


def _certify_given_matrix(
    program: EnvelopeDesign, matrix: FloatArray, multipliers: FloatArray | None
) -> MethodResult[EnvelopeDesignCertificate]:
    """Repair and certify a given matrix, with margins of its worst post-processing and a trivial bound."""
    check_shape(matrix, program.table, "the mechanism")
    if multipliers is not None:
        raise ProgramError("multipliers of the rows bound no envelope design: leave them out")
    margins = find_margins(program, matrix, MethodOptions(NO_DEADLINE, program.tolerance))
    return wrap_given_certificate(
        certify_envelope_design(
            program, matrix, margins, build_trivial_proof(program.centered_gains)
        )
    )


def _find_first_feasible(program: EnvelopeDesign) -> MethodResult[EnvelopeDesignCertificate]:
    """Certify the best constant mechanism as a first feasible solution."""
    matrix = build_best_constant(program.prior.probabilities, program.centered_gains)
    margins = np.zeros(program.prior.size)
    certificate = certify_envelope_design(
        program, matrix, margins, build_trivial_proof(program.centered_gains)
    )
    return MethodResult(certificate=certificate, finished=False, message="a mechanism by formula")


METHODS = MethodRegistry(
    EnvelopeDesign,
    (
        Method(
            "branch-and-bound",
            "linear programs at fixed margins, branch and bound over the margins",
            _solve_by_margins,
        ),
    ),
    reject_warm_start("an envelope design cannot start from a mechanism: leave it out"),
    _certify_given_matrix,
    find_first_result=_find_first_feasible,
)
"""Designs within an envelope: the best mechanism found is returned with its gap."""

register_question(METHODS)
