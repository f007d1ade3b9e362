"""Small convex programs whose answers are only a start: what is proved does not rest on them."""

from __future__ import annotations

import contextlib
import warnings

from pmlopt.core.lazy_imports import cp


def minimize_approximately(goal: cp.Expression, rules: list[cp.Constraint]) -> None:
    """Set the variables of a convex program to where it is least, as near as Clarabel comes."""
    for tolerance in (1e-11, 1e-8):
        tight = dict.fromkeys(("tol_gap_abs", "tol_gap_rel", "tol_feas"), tolerance)
        with warnings.catch_warnings(), contextlib.suppress(cp.SolverError):
            warnings.simplefilter("ignore")  # where it stops a digit early
            cp.Problem(cp.Minimize(goal), rules).solve(solver="CLARABEL", **tight)
            return
