"""Constraint generation for many bounds on letter pairs, such as metric privacy: violated bounds are added.

Where the way over a third letter is hardly longer, the bound on a pair nearly follows from those on the way.
So a program with the other pairs only is small, and its answer breaks few of the bounds that it leaves out.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from pmlopt.core.lazy_imports import sparse
from pmlopt.core.numbers.arrays import BoolArray, FloatArray
from pmlopt.model.privacy.ratios import RatioBounds
from pmlopt.model.privacy.requirement import Witness
from pmlopt.model.utility.linear import build_best_constant
from pmlopt.programs.linear.program import LinearDesign
from pmlopt.programs.program import MethodError
from pmlopt.solvers import highs
from pmlopt.solvers.solver_result import (
    TIME_LIMIT,
    Deadline,
    MethodOptions,
    PrimalDualPoint,
    SolverResult,
    tighten_factor,
)

MAX_DETOUR_FRACTION = 0.05
"""A pair is left out at first where a way over a third letter is longer by no more than this share."""

COARSE_TOLERANCE, FINE_TOLERANCE = 1e-6, 1e-12
"""Tolerances of the interior point while many bounds are broken, and from then on when few are."""

NEAR_VIOLATION_RTOL, MIN_GENERATED_ENTRY = 1e-3, 1e-4
"""Bounds come in, too, that an entry larger by this share would break, where it is at least so large."""


SETUP_SECONDS, SETUP_POWER = 5e-9, 1.6
"""What Clarabel takes at most to set up K bounds on pairs in columns: K to this power, in seconds."""


STEP_SHARE = 0.3
"""The share of that which a step of the interior point takes."""


def reserve_pair_seconds(program: LinearDesign, name: str, options: MethodOptions) -> MethodOptions:
    """Return options that reserve time for the final step of a solver under many pair bounds.

    Raises:
        MethodError: the time would be over before the solver had the program and had set it up, or it would
            take tens of gigabytes.
    """
    if (ratios := program.bounds_on_pairs) is None:
        return options
    bounds = len(ratios.exponents) * program.table.shape[1]
    # a kilobyte for each, in the factors of an interior point
    if bounds > 20_000_000:
        raise MethodError(f"{bounds:,} bounds on pairs at once take more memory than there is")
    if not options.deadline.is_limited:
        return options
    # HiGHS looks at the clock while it sets a program up; Clarabel and SCS do only from step to step
    setup = 0.0 if name in highs.METHOD_OPTIONS else _estimate_setup_seconds(bounds)
    # compiling and loading take at least 4e-6 s for each bound of a column
    if options.deadline.expired_for(-4e-6 * bounds - setup):
        raise MethodError(f"{TIME_LIMIT}: compiling takes longer than there is")
    return replace(options, deadline=options.deadline.earlier(STEP_SHARE * setup))


def _build_constant_point(program: LinearDesign, ratios: RatioBounds) -> PrimalDualPoint:
    """Build the best constant mechanism as a starting point, with the trivial bound."""
    weights = np.zeros((len(ratios.exponents), program.table.shape[1]))
    best = build_best_constant(program.prior.probabilities, program.centered_gains)
    return PrimalDualPoint(
        best, program.centered_gains.max(axis=1), dual_certificate={"weights": weights}
    )


def read_weights(program: LinearDesign, ratios: RatioBounds) -> Witness | None:
    """Read the dual weights of the pair bounds from the constraints of the cvxpy problem."""
    # bounds of several requirements at once have names of their own
    pairs = program.constraints.get("pairs")
    duals = None if pairs is None else pairs.dual_value
    if duals is None or not np.isfinite(duals).all():
        return None
    return {"weights": np.maximum(duals, 0.0) * np.exp(-ratios.exponents)[:, None]}


def solve_by_simplex(
    program: LinearDesign, ratios: RatioBounds, options: MethodOptions
) -> SolverResult:
    """Solve a small program under ratio bounds with HiGHS, from sparse rows built directly.

    Its variables are the matrix and the products of its columns with the rows that several bounds share.
    """
    begin = time.perf_counter()
    n, m = program.table.shape
    gains = program.prior.pmf[:, None] * program.centered_gains
    scale = float(np.abs(gains).max()) or 1.0
    pairs, products = ratios.linear_system(tighten_factor), np.zeros((0, n))
    if len(ratios.rows):
        products = ratios.compute_products(np.eye(n))
        # a product that one bound uses is substituted; shared ones become variables
        several = (
            np.bincount(np.append(ratios.above, ratios.below), minlength=n + len(products))[n:] > 1
        )
        pairs = pairs.tocsc()
        alone = pairs[:, n:][:, ~several] @ products[~several]
        pairs = sparse.hstack([pairs[:, :n] + sparse.csc_array(alone), pairs[:, n:][:, several]])
        products = products[several]
    shared, count = len(products), len(ratios.exponents)
    defined = sparse.coo_array(np.hstack([products, -np.eye(shared)]))
    rows = _list_rows_by_output(n, m, [defined, pairs.tocoo()])
    fixed = np.concatenate([np.ones(n), np.zeros(shared * m)])
    ends = np.append(fixed, np.full(count * m, -np.inf)), np.append(fixed, np.zeros(count * m))
    costs = np.concatenate([-gains.ravel() / scale, np.zeros(shared * m)])
    settings: dict[str, Any] = {**highs.METHOD_OPTIONS["highs"], "presolve": "off"}
    # a basis has the size of the rows: where there are many, that of the dual program is smaller
    transposed = rows.shape[0] > 2 * rows.shape[1]
    if transposed:
        highest = np.append(np.full(len(fixed), np.inf), np.zeros(count * m))
        limits = np.full(len(costs), -np.inf), costs
        model = highs.build_sparse_model(-ends[1], (-np.inf, highest), limits, rows.T)
        # rows of one size: scaled by HiGHS they take ten times as many steps of its primal simplex
        settings |= {"simplex_strategy": 4, "simplex_scale_strategy": 0}
    else:
        model = highs.build_sparse_model(costs, (0.0, np.inf), ends, rows)
    solver = highs.load_model(model, {**settings, **highs.build_options(options)})
    ready = time.perf_counter()
    outcome = highs.run_loaded(solver, False, ready - begin, ready)
    if outcome.state != "point":
        return outcome
    if transposed:
        # without scaling the updates of a basis lose digits, and its factors are computed again
        basis = solver.getBasis()
        solver.clearSolver()
        solver.setBasis(basis)
        solver.run()
    solution = solver.getSolution()
    highs.keep_solver(solver)
    entries, duals = np.array(solution.col_value), np.array(solution.row_dual)
    if transposed:
        entries, duals = -duals, entries
    # the rows before are sums and products, whose multipliers the dual bound does not need
    duals = duals[n + shared * m :].reshape(count, m)
    weights = scale * np.maximum(-duals, 0.0) * np.exp(-ratios.exponents)[:, None]
    found = entries[: n * m].reshape(n, m)
    multipliers = ratios.find_row_prices(program.prior.pmf, program.centered_gains, weights)
    return replace(
        outcome, point=PrimalDualPoint(found, multipliers, dual_certificate={"weights": weights})
    )


def _list_rows_by_output(n: int, m: int, systems: Sequence[sparse.coo_array]) -> sparse.coo_array:
    """List the sums of the N letters, and then the rows of each system for every output.

    Args:
        n: letters.
        m: outputs; variables are in the order of theirs.
        systems: (K, N + R) each, on the entries of a column and R other numbers of it.
    """
    outputs, cells, end = np.arange(m), np.arange(n * m), n
    parts = [(cells // m, cells, np.ones(n * m))]
    for one in systems:
        rows, columns = ((places[:, None] * m + outputs).ravel() for places in (one.row, one.col))
        parts.append((end + rows, columns, np.repeat(one.data, m)))
        end += one.shape[0] * m
    found_rows, found_columns, values = (np.concatenate(own) for own in zip(*parts, strict=True))
    width = max(n, *(one.shape[1] for one in systems)) * m
    return sparse.coo_array((values, (found_rows, found_columns)), (end, width))


def generate_constraints(
    program: LinearDesign, ratios: RatioBounds, options: MethodOptions
) -> SolverResult:
    """Solve `max <c, P>` with Clarabel, adding pair bounds `P[x'] >= e^-eps P[x]` when violated.

    The multipliers of every round bound the whole program, since it requires less.
    """
    begin = time.perf_counter()
    n, m = program.table.shape
    gains = program.prior.pmf[:, None] * program.centered_gains
    scale = float(np.abs(gains).max()) or 1.0
    # tightened a little, so that rounding of the answer stays inside the bounds
    keep = tighten_factor(np.exp(-ratios.exponents))
    # (K, M): which bound is in the program for which column
    chosen = np.repeat(find_essential_pairs(ratios, n)[:, None], m, axis=1)
    point, tolerance, iterations, ending, rounds = (
        _build_constant_point(program, ratios),
        COARSE_TOLERANCE,
        0,
        "",
        0,
    )
    while not ending:
        setup = _estimate_setup_seconds(int(chosen.sum()))
        # Steps for which there must be time: an earlier iterate is no better than a mechanism by formula.
        if options.deadline.expired_for(-setup * (1 + STEP_SHARE * 12)):
            if not rounds:
                raise MethodError(f"{TIME_LIMIT}: a first program takes longer than there is")
            ending = "stopped by the time limit"
            break
        steps_end = options.deadline.earlier(STEP_SHARE * setup)  # which it looks at before a step
        found, finished, steps = _run_clarabel(
            gains / scale, ratios, keep, chosen, tolerance, steps_end
        )
        rounds, iterations = rounds + 1, iterations + steps
        if found.multipliers is not None and found.dual_certificate is not None:
            weights = scale * found.dual_certificate["weights"]
            rho = scale * found.multipliers / program.prior.pmf
            if not finished:  # of any weights these multipliers prove the most
                rho = ratios.find_row_prices(program.prior.pmf, program.centered_gains, weights)
            point = PrimalDualPoint(found.matrix, rho, dual_certificate={"weights": weights})
        # (K, M): all bounds of all columns at once
        lower = found.matrix[ratios.below]
        over = keep[:, None] * found.matrix[ratios.above] - lower
        # bounds already in the program are kept up to the solver's tolerance
        broken = ~chosen & (over > tolerance)
        if steps_end.expired:
            ending = "stopped by the time limit"
        # five to ten rounds are usual
        elif not finished or rounds == 40:
            ending = "Clarabel did not end" if not finished else "bounds are still broken"
        elif tolerance == FINE_TOLERANCE and not broken.any():
            ending = "no bound is broken"
        chosen |= broken | (lower > MIN_GENERATED_ENTRY) & (over > -NEAR_VIOLATION_RTOL * lower)
        # digits are wasted while the program still lacks many bounds
        tolerance = FINE_TOLERANCE if broken.sum() <= n else tolerance
    seconds = time.perf_counter() - begin
    words = f"{ending} after {rounds} rounds, with {int(chosen.sum())} of {chosen.size} bounds"
    finished = ending == "no bound is broken"
    return SolverResult("point", finished, words, iterations, False, 0.0, seconds, point)


def _estimate_setup_seconds(bounds: int) -> float:
    """Estimate an upper limit on Clarabel's setup time for a number of pair bounds."""
    return float(SETUP_SECONDS * bounds**SETUP_POWER)


