"""ENT's Algorithms 6 to 11: adaptive smooth penalties and exponentiated gradients.

What the paper leaves open or gets wrong, and what is done here:

- Algorithms 8 and 11 ask for a decrease of `eta / 2 |grad|^2`, more than an exponentiated step can give
  however short it is (it falls by eta times the variance of the gradient under q): the search need not end.
  Here the decrease is half of `<grad, q - q_new>`.
- Algorithms 7 and 10 set `E_prev` before they compare with it, and pick the best of objectives with
  different lambdas: here the change is that of one round, and the last mechanism is taken.
- Algorithms 6 and 9 return the last mechanism, which answers the last prior alone: here it is the iterate
  that leaks least (or, within L, distorts least) under the prior that Algorithm 1 found against it.
- The mechanism has a row for each class of `queries.orbits`, such as q(y|f) for the parity, in place of each
  dataset: a row of its own for each dataset is drawn to the one prior of the round, and the rounds swing.
- `softplus(z)^2` is positive on the feasible side and biased: what is left of a violation of at most the
  margin delta is mixed away; a larger one is said in the result.
"""

from __future__ import annotations

import math
import time
from dataclasses import dataclass, replace

import numpy as np
from scipy.special import expit

from pmlopt.arrays import FloatArray
from pmlopt.programs.record_leakage.alternating import Climb, check_listed, joint_of
from pmlopt.programs.tradeoff.cutting_planes import Found, audited
from pmlopt.programs.tradeoff.problem import Task
from pmlopt.programs.tradeoff.relaxation import Sense

MARGIN = 0.01
"""The margin delta of Algorithms 7 and 10: violations up to it are mixed away at the end."""
_ROUNDS, _WEIGHTS, _STEPS = 15, 40, 200
_GROWTH, _SHRINK, _STARTS = 1.5, 0.5, 2
_CLOSE, _FINE = 1e-4, 1e-6


@dataclass(frozen=True, eq=False)
class Penalised:
    """The penalised problem for one prior: `aim + lambda softplus(bounded - limit)^2`.

    Attributes:
        joints: for each record the law (A, K) of X_i and the class.
        losses: (K, M) the probability of the class times d(f, y).
        sense: which of leakage and distortion is the aim.
        limit: on the other.
        weight: lambda.
    """

    joints: tuple[FloatArray, ...]
    losses: FloatArray
    sense: Sense
    limit: float
    weight: float

    def leaked(self, matrix: FloatArray) -> tuple[float, int]:
        """The largest I(X_i; Y), and its record."""
        found = [self._information(joint, matrix) for joint in self.joints]
        return max(found), int(np.argmax(found))

    def both(self, matrix: FloatArray) -> tuple[float, float]:
        """The aim, and what is bounded."""
        leaked, spent = self.leaked(matrix)[0], float((self.losses * matrix).sum())
        return (leaked, spent) if self.sense == "leakage" else (spent, leaked)

    def value(self, matrix: FloatArray) -> float:
        """The objective, ENT (23) or (27)."""
        aim, bounded = self.both(matrix)
        return aim + self.weight * float(np.logaddexp(0.0, bounded - self.limit)) ** 2

    def gradient(self, matrix: FloatArray) -> FloatArray:
        """(K, M) its gradient at the record that leaks most, ENT (24) and (25), or (29)."""
        joint = self.joints[self.leaked(matrix)[1]]
        laws = np.maximum(joint @ matrix, 1e-300)
        letters = np.maximum(joint.sum(axis=1, keepdims=True), 1e-300)
        of_leaked = joint.T @ np.log(laws / (letters * laws.sum(axis=0)))
        excess = self.both(matrix)[1] - self.limit
        slope = 2 * self.weight * float(np.logaddexp(0.0, excess) * expit(excess))
        if self.sense == "leakage":
            return np.asarray(of_leaked + slope * self.losses)
        return np.asarray(self.losses + slope * of_leaked)

    @staticmethod
    def _information(joint: FloatArray, matrix: FloatArray) -> float:
        laws = joint @ matrix
        alone = joint.sum(axis=1, keepdims=True) * laws.sum(axis=0)
        used = laws > 0
        return float((laws[used] * np.log(laws[used] / alone[used])).sum())


