"""What a requirement asks of one column, as numbers, and linear constraints beside the columns."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from pmlopt.core.arrays import BoolArray, FloatArray

if TYPE_CHECKING:
    from scipy import sparse


@dataclass(frozen=True, eq=False)
class Hinge:
    """A variable r for each entry v of a column, with `r >= 0` and `r >= sign (v - at'u)`.

    Attributes:
        sign: 1 for what is above a threshold, -1 for what is below.
        at: (k,) the threshold, linear in the scalars u.
        inside: the r of the column of ones.
        costs: (K, N) what r takes from the rows of the column, or None. Letters that cost nothing have no r.
        budget: the most that the r of a letter may add up to over all columns, or None where there are costs.
    """

    sign: float
    at: FloatArray
    inside: float
    costs: FloatArray | None = None
    budget: float | None = None


@dataclass(frozen=True, eq=False)
class Block:
    """Columns v between two ends that are linear in few scalars u of the column's own.

    `lower'u <= v[x] <= upper'u` for every letter x; with weights, for each of K rows,
    `weights_k'v - costs_k'r = mean_k'u`, or `>=`; and with a total, `u[0]` adds up to at most that over all
    columns.
    What a requirement declares in cvxpy says the same, with a row for each output where this has a number.

    Attributes:
        lower: (k,) zeros, or one scalar's alone: then `lower'u >= 0` must be said, unless that is the only
            scalar.
        upper: (k,), infinite where nothing bounds the entries from above.
        inside: (k,) the u at which the column of ones is strictly between the ends.
        weights: (K, N), or None.
        mean: (K, k) what belongs to the weights, or None.
        loose: whether the rows say `>=`.
        hinge: the r, where there are any.
        total: of u[0], or None.
    """

    lower: FloatArray
    upper: FloatArray
    inside: FloatArray
    weights: FloatArray | None = None
    mean: FloatArray | None = None
    loose: bool = False
    hinge: Hinge | None = None
    total: float | None = None

    @cached_property
    def floored(self) -> bool:
        """Whether `lower'u >= 0` must be said: the lower end is a scalar of its own."""
        return len(self.lower) > 1 and bool(self.lower.any())

    @cached_property
    def capped(self) -> bool:
        """Whether there is an upper end."""
        return bool(np.isfinite(self.upper).all())

    @cached_property
    def banded(self) -> bool:
        """Whether there is nothing but two ends and one mean: a program of few nonzeros an entry."""
        rows = 0 if self.weights is None else len(self.weights)
        return self.hinge is None and self.total is None and not self.loose and rows <= 1


def ratio_block(keep: float) -> Block | None:
    """Columns with `keep max v <= min v`; None where nothing lies strictly inside."""
    if keep >= 1:
        return None
    return Block(np.array([keep]), np.ones(1), np.array([keep**-0.5]))


def mean_block(weights: FloatArray, keep: float, least: float = 0.0, largest: float = 0.0) -> Block | None:
    """Columns `v >= 0` with `keep max v <= weights'v + least min v - largest max v`.

    None where nothing lies strictly inside, which is where the column of ones only just meets the bound.
    """
    room = float(weights.sum()) + least - largest - keep
    if room <= 0:
        return None
    if least == 0:
        return Block(np.zeros(1), np.ones(1), np.array([weights.sum() / (keep + largest)]),
                     weights[None, :], np.array([[keep + largest]]))  # fmt: skip
    if not weights.any():
        return ratio_block((keep + largest) / least)
    low = max(0.5, 1 - room / (2 * least))
    width = (weights.sum() + least * low) / (keep + largest) - low
    mean = np.array([[keep + largest, keep + largest - least]])
    return Block(np.array([0.0, 1.0]), np.ones(2), np.array([width, low]), weights[None, :], mean)


def threshold_block(weights: FloatArray, half: float, keep: float) -> Block | None:
    """Columns `v >= 0` with `keep max v <= w(v)`, `half` of the mass moving from the top to the least entry.

    `w(v) = max_t weights'min(v, t) - half (t - min v)`, with u = (max v - min v, min v, t).
    """
    room = 1 - keep
    if room <= 0:
        return None
    low = max(0.5, 1 - room / (4 * half))
    cut = room / 4
    width = (1 - cut - half * (1 - low)) / keep - low
    hinge = Hinge(1.0, np.array([0.0, 0.0, 1.0]), cut, weights[None, :])
    mean = np.array([[keep, keep - half, half]])
    return Block(np.array([0.0, 1.0, 0.0]), np.array([1.0, 1.0, 0.0]), np.array([width, low, 1.0]),
                 weights[None, :], mean, hinge=hinge)  # fmt: skip


def edge_block(lower: FloatArray, width: FloatArray, keep: float) -> Block | None:
    """Columns `v >= 0` with `keep max v <= w(v)`, where each letter has from `lower` to `lower + width`.

    `w(v) = max_e lower'v + (1 - sum(lower)) e - width'max(e - v, 0)`, with u = (max v, e).
    """
    room = 1 - keep
    if room <= 0:
        return None
    below = room / (2 * float(width.sum()))
    hinge = Hinge(-1.0, np.array([0.0, 1.0]), below, width[None, :])
    mean = np.array([[keep, float(lower.sum()) - 1]])
    return Block(np.zeros(2), np.array([1.0, 0.0]), np.array([(1 - room / 2) / keep, 1.0]),
                 lower[None, :], mean, hinge=hinge)  # fmt: skip


def hull_block(laws: FloatArray, keep: float) -> Block | None:
    """Columns `v >= 0` with `keep max v <= law'v` for each of K laws."""
    if keep >= 1:
        return None
    return Block(
        np.zeros(1), np.ones(1), np.array([keep**-0.5]), laws, np.full((len(laws), 1), keep), loose=True
    )


def peak_block(total: float) -> Block | None:
    """Columns `v >= 0` whose largest entries add up to at most `total`."""
    if total <= 1:
        return None
    return Block(np.zeros(1), np.ones(1), np.array([(1 + total) / 2]), total=total)


def slack_block(weights: FloatArray, keep: float, budget: float) -> Block | None:
    """Columns `v >= 0` with `keep (v - r) <= weights'v`, the r of a letter adding up to at most `budget`."""
    if keep >= 1:
        return None
    hinge = Hinge(1.0, np.ones(1), budget / 2, budget=budget)
    return Block(
        np.zeros(1),
        np.full(1, np.inf),
        np.array([1 / keep]),
        weights[None, :],
        np.array([[keep]]),
        hinge=hinge,
    )


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
