"""Design problems as cvxpy problems: data in, `Program` out."""

from pmlopt.builders.linear_design import design
from pmlopt.builders.program import Program

__all__ = ["Program", "design"]
