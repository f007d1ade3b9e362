"""Random designs under ratio bounds, each claim held against pairs in fractions and linear programs."""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction
from itertools import product
from typing import Any

import numpy as np
from fuzzing.independent import Pair, dot, share, to_means, unit
from fuzzing.random_designs import (
    check_gain,
    check_information,
    check_pairs,
    random_gains,
    random_prior,
)
from oracles.designs import exact_prior
from oracles.ratio_bounds import shortest

from pmlopt.data.prior import Prior
from pmlopt.data.secret import Secret
from pmlopt.model.privacy import (
    PML,
    GainLeakage,
    MetricPrivacy,
    Pufferfish,
    RatioBound,
    Requirement,
)
from pmlopt.model.uncertainty import ConvexHull, JointLaws
from pmlopt.model.utility import ExpectedGain, MutualInformation
from pmlopt.programs.designs import design
from pmlopt.programs.result import Result
from pmlopt.programs.solving import solve

Made = tuple[Prior, Requirement, list[Pair]]


def ratios(rng: np.random.Generator) -> Result[Any]:
    """A design under a random ratio bound, or two at once, for a gain or for mutual information."""
    prior, requirement, pairs = _KINDS[int(rng.integers(len(_KINDS)))](rng)
    listed = requirement.list_ratios(prior) is not None
    if rng.random() < 0.2 and listed and "pml" not in requirement.limits:
        epsilon = float(rng.uniform(0.05, 2))
        requirement = requirement & PML(epsilon)
        pairs = pairs + to_means([exact_prior(prior)], epsilon)
    if rng.random() < 0.25 and listed:
        result: Result[Any] = solve(design(prior, requirement, MutualInformation()))
        check_pairs(result, pairs)
        check_information(rng, result, pairs, prior)
    else:
        gains = random_gains(rng, prior.size)
        result = solve(design(prior, requirement, ExpectedGain(gains), gains.shape[1]))
        check_pairs(result, pairs)
        check_gain(result, pairs, gains, prior)
    return result


def _level(rng: np.random.Generator) -> float:
    """0, tiny, ordinary, or large."""
    return float(rng.choice([0.0, 1e-6, rng.uniform(0, 1), rng.uniform(0, 3), 20.0]))


def random_secret(rng: np.random.Generator) -> tuple[Secret, list[list[list[Fraction]]]]:
    """A secret of 1 to 4 values and 1 to 6 letters, by counts or floats, and its laws in fractions."""
    values, letters = int(rng.integers(1, 5)), int(rng.integers(1, 7))
    if rng.random() < 0.5:
        counts = rng.integers(0, 20, (values, letters)) + _staircase(values, letters)
        return Secret.from_counts(counts), [[[Fraction(int(c)) for c in row] for row in counts]]
    laws = []
    for _ in range(1 if rng.random() < 0.7 else 2):
        law = rng.dirichlet(np.full(values * letters, float(rng.choice([0.3, 1.0])))).reshape(
            values, letters
        )
        law = law * (rng.random(law.shape) < 0.8) + 0.01 * _staircase(values, letters)
        laws.append(law / law.sum())
    return Secret(np.array(laws)), [
        [[Fraction(float(v)) for v in row] for row in law] for law in laws
    ]


def _staircase(rows: int, columns: int) -> Any:
    """Ones that leave no row and no column empty."""
    ones = np.zeros((rows, columns), dtype=int)
    places = np.arange(max(rows, columns))
    ones[places % rows, places % columns] = 1
    return ones


def _about(rng: np.random.Generator) -> Made:
    secret, laws = random_secret(rng)
    epsilon = _level(rng)
    means = [share([sum(column, Fraction(0)) for column in zip(*law, strict=True)]) for law in laws]
    bound = Fraction(epsilon)
    pairs = [
        (share(row), mean, bound) for law, mean in zip(laws, means, strict=True) for row in law
    ]
    return secret.prior, PML(epsilon, about=secret), pairs


