"""The least variance of linear unbiased estimators, by a cone program over all extreme columns."""

from __future__ import annotations

import cvxpy as cp
from oracles.designs import FloatArray


def least_error(p: FloatArray, columns: FloatArray, workload: FloatArray) -> float:
    """The least variance of a linear unbiased estimator: `min sum_y |v_y|^2 / q_y` with `V P' = W`."""
    count = columns.shape[1]
    weights, parts = cp.Variable(count, nonneg=True), cp.Variable((len(workload), count))
    squares = cp.Variable(count, nonneg=True)  # |v_y|^2 <= q_y s_y, as a cone
    difference = cp.reshape(weights - squares, (1, count), order="C")
    cone = cp.SOC(weights + squares, cp.vstack([2 * parts, difference]), axis=0)
    rows = [columns @ weights == 1, parts @ columns.T == workload, cone]
    found = cp.Problem(cp.Minimize(cp.sum(squares)), rows).solve(solver="CLARABEL")
    return float(found) - float(((workload @ p) ** 2).sum())
