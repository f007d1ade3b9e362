"""Each way of pricing families of columns, beside brute force over every set and letter between."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from oracles import designs as oracles
from oracles.brute_force_columns import (
    KINDS,
    Problem,
    assert_allowed,
    extreme,
    families_of,
    families_under,
    problems,
    rounded,
)
from oracles.designs import random_prior
from strategies import MODEST, epsilons, exact_law, priors

from pmlopt import LDP, LIP, PML, Prior, design, solve
from pmlopt.core.numbers.arrays import DefaultLabels, FloatArray
from pmlopt.model.privacy import Requirement
from pmlopt.model.uncertainty.columns import BoxFamily, Family, StaircaseFamily
from pmlopt.model.utility import ChiSquare, MutualInformation, SubConvex
from pmlopt.programs.subconvex.columns import (
    ColumnPricer,
    ColumnUtility,
    DenseBatch,
    recognize_columns,
)
from pmlopt.programs.subconvex.count_pricing import CountPricer
from pmlopt.programs.subconvex.relaxations import bound_family, find_closed_multipliers
from pmlopt.programs.subconvex.search_pricing import SearchPricer
from pmlopt.programs.subconvex.subset_cores import build_columns_near_capacity
from pmlopt.programs.subconvex.vertex_enumeration import VertexPricer, count_vertices, list_vertices


def of_the_list(problem: Problem) -> ColumnPricer:
    found = list_vertices(problem.p, problem.families, 10**6)
    assert found is not None
    return VertexPricer(problem.p, found, problem.kernel.column_values)


WAYS: Mapping[str, Callable[[Problem], ColumnPricer]] = {
    "counts": lambda problem: CountPricer(problem.kernel, problem.families, problem.counts),
    "vertices": of_the_list,
    "search": lambda problem: SearchPricer(problem.kernel, problem.families),
}


@pytest.mark.parametrize("way", WAYS)
@settings(max_examples=40, deadline=None)
@given(problems(), st.sampled_from([-math.inf, -0.1, 0.0, 0.1, math.inf]))
def test_the_best_column_is_found_and_all_are_allowed(
    way: str, problem: Problem, offset: float
) -> None:
    true, pricer = problem.best(), WAYS[way](problem)
    near = pytest.approx(true, abs=1e-9 * problem.size)
    priced = pricer.price_columns(problem.rho, 6, true + offset)
    assert priced.best_value == near
    assert priced.upper_bound >= true - 1e-9 * problem.size
    assert problem.largest(priced.columns) == near  # type: ignore[arg-type]
    for columns in [*priced.columns, *pricer.build_seeds(3)]:
        family = columns.family  # type: ignore[union-attr]
        assert_allowed(problem.p, columns.build_lifts(problem.p), family)
        assert_allowed(problem.p, columns.build_lifts(problem.p, 2.0**-40), family, within=1e-15)
    if way == "search":
        return
    assert priced.upper_bound == near
    assert pricer.bound_reduced_values(problem.rho, -math.inf) == near
    for columns in priced.columns:
        assert 1 <= len(columns) <= 6
        values = [problem.value(column) for column in columns.build_lifts(problem.p).T.tolist()]
        assert values == pytest.approx(sorted(values, reverse=True), abs=1e-9 * problem.size)


# ---------------------------------------------------------------- by whole counts


def test_constant_families_are_left_out() -> None:
    problem = Problem(
        (1, 2, 3),
        (BoxFamily(0.0, 1.0), BoxFamily(0.0, 1.5)),
        MutualInformation,
        np.array([0.3, 0.1, -0.2]),
    )
    priced = CountPricer(problem.kernel, problem.families, problem.counts).price_columns(
        problem.rho, 5, 0.0
    )
    assert [columns.family for columns in priced.columns] == [BoxFamily(0.0, 1.5)]
    assert priced.best_value == pytest.approx(problem.best([BoxFamily(0.0, 1.5)]))


# ---------------------------------------------------------------- columns of least loss for whole counts


def random_counts(seed: int, letters: int, total: int) -> list[int]:
    rng = np.random.default_rng([77, seed])
    return [
        int(count) for count in rng.multinomial(total, rng.dirichlet(np.full(letters, 2.0))) + 1
    ]


def test_many_letters_end_without_generated_columns(monkeypatch: pytest.MonkeyPatch) -> None:
    def no_round(self: CountPricer, *arguments: object) -> None:
        raise AssertionError("a round of pricing for more than a bound")

    counts = random_counts(100, 100, 20_000)
    program = design(
        Prior.from_counts(counts, DefaultLabels(len(counts))), PML(1.0), MutualInformation()
    )
    price = CountPricer.price_columns
    monkeypatch.setattr(
        CountPricer,
        "bound_reduced_values",
        lambda self, rho, enough, *_: price(self, rho, 1, enough).upper_bound,
    )
    monkeypatch.setattr(CountPricer, "price_columns", no_round)
    result = solve(program)
    assert result.status.value == "optimal"
    assert result.gap <= 1e-10
    assert (
        result.value < 1 - 1e-6
    )  # sets of whole counts miss the closed bound: the proof says by how much


# ---------------------------------------------------------------- by search


@settings(max_examples=30, deadline=None)
@given(problems(max_size=6))
def test_on_few_letters_the_bound_is_exact_whatever_would_be_enough(problem: Problem) -> None:
    expected = problem.best()
    pricer = SearchPricer(problem.kernel, problem.families)
    for enough in (-math.inf, expected - 1e-9, expected + 1.0):
        bound = pricer.bound_reduced_values(problem.rho, enough)
        assert (
            expected - 1e-9 * problem.size <= bound <= max(expected, enough) + 1e-8 * problem.size
        )


@settings(max_examples=30, deadline=None)
@given(problems(["pml", "tied", "lip"], min_size=4), st.integers(1, 5))
def test_however_little_is_searched_the_bound_holds(problem: Problem, core: int) -> None:
    true = problem.best()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("pmlopt.programs.subconvex.search_pricing.CORE_LETTERS", core)
        patch.setattr("pmlopt.programs.subconvex.search_pricing.MAX_SUBSET_PAIRS", -1)
        pricer = SearchPricer(problem.kernel, problem.families)
        bound = pricer.bound_reduced_values(problem.rho, -math.inf)
        priced = pricer.price_columns(problem.rho, 2, true - 1e-6)
    assert bound == bound_family(problem.kernel, problem.families[0], problem.rho)
    assert min(bound, priced.upper_bound) >= true - 1e-9 * problem.size
    if any(len(columns) for columns in priced.columns):
        assert priced.best_value == pytest.approx(
            problem.largest(priced.columns), abs=1e-9 * problem.size
        )


@pytest.mark.parametrize(
    "families",
    [
        (BoxFamily(0.0, 2.0),),
        (BoxFamily(0.3, 2.0),),
        (StaircaseFamily(0.0, 3.0),),
        (BoxFamily(0.0, 1.5), StaircaseFamily(1.5, 0.1)),
    ],
)
def test_on_many_letters_it_agrees_with_the_counts(families: tuple[Family, ...]) -> None:
    rng = np.random.default_rng(60)
    counts = tuple(rng.integers(1, 30, 60).tolist())
    problem = Problem(counts, families, MutualInformation, 0.3 * rng.normal(size=60))
    exact = CountPricer(problem.kernel, families, counts).bound_reduced_values(
        problem.rho, -math.inf
    )
    pricer = SearchPricer(problem.kernel, families)
    bound = pricer.bound_reduced_values(problem.rho, exact - 1e-3)
    assert exact - 1e-9 <= bound <= exact + 0.01
    priced = pricer.price_columns(problem.rho, 20, exact - 1e-3)
    assert exact - 1e-3 <= priced.best_value <= exact + 1e-9
    assert priced.best_value == pytest.approx(problem.largest(priced.columns), abs=1e-9)


def test_the_same_problem_is_always_searched_in_the_same_way() -> None:
    rng = np.random.default_rng(5)
    p, rho = oracles.random_prior(rng, 30), rng.normal(size=30)
    first, second = (
        SearchPricer(
            ColumnUtility(p, MutualInformation().phi), [BoxFamily(0.0, 2.0)]
        ).price_columns(rho, 10, -math.inf)
        for _ in "ab"
    )
    assert first.best_value == second.best_value
    assert np.array_equal(first.columns[0].build_lifts(p), second.columns[0].build_lifts(p))


def test_a_column_that_is_one_letter_alone_is_never_missed() -> None:
    for seed in range(4):
        rng = np.random.default_rng(seed)
        p = rng.uniform(0.5, 1.0, 40)
        p[0] = p[1:].sum() * rng.uniform(0.5, 1.0)
        p /= p.sum()
        box, rho = BoxFamily(0.0, 1.2 / p[0]), 0.01 * rng.normal(size=40)
        rho[0] = -1.0
        value = math.log(1 / p[0]) + 1.0  # of the letter 0 alone
        pricer = SearchPricer(ColumnUtility(p, MutualInformation().phi), [box])
        assert pricer.bound_reduced_values(rho, value - 1e-6) >= value - 1e-9, seed


# ---------------------------------------------------------------- columns of almost the closed bound


@pytest.mark.parametrize("utility", [MutualInformation, ChiSquare])
def test_forty_five_letters_are_proved_within_their_range(utility: Callable[[], SubConvex]) -> None:
    p = random_prior(np.random.default_rng(45), 45, 5.0)
    result = solve(design(p, PML(1.0), utility()), gap=1e-8)
    assert result.status.value == "optimal"
    assert result.certificate.verify()
    if (
        utility is MutualInformation
    ):  # each letter is below e^-eps, so that none tells more than eps
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
    families = PML(0.1).extreme_columns(Prior(p))
    assert isinstance(families, tuple)
    for box in families:
        assert isinstance(box, BoxFamily)
        columns = build_columns_near_capacity(box, p, 240, np.random.default_rng(0))
        assert columns is not None
        assert len(columns) > 0
        assert_allowed(p, columns.build_lifts(p), box)


# ---------------------------------------------------------------- relaxed bounds


@settings(max_examples=30, deadline=None)
@given(problems())
def test_the_relaxed_bound_is_never_below_the_best_column(problem: Problem) -> None:
    for family in problem.families:
        for rho in (problem.rho, find_closed_multipliers(problem.kernel, family)):
            priced = replace(problem, rho=rho)
            assert (
                bound_family(problem.kernel, family, rho)
                >= priced.best([family]) - 1e-12 * priced.size
            )


@given(priors(1, 12), epsilons(25.0))
@MODEST
def test_the_closed_bound_on_mutual_information_is_the_formula(
    p: FloatArray, epsilon: float
) -> None:
    prior = Prior(p)
    [family] = families_under(PML(epsilon), prior)
    kernel = ColumnUtility(prior.pmf, MutualInformation().phi)
    rho = find_closed_multipliers(kernel, family)
    expected = math.fsum(w * min(epsilon, -math.log(w)) for w in prior.pmf.tolist())
    assert float(prior.pmf @ rho) + bound_family(kernel, family, rho) == pytest.approx(
        expected, abs=1e-12
    )


@pytest.mark.parametrize(
    "family", [BoxFamily(0.0, 1.0), BoxFamily(1.0, 1.0), StaircaseFamily(0.0, 1.0)]
)
def test_where_only_the_constant_is_left_the_bound_is_its_cost(family: Family) -> None:
    p, rho = np.array([0.5, 0.3, 0.2]), np.array([1.0, -2.0, 0.5])
    kernel = ColumnUtility(p, MutualInformation().phi)
    assert bound_family(kernel, family, rho) == pytest.approx(-(0.5 - 0.6 + 0.1), abs=1e-15)


# ---------------------------------------------------------------- the list of extreme columns


SHARE = 2.0**-40


@st.composite
def laws(draw: st.DrawFn, max_size: int = 7) -> tuple[FloatArray, np.random.Generator]:
    """Priors of any kind: random, uniform, with repeated letters."""
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1), label="seed"))
    n = draw(st.integers(1, max_size), label="letters")
    kind = draw(st.sampled_from(["random", "uniform", "repeated"]), label="prior")
    weights = {
        "random": rng.uniform(0.02, 1.0, n),
        "uniform": np.ones(n),
        "repeated": rng.integers(1, 4, n),
    }
    return weights[kind] / weights[kind].sum(), rng


def listed(p: FloatArray, families: Sequence[Family], share: float = 0.0) -> list[FloatArray]:
    found = list_vertices(p, families, 10**6)
    assert found is not None
    return [columns.build_lifts(p, share) for columns in found]


@settings(max_examples=40, deadline=None)
@given(laws(), st.sampled_from(KINDS))
def test_the_list_is_that_of_the_definition(
    law: tuple[FloatArray, np.random.Generator], kind: str
) -> None:
    p, rng = law
    if len(p) == 1:
        return
    for family in families_of(rng, p, kind):
        [lifts] = listed(p, [family])
        assert rounded(lifts) == rounded(extreme(exact_law(p), family))
        assert_allowed(p, lifts, family)
        count = count_vertices(p, [family])
        assert count is not None
        assert count >= lifts.shape[1]
        [within] = listed(p, [family], SHARE)
        assert_allowed(p, within, family, within=1e-15)
        assert np.abs(within - lifts).max() <= 1e-9


@settings(max_examples=30, deadline=None)
@given(st.integers(0, 2**32 - 1), st.integers(2, 7), st.sampled_from(["pml", "lip", "ldp", "ball"]))
def test_without_ties_the_count_is_the_length_of_the_list(seed: int, n: int, kind: str) -> None:
    rng = np.random.default_rng(seed)
    p = oracles.random_prior(rng, n)
    families = families_of(rng, p, kind)
    count = sum(lifts.shape[1] for lifts in listed(p, families))
    assert count_vertices(p, families) == count
    assert count == sum(len(extreme(exact_law(p), family)) for family in families)


@pytest.mark.parametrize("requirement", [PML(0.0), LDP(0.0), LIP(0.0, 1.0), LIP(1.0, 0.0)])
def test_without_leakage_nothing_but_the_constant_is_left(requirement: Requirement) -> None:
    prior = Prior([0.5, 0.3, 0.2])
    families = families_under(requirement, prior)
    assert list_vertices(prior.pmf, families, 10) == []
    assert count_vertices(prior.pmf, families) == 1


def test_forty_letters_are_counted_and_one_more_is_not() -> None:
    family = BoxFamily(0.0, 1 / 0.1125)  # four letters of 1/40 fit, a fifth does not
    assert count_vertices(np.full(40, 1 / 40), [family]) == math.comb(40, 4) * 36
    assert count_vertices(np.full(40, 1 / 40), [StaircaseFamily(0.0, 2.0)]) == 2**40 - 2
    assert count_vertices(np.full(41, 1 / 41), [family]) is None


@pytest.mark.parametrize(
    "family",
    [
        BoxFamily(0.0, 1.9),
        BoxFamily(0.3, 1.6),
        StaircaseFamily(0.0, 2.0),
        StaircaseFamily(1.5, 0.1),
    ],
)
def test_no_list_is_longer_than_its_limit(family: Family) -> None:
    p = oracles.random_prior(np.random.default_rng(4), 7, 10.0)
    count = listed(p, [family])[0].shape[1]
    assert list_vertices(p, [family], count) is not None
    assert list_vertices(p, [family], count - 1) is None
    assert list_vertices(p, [family, family], 2 * count) is not None
    assert list_vertices(p, [family, family], 2 * count - 1) is None
    assert list_vertices(np.full(60, 1 / 60), [family], 1000) is None


@pytest.mark.parametrize("tiny", [1e-6, 1e-9, 1e-12])
def test_a_set_that_fits_with_a_tiny_letter_keeps_the_bounds(tiny: float) -> None:
    p = np.array([0.3, tiny, 0.2, 0.1, 0.4 - tiny])
    family = BoxFamily(0.0, 1 / (0.3 + tiny))
    [lifts] = listed(p, [family], SHARE)
    assert_allowed(p, lifts, family, within=1e-11)


# ---------------------------------------------------------------- columns in one form


@given(st.integers(0, 2**32 - 1), st.sampled_from([0.0, 0.2]))
@MODEST
def test_extreme_columns_are_recognised_and_mixtures_are_not(seed: int, low: float) -> None:
    rng = np.random.default_rng(seed)
    p = rng.dirichlet(np.full(4, 3.0)) + 0.01
    p /= p.sum()
    family = BoxFamily(low, float(rng.uniform(1.05, 1 / p.min())))
    law = exact_law(p)
    every = np.array([[float(v) for v in c] for c in sorted(extreme(law, family))]).T
    found = recognize_columns(family, every)
    assert rounded(found.build_lifts(p)) == rounded(every)
    assert len(recognize_columns(family, np.ones((4, 1)))) == 0
    again = recognize_columns(family, every * (1 + 1e-11 * rng.uniform(-1, 1, every.shape)))
    assert rounded(again.build_lifts(p)) == rounded(every)


def test_a_share_raises_what_lies_between_only() -> None:
    p = np.array([0.5, 0.3, 0.2])
    between = DenseBatch(np.array([[1.0], [0.5], [0.0]]) / 0.65)
    raised = between.build_lifts(p, 1e-6)[:, 0]
    assert raised[2] == 0
    assert raised[1] / raised[0] > 0.5
    assert raised[1] / raised[0] == pytest.approx(0.5, abs=1e-4)
    assert p @ raised == pytest.approx(1, abs=1e-15)
    assert between.build_lifts(p) is between.entries
