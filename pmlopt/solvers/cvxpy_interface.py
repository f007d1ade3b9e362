"""The interface to cvxpy's solvers, and MPS files."""

from __future__ import annotations

import time
import warnings
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from copy import deepcopy
from dataclasses import replace
from functools import cache
from typing import Any, Literal

from pmlopt.core.lazy_imports import cp
from pmlopt.core.programming_errors import raise_if_strict
from pmlopt.errors import SolverOptionError, SolverUnavailableError
from pmlopt.solvers import highs
from pmlopt.solvers.solver_result import TIME_LIMIT, MethodOptions, SolverResult, compile_problem

_TOLERANCE_OPTIONS = {
    "CLARABEL": ("tol_gap_abs", "tol_gap_rel", "tol_feas"),
    "SCS": ("eps_abs", "eps_rel"),
    "OSQP": ("eps_abs", "eps_rel", "eps_prim_inf", "eps_dual_inf"),
}
_FIXED_OPTIONS: dict[str, dict[str, Any]] = {
    "CLARABEL": {"accept_unknown": True},  # hand over the last point: the certificate decides
    # a first-order method needs many cheap steps for these digits; the last ones come from a linear system
    "OSQP": {"max_iter": 1_000_000, "polishing": True},
}
_TIME_LIMIT_OPTIONS = {
    "CLARABEL": ("time_limit",),
    "SCS": ("time_limit_secs",),
    "OSQP": ("time_limit",),
    "SCIPY": ("scipy_options", "time_limit"),
    "CUOPT": ("time_limit",),
    "GLOP": ("time_limit_sec",),
    "PDLP": ("time_limit_sec",),
    "GUROBI": ("TimeLimit",),
    "COPT": ("TimeLimit",),
    "CBC": ("maximumSeconds",),
    "XPRESS": ("timelimit",),
    "MOSEK": ("mosek_params", "MSK_DPAR_OPTIMIZER_MAX_TIME"),
    "CPLEX": ("cplex_params", "timelimit"),
    "SCIP": ("scip_params", "limits/time"),
}
"""Under which option each solver takes a time limit in seconds, as cvxpy hands it on."""

_WITHOUT_DUALS = frozenset({"CBC", "GLPK_MI", "SCIP"})
"""Solvers without dual values in cvxpy 1.9; SCIP has 0 for a row of one variable, which becomes a bound."""


SOLUTION_FILE = "solution"
"""In place of the name of a solver: the columns are given."""


@cache
def list_installed() -> tuple[str, ...]:
    """List cvxpy's installed solvers by their `solve` names."""
    return tuple(sorted(entry.lower() for entry in cp.installed_solvers()))


def solve_declared(
    problem: cp.Problem,
    name: str,
    options: MethodOptions,
    settings: Mapping[str, Any] | None = None,
) -> SolverResult:
    """Solve a problem by the name of a method: HiGHS directly, another solver through cvxpy.

    What one solver calls infeasible is failed, unless another finds no point that meets the constraints.
    """
    found = _solve_once(problem, name, options, settings or {})
    if found.state != "infeasible":
        return found
    # some also say so of an unbounded program, which one without an objective cannot be
    constraints = cp.Problem(cp.Minimize(0), problem.constraints)
    other = _choose_another(name, constraints.is_lp())
    again = _solve_once(constraints, other, replace(options, solver_options={}, verbose=False), {})
    if again.state == "infeasible":
        return replace(found, message=f"{found.message}, as {other} finds too")
    message = f"{found.message}, and {other} does not find it infeasible"
    return replace(found, state="failed", message=message)


def _solve_once(
    problem: cp.Problem, name: str, options: MethodOptions, settings: Mapping[str, Any]
) -> SolverResult:
    """Solve by the name of a method, and take the solver's word."""
    if name in highs.METHOD_OPTIONS:
        return highs.solve_problem(problem, name, options)
    return solve_problem(problem, name.upper(), options, dict(settings))


def _choose_another(name: str, is_linear: bool) -> str:
    """Choose a solver that shares no code with a named one."""
    if is_linear and name not in {*highs.METHOD_OPTIONS, "scipy"}:
        return "highs"
    return "clarabel" if name != "clarabel" else "scs"


