"""Solving: a documented choice of solver, HiGHS called directly for LPs, cvxpy for the rest."""

from pmlopt.solvers.distortion import (
    distortion_leakage,
    distortion_leakage_curve,
    leakage_distortion,
    leakage_distortion_curve,
)
from pmlopt.solvers.envelopes import Envelope, envelope, envelope_curve
from pmlopt.solvers.highs import write_mps
from pmlopt.solvers.records import record_leakage, record_leakage_curve
from pmlopt.solvers.solving import solve
from pmlopt.solvers.worst_case import best_worst_case, worst_case_curve

__all__ = [
    "Envelope",
    "best_worst_case",
    "distortion_leakage",
    "distortion_leakage_curve",
    "envelope",
    "envelope_curve",
    "leakage_distortion",
    "leakage_distortion_curve",
    "record_leakage",
    "record_leakage_curve",
    "solve",
    "worst_case_curve",
    "write_mps",
]
