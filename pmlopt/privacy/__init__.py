"""Privacy requirements, each in two forms: a number on a given mechanism, constraints on a variable."""

from pmlopt.privacy.approximate_pml import ApproximatePML
from pmlopt.privacy.by_name import requirement_named
from pmlopt.privacy.gain_leakage import GainLeakage
from pmlopt.privacy.ldp import LDP
from pmlopt.privacy.lip import LIP
from pmlopt.privacy.maximal_leakage import MaximalLeakage
from pmlopt.privacy.metric_privacy import MetricPrivacy
from pmlopt.privacy.parameters import parametric_constraints
from pmlopt.privacy.pml import PML
from pmlopt.privacy.ratio_bound import RatioBound
from pmlopt.privacy.requirement import Conjunction, Declared, Requirement
from pmlopt.privacy.secret_leakage import Pufferfish

__all__ = [
    "LDP",
    "LIP",
    "PML",
    "ApproximatePML",
    "Conjunction",
    "Declared",
    "GainLeakage",
    "MaximalLeakage",
    "MetricPrivacy",
    "Pufferfish",
    "RatioBound",
    "Requirement",
    "parametric_constraints",
    "requirement_named",
]
