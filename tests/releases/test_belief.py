"""What a release must meet under a belief."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.optimize import linprog

from pmlopt.releases.belief import _needed


@pytest.mark.parametrize("seed", range(8))
def test_bounds_that_are_left_out_follow_from_those_that_are_kept(seed: int) -> None:
    rng = np.random.default_rng(seed)
    law = rng.dirichlet(np.ones(4))
    given = rng.dirichlet(np.full(4, 0.7), size=12) * (rng.random((12, 4)) > 0.2)
    rows = np.exp(-rng.uniform(0.1, 1.0, 12))[:, None] * given - law
    rows = np.vstack([rows, 0.5 * rows[:4], rows[:2] - rng.random((2, 4)) * law])
    kept = _needed(rows)
    assert not kept.all()
    for row in rows[~kept]:
        most = linprog(-row, rows[kept], np.zeros(kept.sum()), np.ones((1, 4)), [1.0])
        assert -most.fun <= 1e-12


def test_of_equal_bounds_one_is_kept() -> None:
    assert _needed(np.array([[1.0, -1.0], [1.0, -1.0], [-1.0, 1.0]])).sum() == 2
