"""Bounds without single sets, and branch and bound on staircases, are never below the best column."""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from oracles import designs as oracles
from oracles.brute_force_columns import UTILITIES, Make, Problem, families_under, problems
from strategies import MODEST, epsilons, priors

from pmlopt import PML, Prior
from pmlopt.core.arrays import FloatArray
from pmlopt.model.uncertainty.columns import Box, Family, Staircase
from pmlopt.model.utility import MutualInformation
from pmlopt.programs.subconvex.columns import Kernel
from pmlopt.programs.subconvex.knapsack_branch_and_bound import closed_multipliers, relaxed
from pmlopt.programs.subconvex.staircase_search import StaircaseBound, staircase_bound


@settings(max_examples=30, deadline=None)
@given(problems())
def test_the_relaxed_bound_is_never_below_the_best_column(problem: Problem) -> None:
    for family in problem.families:
        bound = relaxed(problem.kernel, family, problem.rho)
        assert bound >= problem.best([family]) - 1e-12 * problem.size


@settings(max_examples=25, deadline=None)
@given(problems())
def test_closed_multipliers_give_a_bound_on_every_mixture_of_columns(problem: Problem) -> None:
    for family in problem.families:
        rho = closed_multipliers(problem.kernel, family)
        problem = Problem(problem.counts, problem.families, problem.utility, rho)
        assert relaxed(problem.kernel, family, rho) >= problem.best([family]) - 1e-12 * problem.size


@given(priors(1, 12), epsilons(25.0))
@MODEST
def test_the_closed_bound_on_mutual_information_is_the_formula(p: FloatArray, epsilon: float) -> None:
    prior = Prior(p)
    [family] = families_under(PML(epsilon), prior)
    kernel = Kernel(prior.pmf, MutualInformation().phi)
    rho = closed_multipliers(kernel, family)
    expected = math.fsum(w * min(epsilon, -math.log(w)) for w in prior.pmf.tolist())
    assert float(prior.pmf @ rho) + relaxed(kernel, family, rho) == pytest.approx(expected, abs=1e-12)


@pytest.mark.parametrize("family", [Box(0.0, 1.0), Box(1.0, 1.0), Staircase(0.0, 1.0)])
def test_where_only_the_constant_is_left_the_bound_is_its_cost(family: Family) -> None:
    p, rho = np.array([0.5, 0.3, 0.2]), np.array([1.0, -2.0, 0.5])
    kernel = Kernel(p, MutualInformation().phi)
    assert relaxed(kernel, family, rho) == pytest.approx(-(0.5 - 0.6 + 0.1), abs=1e-15)


def with_constant(problem: Problem, family: Family) -> float:
    """The best staircase, or the constant: the empty set's."""
    return max(problem.best([family]), problem.value([1.0] * len(problem.counts)))


@settings(max_examples=25, deadline=None)
@given(problems(["ldp", "ball"], max_size=5), st.sampled_from([-math.inf, -1e-6, -0.05, 0.05]))
def test_the_bounds_on_staircases_are_never_below_the_best(problem: Problem, offset: float) -> None:
    family = problem.families[-1]
    assert isinstance(family, Staircase)
    true = with_constant(problem, family)
    enough = true + offset
    rough = StaircaseBound(problem.kernel, family, problem.rho, enough=enough).upper
    assert rough >= true - 1e-12 * problem.size
    assert staircase_bound(problem.kernel, family, problem.rho, enough) >= true - 1e-12 * problem.size


@settings(max_examples=20, deadline=None)
@given(problems(["ldp", "ball"]))
def test_branch_and_bound_finds_the_best_staircase(problem: Problem) -> None:
    family = problem.families[-1]
    assert isinstance(family, Staircase)
    true = with_constant(problem, family)
    for enough in (true - 1e-8, true - 1e-3):
        found = staircase_bound(problem.kernel, family, problem.rho, enough)
        assert found == pytest.approx(true, abs=1e-7 * problem.size)


@settings(max_examples=25, deadline=None)
@given(problems(["ldp", "ball"], min_size=3, max_size=6), st.data())
def test_a_part_of_the_sets_is_bounded_by_its_own_best(problem: Problem, data: st.DataObject) -> None:
    family = problem.families[-1]
    assert isinstance(family, Staircase)
    n = len(problem.counts)
    place = data.draw(st.lists(st.sampled_from(["in", "out", "free"]), min_size=n, max_size=n))
    fixed, free = (np.array([word == kind for word in place]) for kind in ("in", "free"))
    bound = StaircaseBound(problem.kernel, family, problem.rho, fixed, free)
    true = best_of_part(problem, family, place)
    assert bound.upper >= true - 1e-12 * problem.size
    assert bound.split == -1 or free[bound.split]
    if not free.any() and true > -math.inf:
        assert bound.upper == pytest.approx(true, abs=1e-9 * problem.size)


def best_of_part(problem: Problem, family: Staircase, place: Sequence[str]) -> float:
    """The best staircase whose set has the letters that are in, and any of the free ones."""
    best = -math.inf
    choices = {"in": (True,), "out": (False,), "free": (True, False)}
    for chosen in product(*(choices[word] for word in place)):
        mass = sum((w for w, taken in zip(problem.exact, chosen, strict=True) if taken), 0 * problem.exact[0])
        if not 0 < mass < 1 or family.base * float(mass) >= 1 - 1e-12:
            continue
        low = (1 - family.base * float(mass)) / (1 - float(mass) + family.slope * float(mass))
        best = max(best, problem.value([family.base + family.slope * low if t else low for t in chosen]))
    return best


@pytest.mark.parametrize("utility", UTILITIES)
def test_many_letters_end_within_the_nodes(utility: Make) -> None:
    rng = np.random.default_rng(12)
    p = oracles.random_prior(rng, 12)
    family, rho = Staircase(0.0, 4.0), rng.normal(size=12)
    sets = (np.arange(1, 2**12 - 1)[:, None] >> np.arange(12)) & 1 == 1
    mass = sets @ p
    low = (1 / (1 + 3 * mass))[:, None]
    lifts = np.where(sets, 4 * low, low)
    phi = np.vectorize(UTILITIES[utility])
    true = float((phi(lifts) @ p - lifts @ (p * rho)).max())
    found = staircase_bound(Kernel(p, utility().phi), family, rho, true - 1e-6)
    assert true - 1e-10 <= found <= true + 1e-5
