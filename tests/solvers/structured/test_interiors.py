"""The column of ones at the interior scalars of blocks, by the inequalities that a block states."""

from __future__ import annotations

import numpy as np
import pytest

from pmlopt.solvers.structured.block_program import (
    ColumnBlock,
    build_edge_block,
    build_largest_block,
    build_mean_block,
    build_threshold_block,
)

LAW = np.array([0.5, 0.3, 0.2])


@pytest.mark.parametrize(
    "block",
    [
        build_mean_block(LAW, 0.85),
        build_mean_block(LAW, 0.6, 0.0, 0.1),
        build_mean_block(0.4 * LAW, 0.6, 0.6),
        build_mean_block(0.5 * LAW, 0.6, 0.5, 0.1),
        build_threshold_block(LAW, 0.15, 0.6),
        build_threshold_block(LAW, 0.6, 0.9),
        build_edge_block(0.6 * LAW, 0.5 * LAW, 0.7),
        build_largest_block(LAW, 2, 0.9),
    ],
)
def test_the_column_of_ones_meets_the_row_and_is_strictly_between_the_ends(
    block: ColumnBlock,
) -> None:
    scalars = block.interior_scalars
    assert block.lower @ scalars < 1 < block.upper @ scalars
    assert block.weights is not None
    assert block.mean is not None
    left = float(block.weights.sum()) - float((block.mean @ scalars)[0])
    if block.hinge is not None:
        hinge = block.hinge
        assert hinge.costs is not None
        values = np.broadcast_to(hinge.interior_value, (3, 1))
        thresholds = hinge.compute_thresholds(scalars[:, None])
        assert (values > np.maximum(0.0, hinge.sign * (1 - thresholds))).all()
        left -= float((hinge.costs @ values)[0, 0])
    assert left == pytest.approx(0.0, abs=1e-12)


@pytest.mark.parametrize(("least", "largest"), [(0.6, 0.0), (0.8, 0.1), (0.8, -0.1)])
def test_without_weights_a_mean_is_a_ratio(least: float, largest: float) -> None:
    """`e^-eps max v <= least min v - largest max v` bounds the ratio of the least and the largest."""
    block = build_mean_block(0.0 * LAW, 0.5, least, largest)
    ratio = (0.5 + largest) / least
    assert ratio < 1
    assert block is not None
    assert block.lower / block.upper == pytest.approx([ratio])


def test_a_mean_without_room_for_the_column_of_ones_is_no_block() -> None:
    for weights, least, largest, is_block in (
        (0.5, 0.25, 0.0, False),  # short by nothing, to spare nothing
        (0.5, 0.5, 0.0, True),
        (0.5, 0.5, 0.125, True),
        (0.5, 0.5, 0.25, False),
        (0.5, 0.0, -0.5, True),
    ):
        law = weights * np.array([0.5, 0.25, 0.25])
        assert (build_mean_block(law, 0.75, least, largest) is not None) is is_block
