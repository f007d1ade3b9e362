"""Branch and bound over the margins of an envelope design."""

from __future__ import annotations

import heapq
from dataclasses import dataclass, field
from itertools import count

import numpy as np

from pmlopt.core.arrays import FloatArray
from pmlopt.core.programming_errors import raise_if_strict
from pmlopt.programs.envelope_design.margin_programs import (
    LEAST_GAIN,
    Ascent,
    BoxProof,
    MarginPrograms,
    Point,
    gain_bound,
    starts,
    trivial_proof,
)

MOST_ENTRIES = 40_000
"""Entries of the matrices of all boxes together, which limits the boxes of larger designs."""


LEAST_WIDTH = 1e-7
"""A box is not cut for what it promises where it is no wider than this share of the largest margin."""


@dataclass(eq=False)
class Box:
    """A box of margins with a `bound` on the gain with margins in it, by its `rows` and `thresholds`.

    `scores` (N,) says what cutting across each letter promises, and `likely` (N,) the margins with which the
    optimum of the relaxation is nearest to a design; cut across `letter` at `cut`, it has two `parts`.
    """

    lower: FloatArray
    upper: FloatArray
    bound: float
    rows: FloatArray
    thresholds: FloatArray
    scores: FloatArray
    likely: FloatArray
    letter: int = -1
    cut: float = 0.0
    parts: tuple[Box, ...] = field(default=())


