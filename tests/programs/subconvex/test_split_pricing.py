"""Bounds over a set of priors by relaxed columns: never below a listed column, as low as duality allows."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray
from oracles.prior_sets import KINDS, random_set

from pmlopt import LDP, PML, Box, L1Ball, MinimumMass, MutualInformation, Prior, design, solve
from pmlopt.core.numbers.arrays import FloatArray
from pmlopt.model.uncertainty.columns import ColumnCone
from pmlopt.model.utility import ChiSquare, FInformation, Hellinger, TotalVariation
from pmlopt.programs.subconvex import split_pricing, tangents
from pmlopt.programs.subconvex.ball_pricing import bound_ball_information, bound_plateaus
from pmlopt.programs.subconvex.columns import ColumnUtility
from pmlopt.programs.subconvex.split_pricing import (
    SplitPricer,
    SplitRelaxation,
    build_split_families,
)
from pmlopt.programs.subconvex.tangents import TangentPricer, get_common_min_mass

STEPS = np.array([-0.5, -0.2, 0.1, 0.5])

UTILITIES = (MutualInformation, ChiSquare, TotalVariation, Hellinger)


@st.composite
def cones(draw: st.DrawFn) -> tuple[ColumnCone, ColumnUtility, np.random.Generator]:
    """A set of priors with a level, a prior and a utility."""
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1), label="seed"))
    case = random_set(draw(st.sampled_from(KINDS), label="kind"), rng, int(rng.integers(2, 6)))
    utility: FInformation = draw(st.sampled_from(UTILITIES), label="utility")()
    return (
        ColumnCone(case.priors, math.exp(-float(rng.uniform(0.05, 2.0)))),
        ColumnUtility(case.p, utility.phi),
        rng,
    )


@settings(max_examples=8, deadline=None)
@given(cones(), st.sampled_from([0.0, 0.1, 1.0]))
def test_no_listed_column_is_worth_more_than_the_bound(
    problem: tuple[ColumnCone, ColumnUtility, np.random.Generator], scale: float
) -> None:
    cone, kernel, rng = problem
    rho = scale * rng.normal(size=len(kernel.p))
    listed = cone.extreme_columns(kernel.p, 10**5)
    assert listed is not None
    best = float((kernel.column_values(listed) - (kernel.p * rho) @ listed).max())
    pricer = SplitPricer(kernel, cone, build_split_families(cone))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(split_pricing, "MAX_REFINED_CELLS", 64)
        bound = pricer.bound_reduced_values(rho, -math.inf)
        relaxed = pricer.price_relaxed(rho, -math.inf, 0.0)
    size = 1 + abs(best) + float(np.abs(rho).max())
    assert bound >= best - 1e-9 * size
    assert relaxed.upper_bound >= best - 1e-9 * size
    assert kernel.p @ relaxed.lifts == pytest.approx(np.ones(relaxed.lifts.shape[1]), abs=1e-7)
    for found in relaxed.nearby_columns:  # columns, and none better than the best
        entries = found.entries
        assert (
            cone.exp_neg_epsilon * entries.max(axis=0) <= cone.priors.min_mean(entries) * (1 + 1e-9)
        ).all()
        assert (
            kernel.column_values(entries) - (kernel.p * rho) @ entries
        ).max() <= best + 1e-9 * size


@settings(max_examples=25, deadline=None)
@given(cones())
def test_any_multipliers_bound_a_whole_cell(
    problem: tuple[ColumnCone, ColumnUtility, np.random.Generator],
) -> None:
    cone, kernel, rng = problem
    for split in build_split_families(cone):
        relaxation = SplitRelaxation(kernel, split, rng.normal(size=len(kernel.p)))
        top, ratio = np.sort(rng.uniform(1.0, 3.0, 2)), np.sort(rng.uniform(0.0, 1.0, 2))
        dual = np.concatenate([rng.normal(size=1), rng.uniform(0.0, 3.0, len(split.top_rates))])[
            None
        ]
        cell = np.array([[*top, *ratio]])
        [bound], kept = relaxation.minimize_bounds(cell, dual, np.array([1.0]), 1, -math.inf)
        inside = [
            (t, t * r)
            for t in top.mean() + np.ptp(top) * STEPS
            for r in ratio.mean() + np.ptp(ratio) * STEPS
        ]
        values = relaxation.evaluate_corners(np.array([inside]), kept)[0]
        assert values.max() <= bound + 1e-9 * (1 + abs(bound))


def test_the_gap_on_more_letters_than_are_listed_is_small() -> None:
    p = np.random.default_rng(0).dirichlet(np.full(15, 2.0))
    within = Box(p * (2 / 3), np.minimum(p * (4 / 3), 1.0))
    result = solve(design(Prior(p), PML(1.0, over=within), MutualInformation()), tolerance=0.01)
    assert result.value <= result.bound <= 1.011 * result.value
    assert result.certificate.pricing == "split"
    assert result.certificate.verify()


def test_what_the_search_leaves_is_between_it_and_the_list(monkeypatch: pytest.MonkeyPatch) -> None:
    prior = Prior(np.random.default_rng(1).dirichlet(np.full(9, 2.0)))
    program = design(prior, PML(1.0, over=MinimumMass(9, 0.04)), MutualInformation())
    exact = solve(program)
    monkeypatch.setattr("pmlopt.programs.subconvex.program.MAX_DECLARED_COLUMNS", 10)
    monkeypatch.setattr("pmlopt.programs.subconvex.column_spaces.MAX_ENUMERATED_COLUMNS", 10)
    found = solve(
        design(prior, PML(1.0, over=MinimumMass(9, 0.04)), MutualInformation()), tolerance=0.1
    )
    assert found.certificate.pricing == "tangents"
    assert found.value <= exact.bound + 1e-9
    assert found.bound >= exact.value - 1e-9


# ---------------------------------------------------------------- over an l1 ball


def columns(p: FloatArray, epsilon: float, half: float) -> FloatArray:
    """(N, K) all columns that are high on a set, lower on another, and zero elsewhere."""
    cone = ColumnCone(L1Ball(p, 2 * half), math.exp(-epsilon))
    found = cone.extreme_columns(p, 10**6)
    assert found is not None
    return found


def information(p: FloatArray, lifts: FloatArray) -> FloatArray:
    return np.asarray(p @ np.where(lifts > 0, lifts * np.log(np.maximum(lifts, 1e-300)), 0.0))


@pytest.mark.parametrize("seed", range(12))
def test_no_column_tells_more_than_the_theorem_says(seed: int) -> None:
    rng = np.random.default_rng(seed)
    keep = float(rng.uniform(0.05, 0.95))
    half = float(rng.uniform(0, min(keep, (2 - 2 * keep) / 3)))
    p = rng.dirichlet(np.full(int(rng.integers(2, 8)), rng.choice([0.3, 1.0, 5.0]))) + 1e-6
    p /= p.sum()
    told = information(p, columns(p, -math.log(keep), half))
    assert told.max() <= bound_ball_information(keep, half) + 1e-12


def test_without_its_conditions_the_theorem_is_false() -> None:
    p = np.array([0.9, 0.1])  # two levels, 1.09 and 0.17, tell 0.057 where -log(0.99) is 0.010
    told = information(p, columns(p, -math.log(0.5), 0.49))
    assert told.max() > -math.log(0.99) + 0.04
    assert bound_ball_information(0.5, 0.49) == math.inf


def plateaus(p: FloatArray, lifts: FloatArray, half: float) -> NDArray[np.bool_]:
    """(K,) which columns are high on a set lighter than half, lower on another, and zero elsewhere."""
    high = lifts >= lifts.max(axis=0) * (1 - 1e-9)
    empty, between = (lifts < 1e-12).any(axis=0), (~high & (lifts > 1e-9)).any(axis=0)
    return np.asarray(empty & between & (p @ high < half))


@pytest.mark.parametrize("seed", range(6))
def test_no_plateau_exceeds_its_bound(seed: int) -> None:
    rng = np.random.default_rng([1, seed])
    keep = float(rng.uniform(0.1, 0.8))
    half = float(keep * rng.uniform(0, 1) ** 2)
    p = rng.dirichlet(np.full(7, rng.choice([0.5, 2.0])))
    lifts = columns(p, -math.log(keep), half)
    plateau = plateaus(p, lifts, half)
    for spread in (0.0, 1e-4, 0.1, 1.0):
        rho = -math.log(keep + half) + spread * rng.normal(size=7)
        worths = information(p, lifts) - (p * rho) @ lifts
        others = float(worths[~plateau].max())
        bound = bound_plateaus(p, keep, half, rho, others, -math.inf)
        assert bound >= others
        assert worths[plateau].max(initial=-math.inf) <= bound + 1e-12


@pytest.mark.parametrize("seed", range(3))
def test_the_best_plateau_is_found_and_bounded(seed: int) -> None:
    rng = np.random.default_rng([2, seed])
    keep = float(rng.uniform(0.1, 0.6))
    half = float(keep * rng.uniform(0.1, 1.0 if seed % 2 else 2.0))
    p = rng.dirichlet(np.full(7, rng.choice([0.5, 2.0])))
    lifts = columns(p, -math.log(keep), half)
    plateau, told = plateaus(p, lifts, half), information(p, lifts)
    pricer = TangentPricer.for_plateaus(p, keep, half)
    assert pricer is not None
    if not plateau.any():
        return
    for spread in (0.0, 1e-4, 0.1, 1.0):
        rho = -math.log(keep + half) + spread * rng.normal(size=7)
        worths = told - (p * rho) @ lifts
        best, others = float(worths[plateau].max()), float(worths[~plateau].max())
        assert pricer.bound_reduced_values(rho, best - 0.1) >= best - 1e-13
        # a plateau without zeros is allowed, too, and worth less than another column of two values
        assert pricer.bound_reduced_values(rho, best - 1e-6) <= max(best, others) + 1e-9
        priced = pricer.price_columns(rho, 500, best - 1e-6)
        assert best - 1e-9 <= priced.best_value <= max(best, others) + 1e-9
        for found in priced.columns:
            least = L1Ball(p, 2 * half).min_mean(found.build_lifts(p))
            assert (keep * found.build_lifts(p).max(axis=0) <= least * (1 + 1e-12)).all()
        # what the others are worth tells where plateaus may be worth more, and loses none of them
        narrowed = pricer.keep_profitable(rho, others, others)
        assert max(others, narrowed.bound_reduced_values(rho, others)) >= max(others, best) - 1e-12
        assert (
            max(others, narrowed.price_columns(rho, 500, others).best_value)
            >= max(others, best) - 1e-9
        )


def test_too_many_plateaus_or_a_wide_ball_are_left_to_others() -> None:
    assert TangentPricer.for_plateaus(np.full(60, 1 / 60), 0.5, 0.2) is None
    assert TangentPricer.for_plateaus(np.full(5, 1 / 5), 0.1, 0.3) is None


def test_few_letters_over_a_ball_are_proved() -> None:
    p = np.random.default_rng(14).dirichlet(np.ones(14))
    result = solve(design(p, PML(2.0, over=L1Ball(p, 0.05)), MutualInformation()))
    assert result.status == "optimal"
    assert result.certificate.verify()


@pytest.mark.parametrize(("size", "radius"), [(24, 0.02), (40, 0.0), (32, 0.2)])
def test_information_over_a_ball_is_closed(size: int, radius: float) -> None:
    p = np.random.default_rng(0).dirichlet(np.full(size, 2.0))
    result = solve(design(p, PML(1.0, over=L1Ball(p, radius)), MutualInformation()), tolerance=1e-7)
    assert result.gap <= 1e-7
    most = -math.log(math.exp(-1) + radius / 2)
    assert most == pytest.approx(bound_ball_information(math.exp(-1), radius / 2), abs=1e-15)
    assert result.bound <= most + 1e-10
    assert result.value >= most - (1e-4 if size < 30 else 1e-6)
    assert result.certificate.verify()
    assert result.level <= 1.0


# ---------------------------------------------------------------- over least masses


def problem(seed: int) -> tuple[FloatArray, float, float, FloatArray, FloatArray]:
    """A prior, a least mass, e^-epsilon, all extreme columns and what they tell."""
    rng = np.random.default_rng(seed)
    n = int(rng.integers(2, 8))
    p = rng.dirichlet(np.full(n, rng.choice([0.5, 2.0]))) + 1e-4
    p /= p.sum()
    mass, keep = float(rng.choice([0.0, rng.uniform(0, 1)])) / n, float(rng.uniform(0.05, 0.95))
    lifts = ColumnCone(MinimumMass(n, mass), keep).extreme_columns(p, 10**6)
    assert lifts is not None
    told = p @ np.where(lifts > 0, lifts * np.log(np.maximum(lifts, 1e-300)), 0.0)
    return p, mass, keep, lifts, told


@pytest.mark.parametrize("seed", range(12))
def test_the_best_column_is_found_and_bounded(seed: int) -> None:
    p, mass, keep, lifts, told = problem(seed)
    pricer, priors = TangentPricer.for_min_mass(p, mass, keep), MinimumMass(len(p), mass)
    for rho in np.random.default_rng(seed).normal(size=(4, len(p))) * [[0.0], [0.01], [0.3], [2.0]]:
        values = told - (p * rho) @ lifts
        best = float(values[np.ptp(lifts, axis=0) > 1e-9].max())
        priced = pricer.price_columns(rho, 5, -math.inf)
        assert priced.best_value == pytest.approx(best, abs=1e-10)
        assert priced.upper_bound >= best - 1e-15
        assert pricer.bound_reduced_values(rho, -math.inf) == pytest.approx(best, abs=1e-10)
        assert pricer.price_relaxed(rho, 0.0, 0.0).upper_bound >= best
        assert pricer.bound_reduced_values(rho, best - 0.1) == pytest.approx(best, abs=1e-10)
        assert best <= pricer.bound_reduced_values(rho, best + 0.1) <= best + 0.1
        for columns, share in itertools.product(priced.columns, (0.0, 1e-13)):
            allowed = columns.build_lifts(p, share)
            assert p @ allowed == pytest.approx(np.ones(allowed.shape[1]), abs=1e-12)
            assert (keep * allowed.max(axis=0) <= priors.min_mean(allowed) + 1e-13).all()


@pytest.mark.parametrize("seed", range(8))
def test_a_search_cut_short_still_bounds(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tangents, "MAX_NODES_BY_STAGE", (1, 2))
    p, mass, keep, lifts, told = problem(seed)
    rho = 0.3 * np.random.default_rng(seed).normal(size=len(p))
    values = told - (p * rho) @ lifts
    best = float(values[np.ptp(lifts, axis=0) > 1e-9].max())
    for enough in (best - 1.0, best - 1e-2, best - 1e-6):
        assert (
            TangentPricer.for_min_mass(p, mass, keep).bound_reduced_values(rho, enough)
            >= best - 1e-15
        )


def test_only_equal_masses_are_counted() -> None:
    assert get_common_min_mass(ColumnCone(MinimumMass(3, 0.1), 0.5)) == pytest.approx(0.1)
    assert get_common_min_mass(ColumnCone(Box([0.1, 0.1, 0.1], [1, 1, 1]), 0.5)) == pytest.approx(
        0.1
    )
    assert get_common_min_mass(ColumnCone(Box([0.1, 0.2, 0.1], [1, 1, 1]), 0.5)) is None
    assert get_common_min_mass(ColumnCone(Box([0.1, 0.1, 0.1], [0.5, 0.5, 0.5]), 0.5)) is None


@pytest.mark.parametrize(("size", "mass"), [(24, 0.3), (20, 0.8)])
def test_information_over_least_masses_is_proved(size: int, mass: float) -> None:
    p = np.random.default_rng(0).dirichlet(np.full(size, 2.0))
    privacy = PML(1.0, over=MinimumMass(size, mass / size))
    result = solve(design(p, privacy, MutualInformation()), tolerance=1e-8)
    assert result.gap <= 1e-8
    assert result.certificate.verify()
    assert result.level <= 1.0


def test_local_differential_privacy_is_the_mass_zero() -> None:
    p = np.random.default_rng(0).dirichlet(np.full(24, 2.0))
    mass = np.linspace(0, 1, 1_000_001)
    mean = math.exp(-1) + (1 - math.exp(-1)) * mass
    told = (-mean * np.log(mean) - (1 - mass) * math.exp(-1)) / mean
    result = solve(design(p, LDP(1.0), MutualInformation()), tolerance=1e-8)
    assert result.bound <= told.max() + 1e-8
    assert result.value == pytest.approx(told.max(), abs=1e-8)
    assert result.certificate.verify()
