"""Designs about a secret at levels near zero, whose columns differ by less than a solver sees."""

from __future__ import annotations

import numpy as np
import pytest

from pmlopt import PML, MutualInformation, Secret, design, mutual_information, solve
from pmlopt.solvers.orthonormal_rows import solve_with_orthonormal_rows


@pytest.mark.parametrize(("values", "letters"), [(3, 6), (2, 10), (5, 12)])
@pytest.mark.parametrize("seed", range(4))
def test_a_level_near_zero_about_a_secret_is_solved(values: int, letters: int, seed: int) -> None:
    law = np.random.default_rng(seed).dirichlet(np.ones(values * letters))
    secret = Secret(law.reshape(values, letters))
    program = design(secret.prior, PML(1e-9, about=secret), MutualInformation())
    result = solve(program)
    assert result.level <= 1e-9
    assert result.bound - result.value <= 1e-5  # six in ten of these ended with gaps of .2 to 2
    assert result.value == pytest.approx(
        float(mutual_information(secret.prior, result.mechanism)), abs=1e-12
    )
    # a larger level allows no less, and little more
    wider = solve(design(secret.prior, PML(1e-6, about=secret), MutualInformation()))
    assert result.value <= wider.bound + 1e-9
    assert result.bound >= wider.value - 1e-4


def test_groups_of_nearly_equal_columns_are_mixed_within_the_groups() -> None:
    # a w = 1 holds only for the right mixture of two columns that differ by 2e-9
    shift = np.array([1.0, -1.0, 0.0]) * 1e-9
    lifts = np.column_stack([1 + shift, 1 - shift, [3.0, 0.0, 0.0], [0.0, 1.5, 1.5]])
    weights, prices = solve_with_orthonormal_rows(lifts, np.array([0.0, 0.0, 3.0, 1.5]))
    # by hand: the first two columns gain nothing, so that the others have all the weight
    # up to the tolerance of the solver, 1e-7, in a row of some size
    assert weights == pytest.approx([0, 0, 1 / 3, 2 / 3], abs=1e-6)
    assert prices @ np.ones(3) == pytest.approx(2.0, abs=1e-6)  # the value
    weights, _ = solve_with_orthonormal_rows(lifts[:, :3], np.array([1.0, 1.0, 0.0]))
    assert np.abs(lifts[:, :3] @ weights - 1).max() <= 1e-15
    assert weights[:2].sum() == pytest.approx(1, abs=1e-6)
