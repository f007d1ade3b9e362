"""Counts of tuples of labels, with the letters of each side, and as arrays."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pmlopt.core.numbers.arrays import Label, Labels, indices_of
from pmlopt.errors import InputError


class CountedTuples(dict[Labels, int]):
    """A mapping from tuples of labels to counts, with the letters of each place of the tuples in order.

    The order of the tuples alone does not have these: a letter that the first ones lack comes later.

    Attributes:
        letters: of each place, those that occur, in the order of its column.

    Examples:
        >>> counts = CountedTuples({("no", "high"): 1, ("yes", "low"): 2}, [("no", "yes"), ("low", "high")])
        >>> counts["yes", "low"], counts.letters[1]
        (2, ('low', 'high'))
    """

    def __init__(self, counts: Mapping[Labels, int], letters: Iterable[Iterable[Label]]) -> None:
        super().__init__(counts)
        self.letters = tuple(map(tuple, letters))


class LabelledSequences(list[list[Label]]):
    """Sequences of labels, with the order that their column declares.

    Attributes:
        order: of the labels, of which some may not occur; None where none is declared.
    """

    def __init__(self, sequences: Iterable[list[Label]], order: Labels | None = None) -> None:
        super().__init__(sequences)
        self.order = order


def build_count_array(
    counted: Iterable[tuple[Labels, float]],
    sides: Sequence[Sequence[Label]],
    what: str,
    error: type[InputError],
    kind: type = np.int64,
) -> NDArray[Any]:
    """Build a count array with one axis per side from labelled counts.

    Args:
        counted: tuples of labels, with their counts.
        sides: the labels of each axis.
        what: the labels are of, for messages.
        error: what is raised.
        kind: of numbers: whole ones, or floats.

    Raises:
        InputError: of the class `error`: a label is not known, or a tuple has another length.

    Examples:
        >>> build_count_array(
        ...     [(("b", 1), 2), (("a", 0), 3)], [("a", "b"), (0, 1)], "the counts", InputError
        ... ).tolist()
        [[3, 0], [0, 2]]
    """
    found: NDArray[Any] = np.zeros([len(side) for side in sides], dtype=kind)
    rows = list(counted)
    for labels, _ in rows:
        if not isinstance(labels, tuple) or len(labels) != len(sides):
            raise error(f"{what}: {labels!r} is no tuple of {len(sides)} labels")
    # one look-up table for each side: it has an entry for each of its labels
    places = [
        indices_of([labels[k] for labels, _ in rows], side, what, error)
        for k, side in enumerate(sides)
    ]
    np.add.at(
        found,
        tuple(np.array(side, dtype=np.int64) for side in places),
        np.array([count for _, count in rows], dtype=kind),
    )
    return found
