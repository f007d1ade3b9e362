"""A program and its points in single precision: half of the memory traffic, twice the operations a second."""

from __future__ import annotations

from dataclasses import replace
from typing import cast

import numpy as np

from pmlopt.arrays import FloatArray
from pmlopt.backends.structured.block import Block
from pmlopt.backends.structured.block_program import Task
from pmlopt.backends.structured.point import Family, Point


def narrowed(task: Task) -> Task:
    """The program with its numbers in single precision; there must be no border."""
    return replace(task, costs=_narrow(task.costs), block=_narrow_block(task.block))


def narrowed_point(point: Point) -> Point:
    """The point in single precision."""
    return _as(point, np.float32)


def widened_point(task: Task, point: Point) -> Point:
    """The point in double precision, with slacks that are again the differences that they stand for.

    In single precision they have drifted by its rounding. The first scalar and the r are raised by so much,
    so that no slack falls; what that leaves of the rows, Newton's next steps mend.
    """
    wide, block = _as(point, np.float64), task.block
    slacks, scalars = wide.slacks, wide.scalars
    if block.capped:
        ends = (block.upper - block.lower) @ scalars
        missing = (slacks["below"] + slacks["above"]).max(axis=0) - ends
        scalars[0] += np.maximum(missing, 0.0) / (block.upper[0] - block.lower[0])
        slacks["below"] = (block.upper - block.lower) @ scalars - slacks["above"]
    low = block.lower @ scalars
    if block.hinge is not None:
        over = block.hinge.sign * (slacks["above"] + low - block.hinge.at @ scalars)
        slacks["excess"] = np.maximum(slacks["excess"], over + slacks["cut"])
        slacks["cut"] = slacks["excess"] - over
    if block.floored:
        slacks["low"] = low
    return replace(wide, low=low)


def _as(point: Point, kind: type[np.floating]) -> Point:
    def family(parts: Family) -> Family:
        return {name: part.astype(kind) for name, part in parts.items()}

    return Point(
        family(point.slacks),
        family(point.duals),
        point.low.astype(kind),
        point.scalars.astype(kind),
        point.means.astype(kind),
        point.rows.astype(kind),
    )


def _narrow(part: FloatArray) -> FloatArray:
    return cast("FloatArray", part.astype(np.float32))


def _narrow_block(block: Block) -> Block:
    hinge = block.hinge
    if hinge is not None:
        costs = None if hinge.costs is None else _narrow(hinge.costs)
        hinge = replace(hinge, at=_narrow(hinge.at), costs=costs)
    return replace(
        block,
        lower=_narrow(block.lower),
        upper=_narrow(block.upper),
        inside=_narrow(block.inside),
        weights=None if block.weights is None else _narrow(block.weights),
        mean=None if block.mean is None else _narrow(block.mean),
        hinge=hinge,
    )
