"""What no design for estimation betters, from the second moments of its columns alone."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from pmlopt.core.arrays import FloatArray
from pmlopt.core.loaded_later import optimize
from pmlopt.programs.estimation.bounds import Objective, Proof
from pmlopt.programs.estimation.columns import ColumnCone

INSIDE = 1e-13
"""The least share of the largest eigenvalue at which a matrix counts as positive definite."""

SHRUNK = 1e-8
"""Share that is taken off Z, so that rounding leaves S positive semidefinite."""


@dataclass(frozen=True, eq=False)
class Moments:
    """The best second moments that weights of the letters allow, and the bound that they prove.

    Attributes:
        value: the bound.
        slopes: (N,) how it changes with the weights.
        form: (N + S, N + S) `-sum_x w[x] F_x`, with F_x the product of the x-th row and the (N + x)-th.
        information: (N, N) J, the moments of the letters.
    """

    value: float
    slopes: FloatArray
    form: FloatArray
    information: FloatArray


class MomentProblem:
    """Minimise the error over second moments V of columns v = (1 + d, s), of which `<p, d>` and E d are zero.

    All that is kept of a column is `(rows_x v) (rows_{N+x} v) >= 0`: each letter is between its two ends. For
    weights w >= 0 of these the error is at least `min_V error(J) - sum_x w[x] <F_x, V>`, which is in closed
    form: in a basis d = Q y, and after the best scalars, the form is `c + y' M y`, and with A of the workload
    the covariance of y is best at `M^(-1/2) (M^(1/2) A M^(1/2))^(1/2) M^(-1/2)`, for "D" at `M^-1`.

    Args:
        cone: the columns, with the lower ends in the first N rows and the upper ends in the next.
        objective: the prior, and a workload with a little of every frequency where it leaves some out.
    """

    def __init__(self, cone: ColumnCone, objective: Objective) -> None:
        n, m, p = cone.letters, len(cone.mean), objective.p
        self.n, self.cone, self.objective = n, cone, objective
        across = np.linalg.qr(np.column_stack([np.ones(n), np.eye(n)[:, 1:]]))[0][:, 1:]
        self.basis = np.zeros((m, m))  # of (1, y, s)
        self.basis[:n, 0] = 1.0
        self.basis[:n, 1:n] = across - np.outer(np.ones(n), p @ across)  # Q, with across' Q = I
        self.basis[n:, n:] = np.eye(m - n)
        self.ends = cone.rows[:n] @ self.basis, cone.rows[n : 2 * n] @ self.basis
        square = objective.workload @ across
        self.square = square.T @ square
        _, volume = np.linalg.slogdet(np.column_stack([p, across]))
        self.volume = 2 * float(volume)

    def at(self, weights: FloatArray) -> Moments | None:
        """The best moments at some weights of the letters; None where they bound nothing."""
        n, (lower, upper) = self.n, self.ends
        form = -(lower.T * weights) @ upper
        form = (form + form.T) / 2
        scalars = form[n:, n:]
        if len(scalars) and np.linalg.eigvalsh(scalars)[0] <= 0:
            return None
        moved = np.linalg.solve(scalars, form[n:, :n]) if len(scalars) else np.zeros((0, n))
        left = form[:n, :n] - form[:n, n:] @ moved
        sizes, axes = np.linalg.eigh((left[1:, 1:] + left[1:, 1:].T) / 2)
        if not sizes[0] > INSIDE * sizes[-1]:
            return None
        within = np.eye(n)
        if self.objective.criterion == "D":
            within[1:, 1:] = (axes / sizes) @ axes.T
            value = float(np.log(sizes).sum()) + n - 1 + self.volume
        else:
            root, back = (axes * np.sqrt(sizes)) @ axes.T, (axes / np.sqrt(sizes)) @ axes.T
            squares, turned = np.linalg.eigh(root @ self.square @ root)
            halves = np.sqrt(np.maximum(squares, 0.0))
            within[1:, 1:] = back @ (turned * halves) @ turned.T @ back
            value = 2 * float(halves.sum())
        moments = np.block([[within, -within @ moved.T], [-moved @ within, moved @ within @ moved.T]])
        return Moments(
            value + float(left[0, 0]),
            -np.einsum("xi,ij,xj->x", lower, moments, upper),
            -(self.cone.rows[:n].T * weights) @ self.cone.rows[n : 2 * n],
            np.asarray((self.basis @ moments @ self.basis.T)[:n, :n]),
        )

    def best(self) -> tuple[FloatArray, Moments] | None:
        """The weights at which the bound is largest, as far as the search goes, and the moments there."""

        def at(logs: FloatArray) -> tuple[float, FloatArray]:
            found = self.at(np.exp(np.clip(logs, -300, 300)))
            if found is None:
                return worst, np.zeros(self.n)
            return -found.value, -found.slopes * np.exp(logs)

        start, worst = np.log(self.objective.p), 1e300
        scaled = optimize.minimize_scalar(lambda by: at(start + by)[0], bounds=(-30, 30), method="bounded")
        size = scaled.x
        first = self.at(np.exp(start + size))
        if first is None:
            return None
        worst = abs(first.value) * 10 + 1e3
        ending = optimize.minimize(at, start + size, jac=True, method="L-BFGS-B", options={"ftol": 1e-11})
        weights = np.exp(np.clip(ending.x, -300, 300))
        found = self.at(weights)
        return None if found is None else (weights, found)

    def proof(self, objective: Objective) -> Proof | None:
        """The numbers that prove the bound for the workload of another objective; None where there are none.

        S V = 0 at the best moments V, so S V mean = 0, and V mean is the mean column.
        """
        with np.errstate(all="ignore"):  # where nothing comes of it, nothing is proved
            best = self.best()
            if best is None:
                return None
            weights, found = best
            n, cone = self.n, self.cone
            z = self.objective.sensitivities(found.information)
            form = (found.form + found.form.T) / 2
            mean = np.ones(len(cone.mean))
            if len(mean) > n:
                mean[n:] = -np.linalg.solve(form[n:, n:], form[n:, :n] @ np.ones(n))
            missing = -form @ mean
            missing[:n] += z @ (z.T @ mean[:n])
            u = missing - cone.mean * float(mean @ missing) / 2
            products = np.zeros(cone.count)
            one, other = cone.pairs
            products[: len(one)][(other == one + n) & (one < n)] = weights
            proving = (1 - SHRUNK) * objective.sensitivities(found.information)
            return Proof(proving, 2 * u[:n] / objective.p, (products,))
