"""Orbits of pairs of a letter and an output under a group, with their sizes in whole numbers."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from pmlopt.arrays import FloatArray, IntArray
from pmlopt.errors import PriorError
from pmlopt.prior import SMALLEST, Prior

MOST_ORBITS = 2_000_000
"""Orbits of pairs that are listed: half a gigabyte of whole numbers."""


def check_orbits(prior: object, count: int) -> None:
    """Raise a PriorError where there are too many orbits of pairs to list them."""
    if count > MOST_ORBITS:
        raise PriorError(
            f"{prior!r:.80} has more than {MOST_ORBITS} orbits of pairs, and no more are listed: take fewer "
            "letters, outputs or records"
        )


@dataclass(frozen=True, eq=False)
class Cells:
    """How the letters look from one output: in cells, the orbits under the permutations that fix the output.

    A column that is constant on orbits of pairs is constant on the cells of its output, and its mean is that
    of the values under the masses of the cells.

    Attributes:
        prior: on the cells, exact.
        letters: (C,) the orbit of letters that each cell is part of.
        counts: how many letters are in each cell.
        orbits: how many letters are in each orbit of letters.
        classes: (N,) the cell of each letter where the letters are listed; else None.
        listed: the prior on these letters; else None.
        whole: the symmetric prior that the cells are of.
    """

    prior: Prior
    letters: IntArray
    counts: tuple[int, ...]
    orbits: tuple[int, ...]
    classes: IntArray | None
    listed: Prior | None
    whole: Prior

    @property
    def size(self) -> int:
        """C, the number of cells."""
        return len(self.counts)

    @property
    def letters_in_all(self) -> int:
        """N, the number of letters."""
        return sum(self.orbits)


@dataclass(frozen=True, eq=False)
class PairOrbits:
    """The orbits of pairs (x, y) under a group that acts on letters and outputs.

    The group leaves the prior as it is. Each orbit of pairs belongs to one orbit of letters and one of
    outputs; they stand in the order of their outputs.

    Attributes:
        letters: how many letters are in each of the L orbits of letters.
        weights: whole numbers, for each of these: the probability of one of its letters, up to one factor.
        outputs: how many outputs are in each of the K orbits of outputs.
        letter: (C,) the orbit of letters of each orbit of pairs.
        output: (C,) its orbit of outputs, ascending.
        counts: for each orbit of pairs, with how many letters one and the same output is in it.

    Raises:
        PriorError: a letter has a probability below 1e-300.
    """

    letters: tuple[int, ...]
    weights: tuple[int, ...]
    outputs: tuple[int, ...]
    letter: IntArray
    output: IntArray
    counts: tuple[int, ...]

    def __post_init__(self) -> None:
        if self.weights and min(self.weights) / self.total < SMALLEST:
            raise PriorError(
                f"the least likely letter has a probability below {SMALLEST}: take fewer records, or a law "
                "without rare letters"
            )

    @property
    def count(self) -> int:
        """C, the number of orbits of pairs: the variables of a design."""
        return len(self.counts)

    @cached_property
    def total(self) -> int:
        """The sum of the weights of all letters."""
        return sum(n * w for n, w in zip(self.letters, self.weights, strict=True))

    @cached_property
    def masses(self) -> FloatArray:
        """(L,) the probability of each orbit of letters."""
        return np.array([n * w / self.total for n, w in zip(self.letters, self.weights, strict=True)])

    @cached_property
    def shares(self) -> FloatArray:
        """(C,) the share of the letters of its orbit that one output meets in an orbit of pairs."""
        return np.array([n / self.letters[x] for n, x in zip(self.counts, self.letter.tolist(), strict=True)])

    @cached_property
    def multiplicities(self) -> tuple[int, ...]:
        """For each orbit of pairs, with how many outputs one and the same letter is in it."""
        places = zip(self.counts, self.letter.tolist(), self.output.tolist(), strict=True)
        return tuple(n * self.outputs[y] // self.letters[x] for n, x, y in places)

    @cached_property
    def starts(self) -> tuple[int, ...]:
        """Where the orbits of pairs of each orbit of outputs start, and where the last ones end."""
        ends = np.searchsorted(self.output, np.arange(len(self.outputs) + 1))
        return tuple(int(end) for end in ends)

    def of_output(self, place: int) -> slice:
        """The orbits of pairs that belong to an orbit of outputs."""
        return slice(self.starts[place], self.starts[place + 1])

    def prior(self, place: int) -> Prior:
        """The prior on the cells of an output, in exact weights."""
        part = self.of_output(place)
        letters = self.letter[part].tolist()
        return Prior.from_weights(
            [n * self.weights[x] for n, x in zip(self.counts[part], letters, strict=True)]
        )

    @property
    def consistent(self) -> bool:
        """Whether each output meets each letter in exactly one orbit of pairs, and the other way round."""
        met = [0] * (len(self.outputs) * len(self.letters))
        for n, x, y in zip(self.counts, self.letter.tolist(), self.output.tolist(), strict=True):
            met[y * len(self.letters) + x] += n
        whole = all(met[k] == self.letters[k % len(self.letters)] for k in range(len(met)))
        returned = zip(self.counts, self.multiplicities, self.letter, self.output, strict=True)
        return whole and all(n * self.outputs[y] == m * self.letters[x] for n, m, x, y in returned)
