"""Any solver that cvxpy knows, through cvxpy's own interface to it."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any, Literal

from pmlopt.backends.outcome import Options, Outcome, compiled
from pmlopt.errors import SolverUnavailableError

if TYPE_CHECKING:
    import cvxpy as cp

_TOLERANCES = {
    "CLARABEL": ("tol_gap_abs", "tol_gap_rel", "tol_feas"),
    "SCS": ("eps_abs", "eps_rel"),
}
_TIME_LIMIT = {"CLARABEL": "time_limit", "SCS": "time_limit_secs"}


def installed() -> list[str]:
    """The solvers that cvxpy has here, by the names that `solve` takes."""
    import cvxpy as cp

    return sorted(entry.lower() for entry in cp.installed_solvers())


def run(problem: cp.Problem, solver: str, options: Options, extra: dict[str, Any]) -> Outcome:
    """Solve by the solver of that cvxpy name; `extra` goes to it as it is."""
    import cvxpy as cp

    settings = {**_settings(solver, options), **extra}
    start = time.perf_counter()
    try:
        ready = compiled(problem, solver, settings)
    except cp.SolverError as cause:
        return Outcome("failed", False, f"cannot take it: {cause}", None, False, 0.0, 0.0)
    clock = time.perf_counter()
    if options.clock.limited:
        settings[_TIME_LIMIT[solver]] = options.clock.left(least=1e-6)  # SCS takes 0 for no limit
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
    if options.clock.limited and solver not in _TIME_LIMIT:
        raise SolverUnavailableError(
            f"a time limit cannot be handed to {solver}: leave it out, or choose highs, clarabel or scs"
        )
    settings: dict[str, Any] = dict.fromkeys(_TOLERANCES.get(solver, ()), min(1e-8, options.tolerance))
    if solver == "CLARABEL":
        settings["accept_unknown"] = True  # hand over the last point: the certificate decides
    return settings
