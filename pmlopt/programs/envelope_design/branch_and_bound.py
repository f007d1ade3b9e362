"""Branch and bound over the margins of an envelope design."""

from __future__ import annotations

import heapq
from dataclasses import dataclass, field
from itertools import count

import numpy as np

from pmlopt.core.numbers.arrays import FloatArray
from pmlopt.core.programming_errors import raise_if_strict
from pmlopt.programs.envelope_design.margin_programs import (
    MIN_GAIN_FRACTION,
    BoxProof,
    MarginAscent,
    MarginPrograms,
    MarginSolution,
    bound_gain,
    build_trivial_proof,
    list_start_margins,
)

MAX_BOX_ENTRIES = 40_000
"""Entries of the matrices of all boxes together, which limits the boxes of larger designs."""


MIN_BOX_WIDTH_FRACTION = 1e-7
"""A box is not cut for what it promises where it is no wider than this share of the largest margin."""


@dataclass(eq=False)
class MarginBox:
    """A node of the branch and bound: lower and upper margins, with a bound on the gain inside.

    `scores` (N,) states what cutting across each letter promises, and `likely_margins` (N,) the margins with
    which the optimum of the relaxation is nearest to a design; cut across `letter` at `cut`, it has two
    `parts`.
    """

    lower: FloatArray
    upper: FloatArray
    bound: float
    rows: FloatArray
    thresholds: FloatArray
    scores: FloatArray
    likely_margins: FloatArray
    letter: int = -1
    cut: float = 0.0
    parts: tuple[MarginBox, ...] = field(default=())


