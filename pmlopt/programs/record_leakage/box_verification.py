"""Bounds on a binary record's leakage from boxes of posteriors, and from laws of Y, in decimal arithmetic."""

from __future__ import annotations

from collections.abc import Iterator
from decimal import Decimal, getcontext, localcontext
from functools import lru_cache

import numpy as np

from pmlopt.arrays import FloatArray
from pmlopt.exact.decimals import LAST_DIGITS, Rows, decimals, dot, log_sum, total
from pmlopt.programs.record_leakage.one_class_each import class_choices
from pmlopt.programs.record_leakage.posterior_boxes import WHOLE, PosteriorTree

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
