"""Constraints of a person's own in the dual bound, through their multipliers."""

from __future__ import annotations

import math

import cvxpy as cp
import numpy as np

from pmlopt.builders import Program
from pmlopt.checks import FloatArray


def lagrangian(program: Program) -> tuple[FloatArray, float]:
    """Gains and a constant whose sum bounds the expected gain wherever the added constraints hold.

    With multipliers m >= 0 of convex constraints c(P) <= 0 (any sign for equalities),
    E[g] <= E[g] - <m, c(P)>, and c(P) is at least its linearisation at the point in hand. What is
    linear in P and in q = p P joins the gains; other variables take their best value within their bounds.

    The variables of the program must have their values. No solver is trusted: any multipliers do.

    Returns:
        (N, M) gains and the constant; the constant is inf where a constraint is of a kind that has no
        expression (a cone) or moves a variable without bounds.
    """
    slopes: dict[int, FloatArray] = {}
    variables: dict[int, cp.Variable] = {}
    constant = 0.0
    for constraint in program.added.values():
        equality = isinstance(constraint, cp.constraints.Equality)
        if not equality and not isinstance(constraint, cp.constraints.Inequality):
            return program.gains, math.inf
        if constraint.dual_value is None:
            return program.gains, math.inf
        multiplier = np.asarray(constraint.dual_value, dtype=float).flatten(order="F")
        multiplier = multiplier if equality else np.maximum(multiplier, 0.0)
        expression = constraint.expr
        constant -= float(multiplier @ np.asarray(expression.value).flatten(order="F"))
        for variable, gradient in expression.grad.items():
            if gradient is None:
                return program.gains, math.inf
            slope = np.asarray(
                np.atleast_2d(gradient) @ multiplier if np.ndim(gradient) == 0 else gradient @ multiplier
            )
            slope = slope.reshape(variable.shape, order="F")
            slopes[variable.id] = slopes.get(variable.id, 0.0) + slope
            variables[variable.id] = variable
            constant += float((slope * variable.value).sum())
    p = program.prior.pmf[:, None]
    gains = program.gains - slopes.pop(program.mechanism.id, np.zeros(program.table.shape)) / p
    gains = gains - slopes.pop(program.variables["output_law"].id, np.zeros((1, program.table.shape[1])))
    own = {variable.id for variable in program.variables.values()}
    for key, slope in slopes.items():
        lower, upper = (0.0, 1.0) if key in own else _bounds(variables[key])
        with np.errstate(invalid="ignore"):
            best = np.where(slope == 0, 0.0, np.maximum(-slope * lower, -slope * upper))
        constant += float(best.sum())
    return gains, constant


def _bounds(variable: cp.Variable) -> tuple[FloatArray, FloatArray]:
    lower, upper = variable.get_bounds()
    return np.asarray(lower, dtype=float), np.asarray(upper, dtype=float)
