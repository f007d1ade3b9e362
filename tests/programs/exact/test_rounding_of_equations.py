"""Columns that are rounded within equations, and systems that are too large, by their limits."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from pmlopt import Prior, RatioBound
from pmlopt.core.lazy_imports import sparse
from pmlopt.core.numbers.arrays import FloatArray
from pmlopt.errors import MechanismError
from pmlopt.programs.exact import equality_rounding
from pmlopt.programs.exact.equality_rounding import polish_matrix, round_with_equalities
from pmlopt.programs.exact.rounding import drop_noise

PRIOR = Prior([0.5, 0.25, 0.25])
EQUAL = RatioBound([[1, 0, 0], [0, 1, 0]], [[0, 1, 0], [1, 0, 0]], [0.0, 0.0])
MATRIX = np.array([[0.75, 0.25], [0.75, 0.25], [0.5, 0.5]])


def test_a_row_that_is_none_is_named_by_the_sum_that_is_farthest_from_one() -> None:
    with pytest.raises(MechanismError, match=r"sums to 0\.3:"):
        drop_noise(np.array([[0.2, 0.1], [0.6, 0.6]]), 1e-9)


def test_columns_shrink_by_what_a_row_exceeded_and_a_step_of_rounding(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A step is one unit for each output where the solutions are those of equal entries."""
    targets: list[FloatArray] = []
    monkeypatch.setattr(equality_rounding, "GRID_DENOMINATOR", 1024)

    def rounded(target: FloatArray, bases: Any) -> Any:
        targets.append(target)
        more = np.array([[5, 0], [5, 0], [0, 0]]) if len(targets) == 1 else 0
        return (np.floor(target * 1024) + more).astype(int).astype(object)

    monkeypatch.setattr(equality_rounding, "_round_to_integers", rounded)
    found = round_with_equalities(PRIOR, EQUAL, MATRIX)
    assert found is not None
    assert (found.sum(axis=1) == 1).all()
    assert len(targets) == 2
    assert targets[1] == pytest.approx((1 - 7 / 1024) * MATRIX)


@pytest.mark.parametrize(("pairs", "projected"), [(255, False), (245, True)])
def test_a_system_of_more_than_a_million_coefficients_is_not_solved(
    monkeypatch: pytest.MonkeyPatch, pairs: int, projected: bool
) -> None:
    """Of two equations for each pair on two outputs and 500 of rows, in 1,000 entries."""
    calls: list[FloatArray] = []

    def project(moved: FloatArray, *_: Any) -> FloatArray:
        calls.append(moved)
        return moved

    monkeypatch.setattr(equality_rounding, "_project_on_equations", project)
    ones = sparse.csr_array(np.ones((pairs, 500)))
    ratios = SimpleNamespace(exponents=np.ones(pairs), excess_rows=(ones, ones))
    privacy: Any = SimpleNamespace(list_ratios=lambda prior: ratios)
    found = polish_matrix(Prior.uniform(500), privacy, np.full((500, 2), 0.5))
    assert (found is not None) is projected is bool(calls)


def test_a_projection_puts_pairs_at_their_margins_and_row_sums_at_one() -> None:
    moved, pairs = np.array([[0.6, 0.41], [0.2, 0.8]]), np.array([[1.0, -2.0]])
    held, margin = np.array([[True, False]]), np.full((1, 2), 0.01)
    found = equality_rounding._project_on_equations(
        moved, np.argwhere(moved > 0), pairs, held, margin
    )
    assert (pairs @ found)[0, 0] == pytest.approx(-0.01)
    assert found.sum(axis=1) == pytest.approx([1.0, 1.0])
