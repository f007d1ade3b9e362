"""The best weights of given columns, by a primal-dual interior point in the weights."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from pmlopt.core.arrays import FloatArray
from pmlopt.model.utility.estimation_error import Criterion
from pmlopt.solvers.outcome import FOREVER, Clock

MAX_ITERATIONS = 120
"""Newton steps after which the point in hand is returned; usual are 15 to 40."""

STEP_FRACTION = 0.99
"""The share of the way to the boundary that one step may go."""

DECREASE = 0.01
"""The share of a step by which the residual must decrease at least, in Armijo's rule."""


@dataclass(frozen=True, eq=False)
class Weights:
    """Weights of columns with their multipliers.

    Attributes:
        weights: (K,) q.
        multipliers: (N,) pi of `columns @ q = 1`.
        iterations: Newton steps.
        converged: whether the gap was reached.
    """

    weights: FloatArray
    multipliers: FloatArray
    iterations: int
    converged: bool


@dataclass(frozen=True, eq=False)
class _Point:
    q: FloatArray
    z: FloatArray
    pi: FloatArray


class _Problem:
    """Minimise tr(W J^-1 W') or -log det J over q >= 0 with L q = t; its residuals and Newton steps."""

    def __init__(
        self, columns: FloatArray, target: FloatArray, wanted: FloatArray, criterion: Criterion
    ) -> None:
        self.columns, self.target, self.wanted, self.criterion = columns, target, wanted, criterion

    def gains(self, q: FloatArray) -> tuple[FloatArray, FloatArray] | None:
        """(K,) how fast each weight lowers the error, and the (K, K) curvature; None where J is singular."""
        information = (self.columns * q) @ self.columns.T
        try:
            root = np.linalg.cholesky(information)
        except np.linalg.LinAlgError:
            return None
        half = np.linalg.solve(root, self.columns)
        products = half.T @ half
        if self.criterion == "D":
            return np.diag(products).copy(), products**2
        turned = self.wanted @ np.linalg.solve(root.T, half)
        errors = turned.T @ turned
        return np.diag(errors).copy(), 2 * products * errors

    def residual(self, point: _Point, gains: FloatArray, barrier: float) -> float:
        """The size of what is missing for the point on the central path, relative to its parts."""
        dual = self.columns.T @ point.pi - gains - point.z
        size = 1 + float(np.abs(gains).max())
        primal = self.columns @ point.q - self.target
        centre = point.q * point.z - barrier
        return float(
            np.sqrt((dual @ dual) / size**2 / len(dual) + primal @ primal + (centre @ centre) / size**2)
        )

    def step(
        self, point: _Point, gains: FloatArray, curvature: FloatArray, barrier: float
    ) -> tuple[FloatArray, FloatArray, FloatArray]:
        """The Newton step of q, z and pi towards the point of the central path."""
        q, z = point.q, point.z
        matrix = curvature + np.diag(z / q)
        right = gains - self.columns.T @ point.pi + barrier / q
        solved = np.linalg.solve(matrix, np.column_stack([right, self.columns.T]))
        schur = self.columns @ solved[:, 1:]
        towards = self.columns @ (q + solved[:, 0]) - self.target
        change = np.linalg.lstsq(schur, towards, rcond=None)[0]
        dq = solved[:, 0] - solved[:, 1:] @ change
        return np.asarray(dq), np.asarray(barrier / q - z - z / q * dq), np.asarray(change)


def best_weights(
    columns: FloatArray,
    wanted: FloatArray,
    criterion: Criterion,
    start: FloatArray,
    gap: float,
    clock: Clock = FOREVER,
) -> Weights:
    """Weights at which the error is within a gap of the least that these columns reach.

    Columns are near the constant where little may leak, so they are written in a basis in which those of the
    start are white, and the error in units of that of the start.

    Source: [boyd2004convex, Section 11.7] (the steps and their length).
    """
    root = np.linalg.cholesky((columns * start) @ columns.T)
    white = np.linalg.solve(root, columns)
    turned = np.linalg.solve(root, wanted.T).T
    unit = 1.0 if criterion == "D" else float((turned**2).sum())
    target = np.linalg.solve(root, np.ones(len(columns)))
    problem = _Problem(white, target, turned / np.sqrt(unit), criterion)
    found = _central_path(problem, start, gap / unit, clock)
    multipliers = unit * np.linalg.solve(root.T, found.multipliers)
    return Weights(found.weights, multipliers, found.iterations, found.converged)


def _central_path(problem: _Problem, start: FloatArray, gap: float, clock: Clock) -> Weights:
    """Newton steps along the central path until what is missing is below the gap, or no step helps."""
    columns = problem.columns
    found = problem.gains(start)
    if found is None:
        raise np.linalg.LinAlgError("the information of the columns is singular")
    gains, curvature = found
    pi = np.asarray(np.linalg.lstsq(columns.T, gains, rcond=None)[0])
    slack = columns.T @ pi - gains
    level = max(float(np.abs(slack).max()), 1e-3 * float(gains.max()))
    point, iterations = _Point(start, np.maximum(slack, 0.1 * level), pi), 0
    while iterations < MAX_ITERATIONS:
        iterations += 1
        barrier = 0.1 * float(point.q @ point.z) / len(point.q)
        step = problem.step(point, gains, curvature, barrier)
        moved = _search(problem, point, step, problem.residual(point, gains, barrier), barrier)
        if moved is None:
            break
        point, gains, curvature = moved
        off = float(np.abs(columns.T @ point.pi - gains - point.z).max())
        missing = float(np.abs(columns @ point.q - problem.target).max())
        if point.q @ point.z <= gap and off <= gap and missing <= 1e-12:
            return Weights(point.q, point.pi, iterations, True)
        if missing <= 1e-12 and clock.late:
            break
    return Weights(point.q, point.pi, iterations, False)


def _search(
    problem: _Problem,
    point: _Point,
    step: tuple[FloatArray, FloatArray, FloatArray],
    before: float,
    barrier: float,
) -> tuple[_Point, FloatArray, FloatArray] | None:
    """The point after a step that stays inside and decreases the residual; None where none does."""
    dq, dz, dpi = step
    length = min(1.0, STEP_FRACTION * _room(point.q, dq), STEP_FRACTION * _room(point.z, dz))
    while length > 1e-10:
        tried = _Point(point.q + length * dq, point.z + length * dz, point.pi + length * dpi)
        found = problem.gains(tried.q)
        if found is not None:
            after = problem.residual(tried, found[0], barrier)
            if after <= (1 - DECREASE * length) * before:
                return tried, found[0], found[1]
        length /= 2
    return None


def _room(values: FloatArray, step: FloatArray) -> float:
    """The length of a step at which the first value is zero."""
    shrinking = step < 0
    return float((-values[shrinking] / step[shrinking]).min(initial=np.inf))
