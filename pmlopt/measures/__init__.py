"""How much a given mechanism leaks and how useful it is: numpy only, everything in nats."""

from pmlopt.measures.channel import ldp_level, maximal_leakage
from pmlopt.measures.information import mutual_information
from pmlopt.measures.leakage import (
    failure_probability,
    information_density,
    leakage_level,
    lip_levels,
    pointwise_leakage,
)
from pmlopt.measures.regions import privacy_region, region_boundaries

__all__ = [
    "failure_probability",
    "information_density",
    "ldp_level",
    "leakage_level",
    "lip_levels",
    "maximal_leakage",
    "mutual_information",
    "pointwise_leakage",
    "privacy_region",
    "region_boundaries",
]
