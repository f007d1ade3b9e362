"""Sets of priors by their definitions: linear programs in Q, and corners by brute force."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import combinations, product
from typing import Any

import numpy as np
from oracles import designs as oracles
from oracles.designs import FloatArray

from pmlopt import AllPriors, Box, ConvexHull, L1Ball, MinimumMass, Prior
from pmlopt.model.uncertainty import PriorSet

Exact = Sequence[Fraction]


def _least(cost: FloatArray, **constraints: Any) -> float:
    """The optimum of a linear program in non-negative variables."""
    return float(oracles.linear_program(cost, **constraints).fun)


@dataclass(frozen=True, eq=False)
class Region:
    """The priors Q with `rows Q <= right`, in rationals; `Q >= 0` and `sum Q = 1` go without saying.

    Attributes:
        rows: (R, N) object array.
        right: (R,) object array.
    """

    rows: Any
    right: Any

    @property
    def floats(self) -> tuple[FloatArray, FloatArray]:
        """The rows and the right side in floats."""
        return self.rows.astype(float), self.right.astype(float)

    def least(self, column: FloatArray) -> float:
        """min <Q, v>, a linear program in Q."""
        rows, right = self.floats
        return _least(column, A_ub=rows, b_ub=right, A_eq=np.ones((1, len(column))), b_eq=[1.0])

    def outside(self, q: FloatArray) -> float:
        """By how much a law breaks the definition."""
        rows, right = self.floats
        return max(float((rows @ q - right).max()), -float(q.min()), abs(math.fsum(q) - 1))

    def corners(self) -> FloatArray:
        """(K, N) the extreme points."""
        rows, right = self.floats
        n = rows.shape[1]
        every = np.vstack([np.ones((1, n)), rows, -np.eye(n)])
        return extreme_points(every, np.concatenate([[1.0], right, np.zeros(n)]), fixed=1)

    def exact_least(self, column: Sequence[int]) -> Fraction:
        """min <Q, v> over the extreme points, without rounding."""
        n = self.rows.shape[1]
        unit = [[Fraction(-int(x == z)) for z in range(n)] for x in range(n)]
        rows, right = [*self.rows.tolist(), *unit], [*self.right.tolist(), *[Fraction(0)] * n]
        means = []
        for tight in combinations(range(len(rows)), n - 1):
            system = [[Fraction(1)] * n, *(rows[k] for k in tight)]
            point = _solved(system, [Fraction(1), *(right[k] for k in tight)])
            if point and all(
                _dot(row, point) <= most for row, most in zip(rows, right, strict=True)
            ):
                means.append(_dot(point, column))
        return min(means)


@dataclass(frozen=True, eq=False)
class Hull:
    """The convex hull of the rows, each a distribution in rationals.

    Attributes:
        points: (K, N) object array.
    """

    points: Any

    def least(self, column: FloatArray) -> float:
        """min <Q, v>, a linear program in the weights of the points."""
        points = self.corners()
        return _least(points @ column, A_eq=np.ones((1, len(points))), b_eq=[1.0])

    def outside(self, q: FloatArray) -> float:
        """The largest entry of what a law is off the nearest mixture, a linear program."""
        points = self.corners()
        k, n = points.shape
        rows = np.hstack([np.vstack([points.T, -points.T]), -np.ones((2 * n, 1))])
        cost = np.append(np.zeros(k), 1.0)
        sums = np.append(np.ones(k), 0.0)[None, :]
        return _least(cost, A_ub=rows, b_ub=np.concatenate([q, -q]), A_eq=sums, b_eq=[1.0])

    def corners(self) -> FloatArray:
        """(K, N) the points."""
        return np.asarray(self.points.astype(float))

    def exact_least(self, column: Sequence[int]) -> Fraction:
        """min <Q, v> over the points, without rounding."""
        return min(_dot(point, column) for point in self.points.tolist())


Definition = Region | Hull


def _objects(values: Iterable[Any], shape: tuple[int, ...]) -> Any:
    array = np.empty(math.prod(shape), dtype=object)
    array[:] = list(values)
    return array.reshape(shape)


def ball(p: Exact, radius: Fraction) -> Region:
    """`sum_x s[x] (Q[x] - p[x]) <= radius` for all signs s."""
    n = len(p)
    signs = [sign for sign in product([1, -1], repeat=n) if n == 1 or abs(sum(sign)) < n]
    right = [radius + _dot(p, sign) for sign in signs]
    rows = [Fraction(value) for sign in signs for value in sign]
    return Region(_objects(rows, (len(signs), n)), _objects(right, (len(signs),)))


def box(lower: Exact, upper: Exact) -> Region:
    """`lower <= Q <= upper`."""
    n = len(lower)
    rows = [Fraction(side * int(x == z)) for side in (1, -1) for x in range(n) for z in range(n)]
    return Region(
        _objects(rows, (2 * n, n)), _objects([*upper, *(-low for low in lower)], (2 * n,))
    )


def hull(points: Sequence[Exact]) -> Hull:
    """The rows, each over its sum."""
    laws = [value / sum(point) for point in points for value in point]
    return Hull(_objects(laws, (len(points), len(points[0]))))


# ---------------------------------------------------------------- brute force over the square subsystems


def extreme_points(rows: FloatArray, right: FloatArray, fixed: int = 0) -> FloatArray:
    """(K, N) the extreme points of `rows z <= right`, the first `fixed` of them equations: by bases."""
    n = rows.shape[1]
    equations = tuple(range(fixed))
    bases = np.array(
        [equations + rest for rest in combinations(range(fixed, len(rows)), n - fixed)]
    )
    bases = bases[np.abs(np.linalg.det(rows[bases])) > 1e-10]
    points = np.linalg.solve(rows[bases], right[bases][:, :, None])[:, :, 0]
    points = points[(points @ rows.T <= right + 1e-11).all(axis=1)]
    _, first = np.unique(points.round(10), axis=0, return_index=True)
    return np.asarray(points[np.sort(first)])


def extreme_columns(p: FloatArray, corners: FloatArray, epsilon: float) -> FloatArray:
    """(N, K) extreme columns v of mean one with `max v <= e^eps <Q, v>` for each corner Q.

    They are among the extreme points of `0 <= v <= 1, <Q, v> >= e^-eps`: scaled to a largest entry of one,
    a column with as many tight bounds has as many here.
    """
    n = len(p)
    rows = np.vstack([-np.eye(n), np.eye(n), -corners])
    right = np.concatenate([np.zeros(n), np.ones(n), np.full(len(corners), -math.exp(-epsilon))])
    columns = np.maximum(extreme_points(rows, right), 0.0).T
    return np.asarray(columns / (p @ columns))


def _dot(left: Sequence[Any], right: Sequence[Any]) -> Fraction:
    return sum((a * b for a, b in zip(left, right, strict=True)), Fraction(0))


def _solved(rows: Sequence[Exact], right: Exact) -> list[Fraction] | None:
    """The solution of a square system of rationals, by Gauss and Jordan; None where there is not just one."""
    system = [[*row, value] for row, value in zip(rows, right, strict=True)]
    for k in range(len(system)):
        pivot = next((r for r in range(k, len(system)) if system[r][k]), None)
        if pivot is None:
            return None
        system[k], system[pivot] = system[pivot], system[k]
        system[k] = [value / system[k][k] for value in system[k]]
        for r in set(range(len(system))) - {k}:
            system[r] = [a - system[r][k] * b for a, b in zip(system[r], system[k], strict=True)]
    return [row[-1] for row in system]


# ---------------------------------------------------------------- robust designs


def robust_rows(corners: FloatArray, m: int, epsilon: float) -> FloatArray:
    """`e^-eps P[x,y] - <Q, P[:,y]> <= 0` for each letter x, output y and corner Q."""
    return np.vstack([oracles.pml_rows(corner, m, epsilon) for corner in corners])


# ---------------------------------------------------------------- random sets


@dataclass(frozen=True, eq=False)
class Case:
    """A set of the package, its definition, and a prior of positive probabilities.

    The prior is the ball's centre where there is one; elsewhere it need not be in the set.
    """

    priors: PriorSet
    defined: Definition
    p: FloatArray


KINDS = ("l1 ball", "minimum mass", "vertices", "box", "all priors")


def exact(values: Iterable[float]) -> list[Fraction]:
    """The floats as rationals."""
    return [Fraction(float(value)) for value in values]


def random_set(kind: str, rng: np.random.Generator, n: int) -> Case:
    """A random set of a kind, the ends of its parameters' ranges included."""
    p = oracles.random_prior(rng, n, float(rng.choice([0.5, 2.0, 10.0])))
    if kind == "l1 ball":
        least = 2 * float(p.min())
        radius = float(
            rng.choice([0.0, rng.uniform() * least, rng.uniform(0, 2), rng.uniform(0, 2), 2.0])
        )
        return ball_case(p, radius)
    if kind == "minimum mass":
        mass = float(rng.choice([0.0, 1 / n, *rng.uniform(0, 1 / n, 4)]))
        return Case(MinimumMass(n, mass), box([Fraction(mass)] * n, [Fraction(1)] * n), p)
    if kind == "vertices":
        points = np.vstack([p, rng.dirichlet(np.ones(n), int(rng.integers(0, 4)))])
        points[1:] = (
            np.where(rng.random(points[1:].shape) < 0.2, 0.0, points[1:]) + 1e-3 * np.eye(n)[0]
        )
        points /= points.sum(axis=1, keepdims=True)
        return Case(ConvexHull(points), hull([exact(point) for point in points]), p)
    if kind == "box":
        lower = p * rng.uniform(0, 1, n) * (rng.random(n) < 0.8)
        upper = np.minimum(
            1.0, np.where(rng.random(n) < 0.3, 1.0, p + rng.uniform(0, 0.5, n) * (1 - p))
        )
        return Case(Box(lower, upper), box(exact(lower), exact(upper)), p)
    return Case(AllPriors(n), box([Fraction(0)] * n, [Fraction(1)] * n), p)


def ball_case(p: FloatArray, radius: float) -> Case:
    """The l1 ball around a prior."""
    weights = exact(p)
    center = [weight / sum(weights) for weight in weights]
    return Case(L1Ball(p, radius), ball(center, Fraction(radius)), Prior(p).pmf)


def random_matrix(rng: np.random.Generator, n: int, m: int) -> FloatArray:
    """(n, m) row-stochastic, with zeros, ties and an output that never occurs now and then."""
    matrix = rng.dirichlet(np.ones(m), n)
    kind = int(rng.integers(4))
    if kind == 1:
        matrix = matrix.round(1) + np.eye(m)[rng.integers(m, size=n)] / 10
    if kind == 2:
        matrix = np.where(rng.random((n, m)) < 0.3, 0.0, matrix) + 1e-9 * np.eye(m)[0]
    if kind == 3 and m > 1:
        matrix[:, -1] = 0.0
    return np.asarray(matrix / matrix.sum(axis=1, keepdims=True))
