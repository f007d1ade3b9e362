"""What a column block says of a column, by a linear program in its scalars, is the requirement by itself."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
import pytest
from oracles.designs import FloatArray
from scipy.optimize import linprog

from pmlopt.solvers.structured.block_program import (
    ColumnBlock,
    build_edge_block,
    build_hull_block,
    build_largest_block,
    build_mean_block,
    build_ratio_block,
    build_slack_block,
    build_threshold_block,
)

LAW = np.array([0.5, 0.3, 0.2])
LOWER, WIDTH = np.array([0.3, 0.1, 0.2]), np.array([0.4, 0.3, 0.1])
LAWS = np.array([[0.5, 0.3, 0.2], [0.1, 0.2, 0.7]])
KEEP = 0.6


def least_over_ball(v: FloatArray, half: float = 0.15) -> float:
    """The least mean of v over the laws near LAW: half of the mass leaves the largest entries."""
    distance, law = np.eye(3), np.ones((1, 3))
    found = linprog(
        np.concatenate([v, np.zeros(3)]),
        A_ub=np.block([[distance, -distance], [-distance, -distance], [0 * law, law]]),
        b_ub=np.concatenate([LAW, -LAW, [2 * half]]),
        A_eq=np.concatenate([law, 0 * law], axis=1), b_eq=[1.0],
    )  # fmt: skip
    return float(found.fun)


def least_over_box(v: FloatArray) -> float:
    """The least mean of v over laws in LOWER and WIDTH more: what is left goes to the least entries."""
    rest, law = 1 - LOWER.sum(), LOWER.copy()
    for x in np.argsort(v):
        more = min(rest, WIDTH[x])
        law[x] += more
        rest -= more
    return float(law @ v)


def most_kept(v: FloatArray) -> float:
    """What the two largest `LAW[x] v[x]` add up to."""
    return float(np.sort(LAW * v)[-2:].sum())


BLOCKS: dict[str, tuple[ColumnBlock | None, Callable[[FloatArray], float]]] = {
    # what is at least 0 for the columns that are allowed
    "ratio": (build_ratio_block(KEEP), lambda v: v.min() - KEEP * v.max()),
    "mean": (build_mean_block(LAW, 0.85), lambda v: LAW @ v - 0.85 * v.max()),
    "mean and largest": (
        build_mean_block(LAW, 0.5, largest=0.2), lambda v: LAW @ v - (0.5 + 0.2) * v.max()
    ),
    "mean with ends": (
        build_mean_block(0.8 * LAW, KEEP, 0.3, 0.1),
        lambda v: 0.8 * LAW @ v + 0.3 * v.min() - (0.1 + KEEP) * v.max(),
    ),
    "ends without a mean": (
        build_mean_block(0 * LAW, 0.2, 1.1, 0.3), lambda v: 1.1 * v.min() - (0.2 + 0.3) * v.max()
    ),
    "threshold": (build_threshold_block(LAW, 0.15, KEEP), lambda v: least_over_ball(v) - KEEP * v.max()),
    "edge": (build_edge_block(LOWER, WIDTH, KEEP), lambda v: least_over_box(v) - KEEP * v.max()),
    "hull": (build_hull_block(LAWS, KEEP), lambda v: float((LAWS @ v).min()) - KEEP * v.max()),
    "largest": (build_largest_block(LAW, 2, 1.15), lambda v: float(LAW @ v) / 1.15 - most_kept(v)),
}  # fmt: skip


def least_missing(block: ColumnBlock, v: FloatArray) -> float:
    """The least by which a column misses the block, over scalars u and r: a linear program, not below 0."""
    hinge, k, n = block.hinge, len(block.interior_scalars), len(v)
    # variables: u, r, and what is missing
    rows, limits = [], []
    for x in range(n):
        rows.append([*block.lower, *np.zeros(n), -1.0])
        limits.append(v[x])
        if block.has_cap:
            rows.append([*-block.upper, *np.zeros(n), -1.0])
            limits.append(-v[x])
        if hinge is not None:
            at = hinge.threshold_coefficients[
                :, x if hinge.threshold_coefficients.shape[1] > 1 else 0
            ]
            rows.append([*-hinge.sign * at, *-np.eye(n)[x], 0.0])
            limits.append(-hinge.sign * v[x])
    equal, right = [], []
    if block.weights is not None and block.mean is not None:
        costs = (
            np.zeros_like(block.weights) if hinge is None or hinge.costs is None else hinge.costs
        )
        for weights, cost, mean in zip(block.weights, costs, block.mean, strict=True):
            rows.append([*mean, *cost, -1.0])
            limits.append(float(weights @ v))
            if not block.is_loose:
                equal.append([*mean, *cost, 0.0])
                right.append(float(weights @ v))
    if block.has_floor:
        rows.append([*-block.lower, *np.zeros(n), 0.0])
        limits.append(0.0)
    found = linprog(
        [*np.zeros(k + n), 1.0], A_ub=rows, b_ub=limits, A_eq=equal or None, b_eq=right or None,
        bounds=[(None, None)] * k + [(0, None)] * (n + 1),
    )  # fmt: skip
    return math.inf if found.status == 2 else float(found.fun)


@pytest.mark.parametrize("name", list(BLOCKS))
def test_a_block_allows_the_columns_of_its_requirement(name: str) -> None:
    block, margin = BLOCKS[name]
    assert block is not None
    rng = np.random.default_rng(0)
    seen = set()
    for v in (np.ones(3), *rng.uniform(0.4, 1.0, size=(5, 3)), *rng.uniform(0.0, 1.0, size=(5, 3))):
        room = margin(v)
        if abs(room) > 1e-6:
            assert (least_missing(block, v) < 1e-7) == (room > 0), (v, room)
            seen.add(room > 0)
    assert seen == {True, False}


@pytest.mark.parametrize("name", list(BLOCKS))
def test_the_column_of_ones_is_strictly_inside(name: str) -> None:
    block, _ = BLOCKS[name]
    assert block is not None
    u, ones = block.interior_scalars, np.ones(3)
    assert block.lower @ u < 1
    assert not block.has_cap or block.upper @ u > 1
    assert not block.has_floor or block.lower @ u > 0
    r = np.zeros(3)
    if block.hinge is not None:
        r = np.broadcast_to(np.ravel(block.hinge.interior_value), 3)
        over = block.hinge.sign * (ones - block.hinge.threshold_coefficients.T @ u)
        assert (r > np.maximum(over, 0.0)).all()
    if block.weights is not None and block.mean is not None:
        costs = 0.0 if block.hinge is None or block.hinge.costs is None else block.hinge.costs @ r
        left = block.weights @ ones - costs - block.mean @ u
        assert (left > 0).all() if block.is_loose else left == pytest.approx(0.0, abs=1e-12)


def test_where_nothing_is_strictly_inside_there_is_no_block() -> None:
    for keep in (1.0, 1.5):
        assert build_ratio_block(keep) is None
        assert build_threshold_block(LAW, 0.15, keep) is None
        assert build_edge_block(LOWER, WIDTH, keep) is None
        assert build_hull_block(LAWS, keep) is None
        assert build_slack_block(LAW, keep, 0.1) is None
    for least, largest in (
        (0.0, 0.0),
        (0.3, 0.4),
    ):  # the column of ones meets LAW'v + least v - largest v
        assert build_mean_block(LAW, 1 + least - largest, least, largest) is None
        assert build_mean_block(LAW, 0.99 + least - largest, least, largest) is not None
    assert build_largest_block(LAW, 2, 1 / 0.8) is None  # the two largest are 0.8
    assert build_largest_block(LAW, 2, 1 / 0.81) is not None
    assert build_largest_block(LAW, 3, 0.5) is None
