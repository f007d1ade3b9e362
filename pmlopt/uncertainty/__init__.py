"""Sets of priors: the worst case as a number, and its twin as cvxpy constraints."""

from pmlopt.uncertainty.boxes import AllPriors, Box, MinimumMass
from pmlopt.uncertainty.capacity import WorstCase, leakage_capacity, leakage_sensitivity, pointwise_capacity
from pmlopt.uncertainty.choquet import ChoquetSet
from pmlopt.uncertainty.cone import Cone
from pmlopt.uncertainty.confidence import (
    REGIONS,
    balance,
    confidence_ball,
    confidence_box,
    phi,
    weissman_delta,
    weissman_radius,
    weissman_samples,
)
from pmlopt.uncertainty.joint_laws import JointLaws
from pmlopt.uncertainty.l1_ball import L1Ball
from pmlopt.uncertainty.planning import failure_bound, level_with_confidence, samples_needed
from pmlopt.uncertainty.prior_set import LeastMean, PriorSet
from pmlopt.uncertainty.sensitivity import (
    distance,
    level_bound,
    lipschitz_bound,
    robust_level,
    sensitivity_bound,
    sensitivity_bound_is_tight,
)
from pmlopt.uncertainty.vertices import Vertices

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
