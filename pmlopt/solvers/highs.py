"""HiGHS, called through highspy directly: cvxpy's interface to it drops `Variable.value`.

Two methods: the dual simplex, which ends at a vertex and can start from a known mechanism, and
the interior point method without crossover for LPs on which the simplex takes too long.
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import highspy
import numpy as np
from numpy.typing import NDArray

from pmlopt.core.arrays import FloatArray
from pmlopt.core.lazy_imports import cp, sparse
from pmlopt.errors import SolverOptionError
from pmlopt.solvers.solver_result import (
    TIME_LIMIT,
    CompiledProblem,
    MethodOptions,
    PrimalDualPoint,
    SolverResult,
    compile_problem,
)
from pmlopt.solvers.structured.block_program import BlockLP, have_shapes


class _SilentHighs(highspy.Highs):  # type: ignore[misc]  # highspy has no types
    """A HiGHS instance without terminal output.

    HiGHS 1.16 writes that notice once a process and within its constructor, before an option can be set:
    standard output is for results. Here the option comes first.
    """

    def enableCallbacks(self) -> None:  # noqa: N802  as highspy calls it, first of all
        """Enable callbacks, and restart them if they were enabled before."""
        self.setOptionValue("log_to_console", False)
        super().enableCallbacks()


_SilentHighs()  # the notice of this process, written nowhere: cvxpy's own calls of HiGHS are silent then, too

METHOD_OPTIONS = {
    "highs": {"solver": "simplex"},
    "highs-ipm": {"solver": "ipx", "run_crossover": "off"},
}

RESTART_OPTIONS: Mapping[str, float | str] = {
    "solver": "simplex",
    "presolve": "off",
    "simplex_iteration_limit": 100_000,
    "primal_feasibility_tolerance": 1e-10,
    "dual_feasibility_tolerance": 1e-10,
}
"""Options for linear programs that differ only in their costs: each starts from the basis of the last."""


def solve_problem(problem: cp.Problem, method: str, options: MethodOptions) -> SolverResult:
    """Solve a cvxpy linear program with HiGHS."""
    ready = compile_problem(problem, cp.HIGHS)
    if options.deadline.expired:
        return SolverResult("failed", False, TIME_LIMIT, None, False, ready.seconds, 0.0)
    compiled_at = time.perf_counter()
    solver = load_model(
        build_compiled_model(ready.data), {**METHOD_OPTIONS[method], **build_options(options)}
    )
    outcome = run_loaded(solver, False, ready.seconds, compiled_at)
    if outcome.state == "point":
        unpack_solution(ready, solver)
    return outcome


def run_loaded(
    solver: highspy.Highs, warm: bool, compile_seconds: float, begin: float
) -> SolverResult:
    """Run HiGHS on a loaded model, and return its result."""
    solver.run()
    status, info, solution = solver.getModelStatus(), solver.getInfo(), solver.getSolution()
    # without both parts there is nothing to certify, whatever the status
    solved = solution.value_valid and solution.dual_valid
    return SolverResult(
        state="infeasible" if status in _INFEASIBLE_STATUSES else "point" if solved else "failed",
        finished=status == highspy.HighsModelStatus.kOptimal,
        message=solver.modelStatusToString(status),
        iterations=max(info.simplex_iteration_count, 0) + max(info.ipm_iteration_count, 0),
        warm_started=warm,
        compile_seconds=compile_seconds,
        solve_seconds=time.perf_counter() - begin,
    )


def unpack_solution(ready: CompiledProblem, solver: highspy.Highs) -> None:
    """Store HiGHS's solution in the cvxpy variables and constraints."""
    raw = {
        "solution": solver.getSolution(),
        "info": SimpleNamespace(
            **dict.fromkeys(_ITERATION_COUNT_FIELDS, 0), objective_function_value=0.0
        ),
        "model_status": "kOptimal",
        "run_time": 0.0,
    }
    ready.unpack_solution(ready.chain.invert(raw, ready.inverse))


