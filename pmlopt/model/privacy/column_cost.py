"""Costs of columns: what bounds on all columns together, and on norms of columns, are linear in.

Designs with a sub-convex utility are linear programs in the weights of columns. A requirement that adds up a
cost over the columns is one more row of such a program; a bound on the cost of each column by its mean is a
bound on the columns themselves.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass

import numpy as np

from pmlopt.core.numbers.arrays import FloatArray
from pmlopt.solvers.solver_result import FACTOR_MARGIN_RTOL


@dataclass(frozen=True, eq=False)
class ColumnCost(ABC):
    """A cost of columns: convex, positively homogeneous, and no smaller where an entry is larger.

    Attributes:
        max_cost: what the costs of the columns of a mechanism may add up to, or that of a column of mean one.
        per_outcome: whether each column of mean one is limited, and not their sum.
    """

    max_cost: float
    per_outcome: bool

    @abstractmethod
    def evaluate(self, columns: FloatArray) -> FloatArray:
        """Evaluate (K,) the cost of (N, K) columns."""

    @abstractmethod
    def compute_slopes(self, columns: FloatArray) -> FloatArray:
        """Compute (K, N) linear costs that are the cost at these columns, and at most the cost elsewhere."""

    @abstractmethod
    def shrink_slopes(self, slopes: FloatArray) -> FloatArray:
        """Return (K, N) linear costs, each divided as far as needed to be at most the cost everywhere."""

    @property
    @abstractmethod
    def unit_costs(self) -> FloatArray:
        """Return (N,) the cost of the column that is 1 at each letter and 0 elsewhere."""

    @property
    def first_slopes(self) -> FloatArray:
        """Return (K, N) linear costs that are taken from the beginning, besides those of single letters."""
        return np.empty((0, len(self.unit_costs)))

    @property
    def usable_cost(self) -> float:
        """Return the largest cost less a margin, so that a vertex survives rounding; a constant is within."""
        constant = float(self.evaluate(np.ones((len(self.unit_costs), 1)))[0])
        return max(constant, self.max_cost * (1 - FACTOR_MARGIN_RTOL))


@dataclass(frozen=True, eq=False)
class LargestPieceCost(ColumnCost):
    """The largest of several linear costs with non-negative coefficients.

    Attributes:
        pieces: (W, N) non-negative.

    Examples:
        >>> LargestPieceCost(2.0, False, np.eye(2)).evaluate(np.array([[0.5, 2.0], [1.0, 0.0]]))
        array([1., 2.])
    """

    pieces: FloatArray

    def evaluate(self, columns: FloatArray) -> FloatArray:
        """Evaluate (K,) the cost of (N, K) columns."""
        return np.asarray((self.pieces @ columns).max(axis=0))

    def compute_slopes(self, columns: FloatArray) -> FloatArray:
        """Compute (K, N) linear costs that are the cost at these columns, and at most the cost elsewhere."""
        return np.asarray(self.pieces[(self.pieces @ columns).argmax(axis=0)])

    def shrink_slopes(self, slopes: FloatArray) -> FloatArray:
        """Return none of them: all linear costs are among the first."""
        return slopes[:0]

    @property
    def unit_costs(self) -> FloatArray:
        """Return (N,) the cost of the column that is 1 at each letter and 0 elsewhere."""
        return np.asarray(self.pieces.max(axis=0))

    @property
    def first_slopes(self) -> FloatArray:
        """Return those pieces that are not at a single letter only."""
        return np.asarray(self.pieces[(self.pieces > 0).sum(axis=1) > 1])


@dataclass(frozen=True, eq=False)
class NormCost(ColumnCost):
    """The norm `(sum_x p[x] v[x]^alpha)^(1/alpha)` of a column.

    Attributes:
        p: (N,) positive.
        alpha: above 1 and finite.

    Examples:
        >>> NormCost(2.0, False, np.array([0.5, 0.5]), 2.0).evaluate(np.array([[1.0], [1.0]]))
        array([1.])
    """

    p: FloatArray
    alpha: float

    def evaluate(self, columns: FloatArray) -> FloatArray:
        """Evaluate (K,) the cost of (N, K) columns."""
        return _weighted_norm(self.p, columns, self.alpha)

    def compute_slopes(self, columns: FloatArray) -> FloatArray:
        """Compute (K, N) linear costs that are the cost at these columns, and at most the cost elsewhere."""
        # entries over the norm: no power of a large or a small number is taken
        shares = columns / self.evaluate(columns)
        return (self.p[:, None] * shares ** (self.alpha - 1)).T

    def shrink_slopes(self, slopes: FloatArray) -> FloatArray:
        """Return (K, N) linear costs, each divided as far as needed to be at most the cost everywhere.

        By Hoelder's inequality that is so where the norm of the dual order of `slope / p` is at most one.
        """
        beta = self.alpha / (self.alpha - 1)
        dual_norms = _weighted_norm(self.p, np.maximum(slopes, 0.0).T / self.p[:, None], beta)
        # the allowance is for the rounding of a norm of N terms
        rounding = 1 + (len(self.p) + 8) * 2.0**-52
        return np.maximum(slopes, 0.0) / np.maximum(dual_norms * rounding, 1.0)[:, None]

    @property
    def unit_costs(self) -> FloatArray:
        """Return (N,) the cost of the column that is 1 at each letter and 0 elsewhere."""
        return self.p ** (1 / self.alpha)


def _weighted_norm(p: FloatArray, columns: FloatArray, order: float) -> FloatArray:
    """Compute (K,) the norms of a finite order of (N, K) columns under weights p."""
    top = columns.max(axis=0)
    scaled = columns / np.where(top > 0, top, 1.0)
    return np.asarray(top * (p @ scaled**order) ** (1 / order))
