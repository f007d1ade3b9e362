"""Linear constraints on a whole matrix, beside the blocks of its columns."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from pmlopt.arrays import BoolArray, FloatArray

if TYPE_CHECKING:
    from scipy import sparse


@dataclass(frozen=True, eq=False)
class Border:
    """Constraints `<A_b, P> >= least[b]`, or equal to it, on matrices P (N, M).

    Attributes:
        rows: (B, N M) the A_b, row by row.
        least: (B,).
        equal: (B,) where it is an equality.
        shape: (N, M).
    """

    rows: sparse.csr_array
    least: FloatArray
    equal: BoolArray
    shape: tuple[int, int]

    @classmethod
    def of(cls, matrices: FloatArray, least: FloatArray, equal: BoolArray | None = None) -> Border:
        """From the A_b as an array (B, N, M); inequalities, if nothing is said."""
        from scipy import sparse

        count, n, m = matrices.shape
        given = np.zeros(count, dtype=bool) if equal is None else equal
        return cls(sparse.csr_array(matrices.reshape(count, n * m)), least, given, (n, m))

    def __len__(self) -> int:
        return len(self.least)

    def at(self, matrix: FloatArray) -> FloatArray:
        """(B,) the left sides at a matrix."""
        return np.asarray(self.rows @ matrix.ravel())

    def priced(self, multipliers: FloatArray) -> FloatArray:
        """(N, M) `sum_b multipliers[b] A_b`."""
        return np.asarray(self.rows.T @ multipliers).reshape(self.shape)

    def by_output(self, part: FloatArray) -> FloatArray:
        """(B, M) the left sides at a matrix, output by output."""
        return np.asarray(self._by_output @ part.ravel()).reshape(len(self), -1)

    def by_letter(self, part: FloatArray) -> FloatArray:
        """(B, N) the left sides at a matrix, letter by letter."""
        return np.asarray(self._by_letter @ part.ravel()).reshape(len(self), -1)

    def square(self, psi: FloatArray) -> FloatArray:
        """(B, B) the products of the A_b with each other, the entries weighted by psi."""
        from scipy import sparse

        weighted = self.rows * psi.reshape(1, -1)
        return np.asarray((sparse.csr_array(weighted) @ self.rows.T).toarray())

    @cached_property
    def _by_output(self) -> sparse.csr_array:
        return self._apart(self.shape[1], np.arange(self.shape[0] * self.shape[1]) % self.shape[1])

    @cached_property
    def _by_letter(self) -> sparse.csr_array:
        return self._apart(self.shape[0], np.arange(self.shape[0] * self.shape[1]) // self.shape[1])

    def _apart(self, parts: int, part: NDArray[np.intp]) -> sparse.csr_array:
        """The rows, each in as many as there are parts: that of each entry is given."""
        from scipy import sparse

        entries = self.rows.tocoo()
        place = entries.row * parts + part[entries.col]
        shape = (len(self) * parts, self.shape[0] * self.shape[1])
        return sparse.csr_array((entries.data, (place, entries.col)), shape=shape)
