"""A vertex from a matrix near it: the equations that hold there almost, solved to the last digit."""

from __future__ import annotations

import numpy as np

from pmlopt.arrays import FloatArray

NEAR = 1e-6
"""How near an entry is to zero or to the largest of its output, as a share of that, to be taken for it."""

MAX_UNKNOWNS = 600
"""Unknowns up to which the equations are solved: a dense system, in a tenth of a second."""

STEPS = 4
"""Steps of Newton's method, from an error of 1e-9 to that of rounding."""


def vertex_near(laws: FloatArray, matrix: FloatArray, share: float) -> FloatArray | None:
    """The mechanism near a matrix whose outputs all have the same leakage, where the matrix's almost have it.

    With v[y] the largest entry of output y and s the share e^-level, the unknowns are v, s and the entries
    that are neither 0 nor v[y]. The equations are that rows sum to one, and `sum_x Q[x,y] P[x,y] = s v[y]`
    for the outputs that leak as much as any.

    Args:
        laws: (N, M) for each output the probabilities Q: the prior's, or over a set those of the worst prior.
        matrix: (N, M) near a vertex of the mechanisms of a least level.
        share: near e^-level, the best that is known of it.

    Returns:
        (N, M) entries, of which some may be a hair below 0; None where the system is too large or has no
        solution nearby.

    Examples:
        >>> near = np.array([[0.5 - 1e-9, 0.5 + 1e-9, 0], [0, 1, 0], [1, 0, 0]])
        >>> prior = np.array([[0.6], [0.2], [0.2]])
        >>> vertex_near(np.repeat(prior, 3, axis=1), near, 0.5).round(14) + 0.0
        array([[0.5, 0.5, 0. ],
               [0. , 1. , 0. ],
               [1. , 0. , 0. ]])
    """
    n, m = matrix.shape
    largest = matrix.max(axis=0)
    used = np.flatnonzero(largest > NEAR)
    at_most = (matrix >= largest * (1 - NEAR))[:, used]
    between = ~at_most & (matrix[:, used] > NEAR * largest[used])
    letter, output = np.nonzero(between)
    laws = laws[:, used]
    tight = np.flatnonzero((laws * matrix[:, used]).sum(axis=0) <= share * largest[used] * (1 + NEAR))
    k = len(used)
    if k + len(letter) + 1 > MAX_UNKNOWNS:
        return None
    sums = np.zeros((n, k + len(letter)))
    sums[:, :k] = at_most
    sums[letter, k + np.arange(len(letter))] = 1.0
    means = np.zeros((k, k + len(letter)))
    means[np.arange(k), np.arange(k)] = (laws * at_most).sum(axis=0)
    means[output, k + np.arange(len(letter))] = laws[letter, output]
    point = np.concatenate([largest[used], matrix[:, used][between], [share]])
    for _ in range(STEPS):
        values, at = point[:-1], point[-1]
        left = np.concatenate([sums @ values - 1, (means @ values)[tight] - at * values[tight]])
        slopes = np.zeros((len(left), len(point)))
        slopes[:n, :-1] = sums
        slopes[n:, :-1] = means[tight]
        slopes[n + np.arange(len(tight)), tight] -= at
        slopes[n:, -1] = -values[tight]
        point = point - np.linalg.lstsq(slopes, left, rcond=1e-12)[0]
    if not np.isfinite(point).all() or np.abs(point[:k] - largest[used]).max() > 1e-3:
        return None
    found = np.zeros((n, m))
    found[:, used] = at_most * point[:k]
    found[letter, used[output]] = point[k:-1]
    return found
