"""Solving: a documented choice of solver, HiGHS called directly for LPs, cvxpy for the rest."""

from pmlopt.solvers.highs import write_mps
from pmlopt.solvers.solving import solve

__all__ = ["solve", "write_mps"]
