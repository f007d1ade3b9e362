"""A design in bands in HiGHS without cvxpy: the same sparse program, built by index arithmetic."""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import highspy
import numpy as np
from numpy.typing import NDArray

from pmlopt.core.arrays import FloatArray
from pmlopt.solvers import highs
from pmlopt.solvers.outcome import Options, Outcome, Point
from pmlopt.solvers.structured.block_program import Task, have


def run(
    task: Task,
    options: Options,
    matrix: FloatArray | None = None,
    basis: Mapping[str, NDArray[Any]] | None = None,
) -> Outcome:
    """Solve by the dual simplex, from a basis or from a mechanism where there is one.

    Args:
        task: the program.
        options: what was asked.
        matrix: (N, M) a mechanism to start from.
        basis: "columns" and "rows", the statuses that a neighbour's solve ended with.
    """
    begin = time.perf_counter()
    # matrices of up to 900 entries are solved sooner without presolve
    small = task.costs.size <= 900
    usual = {**highs.METHODS["highs"], **({"presolve": "off"} if small else {})}
    solver = highs.loaded(model_of(task), {**usual, **highs.limits(options)})
    ready = time.perf_counter()
    warm = _start(solver, task, matrix, basis)
    outcome = highs.outcome_of(solver, warm, ready - begin, ready)
    found = _found(solver, task) if outcome.state == "point" else None
    return replace(outcome, found=found, restart=_basis(solver))


def model_of(task: Task) -> highspy.HighsLp:
    """Build the HiGHS model, with columns for P less its lower end, row by row, then the scalars.

    Rows: sums, means, upper ends.

    The lower end is no row: it is in the sums and in the means.
    """
    n, m = task.costs.shape
    block, cells = task.block, task.costs.size
    letter, output = np.divmod(np.arange(cells), m)
    ends = n if block.weights is None else n + m
    entry_rows, entry_values = [letter, ends + np.arange(cells)], [np.ones(cells), np.ones(cells)]
    if block.weights is not None:
        entry_rows.insert(1, n + output)
        entry_values.insert(1, block.weights[0, letter])
    rows, values = [np.stack(entry_rows, axis=1).ravel()], [np.stack(entry_values, axis=1).ravel()]
    lengths = [np.full(cells, len(entry_rows))]
    for index, (low, high) in enumerate(zip(block.lower, block.upper, strict=True)):
        parts = [(np.arange(n), low)] if low else []
        if block.weights is not None and block.mean is not None:
            parts.append((np.array([n]), low * block.weights.sum() - block.mean[0, index]))
        if high > low:
            parts.append((ends + m * np.arange(n), low - high))
        # of the first output; for the others the sums stay, and the rest moves on
        first = np.concatenate([place for place, _ in parts])
        shifts = np.where(first < n, 0, np.arange(m)[:, None])
        rows.append((first + shifts).ravel())
        values.append(np.tile(np.concatenate([np.full(len(place), value) for place, value in parts]), m))
        lengths.append(np.full(m, len(first)))

    low_cost = block.lower[:, None] * task.costs.sum(axis=0)
    return highs.columnwise(
        np.concatenate([task.costs.ravel(), low_cost.ravel()]),
        (0.0, np.inf),
        (
            np.concatenate([np.ones(n), np.zeros(ends - n), np.full(cells, -np.inf)]),
            np.concatenate([np.ones(n), np.zeros(ends - n + cells)]),
        ),
        (
            np.concatenate([[0], np.cumsum(np.concatenate(lengths))]),
            np.concatenate(rows),
            np.concatenate(values),
        ),
    )


def _start(
    solver: highspy.Highs, task: Task, matrix: FloatArray | None, basis: Mapping[str, NDArray[Any]] | None
) -> bool:
    """Pass a basis or a mechanism of this shape to the solver, and return whether it was taken."""
    given = None if basis is None else _basis_of(solver, basis)
    if given is not None:
        return bool(solver.setBasis(given) == highspy.HighsStatus.kOk)
    if matrix is None:
        return False
    start = highspy.HighsSolution()
    scalars = _scalars(task, matrix)
    above = matrix - task.block.lower @ scalars
    start.col_value = np.concatenate([above.ravel(), scalars.ravel()]).tolist()
    start.value_valid = True
    solver.setSolution(start)
    return True


def _basis_of(solver: highspy.Highs, arrays: Mapping[str, NDArray[Any]]) -> highspy.HighsBasis | None:
    """Return a basis of this shape from the arrays of `_save_basis`, which may come from a file."""
    shapes = {"columns": (solver.getNumCol(),), "rows": (solver.getNumRow(),)}
    if not have(arrays, shapes) or any(
        arrays[name].dtype != np.int8 or not np.isin(arrays[name], _STATUSES).all() for name in shapes
    ):
        return None
    basis = highspy.HighsBasis()
    basis.col_status = [highspy.HighsBasisStatus(code) for code in arrays["columns"].tolist()]
    basis.row_status = [highspy.HighsBasisStatus(code) for code in arrays["rows"].tolist()]
    basis.valid = True
    return basis


_STATUSES = [int(status) for status in highspy.HighsBasisStatus.__members__.values()]


def _scalars(task: Task, matrix: FloatArray) -> FloatArray:
    """Compute the (k, M) scalars of each column of a mechanism."""
    least, largest = matrix.min(axis=0), matrix.max(axis=0)
    block = task.block
    if block.floored:
        return np.array([largest - least, least])
    if block.weights is None or block.mean is None:
        return np.array([largest / block.upper[0]])
    return np.array(block.weights @ matrix / block.mean[0])


def _found(solver: highspy.Highs, task: Task) -> Point:
    n, m = task.costs.shape
    solution = solver.getSolution()
    above = np.array(solution.col_value[: n * m]).reshape(n, m)
    matrix = above + task.block.lower @ np.array(solution.col_value[n * m :]).reshape(-1, m)
    return Point(matrix, task.multipliers(np.array(solution.row_dual[:n])))


def _basis(solver: highspy.Highs) -> Mapping[str, NDArray[Any]]:
    basis = solver.getBasis()
    if not basis.valid:
        return {}
    return {
        "columns": np.array([int(status) for status in basis.col_status], dtype=np.int8),
        "rows": np.array([int(status) for status in basis.row_status], dtype=np.int8),
    }
