"""Leakage per record against expected distortion: Problems 2 and 3 of ENT."""

from pmlopt.solvers.distortion.tradeoffs import (
    distortion_leakage,
    distortion_leakage_curve,
    leakage_distortion,
    leakage_distortion_curve,
)

__all__ = [
    "distortion_leakage",
    "distortion_leakage_curve",
    "leakage_distortion",
    "leakage_distortion_curve",
]
