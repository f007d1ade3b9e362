"""Pricing over least masses, against the list of all extreme columns."""

import math

import numpy as np
import pytest

from pmlopt import LDP, PML, Box, MinimumMass, MutualInformation, design, solve
from pmlopt.core.arrays import FloatArray
from pmlopt.model.uncertainty.columns import Cone
from pmlopt.programs.subconvex import tangents
from pmlopt.programs.subconvex.tangents import KindPricer, least_mass


def problem(seed: int) -> tuple[FloatArray, float, float, FloatArray, FloatArray]:
    """A prior, a least mass, e^-epsilon, all extreme columns and what they tell."""
    rng = np.random.default_rng(seed)
    n = int(rng.integers(2, 8))
    p = rng.dirichlet(np.full(n, rng.choice([0.5, 2.0]))) + 1e-4
    p /= p.sum()
    mass, keep = float(rng.choice([0.0, rng.uniform(0, 1)])) / n, float(rng.uniform(0.05, 0.95))
    lifts = Cone(MinimumMass(n, mass), keep).extreme(p, 10**6)
    assert lifts is not None
    told = p @ np.where(lifts > 0, lifts * np.log(np.maximum(lifts, 1e-300)), 0.0)
    return p, mass, keep, lifts, told


@pytest.mark.parametrize("seed", range(12))
def test_the_best_column_is_found_and_bounded(seed: int) -> None:
    p, mass, keep, lifts, told = problem(seed)
    pricer = KindPricer.least_mass(p, mass, keep)
    for rho in np.random.default_rng(seed).normal(size=(4, len(p))) * [[0.0], [0.01], [0.3], [2.0]]:
        values = told - (p * rho) @ lifts
        best = float(values[np.ptp(lifts, axis=0) > 1e-9].max())
        priced = pricer.price(rho, 5, -math.inf)
        assert priced.best == pytest.approx(best, abs=1e-10)
        assert priced.upper >= best - 1e-15
        assert pricer.bound(rho, -math.inf) == pytest.approx(best, abs=1e-10)
        assert pricer.relaxed(rho, 0.0, 0.0).upper >= best
        assert pricer.bound(rho, best - 0.1) == pytest.approx(best, abs=1e-10)
        assert best <= pricer.bound(rho, best + 0.1) <= best + 0.1


@pytest.mark.parametrize("seed", range(40))
def test_what_is_found_is_allowed_and_worth_what_it_says(seed: int) -> None:
    p, mass, keep, _, _ = problem(seed)
    rho = np.random.default_rng(seed).normal(size=len(p))
    pricer, priors = KindPricer.least_mass(p, mass, keep), MinimumMass(len(p), mass)
    for columns in pricer.price(rho, 50, -math.inf).columns:
        for share in (0.0, 1e-13):
            lifts = columns.lifts(p, share)
            assert p @ lifts == pytest.approx(np.ones(lifts.shape[1]), abs=1e-12)
            assert (keep * lifts.max(axis=0) <= priors.least_mean(lifts) + 1e-13).all()


@pytest.mark.parametrize("seed", range(20))
def test_a_search_cut_short_still_bounds(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tangents, "NODES", (1, 2))
    p, mass, keep, lifts, told = problem(seed)
    rho = 0.3 * np.random.default_rng(seed).normal(size=len(p))
    values = told - (p * rho) @ lifts
    best = float(values[np.ptp(lifts, axis=0) > 1e-9].max())
    for enough in (best - 1.0, best - 1e-2, best - 1e-6):
        assert KindPricer.least_mass(p, mass, keep).bound(rho, enough) >= best - 1e-15


def test_only_equal_masses_are_counted() -> None:
    assert least_mass(Cone(MinimumMass(3, 0.1), 0.5)) == pytest.approx(0.1)
    assert least_mass(Cone(Box([0.1, 0.1, 0.1], [1, 1, 1]), 0.5)) == pytest.approx(0.1)
    assert least_mass(Cone(Box([0.1, 0.2, 0.1], [1, 1, 1]), 0.5)) is None
    assert least_mass(Cone(Box([0.1, 0.1, 0.1], [0.5, 0.5, 0.5]), 0.5)) is None


@pytest.mark.parametrize(("size", "mass"), [(18, 0.3), (24, 0.3), (40, 0.3), (20, 0.8)])
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
