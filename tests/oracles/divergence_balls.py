"""Sets of priors by their definitions: convex programs in a prior, and designs by cutting planes."""

from __future__ import annotations

import contextlib
import math
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import cvxpy as cp
import numpy as np
from oracles.designs import FloatArray

from pmlopt import (
    Box,
    ChiSquareBall,
    EntropySet,
    KLBall,
    LikelihoodRegion,
    Polytope,
    WassersteinBall,
    intersection,
)

Radii = tuple[float, ...]


Rules = list[cp.Constraint]


@dataclass(frozen=True)
class SetKind:
    """A kind of set around a prior: how it is made, its definition for cvxpy, and usual radii.

    Attributes:
        make: from a centre and a radius.
        constrain: a variable, non-negative and of sum one, by the definition; from a centre and a radius.
        radii: small to large.
        all_from: the radius from which all priors are inside, infinite where there is none.
    """

    make: Callable[[Any, float], Any]
    constrain: Callable[[cp.Expression, FloatArray, float], Rules]
    radii: Radii
    all_from: Callable[[FloatArray], float]


def _constrain_chi_square(q: cp.Expression, p: FloatArray, radius: float) -> Rules:
    return [cp.sum_squares(cp.multiply(1 / np.sqrt(p), q - p)) <= radius]


BALLS = {
    "chi-square": SetKind(
        ChiSquareBall,
        _constrain_chi_square,
        (1e-4, 0.01, 0.1, 0.5, 2.0, 10.0),
        lambda p: 1 / float(p.min()) - 1,
    ),
    "kl": SetKind(
        KLBall,
        lambda q, p, radius: [cp.sum(cp.rel_entr(q, p)) <= radius],
        (1e-4, 0.01, 0.1, 0.5, 2.0),
        lambda p: -math.log(float(p.min())),
    ),
    "likelihood": SetKind(
        LikelihoodRegion,
        lambda q, p, radius: [cp.sum(cp.rel_entr(p[p > 0], q[p > 0])) <= radius],
        (1e-4, 0.01, 0.1, 0.5, 2.0),
        lambda p: math.inf,
    ),
}
"""Balls of a divergence, whose centre is in them at every radius."""


def draw_rows(p: FloatArray, radius: float) -> tuple[FloatArray, FloatArray]:
    """Rows that a prior is within, with a slack of the radius; two of them are an equation at radius 0."""
    rng = np.random.default_rng(len(p))
    rows = rng.integers(-3, 4, size=(3, len(p))).astype(float)
    rows = np.vstack([rows, -rows[:1], np.ones((1, len(p)))])
    return rows, rows @ p + radius


def draw_metric(n: int) -> FloatArray:
    """Distances of random points in a plane; of five letters and more, one without a way to others."""
    points = np.random.default_rng(n).uniform(size=(n, 2))
    metric = np.linalg.norm(points[:, None] - points[None, :], axis=2)
    if n >= 5:
        metric[-1, :-1] = metric[:-1, -1] = math.inf
    return np.asarray(metric)


def _constrain_transport(q: cp.Expression, p: FloatArray, radius: float) -> Rules:
    return constrain_transport(q, p, draw_metric(len(p)), radius)


def constrain_transport(
    q: cp.Expression, p: FloatArray, metric: FloatArray, radius: float
) -> Rules:
    """Rules that mass moves from one law to the other over a mean distance of at most the radius."""
    plan = cp.Variable(metric.shape, nonneg=True)
    finite = np.where(np.isfinite(metric), metric, 0.0)
    return [
        cp.sum(plan, axis=1) == p,
        cp.sum(plan, axis=0) == q,
        cp.multiply(~np.isfinite(metric), plan) == 0,
        cp.sum(cp.multiply(finite, plan)) <= radius,
    ]


def _constrain_both(q: cp.Expression, p: FloatArray, radius: float) -> Rules:
    return [
        *BALLS["chi-square"].constrain(q, p, radius),
        q >= p / 2,
        q <= np.minimum(1.2 * p + 0.01, 1),
    ]


def _constrain_all(q: cp.Expression, p: FloatArray, radius: float) -> Rules:
    return [
        *BALLS["kl"].constrain(q, p, radius),
        *_constrain_transport(q, p, radius / 2),
        *BALLS["likelihood"].constrain(q, p, radius / 2),
    ]


