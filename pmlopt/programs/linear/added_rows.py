"""Constraints of a person's own as few linear rows, for the structured interior point."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from pmlopt.arrays import BoolArray, FloatArray
from pmlopt.backends.structured.block_program import Task, attainable
from pmlopt.backends.structured.border import Border
from pmlopt.backends.structured.point import Point
from pmlopt.prior import Prior
from pmlopt.programs.linear.added_constraints import gradients_of, has_expression
from pmlopt.programs.linear.affine_constraints import AffineConstraint
from pmlopt.programs.linear.program import LinearDesign

if TYPE_CHECKING:
    import cvxpy as cp
    from scipy import sparse


@dataclass(frozen=True, eq=False)
class AddedRows:
    """Added constraints as rows: entries that must be zero, and a border.

    Attributes:
        constraints: in the order of the rows.
        coefficients: (B, N M) of `expr` in each row `expr <= 0` or `expr == 0`, on the mechanism row by row.
        offset: (B,) what `expr` is at zero.
        equal: (B,) where it is an equality.
        zero: (B,) the rows that keep a single entry at zero, if entries can be.
        shape: (N, M).
    """

    constraints: tuple[cp.Constraint, ...]
    coefficients: sparse.csr_array
    offset: FloatArray
    equal: BoolArray
    zero: BoolArray
    shape: tuple[int, int]

    @property
    def units(self) -> FloatArray:
        """(B,) the largest coefficient of each row."""
        return np.asarray(abs(self.coefficients).max(axis=1).toarray()).ravel()

    def beside(self, task: Task) -> Task:
        """The task with these rows."""
        from scipy import sparse

        rest, allowed = ~self.zero, task.allowed
        if self.zero.any():
            named = np.asarray((self.coefficients[self.zero] != 0).sum(axis=0)).reshape(self.shape)
            allowed = attainable(task.block, named == 0)
        if not rest.any():
            return replace(task, allowed=allowed)
        units = self.units[rest]
        rows = sparse.csr_array(self.coefficients[rest] * (-1 / units)[:, None])
        border = Border(rows, self.offset[rest] / units, self.equal[rest], self.shape)
        return replace(task, allowed=allowed, border=border)

    def multipliers(self, task: Task, point: Point) -> FloatArray:
        """(B,) those of the constraints, in units of the gains; of entries at zero, what they are worth."""
        found = np.zeros(len(self.offset))
        found[~self.zero] = task.split(point.rows)[2] / self.units[~self.zero]
        worth = np.maximum(-task.reduced(point.rows, point.means), 0.0).ravel()
        if task.allowed is not None:  # nothing tells what they are worth where a column can only be zero
            worth += np.tile(_WORTH * ~task.allowed.any(axis=0), self.shape[0])
        found[self.zero] = (
            (self.coefficients[self.zero] != 0) @ worth / self.coefficients[self.zero].sum(axis=1)
        )
        return task.scale * found

    def bound_of(self, gains: FloatArray, prior: Prior, multipliers: FloatArray) -> tuple[FloatArray, float]:
        """The gains less what the constraints are worth, and the constant that goes with them."""
        slopes = (self.coefficients.T @ multipliers).reshape(self.shape)
        return gains - slopes / prior.pmf[:, None], -float(multipliers @ self.offset)

    def save(self, multipliers: FloatArray) -> None:
        """Give the constraints their multipliers, as a solver of cvxpy would."""
        first = 0
        for constraint in self.constraints:
            last = first + constraint.expr.size
            value = multipliers[first:last].reshape(constraint.expr.shape, order="F")
            constraint.dual_variables[0].save_value(value)
            first = last


_WORTH = 10.0
"""In units of the largest cost, the price of an entry at zero in a column that can only be zero."""


def added_rows(program: LinearDesign) -> AddedRows | None:
    """The added constraints as at most N rows; None where they are more, or not affine in the mechanism."""
    import cvxpy as cp
    from scipy import sparse

    known = {program.mechanism.id, program.variables["output_law"].id}
    added = tuple(program.added.values())
    if sum(constraint.size for constraint in added) > program.prior.size:
        return None
    for constraint in added:
        if not has_expression(constraint) or not constraint.expr.is_affine():
            return None
        if any(variable.id not in known for variable in constraint.variables()):
            return None
    uniform = np.full(program.table.shape, 1 / program.table.shape[1])
    with program.holding(uniform):
        coefficients = sparse.csr_array(sparse.vstack([coefficients_of(program, each) for each in added]))
        values = np.concatenate([np.asarray(each.expr.value).flatten(order="F") for each in added])
    coefficients.eliminate_zeros()
    offset = values - coefficients @ uniform.ravel()
    counts = np.diff(coefficients.indptr)
    if not counts.all():
        return None
    sizes = [each.expr.size for each in added]
    equal = np.repeat([isinstance(each, cp.constraints.Equality) for each in added], sizes)
    positive = np.asarray(coefficients.sum(axis=1)).ravel() > 0
    zero = (counts == 1) & (np.abs(offset) < 1e-15) & (equal | positive)
    if program.block is None or program.block.lower.any():
        zero[:] = False
    return AddedRows(added, coefficients, offset, equal, zero, program.table.shape)


def coefficients_of(program: LinearDesign, constraint: cp.Constraint) -> sparse.csr_array:
    """(entries of the constraint, N M) its coefficients on the mechanism, row by row."""
    from scipy import sparse

    n, m = program.table.shape
    total = sparse.csr_array((constraint.expr.size, n * m))
    for variable, gradient in (gradients_of(constraint) or {}).items():
        part = sparse.csr_array(gradient.T)
        if variable.id == program.mechanism.id:
            total = total + part[:, np.arange(n * m).reshape(n, m, order="F").ravel()]
        else:
            total = total + sparse.kron(program.prior.pmf[None, :], part, format="csr")
    return sparse.csr_array(total)


def affine_constraints(program: LinearDesign) -> tuple[AffineConstraint, ...] | None:
    """The added constraints with their multipliers; None where one is not affine in the mechanism alone.

    The variables of the program must have their values, and the constraints their multipliers.
    """
    known = {program.mechanism.id, program.variables["output_law"].id}
    found = []
    for name, constraint in program.added.items():
        affine = has_expression(constraint) and constraint.expr.is_affine()
        if not affine or any(variable.id not in known for variable in constraint.variables()):
            return None
        if constraint.dual_value is None:
            return None
        found.append(_affine(program, name, constraint))
    return tuple(found)


def _affine(program: LinearDesign, name: str, constraint: cp.Constraint) -> AffineConstraint:
    import cvxpy as cp

    shape, point = program.table.shape, np.asarray(program.mechanism.value)
    coefficients = coefficients_of(program, constraint).toarray().reshape(-1, *shape)
    value = np.asarray(constraint.expr.value).flatten(order="F")
    return AffineConstraint(
        name,
        isinstance(constraint, cp.constraints.Equality),
        coefficients,
        value - (coefficients * point).sum(axis=(1, 2)),
        np.asarray(constraint.dual_value, dtype=float).flatten(order="F"),
    )
