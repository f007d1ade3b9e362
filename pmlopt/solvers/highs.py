"""HiGHS, called through highspy directly: cvxpy's interface to it drops `Variable.value`.

Two methods: the dual simplex, which ends at a vertex and can start from a known mechanism, and
the interior point method without crossover for LPs on which the simplex takes too long.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from functools import lru_cache, partial
from types import SimpleNamespace
from typing import Any

import highspy
import numpy as np
from numpy.typing import NDArray

from pmlopt.core.lazy_imports import cp, sparse
from pmlopt.core.light_dataclass import light_dataclass
from pmlopt.core.numbers.arrays import FloatArray
from pmlopt.errors import SolverError, SolverOptionError
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

    Attributes:
        lent_options: those that it has, where it was lent with them, and nobody has changed them since.
    """

    lent_options: Mapping[str, Any] | None = None

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


@light_dataclass(frozen=True, eq=False)
class LinearModel:
    """A linear program `min <costs, x>`, `lower <= x <= upper`, `row_lower <= A x <= row_upper`.

    Attributes:
        costs: (K,).
        lower, upper: (K,) each.
        row_lower, row_upper: (R,) each.
        starts: (K + 1,) where each column of A starts among the entries, and the last one ends.
        rows: (Z,) the row of each entry.
        values: (Z,) the entries.
    """

    costs: FloatArray
    lower: FloatArray
    upper: FloatArray
    row_lower: FloatArray
    row_upper: FloatArray
    starts: NDArray[Any]
    rows: NDArray[Any]
    values: FloatArray

    @property
    def shape(self) -> tuple[int, int]:
        """Return the number of rows and that of columns."""
        return len(self.row_lower), len(self.costs)

    def pass_to(self, solver: highspy.Highs) -> None:
        """Make it the program of a HiGHS instance.

        Raises:
            SolverError: HiGHS refuses it, and would solve the program that it had before.
        """
        continuous = np.zeros(len(self.costs), dtype=np.int32)  # the kind of each variable
        # as arrays: of the fields of a HighsLp highspy converts each number on its own
        status = solver.passModel(
            len(self.costs), len(self.row_lower), len(self.values), 1, 1, 0.0,
            self.costs, self.lower, self.upper, self.row_lower, self.row_upper,
            self.starts, self.rows, self.values, continuous,
        )  # fmt: skip
        if status == highspy.HighsStatus.kError:
            largest = np.abs(self.values).max(initial=0.0)
            raise SolverError(
                f"HiGHS refuses the program, whose largest coefficient is {largest:.3g}: it takes numbers up "
                "to 1e15"
            )


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
    solver: highspy.Highs,
    warm: bool,
    compile_seconds: float,
    begin: float,
    read: Callable[[Any], PrimalDualPoint] | None = None,
    save: Callable[[], Mapping[str, NDArray[Any]]] = dict,
) -> SolverResult:
    """Run HiGHS on a loaded model, and return its result.

    Args:
        solver: with the model.
        warm: whether it has a start.
        compile_seconds: what it took to load it.
        begin: when it was loaded.
        read: makes the point of a solution of HiGHS; left out, the result has none.
        save: what a next solve can start from.

    Raises:
        SolverOptionError: a number of threads is asked for, and an earlier solve had another one.
    """
    ended = solver.run()
    status = solver.getModelStatus()
    is_refused = ended == highspy.HighsStatus.kError and status == highspy.HighsModelStatus.kNotset
    threads = solver.getOptionValue("threads")[1] if is_refused else 0
    if threads:
        raise SolverOptionError(
            f"HiGHS keeps the number of threads of the first solve of a process, and threads={threads} is "
            "another one: leave the option out, or give it at every solve of a new process"
        )
    solution = solver.getSolution()
    steps = (
        solver.getInfoValue("simplex_iteration_count"),
        solver.getInfoValue("ipm_iteration_count"),
    )
    # without both parts there is nothing to certify, whatever the status
    solved = solution.value_valid and solution.dual_valid
    is_infeasible = status in _INFEASIBLE_STATUSES
    return SolverResult(
        state="infeasible" if is_infeasible else "point" if solved else "failed",
        finished=status == highspy.HighsModelStatus.kOptimal,
        message=solver.modelStatusToString(status),
        iterations=max(steps[0][1], 0) + max(steps[1][1], 0),  # -1 of a method that did not run
        warm_started=warm,
        compile_seconds=compile_seconds,
        solve_seconds=time.perf_counter() - begin,
        point=read(solution) if read is not None and solved and not is_infeasible else None,
        warm_start_arrays=save(),
    )


