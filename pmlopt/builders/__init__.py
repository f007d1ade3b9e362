"""Design problems as cvxpy problems: data in, `Program` out."""

from pmlopt.builders.columns import ColumnDesign
from pmlopt.builders.declare import design
from pmlopt.builders.distortion import (
    Sense,
    Tradeoff,
    TradeoffProgram,
    penalty_program,
    tradeoff_program,
)
from pmlopt.builders.envelope import EnvelopeProgram, envelope_program
from pmlopt.builders.least import Floor, LeastLeakage, least_leakage, worst_case_utility
from pmlopt.builders.linear import LinearDesign
from pmlopt.builders.program import Design, Program
from pmlopt.builders.record_steps import StepProgram, entropy_program, marginal_program, simplex_program
from pmlopt.builders.records import RecordProgram, record_program

__all__ = [
    "ColumnDesign",
    "Design",
    "EnvelopeProgram",
    "Floor",
    "LeastLeakage",
    "LinearDesign",
    "Program",
    "RecordProgram",
    "Sense",
    "StepProgram",
    "Tradeoff",
    "TradeoffProgram",
    "design",
    "entropy_program",
    "envelope_program",
    "least_leakage",
    "marginal_program",
    "penalty_program",
    "record_program",
    "simplex_program",
    "tradeoff_program",
    "worst_case_utility",
]
