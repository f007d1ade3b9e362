"""Points of the interior-point method: distances from the bounds, multipliers, and where they start."""

from __future__ import annotations

from dataclasses import dataclass, fields, replace
from typing import Any

import numpy as np

from pmlopt.core.arrays import BoolArray, FloatArray
from pmlopt.solvers.structured.block_program import Block, Hinge, Task

Family = dict[str, FloatArray]

BELOW_ONE = float(np.nextafter(1.0, 0.0))
"""The length of a step that ends on the boundary: whole steps end inside."""


@dataclass(frozen=True, eq=False)
class Point:
    """A strictly interior point of the interior-point method, or a step from one.

    Attributes:
        slacks: what is positive, by name: "above" and "below" (N, M) the distances of P from its ends;
            "excess" (N, M) the r of a hinge and "cut" what it is above its threshold; "low" (M,) the lower
            end where it is a scalar of its own; "spare" (K, M) of the rows of the columns and "coupled" of
            the coupling rows where they are inequalities.
        duals: their multipliers by the same names.
        low: (M,) the lower end, or zero.
        scalars: (k, M) u.
        means: (K, M) the multipliers of the rows of the columns.
        rows: (C,) the multipliers of the coupling rows, those of the rows' sums first.
    """

    slacks: Family
    duals: Family
    low: FloatArray
    scalars: FloatArray
    means: FloatArray
    rows: FloatArray

    @property
    def mechanism(self) -> FloatArray:
        """Return the (N, M) matrix P at this point."""
        return self.slacks["above"] + self.low

    def parts(
        self, allowed: BoolArray | None, hinged: BoolArray | None
    ) -> tuple[FloatArray, FloatArray | None]:
        """Return P and r, with zeros where they may not be positive."""
        matrix, excess = self.mechanism, self.slacks.get("excess")
        if excess is not None and hinged is not None:
            excess = excess * hinged
        return matrix if allowed is None else matrix * allowed, excess

    @property
    def products(self) -> Family:
        """Return the slacks times their multipliers: zero at an optimum."""
        return {name: slack * self.duals[name] for name, slack in self.slacks.items()}

    @property
    def gap(self) -> float:
        """Return the sum of the slack products: the duality gap of a point that meets the equations."""
        return float(sum(np.vdot(self.duals[name], slack) for name, slack in self.slacks.items()))

    def gap_after(self, step: Point, primal: float, dual: float) -> float:
        """Compute the duality gap at given lengths along a step."""
        total = 0.0
        for name, slack in self.slacks.items():
            here, there, change = self.duals[name], step.duals[name], step.slacks[name]
            total += float(
                np.vdot(here, slack)
                + dual * np.vdot(there, slack)
                + primal * (np.vdot(here, change) + dual * np.vdot(there, change))
            )
        return total

    def moved(self, step: Point, primal: float, dual: float) -> Point:
        """Return the point at given lengths along a step."""
        return Point(
            {name: _along(slack, step.slacks[name], primal) for name, slack in self.slacks.items()},
            {name: _along(multiplier, step.duals[name], dual) for name, multiplier in self.duals.items()},
            self.low + primal * step.low,
            self.scalars + primal * step.scalars,
            self.means + dual * step.means,
            self.rows + dual * step.rows,
        )

    def lengths(self, step: Point) -> tuple[float, float]:
        """Compute the longest primal and dual step lengths that stay inside, at most 1."""
        primal = [_ratio(step.slacks[name], slack) for name, slack in self.slacks.items()]
        dual = [_ratio(step.duals[name], multiplier) for name, multiplier in self.duals.items()]
        return min(primal), min(dual)


def _along(at: FloatArray, step: FloatArray, length: float) -> FloatArray:
    out = length * step
    out += at
    return out


def _ratio(step: FloatArray, at: FloatArray) -> float:
    least = float((step / at).min())
    return 1.0 if least > -1 else min(-1 / least, BELOW_ONE)


def narrowed(task: Task) -> Task:
    """Return the program with its numbers in single precision; it must have no side constraints."""
    return replace(task, costs=_narrow(task.costs), block=_narrow(task.block))


def narrowed_point(point: Point) -> Point:
    """Return the point in single precision."""
    return _as(point, np.float32)


