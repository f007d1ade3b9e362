"""Draws from the rows of a matrix of probabilities, exactly: random bits against whole numbers.

A row p of floats is a row of rationals. With the sums `c_y = 2^W (p_0 + ... + p_y) / (p_0 + ... + p_{M-1})`
and a real number u, uniform on [0, 2^W), the output is the first y with `u < c_y`, which has the probability
`(c_y - c_{y-1}) / 2^W = p_y / sum p`. The bits of u are drawn as they are needed. The first W = 53 are the
whole part j of u, and the comparisons that they decide are comparisons of integers:

    j >= ceil(c_y)  implies  u >= c_y,   and   j < floor(c_y)  implies  u < c_y.

Where the entries are multiples of 2^-53 and sum to one, as a mechanism that pmlopt designed has them, each
c_y is whole and 53 bits decide always. Elsewhere they leave the comparison with c_y open only at
`j = floor(c_y) < c_y`, and more bits are drawn. No step rounds, so the law is that of the row over its sum.
"""

from __future__ import annotations

from itertools import accumulate

import numpy as np
from numpy.typing import NDArray

from pmlopt.core.arrays import BoolArray, FloatArray, IntArray, common_integers
from pmlopt.data.sampling.random_bits import RandomBits, Words

WIDTH = 53
"""Bits that are drawn at first: those of the grid of a mechanism."""

_CHUNK = 2**16
"""Draws at a time: their numbers stay in the cache."""

_LARGEST_GUIDE = 2**22
"""Cells of all guide tables together, 16 MiB."""


class RowSampler:
    """Draws outputs from the rows of a matrix of probabilities.

    A guide table has for the first bits of j where the search for y begins [chen1974generating].

    Args:
        matrix: (N, M) non-negative; a row's law is the row over its sum.
        width: W, the number of bits that are drawn at a time, at most 53.

    Examples:
        >>> from pmlopt.data.sampling.random_bits import SystemBits
        >>> RowSampler(np.eye(3)).draw(np.array([2, 0]), SystemBits())
        array([2, 0])
    """

    def __init__(self, matrix: FloatArray, width: int = WIDTH) -> None:
        self._matrix = matrix
        self._width = width
        self._ceilings, self._open = _thresholds(matrix, width)
        rows, outputs = matrix.shape
        fine = (16 * outputs).bit_length()
        room = (_LARGEST_GUIDE // rows).bit_length() - 1
        self._digits = max(0, min(fine, room, width))
        starts = np.arange(1 << self._digits, dtype=np.uint64) << np.uint64(width - self._digits)
        self._guide = np.concatenate(
            [np.searchsorted(row, starts, side="right") for row in self._ceilings]
        ).astype(np.int32)

    def draw(self, rows: IntArray, bits: RandomBits) -> IntArray:
        """(n,) an output for each of n rows, as their places in the matrix."""
        drawn = np.empty(len(rows), dtype=np.int64)
        for start in range(0, len(rows), _CHUNK):
            part = slice(start, start + _CHUNK)
            drawn[part] = self._drawn(rows[part], bits)
        return drawn

    def _drawn(self, rows: IntArray, bits: RandomBits) -> IntArray:
        words = bits.words(len(rows)) >> np.uint64(64 - self._width)
        first = (words >> np.uint64(self._width - self._digits)).view(np.int64)
        # a flat place in the matrix is faster than a row and an output
        places = self._guide[(rows << self._digits) + first] + rows * self._matrix.shape[1]
        ceilings = self._ceilings.ravel()
        late = np.flatnonzero(words >= ceilings[places])
        while late.size:
            places[late] += 1
            late = late[words[late] >= ceilings[places[late]]]
        outputs = places - rows * self._matrix.shape[1]
        if self._open is not None:
            undecided = self._open.ravel()[places] & (words + np.uint64(1) == ceilings[places])
            for draw in np.flatnonzero(undecided).tolist():
                outputs[draw] = self._decided(int(rows[draw]), int(outputs[draw]), int(words[draw]), bits)
        return np.asarray(outputs)

    def _decided(self, row: int, output: int, drawn: int, bits: RandomBits) -> int:
        """The output, from the first one that the bits drawn so far leave open, with more bits."""
        sums = list(accumulate(common_integers(self._matrix[row])[0]))
        total, digits = sums[-1], self._width
        while True:
            while drawn * total >= sums[output] << digits:
                output += 1
            if (drawn + 1) * total <= sums[output] << digits:
                return output
            drawn = drawn << self._width | int(bits.words(1)[0]) >> (64 - self._width)
            digits += self._width


def _thresholds(matrix: FloatArray, width: int) -> tuple[Words, BoolArray | None]:
    """(N, M) the sums c_y rounded up, and which of them are not whole; None where all are."""
    whole = np.floor(matrix * 2.0**width)  # a power of two: exact
    sums = np.cumsum(np.minimum(whole, 2.0**width).astype(np.uint64), axis=1)
    on_grid = (whole == matrix * 2.0**width).all(axis=1) & (sums[:, -1] == np.uint64(1 << width))
    if on_grid.all():
        return sums, None
    fractional: NDArray[np.bool_] = np.zeros(matrix.shape, dtype=bool)
    for row in np.flatnonzero(~on_grid).tolist():
        below = list(accumulate(common_integers(matrix[row])[0]))
        parts = [divmod(part << width, below[-1]) for part in below]
        sums[row] = [floor + (rest > 0) for floor, rest in parts]
        fractional[row] = [rest > 0 for _, rest in parts]
    return sums, fractional
