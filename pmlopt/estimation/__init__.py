"""Estimates from what was released: frequencies and tables with their errors, and levels from samples."""

from pmlopt.estimation.estimable import Estimable, estimable
from pmlopt.estimation.frequencies import Estimate, cross_mechanism, estimate
from pmlopt.estimation.people import people_needed
from pmlopt.estimation.sampled_levels import SampledLevel, level_from_samples, samples_to_refute

__all__ = [
    "Estimable",
    "Estimate",
    "SampledLevel",
    "cross_mechanism",
    "estimable",
    "estimate",
    "level_from_samples",
    "people_needed",
    "samples_to_refute",
]
