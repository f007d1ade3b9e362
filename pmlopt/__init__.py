"""pmlopt designs privacy mechanisms by convex optimization, and proves the bound it claims."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pmlopt import closed_forms as closed_forms
    from pmlopt import errors as errors
    from pmlopt import queries as queries
    from pmlopt.builders import Program as Program
    from pmlopt.builders import design as design
    from pmlopt.builders import least_leakage as least_leakage
    from pmlopt.builders import worst_case_utility as worst_case_utility
    from pmlopt.closed_forms import utility_order as utility_order
    from pmlopt.closed_forms import utility_safe as utility_safe
    from pmlopt.measures import binary_envelope as binary_envelope
    from pmlopt.measures import envelope_bounds as envelope_bounds
    from pmlopt.measures import failure_probability as failure_probability
    from pmlopt.measures import information_density as information_density
    from pmlopt.measures import ldp_level as ldp_level
    from pmlopt.measures import leakage_level as leakage_level
    from pmlopt.measures import leakage_parts as leakage_parts
    from pmlopt.measures import leakage_quantile as leakage_quantile
    from pmlopt.measures import lip_levels as lip_levels
    from pmlopt.measures import maximal_leakage as maximal_leakage
    from pmlopt.measures import mutual_information as mutual_information
    from pmlopt.measures import pointwise_leakage as pointwise_leakage
    from pmlopt.measures import privacy_region as privacy_region
    from pmlopt.measures import region_boundaries as region_boundaries
    from pmlopt.mechanism import Mechanism as Mechanism
    from pmlopt.prior import Prior as Prior
    from pmlopt.privacy import LDP as LDP
    from pmlopt.privacy import LIP as LIP
    from pmlopt.privacy import PML as PML
    from pmlopt.privacy import ApproximatePML as ApproximatePML
    from pmlopt.privacy import MaximalLeakage as MaximalLeakage
    from pmlopt.result import Result as Result
    from pmlopt.result import Status as Status
    from pmlopt.solvers import best_worst_case as best_worst_case
    from pmlopt.solvers import distortion_leakage as distortion_leakage
    from pmlopt.solvers import distortion_leakage_curve as distortion_leakage_curve
    from pmlopt.solvers import envelope as envelope
    from pmlopt.solvers import envelope_curve as envelope_curve
    from pmlopt.solvers import leakage_distortion as leakage_distortion
    from pmlopt.solvers import leakage_distortion_curve as leakage_distortion_curve
    from pmlopt.solvers import record_leakage as record_leakage
    from pmlopt.solvers import record_leakage_curve as record_leakage_curve
    from pmlopt.solvers import solve as solve
    from pmlopt.solvers import worst_case_curve as worst_case_curve
    from pmlopt.solvers import write_mps as write_mps
    from pmlopt.sweeps import Sweep as Sweep
    from pmlopt.sweeps import sweep as sweep
    from pmlopt.uncertainty import AllPriors as AllPriors
    from pmlopt.uncertainty import Box as Box
    from pmlopt.uncertainty import L1Ball as L1Ball
    from pmlopt.uncertainty import MinimumMass as MinimumMass
    from pmlopt.uncertainty import Vertices as Vertices
    from pmlopt.uncertainty import balance as balance
    from pmlopt.uncertainty import confidence_ball as confidence_ball
    from pmlopt.uncertainty import confidence_box as confidence_box
    from pmlopt.uncertainty import failure_bound as failure_bound
    from pmlopt.uncertainty import leakage_capacity as leakage_capacity
    from pmlopt.uncertainty import leakage_sensitivity as leakage_sensitivity
    from pmlopt.uncertainty import level_bound as level_bound
    from pmlopt.uncertainty import level_with_confidence as level_with_confidence
    from pmlopt.uncertainty import lipschitz_bound as lipschitz_bound
    from pmlopt.uncertainty import robust_level as robust_level
    from pmlopt.uncertainty import samples_needed as samples_needed
    from pmlopt.uncertainty import sensitivity_bound as sensitivity_bound
    from pmlopt.uncertainty import weissman_radius as weissman_radius
    from pmlopt.utility import ExpectedGain as ExpectedGain
    from pmlopt.utility import ExpectedLoss as ExpectedLoss
    from pmlopt.utility import FInformation as FInformation
    from pmlopt.utility import MutualInformation as MutualInformation
    from pmlopt.utility import SubConvex as SubConvex

__version__ = "0.1.0"

# cvxpy takes a second to import: each name is loaded from its module when it is first used
_HOME = {
    "pmlopt.builders": ("Program", "design", "least_leakage", "worst_case_utility"),
    "pmlopt.closed_forms": ("utility_order", "utility_safe"),
    "pmlopt.measures": (
        "binary_envelope",
        "envelope_bounds",
        "failure_probability",
        "information_density",
        "ldp_level",
        "leakage_level",
        "leakage_parts",
        "leakage_quantile",
        "lip_levels",
        "maximal_leakage",
        "mutual_information",
        "pointwise_leakage",
        "privacy_region",
        "region_boundaries",
    ),
    "pmlopt.mechanism": ("Mechanism",),
    "pmlopt.prior": ("Prior",),
    "pmlopt.privacy": ("LDP", "LIP", "PML", "ApproximatePML", "MaximalLeakage"),
    "pmlopt.result": ("Result", "Status"),
    "pmlopt.solvers": (
        "best_worst_case",
        "distortion_leakage",
        "distortion_leakage_curve",
        "envelope",
        "envelope_curve",
        "leakage_distortion",
        "leakage_distortion_curve",
        "record_leakage",
        "record_leakage_curve",
        "solve",
        "worst_case_curve",
        "write_mps",
    ),
    "pmlopt.sweeps": ("Sweep", "sweep"),
    "pmlopt.uncertainty": (
        "AllPriors",
        "Box",
        "L1Ball",
        "MinimumMass",
        "Vertices",
        "balance",
        "confidence_ball",
        "confidence_box",
        "failure_bound",
        "leakage_capacity",
        "leakage_sensitivity",
        "level_bound",
        "level_with_confidence",
        "lipschitz_bound",
        "robust_level",
        "samples_needed",
        "sensitivity_bound",
        "weissman_radius",
    ),
    "pmlopt.utility": ("ExpectedGain", "ExpectedLoss", "FInformation", "MutualInformation", "SubConvex"),
}
_MODULES = ("closed_forms", "errors", "queries")
_MODULE_OF = {name: module for module, names in _HOME.items() for name in names}

__all__ = sorted([*_MODULE_OF, *_MODULES])  # pyright: ignore[reportUnsupportedDunderAll]


def __getattr__(name: str) -> Any:
    if name in _MODULE_OF:
        return getattr(import_module(_MODULE_OF[name]), name)
    if name in _MODULES:
        return import_module(f"pmlopt.{name}")
    raise AttributeError(f"module 'pmlopt' has no attribute {name!r}")


def __dir__() -> list[str]:
    return [*__all__, "__version__"]