def search_margins(programs: MarginPrograms, allowed: float) -> tuple[Ascent, BoxProof, bool, str]:
    """Search the best margins, and boxes that prove how much better others may be.

    It may end at a gap of `allowed`, in the unit of the gains. It returns the margins with their optimum, the
    proof, whether no time limit ended it, and its ending.

    Raises:
        ArithmeticError: not even the design within PML(epsilon) could be solved.
    """
    widest = programs.span.largest
    best = _from_starts(programs)
    try:
        root = _box(programs, np.zeros(len(widest)), widest, None)
    except ArithmeticError as cause:
        raise_if_strict(cause)
        return best, trivial_proof(programs.gains), not programs.late, str(cause)
    # small designs have at most 1000 boxes
    # large designs have at least 20 boxes
    limit = int(np.clip(MOST_ENTRIES // programs.gains.size, 20, 1000))
    order, boxes = count(), 1
    heap, ending, finished = [(-root.bound, next(order), root)], "", True
    while heap and -heap[0][0] > best.point.gain + allowed:
        if not (heap[0][2].upper - heap[0][2].lower).max() > LEAST_WIDTH * widest.max():
            ending = "margins are as narrow as it takes"
            break
        if programs.late:
            finished, ending = False, "the time is over"
            break
        if boxes + 2 > limit:
            ending = "as many boxes as it may take"
            break
        box = heapq.heappop(heap)[2]
        try:
            best = _divide(programs, box, best)
        except ArithmeticError as cause:
            raise_if_strict(cause)
            heapq.heappush(heap, (-box.bound, next(order), box))
            finished, ending = not programs.late, str(cause)
            break
        boxes += 2
        for part in box.parts:
            heapq.heappush(heap, (-part.bound, next(order), part))
    detail = f"{boxes} {'box' if boxes == 1 else 'boxes'} of margins"
    return best, _proof(root), finished, f"{detail}, {ending}" if ending else detail


def _from_starts(programs: MarginPrograms) -> Ascent:
    """Solve from several starts, and return the best; the first of them must succeed."""
    first, *others = starts(programs.span)
    found = [programs.at(first)]
    for margins in others:
        if programs.late:
            break
        try:
            found.append(programs.at(margins))
        except ArithmeticError as cause:
            raise_if_strict(cause)
    found.sort(key=lambda end: -end.point.gain)
    best = found[0]
    # margins are moved from the three best starts only
    for start in found[:3]:
        best = _better(programs, start, best)
    return best


def _better(programs: MarginPrograms, start: Ascent, best: Ascent) -> Ascent:
    """Return the end of the ascent from a start, where that is better than the best one so far."""
    try:
        end = programs.ascend(start)
    except ArithmeticError as cause:
        raise_if_strict(cause)
        end = start
    return end if end.point.gain > best.point.gain else best


def _divide(programs: MarginPrograms, box: Box, best: Ascent) -> Ascent:
    """Cut a box in two, look for better margins in both, and return the best."""
    widths = box.upper - box.lower
    promising = box.scores * (widths > LEAST_WIDTH * programs.span.largest.max())
    clear = promising.max() > LEAST_GAIN * programs.scale
    letter = int((promising if clear else widths).argmax())
    middle = float((box.lower[letter] + box.upper[letter]) / 2)
    up, down = box.upper.copy(), box.lower.copy()
    up[letter] = down[letter] = middle
    parts = []
    for lower, upper in ((box.lower, up), (down, box.upper)):
        part = _box(programs, lower, upper, box)
        parts.append(part)
        if part.bound > best.point.gain:
            inside = programs.at(part.likely)
            if inside.point.gain > best.point.gain:
                best = _better(programs, inside, inside)
    box.letter, box.cut, box.parts = letter, middle, tuple(parts)
    return best


def _box(programs: MarginPrograms, lower: FloatArray, upper: FloatArray, parent: Box | None) -> Box:
    """Make a box with its bound, by the multipliers of its relaxation or of the box that it is a part of."""
    caps, slopes = programs.span.relaxed(lower, upper)
    known, scores, likely = [], upper - lower, (lower + upper) / 2
    if parent is not None:
        known.append((parent.rows, parent.thresholds))
        bound = float(gain_bound(programs.span, programs.gains, caps, slopes, *known[0]))
        if bound == -np.inf:  # no mechanism has such margins
            return Box(lower, upper, bound, *known[0], scores, likely)
    try:
        point = programs.solve(caps, slopes)
    except ArithmeticError as cause:
        raise_if_strict(cause)
        if programs.late or not known:
            raise
    else:
        known.append((point.rows, point.thresholds))
        scores, likely = _scores(programs, point, (lower, upper))
    bounds = [float(gain_bound(programs.span, programs.gains, caps, slopes, *proof)) for proof in known]
    best = int(np.argmin(bounds))
    return Box(lower, upper, bounds[best], *known[best], scores, likely)


def _scores(
    programs: MarginPrograms, point: Point, box: tuple[FloatArray, FloatArray]
) -> tuple[FloatArray, FloatArray]:
    """Compute (N,) the promise of cutting a box across each letter, and (N,) the likeliest margins.

    The optimum of a relaxation may violate `P <= (t - s) q + s b` at every margin s of the box.
    Violations count at their multipliers and a little more, for a constraint may be without a price only
    because it is relaxed; of both ends and the middle the margin that costs least is the likeliest.
    """
    (lower, upper), span = box, programs.span
    # a violation costs a tenth of the largest gain in addition to its multiplier
    law, weights = span.pmf @ point.matrix, point.prices + 0.1 * programs.scale * span.pmf[:, None]
    places = np.column_stack([lower, upper, (lower + upper) / 2])
    beyond = point.matrix - span.ratio * law
    good = law - point.bad
    tried = [(weights * np.maximum(0.0, beyond + s * good)).sum(axis=1) for s in places.T[..., None]]
    best, letters = np.argmin(tried, axis=0), np.arange(len(lower))
    return np.asarray(tried)[best, letters], places[letters, best]


def _proof(root: Box) -> BoxProof:
    """Collect the tree of boxes with the multipliers of those that were not cut."""
    letters, cuts, rows, thresholds, ahead = [], [], [], [], [root]
    while ahead:
        box = ahead.pop()
        letters.append(box.letter)
        cuts.append(box.cut)
        if box.parts:
            ahead += box.parts[::-1]
        else:
            rows.append(box.rows)
            thresholds.append(box.thresholds)
    return BoxProof(np.array(letters), np.array(cuts), np.array(rows), np.array(thresholds))
