"""Distances that were computed both ways, and differ by rounding."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from pmlopt.core.arrays import FloatArray, Label
from pmlopt.errors import InputError


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
    smaller, larger = np.minimum(distances, distances.T), np.maximum(distances, distances.T)
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
    return np.asarray(smaller)
