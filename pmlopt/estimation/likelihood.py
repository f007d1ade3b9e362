"""The maximum of the likelihood of counts, a concave function of the frequencies, by an interior point."""

from __future__ import annotations

import numpy as np

from pmlopt.arrays import FloatArray
from pmlopt.errors import SolverError

MAX_ITERATIONS = 300
"""Newton steps after which the search is given up; problems of 2 to 200 letters take 10 to 40."""

OPTIMALITY = 1e-12
"""The largest slope of the mean log-likelihood, less one, at which frequencies are taken for the maximum."""

STEP_FRACTION = 0.99
"""The share of the way to the boundary that one step may go."""


def most_likely(matrix: FloatArray, counts: FloatArray) -> FloatArray:
    """(N,) the frequencies f that maximise the likelihood `sum_y counts[y] log (f P)[y]`.

    With the shares w = counts / n it is the maximum of `w log(f P) - sum f` over f >= 0, where the sum is one
    by itself; f is optimal iff no `g[x] = sum_y P[x,y] w[y] / (f P)[y]` is above one. It is found by
    primal-dual Newton steps with a decreasing barrier, each shortened until the barrier's function decreases.

    Args:
        matrix: (N, M) a mechanism.
        counts: (M,) how often each output was seen, 0 for those with a column of zeros, not all 0.

    Raises:
        SolverError: the steps did not end, which is not expected.

    Source: [boyd2004convex, Section 11.7] (the steps).

    Examples:
        >>> most_likely(np.array([[0.75, 0.25], [0.25, 0.75]]), np.array([60.0, 40.0])).round(9)
        array([0.7, 0.3])
    """
    seen = counts > 0
    columns, shares = matrix[:, seen], counts[seen] / counts.sum()
    f = np.full(len(matrix), 1.0 / len(matrix))
    z = np.full(len(matrix), 1.0)
    for _ in range(MAX_ITERATIONS):
        law = f @ columns
        slopes = columns @ (shares / law)
        if slopes.max() - 1 <= OPTIMALITY and abs(f @ slopes - f.sum()) <= OPTIMALITY:
            return np.asarray(f / f.sum())
        barrier = 0.1 * float((f * z).mean())
        curvature = (columns * (shares / law**2)) @ columns.T
        step = np.linalg.solve(curvature + np.diag(z / f), barrier / f - 1 + slopes)
        dual_step = curvature @ step + (1 - slopes - z)
        f = f + _length(f, step, columns, shares, barrier) * step
        shrinking = dual_step < 0
        most = float((-z[shrinking] / dual_step[shrinking]).min(initial=np.inf))
        z = z + min(1.0, STEP_FRACTION * most) * dual_step
    raise SolverError("the likelihood was not maximised: use the linear method, and report these counts")


def _length(
    f: FloatArray, step: FloatArray, columns: FloatArray, shares: FloatArray, barrier: float
) -> float:
    """The length of a step that stays inside and does not increase the barrier's function."""
    shrinking = step < 0
    length = min(1.0, STEP_FRACTION * float((-f[shrinking] / step[shrinking]).min(initial=np.inf)))

    def height(point: FloatArray) -> float:
        return float(point.sum() - shares @ np.log(point @ columns) - barrier * np.log(point).sum())

    start = height(f)
    while height(f + length * step) > start + 1e-13 * (1 + abs(start)) and length > 1e-12:
        length /= 2
    return length
