"""Proofs that columns within bounds on pairs of their entries cost no less than the prices of rows.

Under fixed prices nothing couples the columns: each is the cone of its pairs, and its costs less the prices
are at least 0 on it where they are what weights of pairs add up to, but for something non-negative. A step of
Newton's method finds such weights, or a column of the cone that costs less than 0. Steps have a length for
each column, and a column that is settled leaves.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from pmlopt.core.numbers.arrays import BoolArray, FloatArray
from pmlopt.solvers.solver_result import NO_DEADLINE, Deadline
from pmlopt.solvers.structured.centrality import correct_products
from pmlopt.solvers.structured.pair_columns import (
    PairIterate,
    PairLP,
    PairRows,
    PairSystem,
    add_rows,
    limit_column,
)


@dataclass(frozen=True, eq=False)
class PricedColumns:
    """What is known of columns under prices of rows.

    Attributes:
        proved: (M,) the columns that are proved to cost at least 0.
        rows: the pairs that the proofs use.
        weights: (R,) their multipliers.
    """

    proved: BoolArray
    rows: PairRows
    weights: FloatArray


def price_columns(
    program: PairLP,
    prices: FloatArray,
    start: FloatArray,
    allowed: float,
    deadline: Deadline = NO_DEADLINE,
) -> PricedColumns:
    """Prove of as many columns as possible that they cost no less than the prices of rows.

    Args:
        program: of these columns.
        prices: (N,) of the rows.
        start: (N, M) columns strictly within every pair.
        allowed: by how much each price may be too large.
        deadline: at which the columns that are left stay without a proof.
    """
    places = np.arange(program.shape[0])
    proved = np.zeros(len(places), dtype=bool)
    point = _build_start(program, prices - allowed / 2, start)
    present = point.rows.mark_present()
    found = []
    # ten steps are usual
    for _ in range(40):
        task = point.rows.program
        costs = task.costs - point.prices[task.members]
        done = (costs - point.added_costs).min(axis=1) >= -allowed / 2
        cheaper = (costs * point.matrix).sum(axis=1) < 0
        proved[places[done]] = True
        own = done[point.rows.column]
        rows = point.rows
        found.append((
            places[rows.column[own]], rows.above[own], rows.below[own], point.weights[own],
        ))  # fmt: skip
        left = ~(done | cheaper)
        if not left.any() or deadline.expired:
            break
        point, places, present = _select_columns(point, left), places[left], present[left]
        moved = _take_step(point, present, deadline)
        if moved is None:
            break
        point = moved
    column, above, below, weights = (np.concatenate(part) for part in zip(*found, strict=True))
    return PricedColumns(proved, PairRows(program, column, above, below), weights)


def _build_start(program: PairLP, prices: FloatArray, start: FloatArray) -> PairIterate:
    """Build the first point: in each column products of slack and weight that are all equal."""
    rows = PairRows.build_first(program)
    own = np.take_along_axis(start, program.members.T, axis=0)
    columns = np.ascontiguousarray(own.T)
    slack = rows.measure(columns)
    sizes = (np.abs(program.costs - prices[program.members]) * columns).sum(axis=1)
    products = sizes / np.diff(rows.ends)
    return PairIterate(rows, columns, slack, products[rows.column] / slack, prices)


def _select_columns(point: PairIterate, kept: BoolArray) -> PairIterate:
    """Select some columns of a point."""
    if kept.all():
        return point
    rows, task = point.rows, point.rows.program
    own, numbers = kept[rows.column], np.cumsum(kept) - 1
    program = replace(task, costs=task.costs[kept], members=task.members[kept])
    column = numbers[rows.column[own]]
    return replace(
        point,
        rows=PairRows(program, column, rows.above[own], rows.below[own]),
        matrix=point.matrix[kept],
        slack=point.slack[own],
        weights=point.weights[own],
    )


def _take_step(point: PairIterate, present: BoolArray, deadline: Deadline) -> PairIterate | None:
    """Take a step in each column; None where the time is over, or the equations have no solution."""
    system = PairSystem.build(point, deadline, fixed_prices=True)
    if system is None:
        return None
    rows = point.rows
    products = point.slack * point.weights
    targets = np.add.reduceat(products, rows.ends[:-1]) / np.diff(rows.ends)
    direction, slack, weights = _find_step(system, products, targets[rows.column])
    if not np.isfinite(direction).all():
        return None
    lengths = 0.995 * _find_lengths(point.slack, slack, rows)
    found = []
    for place, mask in enumerate(present):
        lengths[place], above, below = limit_column(
            point.matrix[place], direction[place], lengths[place], mask,
            rows.program.select_factors(place),
        )  # fmt: skip
        found.append((np.full(len(above), place), above, below))
    column, above, below = (np.concatenate(part) for part in zip(*found, strict=True))
    dual = _find_lengths(point.weights, weights, rows)
    dual = np.where(dual < 1, 0.995 * dual, dual)
    moved = replace(
        point,
        matrix=point.matrix + lengths[:, None] * direction,
        slack=point.slack + lengths[rows.column] * slack,
        weights=point.weights + dual[rows.column] * weights,
    )
    # in the middle of the others: with smaller products the next steps are short
    return add_rows(moved, (column, above, below), targets[column])


def _find_step(
    system: PairSystem, products: FloatArray, targets: FloatArray
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Find the directions of columns, slacks and weights, with two corrections of far products."""
    point = system.point
    wanted = targets - products
    direction = system.move_columns(wanted, system.residual)
    slack, weights = system.measure_rows(wanted, direction)
    for _ in range(2):
        lengths, dual = (
            np.minimum(1.0, 1.08 * _find_lengths(positive, change, point.rows) + 0.2)
            for positive, change in ((point.slack, slack), (point.weights, weights))
        )
        column = point.rows.column
        ahead = (point.slack + lengths[column] * slack) * (point.weights + dual[column] * weights)
        wanted = wanted + correct_products(ahead, targets)
        direction = system.move_columns(wanted, system.residual)
        slack, weights = system.measure_rows(wanted, direction)
    return direction, slack, weights


def _find_lengths(positive: FloatArray, direction: FloatArray, rows: PairRows) -> FloatArray:
    """Return the (M,) lengths of steps, at most one, up to which the positive numbers of a column stay so."""
    fastest = -np.minimum.reduceat(direction / positive, rows.ends[:-1])
    return np.asarray(1 / np.maximum(fastest, 1.0))
