"""Among optimal mechanisms over the same columns, one with the fewest outputs."""

from __future__ import annotations

import math

import highspy
import numpy as np

from pmlopt.arrays import FloatArray, IntArray
from pmlopt.backends import highs
from pmlopt.backends.restricted_master import Master

_OPTIMAL_FACE_TOLERANCE = 1e-12
"""Columns whose reduced cost is below this share of the worths' size are optimal."""

MOST_LETTERS_SEARCHED = 30
"""Alphabets up to which fewer outputs are looked for; beyond, a vertex of the master is taken as it is."""

MOST_CANDIDATES = 100
"""Columns of the optimal face that are looked at."""

MAX_SUBSET_NODES = 20
"""Nodes of branch and bound that the search for fewer outputs may take."""


def fewest_outputs(
    lifts: FloatArray, worths: FloatArray, duals: FloatArray, weights: FloatArray
) -> tuple[FloatArray, FloatArray]:
    """The columns and weights of an optimal mechanism with few outputs.

    Every optimal mechanism over these columns uses only those of reduced cost zero. A mixed-integer
    program with one 0/1 variable for each looks for the fewest, from the `weights` in hand; its size and its
    nodes are limited, so that on large alphabets it is the fewest found.

    Args:
        lifts: (N, K) columns of mean one.
        worths: (K,).
        duals: (N,) optimal multipliers of `lifts q = 1`.
        weights: (K,) optimal weights.

    Raises:
        ArithmeticError: all weights are zero.
    """
    peaks = lifts.max(axis=0)
    chosen, kept = _fewest(lifts / peaks, worths / peaks, duals, weights * peaks, peaks)
    return lifts[:, chosen], kept / peaks[chosen]


def _fewest(
    lifts: FloatArray, worths: FloatArray, duals: FloatArray, weights: FloatArray, peaks: FloatArray
) -> tuple[IntArray, FloatArray]:
    """The same for columns whose largest entries, the peaks, were made 1; as places and weights."""
    used = np.flatnonzero(weights > 1e-11)
    if len(used) > len(lifts):  # an interior point: take a vertex of what it uses
        used = used[np.flatnonzero(Master(lifts[:, used], worths[used]).solve()[1] > 1e-11)]
    chosen, polished = _polished(lifts, used)
    reduced = duals @ lifts - worths
    face = np.flatnonzero(reduced <= _OPTIMAL_FACE_TOLERANCE * max(1.0, float(np.abs(worths).max())))
    face = np.union1d(chosen, face[np.argsort(reduced[face], kind="stable")[:MOST_CANDIDATES]])
    least = math.ceil(float(peaks[face].min()) * (1 - 1e-9))
    if len(chosen) <= least or len(face) == len(chosen) or len(lifts) > MOST_LETTERS_SEARCHED:
        return chosen, polished
    fewer = _search(lifts[:, face], len(chosen) - 1)
    if fewer is None:
        return chosen, polished
    found, weights_found = _polished(lifts, face[fewer])
    if len(found) < len(chosen) and _off(lifts[:, found], weights_found) <= 1e-12:
        return found, weights_found
    return chosen, polished


def _polished(lifts: FloatArray, used: IntArray) -> tuple[IntArray, FloatArray]:
    """Weights that meet the rows to rounding, and the columns that keep one."""
    from scipy.optimize import nnls

    if not len(used):
        raise ArithmeticError("no column has a weight")
    weights = np.asarray(np.linalg.lstsq(lifts[:, used], np.ones(len(lifts)), rcond=None)[0], dtype=float)
    if (weights < 0).any() or _off(lifts[:, used], weights) > 1e-12:
        weights = nnls(lifts[:, used], np.ones(len(lifts)))[0]
    kept = np.flatnonzero(weights > 0)
    return used[kept], weights[kept]


def _off(lifts: FloatArray, weights: FloatArray) -> float:
    return float(np.abs(lifts @ weights - 1).max())


def _search(lifts: FloatArray, at_most: int) -> IntArray | None:
    """The columns of a feasible mechanism with at most so many outputs, as few as found; None without."""
    from scipy import sparse

    n, k = lifts.shape
    matrix = np.zeros((n + k + 1, 2 * k))
    matrix[:n, :k] = lifts
    matrix[n : n + k, :k] = np.eye(k)  # no entry of a mechanism is above 1, so no weight is
    matrix[n : n + k, k:] = -np.eye(k)
    matrix[-1, k:] = 1.0
    by_column = sparse.csc_array(matrix)
    model = highs.columnwise(
        np.append(np.zeros(k), np.ones(k)),
        (0.0, 1.0),
        (
            np.concatenate([np.ones(n), np.full(k, -np.inf), [1.0]]),
            np.concatenate([np.ones(n), np.zeros(k), [float(at_most)]]),
        ),
        (by_column.indptr, by_column.indices, by_column.data),
    )
    model.integrality_ = [highspy.HighsVarType.kContinuous] * k + [highspy.HighsVarType.kInteger] * k
    solver = highs.loaded(model, _OPTIONS)
    solver.run()
    solution = solver.getSolution()
    if solver.getInfo().primal_solution_status != 2:  # feasible
        return None
    return np.flatnonzero(np.array(solution.col_value)[:k] > 1e-9)


_OPTIONS: dict[str, float | str] = {
    "presolve": "off",  # there is nothing to reduce, and it takes as long as the search
    "mip_max_nodes": MAX_SUBSET_NODES,
    "mip_feasibility_tolerance": 1e-9,
    "primal_feasibility_tolerance": 1e-9,
    "random_seed": 0,
}
