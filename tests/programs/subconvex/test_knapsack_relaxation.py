"""Bounds without single sets are never below the best column."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from oracles.brute_force_columns import UTILITIES, Problem, families_under, problems
from strategies import MODEST, epsilons, priors

from pmlopt import PML, Prior
from pmlopt.core.arrays import FloatArray
from pmlopt.model.uncertainty.columns import Box, Family, Staircase
from pmlopt.model.utility import MutualInformation
from pmlopt.programs.subconvex.columns import Kernel
from pmlopt.programs.subconvex.relaxations import closed_multipliers, relaxed


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


@settings(max_examples=25, deadline=None)
@given(problems(["ldp", "ball"], max_size=5))
def test_the_bound_on_staircases_is_reached_by_a_letter_in_part(problem: Problem) -> None:
    family = problem.families[-1]
    assert isinstance(family, Staircase)
    p, phi = problem.p, np.vectorize(UTILITIES[problem.utility])
    order, costs = np.argsort(problem.rho, kind="stable"), p * problem.rho
    masses = np.linspace(0, min(1.0, family.capacity), 2_001)[:-1]
    spent = np.interp(masses, np.append(0, p[order].cumsum()), np.append(0, costs[order].cumsum()))
    low = (1 - family.base * masses) / (1 - masses + family.slope * masses)
    high = family.base + family.slope * low
    values = masses * phi(high) + (1 - masses) * phi(low) - low * costs.sum() - (high - low) * spent
    bound = relaxed(problem.kernel, family, problem.rho)
    assert values.max() - 1e-12 * problem.size <= bound <= values.max() + 2e-3 * problem.size
