"""Rows that are rounded to a grid by largest remainders, by trying every way."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from pmlopt.programs.exact.rounding import round_rows_to_grid


@pytest.mark.parametrize("seed", range(4))
def test_rows_are_rounded_to_the_nearest_ones_on_the_grid(seed: int) -> None:
    """No other row of whole numbers with the same sum is nearer in total."""
    random = np.random.default_rng(seed)
    matrix = random.dirichlet(np.ones(4), 5)
    found = round_rows_to_grid(matrix, 8) * 8
    assert found == pytest.approx(np.round(found))
    for row, counts in zip(matrix * 8, found, strict=True):
        nearest = min(
            np.abs(row - np.array(other)).sum()
            for other in itertools.product(range(9), repeat=4)
            if sum(other) == 8
        )
        assert counts.sum() == 8
        assert np.abs(row - counts).sum() == pytest.approx(nearest)


def test_zeros_stay_zeros() -> None:
    found = round_rows_to_grid(np.array([[0.0, 0.34, 0.66, 0.0]]), 4) * 4
    assert found.tolist() == [[0.0, 1.0, 3.0, 0.0]]