def search_margins(
    programs: MarginPrograms, allowed: float
) -> tuple[MarginAscent, BoxProof, bool, str]:
    """Run branch and bound over the margins; return the best margins and the boxes that prove the bound.

    It may end at a gap of `allowed`, in the unit of the gains. It returns the margins with their optimum, the
    proof, whether no time limit ended it, and its ending.

    Raises:
        ArithmeticError: not even the design within PML(epsilon) could be solved.
    """
    widest = programs.span.max_margins
    best = _solve_from_starts(programs)
    try:
        root = _make_box(programs, np.zeros(len(widest)), widest, None)
    except ArithmeticError as cause:
        raise_if_strict(cause)
        return best, build_trivial_proof(programs.gains), not programs.expired, str(cause)
    # small designs have at most 1000 boxes
    # large designs have at least 20 boxes
    limit = int(np.clip(MAX_BOX_ENTRIES // programs.gains.size, 20, 1000))
    order = count()
    boxes = 1
    heap = [(-root.bound, next(order), root)]
    ending = ""
    finished = True
    # best first: the largest bound of an open box is the bound of the whole search
    while heap and -heap[0][0] > best.solution.gain + allowed:
        # a box as narrow as this is a point but for rounding
        if not (heap[0][2].upper - heap[0][2].lower).max() > MIN_BOX_WIDTH_FRACTION * widest.max():
            ending = "margins are as narrow as it takes"
            break
        if programs.expired:
            finished, ending = False, "the time is over"
            break
        if boxes + 2 > limit:
            ending = "as many boxes as it may take"
            break
        box = heapq.heappop(heap)[2]
        try:
            best = _divide_box(programs, box, best)
        except ArithmeticError as cause:
            raise_if_strict(cause)
            # the box is still open: its own bound stays valid
            heapq.heappush(heap, (-box.bound, next(order), box))
            finished = not programs.expired
            ending = str(cause)
            break
        boxes += 2
        for part in box.parts:
            heapq.heappush(heap, (-part.bound, next(order), part))
    detail = f"{boxes} {'box' if boxes == 1 else 'boxes'} of margins"
    return best, _collect_proof(root), finished, f"{detail}, {ending}" if ending else detail


def _solve_from_starts(programs: MarginPrograms) -> MarginAscent:
    """Run the local ascent from several starting margins, and return the best result."""
    first, *others = list_start_margins(programs.span)
    found = [programs.solve_at(first)]
    for margins in others:
        if programs.expired:
            break
        try:
            found.append(programs.solve_at(margins))
        except ArithmeticError as cause:
            raise_if_strict(cause)
    found.sort(key=lambda end: -end.solution.gain)
    best = found[0]
    # margins are moved from the three best starts only
    for start in found[:3]:
        best = _improve_from_start(programs, start, best)
    return best


def _improve_from_start(
    programs: MarginPrograms, start: MarginAscent, best: MarginAscent
) -> MarginAscent:
    """Run the local ascent from a start, and return the result if it is better than the best so far."""
    try:
        end = programs.ascend_margins(start)
    except ArithmeticError as cause:
        raise_if_strict(cause)
        end = start
    return end if end.solution.gain > best.solution.gain else best


def _divide_box(programs: MarginPrograms, box: MarginBox, best: MarginAscent) -> MarginAscent:
    """Split a box in two, bound both halves, run a local ascent in them, and return the best solution."""
    widths = box.upper - box.lower
    # where no violation is left to cut, the widest side is
    promising = box.scores * (widths > MIN_BOX_WIDTH_FRACTION * programs.span.max_margins.max())
    clear = promising.max() > MIN_GAIN_FRACTION * programs.scale
    letter = int((promising if clear else widths).argmax())
    # halving: after enough cuts every margin is as narrow as wanted
    middle = float((box.lower[letter] + box.upper[letter]) / 2)
    up = box.upper.copy()
    down = box.lower.copy()
    up[letter] = down[letter] = middle
    parts = []
    for lower, upper in ((box.lower, up), (down, box.upper)):
        part = _make_box(programs, lower, upper, box)
        parts.append(part)
        # a box below the best gain cannot improve it: no program for its inside
        if part.bound > best.solution.gain:
            inside = programs.solve_at(part.likely_margins)
            if inside.solution.gain > best.solution.gain:
                best = _improve_from_start(programs, inside, inside)
    box.letter = letter
    box.cut = middle
    box.parts = tuple(parts)
    return best


def _make_box(
    programs: MarginPrograms, lower: FloatArray, upper: FloatArray, parent: MarginBox | None
) -> MarginBox:
    """Build a box and its bound from the dual multipliers of its relaxation or of its parent's."""
    caps, slopes = programs.span.relax_box(lower, upper)
    known = []
    scores = upper - lower
    likely = (lower + upper) / 2
    if parent is not None:
        known.append((parent.rows, parent.thresholds))
        # the parent's multipliers are valid for any part (weak duality), if not the sharpest
        bound = float(bound_gain(programs.span, programs.gains, caps, slopes, *known[0]))
        if bound == -np.inf:  # no mechanism has such margins
            return MarginBox(lower, upper, bound, *known[0], scores, likely)
    try:
        point = programs.solve_program(caps, slopes)
    except ArithmeticError as cause:
        raise_if_strict(cause)
        if programs.expired or not known:
            raise
    else:
        known.append((point.rows, point.thresholds))
        scores, likely = _compute_scores(programs, point, (lower, upper))
    bounds = [
        float(bound_gain(programs.span, programs.gains, caps, slopes, *proof)) for proof in known
    ]
    # both proofs are valid: the lower bound counts
    best = int(np.argmin(bounds))
    return MarginBox(lower, upper, bounds[best], *known[best], scores, likely)


def _compute_scores(
    programs: MarginPrograms, point: MarginSolution, box: tuple[FloatArray, FloatArray]
) -> tuple[FloatArray, FloatArray]:
    """Score each letter as branching variable, and predict the best margins in the box.

    The optimum of a relaxation may violate `P <= (t - s) q + s b` at every margin s of the box.
    Violations count at their multipliers and a little more, for a constraint may be without a price only
    because it is relaxed; of both ends and the middle the margin that costs least is the likeliest.
    """
    (lower, upper), span = box, programs.span
    # a violation costs a tenth of the largest gain in addition to its multiplier
    law = span.pmf @ point.matrix
    weights = point.prices + 0.1 * programs.scale * span.pmf[:, None]
    places = np.column_stack([lower, upper, (lower + upper) / 2])
    beyond = point.matrix - span.ratio * law
    good = law - point.bad
    # (3, N): what each of both ends and the middle would cost in violations
    tried = [
        (weights * np.maximum(0.0, beyond + s * good)).sum(axis=1) for s in places.T[..., None]
    ]
    best = np.argmin(tried, axis=0)
    letters = np.arange(len(lower))
    return np.asarray(tried)[best, letters], places[letters, best]


def _collect_proof(root: MarginBox) -> BoxProof:
    """Collect the branch-and-bound tree with the multipliers of its leaves as a proof."""
    letters = []
    cuts = []
    rows = []
    thresholds = []
    ahead = [root]
    while ahead:
        box = ahead.pop()
        letters.append(box.letter)
        cuts.append(box.cut)
        # a stack: reversed, so that the lower part comes first, as in the order of `BoxProof`
        if box.parts:
            ahead += box.parts[::-1]
        else:
            rows.append(box.rows)
            thresholds.append(box.thresholds)
    return BoxProof(np.array(letters), np.array(cuts), np.array(rows), np.array(thresholds))
