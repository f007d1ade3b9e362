"""The penalised problems of [wu2026entropy, (23) and (27)] as convex programs, for a general solver."""

from __future__ import annotations

from collections.abc import Sequence

import cvxpy as cp

from pmlopt.core.arrays import FloatArray
from pmlopt.programs.program import Declaration, problem_of
from pmlopt.programs.tradeoff.program import informations
from pmlopt.programs.tradeoff.proof import Sense, Tradeoff


def penalty_program(
    tradeoff: Tradeoff, joints: Sequence[FloatArray], sense: Sense, limit: float, weight: float
) -> Declaration:
    """Declare the penalised problem for a fixed prior, as a convex program: its records are the `joints`.

    With "leakage", (23): minimise `max_i I(X_i; Y) + lambda softplus(E[d] - D)^2`; with "distortion", (27):
    minimise `E[d] + lambda softplus(max_i I(X_i; Y) - L)^2`. `softplus(z)^2 = log(1 + e^z)^2` is positive on
    the feasible side too: the penalty is not exact, and its minimiser is biased inwards.

    Args:
        tradeoff: losses and support.
        joints: (A, K) each: one prior seen from each record.
        sense: "leakage" or "distortion", what is minimised.
        limit: D, or L in nats.
        weight: lambda.

    Source: [wu2026entropy, (23) and (27)].

    Examples:
        >>> import numpy as np
        >>> tradeoff = Tradeoff((1 - np.eye(2)) / 2, np.ones((2, 2), dtype=bool))
        >>> program = penalty_program(tradeoff, [np.eye(2) / 2], "leakage", 0.1, 1.0)
        >>> program.problem.is_dcp()
        True
    """
    matrix = cp.Variable(tradeoff.losses.shape, nonneg=True, name="mechanism")
    leaked = cp.max(informations(matrix, joints))
    spent = cp.sum(cp.multiply(tradeoff.losses, matrix))
    aim, bounded = (leaked, spent) if sense == "leakage" else (spent, leaked)
    constraints = {"rows": cp.sum(matrix, axis=1) == 1}
    if not tradeoff.allowed.all():
        constraints["support"] = matrix[~tradeoff.allowed] == 0
    objective = cp.Minimize(aim + weight * cp.square(cp.logistic(bounded - limit)))
    return Declaration(problem_of(objective, constraints), {"mechanism": matrix}, constraints)
