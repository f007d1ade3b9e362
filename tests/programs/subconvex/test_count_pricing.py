"""Pricing by dynamic programming over whole counts is exact."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from oracles.brute_force_columns import UTILITIES, Make, Problem, assert_allowed, problems

from pmlopt.model.uncertainty.columns import Box, Family, Staircase
from pmlopt.model.utility import MutualInformation
from pmlopt.programs.subconvex.count_pricing import CountPricer


@settings(max_examples=40, deadline=None)
@given(problems())
def test_the_best_column_is_that_of_every_set(problem: Problem) -> None:
    pricer = CountPricer(problem.kernel, problem.families, problem.counts)
    expected = pytest.approx(problem.best(), abs=1e-9 * problem.size)
    priced = pricer.price(problem.rho, 4, -math.inf)
    assert pricer.bound(problem.rho, -math.inf) == expected
    assert priced.best == expected
    assert priced.upper == expected
    assert problem.largest(priced.columns) == expected


@settings(max_examples=30, deadline=None)
@given(problems())
def test_what_is_found_is_allowed_and_the_best_comes_first(problem: Problem) -> None:
    pricer = CountPricer(problem.kernel, problem.families, problem.counts)
    for columns in pricer.price(problem.rho, 6, -math.inf).columns:
        lifts = columns.lifts(problem.p)
        assert 1 <= len(columns) <= 6
        assert_allowed(problem.p, lifts, columns.family)
        values = [problem.value(column) for column in lifts.T.tolist()]
        assert values == pytest.approx(sorted(values, reverse=True), abs=1e-9 * problem.size)


@settings(max_examples=30, deadline=None)
@given(problems())
def test_with_a_margin_what_is_found_is_within_the_bounds(problem: Problem) -> None:
    pricer = CountPricer(problem.kernel, problem.families, problem.counts)
    for columns in pricer.price(problem.rho, 6, -math.inf).columns:
        assert_allowed(problem.p, columns.lifts(problem.p, 2.0**-40), columns.family, within=1e-15)


@settings(max_examples=25, deadline=None)
@given(problems(max_size=5))
def test_a_common_factor_of_the_counts_does_not_matter(problem: Problem) -> None:
    larger = CountPricer(problem.kernel, problem.families, [6 * count for count in problem.counts])
    assert larger.bound(problem.rho, 0.0) == CountPricer(
        problem.kernel, problem.families, problem.counts
    ).bound(problem.rho, 0.0)


@pytest.mark.parametrize("utility", UTILITIES)
@pytest.mark.parametrize("family", [Box(0.0, 2.5), Box(0.2, 1.7), Staircase(0.0, 3.0), Staircase(1.5, 0.05)])
def test_eight_letters(utility: Make, family: Family) -> None:
    rng = np.random.default_rng(8)
    problem = Problem((1, 2, 3, 5, 8, 13, 21, 34), (family,), utility, rng.normal(size=8))
    pricer = CountPricer(problem.kernel, problem.families, problem.counts)
    assert pricer.bound(problem.rho, 0.0) == pytest.approx(problem.best(), abs=1e-9 * problem.size)
    doubled = replace(problem, families=(family, Box(0.0, 1.3)))
    pricer = CountPricer(problem.kernel, doubled.families, problem.counts)
    assert pricer.bound(problem.rho, 0.0) == pytest.approx(doubled.best(), abs=1e-9 * problem.size)


def test_constant_families_are_left_out() -> None:
    problem = Problem(
        (1, 2, 3), (Box(0.0, 1.0), Box(0.0, 1.5)), MutualInformation, np.array([0.3, 0.1, -0.2])
    )
    priced = CountPricer(problem.kernel, problem.families, problem.counts).price(problem.rho, 5, 0.0)
    assert [columns.family for columns in priced.columns] == [Box(0.0, 1.5)]
    assert priced.best == pytest.approx(problem.best([Box(0.0, 1.5)]))


def test_only_modest_totals_are_affordable() -> None:
    assert CountPricer.affordable([Box(0.0, 2.0)], [1] * 1000)
    assert CountPricer.affordable([Box(0.0, 2.0)], [1000] * 1000)
    assert not CountPricer.affordable([Box(0.0, 2.0)], [10**9, 1])
    assert not CountPricer.affordable([Box(0.0, 2.0)], [10_001, *[10_000] * 999])
