"""Local search over the margins of an envelope design: linear programs in the margins and the mechanism."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from pmlopt.arrays import FloatArray
from pmlopt.backends.outcome import Options
from pmlopt.programs.envelope_design.margin_programs import MarginPrograms, Point
from pmlopt.programs.envelope_design.margins import MarginRange

MAX_STEPS = 30
"""Linearised programs from one start; most end after five or six."""

FIRST_REACH = 0.25
"""How far margins may move at first, as a share of the largest one."""

LEAST_REACH = 1e-7
"""A search ends where margins may move by no more than this share."""

LEAST_GAIN = 1e-9
"""A step that gains less than this share of the range of the gains ends the search."""

LEAST_MARGIN = 1e-9
"""Margins up to this share of the largest are 0."""

UNIFORM_STARTS = (0.05, 0.25, 0.6, 0.9, 1.0)
"""Shares of the largest margins from which all letters start alike."""

ASCENTS = 3
"""From how many of the starts, the best ones, the margins are moved."""


@dataclass(frozen=True, eq=False)
class Ascent:
    """Where the search ended.

    Attributes:
        margins: (N,).
        point: the optimum with them.
    """

    margins: FloatArray
    point: Point


def ascend(programs: MarginPrograms, span: MarginRange, start: Ascent, options: Options) -> Ascent:
    """Move the margins to where no small step gains.

    With steps d of the margins, `P[x,y] <= (t - s[x]) q[y] + s[x] b[y] + d[x] (b'[y] - q'[y])` at the
    masses b' and the law q' in hand is linear in all; steps are kept short, and count where the program
    at the new margins gains.

    Args:
        programs: of the design.
        span: what the margins can be.
        start: margins and their optimum.
        options: limits of each program.
    """
    most = float(span.largest.max())
    reach, best = FIRST_REACH * most, start
    for _ in range(MAX_STEPS):
        if reach <= LEAST_REACH * most or programs.late:
            break
        s, point = best.margins, best.point
        bounds = np.maximum(-s, -reach), np.minimum(np.maximum(span.largest - s, 0.0), reach)
        worth = point.bad - span.pmf @ point.matrix
        moved = programs.solve(span.ratio - s, s, options, worth, bounds)
        if moved.gain <= point.gain + LEAST_GAIN * programs.scale:
            break
        new = at(programs, span, s + moved.step, options)
        if new.point.gain > point.gain:
            best, reach = new, 1.5 * reach
        else:
            reach /= 4
    return best


def at(programs: MarginPrograms, span: MarginRange, margins: FloatArray, options: Options) -> Ascent:
    """The optimum with given margins; they are cut to their range, and tiny ones are 0."""
    cut = np.clip(margins, 0.0, span.largest)
    cut = np.where(cut > LEAST_MARGIN * span.largest.max(), cut, 0.0)
    return Ascent(cut, programs.solve(span.ratio - cut, cut, options))


def starts(span: MarginRange) -> list[FloatArray]:
    """Margins to start from: none, which is PML(epsilon); all alike; and each letter's alone at the most.

    With margins of t - 1, that is with ratios of at most 1 but for the masses, designs are no worse than
    those under approximate PML at the level 0 with the slack of `measures.envelope_slack`.
    """
    none = np.zeros(len(span.largest))
    if not span.largest.any():
        return [none]
    alike = [share * span.largest for share in UNIFORM_STARTS]
    alike.append(np.minimum(span.largest, span.ratio - 1))
    alone = [np.where(np.arange(len(none)) == x, span.largest, 0.0) for x in np.flatnonzero(span.largest)]
    return [none, *alike, *alone]
