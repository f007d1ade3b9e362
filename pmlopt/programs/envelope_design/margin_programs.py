"""The linear programs of an envelope design: margins fixed, within a box, or moving around a point."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import highspy
import numpy as np

from pmlopt.core.arrays import FloatArray, rounding_of
from pmlopt.data.prior import Prior
from pmlopt.solvers.clock import FOREVER, Clock
from pmlopt.solvers.highs import columnwise, limits, loaded, state_of
from pmlopt.solvers.outcome import Options

ROUNDING = 1e-14
"""Caps, slopes and the largest margins are made larger by this share: more than rounding takes off them."""


@dataclass(frozen=True, eq=False)
class MarginRange:
    """What margins can be, for a prior, a level and a probability.

    Attributes:
        pmf: (N,) the prior.
        delta: the probability.
        ratio: t, at most 1 / min p, above which no mechanism has a likelihood ratio.
        rooms: (N,) `1/p[x] - t`, by how much a ratio may exceed t, at least 0.
        largest: (N,) the largest margins; 0 where a letter has no room, for then none is needed.
    """

    pmf: FloatArray
    delta: float
    ratio: float
    rooms: FloatArray
    largest: FloatArray

    @classmethod
    def of(cls, prior: Prior, epsilon: float, delta: float) -> MarginRange:
        """The range for a prior, epsilon in nats and delta in (0, 1)."""
        ratio = math.exp(min(epsilon, prior.max_leakage))
        rooms = 1 / prior.pmf - ratio
        rooms = np.where(rooms > 0, rooms + ROUNDING / prior.pmf, 0.0)
        most = math.expm1(min(epsilon, prior.max_leakage)) / (1 - delta) * (1 + ROUNDING)
        return cls(prior.pmf, delta, ratio, rooms, np.where(rooms > 0, most, 0.0))

    def relaxed(self, lower: FloatArray, upper: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Caps c and slopes a: `P[x,y] <= c[x] q[y] + a[x] b[y]` for all margins in a box.

        For a ratio r = P[x,y] / q[y] below t, `b / q >= 1 - (t - r) / s` grows with s, and above t it falls:
        between both, r being at most 1/p, it is above the line from (t - l, 0) to (1/p, 1 + (1/p - t) / u).

        Args:
            lower: (..., N) l.
            upper: (..., N) u.
        """
        whole = upper + self.rooms
        slopes = upper * (self.rooms + lower) / np.where(whole > 0, whole, 1.0)
        return self.ratio * (1 + ROUNDING) - lower, slopes * (1 + ROUNDING)


def gain_bound(
    span: MarginRange,
    gains: FloatArray,
    caps: FloatArray,
    slopes: FloatArray,
    rows: FloatArray,
    thresholds: FloatArray,
) -> FloatArray:
    """Upper bound on the expected gain of all mechanisms with `P <= c q + a b` and `sum b <= delta`.

    For any rho in R^N and theta in R^M, with `v[x,y] = max(0, g[x,y] - rho[x] - theta[y])`:

        <p, rho> + delta max_y sum_x p[x] a[x] v[x,y] + max_y (theta[y] + sum_x p[x] c[x] v[x,y]).

    Indeed `g <= rho + theta + v`, and `sum_x p[x] P[x,y] theta[y] = q[y] theta[y]`. Where a cap is
    negative, each b[y] is at least `r = max_x -c[x] / a[x]` times q[y]: what is left has the caps
    `c + r a`, and `delta - r` for delta; a box for which that is negative has no mechanism. What rounding
    may have taken off is added.

    Args:
        span: of the prior and delta.
        gains: (N, M) g.
        caps: (..., N) c, one line for each box.
        slopes: (..., N) a.
        rows: (..., N) rho.
        thresholds: (..., M) theta.

    Returns:
        (...) one bound for each box; -inf where there is no mechanism.
    """
    p = span.pmf
    needed = np.where(caps < 0, -caps / np.where(slopes > 0, slopes, 1.0), 0.0)
    least = needed.max(axis=-1) * (1 - 4 * ROUNDING)
    left = span.delta - least
    caps = caps + slopes * least[..., None] * (1 + ROUNDING)
    over = np.maximum(gains - rows[..., :, None] - thresholds[..., None, :], 0.0)
    bad = ((p * slopes)[..., None] * over).sum(axis=-2).max(axis=-1)
    good = ((p * caps)[..., None] * over).sum(axis=-2)
    size = np.abs(rows).max(axis=-1) + np.abs(thresholds).max(axis=-1) + np.abs(gains).max()
    weight = 2 + (p * (np.abs(caps) + slopes)).sum(axis=-1)
    bound = (p * rows).sum(axis=-1) + np.maximum(left, 0.0) * bad + (thresholds + good).max(axis=-1)
    bound = bound + rounding_of(len(p), 1.0) * weight * size
    return np.asarray(np.where(left < -ROUNDING, -np.inf, bound))


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


