"""A bound on each column by itself, for solvers that do not go through cvxpy."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from pmlopt.arrays import FloatArray


@dataclass(frozen=True, eq=False)
class Band:
    """Columns v between two ends that are linear in few scalars u of the column's own.

    `lower @ u <= v[x] <= upper @ u` for every letter x, and where there are weights `weights @ v = mean @ u`.
    What a requirement declares in cvxpy says the same, with a row for each output where this has a number.

    Attributes:
        lower, upper: (k,) with k = 1, or k = 2 and u = (upper end less lower end, lower end).
        inside: (k,) the u at which the column of ones is strictly between the ends.
        weights: (N,) non-negative, or None.
        mean: (k,) what belongs to the weights.
    """

    lower: FloatArray
    upper: FloatArray
    inside: FloatArray
    weights: FloatArray | None = None
    mean: FloatArray | None = None

    @property
    def floored(self) -> bool:
        """Whether `lower @ u >= 0` must be said: the lower end is a scalar of its own."""
        return len(self.lower) == 2


def ratio_band(keep: float) -> Band | None:
    """Columns with `keep max v <= min v`; None where nothing lies strictly inside."""
    if keep >= 1:
        return None
    return Band(np.array([keep]), np.ones(1), np.array([keep**-0.5]))


def mean_band(weights: FloatArray, keep: float, least: float = 0.0, largest: float = 0.0) -> Band | None:
    """Columns `v >= 0` with `keep max v <= weights @ v + least min v - largest max v`.

    None where nothing lies strictly inside, which is where the column of ones only just meets the bound.
    """
    room = float(weights.sum()) + least - largest - keep
    if room <= 0:
        return None
    if least == 0:
        return Band(np.zeros(1), np.ones(1), np.array([weights.sum() / (keep + largest)]),
                    weights, np.array([keep + largest]))  # fmt: skip
    if not weights.any():
        return ratio_band((keep + largest) / least)
    low = max(0.5, 1 - room / (2 * least))
    width = (weights.sum() + least * low) / (keep + largest) - low
    mean = np.array([keep + largest, keep + largest - least])
    return Band(np.array([0.0, 1.0]), np.ones(2), np.array([width, low]), weights, mean)
