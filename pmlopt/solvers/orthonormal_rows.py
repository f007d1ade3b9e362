"""Linear programs over columns that differ by less than a solver sees."""

from __future__ import annotations

import numpy as np

from pmlopt.core.lazy_imports import optimize
from pmlopt.core.numbers.arrays import FloatArray
from pmlopt.solvers.solver_result import NO_DEADLINE, TIME_LIMIT, Deadline


def solve_with_orthonormal_rows(
    lifts: FloatArray, worths: FloatArray, deadline: Deadline = NO_DEADLINE
) -> tuple[FloatArray, FloatArray]:
    """Solve `max worths . w, lifts w = 1, w >= 0` by equivalent rows that are orthonormal.

    At an epsilon of 1e-9 about a secret, columns come in groups that differ by 1e-9, and the rows hold only
    for the right mixture within each group: a simplex method, whose tolerance is 1e-7, does not see the
    difference. With the singular value decomposition `lifts = U S V'` the rows `V' w = S^-1 U' 1` have no
    small directions left. Their multipliers y' give those of the rows, `U S^-1 y'`.

    Args:
        lifts: (N, K) columns.
        worths: (K,) of them.
        deadline: of the solve.

    Returns:
        (K,) weights and (N,) multipliers.

    Raises:
        ArithmeticError: the program has no end; the message is `TIME_LIMIT` where the time is over.

    Examples:
        >>> columns = np.array([[1.0, 2.0, 0.0], [1.0, 0.0, 2.0]])
        >>> weights, prices = solve_with_orthonormal_rows(columns, np.array([0.0, 1.0, 1.0]))
        >>> weights.round(9).tolist(), prices.round(9).tolist()
        ([0.0, 0.5, 0.5], [0.5, 0.5])
    """
    left, sizes, right = np.linalg.svd(lifts, full_matrices=False)
    rank = int((sizes > 1e-15 * sizes[0]).sum())
    back = left[:, :rank] / sizes[:rank]
    left_seconds = deadline.remaining(0.2)
    solved = optimize.linprog(
        -worths,
        A_eq=right[:rank],
        b_eq=back.sum(axis=0),
        method="highs-ds",
        options={} if left_seconds is None else {"time_limit": left_seconds},
    )
    if solved.status != 0:
        late = left_seconds is not None and solved.status == 1
        raise ArithmeticError(TIME_LIMIT if late else f"the program over columns: {solved.message}")
    return np.asarray(solved.x), np.asarray(back @ -solved.eqlin.marginals)
