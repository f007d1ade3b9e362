"""Privacy requirements, each in two forms: a number on a given mechanism, constraints on a variable."""

from pmlopt.privacy.approximate_pml import ApproximatePML
from pmlopt.privacy.by_name import requirement_named
from pmlopt.privacy.ldp import LDP
from pmlopt.privacy.lip import LIP
from pmlopt.privacy.maximal_leakage import MaximalLeakage
from pmlopt.privacy.pml import PML
from pmlopt.privacy.requirement import Declared, Requirement

__all__ = [
    "LDP",
    "LIP",
    "PML",
    "ApproximatePML",
    "Declared",
    "MaximalLeakage",
    "Requirement",
    "requirement_named",
]
