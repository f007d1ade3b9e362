"""Distances that were computed both ways, and differ by rounding."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from pmlopt.core.numbers.arrays import FloatArray, Label
from pmlopt.errors import InputError


def check_distances(distances: FloatArray, error: type[InputError]) -> FloatArray:
    """Return distances of at least 0, alike in both directions, and 0 from each letter to itself.

    Args:
        distances: (N, N), perhaps infinite.
        error: the class of errors.

    Raises:
        InputError: they are no distances.

    Examples:
        >>> check_distances(np.array([[0.0, 1.0], [1.0, 0.5]]), InputError)
        Traceback (most recent call last):
        ...
        pmlopt.errors.InputError: a letter has the distance 0.5 from itself: give a diagonal of zeros
    """
    if not (distances >= 0).all():
        x, y = np.argwhere(~(distances >= 0))[0]
        raise error(
            f"the distance of the letters at {x} and {y} is {distances[x, y]:g}, negative or no number: "
            "give at least 0"
        )
    joined = join_directions(distances, error)
    if np.diag(joined).any():
        furthest = np.diag(joined).max()
        raise error(f"a letter has the distance {furthest:g} from itself: give a diagonal of zeros")
    return joined


def join_directions(
    distances: FloatArray, error: type[InputError], names: Sequence[Label] | None = None
) -> FloatArray:
    """Return distances with the smaller of both directions for each pair, which may differ by rounding.

    Sums along a way over 3,000 letters, in either order, differ by at most 3,000 roundings. The smaller
    distance is the stricter one: privacy between letters grows as they come nearer.

    Args:
        distances: (N, N), perhaps infinite.
        error: the class of errors.
        names: (N,) of the letters, for messages; left out, their positions.

    Raises:
        InputError: two directions differ by more.

    Examples:
        >>> join_directions(np.array([[0, 0.1 + 0.2], [0.3, 0]]), InputError)
        array([[0. , 0.3],
               [0.3, 0. ]])
    """
    smaller = np.minimum(distances, distances.T)
    larger = np.maximum(distances, distances.T)
    finite = np.where(np.isinf(larger), 0.0, larger)
    apart = smaller < larger - np.abs(finite) * 2.0**-40
    if apart.any():
        x, y = np.argwhere(apart)[0].tolist()
        first, last = (x, y) if names is None else (names[x], names[y])
        raise error(
            f"the distance from letter {first!r} to letter {last!r} is {float(distances[x, y])!r}, and back "
            f"{float(distances[y, x])!r}: give the same both ways, such as the smaller, "
            "numpy.minimum(d, d.T), which protects more"
        )
    return smaller
