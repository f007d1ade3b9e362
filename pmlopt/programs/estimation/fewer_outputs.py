"""Reduction of the number of outputs of an estimation design: without loss where possible, else greedily."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from pmlopt.core.lazy_imports import optimize
from pmlopt.core.numbers.arrays import FloatArray
from pmlopt.programs.program import MethodError


def reduce_by_information(matrix: FloatArray, p: FloatArray) -> FloatArray:
    """Select and rescale columns (N, L), L <= N (N + 1) / 2, that keep the Fisher information.

    `sum_y q[y] lam_y lam_y' = J` for the columns lam_y of mean one is a linear program in q >= 0, of which a
    vertex has no more columns than equations; J p = 1 are the rows. The matrix itself where none is found.
    """
    q = p @ matrix
    lifts = matrix / q
    # J is symmetric: N (N + 1) / 2 equations
    pairs = np.triu_indices(len(p))
    products = lifts[pairs[0]] * lifts[pairs[1]]
    products = products[products.any(axis=1)]  # some letters may share no output
    # the solver's tolerance is absolute: each equation is scaled to size one
    scale = np.abs(products).max(axis=1, keepdims=True)
    costs = np.random.default_rng(0).random(len(q))  # any vertex will do
    solved = optimize.linprog(
        costs, A_eq=products / scale, b_eq=(products @ q) / scale[:, 0], method="highs-ds"
    )
    if solved.x is None:
        return matrix
    scaled = (lifts * solved.x)[:, solved.x * lifts.max(axis=0) > 1e-12]
    fitted = scale_to_rows(scaled)
    return matrix if fitted is None else fitted


def scale_to_rows(matrix: FloatArray) -> FloatArray | None:
    """Scale the columns of (N, M) numbers so that rows sum to one; None where a factor is not positive.

    Factors keep small entries positive, and are those nearest to one.
    """
    change = np.linalg.lstsq(matrix, 1 - matrix.sum(axis=1), rcond=None)[0]
    return matrix * (1 + change) if change.min() > -1 else None


def thin_columns(
    columns: FloatArray, weigh: Callable[[FloatArray], FloatArray], max_columns: int
) -> tuple[FloatArray, FloatArray] | None:
    """Drop columns until at most `max_columns` are left with feasible weights; None where that fails.

    Those of the least weight are left out, a quarter of what there is too much at a time, and the rest is
    weighed again.
    """

    def try_weights(kept: FloatArray) -> FloatArray | None:
        try:
            return weigh(kept)
        except (MethodError, np.linalg.LinAlgError):
            return None

    weights = try_weights(columns)
    while weights is not None and columns.shape[1] > max_columns:
        # several at a time while many are too much, one by one at the end
        order = np.argsort(weights, kind="stable")
        many = (columns.shape[1] - max_columns + 3) // 4
        # if dropping the lightest columns together fails, the eight lightest are tried one by one
        for out in ([order[:many]] if many > 1 else []) + list(order[:8, None]):
            fewer = np.delete(columns, out, axis=1)
            weights = try_weights(fewer)
            if weights is not None:
                columns = fewer
                break
    return None if weights is None else (columns, weights)


def merge_outputs(
    matrix: FloatArray, p: FloatArray, sensitivities: FloatArray, max_outputs: int
) -> FloatArray:
    """Merge pairs of outputs greedily, at the least increase of the error, until `max_outputs` are left.

    With Z the derivative of the error, the outputs y and z together cost, to first order,
    `q[y] q[z] / (q[y] + q[z]) |Z' (lam_y - lam_z)|^2`: the distance of Ward between the points Z' lam_y.

    Source: [ward1963hierarchical].
    """
    out = matrix.copy()
    law = p @ matrix
    points = sensitivities.T @ (matrix / law)
    while out.shape[1] > max_outputs:
        squares = (points**2).sum(axis=0)
        # |a - b|^2 = |a|^2 + |b|^2 - 2 <a, b> for all pairs at once
        apart = squares[:, None] + squares - 2 * points.T @ points
        costs = apart * law[:, None] * law / (law[:, None] + law)
        # the diagonal is no pair
        np.fill_diagonal(costs, np.inf)
        y, z = sorted(int(place) for place in np.unravel_index(costs.argmin(), costs.shape))
        # the centroid by mass: the posterior of the merged output
        points[:, y] = (points[:, y] * law[y] + points[:, z] * law[z]) / (law[y] + law[z])
        law[y] += law[z]
        out[:, y] += out[:, z]
        out = np.delete(out, z, 1)
        points = np.delete(points, z, 1)
        law = np.delete(law, z)
    return out
