"""Priors that a group of permutations leaves as they are, whose letters need not be listed."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Sequence
from functools import cached_property
from typing import Any

import numpy as np

from pmlopt.arrays import FloatArray, IntArray, Label
from pmlopt.core.records import Context, Record
from pmlopt.errors import PriorError
from pmlopt.prior import Prior
from pmlopt.sampling.random_bits import RandomBits
from pmlopt.symmetry.pair_orbits import Cells, PairOrbits

LARGEST_LISTED = 2**16
"""Letters that are listed where somebody asks for them one by one."""


def length_of(side: Any) -> int:
    """How many letters or outputs there are, in the form of a space."""
    return length_of(side[0]) if isinstance(side, list) else len(side)


def taken(side: Any, places: Any) -> Any:
    """Some of the letters or outputs, in the form of a space."""
    return [taken(part, places) for part in side] if isinstance(side, list) else side[places]


class PairSpace(Record, ABC):
    """The pairs of a letter and an output with the group that acts on them: what a mechanism by orbits is on.

    Letters and outputs are handed about many at a time, in a form of the space's own (an array of positions,
    or one row for each record), which `encode` makes from labels and `decode` turns back.

    Attributes:
        prior: the prior.
        orbits: the orbits of pairs, with their sizes.
    """

    prior: SymmetricPrior
    orbits: PairOrbits

    @property
    @abstractmethod
    def letter_names(self) -> Sequence[Label]:
        """Names of the orbits of letters."""

    @property
    @abstractmethod
    def output_names(self) -> Sequence[Label]:
        """Names of the orbits of outputs."""

    @property
    @abstractmethod
    def names(self) -> Sequence[Label]:
        """Names of the orbits of pairs."""

    @abstractmethod
    def encode(self, values: Any, outputs: bool = False) -> Any:
        """Letters (or outputs) that are given by their labels, in the form of the space.

        Raises:
            MechanismError: one is no letter.
        """

    @abstractmethod
    def decode(self, outputs: Any, letters: bool = False) -> list[Label]:
        """The labels of outputs (or letters)."""

    @abstractmethod
    def letter_orbits(self, letters: Any) -> IntArray:
        """(k,) the orbits of letters that k letters are in."""

    @abstractmethod
    def pair_orbits(self, letters: Any, outputs: Any) -> IntArray:
        """(k,) the orbits of pairs that k pairs are in."""

    @abstractmethod
    def draw(self, letters: Any, places: IntArray, bits: RandomBits) -> Any:
        """For each letter an output, uniform among those with which it is in a given orbit of pairs."""

    @abstractmethod
    def representatives(self) -> tuple[Any, Any]:
        """A letter and an output in each orbit of pairs."""

    @abstractmethod
    def images(self, rng: np.random.Generator) -> tuple[Any, Any]:
        """What random members of the group make of the representatives."""

    @abstractmethod
    def listed(self, outputs: bool = False) -> Any:
        """All letters (or all outputs), where they are few."""

    def listed_orbits(self) -> IntArray:
        """(N, M) the orbit of each pair, where letters and outputs are few."""
        xs, ys = self.listed(), self.listed(outputs=True)
        n, m = length_of(xs), length_of(ys)
        pairs = np.arange(n * m)
        return self.pair_orbits(taken(xs, pairs // m), taken(ys, pairs % m)).reshape(n, m)

    @cached_property
    def classes(self) -> Sequence[IntArray] | None:
        """For each orbit of outputs the cell of each letter, where letters are listed anyway; else None."""
        return None

    def cells(self, place: int) -> Cells:
        """The cells of an output of the orbit at a place."""
        part = self.orbits.of_output(place)
        return Cells(
            self.orbits.prior(place),
            self.orbits.letter[part],
            self.orbits.counts[part],
            self.orbits.letters,
            None if self.classes is None else self.classes[place],
            None if self.classes is None else self.prior.listed(),
            self.prior,
        )


class SymmetricPrior(Prior, ABC):
    """A prior with a group of permutations of its letters that leaves it as it is.

    `design` takes it like any other, and uses one variable for each orbit of pairs. Where there are at most
    2^16 letters they can be listed, and it is a prior on these for everything else, too.
    """

    @property
    @abstractmethod
    def size(self) -> int:
        """N, the number of letters: it may have hundreds of digits."""

    @abstractmethod
    def pairs(self, shape: Any = None) -> PairSpace:
        """The pairs of a letter and an output.

        Args:
            shape: what a utility says of letters and outputs; None where outputs are letters.
        """

    @abstractmethod
    def _listed(self) -> Prior:
        """The same prior, letter by letter."""

    def listed(self) -> Prior:
        """The same prior, letter by letter.

        Raises:
            PriorError: there are more than 2^16 letters.
        """
        return self._list

    def check_listable(self) -> None:
        """Raise a PriorError where there are too many letters to list them."""
        if self.size > LARGEST_LISTED:
            raise PriorError(
                f"{self!r} has {self.size:.3g} letters: they are listed up to {LARGEST_LISTED}. Designs, "
                "levels and samples by orbit need no list"
            )

    @cached_property
    def _list(self) -> Prior:
        self.check_listable()
        return self._listed()

    @property
    def probabilities(self) -> FloatArray:
        """(N,) the probabilities, where the letters are few enough to list them."""
        return self._list.probabilities

    @property
    def labels(self) -> tuple[Label, ...]:
        """N labels, where the letters are few enough to list them."""
        return self._list.labels

    @property
    def counts(self) -> tuple[int, ...] | None:
        """The exact weights, where the letters are few enough to list them."""
        return self._list.counts

    @property
    def samples(self) -> int | None:
        """None: it is not estimated as a whole."""
        return None

    @property
    def context(self) -> Context:
        return Context(given={"prior": self})

    def reordered(self, labels: Iterable[Label]) -> Prior:
        return self._list.reordered(labels)

    @abstractmethod
    def __repr__(self) -> str: ...
