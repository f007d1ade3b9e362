"""Several independent secrets side by side, each with a group of its own."""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import product
from typing import Any, ClassVar

import numpy as np

from pmlopt.core.arrays import IntArray, Label
from pmlopt.data.prior import Prior
from pmlopt.data.sampling.categorical import RandomBits
from pmlopt.data.symmetry.prior import PairOrbits, PairSpace, SymmetricPrior, check_orbits, length_of, taken
from pmlopt.errors import MechanismError, PriorError, UtilityError


class ProductPrior(SymmetricPrior):
    """Independent symmetric secrets side by side, and the product of their groups.

    A letter is a tuple of one letter of each part, such as a table of binary records beside an hour of the
    day, or attributes in groups of equal law. An orbit of pairs is one of each part: their numbers multiply.

    Args:
        parts: symmetric priors.

    Raises:
        PriorError: there are none, or one is no symmetric prior.

    Examples:
        >>> from pmlopt.data.symmetry import IIDPrior
        >>> both = ProductPrior(IIDPrior([0.7, 0.3], 4), IIDPrior([0.9, 0.1], 3))
        >>> both.size, both.pairs().orbits.count  # 35 times 20
        (128, 700)
    """

    def __init__(self, *parts: SymmetricPrior) -> None:
        if not parts or not all(isinstance(part, SymmetricPrior) for part in parts):
            raise PriorError(
                f"a product is of symmetric priors such as Types([0.7, 0.3], 4), not {parts!r:.80}"
            )
        object.__setattr__(self, "parts", parts)

    kind: ClassVar[str] = "product"
    parts: tuple[SymmetricPrior, ...]

    @property
    def size(self) -> int:
        return math.prod(part.size for part in self.parts)

    def pairs(self, shape: Any = None) -> ProductPairs:
        """The pairs of tuples; `shape` has one entry for each part, or is None.

        Raises:
            UtilityError: it has another number of entries.
            PriorError: there are too many orbits to list them.
        """
        if shape is not None and len(shape) != len(self.parts):
            raise UtilityError(
                f"the utility is a sum over {len(shape)} parts, and the product has {len(self.parts)}"
            )
        shapes = (None,) * len(self.parts) if shape is None else shape
        return ProductPairs(self, [part.pairs(one) for part, one in zip(self.parts, shapes, strict=True)])

    def _listed(self) -> Prior:
        parts = [part.listed() for part in self.parts]
        weights = [math.prod(several) for several in product(*(part.weights for part in parts))]
        return Prior.from_weights(weights, list(product(*(part.labels for part in parts))))

    def __repr__(self) -> str:
        return f"Product({', '.join(map(repr, self.parts))})"


