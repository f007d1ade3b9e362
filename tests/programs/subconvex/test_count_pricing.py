"""Pricing by dynamic programming over whole counts is exact."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from oracles.brute_force_columns import UTILITIES, Problem, assert_allowed

from pmlopt import LIP, PML, Prior, design, solve
from pmlopt.model.privacy import Requirement
from pmlopt.model.uncertainty.columns import Box
from pmlopt.model.utility import ChiSquare, FInformation, Hellinger, MutualInformation
from pmlopt.programs.subconvex.columns import Kernel
from pmlopt.programs.subconvex.count_pricing import CountPricer, random_sets


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


# ---------------------------------------------------------------- random sets


COUNTS = st.lists(st.integers(1, 9), min_size=1, max_size=8)


@settings(max_examples=60, deadline=None)
@given(COUNTS, st.integers(-2, 40), st.integers(0, 2**32 - 1))
def test_sets_are_of_the_letters_and_found_where_there_are_any(
    counts: list[int], total: int, seed: int
) -> None:
    rng, own = np.random.default_rng(seed), np.array(counts)
    letters = np.flatnonzero(rng.random(len(own)) < 0.8)
    sets = random_sets(own, letters, total, 3, rng)
    everything = (np.arange(2 ** len(letters))[:, None] >> np.arange(len(letters))) & 1 == 1
    possible = bool((everything @ own[letters] == total).any())
    assert sets.shape == (3 * possible, len(own))
    assert (sets @ own == total).all()
    assert not np.delete(sets, letters, axis=1).any()


def test_every_set_is_drawn() -> None:
    sets = random_sets(np.array([1, 2, 3, 3, 2, 1]), np.arange(6), 6, 400, np.random.default_rng(0))
    codes = (np.arange(64)[:, None] >> np.arange(6)) & 1 == 1
    possible = int((codes @ np.array([1, 2, 3, 3, 2, 1]) == 6).sum())
    assert len(np.unique(sets, axis=0)) == possible  # each of 10 is missing with a probability of 1e-18


@pytest.mark.parametrize("letters", [40, 150])
def test_sets_of_more_letters_than_a_core_holds(letters: int) -> None:
    rng = np.random.default_rng(letters)
    counts = rng.integers(1, 300, size=letters)
    total = int(counts.sum()) // 3
    sets = random_sets(counts, np.arange(letters), total, 100, rng)
    assert (sets @ counts == total).all()
    assert len(np.unique(sets, axis=0)) == 100
    assert sets.mean(axis=0) == pytest.approx(np.full(letters, 1 / 3), abs=0.25)  # five standard deviations


# ---------------------------------------------------------------- columns of least loss for whole counts


def random_counts(seed: int, letters: int, total: int) -> list[int]:
    rng = np.random.default_rng([77, seed])
    return [int(count) for count in rng.multinomial(total, rng.dirichlet(np.full(letters, 2.0))) + 1]


@settings(max_examples=25, deadline=None)
@given(
    seed=st.integers(0, 2**32 - 1),
    letters=st.integers(28, 60),
    box=st.sampled_from([Box(0.0, math.e), Box(0.0, 2.0), Box(0.5, 2.5), Box(0.0, 7.0)]),
    utility=st.sampled_from(list(UTILITIES)),
)
def test_no_column_is_worth_more_at_their_multipliers(
    seed: int, letters: int, box: Box, utility: Callable[[], FInformation]
) -> None:
    counts = random_counts(seed, letters, 1500)
    p = np.array(counts) / sum(counts)
    assume(p.max() < box.capacity)
    kernel = Kernel(p, utility().phi)
    pricer = CountPricer(kernel, [box], counts)
    found = pricer.least_loss(60)
    assert found is not None
    columns, rho = found
    lifts = columns.lifts(p)
    assert_allowed(p, lifts, box)
    beyond = kernel.worth(lifts) - (p * rho) @ lifts
    best = pricer.bound(rho, -np.inf)
    within = 1e-7 if utility is Hellinger else 1e-9  # its slope at 0 is infinite
    assert beyond == pytest.approx(np.full(len(beyond), best), abs=within)


@pytest.mark.parametrize(("privacy", "heavy"), [(PML(1.0), 200), (LIP(1.0, 1.0), 0)])
@pytest.mark.parametrize("utility", [MutualInformation, ChiSquare])
def test_the_optimum_is_that_without_them(
    privacy: Requirement, heavy: int, utility: Callable[[], FInformation], monkeypatch: pytest.MonkeyPatch
) -> None:
    counts = random_counts(3, 16, 200)
    counts[0] += heavy
    program = design(Prior.from_counts(counts), privacy, utility())
    mixed = solve(program, tolerance=1e-9)
    monkeypatch.setattr(CountPricer, "least_loss", lambda self, count: None)
    generated = solve(program, tolerance=1e-9)
    assert mixed.status.value == generated.status.value == "optimal"
    assert mixed.value == pytest.approx(generated.value, abs=2e-9 * program.scale)
    assert mixed.certificate.verify()


@pytest.mark.parametrize("letters", [100, 200])
def test_many_letters_end_without_generated_columns(letters: int, monkeypatch: pytest.MonkeyPatch) -> None:
    def no_round(self: CountPricer, *arguments: object) -> None:
        raise AssertionError("a round of pricing for more than a bound")

    counts = random_counts(letters, letters, 20_000)
    program = design(Prior.from_counts(counts), PML(1.0), MutualInformation())
    price = CountPricer.price
    monkeypatch.setattr(CountPricer, "bound", lambda self, rho, enough, *_: price(self, rho, 1, enough).upper)
    monkeypatch.setattr(CountPricer, "price", no_round)
    result = solve(program)
    assert result.status.value == "optimal"
    assert result.gap <= 1e-10
    assert (
        result.value < 1 - 1e-6
    )  # sets of whole counts miss the closed bound, and the proof says by how much
