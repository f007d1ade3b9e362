"""Small systems, one for each output, beside numpy's for each by itself."""

from __future__ import annotations

import numpy as np
import pytest

from pmlopt.solvers.structured.newton import cholesky, factor_of_squares, forward, solved


@pytest.mark.parametrize("size", [1, 2, 3, 5])
def test_they_are_solved_as_numpy_does(size: int) -> None:
    rng = np.random.default_rng(size)
    rows = rng.normal(size=(size + 2, size, 4)) * 10.0 ** rng.uniform(-3, 3, (1, size, 1))
    systems = np.einsum("nim,njm->ijm", rows, rows)
    right, parts = rng.normal(size=(size, 4)), rng.normal(size=(size, 3, 4))
    from_rows, from_systems = factor_of_squares(rows), cholesky(systems)
    for y in range(4):
        there = np.linalg.cholesky(systems[:, :, y])
        for factor in (from_rows, from_systems):
            assert factor[:, :, y] == pytest.approx(there, rel=1e-9, abs=1e-12 * np.abs(there).max())
    expected = np.stack([np.linalg.solve(systems[:, :, y], right[:, y]) for y in range(4)], axis=1)
    assert solved(from_rows, right) == pytest.approx(expected, rel=1e-7, abs=1e-9 * np.abs(expected).max())
    lower = np.array(forward(from_systems, list(parts)))
    assert np.einsum("ijm,jcm->icm", from_systems, lower) == pytest.approx(parts, rel=1e-9)


def test_without_unknowns_there_is_nothing() -> None:
    assert cholesky(np.zeros((0, 0, 3))).shape == (0, 0, 3)
    assert solved(np.zeros((0, 0, 3)), np.zeros((0, 3))).shape == (0, 3)


def test_rows_that_differ_by_many_digits_keep_the_small_ones() -> None:
    rows = np.array([[[1e8], [1e8]], [[0.0], [1e-8]]])  # formed, the square would lose the second
    assert factor_of_squares(rows)[1, 1, 0] == pytest.approx(1e-8, rel=1e-6)