def _robust(rng: np.random.Generator) -> Made:
    """About a secret for every joint law of a set, by the vertices of what it is made of."""
    values, letters = int(rng.integers(2, 4)), int(rng.integers(1, 6))
    law = rng.dirichlet(np.ones(values), int(rng.integers(1, 3)))
    given = [rng.dirichlet(np.ones(letters), int(rng.integers(1, 3))) for _ in range(values)]
    joint = law[0][:, None] * np.array([points[0] for points in given])
    secret = Secret(joint / joint.sum())
    epsilon = max(1e-6, _level(rng))
    own, *others = [[share(row.tolist()) for row in points] for points in (law, *given)]
    pairs = []
    for weights in own:
        for rows in product(*others):
            mean = [dot(weights, list(column)) for column in zip(*rows, strict=True)]
            pairs += [(row, mean, Fraction(epsilon)) for row in rows]
    over = JointLaws(ConvexHull(law), [ConvexHull(points) for points in given])
    return secret.prior, PML(epsilon, about=secret, over=over), pairs


def _pufferfish(rng: np.random.Generator) -> Made:
    secret, laws = random_secret(rng)
    epsilon, size = _level(rng), len(laws[0])
    if size == 1:
        return _about(rng)
    places = [(s, t) for s in range(size) for t in range(size) if s != t]
    pairs = [(share(law[s]), share(law[t]), Fraction(epsilon)) for law in laws for s, t in places]
    return secret.prior, Pufferfish(epsilon, secret), pairs


def _budgets(rng: np.random.Generator) -> Made:
    prior = random_prior(rng)
    budgets = [_level(rng) for _ in range(prior.size)]
    return prior, PML(budgets), to_means([exact_prior(prior)], *budgets)


def _metric(rng: np.random.Generator) -> Made:
    """On a line, in a plane, near one another or on a random graph; pairs of letters that a way connects."""
    prior = random_prior(rng)
    n, epsilon, kind = prior.size, _level(rng), rng.integers(4)
    if kind == 0:
        places = np.cumsum(rng.choice([0.1, 1.0, 2.5], n))
        distance = np.abs(places[:, None] - places)
    elif kind == 1:
        points = rng.integers(0, 4, (n, 2)) + np.linspace(0, 0.3, n)[:, None]
        distance = np.hypot(*(points[:, None] - points).T)
        distance = (distance + distance.T) / 2
    elif kind == 2:
        points = rng.integers(0, 2, (n, 2)) + 1e-9 * rng.random((n, 2))
        distance = np.hypot(*(points[:, None] - points).T)
        distance = (distance + distance.T) / 2
    else:
        distance = rng.choice([0.5, 1.0, 3.0, math.inf], (n, n))
        distance = np.triu(distance, 1) + np.triu(distance, 1).T
    ways = shortest(
        [[None if math.isinf(d) else Fraction(float(d)) for d in row] for row in distance]
    )
    rows = [unit(x, n) for x in range(n)]
    pairs = [
        (rows[x], rows[y], Fraction(epsilon) * way)
        for x in range(n)
        for y in range(n)
        if x != y and (way := ways[x][y]) is not None
    ]
    return prior, MetricPrivacy(epsilon, distance), pairs


def _gains(rng: np.random.Generator) -> Made:
    prior = random_prior(rng)
    gain = rng.random((int(rng.integers(1, 5)), prior.size)) * (rng.random() + 0.01)
    epsilon, means = _level(rng), exact_prior(prior)
    rows = [[p * Fraction(float(g)) for p, g in zip(means, row, strict=True)] for row in gain]
    most = max(sum(row, Fraction(0)) for row in rows)
    pairs = [([v / most for v in row], means, Fraction(epsilon)) for row in rows]
    return prior, GainLeakage(epsilon, gain), pairs


def _pairs(rng: np.random.Generator) -> Made:
    prior = random_prior(rng)
    count = int(rng.integers(1, 5))
    above, below = rng.random((2, count, prior.size)) * (rng.random((2, count, prior.size)) < 0.7)
    below[:, 0] += 0.1
    least = np.log(np.maximum(above.sum(axis=1), 1e-300) / below.sum(axis=1))
    epsilon = np.maximum(0.0, least + rng.uniform(1e-6, 1, count))
    pairs = [
        ([Fraction(float(v)) for v in up], [Fraction(float(v)) for v in down], Fraction(float(eps)))
        for up, down, eps in zip(above, below, epsilon, strict=True)
    ]
    return prior, RatioBound(above, below, epsilon), pairs


_KINDS: tuple[Callable[[np.random.Generator], Made], ...] = (
    _about, _pufferfish, _budgets, _metric, _gains, _pairs, _robust,
)  # fmt: skip