# the utility is bounded on the mechanisms, so "unbounded or infeasible" is infeasible
_INFEASIBLE_STATUSES = (
    highspy.HighsModelStatus.kInfeasible,
    highspy.HighsModelStatus.kUnboundedOrInfeasible,
)
_ITERATION_COUNT_FIELDS = (
    "ipm_iteration_count",
    "crossover_iteration_count",
    "pdlp_iteration_count",
    "qp_iteration_count",
    "simplex_iteration_count",
)


def build_options(options: MethodOptions) -> dict[str, Any]:
    """Build HiGHS options: tolerances, time limit, and the user's."""
    # HiGHS accepts no tolerance below 1e-10
    tolerance = max(1e-10, min(1e-9, options.tolerance))
    limits: dict[str, Any] = {
        "primal_feasibility_tolerance": tolerance,
        "dual_feasibility_tolerance": tolerance,
    }
    left = options.deadline.remaining()
    if left is not None:
        limits["time_limit"] = left
    if options.verbose:
        limits |= {"output_flag": True, "log_to_console": True}
    return limits | dict(options.solver_options)


def build_compiled_model(data: dict[str, Any]) -> highspy.HighsLp:
    """Convert a compiled problem to HiGHS's own model."""
    right, equalities = data["b"], data["dims"].zero
    lower, upper = data["lower_bounds"], data["upper_bounds"]
    bounds = -np.inf if lower is None else lower, np.inf if upper is None else upper
    # cvxpy puts equations first; all others are upper limits only
    rows = np.where(np.arange(len(right)) < equalities, right, -np.inf), right
    return build_sparse_model(data["c"], bounds, rows, data["A"])


def build_columnwise_model(
    costs: FloatArray,
    bounds: tuple[FloatArray | float, FloatArray | float],
    rows: tuple[FloatArray, FloatArray],
    entries: tuple[NDArray[Any], NDArray[Any], FloatArray],
) -> highspy.HighsLp:
    """Build the linear program `min <costs, x>`, `lower <= x <= upper`, `row_lower <= A x <= row_upper`.

    Args:
        costs: (K,).
        bounds: lower and upper, (K,) each or one number for all.
        rows: row_lower and row_upper, (R,) each.
        entries: A by columns: where each column starts and the last one ends (K + 1,), rows, values.
    """
    model = highspy.HighsLp()
    model.num_row_, model.num_col_ = len(rows[0]), len(costs)
    # lists of plain numbers: of an array highspy converts each entry on its own, which takes thrice as long
    model.col_cost_ = costs.tolist()
    model.col_lower_ = (np.zeros(len(costs)) + bounds[0]).tolist()
    model.col_upper_ = (np.zeros(len(costs)) + bounds[1]).tolist()
    model.row_lower_, model.row_upper_ = map(np.ndarray.tolist, rows)
    matrix = model.a_matrix_
    matrix.format_ = highspy.MatrixFormat.kColwise
    matrix.start_, matrix.index_, matrix.value_ = map(np.ndarray.tolist, entries)
    return model


def build_sparse_model(
    costs: FloatArray,
    bounds: tuple[FloatArray | float, FloatArray | float],
    rows: tuple[FloatArray, FloatArray],
    matrix: sparse.sparray | sparse.spmatrix,
) -> highspy.HighsLp:
    """Build the linear program of `build_columnwise_model` from a sparse matrix A."""
    by_columns = matrix.tocsc()
    return build_columnwise_model(
        costs, bounds, rows, (by_columns.indptr, by_columns.indices, by_columns.data)
    )


