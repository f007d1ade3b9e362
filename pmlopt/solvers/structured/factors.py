"""Cholesky factorizations: batches of small systems, and one large by LAPACK."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import suppress
from functools import cache
from typing import Any, NamedTuple

import numpy as np

from pmlopt.core.numbers.arrays import FloatArray


def factor_cholesky(systems: FloatArray) -> FloatArray:
    """Compute (K, K, M) Cholesky factors of a batch of M systems."""
    if len(systems) == 1:
        return np.sqrt(systems)
    factor = np.zeros_like(systems)
    for j in range(len(systems)):
        column = systems[j:, j] - (factor[j:, :j] * factor[j, :j]).sum(axis=1)
        factor[j:, j] = column / np.sqrt(column[0])
    return factor


def factor_of_squares(rows: FloatArray) -> FloatArray:
    """Compute (k, k, M) Cholesky factors of `sum_i rows_i rows_i'` by orthogonal reduction.

    The modified Gram-Schmidt process on the columns of the rows, which is backward stable for the factor.
    """
    size = rows.shape[1]
    if size == 1:
        return np.asarray(np.sqrt((rows * rows).sum(axis=0))[None])
    columns = [rows[:, j] for j in range(size)]
    factor = np.zeros((size, size, rows.shape[2]), rows.dtype)
    for j in range(size):
        factor[j, j] = np.sqrt((columns[j] * columns[j]).sum(axis=0))
        unit = columns[j] / factor[j, j]
        for i in range(j + 1, size):
            factor[i, j] = (unit * columns[i]).sum(axis=0)
            columns[i] = columns[i] - factor[i, j] * unit
    return factor


def substitute_forward(factor: FloatArray, parts: Sequence[FloatArray]) -> list[FloatArray]:
    """Solve lower triangular systems by forward substitution, batched over outputs."""
    found: list[FloatArray] = []
    for row, part in zip(factor, parts, strict=True):
        rest = part
        for number, there in zip(row, found, strict=False):
            rest = rest - number * there
        found.append(rest / row[len(found)])
    return found


def solve_positive(systems: FloatArray, right: FloatArray) -> FloatArray:
    """Solve (K, K, M) positive definite systems for (K, M) right sides; not finite where one is singular.

    Many small systems are factored side by side, few large ones one after another by LAPACK.
    """
    size, count = right.shape
    if size < 8 or count > size:
        return solve_factored(factor_cholesky(systems), right)
    found = np.full(right.shape, np.nan)
    for place in range(count):
        with suppress(np.linalg.LinAlgError):
            found[:, place] = np.linalg.solve(systems[:, :, place], right[:, place])
    return found


def solve_factored(factor: FloatArray, right: FloatArray) -> FloatArray:
    """Solve `factor factor' x = right` for (K, M) right-hand sides."""
    if not len(right):
        return right
    if len(right) == 1:
        return np.asarray(right / factor[0] / factor[0])
    found = substitute_forward(factor, list(right))
    for i in reversed(range(len(found))):
        for j in range(i + 1, len(found)):
            found[i] = found[i] - factor[j, i] * found[j]
        found[i] = found[i] / factor[i, i]
    return np.array(found)


class LapackPrecision(NamedTuple):
    """LAPACK routines of one precision with its rounding unit.

    Attributes:
        syrk: adds the product of a matrix with its transpose.
        factorise: by Cholesky's method.
        solve: with such a factor.
        shifts: added to the unit diagonal of a system that rounding has made indefinite, one after another;
            refinement mends the step.
        residual_atol: a step that leaves more than this of the coupling rows or the means is refined.
    """

    syrk: Callable[..., Any]
    factorise: Callable[..., Any]
    solve: Callable[..., Any]
    shifts: tuple[float, ...]
    residual_atol: float


@cache
def get_lapack(single: bool) -> LapackPrecision:
    """Return the LAPACK routines in single or double precision."""
    from scipy.linalg import blas, lapack

    if single:
        return LapackPrecision(blas.ssyrk, lapack.spotrf, lapack.spotrs, (0.0, 1e-6, 1e-5), 1e-5)
    return LapackPrecision(
        blas.dsyrk, lapack.dpotrf, lapack.dpotrs, (0.0, 1e-13, 1e-11, 1e-9), 1e-11
    )
