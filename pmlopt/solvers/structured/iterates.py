"""Iterates of the interior-point method: slacks, multipliers, and starting points."""

from __future__ import annotations

from dataclasses import dataclass, fields, replace
from typing import Any

import numpy as np

from pmlopt.core.numbers.arrays import BoolArray, FloatArray
from pmlopt.solvers.structured.block_program import BlockLP, ColumnBlock, HingeVariables

NamedArrays = dict[str, FloatArray]

MAX_STEP_LENGTH = float(np.nextafter(1.0, 0.0))
"""The length of a step that ends on the boundary: whole steps end inside."""


@dataclass(frozen=True, eq=False)
class Iterate:
    """A strictly interior primal-dual iterate, or a step.

    Attributes:
        slacks: what is positive, by name: "above" and "below" (N, M) the distances of P from its ends;
            "excess" (N, M) the r of a hinge and "cut" what it is above its threshold; "low" (M,) the lower
            end where it is a separate scalar; "spare" (K, M) of the rows of the columns and "coupled" of
            the coupling rows where they are inequalities.
        duals: their multipliers by the same names.
        low: (M,) the lower end, or zero.
        scalars: (k, M) u.
        means: (K, M) the multipliers of the rows of the columns.
        rows: (C,) the multipliers of the coupling rows, those of the rows' sums first.
    """

    slacks: NamedArrays
    duals: NamedArrays
    low: FloatArray
    scalars: FloatArray
    means: FloatArray
    rows: FloatArray

    @property
    def mechanism(self) -> FloatArray:
        """Return the (N, M) mechanism matrix of the iterate."""
        return self.slacks["above"] + self.low

    def masked_parts(
        self, allowed: BoolArray | None, hinged: BoolArray | None
    ) -> tuple[FloatArray, FloatArray | None]:
        """Return entries and hinge variables, zero outside the masks."""
        matrix, excess = self.mechanism, self.slacks.get("excess")
        if excess is not None and hinged is not None:
            excess = excess * hinged
        return matrix if allowed is None else matrix * allowed, excess

    def place_columns(self, kept: BoolArray) -> Iterate:
        """Return the iterate of all columns (M,), zero where a column is not among those kept."""

        def place(part: FloatArray) -> FloatArray:
            whole = np.zeros((*part.shape[:-1], kept.size), part.dtype)
            whole[..., kept] = part
            return whole

        def place_all(parts: NamedArrays) -> NamedArrays:
            # the slacks of the coupling rows belong to no column
            return {
                name: part if name == "coupled" else place(part) for name, part in parts.items()
            }

        return Iterate(
            place_all(self.slacks),
            place_all(self.duals),
            place(self.low),
            place(self.scalars),
            place(self.means),
            self.rows,
        )

    @property
    def slack_products(self) -> NamedArrays:
        """Return the complementarity products of slacks and multipliers."""
        return {name: slack * self.duals[name] for name, slack in self.slacks.items()}

    @property
    def duality_gap(self) -> float:
        """Return the sum of complementarity products: the duality gap of a feasible iterate."""
        return float(sum(np.vdot(self.duals[name], slack) for name, slack in self.slacks.items()))

    def duality_gap_after(self, step: Iterate, primal: float, dual: float) -> float:
        """Compute the duality gap after a step of given lengths."""
        total = 0.0
        for name, slack in self.slacks.items():
            here, there, change = self.duals[name], step.duals[name], step.slacks[name]
            # bilinear in the two lengths: no new point has to be formed
            total += float(
                np.vdot(here, slack)
                + dual * np.vdot(there, slack)
                + primal * (np.vdot(here, change) + dual * np.vdot(there, change))
            )
        return total

    def move_along(self, step: Iterate, primal: float, dual: float) -> Iterate:
        """Return the iterate after a step of given lengths."""
        return Iterate(
            {
                name: _move_array(slack, step.slacks[name], primal)
                for name, slack in self.slacks.items()
            },
            {
                name: _move_array(multiplier, step.duals[name], dual)
                for name, multiplier in self.duals.items()
            },
            self.low + primal * step.low,
            self.scalars + primal * step.scalars,
            self.means + dual * step.means,
            self.rows + dual * step.rows,
        )

    def max_step_lengths(self, step: Iterate) -> tuple[float, float]:
        """Compute the largest primal and dual step lengths that stay positive, at most 1."""
        primal = [_max_step_length(step.slacks[name], slack) for name, slack in self.slacks.items()]
        dual = [
            _max_step_length(step.duals[name], multiplier)
            for name, multiplier in self.duals.items()
        ]
        return min(primal), min(dual)


def _move_array(at: FloatArray, step: FloatArray, length: float) -> FloatArray:
    # in place: one temporary array in place of two
    """Compute `at + length * step`."""
    out = length * step
    out += at
    return out


def _max_step_length(step: FloatArray, at: FloatArray) -> float:
    # the entry that falls fastest relative to its size reaches zero first
    """Compute the largest step length, at most 1, that keeps an array positive."""
    least = float((step / at).min())
    return 1.0 if least > -1 else min(-1 / least, MAX_STEP_LENGTH)


def to_single_precision(task: BlockLP) -> BlockLP:
    """Convert a block program to single precision."""
    return replace(task, costs=_cast_to_single(task.costs), block=_cast_to_single(task.block))


def to_single_point(point: Iterate) -> Iterate:
    """Convert an iterate to single precision."""
    return _cast_point(point, np.float32)


