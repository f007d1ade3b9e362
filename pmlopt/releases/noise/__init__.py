"""Noise that is added to numbers, to answers of queries and to counts, calibrated to a PML level."""

from pmlopt.releases.noise.additive import Promise
from pmlopt.releases.noise.kinds import Gaussian, Geometric, Laplace, plocal_failure, plocal_scale
from pmlopt.releases.noise.letters import derive_differences, round_contributions
from pmlopt.releases.noise.query import LaplaceHistogram, QueryNoise, laplace_level, laplace_scale

__all__ = [
    "Gaussian", "Geometric", "Laplace", "LaplaceHistogram", "Promise", "QueryNoise", "derive_differences",
    "laplace_level", "laplace_scale", "plocal_failure", "plocal_scale", "round_contributions",
]  # fmt: skip
