"""Robust designs: against programs over the corners of the set, between PML and LDP, and their proofs."""

from __future__ import annotations

import math
import re
from itertools import pairwise
from typing import Any

import numpy as np
import pytest
from oracles import designs as oracles
from oracles.columns import UTILITIES, best_weights, deviation
from oracles.designs import FloatArray
from oracles.prior_sets import KINDS, Case, ball_case, extreme_columns, random_set, robust_rows

from pmlopt import (
    LDP,
    PML,
    AllPriors,
    Box,
    ConvexHull,
    ExpectedGain,
    L1Ball,
    MinimumMass,
    MutualInformation,
    Prior,
    Result,
    SubConvex,
    design,
    solve,
)
from pmlopt.errors import ProgramError
from pmlopt.model.uncertainty import PriorSet
from pmlopt.model.utility import LinearUtility
from pmlopt.programs import Status
from pmlopt.programs.linear.certificate import compute_utility_bound
from pmlopt.programs.subconvex.column_spaces import build_column_space

SUBCONVEX = ["mutual information", "guessing"]
AnyUtility = LinearUtility | SubConvex


def linear_optimum(case: Case, epsilon: float, gains: FloatArray) -> oracles.Optimum:
    """The best expected gain with the bound at every corner of the set."""
    rows = robust_rows(case.defined.corners(), gains.shape[1], epsilon)
    return oracles.optimum(case.p, PML(50.0), gains, rows, np.zeros(len(rows)))


def printed_rows(p: FloatArray, m: int, epsilon: float, radius: float) -> FloatArray:
    """EMP, eq. (10): `P[i,j] <= e^eps' (sum_x p[x] P[x,j] + radius/2 P[k,j])`, for all i, k, j."""
    n, scale = len(p), math.exp(epsilon) / (1 + math.exp(epsilon) * radius / 2)
    rows = np.zeros((n, n, m, n, m))
    for i in range(n):
        for k in range(n):
            for j in range(m):
                rows[i, k, j, :, j] -= scale * p
                rows[i, k, j, k, j] -= scale * radius / 2
                rows[i, k, j, i, j] += 1.0
    return rows.reshape(n * n * m, n * m)


def column_optimum(case: Case, epsilon: float, name: str) -> float:
    """The best sub-convex utility: a linear program over the extreme columns, by brute force."""
    lifts = extreme_columns(case.p, case.defined.corners(), epsilon)
    return best_weights(case.p, lifts, UTILITIES[name][1](case.p, lifts)).value


def designed(case: Case, epsilon: float, utility: AnyUtility, **options: Any) -> Result[Any]:
    """The solved design over the set, its proof checked."""
    result = solve(design(case.p, PML(epsilon, over=case.priors), utility), **options)
    assert_proved(case, epsilon, result)
    return result


def assert_proved(case: Case, epsilon: float, result: Result[Any]) -> None:
    """The level holds at every corner of the set, exactly as certified, and the value is within the bound."""
    assert result.value <= result.bound
    assert result.certificate.verify()
    assert result.level <= epsilon
    matrix = result.mechanism.matrix
    assert oracles.is_stochastic(matrix)
    leasts = (case.defined.corners() @ matrix).min(axis=0)
    assert (matrix.max(axis=0) <= math.exp(epsilon) * leasts + 1e-12).all()


def value(p: FloatArray, privacy: Any, utility: AnyUtility) -> float:
    return solve(design(p, privacy, utility)).value


# ---------------------------------------------------------------- linear utilities


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("seed", range(2))
def test_linear_designs_reach_the_program_over_the_corners(kind: str, seed: int) -> None:
    rng = np.random.default_rng([1, seed, KINDS.index(kind)])
    n = int(rng.integers(2, 5))
    case, epsilon = random_set(kind, rng, n), float(rng.uniform(0.02, 2.5))
    gains = rng.normal(size=(n, int(rng.integers(2, 5))))
    best = linear_optimum(case, epsilon, gains)
    result = designed(case, epsilon, ExpectedGain(gains))
    assert result.value == pytest.approx(best.value, abs=1e-7)
    assert result.bound >= best.value - 1e-9
    assert result.status is Status.OPTIMAL
    near = best.multipliers + rng.normal(size=n) * 0.1
    assert (
        compute_utility_bound(Prior(case.p), PML(epsilon, over=case.priors), gains, near)
        >= best.value - 1e-9
    )


def test_the_centre_of_a_ball_need_not_be_the_prior_of_the_design() -> None:
    for seed in range(2):
        rng = np.random.default_rng([4, seed])
        n = int(rng.integers(2, 5))
        ball = ball_case(oracles.random_prior(rng, n, 3.0), float(rng.uniform(0.05, 0.5)))
        case = Case(ball.priors, ball.defined, oracles.random_prior(rng, n))
        gains = rng.normal(size=(n, n))
        best = linear_optimum(case, 0.8, gains).value
        assert designed(case, 0.8, ExpectedGain(gains)).value == pytest.approx(best, abs=1e-7)
        reached = designed(case, 0.8, MutualInformation()).value
        assert reached == pytest.approx(column_optimum(case, 0.8, "mutual information"), abs=1e-8)


