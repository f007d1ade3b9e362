"""The claims on the leakage per record computed again in decimal arithmetic, from plain data."""

from __future__ import annotations

import math
from collections.abc import Sequence
from decimal import Decimal, localcontext

import numpy as np

from pmlopt.arrays import FloatArray
from pmlopt.errors import InputError
from pmlopt.exact.decimals import (
    DIGITS,
    LAST_DIGITS,
    Rows,
    decimals,
    dot,
    has_entropy,
    log_sum,
    mixed,
    normalised,
    phi,
    stochastic,
    table_of,
    total,
)
from pmlopt.mechanism import Mechanism
from pmlopt.programs.record_leakage.box_verification import boxes_hold, laws_hold
from pmlopt.programs.record_leakage.covering import DISTANCE_TOLERANCE, covers, covers_rows
from pmlopt.programs.record_leakage.near_uniform import entropy_room, near_uniform_bound
from pmlopt.programs.record_leakage.proof import KindProof, Region
from pmlopt.queries import RecordChannel, record_channel


def belongs(channel: RecordChannel, mechanism: Mechanism) -> bool:
    """Whether a channel is that of its query and of this mechanism."""
    try:
        again = record_channel(channel.query, mechanism)
    except InputError:
        return False
    return np.array_equal(again.rows, channel.rows) and np.array_equal(again.classes, channel.classes)


def leaks_at_least(
    channel: RecordChannel, entropy: float, record: int, joint: FloatArray, value: float
) -> bool:
    """Whether a law of (X_i, T) has the entropy, up to what one float can say, and leaks the value.

    Args:
        channel: the query and the mechanism.
        entropy: b, in nats.
        record: i.
        joint: (A, T) the law.
        value: in nats.
    """
    if not (0 <= record < channel.query.records and math.isfinite(value) and np.isfinite(joint).all()):
        return False
    log_counts = channel.log_counts(record)
    if joint.shape != log_counts.shape:
        return False
    with localcontext() as context:
        context.prec = DIGITS
        if not has_entropy(joint, log_counts, entropy, channel.query.log_size):
            return False
        leaked = _leaked(stochastic(joint.reshape(1, -1))[0], stochastic(channel.rows))
        return leaked >= Decimal(value) - LAST_DIGITS


def none_leaks_more(
    channel: RecordChannel, entropy: float, proofs: Sequence[KindProof], bound: float
) -> bool:
    """Whether the proofs show, for every kind of records, that no prior of the entropy leaks more.

    Args:
        channel: the query and the mechanism.
        entropy: b, in nats: the float itself.
        proofs: one for each kind of records.
        bound: in nats.
    """
    if not {proof.record for proof in proofs} >= set(channel.query.kinds):
        return False
    with localcontext() as context:
        context.prec = DIGITS
        rows = stochastic(channel.rows)
        return all(_kind_holds(channel, entropy, kind, bound, rows) for kind in proofs)


def _leaked(joint: Sequence[Decimal], rows: Rows) -> Decimal:
    """I(X_i; Y) where (X_i, T) has a law, given letter by letter."""
    width = len(rows)
    parts = [joint[at : at + width] for at in range(0, len(joint), width)]
    outputs = [mixed(part, rows) for part in parts]
    masses = [total(part) for part in parts]
    law = [total(column) for column in zip(*outputs, strict=True)]
    return total(
        output * (output / (mass * alone)).ln()
        for mass, laws in zip(masses, outputs, strict=True)
        for output, alone in zip(laws, law, strict=True)
        if output > 0
    )


