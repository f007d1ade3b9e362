"""Sets of joint laws by their vertices: what outcomes tell most of a value, and every pair of laws."""

from __future__ import annotations

import itertools
import math

import numpy as np
from oracles.designs import FloatArray
from oracles.ratio_bounds import Pairs


def ball_vertices(center: FloatArray, radius: float) -> FloatArray:
    """(K, N) points with all vertices of an l1 ball: letters emptied in an order, and one that gains."""
    n, found = len(center), []
    for order in itertools.permutations(range(n)):
        taken, left = np.zeros(n), radius / 2
        for x in order:
            taken[x] = min(center[x], left)
            left -= taken[x]
        for gains in range(n):
            law = center - taken
            law[gains] += taken.sum()
            found.append(law)
    return np.unique(np.array(found).round(14), axis=0)


def laws_of(law: FloatArray, conditionals: list[FloatArray]) -> list[FloatArray]:
    """(S, N) joint laws: each law of the secret with each choice of laws of the data."""
    return [
        weights[:, None] * np.array(rows)
        for weights in law
        for rows in itertools.product(*conditionals)
    ]


def most_told(joints: list[FloatArray], matrix: FloatArray) -> FloatArray:
    """(S, M) the largest `Q(y | s) / Q(y)` over joint laws in which each value has positive probability."""
    found = [
        (joint @ matrix) / joint.sum(axis=1, keepdims=True) / (joint.sum(axis=0) @ matrix)
        for joint in joints
    ]
    return np.asarray(np.max(found, axis=0))


def pairs_over(joints: list[FloatArray], epsilon: float) -> Pairs:
    """Each law of the data given a value beside e^epsilon times the law of the data, for each joint law."""
    return [
        (row / row.sum(), math.exp(epsilon) * joint.sum(axis=0))
        for joint in joints
        for row in joint
    ]
