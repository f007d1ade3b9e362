"""Continuous mechanisms: additive noise calibrated to a PML level."""

from pmlopt.releases.noise.binary import Promise
from pmlopt.releases.noise.gaussian import BinaryGaussian, plocal_failure, plocal_scale
from pmlopt.releases.noise.histogram import LaplaceHistogram
from pmlopt.releases.noise.laplace import BinaryLaplace, laplace_level, laplace_scale

__all__ = [
    "BinaryGaussian", "BinaryLaplace", "LaplaceHistogram", "Promise", "laplace_level", "laplace_scale",
    "plocal_failure", "plocal_scale",
]  # fmt: skip
