"""The simplex method on linear programs with few rows, many columns and hardly a zero.

`min <c, w>`, `A w = 1`, `w >= 0`, from a basis of which hardly a weight is negative. Its inverse is kept as a
matrix, which for such programs is several times faster than the sparse factors of general solvers.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from pmlopt.core.numbers.arrays import FloatArray, IntArray
from pmlopt.solvers.solver_result import NO_DEADLINE, Deadline


@dataclass(frozen=True, eq=False)
class DenseVertex:
    """A vertex of the linear program.

    Attributes:
        weights: (K,) of the columns.
        basis: (N,) the columns that may have a positive weight.
        prices: (N,) of the rows, over which no column of the basis costs anything.
    """

    weights: FloatArray
    basis: IntArray
    prices: FloatArray


def solve_dense_lp(
    columns: FloatArray, costs: FloatArray, basis: IntArray, deadline: Deadline = NO_DEADLINE
) -> DenseVertex | None:
    """Solve `min <costs, w>`, `columns w = 1`, `w >= 0` by the dual and then the primal simplex method.

    Args:
        columns: (N, K).
        costs: (K,).
        basis: (N,) the columns to begin with.
        deadline: at which the best vertex so far is returned.

    Returns:
        The best vertex; None where none was found in time, or the basis is singular in floats.
    """
    try:
        tableau = _Tableau.build(columns, costs, basis)
        if not _remove_negative_weights(tableau, deadline):
            return None
        _lower_costs(tableau, deadline)
        # weights that were raised from 0 may be below it without that
        _remove_negative_weights(tableau, deadline)
    except np.linalg.LinAlgError:
        return None
    weights = np.zeros(len(costs))
    weights[tableau.basis] = np.maximum(tableau.weights, 0.0)
    # a basis that is nearly singular has lost the digits
    if not np.abs(columns @ weights - 1).max() < 1e-8:
        return None
    return DenseVertex(weights, tableau.basis, costs[tableau.basis] @ tableau.inverse)


@dataclass(eq=False)
class _Tableau:
    """A basis with its inverse, its weights, and the reduced costs of all columns."""

    columns: FloatArray
    costs: FloatArray
    basis: IntArray
    inverse: FloatArray
    weights: FloatArray
    reduced: FloatArray
    pivots: int = 0

    @classmethod
    def build(cls, columns: FloatArray, costs: FloatArray, basis: IntArray) -> _Tableau:
        """Build the tableau of a basis."""
        inverse = np.asarray(np.linalg.inv(columns[:, basis]), dtype=float)
        tableau = cls(columns, costs, basis.copy(), inverse, inverse.sum(axis=1), costs)
        tableau.reduced = tableau.compute_reduced_costs()
        return tableau

    def compute_reduced_costs(self) -> FloatArray:
        """Compute (K,) what each column costs over the prices of the rows."""
        reduced = self.costs - (self.costs[self.basis] @ self.inverse) @ self.columns
        reduced[self.basis] = 0.0
        return np.asarray(reduced)

    def compute_row(self, place: int) -> FloatArray:
        """Compute (K,) by how much each column lowers the weight at a place of the basis."""
        row = self.inverse[place] @ self.columns
        row[self.basis] = 0.0
        return np.asarray(row)

    def exchange(self, place: int, entering: int, row: FloatArray, change: FloatArray) -> None:
        """Exchange the column at a place of the basis for another, with the given change of weights."""
        if abs(change[place]) < 1e-12:  # the inverse has lost the digits that chose it
            raise np.linalg.LinAlgError("a pivot is zero")
        leaving, price = self.basis[place], self.reduced[entering] / change[place]
        self.reduced = self.reduced - price * row
        self.reduced[leaving], self.reduced[entering] = -price, 0.0
        step = self.weights[place] / change[place]
        self.weights = self.weights - step * change
        self.weights[place] = step
        pivot = self.inverse[place] / change[place]
        self.inverse -= change[:, None] * pivot
        self.inverse[place] = pivot
        self.basis[place] = entering
        self.pivots += 1
        # the rounding of so many exchanges is removed now and then
        if self.pivots % 100 == 0:
            self.inverse = np.asarray(np.linalg.inv(self.columns[:, self.basis]), dtype=float)
            self.weights = self.inverse.sum(axis=1)


def _remove_negative_weights(tableau: _Tableau, deadline: Deadline) -> bool:
    """Exchange columns of negative weights for others, and return whether none is left.

    This is the dual simplex method on costs that are raised until none is negative.
    """
    tableau.reduced = np.maximum(tableau.reduced, 0.0)
    most = tableau.pivots + 10 * len(tableau.basis)
    while tableau.pivots < most and not deadline.expired:
        place = int(tableau.weights.argmin())
        if tableau.weights[place] >= -1e-12:
            return True
        row = tableau.compute_row(place)
        # smaller pivots are rounding
        able = np.flatnonzero(row < -1e-9)
        if not len(able):
            return False
        # a reduced cost is below 0 by rounding only
        ratios = np.maximum(tableau.reduced[able], 0.0) / -row[able]
        # of columns that cost equally much the one with the largest pivot, for the sake of the digits
        near = able[ratios <= ratios.min() * (1 + 1e-9)]
        entering = int(near[row[near].argmin()])
        change = tableau.inverse @ tableau.columns[:, entering]
        tableau.exchange(place, entering, row, change)
    return False


def _lower_costs(tableau: _Tableau, deadline: Deadline) -> None:
    """Exchange columns for cheaper ones until none is left or the time is over."""
    tableau.reduced = tableau.compute_reduced_costs()
    least = -1e-9 * float(np.abs(tableau.costs).max())
    most, random = tableau.pivots + 20 * len(tableau.basis), np.random.default_rng(0)
    while tableau.pivots < most and not deadline.expired:
        entering = int(tableau.reduced.argmin())
        if tableau.reduced[entering] >= least:
            break
        change = tableau.inverse @ tableau.columns[:, entering]
        able = np.flatnonzero(change > 1e-9)
        if not len(able):
            break
        steps = np.maximum(tableau.weights[able], 0.0) / change[able]
        near = able[steps <= steps.min() * (1 + 1e-9)]
        place = int(near[change[near].argmax()])
        tableau.exchange(place, entering, tableau.compute_row(place), change)
        if steps.min() <= 1e-12:
            # weights of 0 would stay so in one basis after another
            tableau.weights += 1e-10 * random.random(len(tableau.weights))
    tableau.weights = tableau.inverse.sum(axis=1)
