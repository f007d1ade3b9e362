"""Column generation for estimation designs: optimize weights of a few columns, and price the others."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np

from pmlopt.core.lazy_imports import linalg, optimize
from pmlopt.core.numbers.arrays import FloatArray
from pmlopt.programs.estimation.bounds import ErrorBoundProof, MomentProblem, solve_relaxation
from pmlopt.programs.estimation.columns import MAX_RELAXED_LETTERS, prepend_constant
from pmlopt.programs.estimation.fewer_outputs import (
    merge_outputs,
    reduce_by_information,
    scale_to_rows,
    thin_columns,
)
from pmlopt.programs.estimation.interior_point import OptimalWeights, optimize_weights
from pmlopt.programs.estimation.program import EstimationDesign
from pmlopt.programs.program import MethodError
from pmlopt.solvers.solver_result import Deadline, MethodOptions

MAX_COLUMNS_AT_ONCE = 500
"""Columns up to which all are weighed at once."""


STALLED_DECREASE, STALLED_DECREASE_MANY_LETTERS = 1e-6, 1e-3
"""Decrease of the error in a round, as a share of the scale, at which a search without a list ends; of many
letters as a share of the error."""


IDLE_ENTRY_ATOL, RARE_ENTRY_ATOL = 1e-8, 1e-6
"""Entries up to the first are taken for zero, and outputs with entries up to the second where that costs next
to nothing: what one person in a million gets reveals little, and makes lists of outputs long."""


MIN_INTERIOR_SHARE = 1e-3
"""The least weight that columns to start from allow, as a share of equal weights."""


LIMIT_MESSAGE = "the rounds or the time are used up"


@dataclass(frozen=True, eq=False)
class GenerationResult:
    """The mechanism of a column generation, the proof of its lower bound, and how the search ended.

    Attributes:
        matrix: (N, M) of the weights.
        proof: of a bound; None where there is none.
        finished, message, iterations: whether it ended separately, how, and after how many Newton steps.
    """

    matrix: FloatArray
    proof: ErrorBoundProof | None
    finished: bool
    message: str
    iterations: int

    def scaled_by(self, unit: float) -> GenerationResult:
        """Rescale the result to a workload multiplied by `unit`."""
        return self if self.proof is None else replace(self, proof=self.proof.scaled_by(unit))


def generate_columns(program: EstimationDesign, options: MethodOptions) -> GenerationResult:
    """Alternate optimal weights of the known columns and pricing of new ones, until none lowers the error.

    Where every extreme column is listed they are priced from the list, which bounds the error. Else they come
    from a search, and a relaxation bounds the error in the remaining time.

    Raises:
        MethodError: the weights do not make a mechanism.
    """
    columns = program.columns
    p = program.prior.pmf
    objective = program.objective
    listed = columns.is_complete
    large = len(p) > MAX_RELAXED_LETTERS
    allowed = program.compute_allowed_gap(options.tolerance)
    deadline = options.deadline
    # the bound is proved in the other half of the time
    deadline = deadline if listed else deadline.fraction(0.5)
    count = columns.inner.shape[1]
    inner = _choose_starting_columns(columns.inner, listed, large)
    # columns from which all others follow, and the constant, the first: with them J can be regular
    kept = inner[:, np.unique(np.append(0, linalg.qr(inner, mode="r", pivoting=True)[1][: len(p)]))]
    proof = None if listed else _prove_by_moments(program)
    bound = objective.trivial_bound if proof is None else objective.compute_bound(columns, proof)
    # on 32 letters the semidefinite relaxation takes a minute, and improves little on second moments
    by_moments = proof is not None and len(p) > 24
    settles = by_moments and not large
    finished = False
    steps = 0
    last = math.inf
    # problems of 8 to 16 letters take 3 to 25 rounds
    for _ in range(200):
        # weights of a few columns need few digits
        needed = 0.003 * (last - bound) if settles and last < math.inf else 0.0
        accuracy = max(0.05 * allowed, needed)
        found = _weigh_columns(program, inner, accuracy, deadline)
        steps += found.iterations
        matrix = _build_matrix(inner, found.weights)
        information = (inner * found.weights) @ inner.T
        # J of the weights: (N, K) columns scaled by the (K,) weights times their transpose
        z = objective.compute_sensitivities(information)
        error = program.compute_error(matrix)
        if listed:
            tried = ErrorBoundProof(z, found.multipliers / p)
            proved = objective.compute_bound(columns, tried)
            if proof is None or proved > bound:
                proof, bound = tried, proved
        finished = _has_ended(program, error, last, error - bound, allowed, settles)
        last = error
        if finished or deadline.expired:
            break
        fresh = _find_new_columns(program, inner, z, found.multipliers, allowed, deadline)
        if not fresh.shape[1]:
            finished = True
            break
        used = np.ones(inner.shape[1], bool)
        if not listed or count > MAX_COLUMNS_AT_ONCE:
            # by the largest entry, not the weight: columns of rare letters have small weights
            idle = 1e-4 if settles else IDLE_ENTRY_ATOL
            used = found.weights * inner.max(axis=0) > idle
        # unique: the same column twice makes the Newton system singular
        inner = np.unique(np.hstack([kept, inner[:, used], fresh]), axis=1)
    message = "no column that is known of is worth its cost" if finished else LIMIT_MESSAGE
    # the semidefinite program is dear: only where second moments leave a gap
    if not (listed or by_moments) and (proof is None or error - bound > allowed):
        proof = _improve_proof(program, proof, information, options)
    clean = _build_matrix(inner, found.weights, RARE_ENTRY_ATOL)
    # leaving out rare outputs may cost a tenth of the allowed gap
    if _is_mechanism(clean) and program.compute_error(clean) - error <= 0.1 * allowed:
        matrix = clean
    if program.max_outputs is not None and matrix.shape[1] > program.max_outputs:
        matrix = _reduce_outputs(program, matrix, z, program.max_outputs, options.deadline)
        lost = program.compute_error(matrix) - error
        message += f"; the bound on the outputs costs {lost:.2g} of {error:.4g}"
    return GenerationResult(matrix, proof, finished, message, steps)


def _improve_proof(
    program: EstimationDesign,
    proof: ErrorBoundProof | None,
    information: FloatArray,
    options: MethodOptions,
) -> ErrorBoundProof | None:
    """Return the better of a proof and that of the semidefinite relaxation; None without any."""
    objective = program.objective
    columns = program.columns
    both = (solve_relaxation(objective, columns.cones, information, options), proof)
    return max(
        filter(None, both), key=lambda one: objective.compute_bound(columns, one), default=None
    )


def _has_ended(
    program: EstimationDesign, error: float, last: float, gap: float, allowed: float, settles: bool
) -> bool:
    """Return whether the gap is small enough, or the error has stalled where no pricing proves an end."""
    if program.columns.is_complete:
        return gap <= 0.5 * allowed
    least_fall = STALLED_DECREASE * program.scale
    if len(program.prior.pmf) > MAX_RELAXED_LETTERS:
        least_fall = STALLED_DECREASE_MANY_LETTERS * error
    if settles:
        # a gap of a thousandth is enough, and a fall by a hundredth of the gap promises little
        least_fall = max(least_fall, 0.01 * gap)
        allowed = max(allowed, 2e-3 * program.scale)
    return gap <= 0.5 * allowed or last - error < least_fall


def _choose_starting_columns(every: FloatArray, listed: bool, large: bool) -> FloatArray:
    """Choose the columns that are weighed first: all of a few, and else a random part with full rank."""
    n, count = every.shape
    if count <= MAX_COLUMNS_AT_ONCE or (large and not listed):
        return _draw_columns(every, count)
    # ten columns for each letter to start from
    # a step of the interior point takes the number of columns to the third power
    return _add_until_interior(_draw_columns(every, 10 * n if listed else 300), every)


def _find_new_columns(
    program: EstimationDesign,
    inner: FloatArray,
    z: FloatArray,
    pi: FloatArray,
    allowed: float,
    deadline: Deadline,
) -> FloatArray:
    """Price for (N, K) new columns that lower the error most, from the list or by local search."""
    columns = program.columns
    n = program.prior.size
    exact = columns.exact
    within = columns.inner
    least = 0.0
    if not columns.is_complete:
        better = [search.find_local_maxima(z, pi, deadline) for search in columns.searches]
        exact, within = prepend_constant(program.prior.pmf, better)
        # a local search ignores columns that gain less than 1e-5 of the scale
        least = max(allowed, 1e-5 * program.scale)
    # reduced values at Z and pi: the derivative of the error in a new column's weight
    worths = ((z.T @ exact) ** 2).sum(axis=0) - pi @ exact
    # a round adds at most four columns for each letter
    added = np.argsort(-worths, kind="stable")[: (1 if n > MAX_RELAXED_LETTERS else 4) * n]
    fresh = within[:, added[worths[added] > least]]
    return fresh[:, ~(fresh[:, :, None] == inner[:, None, :]).all(axis=0).any(axis=1)]


def _prove_by_moments(program: EstimationDesign) -> ErrorBoundProof | None:
    """Bound the error by second moments; None where the requirement's columns have no such form."""
    cones = program.columns.cones
    if len(cones) != 1 or not cones[0].has_two_ends:
        return None
    # full rank, or the best moments are singular and the search has no slope; of few combinations they may
    # be singular but for rounding all the same, and prove nothing
    for added in (1e-5, 1e-3):
        workload = _list_full_rank(program.centered_workload, added)[-1]
        full = replace(program.objective, workload=workload)
        proof = MomentProblem(cones[0], full).build_proof(program.objective)
        if proof is not None and (
            program.objective.compute_bound(program.columns, proof)
            > program.objective.trivial_bound
        ):
            return proof
    return None


