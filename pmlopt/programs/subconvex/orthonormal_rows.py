"""Linear programs over columns that differ by less than a solver sees."""

from __future__ import annotations

import numpy as np
from scipy import optimize

from pmlopt.core.arrays import FloatArray


def solve_with_orthonormal_rows(
    lifts: FloatArray, worths: FloatArray
) -> tuple[FloatArray, FloatArray]:
    """Solve `max worths . w, lifts w = 1, w >= 0` by equivalent rows that are orthonormal.

    At an epsilon of 1e-9 about a secret, columns come in groups that differ by 1e-9, and the rows hold only
    for the right mixture within each group: a simplex method, whose tolerance is 1e-7, does not see the
    difference. With the singular value decomposition `lifts = U S V'` the rows `V' w = S^-1 U' 1` have no
    small directions left. Their multipliers y' give those of the rows, `U S^-1 y'`.

    Args:
        lifts: (N, K) columns.
        worths: (K,) of them.

    Returns:
        (K,) weights and (N,) multipliers.

    Raises:
        ArithmeticError: the program has no end.

    Examples:
        >>> columns = np.array([[1.0, 2.0, 0.0], [1.0, 0.0, 2.0]])
        >>> weights, prices = solve_with_orthonormal_rows(columns, np.array([0.0, 1.0, 1.0]))
        >>> weights.round(9).tolist(), prices.round(9).tolist()
        ([0.0, 0.5, 0.5], [0.5, 0.5])
    """
    left, sizes, right = np.linalg.svd(lifts, full_matrices=False)
    rank = int((sizes > 1e-15 * sizes[0]).sum())
    back = left[:, :rank] / sizes[:rank]
    solved = optimize.linprog(-worths, A_eq=right[:rank], b_eq=back.sum(axis=0), method="highs-ds")
    if solved.x is None:
        raise ArithmeticError(f"the linear program over columns: {solved.message}")
    return np.asarray(solved.x), np.asarray(back @ -solved.eqlin.marginals)
