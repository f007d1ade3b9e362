"""Inverses of M-matrices by elimination without subtraction, against rational arithmetic."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from oracles.designs import FloatArray

from pmlopt.solvers.structured.m_matrices import invert_by_factors


def invert_exactly(entries: FloatArray, row_sums: FloatArray) -> FloatArray:
    """Invert the matrix with these entries off the diagonal and these row sums, by Gauss and Jordan."""
    n = len(entries)
    rows = [[Fraction(float(v)) for v in row] for row in entries]
    for i in range(n):
        rows[i][i] = Fraction(float(row_sums[i])) - sum(rows[i][j] for j in range(n) if j != i)
    full = [row + [Fraction(int(i == j)) for j in range(n)] for i, row in enumerate(rows)]
    for i in range(n):
        full[i] = [v / full[i][i] for v in full[i]]
        for j in range(n):
            if j != i:
                full[j] = [v - full[j][i] * w for v, w in zip(full[j], full[i], strict=True)]
    return np.array([[float(v) for v in row[n:]] for row in full])


@pytest.mark.parametrize("size", [1, 2, 19])
def test_a_graded_matrix_has_an_inverse_with_all_digits(size: int) -> None:
    """Its entries span sixteen orders, and its rows sum to less than the rounding of its diagonal."""
    random = np.random.default_rng(size)
    upper: Any = -(2.0 ** random.integers(-27, 27, (2, size, size)))  # whose rationals are short
    entries = np.triu(upper, 1) + np.swapaxes(np.triu(upper, 1), 1, 2)
    sums: Any = 2.0 ** random.integers(-40, -30, (2, size))
    factors = invert_by_factors(entries.copy(), sums.copy())
    assert not np.tril(factors, -1).any()
    for one, row_sums, factor in zip(entries, sums, factors, strict=True):
        exact = invert_exactly(one, row_sums)
        np.testing.assert_allclose(factor @ factor.T, exact, rtol=1e-11)
