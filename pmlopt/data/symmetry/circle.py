"""The uniform law on a circle of N letters, with its shifts and reflections."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Any, ClassVar

import numpy as np

from pmlopt.core.arrays import IntArray, Label, whole
from pmlopt.core.records import COUNT, Range
from pmlopt.data.prior import Prior
from pmlopt.data.sampling.categorical import RandomBits
from pmlopt.data.symmetry.prior import PairOrbits, PairSpace, SymmetricPrior, check_orbits
from pmlopt.errors import MechanismError, PriorError, UtilityError


class CirclePrior(SymmetricPrior):
    """The uniform law on N letters in a circle, and its shifts, with reflections or without.

    The orbit of a pair is its displacement `(y - x) mod N`, with reflections its distance along the circle:
    a design has N variables, or N // 2 + 1, and one column. It is the prior of hours of the day, angles, or
    of a density on a circle in N bins of equal mass.

    Args:
        size: N.
        reflections: whether the reflections belong to the group: utilities must then be the same both ways
            round.

    Raises:
        PriorError: N is not a whole number of at least 1, or there are too many orbits to list them.

    Examples:
        >>> from pmlopt import PML, design, solve
        >>> from pmlopt.model.utility import DisplacementLoss
        >>> result = solve(design(CirclePrior(8), PML(0.0), DisplacementLoss(lambda d: min(d, 8 - d))))
        >>> round(result.value, 9)  # nothing may be told: every displacement is as likely
        2.0
    """

    kind: ClassVar[str] = "circle"

    def __init__(self, size: Annotated[int, Range(1), COUNT], reflections: bool = True) -> None:
        object.__setattr__(self, "letters", whole(size, "the size of the circle", PriorError))
        object.__setattr__(self, "reflections", bool(reflections))
        check_orbits(self, self.letters // 2 + 1 if reflections else self.letters)

    letters: int
    reflections: bool

    @property
    def size(self) -> int:
        return self.letters

    def pairs(self, shape: Any = None) -> CirclePairs:
        """The pairs of letters; `shape` is (N, N) or None.

        Raises:
            UtilityError: it is another one.
        """
        if shape not in (None, (self.size, self.size)):
            raise UtilityError(f"the utility is on {shape[0]} letters, and the circle has {self.size}")
        return CirclePairs(self)

    def _listed(self) -> Prior:
        return Prior.uniform(self.size)

    def __repr__(self) -> str:
        return f"Circle({self.size})" if self.reflections else f"Circle({self.size}, reflections=False)"


class CirclePairs(PairSpace):
    """The pairs of letters of a circle: letters and outputs are (k,) arrays of positions."""

    kind: ClassVar[str] = "circle"
    prior: CirclePrior

    def __init__(self, prior: CirclePrior) -> None:
        self.prior = prior
        n = prior.size
        self.displacements = np.arange(n // 2 + 1 if prior.reflections else n)
        twice = (self.displacements > 0) & (2 * self.displacements != n) if prior.reflections else False
        self.orbits = PairOrbits(
            letters=(n,),
            weights=(1,),
            outputs=(n,),
            letter=np.zeros(len(self.displacements), dtype=np.int64),
            output=np.zeros(len(self.displacements), dtype=np.int64),
            counts=tuple((1 + np.broadcast_to(twice, self.displacements.shape)).tolist()),
        )

    @property
    def letter_names(self) -> Sequence[Label]:
        return ["all letters"]

    @property
    def output_names(self) -> Sequence[Label]:
        return ["all outputs"]

    @property
    def names(self) -> Sequence[Label]:
        """The displacements, or the distances where reflections count."""
        return self.displacements.tolist()

    def encode(self, values: Any, outputs: bool = False) -> IntArray:
        found = np.asarray(values)
        whole_numbers = found.ndim == 1 and found.dtype.kind in "iu"
        if not whole_numbers or not ((found >= 0) & (found < self.prior.size)).all():
            raise MechanismError(
                f"the values are no letters of {self.prior!r}: give whole numbers below its size"
            )
        return found.astype(np.int64)

    def decode(self, outputs: Any, letters: bool = False) -> list[Label]:
        return list(outputs.tolist())

    def letter_orbits(self, letters: IntArray) -> IntArray:
        return np.zeros(len(letters), dtype=np.int64)

    def pair_orbits(self, letters: IntArray, outputs: IntArray) -> IntArray:
        ahead = (outputs - letters) % self.prior.size
        return np.minimum(ahead, self.prior.size - ahead) if self.prior.reflections else ahead

    def draw(self, letters: IntArray, places: IntArray, bits: RandomBits) -> IntArray:
        steps = self.displacements[places]
        if self.prior.reflections:
            steps = np.where(bits.words(len(steps)) & np.uint64(1), steps, -steps)
        return np.asarray((letters + steps) % self.prior.size)

    def representatives(self) -> tuple[IntArray, IntArray]:
        return np.zeros_like(self.displacements), self.displacements

    def images(self, rng: np.random.Generator) -> tuple[IntArray, IntArray]:
        n, count = self.prior.size, len(self.displacements)
        letters = rng.integers(n, size=count)
        signs = rng.choice([-1, 1], size=count) if self.prior.reflections else 1
        return letters, (letters + signs * self.displacements) % n

    def listed(self, outputs: bool = False) -> IntArray:
        return np.arange(self.prior.size)
