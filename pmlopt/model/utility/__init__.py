"""Utilities, each in two forms: a number on a given mechanism, and what an optimization problem needs."""

from pmlopt.model.utility.estimation_error import WORKLOADS, EstimationError, workload_matrix
from pmlopt.model.utility.given import UtilityLike, as_utility, informations
from pmlopt.model.utility.linear import (
    LOSSES,
    ExpectedGain,
    ExpectedLoss,
    LinearUtility,
    Utility,
    absolute,
    hamming,
    match,
    squared,
)
from pmlopt.model.utility.orders import highest_threshold, kept_threshold, utility_order
from pmlopt.model.utility.subconvex import (
    ChiSquare,
    FInformation,
    GuessingProbability,
    Hellinger,
    MutualInformation,
    SubConvex,
    TotalVariation,
)
from pmlopt.model.utility.symmetric import (
    CoordinateGain,
    CoordinateLoss,
    DisplacementGain,
    DisplacementLoss,
    DistanceLoss,
    SumOfParts,
    on_circle,
)

__all__ = [
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
    "UtilityLike",
    "absolute",
    "as_utility",
    "hamming",
    "highest_threshold",
    "informations",
    "kept_threshold",
    "match",
    "on_circle",
    "squared",
    "utility_order",
    "workload_matrix",
]
