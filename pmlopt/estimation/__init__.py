"""Estimates from what was released: frequencies and tables with their errors, and levels from samples."""

from pmlopt.estimation.estimable import Estimable, estimable
from pmlopt.estimation.frequencies import Estimate, cross_mechanism, estimate

__all__ = ["Estimable", "Estimate", "cross_mechanism", "estimable", "estimate"]
