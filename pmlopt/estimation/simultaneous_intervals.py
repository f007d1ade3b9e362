"""Intervals that hold all combinations of frequencies at once with a given confidence."""

from __future__ import annotations

import numpy as np

from pmlopt.arrays import FloatArray, IntArray
from pmlopt.uncertainty.confidence import confidence_box


def wald_intervals(values: FloatArray, covariance: FloatArray, confidence: float) -> FloatArray:
    """(K, 2) `value -+ z sqrt(variance)`, z the normal quantile at `1 - (1 - confidence) / (2 K)`.

    They hold together with about the confidence asked for when there are many people (Bonferroni), and may
    leave [0, 1].

    Examples:
        >>> wald_intervals(np.array([0.5]), np.array([[0.01]]), 0.95).round(3).tolist()
        [[0.304, 0.696]]
    """
    from scipy.special import ndtri

    width = -ndtri((1 - confidence) / (2 * len(values))) * np.sqrt(np.diag(covariance))
    return np.column_stack([values - width, values + width])


def exact_intervals(
    matrix: FloatArray, counts: IntArray, combinations: FloatArray, weights: FloatArray, confidence: float
) -> FloatArray:
    """(K, 2) the range of each combination w f over the frequencies that agree with the counts.

    The law of the output is in a box [l, u] of Clopper-Pearson intervals with the confidence asked for, for
    any number of people. An end is the linear program `max w f` over `f >= 0`, `sum f = 1`, `l <= f P <= u`,
    as proved by its multipliers v: for every v in R^M

        w f <= max_x (w - P v)[x] + sum_y (u[y] max(v[y], 0) - l[y] max(-v[y], 0)),

    so that what a solver does cannot make an interval too short. Where no frequencies agree with the box,
    the weights of the unbiased estimate serve as v. They hold together, however many combinations there are.

    Args:
        matrix: (N, M) a mechanism.
        counts: (M,) of its outputs.
        combinations: (K, N) W.
        weights: (K, M) with `weights @ matrix.T == combinations`.
        confidence: in (0, 1).

    Source: [clopper1934confidence]; [boyd2004convex, Section 5.2] (the bound by duality).
    """
    occurs = matrix.max(axis=0) > 0
    columns = matrix[:, occurs]
    box = confidence_box([int(count) for count in counts[occurs]], 1 - confidence)
    return np.array([
        (-_highest(columns, -row, -weight[occurs], box.lower, box.upper),
         _highest(columns, row, weight[occurs], box.lower, box.upper))
        for row, weight in zip(combinations, weights, strict=True)
    ])  # fmt: skip


def _highest(
    matrix: FloatArray, combination: FloatArray, weights: FloatArray, lower: FloatArray, upper: FloatArray
) -> float:
    """A proved upper end of one combination."""
    from scipy.optimize import linprog

    solved = linprog(
        -combination,
        A_ub=np.vstack([matrix.T, -matrix.T]),
        b_ub=np.concatenate([upper, -lower]),
        A_eq=np.ones((1, len(combination))),
        b_eq=[1.0],
        method="highs",
    )
    candidates = [weights]
    if solved.status == 0:
        candidates.append((-solved.ineqlin.marginals).reshape(2, -1).T @ [1.0, -1.0])
    return min(
        float((combination - matrix @ v).max() + upper @ np.maximum(v, 0) - lower @ np.maximum(-v, 0))
        for v in candidates
    )
