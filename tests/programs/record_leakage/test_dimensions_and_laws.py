"""Dimensions of output laws, dual laws that prove a bound, and the rounding of bounds of cells."""

from __future__ import annotations

from decimal import Decimal
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from pmlopt.programs.record_leakage import cell_relaxation, proof
from pmlopt.programs.record_leakage.adversary import BoundedAdversary
from pmlopt.programs.record_leakage.cell_relaxation import _CellIterates
from pmlopt.programs.record_leakage.proof import are_laws_valid

ROWS = np.array([[0.8, 0.1, 0.1], [0.1, 0.8, 0.1], [0.45, 0.45, 0.1], [0.2, 0.2, 0.6]])


@pytest.mark.parametrize(
    ("used", "dimensions"),
    [
        ([[1, 1, 1, 0], [1, 0, 0, 0]], 1 + 0),  # the third row is between the first two
        ([[1, 1, 0, 1], [0, 1, 1, 0]], 2 + 1),
        ([[1, 1, 1, 1]], 2),
    ],
)
def test_output_laws_of_a_letter_have_one_dimension_less_than_its_rows_have_ranks(
    used: list[list[int]], dimensions: int
) -> None:
    with np.errstate(divide="ignore"):
        counts = np.log(np.array(used, dtype=float))
    assert BoundedAdversary(ROWS, counts, 0.5, 2.0).output_dimensions == dimensions
    # many rows are counted by the number of classes and outputs
    many = BoundedAdversary(np.tile(ROWS, (5000, 1)), np.tile(counts, 5000), 0.5, 2.0)
    assert many.output_dimensions == len(used) * 2


def test_a_law_proves_a_bound_above_the_divergences_by_what_decimals_lose(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Of two letters with one class each; the largest divergence is log 2 + .8 log .8 + .2 log .2."""
    monkeypatch.setattr(proof, "DECIMAL_ATOL", Decimal("0.01"))
    rows = [[Decimal("0.8"), Decimal("0.2")], [Decimal("0.2"), Decimal("0.8")]]
    capacity = float(np.log(2) + 0.8 * np.log(0.8) + 0.2 * np.log(0.2))
    laws = np.array([[0.5, 0.5]])
    for bound, valid in ((capacity + 0.011, True), (capacity + 0.009, False)):
        assert are_laws_valid(laws, np.zeros((2, 2)), bound, rows) is valid


def test_bounds_of_cells_are_rounded_by_the_sizes_of_gains_counts_and_prices(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Of the classes that a letter meets: the second letter never meets its second class."""
    monkeypatch.setattr(cell_relaxation, "bound_sum_rounding", lambda terms, size: 0.01 * size)
    random = np.random.default_rng(0)
    counts, entropy = np.array([[0.0, -1.5], [-0.5, -np.inf]]), -0.7
    adversary = SimpleNamespace(rows=ROWS, shifted_counts=(counts, entropy))
    of = SimpleNamespace(adversary=adversary, used_mask=np.isfinite(counts))
    features, chord = random.normal(size=(3, 2, 2, 5)), random.normal(size=(3, 2, 2))
    features[:, 1, 1], chord[:, 1, 1] = 9.0, 9.0
    point = random.random((3, 5))
    cells: Any = object.__new__(_CellIterates)
    vars(cells).update(of=of, features=features, chord=chord, best_point=point)
    met = [(0, 0), (0, 1), (1, 0)]
    expected = [
        0.01
        * (
            1
            + max(abs(chord[k][place]) for place in met)
            + sum(
                max(abs(features[k][place][j]) for place in met) * abs(point[k, j])
                for j in range(1, 5)
            )
            + point[k, 0] * (1.5 + 0.7 + 1)
        )
        for k in range(3)
    ]
    assert cells._bound_rounding() == pytest.approx(expected)
