"""Each installed solver of cvxpy that takes linear programs proves the README's design.

MOSEK is not among them: it solves nothing without a licence of one's own.
"""

from __future__ import annotations

import math

import cvxpy as cp
import numpy as np
import pytest
from scipy.optimize import linprog

from pmlopt import PML, ExpectedGain, Prior, design, solve
from pmlopt.errors import SolverUnavailableError
from pmlopt.programs import Status
from pmlopt.programs.linear.program import LinearDesign
from pmlopt.solvers.cvxpy_interface import _TIME_LIMIT_OPTIONS, solve_declared, solve_problem
from pmlopt.solvers.solver_result import make_options

NAMES = (
    "CBC", "CLARABEL", "COPT", "CPLEX", "CUOPT", "CVXOPT", "DAQP", "ECOS", "ECOS_BB", "GLOP", "GLPK",
    "GLPK_MI", "GUROBI", "HIGHS", "OSQP", "PDLP", "PIQP", "QOCO", "SCIP", "SCIPY", "SCS", "XPRESS",
)  # fmt: skip
COUNTS = {"never": 40, "monthly": 30, "weekly": 20, "daily": 10}


def skip_unless_installed(name: str) -> None:
    if name not in cp.installed_solvers():
        pytest.skip(f"{name} is not installed")


def best_share_kept(highest: float | None) -> float:
    """The largest share of answers that stay, by linprog; the first one's probability may have a limit."""
    p = np.array(list(COUNTS.values())) / 100
    n = len(p)
    # P[x, y] <= e^eps sum_z p[z] P[z, y], row by row of the matrix
    limits = [
        np.outer(np.eye(n)[x] - math.exp(0.5) * p, np.eye(n)[y]).ravel()
        for x in range(n)
        for y in range(n)
    ]
    found = linprog(
        -np.diag(p).ravel(),
        A_ub=limits,
        b_ub=np.zeros(n * n),
        A_eq=np.kron(np.eye(n), np.ones(n)),
        b_eq=np.ones(n),
        bounds=[(0, highest), *[(0, None)] * (n * n - 1)],
    )
    return -float(found.fun)


def readme_design(factor: float = 1.0) -> LinearDesign:
    program = design(Prior.from_counts(COUNTS), PML(0.5), ExpectedGain(factor * np.eye(4)))
    assert isinstance(program, LinearDesign)
    return program


@pytest.mark.parametrize("limited", [False, True])
@pytest.mark.parametrize("name", NAMES)
def test_the_design_of_the_readme_is_proved(name: str, limited: bool) -> None:
    skip_unless_installed(name)
    if limited and name not in _TIME_LIMIT_OPTIONS and name != "HIGHS":
        with pytest.raises(SolverUnavailableError, match="time limit cannot be handed to"):
            solve(readme_design(), name.lower(), time_limit=60.0)
        return
    result = solve(readme_design(), name.lower(), time_limit=60.0 if limited else None)
    assert result.status is Status.OPTIMAL
    assert result.value == pytest.approx(best_share_kept(None), abs=1e-7)
    assert result.certificate.verify()


@pytest.mark.parametrize("factor", [1e-9, 1e9])
@pytest.mark.parametrize("name", NAMES)
def test_a_limit_on_one_probability_is_proved_at_any_scale(name: str, factor: float) -> None:
    """A row of one variable, which some solvers turn into a bound and give no dual value."""
    skip_unless_installed(name)
    program = readme_design(factor)
    result = solve(program.with_constraints(cap=program.mechanism[0, 0] <= 0.3), name.lower())
    assert result.status is Status.OPTIMAL
    assert result.value / factor == pytest.approx(best_share_kept(0.3), abs=1e-6)


@pytest.mark.parametrize("name", NAMES)
def test_dual_values_have_the_signs_of_cvxpy(name: str) -> None:
    """The least x + 2 y with x + y = 1, x <= 1/4: one more of the sum costs 2, of the bound it saves 1."""
    skip_unless_installed(name)
    x, y = cp.Variable(nonneg=True), cp.Variable(nonneg=True)
    rows = [x + y == 1, x <= 0.25]
    found = solve_problem(
        cp.Problem(cp.Minimize(x + 2 * y), rows), name, make_options(None, 1e-8), {}
    )
    assert (found.state, found.finished) == ("point", True)
    assert [float(one.value) for one in (x, y)] == pytest.approx([0.25, 0.75], abs=1e-5)
    assert [float(row.dual_value) for row in rows] == pytest.approx([-2.0, 1.0], abs=1e-5)


@pytest.mark.parametrize("name", NAMES)
def test_an_infeasible_program_has_no_point(name: str) -> None:
    skip_unless_installed(name)
    x, y = cp.Variable(nonneg=True), cp.Variable(nonneg=True)
    problem = cp.Problem(cp.Minimize(x + 2 * y), [x + y == -1, x <= 0.25])
    found = solve_declared(problem, name.lower(), make_options(None, 1e-8))
    # PDLP says that it is infeasible or unbounded, and QOCO that it failed
    assert found.state == ("failed" if name in ("PDLP", "QOCO") else "infeasible")
    assert not found.finished


@pytest.mark.parametrize("name", NAMES)
def test_an_unbounded_program_is_not_infeasible(name: str) -> None:
    """GLOP says that it is, and QOCO has an optimum of -6e12."""
    skip_unless_installed(name)
    x, y = cp.Variable(nonneg=True), cp.Variable()
    problem = cp.Problem(cp.Minimize(x + 2 * y), [2 * x + y == 1, x >= 0.25])
    found = solve_declared(problem, name.lower(), make_options(None, 1e-8))
    assert found.state in ("failed", "point")
    assert not found.finished or name == "QOCO"


@pytest.mark.parametrize("unit", [1e-10, 1e10])
@pytest.mark.parametrize("name", NAMES)
def test_a_badly_scaled_row_makes_no_false_claim(name: str, unit: float) -> None:
    """Of an equation divided by 1e10 most solvers state a wrong optimum, and one that it is infeasible."""
    skip_unless_installed(name)
    program = readme_design()
    scaled = unit * program.mechanism[0, 0] <= 0.3 * unit
    result = solve(program.with_constraints(cap=scaled), name.lower())
    best = best_share_kept(0.3)
    assert result.value - 1e-6 <= best <= result.bound + 1e-9
    assert result.certificate.verify()


@pytest.mark.parametrize("name", sorted(_TIME_LIMIT_OPTIONS))
def test_a_solver_that_is_stopped_has_not_finished(name: str) -> None:
    skip_unless_installed(name)
    rng = np.random.default_rng(0)
    x, rows = cp.Variable(30, nonneg=True), rng.random((30, 30))
    problem = cp.Problem(cp.Maximize(rng.random(30) @ x), [cp.sum(x) == 1, rows @ x <= 0.6])
    found = solve_problem(problem, name, make_options(1e-9, 1e-8), {})
    assert (found.state, found.finished) == ("failed", False)
