"""Alphabets with symmetry: priors that a group leaves as they are, orbits, and mechanisms by orbits."""

from pmlopt.data.symmetry.circle import Circle
from pmlopt.data.symmetry.invariant import Invariant, reflection, rotation
from pmlopt.data.symmetry.orbit_mechanism import OrbitMechanism
from pmlopt.data.symmetry.prior import Cells, PairOrbits, PairSpace, SymmetricPrior
from pmlopt.data.symmetry.product import Product
from pmlopt.data.symmetry.types import Types

__all__ = [
    "Cells",
    "Circle",
    "Invariant",
    "OrbitMechanism",
    "PairOrbits",
    "PairSpace",
    "Product",
    "SymmetricPrior",
    "Types",
    "reflection",
    "rotation",
]