def _reduce_outputs(
    program: EstimationDesign,
    matrix: FloatArray,
    z: FloatArray,
    max_outputs: int,
    deadline: Deadline,
) -> FloatArray:
    """Find the best mechanism with at most `max_outputs` outputs, by merging outputs or dropping columns.

    Raises:
        MethodError: none of these reveals enough.
    """
    p = program.prior.pmf
    gap = 0.1 * program.compute_allowed_gap(0.0)
    few = reduce_by_information(matrix, p)
    # merging loses information; weighing anew may lose less: the best of all counts
    found = [few if few.shape[1] <= max_outputs else merge_outputs(few, p, z, max_outputs)]
    known = few / (p @ few)
    singled = program.columns.inner[:, np.unique(program.columns.inner.argmax(axis=1))]
    for pool in (known, np.unique(np.hstack([known, singled]), axis=1), singled):
        some = thin_columns(
            pool,
            lambda columns: _weigh_columns(program, columns, gap, deadline).weights,
            max_outputs,
        )
        if some is not None:
            found.append(_build_matrix(*some))
    found = [one for one in found if _is_mechanism(one)]
    errors = [program.compute_error(one) for one in found] or [np.inf]
    if not min(errors) < np.inf:
        raise MethodError(
            f"with {max_outputs} outputs the workload cannot be estimated: allow more"
        )
    return found[int(np.argmin(errors))]


