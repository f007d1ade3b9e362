"""Mechanisms and values known by formula: warm starts and verification oracles."""

from pmlopt.closed_forms.extremal import binary, high_privacy, k_singular, robust_binary, uniform
from pmlopt.closed_forms.ldp import (
    exponential,
    ldp_for_pml,
    pml_of_ldp,
    randomized_response,
)
from pmlopt.closed_forms.trivial import constant, deterministic

__all__ = [
    "binary",
    "constant",
    "deterministic",
    "exponential",
    "high_privacy",
    "k_singular",
    "ldp_for_pml",
    "pml_of_ldp",
    "randomized_response",
    "robust_binary",
    "uniform",
]
