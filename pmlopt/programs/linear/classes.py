"""Classes of letters and of outputs that look alike in a table, by colour refinement."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from pmlopt.core.arrays import FloatArray, IntArray
from pmlopt.data.prior import Prior
from pmlopt.data.symmetry.prior import Cells, PairOrbits


@dataclass(frozen=True, eq=False)
class PairClasses:
    """Classes of letters, outputs and pairs on which some optimal mechanism is constant.

    Every letter of a class has the same probability and meets, in each class of outputs, each value of the
    utility equally often; and every output of a class meets each value equally often in each class of
    letters. A class of pairs is those of one class of letters, one of outputs, and one value. Averaging a
    mechanism over the classes of pairs leaves its expectation as it is, and keeps PML, LDP and LIP: the
    averages of an entry, of a column's mean, and of a column's minimum are over the same columns, equally
    often.

    The orbits of a group that leaves prior and utility as they are form such classes, but they need not come
    from one.

    Attributes:
        orbits: the classes, with their sizes.
        table: (N, M) the class of each pair.
        output_names: the first output of each class.
        prior: on the letters.

    Source: [grohe2014dimension], equitable partitions of linear programs.
    """

    orbits: PairOrbits
    table: IntArray
    output_names: list[int]
    prior: Prior

    def cells(self, place: int) -> Cells:
        """The classes of letters as one output of a class meets them."""
        return self.orbits.cells(place, self.prior, self.prior, self.table[:, self.output_names[place]])


def pair_classes(prior: Prior, table: FloatArray, most: int) -> PairClasses | None:
    """The coarsest classes for a prior and a utility; None where there are more classes of pairs than `most`.

    Probabilities and values count as equal where their floats are.

    Args:
        prior: N letters.
        table: (N, M) the values of the utility.
        most: the largest number of classes of pairs that is of use.

    Examples:
        >>> distance = np.abs(np.subtract.outer(range(8), range(8)))
        >>> classes = pair_classes(Prior.uniform(8), np.minimum(distance, 8 - distance), 10)
        >>> classes.orbits.letters, classes.orbits.count
        ((8,), 5)
        >>> pair_classes(Prior.uniform(8), distance, 10) is None
        True
    """
    kinds, values = np.unique(table, return_inverse=True)
    if len(kinds) > most:
        return None
    values = values.reshape(table.shape)
    letter = np.unique(prior.probabilities, return_inverse=True)[1].ravel()
    output = np.zeros(table.shape[1], dtype=np.int64)
    while True:
        before = int(letter.max()), int(output.max())
        if (before[0] + 1) * (before[1] + 1) > most:
            return None
        letter = _split(letter, _signatures(values, output, len(kinds)))
        output = _split(output, _signatures(values.T, letter, len(kinds)))
        if (int(letter.max()), int(output.max())) == before:
            break
    codes = (output * (letter.max() + 1) + letter[:, None]) * len(kinds) + values
    different, places = np.unique(codes, return_inverse=True)
    if len(different) > most:
        return None
    places = places.reshape(table.shape)
    orbits = PairOrbits.of_listed(letter, output, places, prior.weights)
    return PairClasses(orbits, places, np.unique(output, return_index=True)[1].tolist(), prior)


def _signatures(values: IntArray, colours: IntArray, kinds: int) -> Any:
    """(N,) a hash of how often each row has each value in the columns of each colour.

    The sum of pseudo-random numbers of 64 bits, one for each pair of a value and a colour: two rows that
    differ have the same one with probability 2^-64 or so, and what follows from a wrong class the certificate
    refuses.
    """
    rng = np.random.default_rng(0)
    of_colour = rng.integers(2**63, size=int(colours.max()) + 1, dtype=np.uint64)
    of_value = rng.integers(2**63, size=kinds, dtype=np.uint64)
    mixed = of_colour[colours] + of_value[values]
    for factor, shift in _MIXING:
        mixed ^= mixed >> shift
        mixed *= factor
    return (mixed ^ (mixed >> np.uint64(31))).sum(axis=1, dtype=np.uint64)


_MIXING = (
    (np.uint64(0xBF58476D1CE4E5B9), np.uint64(30)),
    (np.uint64(0x94D049BB133111EB), np.uint64(27)),
)
"""Factors and shifts of the finalizer of SplitMix64, which makes numbers that are near one another unlike."""


def _split(classes: IntArray, signatures: Any) -> IntArray:
    """Classes of those that were in one class and have one signature."""
    pairs = np.stack([classes.astype(np.uint64), signatures], axis=1)
    return np.asarray(np.unique(pairs, axis=0, return_inverse=True)[1].ravel())
