"""Envelopes by other means: dense programs with plain bisection, and all that must hold of a result."""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Any

import numpy as np
import pytest
from oracles.designs import linear_program

from pmlopt import Result, envelope, solve
from pmlopt.core.numbers.arrays import FloatArray
from pmlopt.data.mechanism import MechanismLike
from pmlopt.data.prior import PriorLike
from pmlopt.measures import envelope_bounds
from pmlopt.programs import Status
from pmlopt.programs.envelope.certificate import EnvelopeCertificate

GAP = 1e-7

QUARTERS = [0.25] * 4

HALVES = [[0, 0, 0.5, 0.5], [0, 0, 0.5, 0.5], [0, 0.2, 0.4, 0.4], [0.2, 0, 0.4, 0.4]]
"""[saeidian2026envelopes, eq. (7)]."""


def solved(
    p: PriorLike, matrix: MechanismLike, delta: float, **options: Any
) -> Result[EnvelopeCertificate]:
    """The envelope, solved."""
    return solve(envelope(p, matrix, delta), **options)


def curve_of(
    p: PriorLike, matrix: MechanismLike, deltas: Iterable[float]
) -> list[Result[EnvelopeCertificate]]:
    """The envelope at many deltas, in their order."""
    return [solved(p, matrix, delta) for delta in deltas]


def most_mass(p: FloatArray, matrix: FloatArray, t: float) -> float:
    """V(t): the largest mass of outcomes that leak log t or more, by a dense LP in that mass.

    u[x,y] is the mass of y that goes to the outcome of x; each column is over its law, each row over t.
    """
    occurring = matrix[:, matrix.max(axis=0) > 0]
    n, m = occurring.shape
    law = p @ occurring
    leaks, whole = np.zeros((n, n, m)), np.zeros((m, n, m))
    for x in range(n):
        leaks[x, x] = 1 - occurring[x] / law / t
    for y in range(m):
        whole[y, :, y] = 1.0
    rows = np.vstack([leaks.reshape(n, n * m), whole.reshape(m, n * m)])
    right = np.concatenate([np.zeros(n), law])
    return -float(linear_program(-np.ones(n * m), A_ub=rows, b_ub=right).fun)


def bisected(p: FloatArray, matrix: FloatArray, delta: float) -> float:
    """The largest log t with V(t) >= delta, by plain bisection."""
    low, high = 0.0, -math.log(p.min())
    while high - low > 2e-9:
        middle = (low + high) / 2
        low, high = (
            (middle, high) if most_mass(p, matrix, math.exp(middle)) >= delta else (low, middle)
        )
    return low


def quantile(p: FloatArray, matrix: FloatArray, delta: float, short: float = 1e-12) -> float:
    """The largest t such that outcomes with t or more have mass delta, up to rounding."""
    law = p @ matrix
    found = sorted(
        ((math.log(matrix[:, z].max() / law[z]), law[z]) for z in np.flatnonzero(law > 0)),
        reverse=True,
    )
    mass = 0.0
    for level, share in found:
        mass += share
        if mass >= delta * (1 - short):
            return max(0.0, level)
    return 0.0


def assert_sound(p: FloatArray, matrix: FloatArray, found: Result[EnvelopeCertificate]) -> None:
    """All that an envelope claims of itself."""
    attack = found.certificate.attack.matrix
    assert found.value <= found.bound
    assert found.gap == found.bound - found.value
    assert attack.shape[0] == matrix.shape[1]
    assert attack.shape[1] <= len(p) + 1
    assert found.certificate.mechanism.matrix.shape == matrix.shape
    assert found.certificate.verify()
    assert attack.min() >= 0
    assert np.abs(attack.sum(axis=1) - 1).max() <= 1e-12
    assert quantile(p, matrix @ attack, found.certificate.delta) == pytest.approx(
        found.value, abs=1e-7
    )
    low, high = envelope_bounds(p, matrix, found.certificate.delta)
    assert low <= found.value + 1e-9
    assert found.bound <= high + 1e-9


def assert_closed(p: FloatArray, matrix: FloatArray, found: Result[EnvelopeCertificate]) -> None:
    assert_sound(p, matrix, found)
    assert found.gap <= GAP
    if found.gap <= 1e-9:
        assert found.status is Status.OPTIMAL


def concentrated(rng: np.random.Generator, k: int) -> FloatArray:
    """A Dirichlet prior of any spread."""
    p = rng.dirichlet(np.full(k, float(rng.choice([0.1, 0.3, 1.0, 10.0])))) + 1e-5
    return np.asarray(p / p.sum())


def random_mechanism(seed: int) -> tuple[FloatArray, FloatArray]:
    """Zeros, repeated and proportional columns, outputs that never occur, priors down to 1e-6, by turns."""
    rng = np.random.default_rng([1201, seed])
    n, m = (int(size) for size in rng.integers(1 if seed % 20 == 0 else 2, 9, 2))
    p = rng.dirichlet(np.full(n, (0.3, 1.0, 10.0)[seed % 3])) + 1e-6
    matrix = rng.dirichlet(np.full(m, (0.3, 1.0, 10.0)[seed // 3 % 3]), n)
    if seed % 2:
        kept = rng.random((n, m)) < 0.6
        kept[np.arange(n), rng.integers(0, m, n)] = True
        matrix = (matrix + 1e-3) * kept
    if seed % 5 == 1:
        matrix[:, rng.integers(0, m)] = 2.5 * matrix[:, rng.integers(0, m)]
        matrix[:, 0] += 1e-3
    if seed % 7 == 2 and m > 1:
        matrix[:, 1:] += 1e-3
        matrix[:, 0] = 0.0
    return p / p.sum(), matrix / matrix.sum(axis=1, keepdims=True)


def channels(
    rng: np.random.Generator, found: Result[EnvelopeCertificate], count: int
) -> list[FloatArray]:
    """Post-processings: merges, any channel, and the attack disturbed, which is near the best."""
    attack = found.certificate.attack.matrix
    m, k = attack.shape
    made: list[FloatArray] = []
    for number in range(count):
        if number % 3 == 0:
            made.append(np.eye(m)[rng.integers(0, m, m)])
        elif number % 3 == 1:
            made.append(rng.dirichlet(np.full(m, 0.3), m))
        else:
            share = 10.0 ** -float(rng.uniform(1, 8))
            made.append((1 - share) * attack + share * rng.dirichlet(np.full(k, 0.5), m))
    return made


def two_deltas(seed: int) -> FloatArray:
    return np.sort(np.random.default_rng([1212, seed]).uniform(0.01, 0.99, 2))


def response(seed: int) -> tuple[FloatArray, float, float]:
    """A prior, the LDP level of randomized response, delta."""
    rng = np.random.default_rng([1203, seed])
    p = concentrated(rng, int(rng.integers(2, 9)))
    return p, float(rng.uniform(0.05, 4)), float(rng.uniform(0.01, 0.99))
