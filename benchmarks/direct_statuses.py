"""What solvers of linear programs return without cvxpy: statuses, values and the signs of dual values.

`benchmarks/statuses.py` puts them beside what cvxpy makes of them.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
from common import FloatArray
from scipy import optimize, sparse

from pmlopt.solvers import highs

Answer: TypeAlias = tuple[str, float | None, float | None, float | None]
"""The status by its name there, the value, and the dual values of an equation and of a bound."""


@dataclass(frozen=True)
class Arrays:
    """The program `min <costs, x>`, `equal x = right`, `below x <= most`, `x >= lower`."""

    costs: FloatArray
    equal: FloatArray
    right: FloatArray
    below: FloatArray
    most: FloatArray
    lower: FloatArray

    @property
    def conic(self) -> tuple[Any, FloatArray]:
        """Return the rows and right sides of cones: equations first, then what is at most."""
        bounded = np.flatnonzero(np.isfinite(self.lower))
        rows = np.vstack([self.equal, self.below, -np.eye(len(self.costs))[bounded]])
        right = np.concatenate([self.right, self.most, -self.lower[bounded]])
        return sparse.csc_matrix(rows), right


def make_programs() -> Mapping[str, Arrays]:
    """Make the programs: of the first the optimum is 1.75, and one more of its right sides costs 2 and -1.

    The one that is badly scaled is the first, its equation divided and its bound multiplied by 1e10.
    """
    costs, sum_row, zeros = np.array([1.0, 2.0]), np.array([[1.0, 1.0]]), np.zeros(2)
    first, one = np.array([[1.0, 0.0]]), np.ones(1)
    rng = np.random.default_rng(0)
    rows = rng.random((500, 500))
    return {
        "known": Arrays(costs, sum_row, one, first, 0.25 * one, zeros),
        "infeasible": Arrays(costs, sum_row, -one, first, 0.25 * one, zeros),
        "unbounded": Arrays(costs, np.array([[2.0, 1.0]]), one, -first, -0.25 * one,
                            np.array([0.0, -np.inf])),
        "badly scaled": Arrays(costs, 1e-10 * sum_row, 1e-10 * one, 1e10 * first, 0.25e10 * one, zeros),
        "time limit": Arrays(-rng.random(500), np.ones((1, 500)), one, rows, np.full(500, 0.6),
                             np.zeros(500)),
    }  # fmt: skip


def by_highs(given: Arrays, limit: float | None) -> Answer:
    """Solve by highspy."""
    rows = sparse.csc_array(np.vstack([given.equal, given.below]))
    ends = (
        np.append(given.right, np.full(len(given.most), -np.inf)),
        np.append(given.right, given.most),
    )
    model = highs.build_sparse_model(given.costs, (given.lower, np.inf), ends, rows)
    solver = highs.load_model(model, {} if limit is None else {"time_limit": limit})
    solver.run()
    duals = np.array(solver.getSolution().row_dual)
    status = solver.modelStatusToString(solver.getModelStatus())
    return status, solver.getObjectiveValue(), *_pick(duals, len(given.right))


def by_scipy(given: Arrays, limit: float | None) -> Answer:
    """Solve by scipy's linprog."""
    bounds = [(low, None) for low in given.lower]
    options = {} if limit is None else {"time_limit": limit}
    found = optimize.linprog(
        given.costs, given.below, given.most, given.equal, given.right, bounds, options=options
    )
    known = found.x is not None
    equal, below = (found.eqlin.marginals[0], found.ineqlin.marginals[0]) if known else (None, None)
    return f"{found.status}: {found.message}".split(".")[0], found.fun, equal, below


def add_rows(
    given: Arrays, x: list[Any], add: Callable[[Any], Any], total: Callable[..., Any]
) -> list[Any]:
    """Add the equations and then the inequalities by an interface whose variables have operators."""
    equal = zip(given.equal.tolist(), given.right.tolist(), strict=True)
    below = zip(given.below.tolist(), given.most.tolist(), strict=True)
    rows = [add(total(map(operator.mul, row, x)) == right) for row, right in equal]
    return rows + [add(total(map(operator.mul, row, x)) <= most) for row, most in below]


def by_scip(given: Arrays, limit: float | None) -> Answer:
    """Solve by PySCIPOpt, without what presolves rows away."""
    from pyscipopt import Model, quicksum

    model = Model()
    model.hideOutput()
    if limit is not None:
        model.setParam("limits/time", limit)
    model.setPresolve(0)
    model.disablePropagation()
    x = [model.addVar(lb=None if low == -np.inf else low) for low in given.lower.tolist()]
    model.setObjective(quicksum(c * v for c, v in zip(given.costs.tolist(), x, strict=True)))
    rows = add_rows(given, x, model.addCons, quicksum)
    model.optimize()
    if model.getStatus() != "optimal":
        return model.getStatus(), None, None, None
    duals: list[float | None] = []
    for row in (rows[0], rows[len(given.right)]):
        try:
            duals.append(model.getDualsolLinear(row))
        except Warning:  # a row of one variable has become a bound, and is gone
            duals.append(None)
    return "optimal", model.getObjVal(), duals[0], duals[1]


