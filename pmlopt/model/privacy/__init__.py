"""Privacy requirements, each in two forms: a number on a given mechanism, constraints on a variable."""

from pmlopt.model.privacy.approximate_pml import ApproximatePML
from pmlopt.model.privacy.gain_leakage import GainLeakage
from pmlopt.model.privacy.guess_leakage import GuessLeakage
from pmlopt.model.privacy.ldp import LDP
from pmlopt.model.privacy.lip import LIP
from pmlopt.model.privacy.maximal_alpha_leakage import MaximalAlphaLeakage
from pmlopt.model.privacy.maximal_leakage import MaximalLeakage
from pmlopt.model.privacy.metric_privacy import MetricPrivacy
from pmlopt.model.privacy.pml import PML
from pmlopt.model.privacy.ratio_bound import RatioBound
from pmlopt.model.privacy.renyi_pml import RenyiPML
from pmlopt.model.privacy.requirement import Conjunction, Declared, Requirement, parametric_constraints
from pmlopt.model.privacy.secret_leakage import Pufferfish
from pmlopt.model.privacy.sibson_leakage import SibsonLeakage

__all__ = [
    "LDP",
    "LIP",
    "PML",
    "ApproximatePML",
    "Conjunction",
    "Declared",
    "GainLeakage",
    "GuessLeakage",
    "MaximalAlphaLeakage",
    "MaximalLeakage",
    "MetricPrivacy",
    "Pufferfish",
    "RatioBound",
    "RenyiPML",
    "Requirement",
    "SibsonLeakage",
    "parametric_constraints",
]
