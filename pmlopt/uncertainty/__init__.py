"""Sets of priors: the worst case as a number, and its twin as cvxpy constraints."""

from pmlopt.uncertainty.l1_ball import L1Ball

__all__ = ["L1Ball"]
