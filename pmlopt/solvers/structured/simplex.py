"""Banded column-block programs as HiGHS models, built by index arithmetic."""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import highspy
import numpy as np
from numpy.typing import NDArray

from pmlopt.core.arrays import FloatArray, IntArray
from pmlopt.solvers import highs
from pmlopt.solvers.solver_result import MethodOptions, PrimalDualPoint, SolverResult
from pmlopt.solvers.structured.block_program import BlockLP, have_shapes


def solve_by_simplex(
    task: BlockLP,
    options: MethodOptions,
    matrix: FloatArray | None = None,
    basis: Mapping[str, NDArray[Any]] | None = None,
) -> SolverResult:
    """Solve with the dual simplex, warm-started from a basis or mechanism.

    Args:
        task: the program.
        options: what was required.
        matrix: (N, M) a mechanism to start from.
        basis: "columns" and "rows", the statuses that a neighbour's solve ended with.
    """
    begin = time.perf_counter()
    # matrices of up to 900 entries are solved sooner without presolve
    small = task.costs.size <= 900
    usual = {**highs.METHOD_OPTIONS["highs"], **({"presolve": "off"} if small else {})}
    solver = highs.load_model(build_block_model(task), {**usual, **highs.build_options(options)})
    ready = time.perf_counter()
    warm = _pass_start(solver, task, matrix, basis)
    outcome = highs.run_loaded(solver, warm, ready - begin, ready)
    found = _read_point(solver, task) if outcome.state == "point" else None
    return replace(outcome, point=found, warm_start_arrays=_save_basis(solver))


def build_block_model(task: BlockLP) -> highspy.HighsLp:
    """Build the HiGHS model in entries minus lower bounds, and scalars.

    Rows: sums, means, upper ends.

    The lower end is no row: it is in the sums and in the means.
    """
    n, m = task.costs.shape
    block, cells = task.block, task.costs.size
    # row-major cells: the quotient by M is the letter, the rest the output
    letter, output = np.divmod(np.arange(cells), m)
    ends = n if block.weights is None else n + m
    entry_rows, entry_values = [letter, ends + np.arange(cells)], [np.ones(cells), np.ones(cells)]
    if block.weights is not None:
        entry_rows.insert(1, n + output)
        entry_values.insert(1, block.weights[0, letter])
    rows, values = [np.stack(entry_rows, axis=1).ravel()], [np.stack(entry_values, axis=1).ravel()]
    lengths = [np.full(cells, len(entry_rows))]
    for index, (low, high) in enumerate(zip(block.lower, block.upper, strict=True)):
        places: list[IntArray] = []
        coefficients: list[float] = []
        if low:
            places.append(np.arange(n))
            coefficients.append(low)
        if block.weights is not None and block.mean is not None:
            places.append(np.array([n]))
            coefficients.append(low * block.weights.sum() - block.mean[0, index])
        if high > low:
            places.append(ends + m * np.arange(n))
            coefficients.append(low - high)
        # of the first output; for the others the sums stay, and the rest moves on
        first = np.concatenate(places)
        # (M, L): rows of sums are common to all outputs, the others are one further for each
        shifts = np.where(first < n, 0, np.arange(m)[:, None])
        rows.append((first + shifts).ravel())
        values.append(np.tile(np.repeat(coefficients, list(map(len, places))), m))
        lengths.append(np.full(m, len(first)))

    # entries are stored less their lower end, whose cost goes to the scalars
    low_cost = block.lower[:, None] * task.costs.sum(axis=0)
    least = np.concatenate([np.ones(n), np.zeros(ends - n), np.full(cells, -np.inf)])
    return highs.build_columnwise_model(
        np.concatenate([task.costs.ravel(), low_cost.ravel()]),
        (0.0, np.inf),
        (least, np.maximum(least, 0.0)),
        (
            np.concatenate([[0], np.cumsum(np.concatenate(lengths))]),
            np.concatenate(rows),
            np.concatenate(values),
        ),
    )


def _pass_start(
    solver: highspy.Highs,
    task: BlockLP,
    matrix: FloatArray | None,
    basis: Mapping[str, NDArray[Any]] | None,
) -> bool:
    """Pass a starting basis or mechanism to HiGHS; return whether it was used."""
    given = None if basis is None else _parse_basis(solver, basis)
    if given is not None:
        return bool(solver.setBasis(given) == highspy.HighsStatus.kOk)
    if matrix is None:
        return False
    start = highspy.HighsSolution()
    scalars = _compute_scalars(task, matrix)
    above = matrix - task.block.lower @ scalars
    start.col_value = np.concatenate([above.ravel(), scalars.ravel()]).tolist()
    start.value_valid = True
    solver.setSolution(start)
    return True


def _parse_basis(
    solver: highspy.Highs, arrays: Mapping[str, NDArray[Any]]
) -> highspy.HighsBasis | None:
    """Parse a saved basis of matching shape; None for others."""
    shapes = {"columns": (solver.getNumCol(),), "rows": (solver.getNumRow(),)}
    if not have_shapes(arrays, shapes) or any(
        arrays[name].dtype != np.int8 or not np.isin(arrays[name], _BASIS_CODES).all()
        for name in shapes
    ):
        return None
    basis = highspy.HighsBasis()
    basis.col_status = [highspy.HighsBasisStatus(code) for code in arrays["columns"].tolist()]
    basis.row_status = [highspy.HighsBasisStatus(code) for code in arrays["rows"].tolist()]
    basis.valid = True
    return basis


_BASIS_CODES = [int(status) for status in highspy.HighsBasisStatus.__members__.values()]


def _compute_scalars(task: BlockLP, matrix: FloatArray) -> FloatArray:
    """Compute the (k, M) block scalars at which the column rows of a mechanism are met."""
    block = task.block
    if block.weights is None or block.mean is None:
        return np.array([matrix.max(axis=0) / block.upper[0]])
    means = block.weights @ matrix
    if not block.has_floor:
        return np.asarray(means / block.mean[0])
    least = matrix.min(axis=0)
    return np.vstack([(means - block.mean[0, 1] * least) / block.mean[0, 0], least])


def _read_point(solver: highspy.Highs, task: BlockLP) -> PrimalDualPoint:
    """Read matrix and multipliers from the HiGHS solution."""
    n, m = task.costs.shape
    solution = solver.getSolution()
    above = np.array(solution.col_value[: n * m]).reshape(n, m)
    matrix = above + task.block.lower @ np.array(solution.col_value[n * m :]).reshape(-1, m)
    return PrimalDualPoint(matrix, task.to_certificate_multipliers(np.array(solution.row_dual[:n])))


def _save_basis(solver: highspy.Highs) -> Mapping[str, NDArray[Any]]:
    """Save the HiGHS basis as arrays; empty if invalid."""
    basis = solver.getBasis()
    if not basis.valid:
        return {}
    return {
        "columns": np.array(list(map(int, basis.col_status)), dtype=np.int8),
        "rows": np.array(list(map(int, basis.row_status)), dtype=np.int8),
    }
