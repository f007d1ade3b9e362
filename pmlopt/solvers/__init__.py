"""Solvers of linear and conic programs in general: HiGHS, cvxpy, the structured interior point, searches."""