def _is_mechanism(matrix: FloatArray) -> bool:
    """Return whether the rows sum to one within the tolerance of `Mechanism`."""
    # rows may be off one by 5e-10 after they are corrected
    return bool(np.abs(matrix.sum(axis=1) - 1).max() <= 5e-10)


def _draw_columns(columns: FloatArray, size: int) -> FloatArray:
    """Draw a random starting subset of columns whose rank equals that of all."""
    n, count = columns.shape
    # doubled until the columns have full rank, as J has to be regular
    while size < count:
        part = 1 + np.sort(np.random.default_rng(0).choice(count - 1, size - 1, replace=False))
        some = columns[:, np.append(0, part)]
        if np.linalg.matrix_rank(some) == n:
            return some
        size *= 2
    return columns


def _weigh_columns(
    program: EstimationDesign, columns: FloatArray, gap: float, deadline: Deadline
) -> OptimalWeights:
    """Optimize the weights of given columns, from equal weights or from an interior point found by an LP.

    Where the workload leaves frequencies out, and that keeps the weights from converging, a little is added
    to it.

    Raises:
        MethodError: they end outside, too.
    """
    # equal weights are not feasible, but positive: the method starts outside of the rows
    equal = np.full(columns.shape[1], 1 / columns.shape[1])
    found = None
    for wanted in _list_full_rank(program.centered_workload):
        for start in (lambda: equal, lambda: _find_interior_weights(columns)[0]):
            tried = optimize_weights(columns, wanted, program.criterion, start(), gap, deadline)
            # rows may be off one by 1e-7 before they are corrected
            if np.abs(columns @ tried.weights - 1).max() <= 1e-7:
                found = tried
                break
        if found is not None and (found.has_converged or deadline.expired):
            break
    if found is None:
        raise MethodError("the weights do not make a mechanism: the columns are too unlike in size")
    return found


