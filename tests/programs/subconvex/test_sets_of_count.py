"""Random sets of letters with a total count, against all subsets."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pmlopt.programs.subconvex.count_pricing import random_sets

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
def test_more_letters_than_a_core_holds(letters: int) -> None:
    rng = np.random.default_rng(letters)
    counts = rng.integers(1, 300, size=letters)
    total = int(counts.sum()) // 3
    sets = random_sets(counts, np.arange(letters), total, 100, rng)
    assert (sets @ counts == total).all()
    assert len(np.unique(sets, axis=0)) == 100
    assert sets.mean(axis=0) == pytest.approx(np.full(letters, 1 / 3), abs=0.25)  # five standard deviations
