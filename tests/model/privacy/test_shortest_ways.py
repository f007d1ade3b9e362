"""Shortest ways between letters: in two steps over a third letter, and in any number."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
from oracles.designs import FloatArray

from pmlopt.model.privacy.metric_privacy import compute_shortest_paths, measure_detours


def draw_lengths(size: int, seed: int, share: float) -> FloatArray:
    """Lengths in whole numbers, whose sums are exact, of some of the steps from one letter to another."""
    random = np.random.default_rng(seed)
    lengths = random.integers(1, 30, (size, size)).astype(float)
    lengths[random.random((size, size)) > share] = np.inf
    np.fill_diagonal(lengths, 0.0)
    return lengths


@pytest.mark.parametrize("share", [0.2, 1.0])
@pytest.mark.parametrize("size", [1, 2, 3, 12])
def test_detours_are_over_any_third_letter(size: int, share: float) -> None:
    lengths = draw_lengths(size, 1, share)
    expected = np.full((size, size), math.inf)
    for x, middle, z in itertools.product(range(size), repeat=3):
        if middle not in (x, z):
            expected[x, z] = min(expected[x, z], lengths[x, middle] + lengths[middle, z])
    np.testing.assert_array_equal(measure_detours(lengths), expected)
    np.testing.assert_array_equal(measure_detours(lengths, slice(1, 3)), expected[1:3])


@pytest.mark.parametrize("size", [1, 2, 60])
def test_shortest_ways_have_no_shorter_detours_and_those_of_a_metric_are_its_distances(
    size: int,
) -> None:
    lengths = draw_lengths(size, 2, 0.1)
    ways = compute_shortest_paths(lengths)
    assert (ways <= lengths).all()
    assert (measure_detours(ways) >= ways)[~np.eye(size, dtype=bool)].all()
    np.testing.assert_array_equal(compute_shortest_paths(ways), ways)
    if size == 60:
        assert (ways < lengths).any()
