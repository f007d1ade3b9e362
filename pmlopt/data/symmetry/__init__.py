"""Alphabets with symmetry: priors that a group leaves as they are, orbits, and mechanisms by orbits."""

from pmlopt.data.symmetry.invariant import CirclePrior, InvariantPrior, reflection, rotation
from pmlopt.data.symmetry.orbit_mechanism import OrbitMechanism
from pmlopt.data.symmetry.prior import Cells, PairOrbits, PairSpace, SymmetricPrior
from pmlopt.data.symmetry.product import ProductPrior
from pmlopt.data.symmetry.types import IIDPrior

__all__ = [
    "Cells",
    "CirclePrior",
    "IIDPrior",
    "InvariantPrior",
    "OrbitMechanism",
    "PairOrbits",
    "PairSpace",
    "ProductPrior",
    "SymmetricPrior",
    "reflection",
    "rotation",
]
