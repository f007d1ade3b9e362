"""Certificates of trade-offs: the leakage of a mechanism is audited, its distortion computed."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from decimal import localcontext

import numpy as np

from pmlopt.core.arrays import FloatArray
from pmlopt.core.loaded_later import cp
from pmlopt.core.roots import halved
from pmlopt.model.queries import record_channel
from pmlopt.model.queries.record_leakage_measures import record_information, uniform_alone
from pmlopt.programs.exact.arithmetic import DIGITS
from pmlopt.programs.program import Found
from pmlopt.programs.record_leakage.certificate import RecordCertificate
from pmlopt.programs.record_leakage.exact_leakage import BranchAndBound, float_above
from pmlopt.programs.tradeoff.certificate import TradeoffCertificate
from pmlopt.programs.tradeoff.grouped_rows import split
from pmlopt.programs.tradeoff.program import TradeoffProgram, convex_combination
from pmlopt.programs.tradeoff.proof import (
    RELATIVE_TOLERANCE,
    Cut,
    TradeoffProof,
    only_constants,
    proved_least,
)
from pmlopt.solvers import highs
from pmlopt.solvers.outcome import FOREVER, Clock, Options


def silent_mechanism(program: TradeoffProgram) -> tuple[FloatArray, float, TradeoffProof] | None:
    """Find the least-distortion mechanism whose output is independent of each record of a uniform dataset.

    `min <losses, q>` subject to `sum_k (J(a,k) / pi_a - u_k) q(y|k) = 0` for each record, letter a and output
    y, J the law of the letter and the class, pi and u its sums. Multipliers mu(a,y) of these prove what
    `tradeoff_bound` makes of the posteriors `psi(a|y) = pi_a (1 + mu(a,y) / w)` and the weight w.

    Returns:
        (K, M) the mechanism, what none distorts less than, and its proof; None where the solver failed.

    Examples:
        >>> from pmlopt import distortion_leakage
        >>> from pmlopt.model.queries import ModularSum
        >>> parity = ModularSum(3, 2)  # tells nothing of a record
        >>> silent_mechanism(distortion_leakage(parity, 0.0, parity.log_size))[0].round(9).tolist()
        [[1.0, 0.0], [0.0, 1.0]]
    """
    matrix = cp.Variable(program.losses.shape, nonneg=True)
    joints = {record: program.adversary(program.constant, record).uniform for record in program.log_counts}
    silent = [_deviations(joint) @ matrix == 0 for joint in joints.values()]
    spent, rows = cp.sum(cp.multiply(program.losses, matrix)), cp.sum(matrix, axis=1) == 1
    problem = cp.Problem(cp.Minimize(spent), [rows, *silent])
    if highs.run(problem, "highs", Options(FOREVER, 1e-9)).state != "point":
        return None
    proof = _proof(joints, [np.asarray(constraint.dual_value) for constraint in silent])
    with localcontext() as context:
        context.prec = DIGITS
        bound = 0.0 - float_above(-proved_least(program.tradeoff, program.sense, program.limit, proof))
    return program.repaired(np.asarray(matrix.value)), bound, proof


def _deviations(joint: FloatArray) -> FloatArray:
    """Compute (A, K) how the law of the class given each letter differs from its law."""
    return np.asarray(joint / joint.sum(axis=1, keepdims=True) - joint.sum(axis=0))


def _proof(joints: Mapping[int, FloatArray], slopes: Sequence[FloatArray]) -> TradeoffProof:
    """Build the proof from the multipliers as posteriors with a large weight."""
    cuts = []
    for (record, joint), slope in zip(joints.items(), slopes, strict=True):
        letters = joint.sum(axis=1, keepdims=True)
        tilted = slope / letters - slope.sum(axis=0)
        # a larger weight approaches the bound of the linear program, but multiplies the rounding of
        # logarithms
        weight = 1e8 * (float(np.abs(tilted).max()) or 1.0)
        shares = letters * (1 + tilted / weight)
        cuts.append(Cut(record, joint, shares / shares.sum(axis=0), weight))
    return TradeoffProof(tuple(cuts), 0.0)


LEAST_AUDIT_TOLERANCE = 1e-7
"""Nats; audits that prove a leakage to be within a limit need not be finer."""


def audited(
    program: TradeoffProgram,
    matrix: FloatArray,
    tolerance: float,
    *,
    enough: float = 0.0,
    seed: int = 0,
    clock: Clock = FOREVER,
    nodes: int | None = None,
) -> RecordCertificate:
    """Certify the leakage of a mechanism."""
    channel = record_channel(program.orbits.query, program.mechanism(matrix))
    # an audit always runs its first relaxation, even when the time is over
    options = Options(clock.at_least(1e-3), tolerance)
    return BranchAndBound(nodes, seed).search(channel, program.entropy, options, {}, enough).certificate


def certify_tradeoff(
    program: TradeoffProgram, audit: RecordCertificate, bound: float, proof: TradeoffProof | None
) -> TradeoffCertificate:
    """Build the certificate of an audited mechanism."""
    spent = program.tradeoff.distortion(audit.mechanism.matrix)
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


def closed_end(program: TradeoffProgram, seed: int, clock: Clock) -> Found[TradeoffCertificate] | None:
    """Return the optimum where the program is at an end of its curve, with the reason; else None.

    From the distortion of a constant on nothing need leak; where nothing may leak a constant is left, or of a
    uniform dataset what a linear program finds; and where the least distortion leaks no more than is allowed
    there is nothing better.
    """
    trivial, uniform = program.trivial, uniform_alone(program.entropy, program.orbits.query.log_size)
    matrix, proof = program.constant, TradeoffProof((), 0.0)
    if program.sense == "leakage":
        if program.limit < trivial * (1 - RELATIVE_TOLERANCE):
            return None
        bound, reason = 0.0, "a constant leaks nothing"
    elif program.limit == 0 and uniform:
        found = silent_mechanism(program)
        if found is None:
            return None
        matrix, bound, proof = found
        reason = "a linear program: the output is independent of each record"
    elif program.limit == 0 and only_constants(program.orbits.query, program.entropy):
        bound, reason = trivial, "only a constant leaks nothing"
    else:
        return _cheapest_end(program, seed, clock)
    audit = audited(program, matrix, LEAST_AUDIT_TOLERANCE, seed=seed, clock=clock)
    return _at_end(certify_tradeoff(program, audit, bound, proof), reason)


def _at_end(certificate: TradeoffCertificate, reason: str) -> Found[TradeoffCertificate]:
    arrays = {"matrix": certificate.mechanism.matrix}
    return Found(certificate=certificate, finished=True, message=reason, iterations=0, arrays=arrays)


def _cheapest_end(program: TradeoffProgram, seed: int, clock: Clock) -> Found[TradeoffCertificate] | None:
    """Return the mechanism of least distortion where its leakage is allowed, proved as far as needed."""
    matrix = program.cheapest
    audit = audited(program, matrix, LEAST_AUDIT_TOLERANCE, seed=seed, clock=clock, nodes=1)
    if audit.bound > program.limit >= audit.value:
        room = max(program.limit - audit.value, LEAST_AUDIT_TOLERANCE)
        audit = audited(program, matrix, room, seed=seed, clock=clock)
    if audit.bound > program.limit:
        return None
    certificate = certify_tradeoff(program, audit, program.least, TradeoffProof((), 0.0))
    return _at_end(certificate, "the least distortion leaks no more")


def within_leakage(
    program: TradeoffProgram, matrix: FloatArray, audit: RecordCertificate, aim: float
) -> FloatArray:
    """Mix with the constant until at most `aim` leaks: leakage is convex, and 0 there."""
    return convex_combination(matrix, program.constant, min(1.0, 1 - aim / audit.bound))


def likely_within(
    program: TradeoffProgram, path: Callable[[float], FloatArray], audit: RecordCertificate, aim: float
) -> FloatArray:
    """Find the first mechanism on a path of falling leakages whose bound is likely to be at most `aim`.

    The leakage under the worst prior of an audit on the path is computed for each, times the factor by which
    the audit's bound was above it, and a little more.
    """
    joint = split(audit, program.log_counts[audit.record])
    # mixing is assumed to grow the relative gap of an audit by a factor of 1.4
    factor = 1 + 1.4 * (audit.bound / audit.value - 1)

    def within(place: float) -> bool:
        return record_information(joint, path(place)) * factor <= aim

    # the place on the path, to its last digits
    return path(0.0 if within(0.0) else halved(within, 0.0, 1.0, 1e-15))
