"""The least level by plain bisection over feasibility programs: a second implementation."""

from __future__ import annotations

import math

import numpy as np
from oracles.designs import FloatArray, pml_rows
from oracles.prior_sets import robust_rows
from scipy.optimize import linprog

from pmlopt.core.numbers.arrays import BoolArray


def feasible(
    p: FloatArray,
    allowed: BoolArray,
    level: float,
    gains: FloatArray | None = None,
    floor: float = 0.0,
) -> bool:
    """Whether a mechanism of this level emits allowed pairs only and has an expected gain of `floor`.

    For a (K, N) array p the level is over the convex hull of its rows.
    """
    n, m = allowed.shape
    rows = pml_rows(p, m, level) if p.ndim == 1 else robust_rows(p, m, level)
    right = np.zeros(len(rows))
    if gains is not None:
        rows = np.vstack([rows, -(p[:, None] * gains).ravel()])
        right = np.append(right, -floor)
    answer = linprog(
        np.zeros(n * m),
        A_ub=rows,
        b_ub=right,
        A_eq=np.kron(np.eye(n), np.ones((1, m))),
        b_eq=np.ones(n),
        bounds=[(0.0, float(value)) for value in allowed.ravel()],
        method="highs",
        options={"primal_feasibility_tolerance": 1e-10, "dual_feasibility_tolerance": 1e-10},
    )
    return bool(answer.status == 0)


def bisected(
    p: FloatArray, allowed: BoolArray, gains: FloatArray | None = None, floor: float = 0.0
) -> float:
    """The least level, to 1e-10: 0 where nothing needs to leak. Over a hull up to 16 nats, else inf."""
    low, high = 0.0, -math.log(p.min()) if p.ndim == 1 else 16.0
    if feasible(p, allowed, low, gains, floor):
        return 0.0
    if p.ndim == 2 and not feasible(p, allowed, high):
        return math.inf
    while high - low > 1e-10:
        middle = (low + high) / 2
        low, high = (low, middle) if feasible(p, allowed, middle, gains, floor) else (middle, high)
    return high
