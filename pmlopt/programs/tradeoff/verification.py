"""The claims on a trade-off of leakage and distortion computed again in decimal arithmetic."""

from __future__ import annotations

import math
from dataclasses import replace
from decimal import Decimal, localcontext

import numpy as np

from pmlopt.arrays import FloatArray
from pmlopt.exact.decimals import DIGITS, Rows, dot, has_entropy, stochastic, table_of, total
from pmlopt.mechanism import Mechanism
from pmlopt.programs.record_leakage.certificate import RecordCertificate
from pmlopt.programs.tradeoff.proof import (
    Cut,
    Sense,
    Tradeoff,
    TradeoffProof,
    only_constants,
    tradeoff_of,
)
from pmlopt.queries import Query, record_channel

ROUNDING = Decimal(2) ** -46
"""What rounding may do to a distortion, over its size: products and sums of a few floats."""

LIMIT_ROUNDING = 1e-11
"""A limit within this share of the least distortion is the least: the limit and the sum are both rounded."""


def audit_verified(query: Query, mechanism: Mechanism, audit: RecordCertificate) -> bool:
    """Whether an audit proves the leakage of this mechanism: its rows are derived from the matrix again."""
    channel, known = record_channel(query, mechanism), audit.channel
    if not (np.array_equal(channel.rows, known.rows) and np.array_equal(channel.classes, known.classes)):
        return False
    return replace(audit, mechanism=mechanism, channel=channel).verify()


def limit_verified(tradeoff: Tradeoff, sense: Sense, limit: float, matrix: FloatArray) -> bool:
    """Whether losses, support, limit and mechanism are such, and Problem 2's mechanism keeps its limit."""
    losses, allowed = tradeoff.losses, tradeoff.allowed
    if sense not in ("leakage", "distortion") or not (math.isfinite(limit) and limit >= 0):
        return False
    if not losses.shape == allowed.shape == matrix.shape or not _nonnegative(losses, matrix):
        return False
    if not _support_holds(tradeoff, sense, limit) or matrix[~allowed].any():
        return False
    with localcontext() as context:
        context.prec = DIGITS
        rows, costs = table_of(matrix), table_of(losses)
        if any(abs(total(row) - 1) > ROUNDING for row in rows):
            return False
        spent = total(dot(row, cost) for row, cost in zip(rows, costs, strict=True))
        return sense == "distortion" or spent <= Decimal(limit) + _slack(costs)


def bound_verified(
    tradeoff: Tradeoff,
    sense: Sense,
    limit: float,
    proof: TradeoffProof,
    query: Query,
    entropy: float,
    bound: float,
) -> bool:
    """Whether no mechanism betters a bound, by the priors and multipliers of a proof.

    Args:
        tradeoff: losses and support, as `limit_verified` found them right.
        sense: what is minimised.
        limit: on the other.
        proof: the priors and multipliers.
        query: the classes of datasets.
        entropy: b, which each prior must have, in nats.
        bound: what is claimed.
    """
    if not (math.isfinite(bound) and proof.nonnegative):
        return False
    with localcontext() as context:
        context.prec = DIGITS
        if not all(_cut_holds(cut, tradeoff, query, entropy) for cut in proof.cuts):
            return False
        losses = table_of(tradeoff.losses)
        slack = Decimal(0) if sense == "leakage" else _slack(losses)
        if sense == "distortion" and limit == 0 and only_constants(query, entropy):
            return min(total(column) for column in zip(*losses, strict=True)) + slack >= Decimal(bound)
        return proved_least(tradeoff, sense, limit, proof) + slack >= Decimal(bound)


def _nonnegative(*arrays: FloatArray) -> bool:
    """Whether all entries are finite and at least 0."""
    return all(bool((np.isfinite(array) & (array >= 0)).all()) for array in arrays)


def _slack(losses: Rows) -> Decimal:
    """What rounding may do to an expected distortion."""
    return ROUNDING * total(max(cost) for cost in losses)


def _support_holds(tradeoff: Tradeoff, sense: Sense, limit: float) -> bool:
    """Whether the support leaves out no mechanism within the limit."""
    if tradeoff.allowed.all():
        return True
    cheapest = tradeoff_of(tradeoff.losses, "leakage", 0.0).allowed
    near = limit <= tradeoff.least * (1 + LIMIT_ROUNDING)
    return sense == "leakage" and near and bool(np.array_equal(tradeoff.allowed, cheapest))


def _cut_holds(cut: Cut, tradeoff: Tradeoff, query: Query, entropy: float) -> bool:
    """Whether a cut is a prior of the entropy with a law of the letter for each output."""
    if cut.record not in range(query.records):
        return False
    log_counts = query.log_counts(cut.record)
    letters, outputs = len(log_counts), tradeoff.losses.shape[1]
    if cut.joint.shape != log_counts.shape or cut.joint.shape[1] != len(tradeoff.losses):
        return False
    if cut.posterior.shape != (letters, outputs) or not _nonnegative(cut.joint, cut.posterior):
        return False
    used = cut.joint.sum(axis=1) > 0
    if not (cut.posterior[used] > 0).all():
        return False
    return has_entropy(cut.joint, log_counts, entropy, query.log_size)


def proved_least(tradeoff: Tradeoff, sense: Sense, limit: float, proof: TradeoffProof) -> Decimal:
    """`tradeoff_bound` in decimals of the context, or the least distortion of all where that is more."""
    leakage = sense == "leakage"
    losses = table_of(tradeoff.losses)
    floor = Decimal(0) if leakage else total(min(row) for row in losses)
    weights = [Decimal(cut.weight) for cut in proof.cuts]
    scale = total(weights) if leakage else Decimal(1)
    if scale <= 0:
        return floor
    price = Decimal(proof.price) / scale if leakage else Decimal(1)
    worth = [[price * cost for cost in row] for row in losses]
    for cut, weight in zip(proof.cuts, weights, strict=True):
        for row, gains in zip(worth, _gains(cut), strict=True):
            row[:] = [w + weight / scale * gain for w, gain in zip(row, gains, strict=True)]
    offset = (price if leakage else total(weights)) * Decimal(limit)
    allowed = tradeoff.allowed.tolist()
    found = total(
        min(w for w, ok in zip(*pair, strict=True) if ok) for pair in zip(worth, allowed, strict=True)
    )
    return max(floor, found - offset)


def _gains(cut: Cut) -> Rows:
    """`sum_a J(a,k) log(psi(a|y) / pi_a)` of one prior, for each class k and output y."""
    width = cut.joint.shape[1]
    flat = stochastic(cut.joint.reshape(1, -1))[0]
    posterior = zip(*stochastic(cut.posterior.T), strict=True)
    gains = [[Decimal(0)] * cut.posterior.shape[1] for _ in range(width)]
    for letter, laws in enumerate(posterior):
        part = flat[letter * width : (letter + 1) * width]
        mass = total(part)
        if mass > 0:
            logs = [(psi / mass).ln() for psi in laws]
            for row, weight in zip(gains, part, strict=True):
                row[:] = [gain + weight * log for gain, log in zip(row, logs, strict=True)]
    return gains
