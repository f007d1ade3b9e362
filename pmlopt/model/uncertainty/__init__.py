"""Sets of priors: the worst case as a number, and its twin as cvxpy constraints."""

from pmlopt.model.uncertainty.boxes import AllPriors, Box, ChoquetSet, MinimumMass
from pmlopt.model.uncertainty.columns import Cone
from pmlopt.model.uncertainty.confidence import (
    REGIONS,
    balance,
    confidence_ball,
    confidence_box,
    phi,
    weissman_delta,
    weissman_radius,
    weissman_samples,
)
from pmlopt.model.uncertainty.joint_laws import JointLaws
from pmlopt.model.uncertainty.l1_ball import L1Ball
from pmlopt.model.uncertainty.planning import failure_bound, level_with_confidence, samples_needed
from pmlopt.model.uncertainty.prior_set import LeastMean, PriorSet
from pmlopt.model.uncertainty.sensitivity import (
    WorstCase,
    distance,
    leakage_capacity,
    leakage_sensitivity,
    level_bound,
    lipschitz_bound,
    pointwise_capacity,
    robust_level,
    sensitivity_bound,
    sensitivity_bound_is_tight,
)
from pmlopt.model.uncertainty.vertices import Vertices

__all__ = [
    "REGIONS",
    "AllPriors",
    "Box",
    "ChoquetSet",
    "Cone",
    "JointLaws",
    "L1Ball",
    "LeastMean",
    "MinimumMass",
    "PriorSet",
    "Vertices",
    "WorstCase",
    "balance",
    "confidence_ball",
    "confidence_box",
    "distance",
    "failure_bound",
    "leakage_capacity",
    "leakage_sensitivity",
    "level_bound",
    "level_with_confidence",
    "lipschitz_bound",
    "phi",
    "pointwise_capacity",
    "robust_level",
    "samples_needed",
    "sensitivity_bound",
    "sensitivity_bound_is_tight",
    "weissman_delta",
    "weissman_radius",
    "weissman_samples",
]