def find_essential_pairs(ratios: RatioBounds, size: int) -> BoolArray:
    """Find (K,) the pair bounds that no two-step path through a third letter nearly implies."""
    length = np.full((size, size), np.inf)
    length[ratios.above, ratios.below] = ratios.exponents
    ways = np.full((size, size), np.inf)
    for letter in range(size):
        # one step of Floyd and Warshall for each letter between: paths of two edges
        np.minimum(ways, length[:, letter, None] + length[None, letter], out=ways)
    return np.asarray((ways > (1 + MAX_DETOUR_FRACTION) * length)[ratios.above, ratios.below])


def _run_clarabel(
    gains: FloatArray,
    ratios: RatioBounds,
    kept_mask: FloatArray,
    chosen: BoolArray,
    tolerance: float,
    deadline: Deadline,
) -> tuple[PrimalDualPoint, bool, int]:
    """Run Clarabel on the chosen constraints, with sparse rows passed directly.

    Returns:
        The matrix, with the multipliers of the rows and the weights of the pairs; whether the solver states
        that it came to its end; and its steps.
    """
    import clarabel

    (n, m), (pair, output) = gains.shape, np.nonzero(chosen)
    size = len(pair)
    # columns of the sparse rows: letter times M plus output, for both ends of a bound
    places = np.concatenate([ratios.above[pair], ratios.below[pair]]) * m + np.tile(output, 2)
    entries = np.concatenate([kept_mask[pair], -np.ones(size)])
    bounds = sparse.csc_array((entries, (np.tile(np.arange(size), 2), places)), shape=(size, n * m))
    rows = sparse.kron(sparse.eye_array(n), np.ones((1, m)))
    matrix = sparse.vstack([rows, bounds, -sparse.eye_array(n * m)], format="csc")
    right = np.concatenate([np.ones(n), np.zeros(size + n * m)])
    settings = clarabel.DefaultSettings()
    settings.verbose, settings.iterative_refinement_enable = False, False
    settings.tol_gap_abs = settings.tol_gap_rel = settings.tol_feas = tolerance
    if deadline.is_limited:
        settings.time_limit = deadline.remaining(least=1e-6)
    cones = [clarabel.ZeroConeT(n), clarabel.NonnegativeConeT(size + n * m)]
    nothing = sparse.csc_array((n * m, n * m))
    answer = clarabel.DefaultSolver(nothing, -gains.ravel(), matrix, right, cones, settings).solve()
    duals, weights = np.array(answer.z), np.zeros(chosen.shape)
    weights[pair, output] = np.maximum(duals[n : n + size], 0.0) * kept_mask[pair]
    # an interior point may end slightly below 0
    found = np.maximum(np.array(answer.x).reshape(n, m), 0.0)
    finished = str(answer.status) in ("Solved", "AlmostSolved") and bool(np.isfinite(found).all())
    return (
        PrimalDualPoint(found, duals[:n], dual_certificate={"weights": weights}),
        finished,
        int(answer.iterations),
    )
