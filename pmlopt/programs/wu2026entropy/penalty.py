"""Adaptive smooth penalties with exponentiated gradients: [wu2026entropy, Algorithms 6 to 11].

What the paper leaves open or gets wrong, and what is done here:

- Algorithms 8 and 11 require a decrease of `eta / 2 |grad|^2`, more than an exponentiated step can give
  however short it is (it falls by eta times the variance of the gradient under q): the search need not end.
  Here the decrease is half of `<grad, q - q_new>`.
- Algorithms 7 and 10 set `E_prev` before they compare with it, and pick the best of objectives with
  different lambdas: here the change is that of one round, and the last mechanism is taken.
- Algorithms 6 and 9 return the last mechanism, which is for the last prior only: here it is the iterate
  that leaks least (or, within L, distorts least) under the prior that Algorithm 1 found against it.
- The mechanism has a row for each class of `queries.orbits`, such as q(y|f) for the parity, in place of each
  dataset: a separate row for each dataset is drawn to the one prior of the round, and the rounds swing.
- `softplus(z)^2` is positive on the feasible side and biased: what is left of a violation of at most the
  margin delta is mixed away; a larger one is stated in the result.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np

from pmlopt.core.lazy_imports import special
from pmlopt.core.numbers.arrays import FloatArray
from pmlopt.programs.program import MethodResult
from pmlopt.programs.record_leakage.local_ascent import compute_informations
from pmlopt.programs.tradeoff.build_certificate import (
    audit_leakage,
    certify_tradeoff,
    mix_within_leakage,
)
from pmlopt.programs.tradeoff.certificate import TradeoffCertificate
from pmlopt.programs.tradeoff.program import TradeoffProgram, combine_convexly
from pmlopt.programs.tradeoff.proof import Sense
from pmlopt.programs.wu2026entropy.alternating import (
    AlternatingRun,
    check_dataset_count,
    compute_joint_law,
    run_until_deadline,
)
from pmlopt.solvers.solver_result import NO_DEADLINE, Deadline

PENALTY_MARGIN = 0.01
"""The margin delta of Algorithms 7 and 10: violations up to it are mixed away at the end."""
MAX_ROUNDS, MAX_WEIGHT_CHANGES, MAX_GRADIENT_STEPS = 15, 40, 200
"""Of Algorithms 6 and 9, 7 and 10, 8 and 11, at most; the paper gives no numbers."""


WEIGHT_GROWTH, STEP_REDUCTION = 1.5, 0.5
"""Factors of the penalty weight in Algorithms 7 and 10, of the step in 8 and 11."""


STATIONARY_ATOL = 1e-4
"""A leakage, or an excess over the limit, that changes by less from round to round has converged."""


@dataclass(frozen=True, eq=False)
class PenalizedProblem:
    """The penalised problem for one prior: `objective + lambda softplus(constraint - limit)^2`.

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

    def max_leakage(self, matrix: FloatArray) -> tuple[float, int]:
        """Compute the largest I(X_i; Y) over records, with its record."""
        found = [float(compute_informations(joint[None], matrix)[0]) for joint in self.joints]
        return max(found), int(np.argmax(found))

    def evaluate_both(self, matrix: FloatArray) -> tuple[float, float]:
        """Evaluate objective and constraint quantity."""
        leaked = self.max_leakage(matrix)[0]
        spent = float((self.losses * matrix).sum())
        return (leaked, spent) if self.sense == "leakage" else (spent, leaked)

    def evaluate(self, matrix: FloatArray) -> float:
        """Evaluate the penalised objective: [wu2026entropy, (23) or (27)]."""
        aim, bounded = self.evaluate_both(matrix)
        return aim + self.weight * float(np.logaddexp(0.0, bounded - self.limit)) ** 2

    def compute_gradient(self, matrix: FloatArray) -> FloatArray:
        """Compute the (K, M) gradient of the penalised objective: [wu2026entropy, (24), (25), (29)]."""
        joint = self.joints[self.max_leakage(matrix)[1]]
        laws = np.maximum(joint @ matrix, 1e-300)
        letters = np.maximum(joint.sum(axis=1, keepdims=True), 1e-300)
        # the derivative of I in q(y|k); terms from the law of Y cancel as rows sum to one
        of_leaked = joint.T @ np.log(laws / (letters * laws.sum(axis=0)))
        excess = self.evaluate_both(matrix)[1] - self.limit
        slope = 2 * self.weight * float(np.logaddexp(0.0, excess) * special.expit(excess))
        if self.sense == "leakage":
            return np.asarray(of_leaked + slope * self.losses)
        return np.asarray(self.losses + slope * of_leaked)


