"""Color refinement: classes of letters, outputs and pairs that look alike in a design."""

from __future__ import annotations

from typing import Any

import numpy as np

from pmlopt.core.light_dataclass import light_dataclass
from pmlopt.core.numbers.arrays import FloatArray, IntArray
from pmlopt.core.numbers.blocks import iterate_row_blocks
from pmlopt.data.prior import Prior
from pmlopt.data.symmetry.prior import LetterCells, PairOrbits


@light_dataclass(frozen=True, eq=False)
class EquitablePartition:
    """Classes of letters, outputs and pairs (an equitable partition) on which some optimum is constant.

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

    def get_cells(self, place: int) -> LetterCells:
        """Return the letter classes of an output of a class, as its cells."""
        return self.orbits.get_cells(
            place, self.prior, self.prior, self.table[:, self.output_names[place]]
        )


def refine_colors(prior: Prior, table: FloatArray, max_classes: int) -> EquitablePartition | None:
    """Find the coarsest equitable partition for prior and utility; None if it has over `max_classes` pairs.

    Probabilities and values count as equal where their floats are.

    Args:
        prior: N letters.
        table: (N, M) the values of the utility.
        max_classes: the largest useful number of classes of pairs.

    Examples:
        >>> distance = np.abs(np.subtract.outer(range(8), range(8)))
        >>> classes = refine_colors(Prior.uniform(8), np.minimum(distance, 8 - distance), 10)
        >>> classes.orbits.letters, classes.orbits.count
        ((8,), 5)
        >>> refine_colors(Prior.uniform(8), distance, 10) is None
        True
    """
    found = _number_values(table, max_classes)
    if found is None:
        return None
    kinds, values = found
    # the coarsest start: letters of equal probability, all outputs alike
    letter = np.unique(prior.probabilities, return_inverse=True)[1].ravel()
    output = np.zeros(table.shape[1], dtype=np.int64)
    while True:
        before = int(letter.max()), int(output.max())
        # every pair of classes has at least one value: there are too many already
        if (before[0] + 1) * (before[1] + 1) > max_classes:
            return None
        letter = _split_classes(letter, _hash_rows(values, output, kinds))
        output = _split_classes(output, _hash_rows(values.T, letter, kinds))
        # classes only split, so that equal counts mean a fixed point
        if (int(letter.max()), int(output.max())) == before:
            break
    classes = _number_pairs(letter, output, values, kinds, max_classes)
    if classes is None:
        return None
    orbits = PairOrbits.from_listed(letter, output, classes, prior.weights)
    return EquitablePartition(
        orbits, classes, np.unique(output, return_index=True)[1].tolist(), prior
    )


def _number_values(table: FloatArray, limit: int) -> tuple[int, IntArray] | None:
    """Replace the entries of a table by numbers of its values; return None for more values than a limit."""
    kinds, waiting, count = np.unique(table[:1]), [], 0
    for rows in iterate_row_blocks(table.shape):
        waiting.append(np.unique(table[rows]))
        count += len(waiting[-1])
        # merged only where they have doubled: each value is sorted a few times
        if count >= len(kinds) or rows.stop == len(table):
            kinds, waiting, count = np.unique(np.concatenate([kinds, *waiting])), [], 0
            if len(kinds) > limit:
                return None
    # a byte for each entry will often do
    values = np.empty(table.shape, dtype=np.min_scalar_type(len(kinds)))
    for rows in iterate_row_blocks(table.shape):
        values[rows] = np.searchsorted(kinds, table[rows])
    return len(kinds), values


def _number_pairs(
    letter: IntArray, output: IntArray, values: IntArray, kinds: int, limit: int
) -> IntArray | None:
    """Assign numbers to the classes of pairs; return None for more of them than a limit."""
    sizes = int(output.max()) + 1, int(letter.max()) + 1, kinds

    def encode_pairs(rows: slice, columns: Any) -> IntArray:
        """Return a mixed radix code of output class, letter class and value."""
        part = values[rows][:, columns].astype(np.int64)
        places = np.broadcast_arrays(output[columns], letter[rows, None], part)
        return np.asarray(np.ravel_multi_index(places, sizes))

    # the first output of a class meets each of its classes of pairs
    different = np.unique(encode_pairs(slice(None), np.unique(output, return_index=True)[1]))
    if len(different) > limit:
        return None
    classes: IntArray = np.empty(values.shape, dtype=np.int32)
    for rows in iterate_row_blocks(values.shape):
        codes = encode_pairs(rows, slice(None))
        numbers = np.minimum(np.searchsorted(different, codes), len(different) - 1)
        if (different[numbers] != codes).any():
            return None  # two rows that differ have one hash
        classes[rows] = numbers
    return classes


def _hash_rows(values: IntArray, colours: IntArray, kinds: int) -> Any:
    """Hash (N,) the multiset of values in the columns of each colour, row by row.

    The sum of pseudo-random numbers of 64 bits, one for each pair of a value and a colour: two rows that
    differ have the same one with probability 2^-64 or so, and what follows from a wrong class the certificate
    refuses.
    """
    # the seed is fixed: rows and columns of equal content get equal signatures
    rng = np.random.default_rng(0)
    of_colour = rng.integers(2**63, size=int(colours.max()) + 1, dtype=np.uint64)
    of_value = rng.integers(2**63, size=kinds, dtype=np.uint64)
    found = np.empty(len(values), dtype=np.uint64)
    for rows in iterate_row_blocks(values.shape):
        # sums are order-free: a row is hashed as a multiset of pairs (value, colour)
        mixed = of_colour[colours] + of_value[values[rows]]
        for factor, shift in _SPLITMIX_STEPS:
            mixed ^= mixed >> np.uint64(shift)
            mixed *= np.uint64(factor)
        found[rows] = (mixed ^ (mixed >> np.uint64(31))).sum(axis=1, dtype=np.uint64)
    return found


_SPLITMIX_STEPS = (0xBF58476D1CE4E5B9, 30), (0x94D049BB133111EB, 27)
"""Factors and shifts of the finalizer of SplitMix64, which makes numbers that are near one another unlike."""


def _split_classes(classes: IntArray, signatures: Any) -> IntArray:
    """Refine a partition by the signatures of its elements."""
    pairs = np.stack([classes.astype(np.uint64), signatures], axis=1)
    return np.asarray(np.unique(pairs, axis=0, return_inverse=True)[1].ravel())
