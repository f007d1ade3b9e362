"""Dual multipliers over a set of priors in the form of measures: priors times masses."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from pmlopt.core.arrays import FloatArray
from pmlopt.core.lazy_imports import cp
from pmlopt.solvers.approximate_minimum import minimize_approximately


def find_best_measures(
    constrain: Callable[[cp.Expression, cp.Expression], list[cp.Constraint]],
    p: FloatArray,
    gains: FloatArray,
    exp_neg_epsilon: float,
) -> FloatArray:
    """Find (N, M) measures of which `bound_gain_by_measures` proves little, by a convex program; zeros, which
    prove the largest gain, where it fails.

    The least tau of a column is `min tau` under `sum_x s[x] <= e^-eps theta` and
    `s >= max(0, p (g - tau) + theta Q)`, which is jointly convex in tau, s and the measure theta Q.

    Args:
        constrain: the constraints by which measures are priors of the set times their masses.
        p: (N,) the prior of the design.
        gains: (N, M) the columns g.
        exp_neg_epsilon: in (0, 1].
    """
    unit = float(np.ptp(gains, axis=0).max())
    if unit == 0 or exp_neg_epsilon >= 1:
        return np.zeros(gains.shape)
    lowest = gains.min(axis=0)
    measures, shares = cp.Variable(gains.shape, nonneg=True), cp.Variable(gains.shape, nonneg=True)
    masses, tau = (cp.Variable((1, gains.shape[1]), nonneg=True) for _ in range(2))
    costs = p[:, None] * (gains - lowest) / unit
    rules = [
        costs - p[:, None] @ tau + measures <= shares,
        cp.sum(shares, axis=0, keepdims=True) <= exp_neg_epsilon * masses,
        *constrain(measures, masses),
    ]
    minimize_approximately(cp.sum(tau), rules)
    if measures.value is None or not np.isfinite(measures.value).all():
        return np.zeros(gains.shape)
    return np.asarray(unit * np.maximum(measures.value, 0.0))
