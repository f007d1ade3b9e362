"""Privacy requirements, each in two forms: a number on a given mechanism, constraints on a variable."""

from pmlopt.privacy.approximate import ApproximatePML
from pmlopt.privacy.ldp import LDP
from pmlopt.privacy.lip import LIP
from pmlopt.privacy.maximal import MaximalLeakage
from pmlopt.privacy.named import requirement_named
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
