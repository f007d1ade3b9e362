"""The steps of the alternating method for the leakage per record, once more as cvxpy problems."""

from __future__ import annotations

from dataclasses import dataclass

import cvxpy as cp

from pmlopt.core.arrays import FloatArray
from pmlopt.model.queries.record_leakage_measures import negative_entropies


@dataclass(frozen=True, eq=False)
class StepProgram:
    """One step of the alternating method.

    Attributes:
        problem: the cvxpy problem.
        law: the law that it looks for.
    """

    problem: cp.Problem
    law: cp.Variable


def marginal_program(laws: FloatArray, inner: FloatArray, entropy: float) -> StepProgram:
    """The p(x_i) that leaks most for fixed p(x_-i|x_i): concave in p(x_i).

    Maximise `H(Y) - sum p(x_i) H(Y|x_i)` subject to `H(X_i) + sum p(x_i) H(X_-i|x_i) >= b`.

    Args:
        laws: (A, M) p(y|x_i).
        inner: (A,) H(X_-i|x_i), in nats.
        entropy: b, in nats.

    Source: [wu2026entropy, eq. (13)], which Algorithm 2 solves.

    Examples:
        >>> import numpy as np
        >>> program = marginal_program(np.array([[0.9, 0.1], [0.1, 0.9]]), np.zeros(2), 0.0)
        >>> round(float(program.problem.solve(solver="CLARABEL")), 6)  # log 2 - h(0.1)
        0.368064
    """
    law = cp.Variable(len(laws), nonneg=True, name="law")
    leaked = cp.sum(cp.entr(laws.T @ law)) + negative_entropies(laws) @ law
    certain = [cp.sum(law) == 1, cp.sum(cp.entr(law)) + inner @ law >= entropy]
    return StepProgram(cp.Problem(cp.Maximize(leaked), certain), law)


def simplex_program(vector: FloatArray) -> StepProgram:
    """The law nearest to a vector, in Euclidean distance.

    Args:
        vector: (R,).

    Source: [wu2026entropy, Algorithm 4].

    Examples:
        >>> import numpy as np
        >>> program = simplex_program(np.array([0.5, 1.2, -0.3]))
        >>> value = program.problem.solve(solver="CLARABEL")
        >>> program.law.value.round(6).tolist()
        [0.15, 0.85, 0.0]
    """
    law = cp.Variable(len(vector), nonneg=True, name="law")
    return StepProgram(cp.Problem(cp.Minimize(cp.sum_squares(law - vector)), [cp.sum(law) == 1]), law)