def to_double_point(task: BlockLP, point: Iterate) -> Iterate:
    """Convert an iterate to double precision, with recomputed slacks.

    In single precision they have drifted by its rounding. The first scalar and the r are raised by so much,
    so that no slack falls; what that leaves of the rows, Newton's next steps mend.
    """
    wide, block = _cast_point(point, np.float64), task.block
    slacks, scalars = wide.slacks, wide.scalars
    if block.has_cap:
        ends = (block.upper - block.lower) @ scalars
        missing = (slacks["below"] + slacks["above"]).max(axis=0) - ends
        # raising the scalar widens the column, so that no slack becomes smaller
        scalars[0] += np.maximum(missing, 0.0) / (block.upper[0] - block.lower[0])
        slacks["below"] = (block.upper - block.lower) @ scalars - slacks["above"]
    low = block.lower @ scalars
    if block.hinge is not None:
        # r must exceed the hinge by its slack: it is raised, never lowered
        over = block.hinge.sign * (slacks["above"] + low - block.hinge.compute_thresholds(scalars))
        slacks["excess"] = np.maximum(slacks["excess"], over + slacks["cut"])
        slacks["cut"] = slacks["excess"] - over
    if block.has_floor:
        slacks["low"] = low
    return replace(wide, low=low)


def _cast_point(point: Iterate, kind: type[np.floating]) -> Iterate:
    """Cast an iterate's arrays to another precision."""

    def cast_part(part: Any) -> Any:
        if isinstance(part, dict):
            return {name: cast_part(each) for name, each in part.items()}
        return part.astype(kind)

    return replace(
        point, **{one.name: cast_part(getattr(point, one.name)) for one in fields(point)}
    )


def _cast_to_single(part: Any) -> Any:
    """Cast a dataclass's float arrays to single precision."""
    if isinstance(part, ColumnBlock | HingeVariables):
        return replace(
            part, **{one.name: _cast_to_single(getattr(part, one.name)) for one in fields(part)}
        )
    if isinstance(part, np.ndarray) and part.dtype == np.float64:
        return part.astype(np.float32)
    return part


def build_start(task: BlockLP) -> Iterate:
    """Build a strictly feasible start: the uniform mechanism with dual feasible multipliers."""
    n, m = task.costs.shape
    scalars = np.repeat(task.block.interior_scalars[:, None] / m, m, axis=1)
    hinge = task.block.hinge
    excess = None if hinge is None else np.full((n, m), hinge.interior_value / m)
    slacks = _compute_slacks(task, np.full((n, m), 1 / m), excess, scalars)
    # reduced costs centred at 0: multipliers above and below then differ least
    y = task.costs.mean(axis=1)
    # of the size of reduced costs, so that products are well centred from the start
    size = max(float(np.abs(task.costs - y[:, None]).max()) / 2, 1e-3)
    rows = np.where(task.row_signs == 0, 0.0, task.row_signs * size)
    rows[:n] += y
    means = np.full((len(task.column_means), m), size if task.block.is_loose else 0.0)
    return _make_iterate(task, slacks, scalars, means, rows, size * np.ones((n, m)))


def _compute_slacks(
    task: BlockLP, matrix: FloatArray, excess: FloatArray | None, scalars: FloatArray
) -> NamedArrays:
    """Compute the slacks of matrix, hinges and scalars; centred where a row leaves none."""
    block = task.block
    low = block.lower @ scalars
    slacks: NamedArrays = {"above": _fill_absent(matrix - low, task.allowed)}
    if block.has_cap:
        slacks["below"] = _fill_absent(block.upper @ scalars - matrix, task.allowed)
    if block.hinge is not None and excess is not None:
        cut = excess - block.hinge.sign * (matrix - block.hinge.compute_thresholds(scalars))
        slacks["excess"], slacks["cut"] = (
            _fill_absent(excess.copy(), task.hinge_mask),
            _fill_absent(cut, task.hinge_mask),
        )
    if block.has_floor:
        slacks["low"] = low
    if block.is_loose:
        slacks["spare"] = task.evaluate_column_rows(matrix, excess, scalars)
    if task.inequality_mask.any():
        left = task.row_signs * (
            task.evaluate_coupling_rows(matrix, excess, scalars) - task.right_sides
        )
        slacks["coupled"] = np.maximum(left, 0.1)[task.inequality_mask]
    return slacks


def _make_iterate(
    task: BlockLP,
    slacks: NamedArrays,
    scalars: FloatArray,
    means: FloatArray,
    rows: FloatArray,
    more: FloatArray,
) -> Iterate:
    """Build an iterate with multipliers that satisfy dual feasibility with a margin."""
    # above - below = reduced: the dual equations hold exactly, by the same margin on both
    reduced = task.reduced_costs(rows, means)
    duals: NamedArrays = {"above": np.maximum(reduced, 0.0) + more}
    if task.block.has_cap:
        duals["below"] = np.maximum(-reduced, 0.0) + more
    if task.block.hinge is not None:
        duals["excess"], duals["cut"] = more.copy(), more.copy()
    if "low" in slacks:
        duals["low"] = more.sum(axis=0)
    if task.block.is_loose:
        duals["spare"] = means.copy()
    if task.inequality_mask.any():
        duals["coupled"] = (task.row_signs * rows)[task.inequality_mask]
    for name, where in (("above", task.allowed), ("below", task.allowed), ("excess", task.hinge_mask),
                        ("cut", task.hinge_mask)):  # fmt: skip
        if where is not None and name in duals:
            # entries that are absent get multipliers whose products vanish
            duals[name][~where] = 1e-30
    return Iterate(slacks, duals, task.block.lower @ scalars, scalars, means, rows)


def _fill_absent(part: FloatArray, where: BoolArray | None) -> FloatArray:
    """Replace absent slack entries by one."""
    return part if where is None else np.where(where, part, 1.0)
