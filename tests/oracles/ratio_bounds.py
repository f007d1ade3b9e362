"""Ratio bounds from their definitions: pairs, the linear program over them, and extreme columns by search."""

from __future__ import annotations

import itertools
import math
from decimal import Decimal, localcontext
from fractions import Fraction
from typing import Any

import numpy as np
from oracles.designs import FloatArray, linear_program

from pmlopt import LDP, LIP, GainLeakage, MetricPrivacy, Prior, Pufferfish, RatioBound
from pmlopt.model.privacy import Requirement

Pairs = list[tuple[FloatArray, FloatArray]]


def pairs_of(requirement: Requirement, prior: Prior) -> Pairs:
    """The pairs (numerator, e^eps denominator), from the definitions."""
    p, n = prior.pmf, prior.size
    eye = np.eye(n)
    if isinstance(requirement, Pufferfish):
        given = dict(zip(requirement.secret.values, requirement.secret.conditionals, strict=True))
        both = [pair for s, t in requirement.pairs for pair in ((s, t), (t, s))]
        return [(given[s], math.exp(requirement.epsilon) * given[t]) for s, t in both]
    if isinstance(requirement, MetricPrivacy):
        distance = np.asarray(requirement.for_prior(prior).distance)
        return [(eye[x], math.exp(min(600.0, requirement.epsilon * distance[x, y])) * eye[y])
                for x in range(n) for y in range(n)]  # fmt: skip
    if isinstance(requirement, GainLeakage):
        most = max(p @ row for row in requirement.gain)
        return [(p * row, math.exp(requirement.epsilon) * most * p) for row in requirement.gain]
    if isinstance(requirement, RatioBound):
        factors = np.exp(requirement.each)
        return list(
            zip(requirement.numerators, factors[:, None] * requirement.denominators, strict=True)
        )
    if isinstance(requirement, LDP):
        return [
            (eye[x], math.exp(requirement.epsilon) * eye[y]) for x in range(n) for y in range(n)
        ]
    if isinstance(requirement, LIP):
        return [pair for x in range(n) for pair in ((eye[x], math.exp(requirement.upper) * p),
                                                    (p, math.exp(requirement.lower) * eye[x]))]  # fmt: skip
    parts = getattr(requirement, "parts", None)
    if parts is not None:
        return [pair for part in parts for pair in pairs_of(part, prior)]
    secret = getattr(requirement, "secret", None)
    if secret is not None:
        return [
            (row / row.sum(), math.exp(next(iter(requirement.limits.values()))) * law.sum(axis=0))
            for law in secret.joint
            for row in law
        ]
    budgets = np.broadcast_to(np.asarray(getattr(requirement, "epsilon", None), float), n)
    return [(eye[x], math.exp(budgets[x]) * p) for x in range(n)]


def broken_pairs(epsilon: float, distance: Any, matrix: Any) -> set[tuple[int, int, int]]:
    """The (x, x', y) with `P[x,y] > e^(epsilon d(x, x')) P[x',y]`, of rationals, for all pairs of letters.

    The exponential is that of 60 digits; past 690 nats it counts as 690, and a float is 0 or not.
    """
    n, found = len(distance), set()
    rows = [[Fraction(v) for v in row] for row in np.asarray(matrix).tolist()]
    for x in range(n):
        for z in range(n):
            if x == z or math.isinf(distance[x][z]):
                continue
            exponent = min(Fraction(690), Fraction(epsilon) * Fraction(float(distance[x][z])))
            with localcontext(prec=60):
                factor = Fraction(
                    (Decimal(exponent.numerator) / Decimal(exponent.denominator)).exp()
                )
            found |= {(x, z, y) for y in range(len(rows[0])) if rows[x][y] > factor * rows[z][y]}
    return found


def random_distances(rng: np.random.Generator) -> tuple[float, Any, Any]:
    """An epsilon, distances as a person gives them, and the (N, N) matrix that they mean."""
    n, kind = int(rng.integers(2, 5)), int(rng.integers(4))
    scale = float(10.0 ** rng.choice([-300, -9, 0, 0, 0, 9, 300]))
    epsilon = float(min(1e300, max(1e-300, rng.choice([0.1, 1.0, 5.0]) / scale)))
    if kind == 0:  # on a line, some points next to one another
        places = np.cumsum(rng.choice([1e-16, 1e-12, 5e-9, 0.1, 1.0, 2.5], n))
        places = np.unique(places)
        distance = np.abs(places[:, None] - places) * scale
    elif kind == 1:  # in the plane
        points = rng.random((n, 2)) * rng.choice([1e-9, 1.0], (n, 1))
        distance = np.hypot(*(points[:, None] - points).T) * scale
    else:  # without the triangle inequality, and with pairs of which nothing is asked
        distance = rng.choice([1e-13, 1e-7, 0.5, 1.0, 3.0, math.inf], (n, n)) * scale
        distance = np.triu(distance, 1) + np.triu(distance, 1).T
    if kind < 3:
        return epsilon, distance, distance
    pairs = [
        (x, z) if rng.random() < 0.5 else (z, x) for x in range(len(distance)) for z in range(x)
    ]
    return (
        epsilon,
        {pair: float(distance[pair]) for pair in pairs if distance[pair] < math.inf},
        distance,
    )


def shortest(ways: list[list[Fraction | None]]) -> list[list[Fraction | None]]:
    """The shortest ways in fractions, None where there is none."""
    n = len(ways)
    for middle, x, z in itertools.product(range(n), repeat=3):
        one, other, now = ways[x][middle], ways[middle][z], ways[x][z]
        if one is not None and other is not None and (now is None or one + other < now):
            ways[x][z] = one + other
    return ways


def best_gain(p: FloatArray, pairs: Pairs, gains: FloatArray) -> float:
    """The best expected gain, by a dense linear program with every pair for every output."""
    n, m = gains.shape
    units = [max(up.max(), down.max()) for up, down in pairs]
    rows = np.vstack(
        [np.kron((up - down) / u, np.eye(m)) for (up, down), u in zip(pairs, units, strict=True)]
    )
    sums, cost = np.kron(np.eye(n), np.ones(m)), -(p[:, None] * gains).ravel()
    return -float(
        linear_program(cost, A_ub=rows, b_ub=np.zeros(len(rows)), A_eq=sums, b_eq=np.ones(n)).fun
    )


def extreme_columns(p: FloatArray, pairs: Pairs) -> FloatArray:
    """(N, K) the extreme columns of mean one: N - 1 bounds that hold with equality, in every way."""
    n = len(p)
    bounds = np.vstack([-np.eye(n), *(up - down for up, down in pairs)])
    bounds /= np.abs(bounds).max(axis=1, keepdims=True)
    found = [np.ones(n)]
    for tight in itertools.combinations(range(len(bounds)), n - 1):
        system = np.vstack([bounds[list(tight)], p])
        if np.linalg.matrix_rank(system) == n:
            column = np.linalg.solve(system, np.eye(n)[-1])
            if (bounds @ column <= 1e-11).all():
                found.append(column)
    return np.unique(np.array(found).round(12), axis=0).T
