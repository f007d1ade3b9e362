"""Systems of few unknowns, one for each output, all at once: the outputs are the last axis."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from pmlopt.core.arrays import FloatArray


def cholesky(systems: FloatArray) -> FloatArray:
    """(K, K, M) lower factors of M positive definite systems (K, K, M)."""
    if len(systems) == 1:
        return np.sqrt(systems)
    factor = np.zeros_like(systems)
    for j in range(len(systems)):
        factor[j, j] = np.sqrt(systems[j, j] - (factor[j, :j] ** 2).sum(axis=0))
        for i in range(j + 1, len(systems)):
            factor[i, j] = (systems[i, j] - (factor[i, :j] * factor[j, :j]).sum(axis=0)) / factor[j, j]
    return factor


def factor_of_squares(rows: FloatArray) -> FloatArray:
    """(k, k, M) lower factors of `sum_i rows_i rows_i'`, from the rows (n, k, M) without forming it.

    The modified Gram-Schmidt process on the columns of the rows, which is backward stable for the factor.
    """
    size = rows.shape[1]
    if size == 1:
        return np.asarray(np.sqrt((rows * rows).sum(axis=0))[None])
    columns = [rows[:, j] for j in range(size)]
    factor = np.zeros((size, size, rows.shape[2]), rows.dtype)
    for j in range(size):
        factor[j, j] = np.sqrt((columns[j] * columns[j]).sum(axis=0))
        if j + 1 < size:
            unit = columns[j] / factor[j, j]
        for i in range(j + 1, size):
            factor[i, j] = (unit * columns[i]).sum(axis=0)
            columns[i] = columns[i] - factor[i, j] * unit
    return factor


def forward(factor: FloatArray, parts: Sequence[FloatArray]) -> list[FloatArray]:
    """The solutions of `factor x = parts`, for parts of any shape with the outputs as the last axis."""
    found: list[FloatArray] = []
    for row, part in zip(factor, parts, strict=True):
        rest = part
        for number, there in zip(row, found, strict=False):
            rest = rest - number * there
        found.append(rest / row[len(found)])
    return found


def solved(factor: FloatArray, right: FloatArray) -> FloatArray:
    """(K, M) the solutions of `factor factor' x = right`."""
    if not len(right):
        return right
    if len(right) == 1:
        return np.asarray(right / factor[0] / factor[0])
    found = forward(factor, list(right))
    for i in reversed(range(len(found))):
        for j in range(i + 1, len(found)):
            found[i] = found[i] - factor[j, i] * found[j]
        found[i] = found[i] / factor[i, i]
    return np.array(found)