def exponentiated_gradient(
    problem: Penalised, matrix: FloatArray, steps: int = _STEPS, tolerance: float = 1e-7
) -> FloatArray:
    """Algorithms 8 and 11: multiplicative steps along the gradient, backtracking, at falling rates.

    Args:
        problem: for a fixed prior and lambda; convex.
        matrix: (K, M) to start from, with positive entries.
        steps: at most so many.
        tolerance: of the change of the mechanism, in l1.
    """
    rate = float(len(matrix))
    value = problem.value(matrix)
    for step in range(steps):
        gradient = problem.gradient(matrix)
        size = rate / math.sqrt(step + 1)
        for _ in range(40):
            moved = matrix * np.exp(-size * (gradient - gradient.min(axis=1, keepdims=True)))
            moved = np.maximum(moved, 1e-300)
            moved /= moved.sum(axis=1, keepdims=True)
            found = problem.value(moved)
            if found <= value - 0.5 * float((gradient * (matrix - moved)).sum()):
                break
            size *= _SHRINK
        else:
            return matrix
        change = float(np.abs(moved - matrix).sum())
        matrix, value = moved, found
        if change < tolerance:
            break
    return matrix


def adapted(problem: Penalised, matrix: FloatArray) -> FloatArray:
    """Algorithms 7 and 10: lambda grows while the limit is exceeded by delta, falls while there is room.

    Args:
        problem: with the first lambda.
        matrix: (K, M) to start from.
    """
    before = math.inf
    margin = min(MARGIN, problem.limit / 10)
    for _ in range(_WEIGHTS):
        matrix = exponentiated_gradient(problem, matrix)
        excess = problem.both(matrix)[1] - problem.limit
        if abs(excess) <= margin and abs(excess - before) < _CLOSE:
            break
        if abs(excess) > margin:
            factor = _GROWTH if excess > 0 else 1 / _GROWTH
            problem = replace(problem, weight=problem.weight * factor)
        before = excess
    return matrix


def penalised(task: Task, seed: int, deadline: float) -> Found:
    """Algorithms 6 and 9: a prior against the mechanism, a mechanism against the prior, in turn.

    Raises:
        QueryError: there are too many datasets for Algorithm 1.
    """
    check_listed(task.orbits.query)
    random = np.random.default_rng(seed)
    table = task.orbits.query.table()
    matrix = _inside(task)
    best, last, rounds = (math.inf, matrix), math.inf, 0
    while rounds < _ROUNDS and (rounds < 2 or time.perf_counter() < deadline):
        rounds += 1
        climb = Climb(table, matrix[table], task.entropy, 1e-6)
        found = max((climb.run(random) for _ in range(_STARTS)), key=lambda one: one.value)
        if rounds > 1:  # the start is no answer of the method's
            best = min(best, (_merit(task, found.value, matrix), matrix), key=lambda pair: pair[0])
        if abs(found.value - last) < _CLOSE:
            break
        last = found.value
        joints = tuple(joint_of(found.prior, record, table) for record in range(table.ndim))
        matrix = adapted(Penalised(joints, task.losses, task.sense, task.limit, 1.0), matrix)
    return _finished(task, best[1], rounds, seed, deadline)


def _inside(task: Task) -> FloatArray:
    """A mechanism with positive entries, in Problem 2 of distortion D where that can be."""
    uniform = np.full(task.losses.shape, 1 / task.losses.shape[1])
    spent = task.tradeoff.distortion(uniform)
    if task.sense == "distortion" or spent <= task.limit:
        return Task.mixed(task.cheapest, uniform, 0.5)
    share = (task.limit - task.least) / (spent - task.least)
    return Task.mixed(task.cheapest, uniform, max(share, 1e-3))


def _merit(task: Task, leaked: float, matrix: FloatArray) -> float:
    """What an iterate is worth: its aim, and ten times by how much it exceeds the limit."""
    spent = task.tradeoff.distortion(matrix)
    aim, bounded = (leaked, spent) if task.sense == "leakage" else (spent, leaked)
    return aim + 10 * max(0.0, bounded - task.limit)


def _finished(task: Task, matrix: FloatArray, rounds: int, seed: int, deadline: float) -> Found:
    """The mechanism audited; a violation within the margin mixed away."""
    excess = task.tradeoff.distortion(matrix) - task.limit
    reason = f"ENT's Algorithms 6 to 11, {rounds} rounds: no bound"
    if task.sense == "leakage" and 0 < excess <= MARGIN:
        matrix = task.repaired(matrix)
        reason += f"; a violation of {excess:.1e} was mixed away"
    fine = task.limit * _FINE
    enough = task.limit if task.sense == "distortion" else 0.0
    audit = audited(task, matrix, 1e-7, enough, seed, deadline)
    excess = audit.bound - task.limit
    if task.sense == "distortion" and 0 < excess <= MARGIN:
        share = min(1.0, 1 - (task.limit - fine) / audit.bound)
        matrix = Task.mixed(matrix, task.constant, share)
        audit = audited(task, matrix, max(fine / 2, 1e-12), enough, seed, deadline)
        reason += f"; a violation of {excess:.1e} was mixed away"
    return Found(task, matrix, audit, -math.inf, None, "penalty", reason, rounds, 0.0, 0.0)