def _kind_holds(channel: RecordChannel, entropy: float, kind: KindProof, bound: float, rows: Rows) -> bool:
    """Whether nothing can leak, or the bound near the uniform dataset or on each cell is no larger."""
    if not 0 <= kind.record < channel.query.records:
        return False
    if not np.array_equal(kind.log_counts, channel.log_counts(kind.record)):
        return False
    if len(rows) == 1 or len(kind.log_counts) == 1:
        return bound >= 0
    if kind.boxes is not None:
        return boxes_hold(kind.boxes, kind.log_counts, entropy, bound, rows)
    if kind.laws is not None:
        return laws_hold(kind.laws, kind.log_counts, bound, rows)
    if kind.regions:
        return _regions_hold(channel, entropy, kind, bound, rows)
    room = entropy_room(channel.query.alphabets, entropy)
    return near_uniform_bound(channel.rows, kind.log_counts, room) <= Decimal(bound) + LAST_DIGITS


def _regions_hold(channel: RecordChannel, entropy: float, kind: KindProof, bound: float, rows: Rows) -> bool:
    """Whether the regions are a tree whose leaves cover every law, each within the bound."""
    shape = len(kind.log_counts), channel.rows.shape[1]
    if not all(_well_formed(region, *shape) for region in kind.regions):
        return False
    children: dict[int, list[Region]] = {}
    for region in kind.regions:
        children.setdefault(region.parent, []).append(region)
    firsts = children.pop(-1, [])
    if len(firsts) != 1 or firsts[0] is not kind.regions[0]:
        return False
    if not covers_rows(firsts[0].cell, channel.rows, kind.log_counts):
        return False
    for place, region in enumerate(kind.regions):
        parts = children.get(place)
        if parts is None:
            if _bound(kind, entropy, region, rows) > Decimal(bound):
                return False
        elif not covers(region, parts):
            return False
    return True


def _well_formed(region: Region, letters: int, outputs: int) -> bool:
    """Whether a region has laws as vertices for every letter, and multipliers of the right shapes."""
    proof = region.proof
    arrays = [proof.log_law, proof.slopes]
    shapes: list[tuple[int, ...]] = [(outputs,), (letters, outputs)]
    if proof.log_letters is not None:
        arrays.append(proof.log_letters)
        shapes.append((letters,))
    return (
        len(region.cell) == letters
        and all(_are_laws(vertices, outputs) for vertices in region.cell)
        and [array.shape for array in arrays] == shapes
        and all(np.isfinite(array).all() for array in arrays)
        and math.isfinite(proof.price)
        and 0 <= proof.share <= 1
        and (proof.share == 1 or proof.log_letters is not None)
    )


def _are_laws(vertices: FloatArray, outputs: int) -> bool:
    """Whether each vertex is a law of Y: no negative entry, and a sum of one up to rounding."""
    return bool(
        vertices.ndim == 2
        and len(vertices) > 0
        and vertices.shape[1] == outputs
        and (vertices >= 0).all()
        and (np.abs(vertices.sum(axis=1) - 1) <= DISTANCE_TOLERANCE).all()
    )


def _bound(kind: KindProof, entropy: float, region: Region, rows: Rows) -> Decimal:
    """`leakage_bound` in decimals; the vertices stand for the laws that they are over their sums."""
    proof = region.proof
    law = normalised(proof.log_law)
    share, letters = Decimal(proof.share), [Decimal(0)] * len(region.cell)
    if proof.log_letters is not None:
        letters = normalised(proof.log_letters)
    exponents, counts = [], []
    for letter, vertices in enumerate(region.cell):
        slope = decimals(proof.slopes[letter])
        lift = max((phi(vertex) - dot(vertex, slope)) / total(vertex) for vertex in table_of(vertices))
        worth = [mu + lift - r for mu, r in zip(slope, law, strict=True)]
        for row, count in zip(rows, kind.log_counts[letter].tolist(), strict=True):
            if np.isfinite(count):
                exponents.append(share * dot(row, worth) - (1 - share) * letters[letter])
                counts.append(Decimal(count))
    peak, price = max(exponents), Decimal(proof.price)
    if price <= 0:
        return peak
    terms = (count + (g - peak) / price for g, count in zip(exponents, counts, strict=True))
    return peak + price * (log_sum(list(terms)) - Decimal(entropy))
