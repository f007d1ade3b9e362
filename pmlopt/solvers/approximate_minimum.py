"""Heuristic solution of small convex programs, whose results are only starting points."""

from __future__ import annotations

import contextlib
import warnings

from pmlopt.core.lazy_imports import cp


def minimize_approximately(goal: cp.Expression, rules: list[cp.Constraint]) -> None:
    """Minimise a small convex program with Clarabel, approximately, and set its variables."""
    solve_approximately(cp.Problem(cp.Minimize(goal), rules))


def solve_approximately(problem: cp.Problem) -> bool:
    """Solve a small convex program with Clarabel, approximately, and set its variables; return whether it
    has a point.

    A program with parameters is compiled once: what is solved before has no influence, but where the solver
    breaks off, the variables keep the values of the time before.
    """
    for tolerance in (1e-11, 1e-8):
        tight = dict.fromkeys(("tol_gap_abs", "tol_gap_rel", "tol_feas"), tolerance)
        with warnings.catch_warnings(), contextlib.suppress(cp.SolverError):
            warnings.simplefilter("ignore")  # where it stops a digit early
            problem.solve(solver="CLARABEL", warm_start=False, **tight)
            return problem.status in (cp.OPTIMAL, cp.OPTIMAL_INACCURATE)
    return False
