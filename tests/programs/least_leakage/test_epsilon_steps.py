"""The steps of the search for a least epsilon: first mixtures, and levels next to undecided ones."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from pmlopt.core.arrays import FloatArray
from pmlopt.programs.least_leakage.epsilon_search import EpsilonSearch


def search_of(**values: Any) -> Any:
    program = SimpleNamespace(compute_allowed_gap=lambda tolerance: 0.08)
    known = {"program": program, "options": SimpleNamespace(tolerance=1.0), "_bisection_step": 1e-3}
    return SimpleNamespace(**{**known, **values})


@pytest.mark.parametrize(
    ("undecided", "expected"),
    [
        ((0.5, 0.6), 0.6 + 0.5 * 0.4),  # half of the way above, which is wider
        ((0.9, 0.95), 0.9 - 0.5 * 0.7),
        ((0.205, 0.995), None),
    ],
)
def test_a_level_is_half_way_on_the_wider_side_of_the_undecided_ones(
    undecided: tuple[float, float], expected: float | None
) -> None:
    search = search_of(short=0.2, reached_level=1.0, undecided=undecided, _bisection_step=1.0)
    found = EpsilonSearch._choose_decidable_level(search)
    assert found == (None if expected is None else pytest.approx(expected))


def test_far_from_rounding_a_level_is_a_tenth_of_the_way_next_to_the_undecided_ones() -> None:
    search = search_of(short=0.2, reached_level=1.0, undecided=(0.5, 0.6))
    assert EpsilonSearch._choose_decidable_level(search) == pytest.approx(0.6 + 0.1 * 0.4)
    search = search_of(short=0.2, reached_level=1.0, undecided=(0.9, 0.95))
    assert EpsilonSearch._choose_decidable_level(search) == pytest.approx(0.9 - 0.1 * 0.7)


@pytest.mark.parametrize("undecided", [(0.1, 0.6), (0.5, 1.2)])
def test_undecided_levels_that_a_proof_passed_leave_the_middle(
    undecided: tuple[float, float],
) -> None:
    search = search_of(short=0.2, reached_level=1.0, undecided=undecided)
    assert EpsilonSearch._choose_decidable_level(search) == pytest.approx(0.6)
    assert search.undecided is None


def test_a_first_mixture_just_reaches_the_target_and_farther_ones_come_after_it() -> None:
    """On the way from a constant to the best mechanism, of which the excess is .3 beyond the target."""
    still, best = np.full((2, 2), 0.5), np.eye(2)
    tried: list[FloatArray] = []

    def take(matrix: FloatArray) -> bool:
        tried.append(matrix)
        return False

    search = search_of(
        _compute_target_excess=lambda matrix: float(matrix[0, 0]) - 0.7, certify_matrix=take
    )
    assert not EpsilonSearch._certify_mixture(search, still, best)
    weights = [(one[0, 0] - 0.5) / 0.5 for one in tried]
    assert weights == pytest.approx([0.4, 0.7, 1.0], abs=1e-6)
    assert weights[0] > 0.4
    assert all(one.sum(axis=1) == pytest.approx([1.0, 1.0]) for one in tried)
