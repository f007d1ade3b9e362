"""Constraints of a person's own in the dual bound, through their multipliers."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from pmlopt.core.arrays import BoolArray, FloatArray, rounding_of
from pmlopt.data.prior import Prior
from pmlopt.programs.linear.certificate import AffineConstraint
from pmlopt.programs.linear.program import LinearDesign
from pmlopt.solvers.structured.block import Border
from pmlopt.solvers.structured.block_program import Task, attainable
from pmlopt.solvers.structured.points import Point

if TYPE_CHECKING:
    import cvxpy as cp
    from scipy import sparse


def lagrangian(program: LinearDesign) -> tuple[FloatArray, float]:
    """Gains and a constant whose sum bounds the expected gain wherever the added constraints hold.

    With multipliers m >= 0 of convex constraints c(P) <= 0 (any sign for equalities),
    E[g] <= E[g] - <m, c(P)>, and c(P) is at least its linearisation at the point in hand. What is
    linear in P and in q = p P joins the gains; other variables take their best value within their bounds.

    The variables of the program must have their values. No solver is trusted: any multipliers do.

    Returns:
        (N, M) gains and the constant; the constant is inf where a constraint is of a kind that has no
        expression (a cone) or moves a variable without bounds.
    """
    import cvxpy as cp

    slopes: dict[int, FloatArray] = {}
    variables: dict[int, cp.Variable] = {}
    constant = size = 0.0
    for constraint in program.added.values():
        if not has_expression(constraint):
            return program.centred, math.inf
        equality = isinstance(constraint, cp.constraints.Equality)
        if constraint.dual_value is None:
            return program.centred, math.inf
        multiplier = np.asarray(constraint.dual_value, dtype=float).flatten(order="F")
        multiplier = multiplier if equality else np.maximum(multiplier, 0.0)
        constant -= float(multiplier @ np.asarray(constraint.expr.value).flatten(order="F"))
        size += float(np.abs(multiplier).sum()) * _largest(constraint.expr)
        gradients = gradients_of(constraint)
        if gradients is None:
            return program.centred, math.inf
        for variable, gradient in gradients.items():
            slope = np.asarray(gradient @ multiplier).reshape(variable.shape, order="F")
            slopes[variable.id] = slopes.get(variable.id, 0.0) + slope
            variables[variable.id] = variable
            constant += float((slope * variable.value).sum())
            terms = np.asarray(abs(gradient) @ np.abs(multiplier)).reshape(variable.shape, order="F")
            size += float((terms * _reach(variable)).sum())
    # what rounding may have taken off these sums and slopes, by the size of what went into them
    constant += rounding_of(program.table.size, size)
    p = program.prior.pmf[:, None]
    gains = program.centred - slopes.pop(program.mechanism.id, np.zeros(program.table.shape)) / p
    gains = gains - slopes.pop(program.variables["output_law"].id, np.zeros((1, program.table.shape[1])))
    own = {variable.id for variable in program.variables.values()}
    for key, slope in slopes.items():
        lower, upper = (0.0, 1.0) if key in own else _bounds(variables[key])
        with np.errstate(invalid="ignore"):
            best = np.where(slope == 0, 0.0, np.maximum(-slope * lower, -slope * upper))
        constant += float(best.sum())
    return gains, constant


def has_expression(constraint: cp.Constraint) -> bool:
    """Whether a constraint is `expr == 0` or `expr <= 0`, and no cone."""
    import cvxpy as cp

    return isinstance(constraint, cp.constraints.Equality | cp.constraints.Inequality)


def unit(constraint: cp.Constraint) -> float:
    """The largest coefficient of a constraint at the point in hand where it is below one, else one.

    A violation of 1e-14 is small in a constraint of size one and everything in one of size 1e-13.
    """
    gradients = gradients_of(constraint) if has_expression(constraint) else None
    largest = max((abs(gradient).max() for gradient in (gradients or {}).values()), default=1.0)
    return float(min(1.0, largest)) or 1.0


def gradients_of(constraint: cp.Constraint) -> dict[cp.Variable, sparse.csc_array] | None:
    """A constraint's slopes by variable, (entries of the variable, rows); None where cvxpy has none."""
    from scipy import sparse

    try:
        gradients = constraint.expr.grad
    except (NotImplementedError, ValueError):
        return None
    if any(gradient is None for gradient in gradients.values()):
        return None
    return {
        variable: sparse.csc_array(np.atleast_2d(gradient) if np.ndim(gradient) == 0 else gradient)
        for variable, gradient in gradients.items()
    }


def _largest(expression: cp.Expression) -> float:
    """The largest number that occurs while an expression is evaluated."""
    return max([float(np.abs(expression.value).max()), *map(_largest, expression.args)])


def _reach(variable: cp.Variable) -> FloatArray:
    """How far a variable's entries may be from zero or from their values, where that is bounded."""
    span = np.abs(_bounds(variable)).sum(axis=0)
    near = 1 + np.abs(variable.value)
    return np.asarray(np.maximum(near, np.where(np.isfinite(span), span, 0.0)))


def _bounds(variable: cp.Variable) -> tuple[FloatArray, FloatArray]:
    lower, upper = variable.get_bounds()
    return np.asarray(lower, dtype=float), np.asarray(upper, dtype=float)


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
