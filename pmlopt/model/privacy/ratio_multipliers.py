"""Multipliers of ratio bounds for the best columns: linear programs that differ in their costs alone."""

from __future__ import annotations

import math
from collections.abc import Iterator
from itertools import chain, combinations
from typing import Any

import numpy as np

from pmlopt.core.arrays import FloatArray, IntArray

_SINGULAR = 1e-300
"""Minors below this are zero: the equations of a basis depend on one another."""

_FEASIBILITY_TOLERANCE = 1e-12
"""Violation of a bound by an extreme column, as a share of its terms, that is put down to rounding."""


def basic_columns(pairs: FloatArray, sizes: FloatArray, rows: IntArray, letters: IntArray) -> FloatArray:
    """(N, K') the columns of bases that are non-negative and within every pair.

    Args:
        pairs: (K, N) numerators less e^eps times denominators.
        sizes: (K, N) their sums, to measure violations by.
        rows: (R, t) the pairs that hold with equality.
        letters: (L, t + 1) the letters outside of which the column is zero; each with each of the rows.
    """
    tight = rows.shape[1]
    minors = np.ones((len(rows), len(letters), tight + 1))
    if tight:
        systems = pairs[rows][:, :, letters].transpose(0, 2, 1, 3)  # (R, L, t, t + 1)
        for left in range(tight + 1):
            others = [place for place in range(tight + 1) if place != left]
            minors[:, :, left] = (-1) ** left * np.linalg.det(systems[..., others])
    minors = minors.reshape(-1, tight + 1)
    largest = np.abs(minors).max(axis=1, keepdims=True)
    sign = np.where(minors.sum(axis=1, keepdims=True) < 0, -1.0, 1.0)
    with np.errstate(divide="ignore", invalid="ignore"):
        entries = sign * minors / largest
    able = (largest[:, 0] > _SINGULAR) & (entries >= -_FEASIBILITY_TOLERANCE).all(axis=1)
    columns = np.zeros((pairs.shape[1], int(able.sum())))
    places = np.tile(letters, (len(rows), 1))[able]
    np.put_along_axis(columns, places.T, np.maximum(entries[able].T, 0.0), axis=0)
    met = (pairs @ columns <= _FEASIBILITY_TOLERANCE * (sizes @ columns)).all(axis=0)
    return np.asarray(columns[:, met])


def subsets(size: int, count: int) -> IntArray:
    """(K, count) the subsets of this many of `size` things."""
    number = math.comb(size, count)
    flat = np.fromiter(chain.from_iterable(combinations(range(size), count)), dtype=int, count=number * count)
    return flat.reshape(number, count)


def chunks(items: IntArray, most: int) -> Iterator[IntArray]:
    """The items, so many at a time."""
    for first in range(0, len(items), most):
        yield items[first : first + most]


def joint_multipliers(pairs: Any, p: FloatArray, gains: FloatArray) -> FloatArray | None:
    """(K, M) multipliers of the pairs in `max sum_xy p[x] g[x,y] P[x,y]` over all columns and rows at once.

    `pairs P <= 0`, `sum_y P[x,y] = 1`, `P >= 0`. Next to rare letters these are sharper than multipliers of
    single columns: what HiGHS leaves of a letter counts by its probability there.

    Args:
        pairs: (K, N) sparse, numerators less e^eps times denominators, none of them zero.
        p: (N,) the prior.
        gains: (N, M).

    Returns:
        None where HiGHS has no multipliers.
    """
    from scipy import sparse

    from pmlopt.solvers import highs

    (k, n), m = pairs.shape, gains.shape[1]
    unit = abs(pairs).max(axis=1).toarray().ravel()
    costs = (p[:, None] * gains).T.ravel()
    scale = float(np.abs(costs).max()) or 1.0
    system = sparse.vstack(
        [
            sparse.kron(sparse.eye_array(m), sparse.diags_array(1 / unit) @ pairs),
            sparse.kron(np.ones((1, m)), sparse.eye_array(n)),
        ],
        format="csc",
    )
    model = highs.columnwise(
        -costs / scale,
        (0.0, np.inf),
        (np.append(np.full(k * m, -np.inf), np.ones(n)), np.append(np.zeros(k * m), np.ones(n))),
        (system.indptr, system.indices, system.data),
    )
    solver = highs.loaded(model, highs.RESTARTED)
    solver.run()
    duals = np.array(solver.getSolution().row_dual)
    if len(duals) != k * m + n or not np.isfinite(duals).all():
        return None
    return np.asarray(np.maximum(-duals[: k * m], 0.0).reshape(m, k).T * scale / unit[:, None])