KINDS = {
    "intersection": SetKind(
        lambda p, radius: intersection(
            ChiSquareBall(p, radius), Box(p / 2, np.minimum(1.2 * p + 0.01, 1.0))
        ),
        _constrain_both,
        (0.01, 0.05, 0.1, 0.5),
        lambda p: math.inf,
    ),
    "curved-intersection": SetKind(
        lambda p, radius: intersection(
            KLBall(p, radius),
            WassersteinBall(p, draw_metric(len(p)), radius / 2),
            LikelihoodRegion(p, radius / 2),
        ),
        _constrain_all,
        (0.01, 0.05, 0.1, 0.5),
        lambda p: math.inf,
    ),
    "wasserstein": SetKind(
        lambda p, radius: WassersteinBall(p, draw_metric(len(p)), radius),
        _constrain_transport,
        (1e-4, 0.01, 0.1, 0.5, 2.0),
        lambda p: 2.0,
    ),
    **BALLS,
    "entropy": SetKind(
        lambda p, radius: EntropySet(len(p), max(math.log(len(p)) - radius, 0.0)),
        lambda q, p, radius: [cp.sum(cp.entr(q)) >= max(math.log(len(p)) - radius, 0.0)],
        (1e-4, 0.01, 0.1, 0.5, 2.0),
        lambda p: math.log(len(p)),
    ),
    "polytope": SetKind(
        lambda p, radius: Polytope(*draw_rows(p, radius)),
        lambda q, p, radius: [draw_rows(p, radius)[0] @ q <= draw_rows(p, radius)[1]],
        (0.01, 0.1, 0.5, 2.0),
        lambda p: 6.0,
    ),
}
"""All sets that are compared with their definitions."""


def random_center(rng: np.random.Generator, n: int) -> FloatArray:
    """A prior of which no letter has less than a thousandth."""
    p = np.maximum(rng.dirichlet(np.full(n, float(rng.choice([0.5, 2.0, 10.0])))), 1e-3)
    return np.asarray(p / p.sum())


def solve_sharply(problem: cp.Problem) -> float:
    """The optimum of a convex program, as sharp as Clarabel has it."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for tolerance in (1e-10, 1e-9, 1e-8):
            sharp = dict.fromkeys(("tol_gap_abs", "tol_gap_rel", "tol_feas"), tolerance)
            with contextlib.suppress(cp.SolverError):  # where it breaks off, it may do with less
                problem.solve(solver=cp.CLARABEL, accept_unknown=True, **sharp)
                break
    return float(problem.value)


def least_mean(kind: SetKind, p: FloatArray, radius: float, column: FloatArray) -> float:
    """min <Q, v> over the set, a convex program in Q."""
    return find_worst_prior(kind, p, radius, column)[0]


def find_worst_prior(
    kind: SetKind, p: FloatArray, radius: float, column: FloatArray
) -> tuple[float, FloatArray]:
    """min <Q, v> over the set, and a Q at which it is."""
    q = cp.Variable(len(p), nonneg=True)
    rules = [cp.sum(q) == 1, *kind.constrain(q, p, radius)]
    least = solve_sharply(cp.Problem(cp.Minimize(column @ q), rules))
    worst = np.maximum(q.value, 0.0)
    return least, worst / worst.sum()


def best_gain(
    kind: SetKind, p: FloatArray, radius: float, gains: FloatArray, epsilon: float
) -> tuple[float, float]:
    """Bounds on the best expected gain under PML over the ball, by cutting planes: from a mechanism mixed
    with a constant until the worst priors of its columns allow it, and from the priors found so far.
    """
    n, m = gains.shape
    priors = [find_worst_prior(kind, p, radius, np.arange(n) / n)[1]]
    low, high = -math.inf, math.inf
    for _ in range(200):
        mechanism = cp.Variable((n, m), nonneg=True)
        top = cp.Variable((1, m))
        rules = [cp.sum(mechanism, axis=1) == 1, mechanism <= np.ones((n, 1)) @ top]
        rules += [math.exp(-epsilon) * top <= q[None, :] @ mechanism for q in priors]
        problem = cp.Problem(cp.Maximize(cp.sum(cp.multiply(p[:, None] * gains, mechanism))), rules)
        problem.solve(solver=cp.HIGHS)
        high = min(high, float(problem.value))
        matrix = np.maximum(mechanism.value, 0.0)
        matrix /= matrix.sum(axis=1, keepdims=True)
        law, theta = p @ matrix, 0.0
        for column, mean in zip(matrix.T, law, strict=True):
            if column.max() <= 1e-9:
                continue
            least, worst = find_worst_prior(kind, p, radius, column / column.max())
            priors.append(worst)
            over = math.exp(-epsilon) - least
            # a constant column of the same mean has the slack 1 - e^-eps times it
            room = mean / column.max() * (1 - math.exp(-epsilon))
            if over > 0:
                theta = max(theta, over / (over + room))
        mixed = (1 - theta) * matrix + theta * law
        low = max(low, float((p[:, None] * gains * mixed).sum()))
        if high - low <= 2e-7:
            break
    return low, high
