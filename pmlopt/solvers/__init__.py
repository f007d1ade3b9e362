"""Solving: a documented choice of solver, HiGHS called directly for LPs, cvxpy for the rest."""

from pmlopt.solvers.envelopes import Envelope, envelope, envelope_curve
from pmlopt.solvers.highs import write_mps
from pmlopt.solvers.solving import solve
from pmlopt.solvers.worst_case import best_worst_case, worst_case_curve

__all__ = [
    "Envelope",
    "best_worst_case",
    "envelope",
    "envelope_curve",
    "solve",
    "worst_case_curve",
    "write_mps",
]
