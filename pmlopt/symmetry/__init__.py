"""Alphabets with symmetry: priors that a group leaves as they are, orbits, and mechanisms by orbits."""

from pmlopt.symmetry.circle import Circle
from pmlopt.symmetry.invariant import Invariant, reflection, rotation
from pmlopt.symmetry.orbit_mechanism import OrbitMechanism
from pmlopt.symmetry.pair_orbits import Cells, PairOrbits
from pmlopt.symmetry.prior import PairSpace, SymmetricPrior
from pmlopt.symmetry.product import Product
from pmlopt.symmetry.types import Types

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