def widened_point(task: Task, point: Point) -> Point:
    """Return the point in double precision, with slacks recomputed as the differences that they stand for.

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
        over = block.hinge.sign * (slacks["above"] + low - block.hinge.threshold(scalars))
        slacks["excess"] = np.maximum(slacks["excess"], over + slacks["cut"])
        slacks["cut"] = slacks["excess"] - over
    if block.floored:
        slacks["low"] = low
    return replace(wide, low=low)


def _as(point: Point, kind: type[np.floating]) -> Point:
    def cast(part: Any) -> Any:
        if isinstance(part, dict):
            return {name: cast(each) for name, each in part.items()}
        return part.astype(kind)

    return replace(point, **{one.name: cast(getattr(point, one.name)) for one in fields(point)})


def _narrow(part: Any) -> Any:
    """Return a part of a program with its arrays of floats in single precision."""
    if isinstance(part, Block | Hinge):
        return replace(part, **{one.name: _narrow(getattr(part, one.name)) for one in fields(part)})
    return part.astype(np.float32) if isinstance(part, np.ndarray) and part.dtype == np.float64 else part


def centre(task: Task) -> Point:
    """Build the uniform mechanism, strictly inside, with multipliers that satisfy the dual equations."""
    n, m = task.costs.shape
    scalars = np.repeat(task.block.inside[:, None] / m, m, axis=1)
    hinge = task.block.hinge
    excess = None if hinge is None else np.full((n, m), hinge.inside / m)
    slacks = _slacks(task, np.full((n, m), 1 / m), excess, scalars)
    y = task.costs.mean(axis=1)
    size = max(float(np.abs(task.costs - y[:, None]).max()) / 2, 1e-3)
    rows = np.where(task.signs == 0, 0.0, task.signs * size)
    rows[:n] += y
    means = np.full((len(task.mean), m), size if task.block.loose else 0.0)
    return _point(task, slacks, scalars, means, rows, size * np.ones((n, m)))


def _slacks(task: Task, matrix: FloatArray, excess: FloatArray | None, scalars: FloatArray) -> Family:
    """Compute the slacks at a matrix, scalars and r; rows that leave none get those of the center."""
    block = task.block
    low = block.lower @ scalars
    slacks: Family = {"above": _stood_in(matrix - low, task.allowed)}
    if block.capped:
        slacks["below"] = _stood_in(block.upper @ scalars - matrix, task.allowed)
    if block.hinge is not None and excess is not None:
        cut = excess - block.hinge.sign * (matrix - block.hinge.threshold(scalars))
        slacks["excess"], slacks["cut"] = _stood_in(excess.copy(), task.hinged), _stood_in(cut, task.hinged)
    if block.floored:
        slacks["low"] = low
    if block.loose:
        slacks["spare"] = task.column_rows(matrix, excess, scalars)
    if task.loose.any():
        left = task.signs * (task.coupled(matrix, excess, scalars) - task.bounds)
        slacks["coupled"] = np.maximum(left, 0.1)[task.loose]
    return slacks


def _point(
    task: Task, slacks: Family, scalars: FloatArray, means: FloatArray, rows: FloatArray, more: FloatArray
) -> Point:
    """Make an iterate with multipliers that meet the equations of P, each increased by a margin."""
    reduced = task.reduced(rows, means)
    duals: Family = {"above": np.maximum(reduced, 0.0) + more}
    if task.block.capped:
        duals["below"] = np.maximum(-reduced, 0.0) + more
    if task.block.hinge is not None:
        duals["excess"], duals["cut"] = more.copy(), more.copy()
    if "low" in slacks:
        duals["low"] = more.sum(axis=0)
    if task.block.loose:
        duals["spare"] = means.copy()
    if task.loose.any():
        duals["coupled"] = (task.signs * rows)[task.loose]
    for name, where in (("above", task.allowed), ("below", task.allowed), ("excess", task.hinged),
                        ("cut", task.hinged)):  # fmt: skip
        if where is not None and name in duals:
            # entries that are absent get multipliers whose products vanish
            duals[name][~where] = 1e-30
    return Point(slacks, duals, task.block.lower @ scalars, scalars, means, rows)


def _stood_in(part: FloatArray, where: BoolArray | None) -> FloatArray:
    """Return distances with ones in the place of absent entries."""
    return part if where is None else np.where(where, part, 1.0)
