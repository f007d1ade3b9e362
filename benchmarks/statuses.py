"""Which statuses and dual values the solvers of linear programs return through cvxpy, and how we read them.

    python benchmarks/statuses.py [--out FOLDER]

Each installed solver gets five programs: one whose optimum and dual values are known, the same badly scaled,
one that is infeasible, one that is unbounded, and one of 250,000 numbers with a time limit of a hundredth of
a second. The table
`statuses.csv` has its status, value and dual values by cvxpy's own `solve`, the same without cvxpy for those
of `direct_statuses.py`, and the state in which pmlopt's interface leaves it.
"""

from __future__ import annotations

import argparse
import datetime
import platform
import warnings
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

import cvxpy as cp
import direct_statuses
import numpy as np
from common import write_csv

from pmlopt.solvers import cvxpy_interface
from pmlopt.solvers.solver_result import make_options

HEAD = (
    "solver", "version", "program", "status_of_cvxpy", "value", "dual_of_equation", "dual_of_bound",
    "direct_status", "direct_value", "direct_dual_of_equation", "direct_dual_of_bound",
    "state_in_pmlopt", "message", "cvxpy", "python", "date",
)  # fmt: skip
PACKAGES = {
    "CBC": "cylp", "CLARABEL": "clarabel", "COPT": "coptpy", "CPLEX": "cplex", "CVXOPT": "cvxopt",
    "DAQP": "daqp", "ECOS": "ecos", "ECOS_BB": "ecos", "GLOP": "ortools", "GLPK": "cvxopt",
    "GLPK_MI": "cvxopt", "GUROBI": "gurobipy", "HIGHS": "highspy", "OSQP": "osqp", "PDLP": "ortools",
    "PIQP": "piqp", "QOCO": "qoco", "SCIP": "pyscipopt", "SCIPY": "scipy", "SCS": "scs", "XPRESS": "xpress",
}  # fmt: skip
"""The package of each solver. MOSEK solves nothing without a licence of one's own."""


def build_problem(given: direct_statuses.Arrays) -> cp.Problem:
    """Build a program in cvxpy, its equations first and what is at most something after them."""
    x, bounded = cp.Variable(len(given.costs)), np.isfinite(given.lower)
    rows = [given.equal @ x == given.right, given.below @ x <= given.most]
    return cp.Problem(cp.Minimize(given.costs @ x), [*rows, x[bounded] >= given.lower[bounded]])


def measure(solver: str, name: str) -> tuple[Any, ...]:
    """Solve a program by cvxpy, and by our interface to it."""
    limit = 0.01 if name == "time limit" else None
    options: dict[str, Any] = {}
    if limit is not None and (path := cvxpy_interface._TIME_LIMIT_OPTIONS.get(solver)):
        *outer, last = path
        options = {last: limit}
        for key in reversed(outer):
            options = {key: options}
    programs = direct_statuses.make_programs()
    problem = build_problem(programs[name])
    try:
        problem.solve(solver=solver, **options)
        status, value = problem.status, problem.value
    except Exception as cause:
        status, value = f"{type(cause).__name__}: {cause}".splitlines()[0][:100], None
    duals = [
        np.ravel(one.dual_value)[0] if one.dual_value is not None else ""
        for one in problem.constraints
    ]
    again, state = build_problem(programs[name]), ""
    try:
        found = cvxpy_interface.solve_declared(again, solver.lower(), make_options(limit, 1e-8))
        state = "no point" if found.state == "failed" else found.state
        message = found.message
    except Exception as cause:
        state, message = type(cause).__name__, str(cause)
    shown = ["" if one in ("", None) else f"{float(one):.6g}" for one in (value, *duals[:2])]
    direct = direct_statuses.measure(solver, name, limit)
    return status, *shown, *direct, state, message.splitlines()[0][:100] if message else ""


def main() -> None:
    """Measure all, and write the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--out", type=Path, default=Path(__file__).parent / "data")
    parser.add_argument("--quick", action="store_true", help="the known program alone")
    arguments = parser.parse_args()
    warnings.simplefilter("ignore")
    day, rows = datetime.datetime.now(datetime.UTC).date().isoformat(), []
    for solver in sorted(set(cp.installed_solvers()) & set(PACKAGES)):
        try:
            own = version(PACKAGES[solver])
        except PackageNotFoundError:
            own = ""
        for name in list(direct_statuses.make_programs())[: 1 if arguments.quick else None]:
            row = (
                solver,
                own,
                name,
                *measure(solver, name),
                cp.__version__,
                platform.python_version(),
                day,
            )
            print(*row[:3], row[3], *row[4:8], flush=True)
            rows.append(row)
    arguments.out.mkdir(parents=True, exist_ok=True)
    write_csv(arguments.out / "statuses.csv", HEAD, rows)


if __name__ == "__main__":
    main()
