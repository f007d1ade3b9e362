"""The convex program for the best mechanism against finitely many priors."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from pmlopt.core.arrays import FloatArray
from pmlopt.programs.program import Declaration, problem_of
from pmlopt.programs.tradeoff.proof import Sense, Tradeoff

if TYPE_CHECKING:
    import cvxpy as cp


def tradeoff_program(
    tradeoff: Tradeoff, joints: Sequence[FloatArray], sense: Sense, limit: float
) -> Declaration:
    """Declare the best mechanism against finitely many priors, in `q` (K, M) with rows that sum to one.

    With "leakage", Problem 2: minimise t subject to `I_j(q) <= t` and `E[d] <= D`. With "distortion",
    Problem 3: minimise `E[d]` subject to `I_j(q) <= L`. Here `I_j` is I(X_i; Y) under the j-th prior, given
    as the law J of (X_i, class): `sum_{a,y} v log(v / (pi_a u_y))` with `v = J q`, pi and u its sums; it is
    convex in q. The cones are exponential.

    Args:
        tradeoff: losses and support.
        joints: (A, K) each.
        sense: "leakage" to minimise it, with `limit` on the distortion; "distortion" the other way round.
        limit: D, or L in nats.

    Returns:
        The variables "mechanism", and "leakage" in Problem 2; the constraints "rows", "priors" (one row for
        each), in Problem 2 "distortion", where needed "support".

    Source: [wu2026entropy, (21) and (26)] for a finite set of priors; that both are convex is pmlopt's
    (theorems of the paper call the second not).

    Examples:
        >>> hamming = 1 - np.eye(2)
        >>> tradeoff = Tradeoff(hamming / 2, np.ones((2, 2), dtype=bool))
        >>> program = tradeoff_program(tradeoff, [np.eye(2) / 2], "leakage", 0.1)
        >>> value = program.problem.solve(solver="CLARABEL")  # rate-distortion: log 2 - h(0.1)
        >>> round(float(value), 5)
        0.36806
    """
    import cvxpy as cp

    matrix = cp.Variable(tradeoff.losses.shape, nonneg=True, name="mechanism")
    leaked = informations(matrix, joints)
    spent = cp.sum(cp.multiply(tradeoff.losses, matrix))
    variables = {"mechanism": matrix}
    constraints = {"rows": cp.sum(matrix, axis=1) == 1}
    if sense == "leakage":
        most = cp.Variable(name="leakage")
        variables["leakage"] = most
        constraints["priors"] = leaked <= most
        constraints["distortion"] = spent <= limit
        aim = most
    else:
        constraints["priors"] = leaked <= limit
        aim = spent
    if not tradeoff.allowed.all():
        constraints["support"] = matrix[~tradeoff.allowed] == 0
    return Declaration(problem_of(cp.Minimize(aim), constraints), variables, constraints)


def informations(matrix: cp.Expression, joints: Sequence[FloatArray]) -> cp.Expression:
    """(J,) I(X_i; Y) under each prior, as convex expressions of the mechanism.

    Args:
        matrix: (K, M) the mechanism.
        joints: (A, K) each, the law of (X_i, class).
    """
    import cvxpy as cp
    from scipy import sparse

    parts = [joint[joint.sum(axis=1) > 0] for joint in joints]
    letters = [part.sum(axis=1, keepdims=True) for part in parts]
    met = np.vstack(parts)
    alone = np.vstack([mass * part.sum(axis=0) for mass, part in zip(letters, parts, strict=True)])
    which = np.repeat(np.arange(len(parts)), [len(part) for part in parts])
    sums = sparse.csr_array((np.ones(len(met)), (which, np.arange(len(met)))))
    return sums @ cp.sum(cp.rel_entr(met @ matrix, alone @ matrix), axis=1)
