"""Systems of equations that are solved side by side or one by one."""

from __future__ import annotations

import numpy as np
import pytest

from pmlopt.solvers.structured.factors import solve_positive


@pytest.mark.parametrize(("size", "count"), [(1, 3), (3, 5), (9, 2), (12, 12), (12, 30)])
def test_positive_systems_are_solved_and_a_singular_one_alone_is_not(size: int, count: int) -> None:
    rng = np.random.default_rng(size)
    roots = rng.random((count, size, size))
    systems = np.einsum("yik,yjk->ijy", roots, roots) + np.eye(size)[:, :, None]
    systems[:, :, 1] = 0.0
    exact = rng.random((size, count))
    right = np.einsum("ijy,jy->iy", systems, exact)
    right[:, 1] = 1.0
    with np.errstate(divide="ignore", invalid="ignore"):
        found = solve_positive(systems, right)
    others = np.arange(count) != 1
    assert not np.isfinite(found[:, 1]).any()
    np.testing.assert_allclose(found[:, others], exact[:, others], rtol=1e-9)
