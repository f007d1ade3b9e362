"""Prices of the letters' rows in a large design under PML, by a smoothed dual program.

With row prices m, a column at an output costs at least, for each unit of its probability,

    max_t t - e^eps sum_x p[x] max(t - d[x], 0),    d = costs - m,

the mean of d over its smallest mass e^-eps; and p'm plus the least of those numbers bounds what every
mechanism costs. At a temperature the hinges become `(z + sqrt(1 + z^2)) / 2` and the least a soft minimum.
Newton's method then maximizes the bound over the N prices alone, with each column at its best, in one or two
steps each time that the temperature halves: no entry of a mechanism limits how far a step goes.

Sources: [chen1996class] (the smoothed hinge); [nesterov2005smooth].
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import ClassVar, NamedTuple

import numpy as np

from pmlopt.core.numbers.arrays import BoolArray, FloatArray
from pmlopt.data.prior import find_edges
from pmlopt.solvers.solver_result import Deadline


class RowPrices(NamedTuple):
    """Prices of the rows, near the optimal ones.

    Attributes:
        prices: (N,).
        values: (M,) a lower bound, but for rounding, of what a column of probability one at each output costs
            more than its rows are worth.
        likely: (M,) the outputs that an optimal mechanism may use.
    """

    prices: FloatArray
    values: FloatArray
    likely: BoolArray


def find_row_prices(
    pmf: FloatArray, costs: FloatArray, exp_neg_epsilon: float, deadline: Deadline
) -> RowPrices:
    """Find row prices near the optimal ones.

    Args:
        pmf: (N,) the prior.
        costs: (N, M) of size one.
        exp_neg_epsilon: the mass on which the largest entries of a column lie.
        deadline: when time is over, the prices so far are returned.
    """
    dual = _SmoothedDual(pmf, costs.astype(np.float32), 1 / exp_neg_epsilon)
    prices = costs.min(axis=1)
    levels = pmf @ costs - pmf @ prices
    kept = np.ones(costs.shape[1], dtype=bool)
    temperature = 0.05
    best = None
    bound = -np.inf
    while True:
        point = dual.maximize(prices, levels, kept, temperature)
        prices = point.prices
        levels[kept] = point.levels
        levels, values = dual.find_levels(prices, levels, temperature)
        before = bound
        bound = float(pmf @ prices + values.min())
        # colder, columns hardly overlap any more, and the steps no longer reach their ends
        if best is not None and temperature < 1e-3 and bound <= before:
            return best
        best = RowPrices(prices, values, values <= values.min() + 15 * temperature)
        if temperature < 5e-5 or deadline.expired:
            return best
        # of the others the soft minimum takes less than a thousandth
        kept = values <= values.min() + 3 * temperature
        temperature /= 2


class _Levels(NamedTuple):
    """Columns at some levels.

    Attributes:
        levels: (M,) their t.
        z, root: (N, M) of the hinges, and sqrt(1 + z^2).
        excess: (M,) what the columns have more than a mean of one.
        values: (M,) what a column of probability one costs.
    """

    levels: FloatArray
    z: FloatArray
    root: FloatArray
    excess: FloatArray
    values: FloatArray


@dataclass(frozen=True, eq=False)
class _Point:
    """The smoothed bound at some prices, with its derivatives.

    Attributes:
        prices: (N,) of the rows.
        levels: (M,) the t of the columns.
        entries: (N, M) of the columns of probability one, in single precision.
        slopes: (N, M) what they gain, in temperatures.
        excess: (M,) what the columns have more than a mean of one.
        shares: (M,) the probabilities of the outputs.
        missing: (N,) what the rows lack to sums of one.
        value: the smoothed bound.
    """

    prices: FloatArray
    levels: FloatArray
    entries: FloatArray
    slopes: FloatArray
    excess: FloatArray
    shares: FloatArray
    missing: FloatArray
    value: float


class _SmoothedDual:
    """The smoothed dual program.

    Args:
        pmf: (N,) the prior.
        costs: (N, M) in single precision.
        largest: e^eps, the most that an entry of a column of mean one can be.
    """

    SETTLED: ClassVar[float] = 0.05
    """What columns may miss to a mean of one, and rows to sums of one on average."""

    def __init__(self, pmf: FloatArray, costs: FloatArray, largest: float) -> None:
        self.pmf = pmf
        self.costs = costs
        self.largest = largest
        self.weights = pmf.astype(np.float32)

    def maximize(
        self, prices: FloatArray, levels: FloatArray, kept: BoolArray, temperature: float
    ) -> _Point:
        """Take a few steps towards the best prices of the columns that are kept."""
        costs = self.costs if kept.all() else np.ascontiguousarray(self.costs[:, kept])
        point = self._evaluate(costs, prices, levels[kept], temperature)
        for _ in range(4):
            step = temperature * self._find_direction(point)
            slope = float(self.pmf * point.missing @ step)
            length = 1.0
            while True:
                there = point.prices + length * step
                following = self._evaluate(costs, there, point.levels, temperature)
                # less than the rounding of single precision is no change
                if following.value >= point.value + 0.1 * length * slope - 1e-7 or length < 0.01:
                    break
                length /= 2
            point = following
            if self.pmf @ np.abs(point.missing) <= self.SETTLED:
                break
        return point

    def find_levels(
        self, prices: FloatArray, levels: FloatArray, temperature: float
    ) -> tuple[FloatArray, FloatArray]:
        """Improve the levels of all columns by a few steps; return them and (M,) what columns cost.

        A level that is far off makes a column look cheaper than it is: those of cheap columns are begun anew.
        """
        found = self._move_levels(self.costs, prices, levels, temperature, 3)
        far = np.abs(found.excess) > self.SETTLED
        cheap = far & (found.values <= found.values[~far].min(initial=np.inf) + 6 * temperature)
        if cheap.any():
            some = self.costs[:, cheap]
            edges = -find_edges(self.pmf, prices[:, None] - some, 1 / self.largest)
            again = self._move_levels(some, prices, edges, temperature, 12)
            found.levels[cheap] = again.levels
            found.values[cheap] = again.values
        return found.levels, found.values

    def _move_levels(
        self,
        costs: FloatArray,
        prices: FloatArray,
        levels: FloatArray,
        temperature: float,
        steps: int,
    ) -> _Levels:
        """Move levels towards columns of mean one."""
        half = self.largest / 2
        for step in range(steps):
            z = levels.astype(np.float32) - costs
            z += prices.astype(np.float32)[:, None]
            z *= np.float32(1 / temperature)
            root = z * z
            root += 1
            np.sqrt(root, out=root)
            excess = half * (1 + self.weights @ (z / root)) - 1
            if step == steps - 1 or np.abs(excess).max() <= self.SETTLED:
                break
            slopes = half * (self.weights @ (1 / (root * root * root)))
            change = -excess / np.maximum(slopes, 1e-30)
            levels = levels + temperature * np.clip(change, -4, 4)
        values = levels - temperature * half * (self.weights @ (z + root))
        return _Levels(levels, z, root, excess, values)

    def _evaluate(
        self, costs: FloatArray, prices: FloatArray, levels: FloatArray, temperature: float
    ) -> _Point:
        """Compute the smoothed bound, with levels that fit the prices."""
        levels, z, root, excess, values = self._move_levels(costs, prices, levels, temperature, 12)
        least = values.min()
        shares = np.exp((least - values) / (temperature / 2))
        total = shares.sum()
        shares /= total
        z /= root
        z += 1
        z *= self.largest / 2
        return _Point(
            prices,
            levels,
            z,
            self.largest / 2 / (root * root * root),
            excess,
            shares,
            1 - z @ shares.astype(np.float32),
            float(self.pmf @ prices + least - temperature / 2 * np.log(total)),
        )

    def _find_direction(self, point: _Point) -> FloatArray:
        """Compute Newton's step of the prices, in temperatures, by conjugate gradients."""
        shares = point.shares.astype(np.float32)
        gains = np.maximum(self.weights @ point.slopes, 1e-30)
        own = point.slopes @ shares
        right = self.pmf * (point.missing + point.slopes @ (shares * point.excess / gains))
        diagonal = self.pmf * _widen_slopes(own, np.abs(point.missing))

        def apply(step: FloatArray) -> FloatArray:
            weighed = (self.pmf * step).astype(np.float32)
            pulled = point.entries @ (2 * shares * (weighed @ point.entries))
            pulled -= point.slopes @ (shares / gains * (weighed @ point.slopes))
            return diagonal * step + self.pmf * pulled

        return _solve_by_conjugate_gradients(apply, right, diagonal)


