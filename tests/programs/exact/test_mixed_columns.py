"""Columns that break a bound are mixed with their means until they meet it, by hand."""

from __future__ import annotations

import math

import numpy as np
import pytest

from pmlopt import PML, Prior
from pmlopt.programs.exact import equality_rounding, rounding
from pmlopt.programs.exact.rounding import _mix_columns, _repair_polished_matrix

PRIOR = Prior([0.5, 0.3, 0.2])
MATRIX = np.array([[0.9, 0.1], [0.1, 0.9], [0.1, 0.9]])


def test_a_column_is_mixed_with_its_mean_until_its_largest_entry_is_as_the_level_allows(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Both have the mean .5, so that their largest entry comes down from .9 to .5 e^epsilon."""
    monkeypatch.setattr(rounding, "MAX_COLUMN_CHANGE", 1.0)
    most = 0.5 * math.exp(0.5)
    expected = np.array([[most, 1 - most], [1 - most, most], [1 - most, most]])
    assert most < 0.9
    assert _mix_columns(PRIOR, PML(0.5), MATRIX, 1e-9) == pytest.approx(expected)
    # within the bound nothing is mixed, and what would change by much is left as it is
    assert _mix_columns(PRIOR, PML(0.7), MATRIX, 1e-9) == pytest.approx(MATRIX)
    monkeypatch.setattr(rounding, "MAX_COLUMN_CHANGE", 0.1)
    assert _mix_columns(PRIOR, PML(0.5), MATRIX, 1e-9) == pytest.approx(MATRIX)


@pytest.mark.parametrize(("move", "near"), [(0.004, True), (0.006, False)])
def test_a_projection_that_moves_far_is_not_taken(
    monkeypatch: pytest.MonkeyPatch, move: float, near: bool
) -> None:
    monkeypatch.setattr(rounding, "MAX_COLUMN_CHANGE", 0.005)
    moved = MATRIX + move * np.array([[1.0, -1.0], [0.0, 0.0], [0.0, 0.0]])
    monkeypatch.setattr(equality_rounding, "polish_matrix", lambda prior, privacy, matrix: moved)
    found = _repair_polished_matrix(PRIOR, PML(0.8), MATRIX, 1e-9)
    assert (found is not None) is near
    if found is not None:
        assert found.shift == pytest.approx(move, abs=1e-6)
