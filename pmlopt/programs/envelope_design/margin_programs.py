"""The linear programs of an envelope design: margins fixed, within a box, or moving around a point."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from pmlopt.core.arrays import FloatArray
from pmlopt.core.loaded_later import sparse
from pmlopt.programs.envelope_design.margins import MarginRange
from pmlopt.solvers.highs import columnwise
from pmlopt.solvers.outcome import Options
from pmlopt.solvers.parametric_program import MovingModel


@dataclass(frozen=True, eq=False)
class Point:
    """The optimum of one program.

    Attributes:
        gain: the expected gain.
        matrix: (N, M) the mechanism.
        bad: (M,) the mass that each output may add to outcomes that leak more.
        step: (N,) by how much the margins moved.
        rows: (N,) the multipliers of the row sums over the prior.
        thresholds: (M,) those of the law of the output.
        prices: (N, M) those of the likelihood ratios, at least 0.
    """

    gain: float
    matrix: FloatArray
    bad: FloatArray
    step: FloatArray
    rows: FloatArray
    thresholds: FloatArray
    prices: FloatArray


@dataclass(frozen=True, eq=False)
class Ascent:
    """Margins (N,), and the optimum with them."""

    margins: FloatArray
    point: Point


FIRST_SECONDS = 0.2
"""Seconds that the first program has at least: without it there is nothing in hand."""

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


class MarginPrograms:
    """`max E[g]` over mechanisms with `P[x,y] <= c[x] q[y] + a[x] b[y]`, `b >= 0` and `sum b <= delta`.

    HiGHS keeps the basis from one program to the next.

    Args:
        span: of the prior and delta.
        gains: (N, M).
        options: the tolerance, and what is left of the time.
    """

    def __init__(self, span: MarginRange, gains: FloatArray, options: Options) -> None:
        n, m = gains.shape
        self.span, self.gains, self.options, self.solved = span, gains, options, 0
        letters, outputs = np.repeat(np.arange(n), m), np.tile(np.arange(m), n)
        entries, law, bad, steps = np.arange(n * m), n * m + outputs, (n + 1) * m + outputs, (n + 2) * m
        ratios, one = n + m + np.arange(n * m), np.ones(n * m)
        # columns: P, q, b, the steps of the margins; rows: row sums, law of the output, ratios, total of b
        self._letters, self._outputs = letters, outputs
        self._fixed = [
            (letters, entries, one),
            (n + outputs, entries, span.pmf[letters]),
            (n + np.arange(m), n * m + np.arange(m), -np.ones(m)),
            (ratios, entries, one),
            (np.full(m, n + m + n * m), (n + 1) * m + np.arange(m), np.ones(m)),
        ]
        self._moving = (ratios, law), (ratios, bad), (ratios, steps + letters)
        self.scale = float(np.abs(gains).max(initial=0.0)) or 1.0
        self._costs = np.concatenate([-(span.pmf[:, None] * gains / self.scale).ravel(), np.zeros(2 * m + n)])
        self._row_lower = np.concatenate([np.ones(n), np.zeros(m), np.full(n * m + 1, -np.inf)])
        self._model: MovingModel | None = None

    @property
    def late(self) -> bool:
        """Whether the time is over."""
        return self.options.clock.late

    def solve(
        self,
        caps: FloatArray,
        slopes: FloatArray,
        worth: FloatArray | None = None,
        reach: tuple[FloatArray, FloatArray] | None = None,
    ) -> Point:
        """The optimum for (N,) caps c and slopes a of at least 0.

        With a `reach`, the least and the largest step (N,) of each margin, a unit of a step adds (M,) `worth`
        to the right side.

        Raises:
            ArithmeticError: HiGHS does not end at an optimum, or the time is over.
        """
        n, m = self.gains.shape
        letters, outputs, (law, bad, steps) = self._letters, self._outputs, self._moving
        parts = [*self._fixed, (*law, -caps[letters]), (*bad, -slopes[letters])]
        low = high = np.zeros(n)
        if worth is not None and reach is not None:
            parts.append((*steps, -worth[outputs]))
            low, high = reach
        rows, columns, values = map(np.concatenate, zip(*parts, strict=True))
        matrix = sparse.csc_array((values, (rows, columns)), shape=(n + m + n * m + 1, len(self._costs)))
        entries = matrix.indptr, matrix.indices, matrix.data
        free = np.zeros((n + 2) * m)
        bounds = np.concatenate([free, low]), np.concatenate([free + np.inf, high])
        sides = self._row_lower, np.concatenate([np.ones(n), np.zeros(m + n * m), [self.span.delta]])
        model = columnwise(self._costs, bounds, sides, entries)
        if self._model is None:
            self._model = MovingModel(model)
        else:
            self._model.replace(model)
        found = self._model.solve(1.0, self.options.clock.at_least(1e-3 if self.solved else FIRST_SECONDS))
        self.solved += 1
        primal, duals = found.values, -self.scale * found.duals
        return Point(
            gain=-self.scale * float(self._costs @ primal),
            matrix=np.maximum(primal[: n * m], 0.0).reshape(n, m),
            bad=np.maximum(primal[(n + 1) * m : (n + 2) * m], 0.0),
            step=primal[(n + 2) * m :],
            rows=duals[:n] / self.span.pmf,
            thresholds=duals[n : n + m],
            prices=np.maximum(duals[n + m : -1], 0.0).reshape(n, m),
        )

    def at(self, margins: FloatArray) -> Ascent:
        """The optimum with given margins; they are cut to their range, and tiny ones are 0."""
        cut = np.clip(margins, 0.0, self.span.largest)
        cut = np.where(cut > LEAST_MARGIN * self.span.largest.max(), cut, 0.0)
        return Ascent(cut, self.solve(self.span.ratio - cut, cut))

    def ascend(self, start: Ascent) -> Ascent:
        """Move the margins to where no small step gains.

        With steps d of the margins, `P[x,y] <= (t - s[x]) q[y] + s[x] b[y] + d[x] (b'[y] - q'[y])` at the
        masses b' and the law q' in hand is linear in all; steps are kept short, and count where the program
        at the new margins gains.
        """
        most = float(self.span.largest.max())
        reach, best = FIRST_REACH * most, start
        for _ in range(MAX_STEPS):
            if reach <= LEAST_REACH * most or self.late:
                break
            s, point = best.margins, best.point
            bounds = np.maximum(-s, -reach), np.minimum(np.maximum(self.span.largest - s, 0.0), reach)
            moved = self.solve(self.span.ratio - s, s, point.bad - self.span.pmf @ point.matrix, bounds)
            if moved.gain <= point.gain + LEAST_GAIN * self.scale:
                break
            new = self.at(s + moved.step)
            if new.point.gain > point.gain:
                best, reach = new, 1.5 * reach
            else:
                reach /= 4
        return best


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
