"""The best expected gain over a set of priors, by duality of its definition: a second implementation."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from oracles.designs import FloatArray, linear_program
from scipy.sparse import block_diag, coo_array, hstack, kron

from pmlopt import Box, ConvexHull, L1Ball
from pmlopt.model.uncertainty import PriorSet


@dataclass(frozen=True)
class Polytope:
    """`z >= 0`, `A z <= b`, `C z = d`; the first entries of z are the prior Q."""

    a: FloatArray
    b: FloatArray
    c: FloatArray
    d: FloatArray


def polytope(priors: PriorSet) -> Polytope:
    """The definition of a set."""
    n = priors.size
    one, eye = np.ones((1, n)), np.eye(n)
    if isinstance(priors, L1Ball):  # |Q - p| <= t, sum t <= radius
        p = priors.center.pmf
        rows = np.vstack(
            [np.hstack([eye, -eye]), np.hstack([-eye, -eye]), np.hstack([0 * one, one])]
        )
        right = np.concatenate([p, -p, [priors.radius]])
        return Polytope(rows, right, np.hstack([one, 0 * one]), np.ones(1))
    if isinstance(priors, Box):
        return Polytope(
            np.vstack([eye, -eye]), np.concatenate([priors.upper, -priors.lower]), one, np.ones(1)
        )
    assert isinstance(priors, ConvexHull)  # Q is a mixture
    points, k = priors.points, len(priors.points)
    mixed = np.hstack([eye, -points.T])
    whole = np.hstack([0 * one, np.ones((1, k))])
    return Polytope(
        np.zeros((0, n + k)), np.zeros(0), np.vstack([mixed, whole]), np.append(np.zeros(n), 1.0)
    )


def robust_optimum(p: FloatArray, priors: PriorSet, epsilon: float, gains: FloatArray) -> float:
    """Max `sum p g P`, `e^-eps max_x P[x,y] <= min_Q <Q, P[:,y]>` for each y, the minimum by its dual.

    Each output has its column v, a bound h on its entries, and the multipliers y >= 0 and z of the set:
    `C^T z - A^T y <= (v, 0)` and `e^-eps h <= d z - b y`.
    """
    (n, m), q = gains.shape, polytope(priors)
    ups, free, wide = len(q.b), len(q.d), q.a.shape[1]
    per = n + 1 + ups + free
    dual = np.zeros((wide, per))
    dual[:n, :n] = -np.eye(n)
    dual[:, n + 1 : n + 1 + ups] = -q.a.T
    dual[:, n + 1 + ups :] = q.c.T
    level = np.concatenate([np.zeros(n), [math.exp(-epsilon)], q.b, -q.d])
    peak = np.hstack([np.eye(n), -np.ones((n, 1)), np.zeros((n, ups + free))])
    block = coo_array(np.vstack([dual, level, peak]))
    column = hstack([coo_array(np.eye(n)), coo_array((n, per - n))])
    cost = np.zeros((m, per))
    cost[:, :n] = -(p[:, None] * gains).T
    answer = linear_program(
        cost.ravel(),
        A_ub=block_diag([block] * m, format="csr"),
        b_ub=np.zeros(m * block.shape[0]),
        A_eq=kron(np.ones((1, m)), column, format="csr"),
        b_eq=np.ones(n),
        bounds=([(0, None)] * (n + 1 + ups) + [(None, None)] * free) * m,
    )
    return -float(answer.fun)