def by_ortools(name: str) -> Callable[[Arrays, float | None], Answer]:
    """Return what solves by a solver of OR-Tools."""

    def solve(given: Arrays, limit: float | None) -> Answer:
        from ortools.linear_solver import pywraplp

        solver = pywraplp.Solver.CreateSolver(name)
        if limit is not None:
            solver.SetTimeLimit(int(1000 * limit))
        infinity = solver.infinity()
        x = [solver.NumVar(max(low, -infinity), infinity, "") for low in given.lower.tolist()]
        solver.Minimize(sum(c * v for c, v in zip(given.costs.tolist(), x, strict=True)))
        rows = add_rows(given, x, solver.Add, sum)
        names = (
            "optimal",
            "feasible",
            "infeasible",
            "unbounded",
            "abnormal",
            "model invalid",
            "not solved",
        )
        status = names[solver.Solve()]
        if status != "optimal":
            return status, None, None, None
        duals = [rows[0].dual_value(), rows[len(given.right)].dual_value()]
        return status, solver.Objective().Value(), duals[0], duals[1]

    return solve


def by_clarabel(given: Arrays, limit: float | None) -> Answer:
    """Solve by clarabel."""
    import clarabel

    rows, right = given.conic
    settings = clarabel.DefaultSettings()
    settings.verbose = False
    if limit is not None:
        settings.time_limit = limit
    count = len(given.right)
    cones = [clarabel.ZeroConeT(count), clarabel.NonnegativeConeT(len(right) - count)]
    nothing = sparse.csc_matrix((len(given.costs),) * 2)
    found = clarabel.DefaultSolver(nothing, given.costs, rows, right, cones, settings).solve()
    return str(found.status), found.obj_val, *_pick(np.array(found.z), count)


def by_scs(given: Arrays, limit: float | None) -> Answer:
    """Solve by SCS."""
    import scs

    rows, right = given.conic
    count = len(given.right)
    options = {} if limit is None else {"time_limit_secs": limit}
    solver = scs.SCS({"A": rows, "b": right, "c": given.costs}, {"z": count, "l": len(right) - count},
                     verbose=False, **options)  # fmt: skip
    found = solver.solve()
    return found["info"]["status"], found["info"]["pobj"], *_pick(found["y"], count)


def by_osqp(given: Arrays, limit: float | None) -> Answer:
    """Solve by OSQP."""
    import osqp

    rows, right = given.conic
    count = len(given.right)
    least = np.append(given.right, np.full(len(right) - count, -np.inf))
    solver = osqp.OSQP()
    options = {} if limit is None else {"time_limit": limit}
    nothing = sparse.csc_matrix((len(given.costs),) * 2)
    solver.setup(nothing, given.costs, rows, least, right, verbose=False, **options)
    found = solver.solve()
    return found.info.status, found.info.obj_val, *_pick(found.y, count)


def _pick(duals: FloatArray, count: int) -> tuple[float | None, float | None]:
    """Return the dual values of the first equation, and of the first row after all of them."""
    return (float(duals[0]), float(duals[count])) if len(duals) > count else (None, None)


SOLVERS: Mapping[str, Callable[[Arrays, float | None], Answer]] = {
    "CLARABEL": by_clarabel, "GLOP": by_ortools("GLOP"), "HIGHS": by_highs, "OSQP": by_osqp,
    "PDLP": by_ortools("PDLP"), "SCIP": by_scip, "SCIPY": by_scipy, "SCS": by_scs,
}  # fmt: skip
"""By their names in cvxpy: those that are free, and whose interface is another than cvxpy's."""


def measure(solver: str, program: str, limit: float | None) -> tuple[str, str, str, str]:
    """Solve a program by a solver: status, value and dual values as texts; empty for solvers of no entry."""
    if solver not in SOLVERS:
        return "", "", "", ""
    try:
        status, *numbers = SOLVERS[solver](make_programs()[program], limit)
    except Exception as cause:  # whatever it raises is what it returns
        return f"{type(cause).__name__}: {cause}".splitlines()[0][:100], "", "", ""
    shown = ["" if one is None else f"{one:.6g}" for one in numbers]
    return status, shown[0], shown[1], shown[2]
