"""Utilities, each in two forms: a number on a given mechanism, and what an optimization problem needs."""

from pmlopt.utility.by_name import INFORMATIONS
from pmlopt.utility.distance_loss import DistanceLoss
from pmlopt.utility.estimation_error import EstimationError
from pmlopt.utility.f_information import ChiSquare, FInformation, Hellinger, MutualInformation, TotalVariation
from pmlopt.utility.linear import ExpectedGain, ExpectedLoss, LinearUtility
from pmlopt.utility.losses import LOSSES, absolute, hamming, squared
from pmlopt.utility.orders import highest_threshold, kept_threshold, utility_order
from pmlopt.utility.subconvex import GuessingProbability, SubConvex
from pmlopt.utility.symmetric import (
    CoordinateGain,
    CoordinateLoss,
    DisplacementGain,
    DisplacementLoss,
    SumOfParts,
    on_circle,
)
from pmlopt.utility.utility import Utility
from pmlopt.utility.workloads import WORKLOADS, workload_matrix

__all__ = [
    "INFORMATIONS",
    "LOSSES",
    "WORKLOADS",
    "ChiSquare",
    "CoordinateGain",
    "CoordinateLoss",
    "DisplacementGain",
    "DisplacementLoss",
    "DistanceLoss",
    "EstimationError",
    "ExpectedGain",
    "ExpectedLoss",
    "FInformation",
    "GuessingProbability",
    "Hellinger",
    "LinearUtility",
    "MutualInformation",
    "SubConvex",
    "SumOfParts",
    "TotalVariation",
    "Utility",
    "absolute",
    "hamming",
    "highest_threshold",
    "kept_threshold",
    "on_circle",
    "squared",
    "utility_order",
    "workload_matrix",
]
