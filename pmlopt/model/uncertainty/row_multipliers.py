"""Multipliers of linear rows on columns, by one linear program for each column of gains."""

from __future__ import annotations

from typing import Any

import numpy as np

from pmlopt.core.lazy_imports import sparse
from pmlopt.core.numbers.arrays import FloatArray, IntArray


def find_row_multipliers(
    p: FloatArray, gains: FloatArray, rows: Any, least: FloatArray
) -> FloatArray:
    """Find (R, M) optimal multipliers of the rows in `max <p g, v>`, `<p, v> = 1`, for each column g.

    HiGHS starts each from the basis of the one before.

    Args:
        p: (N,) the prior.
        gains: (N, M) the columns g.
        rows: (R, N + U) sparse, `rows (v, u) <= 0` with v >= 0 and auxiliary variables u.
        least: (U,) lower bounds of u.
    """
    from pmlopt.solvers import highs

    n = len(p)
    k = rows.shape[0]
    masses = np.append(p, np.ones(len(least)))
    # the row of the mean comes last; entries are of the variables p v, in which it has ones
    divided, shifts = _divide_rows(rows, masses)
    entries = np.append(divided, np.ones(n))
    places = np.append(rows.indices, np.arange(n)), np.append(rows.indptr, len(entries))
    system = sparse.csr_array((entries, *places), (k + 1, len(masses)))
    ends = np.append(np.full(k, -np.inf), 1.0), np.append(np.zeros(k), 1.0)
    bounds = np.append(np.zeros(n), least), np.inf
    model = highs.build_sparse_model(np.zeros(len(masses)), bounds, ends, system)
    every = np.arange(n, dtype=np.int32)
    weights = np.zeros((k, gains.shape[1]))
    with highs.lend_solver(model, highs.RESTART_OPTIONS) as solver:
        for y, column in enumerate(gains.T):
            solver.changeColsCost(n, every, -column)
            solver.run()
            duals = np.array(solver.getSolution().row_dual)
            if len(duals) == k + 1 and np.isfinite(duals).all():
                weights[:, y] = np.ldexp(np.maximum(-duals[:k], 0.0), -shifts)
    return weights


def _divide_rows(rows: Any, masses: FloatArray) -> tuple[FloatArray, IntArray]:
    """Divide the entries of sparse rows by masses, and rows of large quotients by powers of two.

    Next to a rare letter a quotient is beyond what a solver takes, and may be beyond what a float holds.

    Returns:
        The entries, and the exponent of the power of each row.
    """
    tops, high = np.frexp(rows.data)
    bottoms, low = np.frexp(masses[rows.indices])
    sizes = np.where(tops != 0, high - low, np.iinfo(np.int32).min)
    lengths = np.diff(rows.indptr)
    largest = np.zeros(rows.shape[0], dtype=np.int64)
    filled = np.flatnonzero(lengths)
    if len(filled):
        largest[filled] = np.maximum.reduceat(sizes, rows.indptr[filled])
    # HiGHS refuses programs with a coefficient above 1e15; smaller ones are left as they are
    shifts = np.where(largest > 40, largest, 0)
    entries = np.ldexp(tops / bottoms, (high - low) - np.repeat(shifts, lengths))
    return entries, shifts
