"""Boxes of posteriors of a binary record that cover all there are, each with multipliers for a bound."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from pmlopt.arrays import FloatArray, IntArray

WHOLE = -1
"""In place of the output at which a box is split, for one that is not."""


@dataclass(frozen=True, eq=False)
class PosteriorTree:
    """A tree of boxes: each has an interval for the posterior `psi_y = P(X_i = 0 | Y = y)` of each output.

    Box 0 is the cube of all posteriors. A box is split at a point of one output's interval, which ends the
    interval of its first part and begins that of its second: the boxes that are not split cover the cube,
    whatever the points. Those have multipliers; see `BoxRelaxation` for the bound that they prove.

    Attributes:
        output: (N,) the output whose interval is split; `WHOLE` for none.
        point: (N,) where it is split.
        part: (N,) the place of the first part, the second follows it; both after the box itself.
        price: (N,) s > 0, of the entropy.
        lower: (N, M) lambda >= 0, of `psi_y >= l_y`.
        upper: (N, M) nu >= 0, of `psi_y <= h_y`.
    """

    output: IntArray
    point: FloatArray
    part: IntArray
    price: FloatArray
    lower: FloatArray
    upper: FloatArray

    def __len__(self) -> int:
        return len(self.output)


def negative_binary_entropy(share: FloatArray) -> FloatArray:
    """The function `p log p + (1 - p) log(1 - p)`, 0 at both ends.

    Examples:
        >>> negative_binary_entropy(np.array([0.0, 0.5, 1.0])).round(6).tolist()
        [0.0, -0.693147, 0.0]
    """
    return np.asarray(_with_logarithm(share) + _with_logarithm(1 - share))


def chord_ends(low: FloatArray, high: FloatArray) -> tuple[FloatArray, FloatArray]:
    """The chord of the negative binary entropy over an interval, continued to 1 and to 0.

    Between the ends `p log p + (1 - p) log(1 - p) <= p alpha + (1 - p) beta`; the value where they meet.

    Returns:
        alpha and beta, of the shape of both arguments.

    Examples:
        >>> [ends.round(6).tolist() for ends in chord_ends(np.array([0.0]), np.array([0.5]))]
        [[-1.386294], [0.0]]
    """
    at_low, at_high = negative_binary_entropy(low), negative_binary_entropy(high)
    width = high - low
    slope = np.where(width > 0, (at_high - at_low) / np.where(width > 0, width, 1.0), 0.0)
    beta = at_low - slope * low
    return beta + slope, beta


def _with_logarithm(share: FloatArray) -> FloatArray:
    return np.asarray(share * np.log(np.where(share > 0, share, 1.0)))
