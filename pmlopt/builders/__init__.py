"""Design problems as cvxpy problems: data in, `Program` out."""

from pmlopt.builders.columns import ColumnDesign
from pmlopt.builders.declare import design
from pmlopt.builders.linear import LinearDesign
from pmlopt.builders.program import Program

__all__ = ["ColumnDesign", "LinearDesign", "Program", "design"]
