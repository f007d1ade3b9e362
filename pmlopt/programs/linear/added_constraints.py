"""Constraints of a person's own in the dual bound, through their multipliers."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

from pmlopt.arrays import FloatArray, rounding_of
from pmlopt.programs.linear.program import LinearDesign

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
