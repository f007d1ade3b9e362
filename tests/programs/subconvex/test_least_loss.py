"""Columns of least loss for whole counts: none is better at their multipliers, and designs end at them."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from oracles.brute_force_columns import assert_allowed

from pmlopt import LIP, PML, MutualInformation, Prior, design, solve
from pmlopt.model.privacy import Requirement
from pmlopt.model.uncertainty.columns import Box
from pmlopt.model.utility import ChiSquare, FInformation, Hellinger, TotalVariation
from pmlopt.programs.subconvex.columns import Kernel
from pmlopt.programs.subconvex.count_pricing import CountPricer, least_loss

UTILITIES = [MutualInformation, ChiSquare, TotalVariation, Hellinger]


def random_counts(seed: int, letters: int, total: int) -> list[int]:
    rng = np.random.default_rng([77, seed])
    return [int(count) for count in rng.multinomial(total, rng.dirichlet(np.full(letters, 2.0))) + 1]


@settings(max_examples=25, deadline=None)
@given(
    seed=st.integers(0, 2**32 - 1),
    letters=st.integers(28, 60),
    box=st.sampled_from([Box(0.0, math.e), Box(0.0, 2.0), Box(0.5, 2.5), Box(0.0, 7.0)]),
    utility=st.sampled_from(UTILITIES),
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
    lifts = found.columns.lifts(p)
    assert_allowed(p, lifts, box)
    beyond = kernel.worth(lifts) - (p * found.multipliers) @ lifts
    best = pricer.bound(found.multipliers, -np.inf)
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


def test_a_capacity_of_whole_counts_is_filled() -> None:
    counts = random_counts(5, 40, 1000)
    counts[0] += sum(counts) % 2
    result = solve(design(Prior.from_counts(counts), PML(np.log(2)), MutualInformation()))
    assert result.value == pytest.approx(np.log(2), abs=1e-10)
    assert result.gap <= 1e-10


def test_one_letter_that_exceeds_the_capacity_by_itself_has_none() -> None:
    counts = [7, 2, 1]
    kernel = Kernel(np.array(counts) / 10, MutualInformation().phi)
    assert least_loss(kernel, Box(0.0, 1.5), counts, 3, np.random.default_rng(0)) is None
