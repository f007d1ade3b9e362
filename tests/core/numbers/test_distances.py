"""Distances that were computed both ways: rounding is no difference, and the smaller one counts."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy.sparse.csgraph import shortest_path

from pmlopt import LDP, MetricPrivacy, Prior
from pmlopt.core.numbers.distances import join_directions
from pmlopt.errors import InputError, PrivacyError


def test_shortest_paths_of_scipy_are_distances() -> None:
    rng = np.random.default_rng(3)
    lengths = np.full((30, 30), np.inf)
    for x, y in rng.integers(30, size=(60, 2)):
        if x != y:
            lengths[x, y] = lengths[y, x] = rng.random()
    ways = shortest_path(np.where(np.isinf(lengths), 0.0, lengths), directed=True, method="D")
    assert (ways != ways.T).any()  # sums of the same lengths in another order
    found = np.asarray(MetricPrivacy(1.0, ways).distance)
    assert np.array_equal(found, np.minimum(ways, ways.T))


def test_the_level_is_that_of_the_smaller_distance() -> None:
    # rows whose largest log-ratio is log 3, at distances of which the larger would say less
    matrix, prior = np.array([[0.75, 0.25], [0.25, 0.75]]), Prior([0.5, 0.5])
    smaller, larger = 1.0, 1.0 + 2.0**-45
    for distances in ([[0, smaller], [larger, 0]], [[0, larger], [smaller, 0]]):
        # a difference of two logarithms: the larger distance would say 3e-14 less
        level = MetricPrivacy(1.0, distances).level(prior, matrix)
        assert level == pytest.approx(math.log(3), rel=1e-15, abs=0)
        assert MetricPrivacy(math.log(3), distances).holds(prior, matrix) == LDP(math.log(3)).holds(
            prior, matrix
        )


def test_edges_of_a_graph_may_differ_by_rounding() -> None:
    edges = {("a", "b"): 0.1 + 0.2, ("b", "a"): 0.3, ("b", "c"): 1.0}
    found = np.asarray(
        MetricPrivacy(1.0, edges).for_prior(Prior([0.5, 0.25, 0.25], list("abc"))).distance
    )
    assert found[0, 1] == found[1, 0] == 0.3
    assert found[1, 2] == found[2, 1] == 1.0


def test_an_error_shows_digits_that_differ() -> None:
    distances = [[0.0, 0.3000000001], [0.3, 0.0]]
    with pytest.raises(
        PrivacyError, match=r"letter 0 to letter 1 is 0\.3000000001, and back 0\.3:"
    ):
        MetricPrivacy(1.0, distances)
    edges = {("a", "b"): 0.3000000001, ("b", "a"): 0.3}
    with pytest.raises(PrivacyError, match=r"letter 'a' to letter 'b' is 0\.3000000001"):
        MetricPrivacy(1.0, edges).for_prior(Prior([0.5, 0.5], ["a", "b"]))


@pytest.mark.parametrize("scale", [1e-300, 1.0, 1e300])
def test_rounding_is_relative(scale: float) -> None:
    near = np.array([[0.0, 1.0], [1.0 + 2.0**-44, 0.0]]) * scale
    assert join_directions(near, InputError).tolist() == [[0.0, scale], [scale, 0.0]]
    apart = np.array([[0.0, 1.0], [1.0 + 2.0**-36, 0.0]]) * scale
    with pytest.raises(InputError):
        join_directions(apart, InputError)


def test_infinite_one_way_only_is_refused() -> None:
    both = np.array([[0.0, np.inf], [np.inf, 0.0]])
    assert np.array_equal(join_directions(both, InputError), both)
    with pytest.raises(InputError, match=r"is inf, and back 1\.0"):
        join_directions(np.array([[0.0, np.inf], [1.0, 0.0]]), InputError)
