"""Peaks among the points of cells, halves of cells, and the smallest ellipsoid that a cut leaves."""

from __future__ import annotations

import math

import numpy as np
import pytest

from pmlopt.programs.subconvex.split_pricing import _CellRefinement, _cut_ellipsoid, _halve_cells


def peaks_of(points: list[tuple[float, float, float]], count: int) -> list[tuple[float, float]]:
    cells = object.__new__(_CellRefinement)
    cells._points = points
    return cells.list_peaks(count)


def test_peaks_are_the_best_points_further_apart_than_a_thousandth() -> None:
    """By the sum of both distances."""
    best = (2.0, 1.3, 0.6)
    for top, mid, apart in (
        (0.0004, 0.0005, False),
        (0.0008, 0.0008, True),
        (-0.0008, 0.0008, True),
        (0.0, -0.0009, False),
        (0.0, 0.0011, True),
        (-0.0011, 0.0, True),
    ):
        other = (1.0, 1.3 + top, 0.6 + mid)
        expected = [best[1:], other[1:]] if apart else [best[1:]]
        assert peaks_of([other, best], 5) == expected
    points = [(float(k), 1.0 + k, 0.1 * k) for k in range(5)]
    assert peaks_of(points, 2) == [(5.0, 0.4), (4.0, pytest.approx(0.3))]


def test_a_cell_is_halved_across_its_longer_side() -> None:
    """Of the logarithm of the largest entry and of the ratio."""
    cells = np.array([[1.0, 1.2, 0.2, 0.6], [1.0, 1.7, 0.2, 0.6]])
    halves = _halve_cells(cells)
    assert halves == pytest.approx(np.array([
        [1.0, 1.2, 0.2, 0.4], [1.0, 1.35, 0.2, 0.6], [1.0, 1.2, 0.4, 0.6], [1.35, 1.7, 0.2, 0.6],
    ]))  # fmt: skip


@pytest.mark.parametrize("deep", [0.0, 0.3, 0.8])
@pytest.mark.parametrize("n", [2, 3, 5])
def test_the_ellipsoid_after_a_cut_is_the_smallest_around_what_is_left(n: int, deep: float) -> None:
    """Through the far pole and the rim of the cut, as the one of Loewner and John touches."""
    random = np.random.default_rng(n)
    root = random.normal(size=(n, n))
    shape, centre, slope = root @ root.T, random.normal(size=n), random.normal(size=n)
    length = math.sqrt(slope @ shape @ slope)
    (moved, new), going = _cut_ellipsoid(
        centre[None], shape[None], slope[None], np.array([deep * length])
    )
    assert going.all()
    # in coordinates in which the old one is the unit ball, and the cut is at right angles to an axis
    axis = root.T @ slope / length
    other = random.normal(size=n)
    other -= (other @ axis) * axis
    other /= np.linalg.norm(other)
    rim = -deep * axis + math.sqrt(1 - deep**2) * other
    for point in (-axis, rim):
        away = centre + root @ point - moved[0]
        assert away @ np.linalg.solve(new[0], away) == pytest.approx(1.0)
