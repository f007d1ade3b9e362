"""General linear and conic solvers: HiGHS, cvxpy, a structured interior point, and searches."""
