"""The outputs that were observed, counted."""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Iterable, Mapping, Sequence
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import ArrayLike

from pmlopt.arrays import FloatArray, IntArray, Label, few, float_array
from pmlopt.errors import InputError, MechanismError, PriorError
from pmlopt.mechanism import Mechanism

Counts: TypeAlias = Mapping[Any, int] | ArrayLike

LARGEST_COUNT = 2**53
"""The largest number of people: up to here floats hold every whole number."""


def observed(
    mechanism: Mechanism, counts: Counts | None, released: Iterable[Label] | None = None
) -> IntArray:
    """(M,) how often each output of a mechanism was released.

    Args:
        mechanism: with M outputs.
        counts: a mapping from output to count, where outputs that were not seen may be missing; or M counts.
        released: the released column in place of the counts: one output for each person.

    Raises:
        PriorError: a count is negative or not a whole number, or there are no people.
        MechanismError: an output is none of the mechanism's or cannot occur, or there are not M counts.
        InputError: there are both counts and a column, or neither.
    """
    if (counts is None) == (released is None):
        raise InputError("give the counts of the outputs or the released column: one of the two")
    if released is not None:
        counts = Counter(value.item() if isinstance(value, np.generic) else value for value in released)
    numbers = _in_order(mechanism.outputs, counts) if isinstance(counts, Mapping) else counts
    seen = whole_counts(numbers, 1)  # type: ignore[arg-type]
    if len(seen) != len(mechanism.outputs):
        raise MechanismError(
            f"there are {len(seen)} counts for {len(mechanism.outputs)} outputs: give one each"
        )
    for place in np.flatnonzero((seen > 0) & ~mechanism.support):
        raise MechanismError(
            f"the output {mechanism.outputs[place]!r} was released {seen[place]} times, and the mechanism "
            "never emits it: these counts are of another mechanism"
        )
    return seen


def whole_counts(numbers: ArrayLike, ndim: int) -> IntArray:
    """Counts of outputs as integers: whole numbers of at least 0, of one person or more."""
    array = float_array(numbers, ndim, "the counts", PriorError)
    wrong = array[(array < 0) | (array != np.rint(array))]
    if wrong.size:
        raise PriorError(f"the counts have the entry {wrong[0]:g}: give whole numbers of at least 0")
    total = float(array.sum())
    if total == 0:
        raise PriorError("the counts are all 0: from no people nothing can be estimated")
    if total > LARGEST_COUNT:
        raise PriorError(f"the counts sum to {total:g}: give at most {LARGEST_COUNT} people")
    return array.astype(np.int64)


def _in_order(outputs: Sequence[Label], counts: Mapping[Any, int]) -> FloatArray:
    """The counts of a mapping in the order of the outputs."""
    place = {label: y for y, label in enumerate(outputs)}
    numbers: list[float] = [0] * len(outputs)
    for label, count in counts.items():
        if not isinstance(label, Hashable) or label not in place:
            raise MechanismError(f"the output {label!r} is none of the mechanism's, which are {few(outputs)}")
        numbers[place[label]] = count
    return np.array(numbers)
