"""Grids of boxes: division, membership, and distances against points drawn from the boxes."""

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from strategies import MODEST

from pmlopt.core.grids import Grid
from pmlopt.errors import PriorError


@st.composite
def grids(draw: Any, most: int = 2) -> Any:
    axes = draw(st.integers(1, most))
    edges, periods = [], []
    for _ in range(axes):
        steps = draw(st.lists(st.floats(0.05, 2.0), min_size=1, max_size=4))
        edges.append(np.concatenate([[0.0], np.cumsum(steps)]))
        periods.append(float(edges[-1][-1]) if draw(st.booleans()) else None)
    return Grid(tuple(edges), tuple(periods))


def distance(grid: Any, x: Any, y: Any) -> Any:
    apart = np.abs(x - y)
    for axis, period in enumerate(grid.periods):
        if period is not None:
            apart[..., axis] = np.minimum(apart[..., axis], period - apart[..., axis])
    return np.sqrt((apart**2).sum(axis=-1))


@MODEST
@given(grids(), st.integers(0, 2**32 - 1))
def test_no_two_points_of_boxes_are_nearer_or_farther_than_the_boxes(grid: Any, seed: Any) -> None:
    random = np.random.default_rng(seed)
    here, there = (
        grid.lower + random.random((20, *grid.lower.shape)) * (grid.upper - grid.lower)
        for _ in "ab"
    )
    nearest = distance(grid, here[:, :, None, :], there[:, None, :, :]).min(axis=0)
    assert (grid.compute_min_distances() <= nearest + 1e-12).all()
    points = there[0]
    farthest = distance(grid, here[:, :, None, :], points[None, None, :, :]).max(axis=0)
    assert (grid.compute_max_distances(points, slice(None)) >= farthest - 1e-12).all()


@MODEST
@given(grids(most=1), st.integers(0, 2**32 - 1))
def test_both_distances_are_reached(grid: Any, seed: Any) -> None:
    at = np.linspace(0.0, 1.0, 201)
    random = np.random.default_rng(seed)
    box, other = random.integers(grid.size, size=2)
    one = Grid(tuple(edges for edges in grid.edges), grid.periods)
    here = one.lower[box, 0] + at * (one.upper - one.lower)[box, 0]
    there = one.lower[other, 0] + at * (one.upper - one.lower)[other, 0]
    apart = distance(one, here[:, None, None], there[None, :, None])
    step = (one.upper - one.lower).max() / 200
    assert apart.min() - one.compute_min_distances()[box, other] <= 2 * step
    centre = one.centres[[other]]
    assert (
        one.compute_max_distances(centre, slice(None))[box, 0]
        - distance(one, here[:, None], centre).max()
        <= step
    )


@MODEST
@given(grids(), st.integers(1, 4), st.integers(0, 2**32 - 1))
def test_a_divided_grid_has_its_boxes_inside(grid: Any, pieces: Any, seed: Any) -> None:
    fine, parents = grid.divide(pieces), grid.find_parents(pieces)
    assert fine.size == grid.size * pieces ** len(grid.edges)
    assert (fine.lower >= grid.lower[parents] - 1e-12).all()
    assert (fine.upper <= grid.upper[parents] + 1e-12).all()
    points = np.random.default_rng(seed).random((30, len(grid.edges))) * [
        edges[-1] for edges in grid.edges
    ]
    found = grid.locate(points)
    assert (points >= grid.lower[found]).all()
    assert (points <= grid.upper[found]).all()


def test_a_point_outside_is_named() -> None:
    with pytest.raises(PriorError, match=r"\[3\.5\] at position 1 is outside"):
        Grid((np.array([0.0, 1.0, 2.0]),), (None,)).locate(np.array([[0.5], [3.5]]))
