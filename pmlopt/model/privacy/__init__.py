"""Privacy requirements: leakage levels of a mechanism, and the matching optimization constraints."""

from pmlopt.model.privacy.approximate_pml import ApproximatePML
from pmlopt.model.privacy.conjunction import RequirementConjunction
from pmlopt.model.privacy.guess_leakage import GuessLeakage
from pmlopt.model.privacy.metric_privacy import MetricPrivacy
from pmlopt.model.privacy.named_bounds import LDP, LIP, PML, MaximalLeakage
from pmlopt.model.privacy.of_order import MaximalAlphaLeakage, SibsonLeakage
from pmlopt.model.privacy.parametric import parametric_constraints
from pmlopt.model.privacy.pointwise_cost import PMC
from pmlopt.model.privacy.ratio_bound import GainLeakage, RatioBound
from pmlopt.model.privacy.renyi_pml import RenyiPML
from pmlopt.model.privacy.requirement import CvxpyConstraints, Requirement
from pmlopt.model.privacy.secret_leakage import Pufferfish
from pmlopt.model.privacy.vulnerability import Vulnerability

__all__ = [
    "LDP",
    "LIP",
    "PMC",
    "PML",
    "ApproximatePML",
    "CvxpyConstraints",
    "GainLeakage",
    "GuessLeakage",
    "MaximalAlphaLeakage",
    "MaximalLeakage",
    "MetricPrivacy",
    "Pufferfish",
    "RatioBound",
    "RenyiPML",
    "Requirement",
    "RequirementConjunction",
    "SibsonLeakage",
    "Vulnerability",
    "parametric_constraints",
]
