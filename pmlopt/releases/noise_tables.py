"""Tables of noise as offices of statistics read them: mechanisms on counts, by intervals or by whole keys."""

from __future__ import annotations

from collections import Counter

import numpy as np

from pmlopt.core.arrays import IntArray, Label, whole
from pmlopt.data.mechanism import Mechanism, MechanismLike, as_mechanism
from pmlopt.errors import MechanismError

PTABLE = ("i", "j", "p", "v", "p_int_lb", "p_int_ub")
"""The columns of a ptable: count, released count, probability, noise, and the interval of cell keys."""

KEYS = ("pcv", "ckey", "pvalue")
"""The columns of a table by whole cell keys: count, cell key, noise."""


def ptable_rows(mechanism: MechanismLike) -> list[tuple[int, int, float, int, float, float]]:
    """The changes of each count with their intervals of cell keys in [0, 1], as R's ptable has them.

    Args:
        mechanism: whose inputs and outputs are counts, such as a design with `Unbiased` and `Variance`.

    Returns:
        Rows of the columns `PTABLE`, for each count in ascending order of the released ones; the intervals
        of a count add up to [0, 1].

    Raises:
        MechanismError: a label is no whole number.

    Source: [giessing2016computational], and the package ptable of [enderle2023ptable].

    Examples:
        >>> for row in ptable_rows(Mechanism([[0.25, 0.5, 0.25]], [1], [0, 1, 2])):
        ...     print(row)
        (1, 0, 0.25, -1, 0.0, 0.25)
        (1, 1, 0.5, 0, 0.25, 0.75)
        (1, 2, 0.25, 1, 0.75, 1.0)
    """
    m = as_mechanism(mechanism)
    counts, released = _counts(m.inputs, "inputs"), _counts(m.outputs, "outputs")
    order, rows = np.argsort(released), []
    for place in np.argsort(counts).tolist():
        chances = m.matrix[place, order]
        ends = np.cumsum(chances)
        ends = np.append(0.0, np.where(np.arange(len(ends)) < np.flatnonzero(chances)[-1], ends, 1.0))
        for column in np.flatnonzero(chances).tolist():
            count, new = int(counts[place]), int(released[order[column]])
            ends_here = float(ends[column]), float(ends[column + 1])
            rows.append((count, new, float(chances[column]), new - count, *ends_here))
    return rows


def rounded_to_keys(mechanism: MechanismLike, keys: int = 256) -> Mechanism:
    """A mechanism with probabilities of whole numbers of keys, which is another one: measure it anew.

    Each row is rounded down, and the keys that are left go to the largest remainders. Entries move by less
    than 1 / keys, zeros stay, and noise without bias may get some.

    Args:
        mechanism: (N, M).
        keys: how many cell keys there are.

    Raises:
        MechanismError: there are fewer keys than a row has outputs, so that one would get none.

    Examples:
        >>> rounded_to_keys([[0.7, 0.3], [0.31, 0.69]], 4).matrix.tolist()
        [[0.75, 0.25], [0.25, 0.75]]
    """
    from pmlopt.programs.exact.arithmetic import snap

    m, count = as_mechanism(mechanism), whole(keys, "the number of keys", MechanismError)
    if count < int((m.matrix > 0).sum(axis=1).max()):
        raise MechanismError(f"{count} keys are fewer than the outputs of a row: give more keys")
    return Mechanism(snap(m.matrix, count), m.inputs, m.outputs)


def key_rows(mechanism: MechanismLike, keys: int = 256) -> list[tuple[int, int, int]]:
    """The noise of each count at each cell key 0, 1, ..., keys - 1, of a mechanism that is rounded to keys.

    Args:
        mechanism: as that of `ptable_rows`, with probabilities of whole numbers of keys.
        keys: how many cell keys there are.

    Returns:
        Rows of the columns `KEYS`.

    Raises:
        MechanismError: a probability is no whole number of keys, or a label no whole number.

    Examples:
        >>> key_rows(Mechanism([[0.25, 0.5, 0.25]], [1], [0, 1, 2]), 4)
        [(1, 0, -1), (1, 1, 0), (1, 2, 0), (1, 3, 1)]
    """
    m, count = as_mechanism(mechanism), whole(keys, "the number of keys", MechanismError)
    shares = m.matrix * count
    if np.abs(shares - np.rint(shares)).max() > 1e-9 * count:
        raise MechanismError(
            f"a probability is no multiple of 1/{count}: take rounded_to_keys(mechanism, {count}) first, and "
            "measure what it leaks"
        )
    rows: list[tuple[int, int, int]] = []
    taken: Counter[int] = Counter()
    for count_now, _, chance, noise, _, _ in ptable_rows(m):
        more = range(taken[count_now], taken[count_now] + round(chance * count))
        rows.extend((count_now, key, noise) for key in more)
        taken[count_now] = more.stop
    return rows


def _counts(labels: tuple[Label, ...], what: str) -> IntArray:
    for label in labels:
        if not isinstance(label, int | np.integer) or isinstance(label, bool):
            raise MechanismError(f"the {what} are labels such as {label!r}: a table of noise is on counts")
    return np.array(labels, dtype=np.int64)