def solve_problem(
    problem: cp.Problem, solver: str, options: MethodOptions, extra: dict[str, Any]
) -> SolverResult:
    """Solve a problem with a cvxpy solver; `extra` options are passed unchanged.

    `SOLUTION_FILE` is the solver whose solution is among the options.
    """
    if solver.lower() == SOLUTION_FILE:
        from pmlopt.solvers.program_files import take_solution

        return take_solution(problem, **options.solver_options)
    settings = _build_settings(solver, options, extra)
    start = time.perf_counter()
    try:
        ready = compile_problem(problem, _find_interface(solver), settings)
    except cp.SolverError as cause:
        return SolverResult("failed", False, f"cannot take it: {cause}", None, False, 0.0, 0.0)
    compiled_at = time.perf_counter()
    # compiling took time: the remaining time is known only now
    if options.deadline.is_limited:
        if options.deadline.expired:
            return SolverResult("failed", False, TIME_LIMIT, None, False, ready.seconds, 0.0)
        _limit_time(solver, settings, options)
    try:
        with _check_options(solver, options):
            raw = ready.chain.solve_via_data(
                problem, ready.data, verbose=options.verbose, solver_opts=settings
            )
        solution = ready.chain.invert(raw, ready.inverse)
        status = solution.status
    except (cp.SolverError, ValueError, ArithmeticError) as cause:
        if isinstance(cause, SolverOptionError):
            raise
        raise_if_strict(cause)
        return SolverResult(
            "failed",
            False,
            str(cause),
            None,
            False,
            compiled_at - start,
            time.perf_counter() - compiled_at,
        )
    seconds = time.perf_counter() - compiled_at
    state: Literal["point", "infeasible", "failed"] = "failed"
    if status in cp.settings.INF_OR_UNB:
        state = "infeasible" if status == cp.INFEASIBLE else "failed"
    elif status in cp.settings.SOLUTION_PRESENT:
        ready.unpack_solution(solution)
        state = "point"
        if solver in _WITHOUT_DUALS and problem.is_lp():
            _add_duals(problem, options)
    iterations = solution.attr.get(cp.settings.NUM_ITERS)
    return SolverResult(
        state, status == cp.OPTIMAL, status, iterations, False, ready.seconds, seconds
    )


def _find_interface(solver: str) -> Any:
    """Return what cvxpy compiles a problem for: a name, or an object that mends its interface."""
    return _make_pdlp() if solver == "PDLP" and "PDLP" in cp.installed_solvers() else solver


@cache
def _make_pdlp() -> Any:
    """Make cvxpy's interface to PDLP, to which bounds of variables are rows: 1.9.3 refuses arrays of them."""
    from cvxpy.reductions.solvers.conic_solvers.pdlp_conif import PDLP

    class _PDLPByRows(PDLP):  # type: ignore[misc]  # cvxpy has no types
        BOUNDED_VARIABLES = False

        def name(self) -> str:
            return "PDLP_BY_ROWS"  # one of cvxpy's own names would be refused

    return _PDLPByRows()


def _add_duals(problem: cp.Problem, options: MethodOptions) -> None:
    """Add dual values by HiGHS to the values of variables that a solver left."""
    values = [(variable, variable.value) for variable in problem.variables()]
    highs.solve_problem(problem, "highs", replace(options, solver_options={}, verbose=False))
    for variable, value in values:
        variable.save_value(value)


def _build_settings(
    solver: str, options: MethodOptions, extra: Mapping[str, Any]
) -> dict[str, Any]:
    """Build a solver's settings: tolerances, method settings, then the user's."""
    if options.deadline.is_limited and solver not in _TIME_LIMIT_OPTIONS:
        raise SolverUnavailableError(
            f"a time limit cannot be handed to {solver}: leave it out and give the solver's own in "
            f"solver_options, or choose one of {', '.join(map(str.lower, _TIME_LIMIT_OPTIONS))}"
        )
    strange = set(options.solver_options) - {"scipy_options"} if solver == "SCIPY" else ()
    if strange:
        raise SolverOptionError(
            f"SCIPY takes its options as scipy_options={{...}}, and not {', '.join(sorted(strange))}"
        )
    # at most 1e-8, since the certificate's gap inherits the solver's error
    tolerances = dict.fromkeys(_TOLERANCE_OPTIONS.get(solver, ()), min(1e-8, options.tolerance))
    # nested ones are copied, for scipy's are changed on the way
    return {
        **tolerances,
        **_FIXED_OPTIONS.get(solver, {}),
        **({"parameters_proto": _make_pdlp_parameters(options)} if solver == "PDLP" else {}),
        **extra,
        **deepcopy(dict(options.solver_options)),
    }


def _make_pdlp_parameters(options: MethodOptions) -> Any:
    """Make the parameters of PDLP, whose own tolerance of 1e-6 proves little."""
    try:
        from ortools.pdlp import solvers_pb2
    except ImportError:
        return None
    made = solvers_pb2.PrimalDualHybridGradientParams()
    criteria = made.termination_criteria.simple_optimality_criteria
    criteria.eps_optimal_absolute = criteria.eps_optimal_relative = min(1e-9, options.tolerance)
    return made


def _limit_time(solver: str, settings: dict[str, Any], options: MethodOptions) -> None:
    """Add the remaining time to the settings, unless the user has set a limit."""
    *path, name = _TIME_LIMIT_OPTIONS[solver]
    for key in path:
        settings = settings.setdefault(key, {})
    settings.setdefault(name, options.deadline.remaining(least=1e-3))  # 0 is no limit to some


@contextmanager
def _check_options(solver: str, options: MethodOptions) -> Iterator[None]:
    """Raise a SolverOptionError where a solver rejects a user's options."""
    if not options.solver_options:
        yield
        return
    try:
        with warnings.catch_warnings():
            # scipy passes over those that it ignores
            warnings.filterwarnings("error", "Unrecognized options")
            yield
    except (TypeError, ValueError, AttributeError, KeyError, Warning, cp.SolverError) as cause:
        given = ", ".join(f"{name}={value!r:.60}" for name, value in options.solver_options.items())
        raise SolverOptionError(f"{solver} does not take the options {given}: {cause}") from cause
