"""Newton's system of a banded design: all but the rows' multipliers eliminated by output.

    minimise <C, P>  subject to  P 1 = 1 (y),  weights' P = mean' u (z),
    P - low = above >= 0 (a),  high - P = below >= 0 (b),  and low >= 0 (f) where it is a scalar of its own,

with `low = lower' u` and `high = upper' u`. With psi = 1 / (a/above + b/below) a step in P is elementwise in
the steps of y, z and u; z and u are one to three scalars for each output; what is left is an N x N positive
definite system in y.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.linalg import lapack
from scipy.linalg.blas import dsyrk

from pmlopt.arrays import FloatArray
from pmlopt.backends.structured.band_program import Task

SHIFTS = (0.0, 1e-13, 1e-11, 1e-9)
"""Added to the unit diagonal of a system that rounding has made indefinite; refinement mends the step."""

SHARP, REFINEMENTS = 1e-11, 4
"""A step that leaves more than this of the rows' sums or the means is refined, so many times at most."""


@dataclass(frozen=True, eq=False)
class Point:
    """A point strictly inside, or a step from one.

    Attributes:
        above, below: (N, M) the distances of P from its ends.
        scalars: (k, M) u.
        low: (M,) the lower end.
        a, b: (N, M) their multipliers.
        f: (M,) the multipliers of `low >= 0`; zeros of no meaning where the band has no floor.
        y: (N,) the multipliers of the rows.
        z: (M,) the multipliers of the means; zeros where the band has no weights.
    """

    above: FloatArray
    below: FloatArray
    scalars: FloatArray
    low: FloatArray
    a: FloatArray
    b: FloatArray
    f: FloatArray
    y: FloatArray
    z: FloatArray

    @property
    def mechanism(self) -> FloatArray:
        """(N, M) the matrix P at this point."""
        return self.above + self.low

    @property
    def products(self) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Slacks times multipliers, of lower ends, upper ends and floors: zero at an optimum."""
        return self.a * self.above, self.b * self.below, self.f * self.low

    @property
    def gap(self) -> float:
        """Their sum: the duality gap of a point that meets the equations."""
        return float(np.vdot(self.a, self.above) + np.vdot(self.b, self.below) + self.f @ self.low)

    def gap_after(self, step: Point, primal: float, dual: float) -> float:
        """The gap so far along a step."""
        total = sum(
            np.vdot(here, size)
            + dual * np.vdot(there, size)
            + primal * (np.vdot(here, change) + dual * np.vdot(there, change))
            for here, there, size, change in (
                (self.a, step.a, self.above, step.above),
                (self.b, step.b, self.below, step.below),
                (self.f, step.f, self.low, step.low),
            )
        )
        return float(total)

    def moved(self, step: Point, primal: float, dual: float) -> Point:
        """The point so far along a step."""
        return Point(
            self.above + primal * step.above,
            self.below + primal * step.below,
            self.scalars + primal * step.scalars,
            self.low + primal * step.low,
            self.a + dual * step.a,
            self.b + dual * step.b,
            self.f + dual * step.f,
            self.y + dual * step.y,
            self.z + dual * step.z,
        )


class Newton:
    """The system at a point, factored.

    Args:
        task: the program.
        at: a point strictly inside.

    Raises:
        ArithmeticError: it is not positive definite in floating-point arithmetic.
    """

    def __init__(self, task: Task, at: Point) -> None:
        self.task, self.at = task, at
        band, p = task.band, at
        self.based = bool(band.lower.any())  # else the lower end is zero
        self.alpha, self.beta = p.a / p.above, p.b / p.below
        self.psi = 1 / (self.alpha + self.beta)
        rest = self.psi * self.beta
        steep = np.einsum("xy,xy->y", rest, self.alpha)
        self.pull = [self._pull(rest, *ends) for ends in zip(band.lower, band.upper, strict=True)]
        width = band.upper - band.lower
        stiff = width[:, None] ** 2 * steep
        if band.floored:
            stiff += (band.lower**2)[:, None] * (p.f / p.low)
        self._blocks(stiff)
        self._factor()
        self._residuals()

    def _pull(self, rest: FloatArray, low: float, high: float) -> FloatArray:
        """Psi (low alpha + high beta): how a scalar with these ends moves the entries."""
        if low == 0:
            return rest if high == 1 else high * rest
        return low * (self.psi * self.alpha) + high * rest

    def _blocks(self, stiff: FloatArray) -> None:
        """Eliminate z, then u: `spread` (k of N, M) is u's part in the rows, `root` the k x k factor."""
        band = self.task.band
        self.spread = self.pull
        self.lean = np.zeros_like(stiff)
        if band.weights is not None:
            assert band.mean is not None
            w = band.weights
            self.weighed = w[:, None] * self.psi
            self.mass = w @ self.weighed
            self.lean = np.array([w @ part - mean for part, mean in zip(self.pull, band.mean, strict=True)])
            tilt = self.lean / self.mass
            self.spread = [part - tilt[j] * self.weighed for j, part in enumerate(self.pull)]
            first = stiff[0] + tilt[0] * self.lean[0]
        else:
            first = stiff[0]
        if len(stiff) == 1:
            self.root = np.sqrt(first)[None]
            return
        # the determinant as a sum without cancellation
        square = stiff[0] * stiff[1] + tilt[1] * self.lean[1] * stiff[0] + tilt[0] * self.lean[0] * stiff[1]
        corner = np.sqrt(first)
        self.root = np.array([corner, tilt[0] * self.lean[1] / corner, np.sqrt(square / first)])

    def _factor(self) -> None:
        n = len(self.psi)
        total = np.zeros((n, n), order="F")
        if self.task.band.weights is not None:
            total = _add_square(total, self.weighed / np.sqrt(self.mass), -1.0)
        first = self.spread[0] / self.root[0]
        total = _add_square(total, first, 1.0)
        if len(self.root) > 1:
            total = _add_square(total, (self.spread[1] - self.root[1] * first) / self.root[2], 1.0)
        total[np.diag_indices(n)] += self.psi.sum(axis=1)
        self.unit = 1 / np.sqrt(np.diag(total))
        total *= self.unit
        total *= self.unit[:, None]
        for shift in SHIFTS:
            if shift:
                total[np.diag_indices(n)] = 1 + shift
            self.factor, info = lapack.dpotrf(total, lower=1)
            if info == 0 and np.isfinite(self.factor[-1, -1]):
                return
        raise ArithmeticError("the Newton system is not positive definite")

    def _residuals(self) -> None:
        """What is missing of each equation at the point."""
        band, p = self.task.band, self.at
        self.stationary = p.a - p.b - self.task.costs
        self.stationary += p.y[:, None]
        self.rows = 1 - (p.above.sum(axis=1) + p.low.sum())
        self.stationary_u = band.upper[:, None] * p.b.sum(axis=0)
        if self.based:
            self.stationary_u -= band.lower[:, None] * p.a.sum(axis=0)
        self.means = np.zeros(len(p.z))
        if band.weights is not None:
            assert band.mean is not None
            self.stationary += band.weights[:, None] * p.z
            self.means = band.mean @ p.scalars - band.weights @ p.above - band.weights.sum() * p.low
            self.stationary_u -= band.mean[:, None] * p.z
        if band.floored:
            self.stationary_u += band.lower[:, None] * p.f

    def step(self, want_a: FloatArray, want_b: FloatArray, want_f: FloatArray) -> Point:
        """The step that mends the equations, and changes the products by what is wanted, to first order.

        Args:
            want_a: (N, M) of the products a above.
            want_b: (N, M) of the products b below.
            want_f: (M,) of the products f low.
        """
        band, p = self.task.band, self.at
        to_a, to_b = want_a / p.above, want_b / p.below
        push = to_a - to_b
        push += self.stationary
        scalars = self.stationary_u + band.upper[:, None] * to_b.sum(axis=0)
        if self.based:
            scalars -= band.lower[:, None] * to_a.sum(axis=0)
        if band.floored:
            to_f = want_f / p.low
            scalars += band.lower[:, None] * to_f
        scalars += [np.einsum("xy,xy->y", part, push) for part in self.pull]
        push *= self.psi
        dy, dz, du = self._solve(self.rows - push.sum(axis=1), self._weigh(self.means, push), scalars)
        dp = self._spread(dy, dz, du)
        dp += push
        for _ in range(REFINEMENTS):
            rows, means = self._left(dp, du)
            if max(np.abs(rows).max(), np.abs(means).max()) <= SHARP:
                break
            cy, cz, cu = self._solve(rows, means, np.zeros_like(du))
            dp += self._spread(cy, cz, cu)
            dy, dz, du = dy + cy, dz + cz, du + cu
        low, high = band.lower @ du, band.upper @ du
        above, below = dp - low if self.based else dp, high - dp
        f = to_f - p.f / p.low * low if band.floored else np.zeros(len(low))
        to_a -= self.alpha * above
        to_b -= self.beta * below
        return Point(above, below, du, low, to_a, to_b, f, dy, dz)

    def _left(self, dp: FloatArray, du: FloatArray) -> tuple[FloatArray, FloatArray]:
        """What a step leaves of the rows' sums and the means."""
        means = self._weigh(self.means, dp)
        if self.task.band.mean is not None:
            means += self.task.band.mean @ du
        return self.rows - dp.sum(axis=1), means

    def _weigh(self, means: FloatArray, part: FloatArray) -> FloatArray:
        weights = self.task.band.weights
        return means.copy() if weights is None else means - weights @ part

    def _solve(
        self, rows: FloatArray, means: FloatArray, scalars: FloatArray
    ) -> tuple[FloatArray, FloatArray, FloatArray]:
        """The eliminated system: y by its factor, then u and z of each output."""
        weights = self.task.band.weights
        if weights is not None:
            lift = means / self.mass
            rows = rows - weights * (self.psi @ lift)
            scalars = scalars + self.lean * lift
        rows = rows - sum(part @ u for part, u in zip(self.spread, self._scalars(scalars), strict=True))
        solved, _ = lapack.dpotrs(self.factor, rows * self.unit, lower=1)
        dy = solved * self.unit
        du = self._scalars(scalars + [dy @ part for part in self.spread])
        dz = np.zeros(len(means))
        if weights is not None:
            dz = lift - ((dy * weights) @ self.psi + (self.lean * du).sum(axis=0)) / self.mass
        return dy, dz, du

    def _scalars(self, right: FloatArray) -> FloatArray:
        """Solve the k x k system of each output, by its factor."""
        root = self.root
        first = right[0] / root[0]
        if len(root) == 1:
            return np.asarray(first / root[0])[None]
        second = (right[1] - root[1] * first) / root[2] ** 2
        return np.array([(first - root[1] * second) / root[0], second])

    def _spread(self, dy: FloatArray, dz: FloatArray, du: FloatArray) -> FloatArray:
        """The step of P that belongs to steps of y, z and u."""
        weights = self.task.band.weights
        out = np.outer(weights, dz) if weights is not None else np.zeros_like(self.psi)
        out += dy[:, None]
        out *= self.psi
        for part, u in zip(self.pull, du, strict=True):
            out += part * u
        return out


def _add_square(total: FloatArray, part: FloatArray, sign: float) -> FloatArray:
    """The lower triangle of `total + sign part part'`, in place."""
    return np.asarray(dsyrk(sign, part.T, beta=1.0, c=total, trans=1, lower=1, overwrite_c=1))
