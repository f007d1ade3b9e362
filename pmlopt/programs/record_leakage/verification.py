"""The claims on the leakage per record computed again in decimal arithmetic, from plain data."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from decimal import Decimal, getcontext, localcontext
from functools import lru_cache

import numpy as np

from pmlopt.core.arrays import FloatArray
from pmlopt.data.mechanism import Mechanism
from pmlopt.errors import InputError
from pmlopt.model.queries import RecordChannel, record_channel
from pmlopt.programs.exact.arithmetic import (
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
from pmlopt.programs.record_leakage.closed_bounds import class_choices, entropy_room, near_uniform_bound
from pmlopt.programs.record_leakage.output_cells import DISTANCE_TOLERANCE, covers, covers_rows
from pmlopt.programs.record_leakage.proof import WHOLE, KindProof, PosteriorTree, Region

Box = tuple[tuple[float, ...], tuple[float, ...]]
"""The lower and the upper ends of the intervals, as the floats that they are."""


def boxes_hold(tree: PosteriorTree, log_counts: FloatArray, entropy: float, bound: float, rows: Rows) -> bool:
    """Whether a tree of boxes covers the cube of posteriors, and the bound on each box is no larger.

    The intervals are those that the points of the splits say, compared as the floats that they are: that they
    cover the cube is exact. The bounds, see `BoxRelaxation`, are computed in the decimals of the context.

    Args:
        tree: the boxes.
        log_counts: (2, T) log c.
        entropy: b, in nats.
        bound: in nats.
        rows: (T, M) W, each of sum one.
    """
    if len(log_counts) != 2 or not _well_formed(tree, len(rows[0])):
        return False
    counts = [[Decimal(x) if np.isfinite(x) else None for x in part] for part in log_counts.tolist()]
    largest = Decimal(bound) - LAST_DIGITS
    leaves = _leaves(tree, len(rows[0]))
    return leaves is not None and all(
        _bound(tree, place, box, counts, entropy, rows) <= largest for place, box in leaves
    )


def laws_hold(laws: FloatArray, log_counts: FloatArray, bound: float, rows: Rows) -> bool:
    """Whether each choice of a class for each letter has a law of Y near all its rows.

    By joint convexity a record leaks at most the largest capacity of the channels that the choices make, and
    `C <= max_a D(W[t_a] || r)` for any law r.

    Args:
        laws: (R, M), taken over their sums.
        log_counts: (A, T) log c.
        bound: what the divergences must not exceed, in nats.
        rows: (T, M) W, each of sum one.
    """
    if laws.ndim != 2 or laws.shape[1] != len(rows[0]):
        return False
    if not (np.isfinite(laws).all() and (laws >= 0).all() and laws.any(axis=1).all()):
        return False
    choices = class_choices(log_counts)
    missing, largest = np.ones(len(choices), dtype=bool), Decimal(bound) - LAST_DIGITS
    own = [total(x * x.ln() for x in row if x) for row in rows]
    for law in laws:
        masses = decimals(law)
        whole = total(masses)
        logs = [(mass / whole).ln() if mass else None for mass in masses]
        away = [_divergence(row, less, logs) for row, less in zip(rows, own, strict=True)]
        near = [each <= largest for each in away]
        missing &= ~np.array(near)[choices].all(axis=1)
    return not missing.any()


def _divergence(row: list[Decimal], own: Decimal, logs: list[Decimal | None]) -> Decimal:
    """`D(W || r)` from `sum W log W` and log r."""
    crossed = Decimal(0)
    for x, log in zip(row, logs, strict=True):
        if x and log is None:
            return Decimal("Infinity")
        crossed += x * (log or 0)
    return own - crossed


def _well_formed(tree: PosteriorTree, outputs: int) -> bool:
    """Whether a tree has arrays of one length, finite, with positive prices and no negative multiplier."""
    count = len(tree.output)
    lines, tables = (tree.output, tree.point, tree.part, tree.price), (tree.lower, tree.upper)
    return (
        count > 0
        and all(array.shape == (count,) for array in lines)
        and all(array.shape == (count, outputs) for array in tables)
        and all(np.isfinite(array).all() for array in (*lines, *tables))
        and bool((tree.price[tree.output == WHOLE] > 0).all())
        and bool((tree.lower >= 0).all() and (tree.upper >= 0).all())
    )


def _leaves(tree: PosteriorTree, outputs: int) -> list[tuple[int, Box]] | None:
    """The boxes that are not split, which cover the cube; None where the tree is none."""
    found: list[tuple[int, Box]] = []
    waiting: list[tuple[int, Box]] = [(0, ((0.0,) * outputs, (1.0,) * outputs))]
    for _ in range(len(tree)):
        if not waiting:
            return None
        place, (low, high) = waiting.pop()
        output, point, part = int(tree.output[place]), float(tree.point[place]), int(tree.part[place])
        if output == WHOLE:
            found.append((place, (low, high)))
            continue
        known = 0 <= output < outputs and place < part < len(tree) - 1
        if not (known and low[output] <= point <= high[output]):
            return None
        waiting.append((part, (low, _put(high, output, point))))
        waiting.append((part + 1, (_put(low, output, point), high)))
    return None if waiting else found


def _put(ends: tuple[float, ...], place: int, end: float) -> tuple[float, ...]:
    return (*ends[:place], end, *ends[place + 1 :])


def _bound(
    tree: PosteriorTree,
    place: int,
    box: Box,
    counts: list[list[Decimal | None]],
    entropy: float,
    rows: Rows,
) -> Decimal:
    """The bound on a box: `(1 + s) log sum_a exp(s / (1 + s) L_a) - s b`, L_a the log-sum of c exp(g / s)."""
    price = Decimal(float(tree.price[place]))
    sums = []
    for worth, part in zip(_worths(tree, place, box), counts, strict=True):
        terms = [
            count + dot(row, worth) / price
            for row, count in zip(rows, part, strict=True)
            if count is not None
        ]
        sums.append(price / (1 + price) * log_sum(terms))
    return (1 + price) * log_sum(sums) - price * Decimal(entropy)


def _worths(tree: PosteriorTree, place: int, box: Box) -> Iterator[list[Decimal]]:
    """For each letter what a unit of each output's mass adds to the gain g."""
    lower, upper = decimals(tree.lower[place]), decimals(tree.upper[place])
    lows, highs = map(decimals, box)
    chords = [_chord(low, high) for low, high in zip(*box, strict=True)]
    yield [
        chord[0] + below * (1 - low) - above * (1 - high)
        for chord, below, above, low, high in zip(chords, lower, upper, lows, highs, strict=True)
    ]
    yield [
        chord[1] - below * low + above * high
        for chord, below, above, low, high in zip(chords, lower, upper, lows, highs, strict=True)
    ]


