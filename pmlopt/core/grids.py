"""Grids of boxes on intervals, circles or rectangles, and distances between boxes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import product

import numpy as np
from numpy.typing import ArrayLike

from pmlopt.core.numbers.arrays import FloatArray, IntArray, check_unmasked, copy_float_array
from pmlopt.errors import PriorError


@dataclass(frozen=True, eq=False)
class Grid:
    """A rectangular grid: all combinations of intervals on each axis.

    Distances are Euclidean; along an axis with a period they go the shorter way around the circle.

    Attributes:
        edges: for each axis, its increasing edges.
        periods: for each axis, the length of the circle that it is, or None.
    """

    edges: tuple[FloatArray, ...]
    periods: tuple[float | None, ...]

    @property
    def size(self) -> int:
        """Return the number of boxes."""
        return int(np.prod([len(edges) - 1 for edges in self.edges]))

    @cached_property
    def lower(self) -> FloatArray:
        """Return the (size, axes) lower corners."""
        return _enumerate_corners([edges[:-1] for edges in self.edges])

    @cached_property
    def upper(self) -> FloatArray:
        """Return the (size, axes) upper corners."""
        return _enumerate_corners([edges[1:] for edges in self.edges])

    @property
    def centres(self) -> FloatArray:
        """Return the (size, axes) centres."""
        return (self.lower + self.upper) / 2

    def divide(self, pieces: int) -> Grid:
        """Divide every interval of every axis into equal pieces.

        Examples:
            >>> Grid((np.array([0.0, 1.0, 3.0]),), (None,)).divide(2).edges[0].tolist()
            [0.0, 0.5, 1.0, 2.0, 3.0]
        """
        return Grid(
            tuple(_divide_edges(edges, np.full(len(edges) - 1, pieces)) for edges in self.edges),
            self.periods,
        )

    def find_parents(self, pieces: int) -> IntArray:
        """Return each refined box's index in this grid."""
        shape = [len(edges) - 1 for edges in self.edges]
        fine = np.meshgrid(*(np.repeat(np.arange(n), pieces) for n in shape), indexing="ij")
        return np.asarray(np.ravel_multi_index([axis.ravel() for axis in fine], shape))

    def halve_where(self, share: FloatArray) -> Grid:
        """Halve the intervals with at least mean importance along each axis.

        Args:
            share: (size,) how much each box has of the quantity, at least 0.
        """
        table = share.reshape([len(edges) - 1 for edges in self.edges])
        axes = range(table.ndim)
        shares = [table.sum(axis=tuple(set(axes) - {axis})) for axis in axes]
        # equal shares must all be halved, although rounding puts some below their mean
        pieces = [1 + (own >= own.mean() * (1 - 1e-9)) for own in shares]
        return Grid(tuple(map(_divide_edges, self.edges, pieces)), self.periods)

    def locate(self, points: ArrayLike) -> IntArray:
        """Return the (n,) box indices of (n, axes) points.

        Raises:
            PriorError: a point is outside, or has another number of axes.
        """
        check_unmasked(points, "the points", PriorError)
        places = copy_float_array(np.asarray(points), 2, "the points", PriorError)
        if places.shape[1] != len(self.edges):
            raise PriorError(
                f"the points have {places.shape[1]} axes, and the grid {len(self.edges)}"
            )
        outside = np.zeros(len(places), dtype=bool)
        found = []
        for values, edges in zip(places.T, self.edges, strict=True):
            # the negation of both comparisons counts NaN as outside
            outside |= ~((values >= edges[0]) & (values <= edges[-1]))
            # the lowest edge belongs to the first box, where the search gives -1
            found.append(np.maximum(np.searchsorted(edges, values, side="left") - 1, 0))
        if outside.any():
            first = int(np.argmax(outside))
            raise PriorError(
                f"{places[first].tolist()} at position {first} is outside of the support: clip it first"
            )
        return np.asarray(np.ravel_multi_index(found, [len(edges) - 1 for edges in self.edges]))

    def compute_min_distances(self) -> FloatArray:
        """Compute the (size, size) minimum distances between boxes."""
        squares = np.zeros((self.size, self.size))
        for axis, period in enumerate(self.periods):
            low = self.lower[:, axis, None]
            high = self.upper[:, axis, None]
            least = low.T
            most = high.T
            # (size, size): at most one of the two differences is positive, none where intervals overlap
            apart = np.maximum(np.maximum(low - most, least - high), 0.0)
            if period is not None:
                apart = np.minimum(
                    apart, np.maximum(period - np.maximum(high - least, most - low), 0.0)
                )
            squares += apart**2
        return np.sqrt(squares)

    def compute_max_distances(self, points: FloatArray, boxes: slice) -> FloatArray:
        """Compute the (boxes, M) maximum distances between boxes and points."""
        squares: FloatArray = np.zeros(1)
        for axis, period in enumerate(self.periods):
            low = self.lower[boxes, axis, None] - points[None, :, axis]
            high = self.upper[boxes, axis, None] - points[None, :, axis]
            ends = np.maximum(_wrap_difference(low, period), _wrap_difference(high, period))
            if period is not None:
                half = period / 2
                # an interval that holds the opposite point has its largest distance there, not at an end
                opposite = ((low <= half) & (half <= high)) | ((low <= -half) & (-half <= high))
                ends = np.where(opposite, half, ends)
            squares = squares + ends**2
        return np.sqrt(squares)


def _enumerate_corners(axes: Sequence[FloatArray]) -> FloatArray:
    """Return the Cartesian product of axis coordinates."""
    return np.array(list(product(*axes)))


def _divide_edges(edges: FloatArray, pieces: IntArray) -> FloatArray:
    """Divide each interval into equal pieces, keeping the old edges."""
    steps = [
        low + (high - low) * np.arange(n) / n
        for low, high, n in zip(edges[:-1], edges[1:], pieces, strict=True)
    ]
    return np.concatenate([*steps, edges[-1:]])


def _wrap_difference(difference: FloatArray, period: float | None) -> FloatArray:
    """Return the distance of a coordinate difference, also on a circle."""
    straight = np.abs(difference)
    return straight if period is None else np.minimum(straight, period - straight)
