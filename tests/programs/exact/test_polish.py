"""Polish: pairs and row sums are met to rounding, and little is moved."""

from __future__ import annotations

import numpy as np
import pytest

from pmlopt import PML, MaximalLeakage, Secret
from pmlopt.programs.exact.arithmetic import holds_exactly
from pmlopt.programs.exact.repair import polished, polished_repair, repair

SECRET = Secret(np.random.default_rng(3).dirichlet(np.ones(15)).reshape(3, 5))


@pytest.mark.parametrize("epsilon", [1e-9, 1e-3])
def test_a_broken_matrix_is_mended_by_the_least_change(epsilon: float) -> None:
    privacy = PML(epsilon, about=SECRET)
    given, p = SECRET.conditionals, SECRET.prior.pmf
    within = np.linalg.svd(given - p)[2][-3:].T  # what no value of the secret is told by
    shares = np.random.default_rng(4).uniform(-1, 1, (3, 4))
    matrix = 0.25 + 0.05 * within @ (shares - shares.mean(axis=1, keepdims=True))
    off = matrix + 1e-10 * np.random.default_rng(5).normal(size=matrix.shape)
    near = polished(SECRET.prior, privacy, off)
    assert near is not None
    assert np.abs(near.sum(axis=1) - 1).max() <= 1e-15
    assert (given @ near <= np.exp(epsilon) * (p @ near) + 1e-16).all()
    assert np.abs(near - off).max() <= 1e-8
    fixed = polished_repair(SECRET.prior, privacy, off)
    assert fixed.theta <= repair(SECRET.prior, privacy, off).theta
    assert holds_exactly(SECRET.prior, privacy, fixed.matrix)


def test_zeros_stay_and_other_requirements_are_left() -> None:
    matrix = np.array([[1.0, 0.0], [0.5, 0.5], [0.5, 0.5], [0.5, 0.5], [0.0, 1.0]])
    near = polished(SECRET.prior, PML(2.0, about=SECRET), matrix)
    assert near is not None
    assert np.array_equal(near, matrix)
    assert polished(SECRET.prior, MaximalLeakage(0.1), matrix) is None
