"""Columns of almost the closed bound: what they are, against all subsets, and what they prove."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
import pytest
from oracles.brute_force_columns import assert_allowed
from oracles.designs import random_prior

from pmlopt import LIP, PML, MutualInformation, Prior, design, solve
from pmlopt.core.arrays import subset_sums
from pmlopt.model.uncertainty.columns import Box
from pmlopt.model.utility import ChiSquare, Hellinger, SubConvex, TotalVariation
from pmlopt.programs.subconvex.search_pricing import near_perfect


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


def test_one_letter_that_exceeds_the_capacity_by_itself_has_none() -> None:
    assert near_perfect(Box(0.0, 1.5), np.array([0.7, 0.2, 0.1]), 3, np.random.default_rng(0)) is None


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
