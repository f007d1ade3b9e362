"""The outputs that were observed, counted."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TypeAlias

import numpy as np
from numpy.typing import ArrayLike

from pmlopt.arrays import IntArray, Label, Positions, few, float_array
from pmlopt.errors import InputError, MechanismError, PriorError
from pmlopt.labels import label_key, places_of
from pmlopt.mechanism import Mechanism
from pmlopt.tables.labelled import Labelled, Numbers, column, vector

Counts: TypeAlias = Numbers | Labelled

LARGEST_COUNT = 2**53
"""The largest number of people: up to here floats hold every whole number."""


def observed(
    mechanism: Mechanism, counts: Counts | None, released: Iterable[Label] | None = None
) -> IntArray:
    """(M,) how often each output of a mechanism was released.

    Args:
        mechanism: with M outputs.
        counts: a mapping from output to count, a pandas Series with its index, a table of two columns, or the
            path of a file of one, where outputs that were not seen may be missing; or M counts in a list.
        released: the released column in place of the counts: one output for each person. A frame of several
            columns has the parts of outputs that are tuples.

    Raises:
        PriorError: a count is negative or not a whole number, or there are no people.
        MechanismError: an output is none of the mechanism's or cannot occur, there are not M counts, or
            outputs have no labels that tell them from the letters.
        InputError: there are both counts and a column, or neither.
    """
    if (counts is None) == (released is None):
        raise InputError("give the counts of the outputs or the released column: one of the two")
    if released is not None:
        people = column(released, "the released values", InputError)
        places = places_of(people, mechanism.outputs, "the released values", MechanismError)
        seen = whole_counts(np.bincount(places, minlength=len(mechanism.outputs)), 1)
        named = True
    else:
        found = vector(counts, "the counts", MechanismError)
        seen = whole_counts(found.along(0, mechanism.outputs, MechanismError, absent=0).values, 1)
        named = found.axes[0] is not None
    if named:
        _check_told_apart(mechanism)
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


def _check_told_apart(mechanism: Mechanism) -> None:
    """Raise where outputs without labels, the numbers 0, 1, ..., are among the letters, too.

    Data that were never released would then pass for what was.
    """
    letters, outputs = mechanism.inputs, mechanism.outputs
    if isinstance(outputs, Positions) and not isinstance(letters, Positions):
        alike = [label for label in letters if label_key(label) in outputs]
        if alike:
            raise MechanismError(
                f"the outputs {few(outputs)} have no labels, and {alike[0]!r} is a letter too: nothing tells "
                "released data from data that were not; give the mechanism labels of its outputs"
            )