def descend_multiplicatively(
    problem: PenalizedProblem,
    matrix: FloatArray,
    steps: int = MAX_GRADIENT_STEPS,
    deadline: Deadline = NO_DEADLINE,
) -> FloatArray:
    """Minimise by multiplicative gradient steps with backtracking: [wu2026entropy, Algorithms 8 and 11]."""
    # losses are masses of about 1 / K: steps of size K move entries by order one
    rate = float(len(matrix))
    value = problem.evaluate(matrix)
    for step in range(steps):
        gradient = problem.compute_gradient(matrix)
        size = rate / math.sqrt(step + 1)
        for _ in range(40):
            # shifted to non-positive exponents for each row, which normalisation takes back
            moved = matrix * np.exp(-size * (gradient - gradient.min(axis=1, keepdims=True)))
            # an entry of 0 would stay 0 under multiplicative steps
            moved = np.maximum(moved, 1e-300)
            moved /= moved.sum(axis=1, keepdims=True)
            found = problem.evaluate(moved)
            if found <= value - 0.5 * float((gradient * (matrix - moved)).sum()):
                break
            size *= STEP_REDUCTION
        else:
            return matrix
        change = float(np.abs(moved - matrix).sum())
        matrix, value = moved, found
        # a step that changes all entries together by less is the last
        if change < 1e-7 or deadline.expired:
            break
    return matrix


def adapt_weight(
    problem: PenalizedProblem, matrix: FloatArray, deadline: Deadline = NO_DEADLINE
) -> FloatArray:
    """Adapt the penalty weight lambda to the constraint violation: [wu2026entropy, Algorithms 7 and 10]."""
    before = math.inf
    # for small limits the paper's margin would exceed the limit
    margin = min(PENALTY_MARGIN, problem.limit / 10)
    for _ in range(MAX_WEIGHT_CHANGES):
        matrix = descend_multiplicatively(problem, matrix, deadline=deadline)
        excess = problem.evaluate_both(matrix)[1] - problem.limit
        if (abs(excess) <= margin and abs(excess - before) < STATIONARY_ATOL) or deadline.expired:
            break
        if abs(excess) > margin:
            factor = WEIGHT_GROWTH if excess > 0 else 1 / WEIGHT_GROWTH
            problem = replace(problem, weight=problem.weight * factor)
        before = excess
    return matrix


