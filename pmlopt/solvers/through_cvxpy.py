"""Any solver that cvxpy knows, through cvxpy's own interface to it."""

from __future__ import annotations

import time
from typing import Any, Literal

import cvxpy as cp

from pmlopt.errors import SolverUnavailableError
from pmlopt.solvers.outcome import Options, Outcome, compiled

_NAMES: dict[str, dict[str, str]] = {
    # our option -> the solver's own names for it
    "CLARABEL": {"time": "time_limit", "gap": "tol_gap_abs tol_gap_rel", "residual": "tol_feas"},
    "SCS": {"time": "time_limit_secs", "gap": "eps_abs eps_rel", "residual": ""},
}


def run(problem: cp.Problem, solver: str, options: Options, extra: dict[str, Any]) -> Outcome:
    """Solve by the solver of that cvxpy name; `extra` goes to it as it is."""
    settings = {**_settings(solver, options), **extra}
    start = time.perf_counter()
    try:
        ready = compiled(problem, solver, settings)
    except cp.SolverError as cause:
        return Outcome("failed", False, f"cannot take it: {cause}", None, False, 0.0, 0.0)
    clock = time.perf_counter()
    try:
        raw = ready.chain.solve_via_data(problem, ready.data, solver_opts=settings)
        solution = ready.chain.invert(raw, ready.inverse)
        status = solution.status
    except (cp.SolverError, ValueError, ArithmeticError) as cause:
        return Outcome("failed", False, str(cause), None, False, clock - start, time.perf_counter() - clock)
    seconds = time.perf_counter() - clock
    state: Literal["point", "infeasible", "failed"] = "failed"
    if status in cp.settings.INF_OR_UNB:
        state = "infeasible" if status == cp.INFEASIBLE else "failed"
    elif status in cp.settings.SOLUTION_PRESENT:
        ready.unpack(solution)
        state = "point"
    iterations = solution.attr.get(cp.settings.NUM_ITERS)
    return Outcome(state, status == cp.OPTIMAL, status, iterations, False, ready.seconds, seconds)


def _settings(solver: str, options: Options) -> dict[str, Any]:
    names = _NAMES.get(solver)
    if names is None:
        if options.time_limit is not None:
            raise SolverUnavailableError(
                f"a time limit cannot be handed to {solver}: leave it out, or choose highs, clarabel or scs"
            )
        return {}
    tolerance = min(1e-8, options.tolerance)
    settings: dict[str, Any] = dict.fromkeys((names["gap"] + " " + names["residual"]).split(), tolerance)
    if options.time_limit is not None:
        settings[names["time"]] = options.time_limit
    if solver == "CLARABEL":
        settings["accept_unknown"] = True  # hand over the last point: the certificate decides
    return settings