def load_model(model: highspy.HighsLp, options: Mapping[str, Any]) -> highspy.Highs:
    """Create a HiGHS instance with a loaded model.

    Raises:
        SolverOptionError: HiGHS does not know an option, or does not take its value.
    """
    solver = _SilentHighs()
    solver.setOptionValue("output_flag", False)
    # by default HiGHS takes coefficients below 1e-9 for zeros: priors have such entries
    solver.setOptionValue("small_matrix_value", 1e-12)
    for name, value in options.items():
        try:
            taken = solver.setOptionValue(name, value) == highspy.HighsStatus.kOk
        except TypeError:  # a value of no type that options have
            taken = False
        if not taken:
            raise SolverOptionError(
                f"HiGHS does not know the option {name!r}, or does not take the value {value!r:.60}: see "
                "https://ergo-code.github.io/HiGHS/dev/options/definitions/"
            )
    solver.passModel(model)
    return solver


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
    usual = {**METHOD_OPTIONS["highs"], **({"presolve": "off"} if small else {})}
    solver = load_model(build_block_model(task), {**usual, **build_options(options)})
    ready = time.perf_counter()
    warm = _pass_start(solver, task, matrix, basis)
    outcome = run_loaded(solver, warm, ready - begin, ready)
    found = _read_point(solver, task) if outcome.state == "point" else None
    return replace(outcome, point=found, warm_start_arrays=_save_basis(solver))


def build_block_model(task: BlockLP) -> highspy.HighsLp:
    """Build the HiGHS model in entries minus lower bounds, and scalars.

    Rows: sums, means, upper ends.

    The lower end is no row: it is in the sums and in the means.
    """
    n, m = task.costs.shape
    block, cells = task.block, np.arange(task.costs.size)
    # row-major cells: the quotient by M is the letter, the rest the output
    letter, output = np.divmod(cells, m)
    ones, ends = np.ones(len(cells)), n if block.weights is None else n + m
    cell_rows, cell_values = [letter, ends + cells], [ones, ones]
    if block.weights is not None:
        cell_rows.insert(1, n + output)
        cell_values.insert(1, block.weights[0, letter])
    rows, values = [np.array(cell_rows).T.ravel()], [np.array(cell_values).T.ravel()]
    lengths = [len(cell_rows)] * len(cells)
    # of the first output; for the others the sums stay, and the rest moves on
    first = np.concatenate([np.arange(n), np.arange(n, ends, m), ends + m * np.arange(n)])
    shifts = np.where(first < n, 0, np.arange(m)[:, None])
    for index, (low, high) in enumerate(zip(block.lower, block.upper, strict=True)):
        mean = np.zeros(1 if ends > n else 0)
        if block.weights is not None and block.mean is not None:
            mean[0] = low * block.weights.sum() - block.mean[0, index]
        entries = np.concatenate([np.full(n, low), mean, np.full(n, low - high)])
        used = np.flatnonzero(entries)
        rows.append((first + shifts)[:, used].ravel())
        values.append(np.tile(entries[used], m))
        lengths += [len(used)] * m

    # entries are stored less their lower end, whose cost goes to the scalars
    low_cost = block.lower[:, None] * task.costs.sum(axis=0)
    least = np.concatenate([np.ones(n), np.zeros(ends - n), np.full(len(cells), -np.inf)])
    return build_columnwise_model(
        np.concatenate([task.costs.ravel(), low_cost.ravel()]),
        (0.0, np.inf),
        (least, np.maximum(least, 0.0)),
        (
            np.cumsum([0, *lengths]),
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


def read_basis(solver: highspy.Highs) -> tuple[list[int], list[int]]:
    """Read the rows that are tight at the basis of HiGHS, and its columns; none where it has no basis."""
    basis = solver.getBasis()
    if not basis.valid:
        return [], []
    tight = [row for row, status in enumerate(basis.row_status) if status.name != "kBasic"]
    return tight, [place for place, one in enumerate(basis.col_status) if one.name == "kBasic"]


def _save_basis(solver: highspy.Highs) -> Mapping[str, NDArray[Any]]:
    """Save the HiGHS basis as arrays; empty if invalid."""
    basis = solver.getBasis()
    if not basis.valid:
        return {}
    return {
        "columns": np.array(list(map(int, basis.col_status)), dtype=np.int8),
        "rows": np.array(list(map(int, basis.row_status)), dtype=np.int8),
    }
