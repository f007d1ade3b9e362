"""Peaks among the points of cells, halves of cells, and the smallest ellipsoid that a cut leaves."""

from __future__ import annotations

import itertools
import math
from typing import Any

import numpy as np
import pytest

from pmlopt.core.numbers.arrays import FloatArray
from pmlopt.model.uncertainty import L1Ball, MinimumMass
from pmlopt.model.uncertainty.columns import ColumnCone
from pmlopt.model.utility import MutualInformation
from pmlopt.programs.subconvex import split_pricing
from pmlopt.programs.subconvex.columns import ColumnUtility
from pmlopt.programs.subconvex.split_pricing import (
    NestedPricer,
    SplitRelaxation,
    _CellRefinement,
    _cut_ellipsoid,
    _halve_cells,
    build_split_families,
)
from pmlopt.solvers.solver_result import NO_DEADLINE

P = np.array([0.1, 0.12, 0.18, 0.25, 0.35])
KERNEL = ColumnUtility(P, MutualInformation().phi)
RHO = 0.3 * np.random.default_rng(1).normal(size=5)


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


@pytest.mark.parametrize(("deep", "goes_on"), [(0.999, True), (1.0, False), (2.0, False)])
def test_a_cut_that_leaves_a_point_is_the_last(deep: float, goes_on: bool) -> None:
    shape, slope = np.diag([4.0, 1.0])[None], np.array([[1.0, 0.0]])
    _, going = _cut_ellipsoid(np.zeros((1, 2)), shape, slope, np.array([2 * deep]))
    assert going.tolist() == [goes_on]


# ---------------------------------------------------------------- families and their cells


@pytest.mark.parametrize("priors", [MinimumMass(5, 0.08), L1Ball(P, 0.3)])
def test_the_row_of_two_values_is_what_the_least_mean_has_to_spare(priors: Any) -> None:
    """Where the set of the larger one has a probability under each prior."""
    keep, (mid, top) = 0.55, (0.6, 1.7)
    cone = ColumnCone(priors, keep)
    [family] = [one for one in build_split_families(cone) if one.values == (1, 2)][:1]
    for bits in itertools.product([0, 1], repeat=5):
        high = np.array(bits)
        if high @ P < 0.2 or high.all():
            continue
        lift = np.where(high, top, mid)
        letters = np.arange(5)
        row = (
            family.by_mid[0, high, letters].sum() * mid
            + family.by_top[0, high, letters].sum() * top
        )
        spare = row + family.mid_rates[0] * mid - family.top_rates[0] * top
        assert spare == pytest.approx(float(priors.min_mean(lift[:, None])[0]) - keep * top)


def test_bounds_are_rounded_by_the_size_of_their_terms(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of the multipliers times one and the largest entry, of the prices, and of one more."""
    monkeypatch.setattr(split_pricing, "bound_sum_rounding", lambda terms, size: 0.01)
    [family] = build_split_families(ColumnCone(MinimumMass(5, 0.08), 0.55))
    relaxation = SplitRelaxation(KERNEL, family, RHO)
    cell = np.array([[1.2, 1.6, 0.2, 0.5]])
    dual = np.array([[0.3, 0.4]])
    [bound], kept = relaxation.minimize_bounds(cell, dual, np.array([1.0]), 5, -math.inf)
    corners = np.array([[[t, t * r] for t, r in itertools.product((1.2, 1.6), (0.2, 0.5))]])
    largest = relaxation.evaluate_corners(corners, kept)[0].max()
    terms = np.abs(kept).sum() * (1 + 1.6) + np.abs(RHO).max() + 1
    assert bound == pytest.approx(largest + 0.01 * terms)


class Relaxation:
    """Gives bounds and multipliers in turn, and keeps the radii within which it is asked."""

    dimension = 2

    def __init__(self, *bounds: float) -> None:
        self.bounds, self.radii = list(bounds), list[FloatArray]()

    def minimize_bounds(
        self, cells: FloatArray, dual: FloatArray, radius: FloatArray, steps: int, cutoff: float
    ) -> tuple[FloatArray, FloatArray]:
        self.radii.append(radius)
        return np.full(len(cells), self.bounds.pop(0)), dual + 0.7 * len(self.radii)


def cells_of(relaxation: Relaxation, reached: float) -> Any:
    cells: Any = object.__new__(_CellRefinement)
    cells._relaxation, cells._radius = relaxation, 4.0
    cells._cells, cells._points = np.array([[1.0, 2.0, 0.0, 0.5]]), []
    cells._evaluate_middles = lambda *_: reached
    return cells


@pytest.mark.parametrize("reached", [2.0, -2.0])
def test_cells_are_halved_until_they_are_next_to_what_a_point_attains(reached: float) -> None:
    """By the digits, or a share of one more than the size of what is attained; or below what is enough."""
    near, far = reached + 2.9e-7, reached + 3.1e-7
    for cutoff, digits, bounds in (
        (-math.inf, 0.0, [near]),
        (-math.inf, 0.0, [far, near]),
        (-math.inf, 0.1, [reached + 0.09]),
        (-math.inf, 0.1, [reached + 0.11, reached + 0.09]),
        (reached + 1, 0.0, [reached + 0.9]),
    ):
        relaxation = Relaxation(*bounds)
        assert cells_of(relaxation, reached).refine(cutoff, digits, NO_DEADLINE) == bounds[-1]
        assert relaxation.bounds == []


def test_multipliers_of_a_part_are_sought_three_times_as_far_as_those_of_its_cell_moved() -> None:
    """They moved by 1.4 in the first half: the next halves look 4.2 around."""
    relaxation = Relaxation(9.0, 8.0, 0.0)
    assert cells_of(relaxation, 0.0).refine(-math.inf, 0.1, NO_DEADLINE) == 0.0
    assert [set(radius.tolist()) for radius in relaxation.radii[:2]] == [{4.0}, {4.0}]
    assert relaxation.radii[2] == pytest.approx(np.full(4, 3 * 1.4))


def test_the_first_cells_have_all_entries_and_multipliers_of_the_size_of_prices() -> None:
    [family] = build_split_families(ColumnCone(MinimumMass(5, 0.08), 0.55))
    largest = 2.3
    cells = _CellRefinement(KERNEL, family, RHO, largest)
    assert cells._cells[:, 1].max() >= largest  # with rounding
    assert cells._cells[:, 1].max() == pytest.approx(largest)
    assert cells._cells[:, :2].min() == 1.0
    phi = KERNEL.phi(np.array([0.0, 1.0, largest]))
    assert cells._radius == pytest.approx(2 * (1 + np.ptp(RHO) + np.ptp(phi)))


def test_nested_sets_are_in_the_order_of_the_multipliers_and_of_others_near_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Which are as far from it, at random, as the multipliers are from their mean."""
    orders: list[list[int]] = []
    listed = split_pricing._list_nested_prefixes

    def list_prefixes(order: Any) -> Any:
        orders.append(order.tolist())
        return listed(order)

    monkeypatch.setattr(split_pricing, "_list_nested_prefixes", list_prefixes)
    pricer = NestedPricer(KERNEL, ColumnCone(MinimumMass(5, 0.08), 0.55))
    rho = RHO + 5.0
    pricer.find_best(rho, 5)
    spread = float(np.abs(RHO - RHO.mean()).mean())
    shifts = spread * np.random.default_rng(0).normal(size=(6, 5))
    shifts[0] = 0.0
    assert orders == [np.argsort(rho + shift).tolist() for shift in shifts]
