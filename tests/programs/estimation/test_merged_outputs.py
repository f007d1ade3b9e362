"""Outputs that are merged where that costs least, by trying every pair."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from pmlopt.programs.estimation.fewer_outputs import merge_outputs


@pytest.mark.parametrize("seed", range(4))
def test_outputs_are_merged_in_pairs_by_the_distance_of_ward(seed: int) -> None:
    """The pair of least `q[y] q[z] / (q[y] + q[z]) |Z' (lam_y - lam_z)|^2`, of what is left."""
    random = np.random.default_rng(seed)
    p, matrix = random.dirichlet(np.ones(4)), random.dirichlet(np.ones(7), 4)
    sensitivities = random.normal(size=(4, 3)) + 2.0
    expected = matrix.copy()
    while expected.shape[1] > 3:
        law = p @ expected
        points = sensitivities.T @ (expected / law)
        costs = {
            (y, z): law[y] * law[z] / (law[y] + law[z]) * ((points[:, y] - points[:, z]) ** 2).sum()
            for y, z in itertools.combinations(range(len(law)), 2)
        }
        y, z = min(costs, key=lambda pair: costs[pair])
        expected[:, y] += expected[:, z]
        expected = np.delete(expected, z, axis=1)
    assert merge_outputs(matrix, p, sensitivities, 3) == pytest.approx(expected)
