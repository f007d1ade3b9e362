"""The linear programs of an envelope design: with fixed margins, within a box, or local around a point."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Annotated

import numpy as np

from pmlopt.core.lazy_imports import sparse
from pmlopt.core.numbers.arrays import FloatArray, IntArray, bound_sum_rounding
from pmlopt.core.records.fields import Shape
from pmlopt.data.prior import Prior
from pmlopt.solvers.highs import build_columnwise_model
from pmlopt.solvers.parametric_program import ParametricModel
from pmlopt.solvers.solver_result import MethodOptions

MARGIN_RTOL = 1e-14
"""Caps, slopes and the largest margins are made larger by this share: more than rounding takes off them."""


@dataclass(frozen=True, eq=False)
class MarginRange:
    """The feasible range of the letters' margins for a prior, epsilon and delta.

    Attributes:
        pmf: (N,) the prior.
        delta: the probability.
        ratio: t, at most 1 / min p, above which no mechanism has a likelihood ratio.
        excess_ratios: (N,) `1/p[x] - t`, by how much a ratio may exceed t, at least 0.
        max_margins: (N,) the largest margins; 0 where a letter has no room, for then none is needed.
    """

    pmf: FloatArray
    delta: float
    ratio: float
    excess_ratios: FloatArray
    max_margins: FloatArray

    @classmethod
    def from_prior(cls, prior: Prior, epsilon: float, delta: float) -> MarginRange:
        """Compute the range of margins from a prior, epsilon in nats and delta in (0, 1)."""
        # above the largest leakage of the prior no likelihood ratio exists: exp cannot overflow
        ratio = math.exp(min(epsilon, prior.max_leakage))
        rooms = 1 / prior.pmf - ratio
        # outward: a room too small would cut off mechanisms that are allowed
        rooms = np.where(rooms > 0, rooms + MARGIN_RTOL / prior.pmf, 0.0)
        max_margin = math.expm1(min(epsilon, prior.max_leakage)) / (1 - delta) * (1 + MARGIN_RTOL)
        return cls(prior.pmf, delta, ratio, rooms, np.where(rooms > 0, max_margin, 0.0))

    def relax_box(self, lower: FloatArray, upper: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Compute coefficients of the relaxation `P[x,y] <= c[x] q[y] + a[x] b[y]` over a box of margins.

        For a ratio r = P[x,y] / q[y] below t, `b / q >= 1 - (t - r) / s` grows with s, and above t it falls:
        between both, r being at most 1/p, it is above the line from (t - l, 0) to (1/p, 1 + (1/p - t) / u).
        """
        # no room and no margin: the slope is 0 over 1
        whole = upper + self.excess_ratios
        slopes = upper * (self.excess_ratios + lower) / np.where(whole > 0, whole, 1.0)
        return self.ratio * (1 + MARGIN_RTOL) - lower, slopes * (1 + MARGIN_RTOL)


