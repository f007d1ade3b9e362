"""Exact sums over the columns of a large matrix on a grid, as integers, by matrix products of floats."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from pmlopt.core.numbers.arrays import GRID_DENOMINATOR, FloatArray
from pmlopt.core.numbers.blocks import iterate_row_blocks


@dataclass(frozen=True, eq=False)
class GridMatrix:
    """The matrix of integers `2^53 P` of a matrix P of multiples of 2^-53 in [0, 1].

    It has what a bound between means of a column needs: sums with integer weights, and the largest and the
    least entry of each column. They are exact, as those of an array of Python integers, which takes some
    fifty times as long.

    The integers of a column are split into two halves of 27 bits, and the weights into parts of so few bits
    that a sum over the letters of products of parts stays below 2^53. Floats hold each partial sum then,
    in any order, without rounding.

    Attributes:
        matrix: (N, M) the floats P.
    """

    # numpy leaves products with an array to this class
    __array_ufunc__: ClassVar[None] = None

    matrix: FloatArray

    @classmethod
    def from_floats(cls, matrix: FloatArray) -> GridMatrix | None:
        """Return the integers of a matrix of floats; None where they are not on the grid."""
        if len(matrix) > 2**20:  # too few bits are left for a part of a weight
            return None
        for rows in iterate_row_blocks(matrix.shape):
            scaled = matrix[rows] * GRID_DENOMINATOR  # a power of two: exact
            # negated, so that what is no number is refused
            if not (np.rint(scaled) == scaled).all() or scaled.min() < 0:
                return None
            if scaled.max() > GRID_DENOMINATOR:
                return None
        return cls(matrix)

    def __rmatmul__(self, weights: Any) -> Any:
        """Compute (M,) the sums of each column with N non-negative integer weights, as Python integers."""
        numbers = [int(weight) for weight in weights]
        # N products below 2^bits 2^27 sum to less than 2^53
        bits = 26 - len(numbers).bit_length()
        count = max(1, -(-max(numbers).bit_length() // bits))
        mask = (1 << bits) - 1
        parts = np.array(
            [[number >> (bits * place) & mask for number in numbers] for place in range(count)],
            dtype=float,
        )
        high = np.zeros((count, self.matrix.shape[1]))
        low = np.zeros((count, self.matrix.shape[1]))
        for rows in iterate_row_blocks(self.matrix.shape):
            scaled = self.matrix[rows] * (GRID_DENOMINATOR / 2**27)
            upper = np.floor(scaled)
            scaled -= upper  # below 1, of 27 bits
            scaled *= 2**27
            high += parts[:, rows] @ upper
            low += parts[:, rows] @ scaled
        found = np.zeros(self.matrix.shape[1], dtype=object)
        for place in range(count):
            sums = (_to_integers(high[place]) << 27) + _to_integers(low[place])
            found += sums << (bits * place)
        return found

    def max(self, axis: int) -> Any:
        """Compute the largest entries along an axis, as Python integers."""
        return _to_integers(self.matrix.max(axis=axis) * GRID_DENOMINATOR)

    def min(self, axis: int) -> Any:
        """Compute the least entries along an axis, as Python integers."""
        return _to_integers(self.matrix.min(axis=axis) * GRID_DENOMINATOR)

    def sum(self, axis: int) -> Any:
        """Compute the sums along an axis, as Python integers."""
        turned = self.matrix.T if axis == 1 else self.matrix
        return np.ones(len(turned), dtype=object) @ GridMatrix(turned)


def _to_integers(values: FloatArray) -> Any:
    """Return whole floats as an array of Python integers."""
    return np.array([int(value) for value in values.tolist()], dtype=object)
