"""Designs with a row for each ratio bound: the simplex on small ones, and the time that large ones take."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from pmlopt.core.lazy_imports import sparse
from pmlopt.model.privacy.ratios import RatioBounds
from pmlopt.model.privacy.requirement import Witness
from pmlopt.programs.linear.program import LinearDesign
from pmlopt.programs.program import MethodError
from pmlopt.solvers import highs
from pmlopt.solvers.solver_result import (
    TIME_LIMIT,
    MethodOptions,
    PrimalDualPoint,
    SolverResult,
    tighten_factor,
)


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
    # a step of the interior point takes at most this share of that
    return replace(options, deadline=options.deadline.earlier(0.3 * setup))


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


def _estimate_setup_seconds(bounds: int) -> float:
    """Estimate an upper limit on Clarabel's setup time for a number of pair bounds, from measurements."""
    return float(5e-9 * bounds**1.6)