class ProductPairs(PairSpace):
    """The pairs of tuples: letters and outputs are lists of what each part makes of them."""

    kind: ClassVar[str] = "product"
    prior: ProductPrior
    spaces: tuple[PairSpace, ...]

    @classmethod
    def from_fields(cls, spaces: tuple[PairSpace, ...]) -> ProductPairs:
        """As a file has it: by the pairs of each part."""
        return cls(ProductPrior(*(space.prior for space in spaces)), spaces)

    def __init__(self, prior: ProductPrior, spaces: Sequence[PairSpace]) -> None:
        self.prior = prior
        self.spaces = tuple(spaces)
        several = [space.orbits for space in spaces]
        count = math.prod(orbits.count for orbits in several)
        check_orbits(prior, count)
        places = np.indices([orbits.count for orbits in several]).reshape(len(several), -1)
        letter = _mixed(
            [o.letter[k] for o, k in zip(several, places, strict=True)], [len(o.letters) for o in several]
        )
        output = _mixed(
            [o.output[k] for o, k in zip(several, places, strict=True)], [len(o.outputs) for o in several]
        )
        order = np.lexsort((letter, output))
        self.places: IntArray = places[:, order]
        """(parts, C) the orbit of pairs of each part, for each orbit of pairs of the product."""
        self._rank = np.empty(count, dtype=np.int64)
        self._rank[order] = np.arange(count)
        counts = _outer([orbits.counts for orbits in several])
        self.orbits = PairOrbits(
            letters=tuple(_outer([orbits.letters for orbits in several]).tolist()),
            weights=tuple(_outer([orbits.weights for orbits in several]).tolist()),
            outputs=tuple(_outer([orbits.outputs for orbits in several]).tolist()),
            letter=letter[order],
            output=output[order],
            counts=tuple(counts[order].tolist()),
        )

    @property
    def letter_names(self) -> Sequence[Label]:
        return list(product(*(space.letter_names for space in self.spaces)))

    @property
    def output_names(self) -> Sequence[Label]:
        return list(product(*(space.output_names for space in self.spaces)))

    @property
    def names(self) -> Sequence[Label]:
        several = [space.names for space in self.spaces]
        return [
            tuple(names[k] for names, k in zip(several, own, strict=True)) for own in self.places.T.tolist()
        ]

    def encode(self, values: Any, outputs: bool = False) -> list[Any]:
        columns = list(zip(*values, strict=True)) if not isinstance(values, tuple) else list(values)
        if len(columns) != len(self.spaces):
            raise MechanismError(
                f"the values have {len(columns)} parts, and the product {len(self.spaces)}: give tuples, or "
                "a tuple of one array for each part"
            )
        return [space.encode(column, outputs) for space, column in zip(self.spaces, columns, strict=True)]

    def decode(self, outputs: Any, letters: bool = False) -> list[Label]:
        return list(
            zip(*(s.decode(part, letters) for s, part in zip(self.spaces, outputs, strict=True)), strict=True)
        )

    def letter_orbits(self, letters: Any) -> IntArray:
        found = [space.letter_orbits(part) for space, part in zip(self.spaces, letters, strict=True)]
        return _mixed(found, [len(space.orbits.letters) for space in self.spaces])

    def pair_orbits(self, letters: Any, outputs: Any) -> IntArray:
        found = [s.pair_orbits(x, y) for s, x, y in zip(self.spaces, letters, outputs, strict=True)]
        return self._rank[_mixed(found, [space.orbits.count for space in self.spaces])]

    def draw(self, letters: Any, places: IntArray, bits: RandomBits) -> list[Any]:
        own = zip(self.spaces, letters, self.places, strict=True)
        return [space.draw(part, several[places], bits) for space, part, several in own]

    def representatives(self) -> tuple[list[Any], list[Any]]:
        return self._sides([space.representatives() for space in self.spaces])

    def images(self, rng: np.random.Generator) -> tuple[list[Any], list[Any]]:
        return self._sides([space.images(rng) for space in self.spaces])

    def _sides(self, pairs: Sequence[tuple[Any, Any]]) -> tuple[list[Any], list[Any]]:
        own = list(zip(pairs, self.places, strict=True))
        return (
            [taken(pair[0], k) for pair, k in own],
            [taken(pair[1], k) for pair, k in own],
        )

    def listed(self, outputs: bool = False) -> list[Any]:
        sides = [space.listed(outputs) for space in self.spaces]
        sizes = [length_of(side) for side in sides]
        places = np.indices(sizes).reshape(len(sizes), -1)
        return [taken(side, k) for side, k in zip(sides, places, strict=True)]


def _mixed(digits: Sequence[IntArray], sizes: Sequence[int]) -> IntArray:
    """Numbers of several digits, the last one changing fastest."""
    found = np.zeros(len(digits[0]), dtype=np.int64)
    for digit, size in zip(digits, sizes, strict=True):
        found = found * size + digit
    return found


def _outer(several: Sequence[Sequence[int]]) -> Any:
    """All products of one whole number of each, the last one changing fastest."""
    found = np.array([1], dtype=object)
    for numbers in several:
        found = (found[:, None] * np.array(numbers, dtype=object)).ravel()
    return found
