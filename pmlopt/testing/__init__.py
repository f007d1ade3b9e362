"""Conformance checks for extensions: requirements, utilities, sets of priors and methods."""

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
