"""What solvers report of time adds up: no more than has passed, and limits count from now on."""

from __future__ import annotations

import time
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import cvxpy as cp
import highspy
import numpy as np
import pytest
from cvxpy.reductions.solvers.solving_chain import SolvingChain

from pmlopt import LDP, PML, ExpectedGain, Prior, design
from pmlopt.solvers import cvxpy_interface, highs
from pmlopt.solvers.parametric_program import MasterProblem
from pmlopt.solvers.solver_result import MethodOptions, SolverResult, make_options

GAINS = ExpectedGain(np.array([[1.0, 0.2, 0.0], [0.1, 0.9, 0.3], [0.0, 0.4, 1.2]]))


def by_bands(options: MethodOptions) -> SolverResult:
    task = design(Prior.uniform(3), PML(0.5), GAINS).build_block_lp()
    assert task is not None
    return highs.solve_by_simplex(task, options)


def by_highs(options: MethodOptions) -> SolverResult:
    return highs.solve_problem(design([0.5, 0.5], LDP(0.5), "hamming").problem, "highs", options)


def by_cvxpy(options: MethodOptions) -> SolverResult:
    problem = design([0.5, 0.5], LDP(0.5), "hamming").problem
    return cvxpy_interface.solve_problem(problem, "CLARABEL", options, {})


@pytest.mark.parametrize("run", [by_bands, by_highs, by_cvxpy])
def test_what_compiling_and_solving_took_is_no_more_than_has_passed(
    run: Callable[[MethodOptions], SolverResult],
) -> None:
    begin = time.perf_counter()
    outcome = run(make_options(None, 1e-9))
    passed = time.perf_counter() - begin
    assert outcome.state == "point"
    assert outcome.compile_seconds >= 0
    assert outcome.solve_seconds >= 0
    assert outcome.compile_seconds + outcome.solve_seconds <= passed


def test_a_solver_that_fails_reports_what_has_passed(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: Any, **__: Any) -> None:
        raise cp.SolverError("none")

    monkeypatch.setattr(SolvingChain, "solve_via_data", fail)
    monkeypatch.setattr(cvxpy_interface, "raise_if_strict", lambda cause: None)
    begin = time.perf_counter()
    outcome = by_cvxpy(make_options(None, 1e-9))
    passed = time.perf_counter() - begin
    assert outcome.state == "failed"
    assert 0 <= outcome.compile_seconds <= outcome.compile_seconds + outcome.solve_seconds <= passed


def test_the_time_that_is_left_counts_from_what_a_master_has_run_already() -> None:
    limits: dict[str, float] = {}
    master: Any = object.__new__(MasterProblem)
    master._highs = SimpleNamespace(
        getRunTime=lambda: 5.0, setOptionValue=limits.__setitem__, run=lambda: None,
        getModelStatus=lambda: highspy.HighsModelStatus.kTimeLimit,
    )  # fmt: skip
    deadline: Any = SimpleNamespace(remaining=lambda least: 2.0)
    with pytest.raises(ArithmeticError):
        master.solve(deadline)
    assert limits == {"time_limit": 7.0}
