"""Checks for those who add to pmlopt: a requirement, utility, set of priors, question or method."""

from pmlopt.testing.conformance import (
    ConformanceError,
    check_prior_set,
    check_requirement,
    check_utility,
)
from pmlopt.testing.solved_programs import check_program

__all__ = [
    "ConformanceError",
    "check_prior_set",
    "check_program",
    "check_requirement",
    "check_utility",
]
