"""Certificates of trade-offs: the leakage of a mechanism is audited, its distortion computed."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from decimal import localcontext

import numpy as np

from pmlopt.core.lazy_imports import cp
from pmlopt.core.numbers.arrays import FloatArray
from pmlopt.core.numbers.roots import bisect
from pmlopt.model.queries import record_channel
from pmlopt.model.queries.record_leakage_measures import (
    allows_only_uniform,
    compute_record_information,
)
from pmlopt.programs.exact.decimals import DECIMAL_DIGITS
from pmlopt.programs.program import MethodResult
from pmlopt.programs.record_leakage.certificate import RecordCertificate
from pmlopt.programs.record_leakage.exact_leakage import BranchAndBound, round_decimal_up
from pmlopt.programs.tradeoff.certificate import TradeoffCertificate
from pmlopt.programs.tradeoff.grouped_rows import split_audit_prior
from pmlopt.programs.tradeoff.program import TradeoffProgram, combine_convexly
from pmlopt.programs.tradeoff.proof import (
    LOSS_RTOL,
    PriorCut,
    TradeoffProof,
    allows_only_constants,
    bound_in_decimals,
)
from pmlopt.solvers import highs
from pmlopt.solvers.solver_result import NO_DEADLINE, Deadline, MethodOptions


def solve_independent(program: TradeoffProgram) -> tuple[FloatArray, float, TradeoffProof] | None:
    """Find the least-distortion mechanism whose output is independent of every record.

    `min <losses, q>` subject to `sum_k (J(a,k) / pi_a - u_k) q(y|k) = 0` for each record, letter a and output
    y, J the law of the letter and the class, pi and u its sums. Multipliers mu(a,y) of these prove what
    `compute_tradeoff_bound` makes of the posteriors `psi(a|y) = pi_a (1 + mu(a,y) / w)` and the weight w.

    Returns:
        (K, M) the mechanism, what none distorts less than, and its proof; None where the solver failed.

    Examples:
        >>> from pmlopt import distortion_leakage
        >>> from pmlopt.model.queries import ModularSum
        >>> parity = ModularSum(3, 2)  # tells nothing of a record
        >>> solve_independent(distortion_leakage(parity, 0.0, parity.log_size))[0].round(9).tolist()
        [[1.0, 0.0], [0.0, 1.0]]
    """
    matrix = cp.Variable(program.losses.shape, nonneg=True)
    joints = {
        record: program.build_adversary(program.constant_matrix, record).uniform_law
        for record in program.log_counts
    }
    # under the uniform dataset I(X_i; Y) = 0 is linear in q: each letter gives the law of Y
    silent = [_compute_deviations(joint) @ matrix == 0 for joint in joints.values()]
    spent = cp.sum(cp.multiply(program.losses, matrix))
    rows = cp.sum(matrix, axis=1) == 1
    problem = cp.Problem(cp.Minimize(spent), [rows, *silent])
    if highs.solve_problem(problem, "highs", MethodOptions(NO_DEADLINE, 1e-9)).state != "point":
        return None
    proof = _build_proof(joints, [np.asarray(constraint.dual_value) for constraint in silent])
    with localcontext() as context:
        context.prec = DECIMAL_DIGITS
        # rounded towards minus infinity, as a lower bound has to be
        bound = 0.0 - round_decimal_up(
            -bound_in_decimals(program.tradeoff, program.sense, program.limit, proof)
        )
    return program.repair_matrix(np.asarray(matrix.value)), bound, proof


def _compute_deviations(joint: FloatArray) -> FloatArray:
    """Compute the (A, K) deviations of the conditional class laws from their mean."""
    return np.asarray(joint / joint.sum(axis=1, keepdims=True) - joint.sum(axis=0))


def _build_proof(joints: Mapping[int, FloatArray], slopes: Sequence[FloatArray]) -> TradeoffProof:
    """Build the dual proof from multipliers in the form of posteriors."""
    cuts = []
    for (record, joint), slope in zip(joints.items(), slopes, strict=True):
        letters = joint.sum(axis=1, keepdims=True)
        # centred, so that the tilted posteriors sum to one for each output
        tilted = slope / letters - slope.sum(axis=0)
        # a larger weight approaches the bound of the linear program, but multiplies the rounding of
        # logarithms
        weight = 1e8 * (float(np.abs(tilted).max()) or 1.0)
        shares = letters * (1 + tilted / weight)
        cuts.append(PriorCut(record, joint, shares / shares.sum(axis=0), weight))
    return TradeoffProof(tuple(cuts), 0.0)


MIN_AUDIT_TOLERANCE = 1e-7
"""Nats; audits that prove a leakage to be within a limit need not be finer."""


def audit_leakage(
    program: TradeoffProgram,
    matrix: FloatArray,
    tolerance: float,
    *,
    sufficient_bound: float = 0.0,
    seed: int = 0,
    deadline: Deadline = NO_DEADLINE,
    nodes: int | None = None,
) -> RecordCertificate:
    """Certify an upper bound on the leakage of a mechanism."""
    channel = record_channel(program.orbits.query, program.to_mechanism(matrix))
    # an audit always runs its first relaxation, even when the time is over
    options = MethodOptions(deadline.at_least(1e-3), tolerance)
    return (
        BranchAndBound(nodes, seed)
        .search_kinds(channel, program.entropy, options, {}, sufficient_bound)
        .certificate
    )


def certify_tradeoff(
    program: TradeoffProgram, audit: RecordCertificate, bound: float, proof: TradeoffProof | None
) -> TradeoffCertificate:
    """Build the trade-off certificate of an audited mechanism."""
    spent = program.tradeoff.compute_distortion(audit.mechanism.matrix)
    value = audit.bound if program.sense == "leakage" else spent
    return TradeoffCertificate(
        mechanism=audit.mechanism,
        value=value,
        bound=min(bound, value),
        sense=program.sense,
        limit=program.limit,
        tradeoff=program.tradeoff,
        audit=audit,
        proof=proof,
    )


def solve_curve_end(
    program: TradeoffProgram, seed: int, deadline: Deadline
) -> MethodResult[TradeoffCertificate] | None:
    """Return the closed-form optimum at an end of the trade-off curve, with the reason; else None.

    From the distortion of a constant on nothing need leak; where nothing may leak a constant is left, or of a
    uniform dataset what a linear program finds; and where the least distortion leaks no more than is allowed
    there is nothing better.
    """
    trivial = program.constant_distortion
    uniform = allows_only_uniform(program.entropy, program.orbits.query.log_size)
    matrix = program.constant_matrix
    proof = TradeoffProof((), 0.0)
    if program.sense == "leakage":
        # below the distortion of a constant something has to leak
        if program.limit < trivial * (1 - LOSS_RTOL):
            return None
        bound, reason = 0.0, "a constant leaks nothing"
    elif program.limit == 0 and uniform:
        found = solve_independent(program)
        if found is None:
            return None
        matrix, bound, proof = found
        reason = "a linear program: the output is independent of each record"
    elif program.limit == 0 and allows_only_constants(program.orbits.query, program.entropy):
        bound, reason = trivial, "only a constant leaks nothing"
    else:
        return _solve_cheapest_end(program, seed, deadline)
    audit = audit_leakage(program, matrix, MIN_AUDIT_TOLERANCE, seed=seed, deadline=deadline)
    return _make_end_result(certify_tradeoff(program, audit, bound, proof), reason)


def _make_end_result(
    certificate: TradeoffCertificate, reason: str
) -> MethodResult[TradeoffCertificate]:
    """Build the result of a closed-form end of the trade-off curve."""
    arrays = {"matrix": certificate.mechanism.matrix}
    return MethodResult(
        certificate=certificate, finished=True, message=reason, iterations=0, arrays=arrays
    )


def _solve_cheapest_end(
    program: TradeoffProgram, seed: int, deadline: Deadline
) -> MethodResult[TradeoffCertificate] | None:
    """Return the least-distortion mechanism where its leakage is within the limit; else None."""
    matrix = program.least_distortion_matrix
    audit = audit_leakage(
        program, matrix, MIN_AUDIT_TOLERANCE, seed=seed, deadline=deadline, nodes=1
    )
    # undecided: a finer audit may still prove the leakage to be within the limit
    if audit.bound > program.limit >= audit.value:
        room = max(program.limit - audit.value, MIN_AUDIT_TOLERANCE)
        audit = audit_leakage(program, matrix, room, seed=seed, deadline=deadline)
    if audit.bound > program.limit:
        return None
    certificate = certify_tradeoff(program, audit, program.min_distortion, TradeoffProof((), 0.0))
    return _make_end_result(certificate, "the least distortion leaks no more")


def mix_within_leakage(
    program: TradeoffProgram, matrix: FloatArray, audit: RecordCertificate, aim: float
) -> FloatArray:
    """Mix with the constant mechanism until the leakage is at most `aim`."""
    # convexity: I((1 - t) q + t c) <= (1 - t) I(q) for a constant c
    return combine_convexly(matrix, program.constant_matrix, min(1.0, 1 - aim / audit.bound))


def find_likely_within_limit(
    program: TradeoffProgram,
    path: Callable[[float], FloatArray],
    audit: RecordCertificate,
    aim: float,
) -> FloatArray:
    """Bisect a path of decreasing leakage for the first mechanism likely to be certified within `aim`.

    The leakage under the worst prior of an audit on the path is computed for each, times the factor by which
    the audit's bound was above it, and a little more.
    """
    joint = split_audit_prior(audit, program.log_counts[audit.record])
    # mixing is assumed to grow the relative gap of an audit by a factor of 1.4
    factor = 1 + 1.4 * (audit.bound / audit.value - 1)

    def is_likely_within(place: float) -> bool:
        return compute_record_information(joint, path(place)) * factor <= aim

    # the place on the path, to its last digits
    return path(0.0 if is_likely_within(0.0) else bisect(is_likely_within, 0.0, 1.0, 1e-15))