def _list_full_rank(workload: FloatArray, added: float = 1e-5) -> list[FloatArray]:
    """List the workload, and where it is rank deficient also a slightly regularised one.

    The information that is best for few combinations may be singular, where the error has no slope.

    Args:
        workload: (L, N).
        added: of every frequency, as a share of the mean entry.
    """
    n = workload.shape[1]
    # the sum of frequencies is known
    if np.linalg.matrix_rank(np.vstack([workload, np.ones(n)])) == n:
        return [workload]
    # the error changes by about as much as is added
    little = added * np.linalg.norm(workload) / math.sqrt(n)
    return [workload, np.vstack([workload, little * np.eye(n)])]


def _add_until_interior(inner: FloatArray, every: FloatArray) -> FloatArray:
    """Add listed columns until positive weights of all of them make the constant.

    Of columns drawn at random some can only have the weight 0, such as those of letters that no other column
    makes up for; then no interior-point method has a start, and the information may stay singular.
    """
    while True:
        # the weights that make the constant and are nearest to equal ones are often inside, without a program
        equal = np.full(inner.shape[1], 1 / inner.shape[1])
        near = equal + np.linalg.lstsq(inner, 1 - inner @ equal, rcond=None)[0]
        if near.min() * inner.shape[1] >= MIN_INTERIOR_SHARE:
            return inner
        weights, prices = _find_interior_weights(inner)
        if weights.min() * inner.shape[1] >= MIN_INTERIOR_SHARE:
            return inner
        worths = prices @ every
        added = np.argsort(-worths, kind="stable")[: 4 * len(every)]
        fresh = every[:, added[worths[added] > 1e-9 * np.abs(worths).max()]]
        larger = np.unique(np.hstack([inner, fresh]), axis=1)
        if larger.shape[1] == inner.shape[1]:
            return inner
        inner = larger


def _find_interior_weights(columns: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Find strictly positive (K,) weights whose weighted columns sum to one, by a linear program.

    With it come the (N,) prices of the rows: a column whose price is positive allows a larger least weight.
    """
    n, count = columns.shape
    solved = optimize.linprog(
        np.append(np.zeros(count), -1.0),  # q = r + s, r >= 0, and s is maximised
        A_eq=np.column_stack([columns, columns.sum(axis=1)]),
        b_eq=np.ones(n),
        method="highs",
    )
    if solved.x is None:
        raise MethodError(f"no weights of the columns make the constant: {solved.message}")
    # strictly positive, as the barrier needs
    weights = np.asarray(np.maximum(solved.x[:-1] + solved.x[-1], 1e-12))
    return weights, np.asarray(solved.eqlin.marginals)


def _build_matrix(
    columns: FloatArray, weights: FloatArray, idle: float = IDLE_ENTRY_ATOL
) -> FloatArray:
    """Build the mechanism of weighted columns, without unused ones, with rows summing to one."""
    used = weights * columns.max(axis=0) > idle  # of rare letters all weights are small
    scaled = columns[:, used] * weights[used]
    # in shares of the weights, so that those of rare letters stay positive
    fitted = scale_to_rows(scaled)
    return scaled if fitted is None else fitted