def solve_by_penalties(
    program: TradeoffProgram, seed: int, deadline: Deadline, first: FloatArray | None = None
) -> MethodResult[TradeoffCertificate]:
    """Alternate worst prior and best mechanism: [wu2026entropy, Algorithms 6 and 9].

    Raises:
        SolverUnavailableError: there are too many datasets for Algorithm 1.
    """
    check_dataset_count(program.orbits.query)
    # 40 % of the time is reserved for the audits at the end
    end = deadline
    deadline = deadline.fraction(1 - 0.4)
    random = np.random.default_rng(seed)
    table = program.orbits.query.table()
    inside = _build_interior_start(program)
    given = inside if first is None else program.repair_matrix(first)
    # a multiplicative step never changes a zero: a little of a positive mechanism is mixed in
    matrix = given if first is None else combine_convexly(given, inside, 1e-6)
    best = (math.inf, given)
    last = math.inf
    rounds = 0
    priors: list[FloatArray] = []
    while rounds < MAX_ROUNDS and (rounds == 0 or not deadline.expired):
        rounds += 1
        climb = AlternatingRun(table, matrix[table], program.entropy, 1e-6, deadline)
        # two random starts of Algorithm 1 in each round
        climbs = [climb] * 2 + [replace(climb, first=prior) for prior in priors[-1:]]
        found = max(run_until_deadline(climbs, random), key=lambda one: one.value)
        priors.append(found.prior)
        late = deadline.expired  # then the prior may leak far too little
        if not late and (rounds > 1 or first is not None):  # the method's own start is no answer
            best = min(
                best,
                (_compute_merit(program, found.value, matrix), matrix),
                key=lambda pair: pair[0],
            )
        if late or abs(found.value - last) < STATIONARY_ATOL:
            break
        last = found.value
        joints = tuple(
            compute_joint_law(found.prior, record, table) for record in range(table.ndim)
        )
        problem = PenalizedProblem(joints, program.losses, program.sense, program.limit, 1.0)
        matrix = adapt_weight(problem, matrix, deadline)
    finished = not deadline.expired
    ends = [_certify_end(program, best[1], seed, end)]
    if first is not None:  # the local optima of Algorithm 1 may have made less of it
        ends.append(_certify_end(program, given, seed, end))
    # feasible ones first, then the least value
    certificate, message = min(ends, key=lambda end: (end[0].violation > 0, end[0].value))
    return MethodResult(
        certificate=certificate,
        finished=finished,
        message=f"{rounds} rounds, no bound{message}",
        iterations=rounds,
        warm_started=first is not None,
        arrays={"matrix": certificate.mechanism.matrix},
    )


def _build_interior_start(program: TradeoffProgram) -> FloatArray:
    """Build a strictly positive mechanism, if possible within the distortion limit."""
    uniform = np.full(program.losses.shape, 1 / program.losses.shape[1])
    spent = program.tradeoff.compute_distortion(uniform)
    if program.sense == "distortion" or spent <= program.limit:
        return combine_convexly(program.least_distortion_matrix, uniform, 0.5)
    # distortion is linear: this share of the uniform answer meets the limit exactly
    weight = (program.limit - program.min_distortion) / (spent - program.min_distortion)
    return combine_convexly(program.least_distortion_matrix, uniform, max(weight, 1e-3))


def _compute_merit(program: TradeoffProgram, leaked: float, matrix: FloatArray) -> float:
    """Compute the merit of an iterate: objective plus ten times its violation."""
    spent = program.tradeoff.compute_distortion(matrix)
    aim, bounded = (leaked, spent) if program.sense == "leakage" else (spent, leaked)
    return aim + 10 * max(0.0, bounded - program.limit)


def _certify_end(
    program: TradeoffProgram, matrix: FloatArray, seed: int, deadline: Deadline
) -> tuple[TradeoffCertificate, str]:
    """Mix a nearly feasible mechanism to feasibility, and certify it; return a note if it was mixed."""
    message = ""
    excess = program.tradeoff.compute_distortion(matrix) - program.limit
    if program.sense == "leakage" and 0 < excess <= PENALTY_MARGIN:
        matrix = program.repair_matrix(matrix)
        message = f"; a violation of {excess:.1e} was mixed away"
    enough = program.limit if program.sense == "distortion" else 0.0
    audit = audit_leakage(
        program, matrix, 1e-7, sufficient_bound=enough, seed=seed, deadline=deadline
    )
    excess = audit.bound - program.limit
    if program.sense == "distortion" and 0 < excess <= PENALTY_MARGIN:
        # mixed slightly further than needed, for the audit to stay within L
        room = program.limit * 1e-6
        matrix = mix_within_leakage(program, matrix, audit, program.limit - room)
        audit = audit_leakage(
            program,
            matrix,
            max(room / 2, 1e-12),
            sufficient_bound=enough,
            seed=seed,
            deadline=deadline,
        )
        message = f"; a violation of {excess:.1e} was mixed away"
    return certify_tradeoff(program, audit, -math.inf, None), message
