"""Plateaus against all of them, one by one."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from oracles import designs as oracles
from oracles.designs import FloatArray

from pmlopt.model.utility import ChiSquare, Hellinger, MutualInformation
from pmlopt.programs.subconvex.columns import Kernel
from pmlopt.programs.subconvex.plateau_pricing import Plateau, PlateauSearch

UTILITIES = [MutualInformation(), ChiSquare(), Hellinger()]


def plateaus(p: FloatArray, half: float, keep: float) -> FloatArray:
    """(N, K) all columns with max v on A, b on B, 0 elsewhere, mean one, and the least mean keep max v.

    Over the ball the adversary moves `half` off the top of v: with p(A) < half what is left of A and B is
    `(p(A) + p(B) - half) b`.
    """
    found = []
    for states in itertools.product((0, 1, 2), repeat=len(p)):
        top, between = np.array(states) == 2, np.array(states) == 1
        a, s = p[top].sum(), p[top].sum() + p[between].sum()
        if a < half and s - half >= keep:
            column = top + keep / (s - half) * between
            found.append(column / (p @ column))
    return np.array(found).reshape(-1, len(p)).T


def problem(seed: int) -> tuple[Kernel, Plateau, FloatArray, FloatArray]:
    """A kernel, a family, its columns and random multipliers."""
    rng = np.random.default_rng([71, seed])
    n = int(rng.integers(2, 8))
    p = oracles.random_prior(rng, n, float(rng.choice([0.5, 2.0])))
    half = float(rng.uniform(0.05, 0.9))
    keep = float(rng.uniform(0.02, 1 - half)) * 0.98
    kernel = Kernel(p, UTILITIES[seed % 3].phi)
    spread = float(rng.choice([0.1, 1.0, 3.0]))
    return kernel, Plateau(half, keep), plateaus(p, half, keep), spread * rng.normal(size=n)


@pytest.mark.parametrize("seed", range(12))
def test_the_search_ends_at_the_best_plateau(seed: int) -> None:
    kernel, family, columns, rho = problem(seed)
    best = float((kernel.worth(columns) - (kernel.p * rho) @ columns).max())
    search = PlateauSearch(kernel, family, rho, -np.inf)
    assert search.upper >= best - 1e-12
    search.run(5_000)
    assert search.ended
    assert search.upper == pytest.approx(best, abs=1e-8 * (1 + abs(best)))
    assert search.upper >= best - 1e-12


@pytest.mark.parametrize("seed", range(8))
def test_a_search_cut_short_has_a_bound(seed: int) -> None:
    kernel, family, columns, rho = problem(seed)
    best = float((kernel.worth(columns) - (kernel.p * rho) @ columns).max())
    search = PlateauSearch(kernel, family, rho, -np.inf)
    uppers = []
    for _ in range(6):
        search.run(2)
        uppers.append(search.upper)
        assert search.upper >= best - 1e-12
    assert uppers == sorted(uppers, reverse=True)


@pytest.mark.parametrize("seed", range(8))
def test_a_bound_that_is_low_enough_is_not_lowered(seed: int) -> None:
    kernel, family, columns, rho = problem(seed)
    best = float((kernel.worth(columns) - (kernel.p * rho) @ columns).max())
    search = PlateauSearch(kernel, family, rho, best + 10)
    assert search.ended
    assert best - 1e-12 <= search.upper <= best + 10


@pytest.mark.parametrize("seed", range(8))
def test_guesses_are_nested_sets(seed: int) -> None:
    kernel, family, _, rho = problem(seed)
    search = PlateauSearch(kernel, family, rho, -np.inf)
    search.run(20)
    inner, between = search.guesses()
    assert len(inner) > 0
    assert not (inner & between).any()
    assert len(search.guesses()[0]) == 0


def test_where_all_mass_is_asked_for_there_are_none() -> None:
    p = np.array([0.5, 0.5])
    search = PlateauSearch(Kernel(p, UTILITIES[0].phi), Plateau(0.5, 0.5), np.zeros(2), 0.0)
    assert Plateau(0.5, 0.5).empty
    assert search.upper == -np.inf
    assert search.ended