def _widen_slopes(own: FloatArray, missing: FloatArray) -> FloatArray:
    """Widen the slopes of letters whose entries are nearly all at an end to what the step has on average.

    An entry a at an end has the slope 4 a^1.5; to change it by what is missing takes a step in z of half the
    difference of the roots of 1 / a.
    """
    tail = (own / 4) ** (2 / 3) + 1e-12
    step = (tail**-0.5 - (tail + missing) ** -0.5) / 2
    return np.maximum(own, missing / np.maximum(step, 1e-12)) + 1e-6


def _solve_by_conjugate_gradients(
    apply: Callable[[FloatArray], FloatArray], right: FloatArray, diagonal: FloatArray
) -> FloatArray:
    """Solve a positive definite system to two digits."""
    solution = np.zeros_like(right)
    rest = right.copy()
    scaled = rest / diagonal
    direction = scaled
    size = float(rest @ scaled)
    enough = 1e-4 * size
    for _ in range(200):
        if size <= enough:
            break
        image = apply(direction)
        curvature = float(direction @ image)
        if curvature <= 0:  # by rounding
            break
        length = size / curvature
        solution += length * direction
        rest -= length * image
        scaled = rest / diagonal
        before = size
        size = float(rest @ scaled)
        direction = scaled + size / before * direction
    return solution
