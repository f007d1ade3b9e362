"""Counts of tuples of labels as arrays."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pmlopt.core.arrays import Label, indices_of
from pmlopt.errors import InputError


def build_count_array(
    counted: Iterable[tuple[tuple[Label, ...], float]],
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
