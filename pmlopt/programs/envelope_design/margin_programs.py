"""The linear programs of an envelope design: margins fixed, within a box, or moving around a point."""

from __future__ import annotations

from dataclasses import dataclass, replace

import highspy
import numpy as np

from pmlopt.arrays import FloatArray
from pmlopt.backends.clock import FOREVER, Clock
from pmlopt.backends.highs import columnwise, limits, loaded, state_of
from pmlopt.backends.outcome import Options


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
