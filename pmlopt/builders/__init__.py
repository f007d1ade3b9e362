"""Design problems as cvxpy problems: data in, `Program` out."""

from pmlopt.builders.columns import ColumnDesign
from pmlopt.builders.declare import design
from pmlopt.builders.envelope import EnvelopeProgram, envelope_program
from pmlopt.builders.least import Floor, LeastLeakage, least_leakage, worst_case_utility
from pmlopt.builders.linear import LinearDesign
from pmlopt.builders.program import Design, Program

__all__ = [
    "ColumnDesign",
    "Design",
    "EnvelopeProgram",
    "Floor",
    "LeastLeakage",
    "LinearDesign",
    "Program",
    "design",
    "envelope_program",
    "least_leakage",
    "worst_case_utility",
]