FIRST_SECONDS = 0.2
"""Seconds that the first program has at least: without it there is nothing in hand."""


class MarginPrograms:
    """`max E[g]` over mechanisms with `P[x,y] <= c[x] q[y] + a[x] b[y]`, `b >= 0` and `sum b <= delta`.

    HiGHS keeps the basis from one program to the next.

    Args:
        pmf: (N,) the prior.
        gains: (N, M).
        delta: the probability.
        clock: what is left of the time.
    """

    def __init__(self, pmf: FloatArray, gains: FloatArray, delta: float, clock: Clock = FOREVER) -> None:
        n, m = gains.shape
        self.gains, self.solved, self.clock = gains, 0, clock
        self.shape, self._pmf = (n, m), pmf
        letters, outputs = np.repeat(np.arange(n), m), np.tile(np.arange(m), n)
        entries, law, bad, steps = np.arange(n * m), n * m + outputs, (n + 1) * m + outputs, (n + 2) * m
        ratios, one = n + m + np.arange(n * m), np.ones(n * m)
        # columns: P, q, b, the steps of the margins; rows: row sums, law of the output, ratios, total of b
        self._letters, self._outputs = letters, outputs
        self._fixed = [
            (letters, entries, one),
            (n + outputs, entries, pmf[letters]),
            (n + np.arange(m), n * m + np.arange(m), -np.ones(m)),
            (ratios, entries, one),
            (np.full(m, n + m + n * m), (n + 1) * m + np.arange(m), np.ones(m)),
        ]
        self._moving = (ratios, law), (ratios, bad), (ratios, steps + letters)
        self.scale = float(np.abs(gains).max(initial=0.0)) or 1.0
        self._costs = np.concatenate([-(pmf[:, None] * gains / self.scale).ravel(), np.zeros(2 * m + n)])
        self._row_lower = np.concatenate([np.ones(n), np.zeros(m), np.full(n * m + 1, -np.inf)])
        self._row_upper = np.concatenate([np.ones(n), np.zeros(m), np.zeros(n * m), [delta]])
        self._upper = np.full((n + 2) * m, np.inf)
        self._basis: highspy.HighsBasis | None = None

    @property
    def late(self) -> bool:
        """Whether the time is over."""
        return self.clock.late

    def solve(
        self,
        caps: FloatArray,
        slopes: FloatArray,
        options: Options,
        worth: FloatArray | None = None,
        reach: tuple[FloatArray, FloatArray] | None = None,
        delta: float | None = None,
    ) -> Point:
        """The optimum for caps c and slopes a.

        Args:
            caps: (N,).
            slopes: (N,) at least 0.
            options: the tolerance.
            worth: (M,) what a unit of a step of any margin adds to the right side; left out, none moves.
            reach: (N,) the least and (N,) the largest step of each margin.
            delta: in place of that of the design.

        Raises:
            ArithmeticError: HiGHS does not end at an optimum, or the time is over.
        """
        from scipy import sparse

        n, m = self.shape
        letters, outputs = self._letters, self._outputs
        (law, bad, steps) = self._moving
        parts = [*self._fixed, (*law, -caps[letters]), (*bad, -slopes[letters])]
        low = high = np.zeros(n)
        if worth is not None and reach is not None:
            parts.append((*steps, -worth[outputs]))
            low, high = reach
        rows, columns, values = map(np.concatenate, zip(*parts, strict=True))
        size = (n + m + n * m + 1, len(self._costs))
        matrix = sparse.csc_array((values, (rows, columns)), shape=size)
        bounds = np.concatenate([np.zeros((n + 2) * m), low]), np.concatenate([self._upper, high])
        upper = self._row_upper.copy()
        upper[-1] = upper[-1] if delta is None else delta
        sides = self._row_lower, upper
        model = columnwise(self._costs, bounds, sides, (matrix.indptr, matrix.indices, matrix.data))
        clock = self.clock.at_least(1e-3 if self.solved else FIRST_SECONDS)
        solver = loaded(model, {"solver": "simplex", **limits(replace(options, clock=clock))})
        if self._basis is not None:
            solver.setBasis(self._basis)
        solver.run()
        status = solver.getModelStatus()
        self.solved += 1
        if status != highspy.HighsModelStatus.kOptimal or state_of(solver, status) != "point":
            raise ArithmeticError(f"HiGHS ended with {solver.modelStatusToString(status)}")
        self._basis = solver.getBasis()
        found = solver.getSolution()
        primal, duals = np.asarray(found.col_value), -self.scale * np.asarray(found.row_dual)
        return Point(
            gain=-self.scale * float(self._costs @ primal),
            matrix=np.maximum(primal[: n * m], 0.0).reshape(n, m),
            bad=np.maximum(primal[(n + 1) * m : (n + 2) * m], 0.0),
            step=primal[(n + 2) * m :],
            rows=duals[:n] / self._pmf,
            thresholds=duals[n : n + m],
            prices=np.maximum(duals[n + m : -1], 0.0).reshape(n, m),
        )


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
