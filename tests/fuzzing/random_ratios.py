"""Random designs under ratio bounds, each claim held against pairs in fractions and linear programs."""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction
from itertools import product
from typing import Any

import numpy as np
from fuzzing.independent import (
    Pair,
    information,
    largest_gain_ratios,
    log_excess,
    meets_pairs,
    rows_sum_to_one,
    weights_of,
)
from fuzzing.random_designs import SLACK, check_gain, demand, random_gains, random_prior

from pmlopt.data.prior import Prior
from pmlopt.data.secret import Secret
from pmlopt.model.privacy import PML, GainLeakage, MetricPrivacy, Pufferfish, RatioBound, Requirement
from pmlopt.model.uncertainty import ConvexHull, JointLaws
from pmlopt.model.utility import ExpectedGain, MutualInformation
from pmlopt.programs.certificate import Status
from pmlopt.programs.designs import design
from pmlopt.programs.result import Result
from pmlopt.programs.solving import solve

Made = tuple[Prior, Requirement, list[Pair]]


def ratios(rng: np.random.Generator) -> Result[Any]:
    """A design under a random ratio bound, or two at once, for a gain or for mutual information."""
    prior, requirement, pairs = _KINDS[int(rng.integers(len(_KINDS)))](rng)
    listed = requirement.has_ratios
    if rng.random() < 0.2 and listed and "pml" not in requirement.limits:
        epsilon = float(rng.uniform(0.05, 2))
        requirement = requirement & PML(epsilon)
        pairs = pairs + _to_means(prior, [Fraction(epsilon)] * prior.size)
    if rng.random() < 0.25 and listed:
        result: Result[Any] = solve(design(prior, requirement, MutualInformation()))
        _check_pairs(result, requirement, pairs)
        _check_information(rng, result, prior, pairs)
    else:
        gains = random_gains(rng, prior.size)
        result = solve(design(prior, requirement, ExpectedGain(gains), gains.shape[1]))
        _check_pairs(result, requirement, pairs)
        check_gain(result, largest_gain_ratios(prior.pmf, pairs, gains), gains, prior)
    return result


ABOVE = 1e-13
"""Nats above its limit that a design of 0 nats about a secret in floats may have, where it is unproved."""


def _check_pairs(result: Result[Any], requirement: Requirement, pairs: list[Pair]) -> None:
    matrix = result.mechanism.matrix
    demand(rows_sum_to_one(matrix), "a row does not sum to exactly one")
    demand(result.certificate.verify(), "the exact check fails on what is returned")
    for name, limit in requirement.limits.items():
        level = result.certificate.levels[name]
        if level > limit:
            unproved = result.status is Status.UNPROVED and level <= ABOVE
            demand(unproved, f"the level {name} is {level}, above {limit}")
            pairs = [(above, below, max(epsilon, Fraction(level))) for above, below, epsilon in pairs]
    demand(meets_pairs(pairs, matrix), "a pair is exceeded in fractions")


def _check_information(
    rng: np.random.Generator, result: Result[Any], prior: Prior, pairs: list[Pair]
) -> None:
    """The value as the matrix says, and the bound beside mechanisms drawn towards the constant."""
    told = information(prior.pmf, result.mechanism.matrix)
    demand(abs(told - result.value) <= SLACK, f"the value is {result.value}, and the mechanism tells {told}")
    for _ in range(5):
        sharp = rng.dirichlet(np.full(prior.size, 0.3), prior.size)
        law = prior.pmf @ sharp
        low, high = 0.0, 1.0  # the share of the law that is too little, and one that is enough
        for _ in range(40):
            middle = (low + high) / 2
            within = log_excess(pairs, (1 - middle) * sharp + middle * law) <= 0
            low, high = (low, middle) if within else (middle, high)
        other = information(prior.pmf, (1 - high) * sharp + high * law)
        demand(other <= result.bound + SLACK, f"a mechanism tells {other}, above the bound {result.bound}")


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
        law = rng.dirichlet(np.full(values * letters, float(rng.choice([0.3, 1.0])))).reshape(values, letters)
        law = law * (rng.random(law.shape) < 0.8) + 0.01 * _staircase(values, letters)
        laws.append(law / law.sum())
    return Secret(np.array(laws)), [[[Fraction(float(v)) for v in row] for row in law] for law in laws]


def _staircase(rows: int, columns: int) -> Any:
    """Ones that leave no row and no column empty."""
    ones = np.zeros((rows, columns), dtype=int)
    places = np.arange(max(rows, columns))
    ones[places % rows, places % columns] = 1
    return ones


def _about(rng: np.random.Generator) -> Made:
    secret, laws = random_secret(rng)
    epsilon = _level(rng)
    pairs = [
        (
            _share(row),
            _share([sum(column, Fraction(0)) for column in zip(*law, strict=True)]),
            Fraction(epsilon),
        )
        for law in laws
        for row in law
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
    own, *others = [[_share([Fraction(float(v)) for v in row]) for row in points] for points in (law, *given)]
    pairs = []
    for weights in own:
        for rows in product(*others):
            mean = [sum((w * row[x] for w, row in zip(weights, rows, strict=True)), Fraction(0))
                    for x in range(letters)]  # fmt: skip
            pairs += [(row, mean, Fraction(epsilon)) for row in rows]
    over = JointLaws(ConvexHull(law), [ConvexHull(points) for points in given])
    return secret.prior, PML(epsilon, about=secret, over=over), pairs


def _pufferfish(rng: np.random.Generator) -> Made:
    secret, laws = random_secret(rng)
    epsilon, size = _level(rng), len(laws[0])
    if size == 1:
        return _about(rng)
    places = [(s, t) for s in range(size) for t in range(size) if s != t]
    pairs = [(_share(law[s]), _share(law[t]), Fraction(epsilon)) for law in laws for s, t in places]
    return secret.prior, Pufferfish(epsilon, secret), pairs


def _share(row: list[Fraction]) -> list[Fraction]:
    total = sum(row, Fraction(0))
    return [entry / total for entry in row]


def _letters(size: int) -> list[list[Fraction]]:
    return [[Fraction(int(x == y)) for y in range(size)] for x in range(size)]


def _to_means(prior: Prior, exponents: list[Fraction]) -> list[Pair]:
    """Each letter beside the mean under the prior."""
    means = weights_of(prior)
    return [(row, means, eps) for row, eps in zip(_letters(prior.size), exponents, strict=True)]


def _budgets(rng: np.random.Generator) -> Made:
    prior = random_prior(rng)
    budgets = [_level(rng) for _ in range(prior.size)]
    return prior, PML(budgets), _to_means(prior, [Fraction(b) for b in budgets])


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
    ways = [[None if math.isinf(d) else Fraction(float(d)) for d in row] for row in distance]
    for middle in range(n):  # the shortest ways in fractions
        for x in range(n):
            for y in range(n):
                one, other, now = ways[x][middle], ways[middle][y], ways[x][y]
                if one is not None and other is not None and (now is None or one + other < now):
                    ways[x][y] = one + other
    rows = _letters(n)
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
    epsilon, means = _level(rng), weights_of(prior)
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
