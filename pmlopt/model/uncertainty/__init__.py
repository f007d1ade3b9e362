"""Sets of priors: the worst case as a number, and its twin as cvxpy constraints."""

from pmlopt.model.uncertainty.boxes import AllPriors, Box, ChoquetSet, MinimumMass
from pmlopt.model.uncertainty.columns import Cone
from pmlopt.model.uncertainty.confidence import (
    REGIONS,
    confidence_ball,
    confidence_box,
    confidence_chain,
    phi,
    weissman_delta,
    weissman_kappa,
    weissman_radius,
    weissman_samples,
)
from pmlopt.model.uncertainty.joint_laws import JointLaws
from pmlopt.model.uncertainty.l1_ball import L1Ball
from pmlopt.model.uncertainty.planning import failure_bound, samples_needed, true_level_with_confidence
from pmlopt.model.uncertainty.prior_set import LeastMean, PriorSet
from pmlopt.model.uncertainty.sensitivity import (
    WorstCase,
    distance,
    leakage_capacity,
    leakage_sensitivity,
    level_increase_is_attained,
    level_increase_within_distance,
    level_needed_at_centre,
    level_within_distance,
    lipschitz_bound,
    pointwise_capacity,
)
from pmlopt.model.uncertainty.vertices import ConvexHull

__all__ = [
    "REGIONS",
    "AllPriors",
    "Box",
    "ChoquetSet",
    "Cone",
    "ConvexHull",
    "JointLaws",
    "L1Ball",
    "LeastMean",
    "MinimumMass",
    "PriorSet",
    "WorstCase",
    "confidence_ball",
    "confidence_box",
    "confidence_chain",
    "distance",
    "failure_bound",
    "leakage_capacity",
    "leakage_sensitivity",
    "level_increase_is_attained",
    "level_increase_within_distance",
    "level_needed_at_centre",
    "level_within_distance",
    "lipschitz_bound",
    "phi",
    "pointwise_capacity",
    "samples_needed",
    "true_level_with_confidence",
    "weissman_delta",
    "weissman_kappa",
    "weissman_radius",
    "weissman_samples",
]
