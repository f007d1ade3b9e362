"""Sets of joint laws by their vertices: what outcomes tell most of a value, and every pair of laws."""

from __future__ import annotations

import itertools
import math

import cvxpy as cp
import numpy as np
from oracles.designs import FloatArray
from oracles.divergence_balls import SetKind, find_worst_prior
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


def find_worst_joint_law(
    law: tuple[SetKind, FloatArray, float],
    given: list[tuple[SetKind, FloatArray, float]],
    column: FloatArray,
    value: int,
) -> tuple[float, FloatArray]:
    """The largest `Q(y | s) / Q(y)` of an outcome with a column, and an (S, N) joint law at which it is.

    Each set is a kind around a centre with a radius, by its definition.
    """
    rows = np.array([find_worst_prior(*one, column)[1] for one in given])
    rows[value] = find_worst_prior(*given[value], 1 - column)[1]
    weights = find_worst_prior(*law, rows @ column)[1]
    return float(rows[value] @ column / (weights @ rows @ column)), weights[:, None] * rows


def best_gain_about(
    joint: FloatArray,
    law: tuple[SetKind, FloatArray, float],
    given: list[tuple[SetKind, FloatArray, float]],
    gains: FloatArray,
    epsilon: float,
) -> tuple[float, float]:
    """Bounds on the best expected gain under PML about a secret over joint laws, by cutting planes."""
    p, found, bound = joint.sum(axis=0), [joint], math.exp(epsilon)
    low = high = math.inf
    for _ in range(40):
        mechanism = cp.Variable(gains.shape, nonneg=True)
        rules = [cp.sum(mechanism, axis=1) == 1]
        for one in found:
            shares = one / one.sum(axis=1, keepdims=True)
            rules += [row @ mechanism <= bound * (one.sum(axis=0) @ mechanism) for row in shares]
        problem = cp.Problem(cp.Maximize(cp.sum(cp.multiply(p[:, None] * gains, mechanism))), rules)
        problem.solve(solver=cp.HIGHS)
        high = float(problem.value)
        matrix = np.maximum(mechanism.value, 0.0)
        matrix /= matrix.sum(axis=1, keepdims=True)
        output, theta = p @ matrix, 0.0
        for column, mean in zip(matrix.T, output, strict=True):
            top = float(column.max())
            for value in range(len(joint)) if top > 1e-9 else ():
                ratio, worst = find_worst_joint_law(law, given, column / top, value)
                found.append(worst)
                # mixed with a constant column of the same mean: M + t (c - M) <= e^eps (Q + t (c - Q))
                outcome = float(worst.sum(axis=0) @ column)
                over = (ratio - bound) * outcome
                if over > 0:
                    theta = max(theta, over / (over + (bound - 1) * mean))
        mixed = (1 - theta) * matrix + theta * output
        low = float((p[:, None] * gains * mixed).sum())
        if high - low <= 3e-7:
            break
    return low, high
