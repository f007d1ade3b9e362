"""Trade-offs of leakage per record and distortion, for the priors found so far; and their penalty forms."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

import cvxpy as cp
import numpy as np
from scipy import sparse

from pmlopt.arrays import BoolArray, FloatArray
from pmlopt.program import problem_of

Sense = Literal["leakage", "distortion"]


@dataclass(frozen=True, eq=False)
class Tradeoff:
    """What both problems are about, besides the adversary.

    Attributes:
        losses: (K, M) what releasing y costs when the dataset is in a class: the expected distortion of a
            mechanism q is `sum_{k,y} masses[k] q[k,y] d(f_k, y)`, and this is `masses[k] d(f_k, y)`.
        allowed: (K, M) which entries of the mechanism may be positive.
    """

    losses: FloatArray
    allowed: BoolArray

    def distortion(self, matrix: FloatArray) -> float:
        """The expected distortion of a mechanism."""
        return float((self.losses * matrix).sum())


@dataclass(frozen=True, eq=False, kw_only=True)
class TradeoffProgram:
    """The best mechanism against finitely many priors, in `q` (K, M) with rows that sum to one.

    With "leakage", Problem 2: minimise t subject to `I_j(q) <= t` and `E[d] <= D`. With "distortion",
    Problem 3: minimise `E[d]` subject to `I_j(q) <= L`. Here `I_j` is I(X_i; Y) under the j-th prior, given
    as the law J of (X_i, class): `sum_{a,y} v log(v / (pi_a u_y))` with `v = J q`, pi and u its sums; it is
    convex in q.

    Attributes:
        problem: the cvxpy problem, of the exponential cone.
        sense: which of the two.
        limit: D or L.
        joints: the priors, each (A, K).
        variables: "mechanism", and "leakage" in Problem 2.
        constraints: "rows", "priors" (one row for each), in Problem 2 "distortion", where needed "support".

    Source: ENT, (21) and (26) for a finite set of priors; that both are convex is pmlopt's (theorems of ENT
    call the second not).

    Examples:
        >>> hamming = 1 - np.eye(2)
        >>> tradeoff = Tradeoff(hamming / 2, np.ones((2, 2), dtype=bool))
        >>> program = tradeoff_program(tradeoff, [np.eye(2) / 2], "leakage", 0.1)
        >>> value = program.problem.solve(solver="CLARABEL")  # rate-distortion: log 2 - h(0.1)
        >>> round(float(value), 5)
        0.36806
    """

    problem: cp.Problem
    sense: Sense
    limit: float
    joints: tuple[FloatArray, ...]
    variables: Mapping[str, cp.Variable]
    constraints: Mapping[str, cp.Constraint]


def tradeoff_program(
    tradeoff: Tradeoff, joints: Sequence[FloatArray], sense: Sense, limit: float
) -> TradeoffProgram:
    """Declare Problem 2 or 3 for the given priors.

    Args:
        tradeoff: losses and support.
        joints: (A, K) each.
        sense: "leakage" to minimise it, with `limit` on the distortion; "distortion" the other way round.
        limit: D, or L in nats.
    """
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
    return TradeoffProgram(
        problem=problem_of(cp.Minimize(aim), constraints),
        sense=sense,
        limit=limit,
        joints=tuple(joints),
        variables=variables,
        constraints=constraints,
    )


def informations(matrix: cp.Expression, joints: Sequence[FloatArray]) -> cp.Expression:
    """(J,) I(X_i; Y) under each prior, as convex expressions of the mechanism.

    Args:
        matrix: (K, M) the mechanism.
        joints: (A, K) each, the law of (X_i, class).
    """
    parts = [joint[joint.sum(axis=1) > 0] for joint in joints]
    letters = [part.sum(axis=1, keepdims=True) for part in parts]
    met = np.vstack(parts)
    alone = np.vstack([mass * part.sum(axis=0) for mass, part in zip(letters, parts, strict=True)])
    which = np.repeat(np.arange(len(parts)), [len(part) for part in parts])
    sums = sparse.csr_array((np.ones(len(met)), (which, np.arange(len(met)))))
    return sums @ cp.sum(cp.rel_entr(met @ matrix, alone @ matrix), axis=1)


def penalty_program(
    tradeoff: Tradeoff, joints: Sequence[FloatArray], sense: Sense, limit: float, weight: float
) -> TradeoffProgram:
    """Declare ENT's penalised problem for a fixed prior: its records are the `joints`.

    With "leakage", (23): minimise `max_i I(X_i; Y) + lambda softplus(E[d] - D)^2`; with "distortion", (27):
    minimise `E[d] + lambda softplus(max_i I(X_i; Y) - L)^2`. `softplus(z)^2 = log(1 + e^z)^2` is positive on
    the feasible side too: the penalty is not exact, and its minimiser is biased inwards.

    Args:
        tradeoff: losses and support.
        joints: (A, K) each: one prior seen from each record.
        sense: "leakage" or "distortion", what is minimised.
        limit: D, or L in nats.
        weight: lambda.

    Source: ENT, (23) and (27).

    Examples:
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
    return TradeoffProgram(
        problem=problem_of(objective, constraints),
        sense=sense,
        limit=limit,
        joints=tuple(joints),
        variables={"mechanism": matrix},
        constraints=constraints,
    )
