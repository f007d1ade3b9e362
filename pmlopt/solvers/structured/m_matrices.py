"""Factors of the inverses of many M-matrices, by elimination without subtraction.

An M-matrix is given by its entries off the diagonal, which are at most 0, and its row sums. Elimination then
only adds numbers of one sign, but for the row sums, and each entry of a factor has nearly all its digits
however much the matrix is graded. Diagonals that are computed by subtraction have none left where a row
nearly sums to 0.

Source: W. K. Grassmann, M. I. Taksar, D. P. Heyman, Operations Research 33 (1985).
"""

from __future__ import annotations

import numpy as np

from pmlopt.core.numbers.arrays import FloatArray


def invert_by_factors(entries: FloatArray, row_sums: FloatArray) -> FloatArray:
    """Compute (B, N, N) upper triangular factors V of the inverses `V V'` of symmetric M-matrices.

    Args:
        entries: (B, N, N) of which the part above the diagonal is read; it becomes the answer.
        row_sums: (B, N), overwritten.
    """
    from scipy.linalg import lapack

    pivots = _eliminate(entries, row_sums)
    roots = np.sqrt(pivots)
    entries /= roots[:, :, None]
    size = entries.shape[1]
    each = np.arange(size)
    entries[:, each, each] = roots
    upper = each[:, None] <= each
    for matrix in entries:
        # in the order of Fortran the transpose is what is stored: a lower triangle
        inverse, _ = lapack.dtrtri(matrix.T, lower=1, overwrite_c=1)
        np.multiply(inverse.T, upper, out=matrix)
    return entries


def _eliminate(entries: FloatArray, row_sums: FloatArray) -> FloatArray:
    """Eliminate the letters one after another in blocks, in place, and return the (B, N) pivots."""
    count, size, _ = entries.shape
    pivots = np.empty((count, size))
    # rows that are eliminated one by one: with 16 of them products of matrices do most of the work
    block = 16
    for first in range(0, size, block):
        last = min(size, first + block)
        if first:
            above = entries[:, :first, first:]
            shares = (above[:, :, : last - first] / pivots[:, :first, None]).transpose(0, 2, 1)
            entries[:, first:last, first:] -= shares @ above
            row_sums[:, first:last] -= (shares @ row_sums[:, :first, None])[:, :, 0]
        for row in range(first, last):
            rest = entries[:, row, row + 1 :]
            if row > first:
                share = entries[:, first:row, row] / pivots[:, first:row]
                rest -= (share[:, None] @ entries[:, first:row, row + 1 :])[:, 0]
                row_sums[:, row] -= (share * row_sums[:, first:row]).sum(axis=1)
            # positive but for rounding: a pivot is what the matrix leaves of the letter's own weight
            pivots[:, row] = np.maximum(row_sums[:, row] - rest.sum(axis=1), 1e-290)
    return pivots
