"""No word of a solver is a claim: whatever status one states, with any point, the result is as true."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import cvxpy as cp
import numpy as np
import pytest
from cvxpy.reductions.solution import Solution
from cvxpy.reductions.solvers.solving_chain import SolvingChain
from oracles.designs import optimum

from pmlopt import PML, design, leakage_level, solve
from pmlopt.errors import InfeasibleError, SolverError
from pmlopt.programs import Status
from pmlopt.programs.linear.program import LinearDesign
from pmlopt.solvers import highs
from pmlopt.solvers.solver_result import SolverResult

PRIOR = [0.5, 0.3, 0.2]


def compute_least_loss() -> float:
    """Compute the optimum from the definitions, by scipy."""
    own = -np.eye(9)[8:]
    return 1 - optimum(np.array(PRIOR), PML(0.4), np.eye(3), own, np.array([-0.3])).value


def make_program(least: float = 0.3) -> LinearDesign:
    program = design(PRIOR, PML(0.4), "hamming")
    assert isinstance(program, LinearDesign)
    return program.with_constraints(own=program.mechanism[2, 2] >= least)


def lie(monkeypatch: pytest.MonkeyPatch, solver: str, status: str, entry: float) -> None:
    """Let a solver of cvxpy state a status, with a point of one number and dual values of zero."""
    real = SolvingChain.invert

    def invert(self: SolvingChain, raw: Any, inverse: Any) -> Solution:
        found = real(self, raw, inverse)
        if self.solver.name() != solver:
            return found
        values = {key: np.full(np.shape(one), entry) for key, one in found.primal_vars.items()}
        duals = {key: 0.0 * one for key, one in found.dual_vars.items()}
        return Solution(status, entry, values, duals, found.attr)

    monkeypatch.setattr(SolvingChain, "invert", invert)


STATUSES = sorted({
    *cp.settings.SOLUTION_PRESENT, *cp.settings.INF_OR_UNB, *cp.settings.ERROR, cp.settings.USER_LIMIT,
    "a word of its own",
})  # fmt: skip


@pytest.mark.parametrize("entry", [1e12, float("nan")])
@pytest.mark.parametrize("status", STATUSES)
def test_a_false_status_with_any_point_makes_no_false_claim(
    status: str, entry: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    lie(monkeypatch, "SCS", status, entry)
    found = solve(make_program(), "scs")
    assert found.status is not Status.OPTIMAL
    assert found.certificate.verify()
    assert leakage_level(PRIOR, found.matrix) <= 0.4 + 1e-12
    assert found.matrix[2, 2] >= 0.3 - 1e-6
    assert found.bound - 1e-9 <= compute_least_loss() <= found.value + 1e-9


def call_all_infeasible(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let HiGHS call every program infeasible."""
    real = highs.run_loaded

    def run(*arguments: Any, **named: Any) -> SolverResult:
        return replace(real(*arguments, **named), state="infeasible")

    monkeypatch.setattr(highs, "run_loaded", run)


def test_one_solver_alone_makes_no_program_infeasible(monkeypatch: pytest.MonkeyPatch) -> None:
    call_all_infeasible(monkeypatch)
    found = solve(make_program())
    assert found.status is Status.OPTIMAL
    assert found.value == pytest.approx(compute_least_loss(), abs=1e-6)
    assert "clarabel does not find it infeasible" in str(found.attempts)
    with pytest.raises(SolverError):  # and where there is no time for a second one
        solve(make_program(), time_limit=1e-6)
    with pytest.raises(InfeasibleError, match="as clarabel finds too"):
        solve(make_program(1.1))