def _chord(low: float, high: float) -> tuple[Decimal, Decimal]:
    """The chord of -h over an interval, continued to 1 and to 0; the value itself where the ends meet."""
    at_low, at_high = _negative_entropy(low), _negative_entropy(high)
    start, end = Decimal(low), Decimal(high)
    slope = (at_high - at_low) / (end - start) if end > start else Decimal(0)
    beta = at_low - slope * start
    return beta + slope, beta


def _negative_entropy(share: float) -> Decimal:
    """`p log p + (1 - p) log(1 - p)` of a float; boxes share their ends, and each is computed once."""
    return _negative_entropy_in(share, getcontext().prec)


@lru_cache(maxsize=100_000)
def _negative_entropy_in(share: float, digits: int) -> Decimal:
    with localcontext() as context:
        context.prec = digits
        p = Decimal(share)
        return total(x * x.ln() for x in (p, 1 - p) if x)


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
    log_counts = channel.log_counts(kind.record)
    if len(rows) == 1 or len(log_counts) == 1:
        return bound >= 0
    if kind.boxes is not None:
        return boxes_hold(kind.boxes, log_counts, entropy, bound, rows)
    if kind.laws is not None:
        return laws_hold(kind.laws, log_counts, bound, rows)
    if kind.regions:
        return _regions_hold(channel, entropy, kind, bound, rows)
    room = entropy_room(channel.query.alphabets, entropy)
    return near_uniform_bound(channel.rows, log_counts, room) <= Decimal(bound) + LAST_DIGITS


def _regions_hold(channel: RecordChannel, entropy: float, kind: KindProof, bound: float, rows: Rows) -> bool:
    """Whether the regions are a tree whose leaves cover every law, each within the bound."""
    log_counts = channel.log_counts(kind.record)
    shape = len(log_counts), channel.rows.shape[1]
    if not all(_well_formed_verification(region, *shape) for region in kind.regions):
        return False
    children: dict[int, list[Region]] = {}
    for region in kind.regions:
        children.setdefault(region.parent, []).append(region)
    firsts = children.pop(-1, [])
    if len(firsts) != 1 or firsts[0] is not kind.regions[0]:
        return False
    if not covers_rows(firsts[0].cell, channel.rows, log_counts):
        return False
    for place, region in enumerate(kind.regions):
        parts = children.get(place)
        if parts is None:
            if _bound_verification(log_counts, entropy, region, rows) > Decimal(bound):
                return False
        elif not covers(region, parts):
            return False
    return True


def _well_formed_verification(region: Region, letters: int, outputs: int) -> bool:
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


def _bound_verification(log_counts: FloatArray, entropy: float, region: Region, rows: Rows) -> Decimal:
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
        for row, count in zip(rows, log_counts[letter].tolist(), strict=True):
            if np.isfinite(count):
                exponents.append(share * dot(row, worth) - (1 - share) * letters[letter])
                counts.append(Decimal(count))
    peak, price = max(exponents), Decimal(proof.price)
    if price <= 0:
        return peak
    terms = (count + (g - peak) / price for g, count in zip(exponents, counts, strict=True))
    return peak + price * (log_sum(list(terms)) - Decimal(entropy))