def bound_gain(
    span: MarginRange,
    gains: FloatArray,
    caps: FloatArray,
    slopes: FloatArray,
    rows: FloatArray,
    thresholds: FloatArray,
) -> FloatArray:
    """Compute dual bounds on the expected gain of mechanisms with `P <= c q + a b` and `sum b <= delta`.

    For any rho in R^N and theta in R^M, with `v[x,y] = max(0, g[x,y] - rho[x] - theta[y])`:

        <p, rho> + delta max_y sum_x p[x] a[x] v[x,y] + max_y (theta[y] + sum_x p[x] c[x] v[x,y]).

    Indeed `g <= rho + theta + v`, and `sum_x p[x] P[x,y] theta[y] = q[y] theta[y]`. Where a cap is
    negative, each b[y] is at least `r = max_x -c[x] / a[x]` times q[y]: the remainder has the caps
    `c + r a`, and `delta - r` for delta; where that is negative there is no mechanism, and the bound is -inf.
    What rounding may have taken off is added.

    There is one line of caps, slopes, rows rho and thresholds theta for each box.
    """
    p = span.pmf
    # a negative cap forces mass: c q + a b >= 0 requires b >= -c q / a
    needed = np.where(caps < 0, -caps / np.where(slopes > 0, slopes, 1.0), 0.0)
    # rounded down: forcing too much would make the bound too small
    least = needed.max(axis=-1) * (1 - 4 * MARGIN_RTOL)
    left = span.delta - least
    caps = caps + slopes * least[..., None] * (1 + MARGIN_RTOL)
    # (..., N, M): the least v that makes (rho, theta, v) dual feasible
    over = np.maximum(gains - rows[..., :, None] - thresholds[..., None, :], 0.0)
    bad = ((p * slopes)[..., None] * over).sum(axis=-2).max(axis=-1)
    good = ((p * caps)[..., None] * over).sum(axis=-2)
    size = np.abs(rows).max(axis=-1) + np.abs(thresholds).max(axis=-1) + np.abs(gains).max()
    weight = 2 + (p * (np.abs(caps) + slopes)).sum(axis=-1)
    bound = (p * rows).sum(axis=-1) + np.maximum(left, 0.0) * bad + (thresholds + good).max(axis=-1)
    # weak duality holds for any numbers; only rounding has to be added
    bound = bound + bound_sum_rounding(len(p), 1.0) * weight * size
    return np.where(left < -MARGIN_RTOL, -np.inf, bound)


@dataclass(frozen=True, eq=False)
class BoxProof:
    """A branch-and-bound proof: boxes that cover all margins, each with dual multipliers.

    The box of all margins is cut in two again and again. The nodes of the tree are listed from the root
    on, each before those below it, the lower part first.

    Attributes:
        letters: (T,) across which letter a node is cut, or -1 where it is not.
        cuts: (T,) at which margin; 0 where it is not.
        rows: (K, N) the multipliers rho of `bound_gain` for the boxes that are not cut, in order.
        thresholds: (K, M) theta.
    """

    letters: Annotated[IntArray, Shape("T")]
    cuts: Annotated[FloatArray, Shape("T")]
    rows: Annotated[FloatArray, Shape("K", "N")]
    thresholds: Annotated[FloatArray, Shape("K", "M")]

    def compute_bound(self, margins: MarginRange, gains: FloatArray) -> float:
        """Compute the largest dual bound over the boxes; infinite where the proof is invalid."""
        boxes = self._rebuild_boxes(margins.max_margins)
        n, m = gains.shape
        numbers = np.isfinite(self.rows).all() and np.isfinite(self.thresholds).all()
        # no tree or nan: nothing is proved, which is a bound of infinity
        if boxes is None or not numbers:
            return math.inf
        count = len(boxes[0])
        if (self.rows.shape, self.thresholds.shape) != ((count, n), (count, m)):
            return math.inf
        caps, slopes = margins.relax_box(*boxes)
        return float(bound_gain(margins, gains, caps, slopes, self.rows, self.thresholds).max())

    def _rebuild_boxes(self, largest: FloatArray) -> tuple[FloatArray, FloatArray] | None:
        """Rebuild the (K, N) lower and upper corners of the leaf boxes; None for an invalid tree."""
        if self.letters.shape != self.cuts.shape:
            return None
        ahead = [(np.zeros(len(largest)), largest)]
        leaves = []
        for letter, cut in zip(self.letters.tolist(), self.cuts.tolist(), strict=True):
            if not ahead:
                return None
            lower, upper = ahead.pop()
            if letter < 0:
                leaves.append((lower, upper))
                continue
            if letter >= len(largest) or not lower[letter] < cut < upper[letter]:
                return None
            # the cut has to be inside, or the two parts would not cover the box
            middle_up = upper.copy()
            middle_down = lower.copy()
            middle_up[letter] = middle_down[letter] = cut
            ahead += [(middle_down, upper), (lower, middle_up)]
        if ahead or not leaves:
            return None
        return np.array([low for low, _ in leaves]), np.array([high for _, high in leaves])


