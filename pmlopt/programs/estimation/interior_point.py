"""The optimal weights of given columns, by a primal-dual interior-point method."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from pmlopt.core.numbers.arrays import FloatArray
from pmlopt.core.numbers.concave import steps_to_boundary
from pmlopt.model.utility.estimation_error import Criterion
from pmlopt.solvers.solver_result import Deadline


@dataclass(frozen=True, eq=False)
class OptimalWeights:
    """Optimal weights of columns with their dual multipliers.

    Attributes:
        weights: (K,) q.
        multipliers: (N,) pi of `columns @ q = 1`.
        iterations: Newton steps.
        has_converged: whether the gap was reached.
    """

    weights: FloatArray
    multipliers: FloatArray
    iterations: int
    has_converged: bool


def optimize_weights(
    columns: FloatArray,
    wanted: FloatArray,
    criterion: Criterion,
    start: FloatArray,
    gap: float,
    deadline: Deadline,
) -> OptimalWeights:
    """Minimise the estimation error over weights of given columns, to within a gap.

    Columns are near the constant where little may leak, so they are written in a basis in which those of the
    start are white, and the error in units of that of the start.

    Raises:
        LinAlgError: the information of the start is singular.

    Source: [boyd2004convex, Section 11.7] (the steps and their length).
    """
    # in this basis the start's information is the identity: the condition is squared nowhere
    root = np.linalg.cholesky((columns * start) @ columns.T)
    turned = np.linalg.solve(root, wanted.T).T
    unit = 1.0 if criterion == "D" else float((turned**2).sum())
    inside = np.linalg.solve(root, columns)
    target = np.linalg.solve(root, np.ones(len(columns)))
    path = _CentralPath(inside, target, None if criterion == "D" else turned / np.sqrt(unit), start)
    iterations, converged = 0, False
    # 15 to 40 Newton steps are usual
    while iterations < 120 and not converged:
        iterations += 1
        if not path.advance():
            break
        # the gap bounds the error only once the rows are met
        feasible = float(np.abs(path.columns @ path.q - path.target).max()) <= 1e-12
        converged = (
            feasible
            and max(float(path.q @ path.z), float(np.abs(path.dual_residual).max())) <= gap / unit
        )
        if feasible and deadline.expired:
            break
    return OptimalWeights(path.q, unit * np.linalg.solve(root.T, path.pi), iterations, converged)


class _CentralPath:
    """The primal-dual iterate for `tr(W J^-1 W')` or `-log det J` over q >= 0, L q = t, with Newton steps.

    Attributes:
        columns, target: L and t.
        wanted: W; None for the determinant.
        q, z, pi: the weights, their slacks, and the multipliers of the rows.
        gains: (K,) how fast each weight lowers the error.
        curvature: (K, K) the second derivatives.
    """

    def __init__(
        self, columns: FloatArray, target: FloatArray, wanted: FloatArray | None, start: FloatArray
    ) -> None:
        self.columns = columns
        self.target = target
        self.wanted = wanted
        self.q = start
        # the right sides of the two systems of a step, of which one has a column that changes
        self._sides = columns if wanted is None else np.hstack([columns, wanted.T])
        self._right = np.column_stack([start, columns.T])
        found = self._compute_derivatives(start)
        if found is None:
            raise np.linalg.LinAlgError("the information of the columns is singular")
        self.gains, self.curvature = found
        self.pi = np.linalg.lstsq(columns.T, self.gains, rcond=None)[0]
        # least squares leaves some slacks negative: all are raised to a positive share
        slack = columns.T @ self.pi - self.gains
        self.z = np.maximum(
            slack, 0.1 * max(float(np.abs(slack).max()), 1e-3 * float(self.gains.max()))
        )

    @property
    def dual_residual(self) -> FloatArray:
        """Return the (K,) dual residual."""
        return self.columns.T @ self.pi - self.gains - self.z

    def _compute_derivatives(self, q: FloatArray) -> tuple[FloatArray, FloatArray] | None:
        """Compute gradient and curvature of the objective; None where J is singular."""
        try:
            root = np.linalg.cholesky((self.columns * q) @ self.columns.T)
        except np.linalg.LinAlgError:
            return None
        # Cholesky in place of the inverse of J: products are symmetric up to rounding
        solved = np.linalg.solve(root, self._sides)
        half = solved[:, : len(q)]
        products = half.T @ half
        # the Hessian of -log det is the entrywise square of L' J^-1 L
        if self.wanted is None:
            return products.diagonal().copy(), products**2
        turned = solved[:, len(q) :].T @ half
        errors = turned.T @ turned
        return errors.diagonal().copy(), 2 * products * errors

    def _compute_residual(self, barrier: float) -> float:
        """Compute the relative norm of the central-path residual at a barrier parameter."""
        size = 1 + float(np.abs(self.gains).max())
        primal = self.columns @ self.q - self.target
        dual = self.dual_residual / size
        centre = (self.q * self.z - barrier) / size
        return float(np.sqrt(dual @ dual / len(dual) + primal @ primal + centre @ centre))

    def advance(self) -> bool:
        """Take a Newton step with line search; return False where no step decreases the residual."""
        # a step goes at most 99 % of the way to the boundary
        step_fraction = 0.99
        q = self.q
        z = self.z
        pi = self.pi
        gains = self.gains
        curvature = self.curvature
        # aims at a tenth of the current complementarity gap
        barrier = 0.1 * float(q @ z) / len(q)
        before = self._compute_residual(barrier)
        self._right[:, 0] = gains - self.columns.T @ pi + barrier / q
        # one factorisation for the residual and for the N columns of the Schur complement
        system = curvature.copy()
        system.flat[:: len(q) + 1] += z / q
        solved = np.linalg.solve(system, self._right)
        towards = self.columns @ (q + solved[:, 0]) - self.target
        # least squares: the rows may be dependent, where the Schur complement is singular
        dpi = np.asarray(np.linalg.lstsq(self.columns @ solved[:, 1:], towards, rcond=None)[0])
        dq = solved[:, 0] - solved[:, 1:] @ dpi
        dz = barrier / q - z - z / q * dq
        length = min(
            1.0, step_fraction * steps_to_boundary(q, dq), step_fraction * steps_to_boundary(z, dz)
        )
        while length > 1e-10:
            self.q = q + length * dq
            self.z = z + length * dz
            self.pi = pi + length * dpi
            found = self._compute_derivatives(self.q)
            if found is not None:
                self.gains, self.curvature = found
                # Armijo's rule with a factor of 0.01
                if self._compute_residual(barrier) <= (1 - 0.01 * length) * before:
                    return True
            length /= 2
        # no step length works: the point of before is restored
        self.q = q
        self.z = z
        self.pi = pi
        self.gains = gains
        self.curvature = curvature
        return False