@pytest.mark.parametrize("seed", range(3))
def test_within_its_range_proposition_2_is_the_program_over_the_corners(seed: int) -> None:
    rng = np.random.default_rng([5, seed])
    n = int(rng.integers(2, 5))
    p = oracles.random_prior(rng, n, 3.0)
    radius = float(rng.uniform(0, 0.99)) * 2 * float(Prior(p).pmf.min())
    gains, epsilon = rng.normal(size=(n, n)), float(rng.uniform(0.1, 2))
    rows = printed_rows(p, n, epsilon, radius)
    printed = oracles.optimum(p, PML(50.0), gains, rows, np.zeros(len(rows))).value
    case = ball_case(p, radius)
    assert linear_optimum(case, epsilon, gains).value == pytest.approx(printed, abs=1e-8)
    assert designed(case, epsilon, ExpectedGain(gains)).value == pytest.approx(printed, abs=1e-7)


@pytest.mark.parametrize("name", ["linear", "mutual information"])
def test_a_ball_is_between_pml_and_ldp(name: str) -> None:
    rng = np.random.default_rng(6)
    n = int(rng.integers(2, 6))
    p, epsilon = oracles.random_prior(rng, n, 2.0), float(rng.uniform(0.1, 2))
    utility = ExpectedGain(rng.normal(size=(n, n))) if name == "linear" else UTILITIES[name][0]
    values = [
        value(p, PML(epsilon, over=L1Ball(p, r)), utility) for r in (0.0, 0.05, 0.2, 0.6, 1.2, 2.0)
    ]
    assert values[0] == pytest.approx(value(p, PML(epsilon), utility), abs=1e-9)
    assert values[-1] == pytest.approx(value(p, LDP(epsilon), utility), abs=1e-9)
    assert all(after <= before + 1e-9 for before, after in pairwise(values))


# ---------------------------------------------------------------- the ends of the ranges


@pytest.mark.parametrize("utility", [ExpectedGain(np.eye(3)), MutualInformation()])
def test_at_level_zero_or_on_one_letter_nothing_is_told(utility: AnyUtility) -> None:
    for kind in KINDS:
        case = random_set(kind, np.random.default_rng(9), 3)
        result = designed(case, 0.0, utility)
        assert result.level == 0
        nothing = float(case.p.max()) if isinstance(utility, ExpectedGain) else 0.0
        assert result.value == pytest.approx(nothing, abs=1e-9)
    alone: list[PriorSet] = [
        L1Ball([1.0], 0.5),
        MinimumMass(1, 0.5),
        AllPriors(1),
        Box([0.5], [1.0]),
    ]
    for over in (*alone, ConvexHull([[1.0]])):
        own = ExpectedGain([[1.0, 3.0, 2.0]]) if isinstance(utility, ExpectedGain) else utility
        result = solve(design([1.0], PML(0.3, over=over), own))
        assert result.value == pytest.approx(3 if own is not utility else 0, abs=1e-15)
        assert result.level == 0
        assert result.certificate.verify()


@pytest.mark.parametrize("radius", [1e-10, 1.0])
@pytest.mark.parametrize("utility", [ExpectedGain(np.eye(3)), MutualInformation()])
def test_a_letter_of_a_billionth_keeps_the_proof(utility: AnyUtility, radius: float) -> None:
    p = np.array([0.6, 0.4 - 1e-9, 1e-9])
    case = ball_case(p, radius)
    result = designed(case, 0.5, utility)
    assert result.gap <= 1e-6
    assert result.value >= value(p, LDP(0.5), utility) - 1e-9


@pytest.mark.parametrize("name", SUBCONVEX)
@pytest.mark.parametrize("kind", KINDS)
def test_sub_convex_designs_reach_the_program_over_all_columns(kind: str, name: str) -> None:
    rng = np.random.default_rng([11, KINDS.index(kind)])
    case, epsilon = random_set(kind, rng, int(rng.integers(2, 5))), float(rng.uniform(0.05, 2))
    best = column_optimum(case, epsilon, name)
    result = designed(case, epsilon, UTILITIES[name][0])
    assert result.value == pytest.approx(best, abs=1e-7)
    assert result.bound >= best - 1e-9
    assert result.status is Status.OPTIMAL
    for rho in rng.normal(size=(3, len(case.p))) * 0.5:  # any multipliers give a bound
        bound = build_column_space(
            Prior(case.p), PML(epsilon, over=case.priors), UTILITIES[name][0]
        ).compute_bound(rho, -np.inf, None)[0]
        assert bound >= best - 1e-9


@pytest.mark.parametrize(
    ("one", "number"),
    [
        (L1Ball(np.full(12, 1 / 12), 0.5), 3**12), (Box(np.full(12, 0.01), np.full(12, 0.5)), 3**12),
        (MinimumMass(16, 0.01), 9 * 2**16),
        (ConvexHull(np.random.default_rng(15).dirichlet(np.ones(12), 4)), None),
    ],
)  # fmt: skip
def test_too_many_columns_for_a_function_are_refused_by_their_number(
    one: PriorSet, number: int | None
) -> None:
    n, k = one.size, 4
    if number is None:
        number = sum(math.comb(n, t) * math.comb(k, t) * 2 ** (n - t) for t in range(k + 1))
    with pytest.raises(ProgramError, match=re.escape(f"{number:,}")):
        design(np.full(n, 1 / n), PML(0.5, over=one), SubConvex(deviation))
