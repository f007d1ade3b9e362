"""Checks for those who add to pmlopt: a requirement, a utility or a set of priors in all of its forms."""

from pmlopt.testing.conformance import (
    ConformanceError,
    check_prior_set,
    check_requirement,
    check_utility,
)

__all__ = ["ConformanceError", "check_prior_set", "check_requirement", "check_utility"]
