"""Multipliers of ratio bounds for the best columns: linear programs that differ in their costs alone."""

from __future__ import annotations

from typing import Any

import numpy as np

from pmlopt.arrays import FloatArray


def multipliers(lifts: Any, gains: FloatArray) -> FloatArray:
    """(K, M) multipliers for each column of gains: `max <g, u>`, `lifts u <= 0`, `<1, u> = 1`, `u >= 0`.

    u is the column times the prior. HiGHS starts each from the basis of the one before.
    """
    from scipy import sparse

    from pmlopt.backends import highs

    k, n = lifts.shape
    system = sparse.vstack([lifts, np.ones((1, n))], format="csc")
    model = highs.columnwise(
        np.zeros(n),
        (0.0, np.inf),
        (np.append(np.full(k, -np.inf), 1.0), np.append(np.zeros(k), 1.0)),
        (system.indptr, system.indices, system.data),
    )
    solver = highs.loaded(model, highs.RESTARTED)
    every = np.arange(n, dtype=np.int32)
    weights = np.zeros((k, gains.shape[1]))
    for y, column in enumerate(gains.T):
        solver.changeColsCost(n, every, -column)
        solver.run()
        duals = np.array(solver.getSolution().row_dual)
        if len(duals) == k + 1 and np.isfinite(duals).all():
            weights[:, y] = np.maximum(-duals[:k], 0.0)
    return weights
