"""The failure probability at closed borders, and over sets of priors against all sets of outcomes."""

from __future__ import annotations

import itertools
import math
from fractions import Fraction
from operator import mul
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from oracles.designs import FloatArray
from oracles.prior_sets import KINDS, random_set
from scipy.optimize import linprog
from strategies import exact

from pmlopt import AllPriors, ConvexHull, L1Ball, Prior
from pmlopt.errors import PrivacyError
from pmlopt.measures import failure_probability, pointwise_leakage
from pmlopt.measures.failure import _FailureSearch
from pmlopt.model.uncertainty import leakage_capacity

SEEDS = st.integers(0, 2**32 - 1)


def exact_supremum(corners: FloatArray, matrix: FloatArray, epsilon: float) -> float:
    """The largest over all sets S of outcomes of a linear program: the mass of S while all of S fail."""
    limits, best = math.exp(-epsilon) * matrix.max(axis=0), 0.0
    q = corners @ matrix
    for size in range(1, matrix.shape[1] + 1):
        for chosen in itertools.combinations(range(matrix.shape[1]), size):
            part = q[:, list(chosen)]
            answer = linprog(
                -part.sum(axis=1), A_ub=part.T, b_ub=limits[list(chosen)] * (1 - 1e-12),
                A_eq=np.ones((1, len(corners))), b_eq=[1.0], method="highs",
            )  # fmt: skip
            if answer.status == 0:
                best = max(best, -float(answer.fun))
    return best


def under(q: FloatArray, matrix: FloatArray, epsilon: float) -> float:
    """The failure probability under one law, which may have zeros."""
    law = q @ matrix
    return float(law[law < math.exp(-epsilon) * matrix.max(axis=0) * (1 - 1e-12)].sum())


def test_tiny_levels_are_told_apart() -> None:
    matrix = np.array([[0.6 + 1e-13, 0.4 - 1e-13], [0.6, 0.4]])
    levels = pointwise_leakage([0.3, 0.7], matrix)
    assert 0 < levels.min() < levels.max() < 1e-12
    assert failure_probability([0.3, 0.7], matrix, float(levels.min())) == pytest.approx(
        float((np.array([0.3, 0.7]) @ matrix)[levels.argmax()]), abs=1e-12
    )
    assert failure_probability([0.3, 0.7], matrix, 0.0) == pytest.approx(1.0)


@settings(max_examples=20, deadline=None)
@given(SEEDS, st.sampled_from(KINDS), st.floats(0.05, 0.999))
def test_over_a_set_it_is_the_supremum(seed: int, kind: str, part: float) -> None:
    rng = np.random.default_rng(seed)
    n, m = int(rng.integers(2, 5)), int(rng.integers(2, 5))
    case = random_set(kind, rng, n)
    matrix = rng.dirichlet(np.full(m, 0.7), n)
    corners = case.defined.corners()
    prior = Prior(np.full(n, 1 / n), labels=case.priors.labels)
    capacity = float(leakage_capacity(case.priors, matrix))
    epsilon = part * min(capacity, 8.0)
    found = failure_probability(prior, matrix, epsilon, over=case.priors)
    best = exact_supremum(corners, matrix, epsilon)
    assert found >= best - 1e-9
    assert found <= best + 1e-6
    for law in rng.dirichlet(np.full(len(corners), 0.5), 50) @ corners:
        assert under(law, matrix, epsilon) <= found + 1e-9
    if capacity < 600:
        assert failure_probability(prior, matrix, capacity, over=case.priors) == 0


def test_by_hand() -> None:
    """Of (0.75, 0.25) and its turn: output 0 has a mass in [0.45, 0.55], and fails below 0.75 e^-eps."""
    warner, ball = [[0.75, 0.25], [0.25, 0.75]], L1Ball([0.5, 0.5], 0.2)
    for epsilon, expected in ((0.45, 0.75 * math.exp(-0.45)), (0.3, 1.0), (math.log(5 / 3), 0.0)):
        found = failure_probability([0.5, 0.5], warner, epsilon, over=ball)
        assert found == pytest.approx(expected, abs=2e-9)
    none: list[Any] = [0.1, [0.5, 0.5], "ball", AllPriors(3), object()]
    for over in none:
        with pytest.raises(PrivacyError):
            failure_probability([0.5, 0.5], np.eye(2), 0.5, over=over)


def test_conditions_that_miss_each_other_by_little_are_told_apart() -> None:
    """The limits of both outputs sum to 1 - 1.5e-6: they cannot both fail."""
    corners = np.array([[0.62898778, 0.37101222], [0.27034882, 0.72965118], [0.9800309, 0.0199691]])
    matrix = np.array([[0.32235976, 0.67764024], [0.32265149, 0.67734851]])
    found = failure_probability(
        [0.5, 0.5], matrix, 0.00029313987232316367, over=ConvexHull(corners)
    )
    assert found == pytest.approx(exact_supremum(corners, matrix, 0.00029313987232316367), abs=1e-8)
    assert found < 0.68


def exactly(law: FloatArray, columns: FloatArray) -> list[Fraction]:
    """The probabilities of the outcomes under a law, without rounding."""
    weights = exact(law)
    return [sum(map(mul, weights, exact(v)), Fraction(0)) for v in columns.T]


@pytest.mark.parametrize("seed", range(4))
def test_the_bound_of_a_node_is_its_lagrangian_and_not_below_in_exact_arithmetic(seed: int) -> None:
    rng = np.random.default_rng([300, seed])
    columns, corners = rng.random((4, 6)), rng.dirichlet(np.ones(4), 3)
    q, limits = corners @ columns, rng.uniform(0.1, 0.9, 6)
    most = np.maximum(q.max(axis=0), limits * 1.2)
    fates, caps, floors = rng.integers(-1, 2, 6).astype(float), rng.random(6), rng.random(6)
    search = _FailureSearch(ConvexHull(corners), columns, limits, most)
    bound, _ = search._compute_bound(fates, caps, floors)
    reached = []
    for law in corners:
        total = Fraction(0)
        for y, mass in enumerate(exactly(law, columns)):
            cap, floor, c, u = (Fraction(float(x[y])) for x in (caps, floors, limits, most))
            total += (
                (1 - cap) * mass + cap * c * (u - mass) / (u - c) if fates[y] == 0
                else mass + cap * (c - mass) if fates[y] == 1
                else floor * (mass - c)
            )  # fmt: skip
        reached.append(total)
    assert max(reached) <= Fraction(bound) <= max(reached) + Fraction(1, 10**12)


@pytest.mark.parametrize("seed", range(4))
def test_no_multipliers_prove_a_node_empty_that_has_a_prior(
    seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The limits are met exactly, up to one float of each, so that only rounding is left to tell."""
    rng = np.random.default_rng([301, seed])
    columns, law = rng.random((5, 4)), rng.dirichlet(np.ones(5))
    fates = np.array([1.0, 1.0, -1.0, -1.0])
    limits = np.array([float(q) for q in exactly(law, columns)])
    for y, q in enumerate(exactly(law, columns)):
        while (Fraction(float(limits[y])) - q) * int(fates[y]) < 0:
            limits[y] = np.nextafter(limits[y], math.inf * fates[y])
    search = _FailureSearch(ConvexHull([law]), columns, limits, np.ones(4))
    monkeypatch.setattr(
        search,
        "_solve_relaxation",
        lambda *_, **__: (law, rng.uniform(0, 2, 4), rng.uniform(0, 2, 4), 1e-3),
    )
    assert not search._is_empty(fates)
