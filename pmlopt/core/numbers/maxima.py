"""Bounds on the maximum of a function of one number, from bounds over cells of its interval."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np

from pmlopt.core.numbers.arrays import FloatArray


def bound_maximum(
    bound_cells: Callable[[FloatArray, FloatArray], tuple[FloatArray, FloatArray]],
    edges: FloatArray,
    slack: Callable[[float], float],
    least: float = -math.inf,
) -> float:
    """Bound the maximum of a function from above by branch and bound: cells that matter are halved.

    Args:
        bound_cells: from (K,) left and right ends of cells to values of the function in them, and to upper
            bounds over them, which approach the values in narrow cells.
        edges: ascending numbers, the ends of the first cells.
        slack: from the largest value found to how far above it the bound may be.
        least: a number that the maximum is to be compared with: the bound is at least this.

    Examples:
        >>> def bound_cells(left, right):
        ...     return left * (1 - left), right * (1 - left)
        >>> round(bound_maximum(bound_cells, np.linspace(0, 1, 5), lambda best: 1e-6), 4)
        0.25
    """
    left = edges[:-1]
    right = edges[1:]
    bounds = np.full(len(left), np.inf)
    best = least
    closed = least
    # halvings of a cell: more than a float has digits
    for _ in range(64):
        values, above = bound_cells(left, right)
        # the bound over a cell holds for its halves too, so it never needs to grow
        bounds = np.minimum(bounds, above)
        # values are lower bounds on the maximum: they decide which cells are closed
        best = max(best, float(values.max()))
        wide = bounds > best + slack(best)
        closed = max(closed, best, float(bounds[~wide].max(initial=-np.inf)))
        most = max(closed, float(bounds[wide].max(initial=-np.inf)))
        if not 0 < wide.sum() < 500_000:
            break
        middle = (left + (right - left) / 2)[wide]
        left = np.append(left[wide], middle)
        right = np.append(middle, right[wide])
        bounds = np.tile(bounds[wide], 2)
    return most
