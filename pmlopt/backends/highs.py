"""HiGHS, called through highspy directly: cvxpy's interface to it drops `Variable.value`.

Two methods: the dual simplex, which ends at a vertex and can start from a mechanism in hand, and
the interior point method without crossover for LPs on which the simplex takes too long.
"""

from __future__ import annotations

import time
from types import SimpleNamespace
from typing import Any, Literal

import cvxpy as cp
import highspy
import numpy as np

from pmlopt.arrays import FloatArray
from pmlopt.backends.outcome import Compiled, Options, Outcome, compiled

METHODS = {
    "highs": {"solver": "simplex"},
    "highs-ipm": {"solver": "ipx", "run_crossover": "off"},
}


def run(problem: cp.Problem, method: str, options: Options, warm: bool) -> Outcome:
    """Solve an LP; `warm` starts the simplex from the values that the variables hold."""
    ready = compiled(problem, cp.HIGHS)
    start_point = _values(ready) if warm and method == "highs" else None
    clock = time.perf_counter()
    solver = loaded(model_of(ready.data), {**METHODS[method], **limits(options)})
    if start_point is not None:
        solution = highspy.HighsSolution()
        solution.col_value = start_point.tolist()
        solution.value_valid = True
        solver.setSolution(solution)
    solver.run()
    seconds = time.perf_counter() - clock
    status, info = solver.getModelStatus(), solver.getInfo()
    outcome = Outcome(
        state=state_of(solver, status),
        finished=status == highspy.HighsModelStatus.kOptimal,
        message=solver.modelStatusToString(status),
        iterations=max(info.simplex_iteration_count, 0) + max(info.ipm_iteration_count, 0),
        warm_started=start_point is not None,
        compile_seconds=ready.seconds,
        solve_seconds=seconds,
    )
    if outcome.state == "point":
        unpack(ready, solver)
    return outcome


def unpack(ready: Compiled, solver: highspy.Highs) -> None:
    """Put HiGHS's solution into the problem's variables and multipliers; whether it is one is not asked."""
    raw = {
        "solution": solver.getSolution(),
        "info": SimpleNamespace(**dict.fromkeys(_COUNTS, 0), objective_function_value=0.0),
        "model_status": "kOptimal",
        "run_time": 0.0,
    }
    ready.unpack(ready.chain.invert(raw, ready.inverse))


# the utility is bounded on the mechanisms, so "unbounded or infeasible" is infeasible
_INFEASIBLE = (
    highspy.HighsModelStatus.kInfeasible,
    highspy.HighsModelStatus.kUnboundedOrInfeasible,
)
_COUNTS = (
    "ipm_iteration_count",
    "crossover_iteration_count",
    "pdlp_iteration_count",
    "qp_iteration_count",
    "simplex_iteration_count",
)


def limits(options: Options) -> dict[str, float | str]:
    """HiGHS's tolerances and time limit."""
    tolerance = max(1e-10, min(1e-9, options.tolerance))
    limits: dict[str, float | str] = {
        "primal_feasibility_tolerance": tolerance,
        "dual_feasibility_tolerance": tolerance,
    }
    if options.time_limit is not None:
        limits["time_limit"] = options.time_limit
    return limits


def model_of(data: dict[str, Any]) -> highspy.HighsLp:
    """A compiled problem as HiGHS's own model."""
    matrix, right, equalities = data["A"].tocsc(), data["b"], data["dims"].zero
    model = highspy.HighsLp()
    model.num_row_, model.num_col_ = matrix.shape
    model.col_cost_ = data["c"]
    model.row_lower_ = np.where(np.arange(len(right)) < equalities, right, -np.inf)
    model.row_upper_ = right
    model.col_lower_ = _bound(data["lower_bounds"], -np.inf, matrix.shape[1])
    model.col_upper_ = _bound(data["upper_bounds"], np.inf, matrix.shape[1])
    model.a_matrix_.format_ = highspy.MatrixFormat.kColwise
    model.a_matrix_.start_ = matrix.indptr
    model.a_matrix_.index_ = matrix.indices
    model.a_matrix_.value_ = matrix.data
    return model


def loaded(model: highspy.HighsLp, options: dict[str, float | str]) -> highspy.Highs:
    """HiGHS with a model in it."""
    solver = highspy.Highs()
    solver.setOptionValue("output_flag", False)
    # by default HiGHS takes coefficients below 1e-9 for zeros: priors have such entries
    solver.setOptionValue("small_matrix_value", 1e-12)
    for name, value in options.items():
        solver.setOptionValue(name, value)
    solver.passModel(model)
    return solver


def state_of(
    solver: highspy.Highs, status: highspy.HighsModelStatus
) -> Literal["point", "infeasible", "failed"]:
    """What an `Outcome` calls a model status."""
    if status in _INFEASIBLE:
        return "infeasible"
    solution = solver.getSolution()
    return "point" if solution.value_valid and solution.dual_valid else "failed"


def _bound(values: FloatArray | None, default: float, size: int) -> FloatArray:
    return np.full(size, default) if values is None else values


def _values(ready: Compiled) -> FloatArray | None:
    """The variables' values in the compiled order; None where one has no value or was replaced."""
    point = np.zeros(len(ready.data["c"]))
    columns = ready.data["param_prob"].var_id_to_col
    for variable in ready.data["param_prob"].variables:
        if variable.value is None:
            return None
        first = columns[variable.id]
        point[first : first + variable.size] = variable.value.flatten(order="F")
    return point
