"""Noise that is added to numbers, to answers of queries and to counts, calibrated to a PML level."""

from pmlopt.releases.noise.additive import Promise
from pmlopt.releases.noise.binary import BinaryGaussian, BinaryLaplace, laplace_level, laplace_scale
from pmlopt.releases.noise.gaussian import Gaussian, plocal_failure, plocal_scale
from pmlopt.releases.noise.laplace import Geometric, Laplace
from pmlopt.releases.noise.query import (
    LaplaceHistogram,
    QueryNoise,
    derive_differences,
    round_contributions,
)

__all__ = [
    "BinaryGaussian", "BinaryLaplace", "Gaussian", "Geometric", "Laplace", "LaplaceHistogram", "Promise",
    "QueryNoise", "derive_differences", "laplace_level", "laplace_scale", "plocal_failure", "plocal_scale",
    "round_contributions",
]  # fmt: skip
