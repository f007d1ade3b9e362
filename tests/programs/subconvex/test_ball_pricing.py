"""Bounds on what columns over an l1 ball tell, against random columns of the ball."""

import math

import numpy as np
import pytest
from numpy.typing import NDArray

from pmlopt import PML, L1Ball, MutualInformation, design, solve
from pmlopt.core.arrays import FloatArray
from pmlopt.model.uncertainty.columns import Cone
from pmlopt.programs.subconvex.ball_pricing import most_information, plateau_bound
from pmlopt.programs.subconvex.tangents import KindPricer


def columns(p: FloatArray, epsilon: float, half: float) -> FloatArray:
    """(N, K) all columns that are high on a set, lower on another, and zero elsewhere."""
    cone = Cone(L1Ball(p, 2 * half), math.exp(-epsilon))
    found = cone.extreme(p, 10**6)
    assert found is not None
    return found


def information(p: FloatArray, lifts: FloatArray) -> FloatArray:
    return np.asarray(p @ np.where(lifts > 0, lifts * np.log(np.maximum(lifts, 1e-300)), 0.0))


@pytest.mark.parametrize("seed", range(30))
def test_no_column_tells_more_than_the_theorem_says(seed: int) -> None:
    rng = np.random.default_rng(seed)
    keep = float(rng.uniform(0.05, 0.95))
    half = float(rng.uniform(0, min(keep, (2 - 2 * keep) / 3)))
    p = rng.dirichlet(np.full(int(rng.integers(2, 8)), rng.choice([0.3, 1.0, 5.0]))) + 1e-6
    p /= p.sum()
    told = information(p, columns(p, -math.log(keep), half))
    assert told.max() <= most_information(keep, half) + 1e-12


def test_without_its_conditions_the_theorem_is_false() -> None:
    p = np.array([0.9, 0.1])  # two levels, 1.09 and 0.17, tell 0.057 where -log(0.99) is 0.010
    told = information(p, columns(p, -math.log(0.5), 0.49))
    assert told.max() > -math.log(0.99) + 0.04
    assert most_information(0.5, 0.49) == math.inf


def plateaus(p: FloatArray, lifts: FloatArray, half: float) -> NDArray[np.bool_]:
    """(K,) which columns are high on a set lighter than half, lower on another, and zero elsewhere."""
    high = lifts >= lifts.max(axis=0) * (1 - 1e-9)
    empty, between = (lifts < 1e-12).any(axis=0), (~high & (lifts > 1e-9)).any(axis=0)
    return np.asarray(empty & between & (p @ high < half))


@pytest.mark.parametrize("seed", range(15))
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
        bound = plateau_bound(p, keep, half, rho, others, -math.inf)
        assert bound >= others
        assert worths[plateau].max(initial=-math.inf) <= bound + 1e-12


@pytest.mark.parametrize("seed", range(6))
def test_the_best_plateau_is_found_and_bounded(seed: int) -> None:
    rng = np.random.default_rng([2, seed])
    keep = float(rng.uniform(0.1, 0.6))
    half = float(keep * rng.uniform(0.1, 1.0 if seed % 2 else 2.0))
    p = rng.dirichlet(np.full(7, rng.choice([0.5, 2.0])))
    lifts = columns(p, -math.log(keep), half)
    plateau, told = plateaus(p, lifts, half), information(p, lifts)
    pricer = KindPricer.plateaus(p, keep, half)
    assert pricer is not None
    if not plateau.any():
        return
    for spread in (0.0, 1e-4, 0.1, 1.0):
        rho = -math.log(keep + half) + spread * rng.normal(size=7)
        worths = told - (p * rho) @ lifts
        best, others = float(worths[plateau].max()), float(worths[~plateau].max())
        assert pricer.bound(rho, best - 0.1) >= best - 1e-13
        # a plateau without zeros is allowed, too, and worth less than another column of two values
        assert pricer.bound(rho, best - 1e-6) <= max(best, others) + 1e-9
        priced = pricer.price(rho, 500, best - 1e-6)
        assert best - 1e-9 <= priced.best <= max(best, others) + 1e-9
        for found in priced.columns:
            least = L1Ball(p, 2 * half).least_mean(found.lifts(p))
            assert (keep * found.lifts(p).max(axis=0) <= least * (1 + 1e-12)).all()
        # what the others are worth tells where plateaus may be worth more, and loses none of them
        narrowed = pricer.narrowed(rho, others, others)
        assert max(others, narrowed.bound(rho, others)) >= max(others, best) - 1e-12
        assert max(others, narrowed.price(rho, 500, others).best) >= max(others, best) - 1e-9


def test_too_many_plateaus_or_a_wide_ball_are_left_to_others() -> None:
    assert KindPricer.plateaus(np.full(60, 1 / 60), 0.5, 0.2) is None
    assert KindPricer.plateaus(np.full(5, 1 / 5), 0.1, 0.3) is None


@pytest.mark.parametrize(("size", "epsilon", "radius"), [(14, 2.0, 0.05), (18, 1.0, 0.02), (20, 2.0, 0.05)])
def test_few_letters_over_a_ball_are_proved(size: int, epsilon: float, radius: float) -> None:
    p = np.random.default_rng(size).dirichlet(np.ones(size))
    result = solve(design(p, PML(epsilon, over=L1Ball(p, radius)), MutualInformation()))
    assert result.status == "optimal"
    assert result.certificate.verify()


@pytest.mark.parametrize(("size", "radius"), [(24, 0.02), (40, 0.0), (40, 0.2), (60, 0.02)])
def test_information_over_a_ball_is_closed(size: int, radius: float) -> None:
    p = np.random.default_rng(0).dirichlet(np.full(size, 2.0))
    result = solve(design(p, PML(1.0, over=L1Ball(p, radius)), MutualInformation()), tolerance=1e-7)
    assert result.gap <= 1e-7
    most = -math.log(math.exp(-1) + radius / 2)
    assert most == pytest.approx(most_information(math.exp(-1), radius / 2), abs=1e-15)
    assert result.bound <= most + 1e-10
    assert result.value >= most - (1e-4 if size < 40 else 1e-6)
    assert result.certificate.verify()
    assert result.level <= 1.0
