"""Utilities, each in two forms: a number on a given mechanism, an expression on a variable."""

from pmlopt.utility.linear import ExpectedGain, ExpectedLoss, LinearUtility
from pmlopt.utility.losses import LOSSES, absolute, hamming, squared

__all__ = [
    "LOSSES",
    "ExpectedGain",
    "ExpectedLoss",
    "LinearUtility",
    "absolute",
    "hamming",
    "squared",
]