def build_trivial_proof(gains: FloatArray) -> BoxProof:
    """Build the trivial proof: no mechanism gains more than each letter's largest gain."""
    n, m = gains.shape
    return BoxProof(np.array([-1]), np.zeros(1), gains.max(axis=1).reshape(1, n), np.zeros((1, m)))


@dataclass(frozen=True, eq=False)
class MarginSolution:
    """The optimal solution of the linear program for fixed margins.

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
class MarginAscent:
    """The (N,) margins reached by the local ascent, with their optimal solution."""

    margins: FloatArray
    solution: MarginSolution


MIN_GAIN_FRACTION = 1e-9
"""A step that gains less than this share of the range of the gains ends the search."""


UNIFORM_START_FRACTIONS = (0.05, 0.25, 0.6, 0.9, 1.0)
"""Shares of the largest margins from which all letters start alike."""


class MarginPrograms:
    """The linear programs `max E[g]` over `P[x,y] <= c[x] q[y] + a[x] b[y]`, `b >= 0` and `sum b <= delta`.

    HiGHS keeps the basis from one program to the next.

    Args:
        span: of the prior and delta.
        gains: (N, M).
        options: the tolerance and the deadline.
    """

    def __init__(self, span: MarginRange, gains: FloatArray, options: MethodOptions) -> None:
        n, m = gains.shape
        self.span = span
        self.gains = gains
        self.options = options
        self.solved = 0
        letters = np.repeat(np.arange(n), m)
        outputs = np.tile(np.arange(m), n)
        entries = np.arange(n * m)
        law = n * m + outputs
        bad = (n + 1) * m + outputs
        steps = (n + 2) * m
        ratios = n + m + np.arange(n * m)
        one = np.ones(n * m)
        # columns: P, q, b, the steps of the margins; rows: row sums, law of the output, ratios, total of b
        self._letters = letters
        self._outputs = outputs
        self._fixed = [
            (letters, entries, one),
            (n + outputs, entries, span.pmf[letters]),
            (n + np.arange(m), n * m + np.arange(m), -np.ones(m)),
            (ratios, entries, one),
            (np.full(m, n + m + n * m), (n + 1) * m + np.arange(m), np.ones(m)),
        ]
        self._moving = (ratios, law), (ratios, bad), (ratios, steps + letters)
        self.scale = float(np.abs(gains).max(initial=0.0)) or 1.0
        self._costs = np.concatenate(
            [-(span.pmf[:, None] * gains / self.scale).ravel(), np.zeros(2 * m + n)]
        )
        self._row_lower = np.concatenate([np.ones(n), np.zeros(m), np.full(n * m + 1, -np.inf)])
        self._model: ParametricModel | None = None

    @property
    def expired(self) -> bool:
        """Return whether the time limit is reached."""
        return self.options.deadline.expired

    def solve_program(
        self,
        caps: FloatArray,
        slopes: FloatArray,
        step_gains: FloatArray | None = None,
        step_range: tuple[FloatArray, FloatArray] | None = None,
    ) -> MarginSolution:
        """Solve the linear program for (N,) caps c and nonnegative slopes a.

        With a `step_range`, the least and the largest step (N,) of each margin, a unit of a step adds (M,)
        `step_gains` to the right side.

        Raises:
            ArithmeticError: HiGHS does not end at an optimum, or the time is over.
        """
        n, m = self.gains.shape
        letters = self._letters
        outputs = self._outputs
        law, bad, steps = self._moving
        # only entries that depend on the margins change from program to program
        parts = [*self._fixed, (*law, -caps[letters]), (*bad, -slopes[letters])]
        low = high = np.zeros(n)
        if step_gains is not None and step_range is not None:
            parts.append((*steps, -step_gains[outputs]))
            low, high = step_range
        # triplets: the csc constructor sorts them and sums what coincides
        rows, columns, values = map(np.concatenate, zip(*parts, strict=True))
        matrix = sparse.csc_array(
            (values, (rows, columns)), shape=(n + m + n * m + 1, len(self._costs))
        )
        entries = matrix.indptr, matrix.indices, matrix.data
        free = np.zeros((n + 2) * m)
        bounds = np.concatenate([free, low]), np.concatenate([free + np.inf, high])
        sides = (
            self._row_lower,
            np.concatenate([np.ones(n), np.zeros(m + n * m), [self.span.delta]]),
        )
        model = build_columnwise_model(self._costs, bounds, sides, entries)
        if self._model is None:
            self._model = ParametricModel(model)
        else:
            self._model.replace_model(model)
        # the first program always has 0.2 s: without it there is no result
        found = self._model.solve_at(
            1.0, self.options.deadline.at_least(1e-3 if self.solved else 0.2)
        )
        self.solved += 1
        primal = found.values
        duals = -self.scale * found.duals
        return MarginSolution(
            gain=-self.scale * float(self._costs @ primal),
            matrix=np.maximum(primal[: n * m], 0.0).reshape(n, m),
            bad=np.maximum(primal[(n + 1) * m : (n + 2) * m], 0.0),
            step=primal[(n + 2) * m :],
            rows=duals[:n] / self.span.pmf,
            thresholds=duals[n : n + m],
            prices=np.maximum(duals[n + m : -1], 0.0).reshape(n, m),
        )

    def solve_at(self, margins: FloatArray) -> MarginAscent:
        """Solve the linear program for given margins, clipped to their range."""
        cut = np.clip(margins, 0.0, self.span.max_margins)
        # margins below 1e-9 of the largest are set to 0
        cut = np.where(cut > 1e-9 * self.span.max_margins.max(), cut, 0.0)
        return MarginAscent(cut, self.solve_program(self.span.ratio - cut, cut))

    def ascend_margins(self, start: MarginAscent) -> MarginAscent:
        """Improve the margins by successive linear programs until no small step increases the gain.

        With steps d of the margins, `P[x,y] <= (t - s[x]) q[y] + s[x] b[y] + d[x] (b'[y] - q'[y])` at the
        masses b' and the current law q' is linear in all; steps are kept short, and count where the program
        at the new margins gains.
        """
        max_margin = float(self.span.max_margins.max())
        # margins may first move by a quarter of the largest one
        max_step = 0.25 * max_margin
        best = start
        # most ascents end after five or six programs
        for _ in range(30):
            # the ascent ends where margins may move by less than 1e-7 of the largest
            if max_step <= 1e-7 * max_margin or self.expired:
                break
            s = best.margins
            point = best.solution
            bounds = (
                np.maximum(-s, -max_step),
                np.minimum(np.maximum(self.span.max_margins - s, 0.0), max_step),
            )
            # sequential linear programming: the bilinear term s b, linearised at the current b
            moved = self.solve_program(
                self.span.ratio - s, s, point.bad - self.span.pmf @ point.matrix, bounds
            )
            if moved.gain <= point.gain + MIN_GAIN_FRACTION * self.scale:
                break
            # the linear model errs by d times the change of b: only the true program decides
            new = self.solve_at(s + moved.step)
            if new.solution.gain > point.gain:
                best = new
                max_step = 1.5 * max_step
            else:
                # a trust region: failed steps shrink it
                max_step /= 4
        return best


def list_start_margins(span: MarginRange) -> list[FloatArray]:
    """List starting margins: zero (that is PML(epsilon)), uniform, and each letter's maximum.

    With margins of t - 1, that is with ratios of at most 1 but for the masses, designs are no worse than
    those under approximate PML at the level 0 with the slack of `measures.envelope_slack`.
    """
    none = np.zeros(len(span.max_margins))
    if not span.max_margins.any():
        return [none]
    # the program is not convex in the margins: starts from different corners
    alike = [fraction * span.max_margins for fraction in UNIFORM_START_FRACTIONS]
    alike.append(np.minimum(span.max_margins, span.ratio - 1))
    alone = [
        np.where(np.arange(len(none)) == x, span.max_margins, 0.0)
        for x in np.flatnonzero(span.max_margins)
    ]
    return [none, *alike, *alone]