def unpack_solution(
    ready: CompiledProblem, solver: highspy.Highs, values: FloatArray | None = None
) -> None:
    """Store HiGHS's solution in the cvxpy variables and constraints, with other values where given."""
    solution = solver.getSolution()
    if values is not None:
        solution.col_value = values.tolist()
    raw = {
        "solution": solution,
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


def build_compiled_model(data: dict[str, Any]) -> LinearModel:
    """Convert a compiled problem to a model for HiGHS."""
    right = data["b"]
    equalities = data["dims"].zero
    lower = data["lower_bounds"]
    upper = data["upper_bounds"]
    bounds = -np.inf if lower is None else lower, np.inf if upper is None else upper
    # cvxpy puts equations first; all others are upper limits only
    rows = np.where(np.arange(len(right)) < equalities, right, -np.inf), right
    return build_sparse_model(data["c"], bounds, rows, data["A"])


def build_columnwise_model(
    costs: FloatArray,
    bounds: tuple[FloatArray | float, FloatArray | float],
    rows: tuple[FloatArray, FloatArray],
    entries: tuple[NDArray[Any], NDArray[Any], FloatArray],
) -> LinearModel:
    """Build the linear program `min <costs, x>`, `lower <= x <= upper`, `row_lower <= A x <= row_upper`.

    Args:
        costs: (K,).
        bounds: lower and upper, (K,) each or one number for all.
        rows: row_lower and row_upper, (R,) each.
        entries: A by columns: where each column starts and the last one ends (K + 1,), rows, values.
    """
    none = np.zeros(len(costs))
    starts, places, values = entries
    return LinearModel(
        costs, none + bounds[0], none + bounds[1], *rows,
        starts.astype(np.int32), places.astype(np.int32), values,
    )  # fmt: skip


def build_sparse_model(
    costs: FloatArray,
    bounds: tuple[FloatArray | float, FloatArray | float],
    rows: tuple[FloatArray, FloatArray],
    matrix: sparse.sparray | sparse.spmatrix,
) -> LinearModel:
    """Build the linear program of `build_columnwise_model` from a sparse matrix A."""
    by_columns = matrix.tocsc()
    return build_columnwise_model(
        costs, bounds, rows, (by_columns.indptr, by_columns.indices, by_columns.data)
    )


def load_model(model: LinearModel, options: Mapping[str, Any]) -> highspy.Highs:
    """Return a HiGHS instance with a loaded model, one that has solved others before where there is one.

    Raises:
        SolverOptionError: HiGHS does not know an option, or does not take its value.
    """
    try:
        solver = _idle_solvers.pop()  # other threads cannot take it, too
    except IndexError:
        solver = _SilentHighs()
    lent, solver.lent_options = solver.lent_options, None
    # of programs one after another the options are mostly the same
    if lent != options:
        solver.resetOptions()
        _set_options(solver, options)
    model.pass_to(solver)
    return solver


def keep_solver(solver: highspy.Highs) -> None:
    """Keep an instance that nobody uses any more: a new one takes as long as a small program does.

    Those of large programs are dropped, with their memory.
    """
    if solver.getNumNz() <= 100_000:
        _idle_solvers.append(solver)


@contextmanager
def lend_solver(model: LinearModel, options: Mapping[str, Any]) -> Iterator[highspy.Highs]:
    """Lend a HiGHS instance with a loaded model; one whose work raises an error is not used again.

    Whoever borrows it leaves its options as they are.

    Raises:
        SolverOptionError: HiGHS does not know an option, or does not take its value.
    """
    solver = load_model(model, options)
    yield solver
    # a time limit is counted from the first run of an instance on
    solver.lent_options = None if "time_limit" in options else dict(options)
    keep_solver(solver)


_idle_solvers: list[highspy.Highs] = []


def _set_options(solver: highspy.Highs, options: Mapping[str, Any]) -> None:
    """Set the options of an instance whose options are the default ones; see `load_model`."""
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
    if "time_limit" in options:  # HiGHS adds up the time of all runs of one instance
        solver.setOptionValue("time_limit", solver.getRunTime() + options["time_limit"])


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
    settings: dict[str, Any] = dict(METHOD_OPTIONS["highs"])
    # matrices of up to 900 entries are solved sooner without presolve
    if task.costs.size <= 900:
        settings["presolve"] = "off"
        # the smallest also without scaling, which next to rare letters keeps digits
        if task.costs.size <= 200 and task.prior.pmf.min() >= 1e-5:
            settings["simplex_scale_strategy"] = 0
    settings |= build_options(options)
    model = build_block_model(task)
    with lend_solver(model, settings) as solver:
        ready = time.perf_counter()
        warm = _pass_start(solver, task, matrix, basis)
        read, save = partial(_read_point, task), partial(_save_basis, solver, model)
        return run_loaded(solver, warm, ready - begin, ready, read, save)


def build_block_model(task: BlockLP) -> LinearModel:
    """Build the HiGHS model in entries minus lower bounds, and scalars.

    Rows: sums, means, upper ends.

    The lower end is no row: it is in the sums and in the means.
    """
    (n, m), block = task.costs.shape, task.block
    has_means = block.weights is not None
    # of a cell: in the sum of its letter, in the mean of its output, in its upper end
    cells = np.empty((n, m, 3 if has_means else 2))
    cells.fill(1.0)
    if block.weights is not None:
        cells[:, :, 1] = block.weights[0, :, None]
    # of a scalar of one output: in the sums, in the mean, in the upper ends
    entries = np.zeros((len(block.lower), 2 * n + has_means))
    entries[:, :n] = block.lower[:, None]
    entries[:, -n:] = (block.lower - block.upper)[:, None]
    if block.weights is not None and block.mean is not None:
        entries[:, n] = block.lower * block.weights.sum() - block.mean[0]
    # the places of the entries are the same for all programs of a size
    lay_out = _lay_out_small_block if task.costs.size <= 900 else _lay_out_block
    used, outputs = entries != 0, np.ones((m, 1))
    shape = lay_out(n, m, has_means, used.tobytes())
    scalars = [(outputs * own[places]).ravel() for own, places in zip(entries, used, strict=True)]
    # entries are stored less their lower end, whose cost goes to the scalars
    low_cost = block.lower[:, None] * task.costs.sum(axis=0)
    costs = np.concatenate([task.costs.ravel(), low_cost.ravel()])
    return LinearModel(costs, *shape, np.concatenate([cells.ravel(), *scalars]))


def _lay_out_block(
    n: int, m: int, has_means: bool, used: bytes
) -> tuple[FloatArray, FloatArray, FloatArray, FloatArray, NDArray[Any], NDArray[Any]]:
    """Lay out the bounds and the places of the entries of a block model, which the numbers do not change.

    Args:
        n: letters.
        m: outputs.
        has_means: whether each output has a row for its mean.
        used: which of the sums, the mean and the upper ends each scalar of an output is in, one truth value
            after another.

    Returns:
        The arrays of a `LinearModel` but for costs and values.
    """
    cells = np.arange(n * m)
    ends = n + m * has_means
    # row-major cells: the quotient by M is the letter, the rest the output
    letter, output = np.divmod(cells, m)
    means = [n + output] if has_means else []
    rows = [np.array([letter, *means, ends + cells]).T.ravel()]
    lengths = [np.full(n * m, 2 + has_means)]
    # of the first output; for the others the sums stay, and the rest moves on
    first = np.concatenate([np.arange(n), np.arange(n, ends, m), ends + m * np.arange(n)])
    shifts = np.where(first < n, 0, np.arange(m)[:, None])
    for places in np.frombuffer(used, dtype=bool).reshape(-1, len(first)):
        rows.append((first + shifts)[:, places].ravel())
        lengths.append(np.full(m, places.sum()))
    starts = np.append(0, np.cumsum(np.concatenate(lengths)))
    columns = len(starts) - 1
    least = np.concatenate([np.ones(n), np.zeros(ends - n), np.full(n * m, -np.inf)])
    found = (
        np.zeros(columns), np.full(columns, np.inf), least, np.maximum(least, 0.0),
        starts.astype(np.int32), np.concatenate(rows).astype(np.int32),
    )  # fmt: skip
    for one in found:
        one.setflags(write=False)
    return found


_lay_out_small_block = lru_cache(32)(_lay_out_block)


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


def _read_point(task: BlockLP, solution: Any) -> PrimalDualPoint:
    """Read matrix and multipliers from the HiGHS solution."""
    n, m = task.costs.shape
    values = np.array(solution.col_value)
    above = values[: n * m].reshape(n, m)
    matrix = above + task.block.lower @ values[n * m :].reshape(-1, m)
    return PrimalDualPoint(matrix, task.to_certificate_multipliers(np.array(solution.row_dual)))


def read_basis(solver: highspy.Highs) -> tuple[list[int], list[int]]:
    """Read the rows that are tight at the basis of HiGHS, and its columns; none where it has no basis."""
    basis = solver.getBasis()
    if not basis.valid:
        return [], []
    tight = [row for row, status in enumerate(basis.row_status) if status.name != "kBasic"]
    return tight, [place for place, one in enumerate(basis.col_status) if one.name == "kBasic"]


def _save_basis(solver: highspy.Highs, model: LinearModel) -> Mapping[str, NDArray[Any]]:
    """Save the HiGHS basis as arrays; empty if there is none. Columns must have no upper limits."""
    status, basic = solver.getBasicVariables()
    if status != highspy.HighsStatus.kOk:
        return {}
    rows, columns = len(model.row_lower), len(model.costs)
    # rows are numbered -1, -2, ...: places from the end
    found = np.zeros(columns + rows, dtype=np.int8)
    # what is not basic is at the lower limit where there is one
    found[columns:] = 2 * np.isinf(model.row_lower[::-1])
    found[basic] = 1
    # without a basis HiGHS has no list, or one of zeros
    if np.count_nonzero(found == 1) < rows:
        return {}
    return {"columns": found[:columns], "rows": found[columns:][::-1].copy()}
