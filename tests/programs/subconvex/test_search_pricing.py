"""Pricing by search: bounds are never too small, columns are what they claim, small problems are exact."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from oracles import designs as oracles
from oracles.brute_force_columns import UTILITIES, Make, Problem, assert_allowed, extreme, problems, rounded
from oracles.designs import random_prior

from pmlopt import LIP, PML, Prior, design, solve
from pmlopt.core.arrays import FloatArray, subset_sums
from pmlopt.model.uncertainty.columns import Box, Family, Staircase
from pmlopt.model.utility import ChiSquare, Hellinger, MutualInformation, SubConvex, TotalVariation
from pmlopt.programs.subconvex import search_pricing
from pmlopt.programs.subconvex.columns import Kernel
from pmlopt.programs.subconvex.count_pricing import CountPricer
from pmlopt.programs.subconvex.relaxations import relaxed
from pmlopt.programs.subconvex.search_pricing import (
    SearchPricer,
    columns_above,
    near_perfect,
    staircases_above,
)


@settings(max_examples=20, deadline=None)
@given(problems(["pml", "tied", "lip"]))
def test_on_few_letters_the_bound_on_boxes_is_exact(problem: Problem) -> None:
    check_exact(problem, -math.inf, problem.best() - 1e-9, problem.best() - 0.01)


@settings(max_examples=20, deadline=None)
@given(problems(["ldp", "ball"], max_size=6))
def test_on_few_letters_the_bound_on_staircases_is_exact(problem: Problem) -> None:
    check_exact(problem, -math.inf, problem.best() - 1e-9)


def check_exact(problem: Problem, *enoughs: float) -> None:
    """The bound is that of brute force, whatever would be enough."""
    expected = problem.best()
    pricer = SearchPricer(problem.kernel, problem.families)
    for enough in enoughs:
        bound = pricer.bound(problem.rho, enough)
        assert expected - 1e-9 * problem.size <= bound <= max(expected, enough) + 1e-8 * problem.size


@settings(max_examples=30, deadline=None)
@given(problems(["pml", "tied", "lip"], min_size=4), st.integers(1, 5))
def test_however_little_is_searched_the_bound_holds(problem: Problem, core: int) -> None:
    true = problem.best()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("pmlopt.programs.subconvex.search_pricing.CORE_LETTERS", core)
        patch.setattr("pmlopt.programs.subconvex.search_pricing.MOST_MEETINGS", -1)
        pricer = SearchPricer(problem.kernel, problem.families)
        bound = pricer.bound(problem.rho, -math.inf)
        priced = pricer.price(problem.rho, 2, true - 1e-6)
    assert bound == relaxed(problem.kernel, problem.families[0], problem.rho)
    assert min(bound, priced.upper) >= true - 1e-9 * problem.size
    if any(len(columns) for columns in priced.columns):
        assert priced.best == pytest.approx(problem.largest(priced.columns), abs=1e-9 * problem.size)


@settings(max_examples=25, deadline=None)
@given(problems())
def test_a_bound_that_is_enough_is_not_lowered_past_the_truth(problem: Problem) -> None:
    true = problem.best()
    bound = SearchPricer(problem.kernel, problem.families).bound(problem.rho, true + 1.0)
    assert true - 1e-9 * problem.size <= bound


def by_masks(p: FloatArray, box: Box, utility: Make, rho: FloatArray) -> float:
    """The best column of a box by brute force on all subsets as numbers of N bits."""
    n = len(p)
    phi = np.vectorize(UTILITIES[utility])
    sets = (np.arange(2**n)[:, None] >> np.arange(n)) & 1 == 1
    rest = 1 - box.low - (box.high - box.low) * (sets @ p)
    low, high = (float(phi(end)) for end in (box.low, box.high))
    base = np.where(sets, p * (high - rho * box.high), p * (low - rho * box.low)).sum(axis=1)
    best = -math.inf
    for letter in range(n):
        entry = box.low + rest / p[letter]
        fits = np.flatnonzero(~sets[:, letter] & (rest >= 0) & (entry <= box.high))
        if len(fits):
            value = base[fits] + p[letter] * (phi(entry[fits]) - rho[letter] * entry[fits])
            best = max(best, float((value - p[letter] * (low - rho[letter] * box.low)).max()))
    return best


@pytest.mark.parametrize(("seed", "low"), [(1, 0.0), (2, 0.2), (3, 0.0)])
@pytest.mark.parametrize("utility", [MutualInformation, ChiSquare])
def test_more_letters_than_a_core_holds(seed: int, low: float, utility: Make) -> None:
    rng = np.random.default_rng(seed)
    p = oracles.random_prior(rng, 18, 3.0)
    box, rho = Box(low, float(rng.uniform(1.3, 3.0))), 0.3 * rng.normal(size=18)
    pricer = SearchPricer(Kernel(p, utility().phi), [box])
    true = by_masks(p, box, utility, rho)
    assert pricer.bound(rho, -math.inf) == pytest.approx(true, abs=1e-8)
    assert pricer.price(rho, 10, true - 1e-9).best == pytest.approx(true, abs=1e-8)


@pytest.mark.parametrize("utility", [MutualInformation, ChiSquare])
@pytest.mark.parametrize("family", [Staircase(0.0, 3.0), Staircase(2.2, 0.3), Staircase(1.4, 0.02)])
@pytest.mark.parametrize("spread", [0.0, 1e-3, 0.3])
def test_staircases_on_many_letters_are_met_in_the_middle(
    utility: Make, family: Staircase, spread: float
) -> None:
    rng = np.random.default_rng(4)
    p = oracles.random_prior(rng, 14, 3.0)
    rho = spread * rng.normal(size=14)
    sets = (np.arange(1, 2**14 - 1)[:, None] >> np.arange(14)) & 1 == 1
    sets = sets[sets @ p < 1 / family.base if family.base > 1 else np.full(len(sets), True)]
    mass = sets @ p
    low = (1 - family.base * mass) / (1 - mass + family.slope * mass)
    lifts = np.where(sets, (family.base + family.slope * low)[:, None], low[:, None])
    values = np.vectorize(UTILITIES[utility])(lifts) @ p - lifts @ (p * rho)
    true = np.sort(values)[::-1]
    pricer = SearchPricer(Kernel(p, utility().phi), [family])
    assert pricer.bound(rho, -math.inf) == pytest.approx(true[0], abs=1e-9)
    found = staircases_above(pricer.kernel, family, rho, float(true[20] + true[21]) / 2, 100, 0.0)
    assert found is not None
    assert len(found[1]) == 21 or true[20] - true[21] < 1e-12
    assert found[0] == pytest.approx(true[0], abs=1e-12)


@pytest.mark.parametrize(
    "families",
    [(Box(0.0, 2.0),), (Box(0.3, 2.0),), (Staircase(0.0, 3.0),), (Box(0.0, 1.5), Staircase(1.5, 0.1))],
)
def test_on_many_letters_it_agrees_with_the_counts(families: tuple[Family, ...]) -> None:
    rng = np.random.default_rng(60)
    counts = tuple(rng.integers(1, 30, 60).tolist())
    problem = Problem(counts, families, MutualInformation, 0.3 * rng.normal(size=60))
    exact = CountPricer(problem.kernel, families, counts).bound(problem.rho, -math.inf)
    pricer = SearchPricer(problem.kernel, families)
    bound = pricer.bound(problem.rho, exact - 1e-3)
    assert exact - 1e-9 <= bound <= exact + 0.01
    priced = pricer.price(problem.rho, 20, exact - 1e-3)
    assert exact - 1e-3 <= priced.best <= exact + 1e-9
    assert priced.best == pytest.approx(problem.largest(priced.columns), abs=1e-9)


def test_the_same_problem_is_always_searched_in_the_same_way() -> None:
    rng = np.random.default_rng(5)
    p, rho = oracles.random_prior(rng, 30), rng.normal(size=30)
    first, second = (
        SearchPricer(Kernel(p, MutualInformation().phi), [Box(0.0, 2.0)]).price(rho, 10, -math.inf)
        for _ in "ab"
    )
    assert first.best == second.best
    assert np.array_equal(first.columns[0].lifts(p), second.columns[0].lifts(p))


def test_a_column_that_is_one_letter_alone_is_never_missed() -> None:
    for seed in range(10):
        rng = np.random.default_rng(seed)
        p = rng.uniform(0.5, 1.0, 40)
        p[0] = p[1:].sum() * rng.uniform(0.5, 1.0)
        p /= p.sum()
        box, rho = Box(0.0, 1.2 / p[0]), 0.01 * rng.normal(size=40)
        rho[0] = -1.0
        value = math.log(1 / p[0]) + 1.0  # of the letter 0 alone
        pricer = SearchPricer(Kernel(p, MutualInformation().phi), [box])
        assert pricer.bound(rho, value - 1e-6) >= value - 1e-9, seed


# ---------------------------------------------------------------- meeting in the middle


boxes = problems(["pml", "tied", "lip"])


@settings(max_examples=40, deadline=None)
@given(boxes, st.sampled_from([1e-6, 1e-3, 0.1, 1.0, math.inf]))
def test_it_finds_every_column_above_the_threshold_and_no_other(problem: Problem, depth: float) -> None:
    box = problem.families[0]
    assert isinstance(box, Box)
    every = extreme(problem.exact, box)
    value = {column: problem.value([float(v) for v in column]) for column in every}
    threshold = max(value.values()) - (depth if depth < math.inf else 1e3 * problem.size)
    above = columns_above(problem.kernel, box, problem.rho, threshold, 10_000)
    assert above is not None
    best, columns = above
    assert best == pytest.approx(max(value.values()), abs=1e-9 * problem.size)
    found = rounded(columns.lifts(problem.p))
    near = 1e-9 * problem.size
    sure = {column for column in every if value[column] > threshold + near}
    assert set(rounded(sure)) <= set(found)
    assert set(found) <= set(rounded({column for column in every if value[column] > threshold - near}))
    assert_allowed(problem.p, columns.lifts(problem.p), box)


def test_where_there_are_too_many_it_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    kernel = Kernel(np.full(12, 1 / 12), MutualInformation().phi)
    assert columns_above(kernel, Box(0.0, 2.1), np.zeros(12), -10.0, 5) is not None
    for limit in ("MOST_HALF_SUBSETS", "MOST_MEETINGS"):
        with monkeypatch.context() as patch:
            patch.setattr(search_pricing, limit, 10)
            assert columns_above(kernel, Box(0.0, 2.1), np.zeros(12), -10.0, 5) is None


# ---------------------------------------------------------------- columns of almost the closed bound


@pytest.mark.parametrize("box", [Box(0.0, 2.7), Box(0.0, 6.0), Box(0.4, 1.9)], ids=str)
@pytest.mark.parametrize("letters", [2, 7, 13])
def test_on_few_letters_they_are_the_sets_of_least_mass_beyond_the_capacity(box: Box, letters: int) -> None:
    p = random_prior(np.random.default_rng(letters), letters, 3.0)
    columns = near_perfect(box, p, 100, np.random.default_rng(0))
    small = p < box.capacity
    enough = np.sort(subset_sums(p[small]))
    enough = enough[enough >= box.capacity * (1 - 1e-13)]
    if columns is None:
        assert p[small].sum() <= box.capacity
        return
    masses = p @ (columns.high.T | (np.arange(letters)[:, None] == columns.between))
    assert masses.min() == pytest.approx(enough[0], abs=1e-15)
    assert (masses >= box.capacity * (1 - 1e-13)).all()
    lifts = columns.lifts(p)
    assert_allowed(p, lifts, box)
    worth, perfect = p @ (lifts * np.log(lifts, where=lifts > 0, out=np.zeros_like(lifts))), masses.argmin()
    assert worth[perfect] >= worth.max() - 1e-12


@pytest.mark.parametrize("letters", [31, 41, 90])
def test_on_many_letters_next_to_nothing_is_missing(letters: int) -> None:
    p = random_prior(np.random.default_rng(letters), letters, 5.0)
    box = Box(0.0, math.e)
    columns = near_perfect(box, p, 60, np.random.default_rng(0))
    assert columns is not None
    assert len(columns) == 60
    assert_allowed(p, columns.lifts(p), box)
    worths = MutualInformation().worths(p, columns.lifts(p))
    assert 1 - 1e-6 <= worths.min() <= worths.max() <= 1 + 1e-12


@pytest.mark.parametrize("utility", [MutualInformation, ChiSquare, TotalVariation, Hellinger])
def test_forty_five_letters_are_proved_within_their_range(utility: Callable[[], SubConvex]) -> None:
    p = random_prior(np.random.default_rng(45), 45, 5.0)
    result = solve(design(p, PML(1.0), utility()), gap=1e-8)
    assert result.status.value == "optimal"
    assert result.certificate.verify()
    if utility is MutualInformation:  # each letter is below e^-eps, so that none tells more than eps
        assert result.value == pytest.approx(1.0, abs=1e-8)


def test_both_bounds_of_local_information_privacy() -> None:
    result = solve(
        design(random_prior(np.random.default_rng(3), 50, 5.0), LIP(1.0, 1.0), MutualInformation())
    )
    assert result.gap <= 1e-7


@pytest.mark.parametrize("seed", [3, 4])
def test_a_core_that_is_too_light_takes_a_letter_more(seed: int) -> None:
    """Under a skewed prior a heavy letter may be missing that the core cannot make up for."""
    p = np.random.default_rng(seed).dirichlet(np.ones(60))
    families = PML(0.1).columns(Prior(p))
    assert isinstance(families, tuple)
    for box in families:
        assert isinstance(box, Box)
        columns = near_perfect(box, p, 240, np.random.default_rng(0))
        assert columns is not None
        assert len(columns) > 0
        assert_allowed(p, columns.lifts(p), box)
