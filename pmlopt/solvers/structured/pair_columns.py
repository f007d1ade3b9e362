"""An interior point for columns within bounds on pairs of their entries, which only row sums couple.

`min <C, P>`, rows of P sum to one, and each column v has `v[b] >= k[a,b] v[a]` for every pair of a list.
The Newton system has a matrix for each column, an M-matrix once its entries are multiplied by those of the
column, and the sum of their inverses for the rows. Pairs that others nearly imply come in for a column when
they are nearly met with equality; until then the steps are limited by them, so that every point meets all
pairs.

A column may have entries for some letters only, its members. The others are then 0 without any bound, which
is a relaxation: what is proved of it holds.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np

from pmlopt.core.numbers.arrays import BoolArray, FloatArray, IntArray
from pmlopt.solvers.solver_result import NO_DEADLINE, Deadline
from pmlopt.solvers.structured.centrality import correct_products
from pmlopt.solvers.structured.factors import get_lapack
from pmlopt.solvers.structured.m_matrices import invert_by_factors

PairPlaces = tuple[IntArray, IntArray, IntArray]
"""The columns of some pairs, and the places of their entries a and b among the members."""


@dataclass(frozen=True, eq=False)
class PairLP:
    """The linear program of columns within bounds on pairs of entries.

    Attributes:
        costs: (M, L) of the entries, a row for each column of the mechanism, of at most one in size.
        members: (M, L) the letters of the entries.
        cutoffs: (N,) the least cost of each letter in the columns of which it is no member; infinite without
            one.
        factors: (N, N) k, with `v[b] >= k[a,b] v[a]`; 0 where nothing is required, and on the diagonal.
        first: (N, N) the pairs that are in the program of every column from the beginning.
    """

    costs: FloatArray
    members: IntArray
    cutoffs: FloatArray
    factors: FloatArray
    first: BoolArray

    @classmethod
    def from_table(
        cls, costs: FloatArray, members: IntArray, factors: FloatArray, first: BoolArray
    ) -> PairLP:
        """Build the program of (N, M) costs and the (M, L) members of each column."""
        others = np.array(costs, dtype=float)
        np.put_along_axis(others, members.T, np.inf, axis=0)
        own = np.take_along_axis(costs, members.T, axis=0)
        return cls(np.ascontiguousarray(own.T), members, others.min(axis=1), factors, first)

    @property
    def shape(self) -> tuple[int, int]:
        """Return the number of columns and the number of entries of each."""
        columns, size = self.costs.shape
        return columns, size

    def select_first(self, own: IntArray) -> BoolArray:
        """Select the (L, L) pairs of members with which a column begins, at least one for each member."""
        pairs = self.first[np.ix_(own, own)]
        lonely = np.flatnonzero(~pairs.any(axis=1))
        nearest = self.factors[np.ix_(own[lonely], own)].argmax(axis=1)
        pairs[lonely, nearest] = pairs[nearest, lonely] = True
        return pairs

    def select_factors(self, column: int) -> FloatArray:
        """Return the (L, L) factors of the members of a column."""
        own = self.members[column]
        return self.factors if len(own) == len(self.factors) else self.factors[np.ix_(own, own)]

    def sum_rows(self, entries: FloatArray) -> FloatArray:
        """Sum (M, L) entries over the columns, for each of the N letters."""
        sums = np.bincount(self.members.ravel(), entries.ravel(), minlength=len(self.factors))
        return np.asarray(sums, dtype=float)

    def to_matrix(self, entries: FloatArray) -> FloatArray:
        """Build the (N, M) matrix of (M, L) entries."""
        matrix = np.zeros((len(self.factors), len(entries)))
        np.put_along_axis(matrix, self.members.T, entries.T, axis=0)
        return matrix


@dataclass(frozen=True, eq=False)
class PairRows:
    """The pairs that are in the program, by columns.

    Attributes:
        program: the program.
        column, above, below: (R,) the column of each row, and the places of the entries a and b of its pair
            among the members, sorted by columns.
    """

    program: PairLP
    column: IntArray
    above: IntArray
    below: IntArray

    @cached_property
    def factor(self) -> FloatArray:
        """Return (R,) the k of each row."""
        members, factors = self.program.members.ravel(), self.program.factors
        places = members.take(self.upper) * len(factors) + members.take(self.lower)
        return factors.ravel().take(places)

    @cached_property
    def upper(self) -> IntArray:
        """Return (R,) the places of the entries a among all of the columns."""
        return self.column * self.program.shape[1] + self.above

    @cached_property
    def lower(self) -> IntArray:
        """Return (R,) the places of the entries b among all of the columns."""
        return self.column * self.program.shape[1] + self.below

    @cached_property
    def unit(self) -> FloatArray:
        """Return (R,) numbers that give each row the size one."""
        return np.asarray(1 / np.sqrt(1 + self.factor**2))

    @cached_property
    def pull(self) -> FloatArray:
        """Return (R,) the coefficients of the entries a, less their sign."""
        return self.factor * self.unit

    def measure(self, entries: FloatArray) -> FloatArray:
        """Compute (R,) the rows `v[b] - k v[a]`, each of size one, of (M, L) entries."""
        single = entries.ravel()
        return np.asarray(self.unit * single.take(self.lower) - self.pull * single.take(self.upper))

    def price(self, weights: FloatArray) -> FloatArray:
        """Compute (M, L) what the rows add to the costs by their weights."""
        columns, size = self.program.shape
        added = _add_at(self.lower, self.unit * weights, columns * size)
        added -= _add_at(self.upper, self.pull * weights, columns * size)
        return added.reshape(columns, size)

    @cached_property
    def ends(self) -> IntArray:
        """Return (M + 1,) where the rows of each column begin, and the end."""
        return np.searchsorted(self.column, np.arange(self.program.shape[0] + 1))

    @classmethod
    def build_first(cls, program: PairLP) -> PairRows:
        """Build the rows with which the method begins."""
        found = [np.nonzero(program.select_first(own)) for own in program.members]
        column = np.repeat(np.arange(len(found)), [len(above) for above, _ in found])
        above, below = (np.concatenate(side) for side in zip(*found, strict=True))
        return cls(program, column, above, below)

    def mark_present(self) -> BoolArray:
        """Return (M, L, L) which pairs have a row."""
        columns, size = self.program.shape
        present = np.zeros((columns, size, size), dtype=bool)
        present[self.column, self.above, self.below] = True
        return present


@dataclass(frozen=True, eq=False)
class PairIterate:
    """A point of the method: a mechanism strictly within all pairs, and multipliers.

    Attributes:
        rows: the pairs that are in the program.
        matrix: (M, L) the columns.
        slack, weights: (R,) what the rows leave, and their multipliers, all positive.
        prices: (N,) the multipliers of the row sums.
    """

    rows: PairRows
    matrix: FloatArray
    slack: FloatArray
    weights: FloatArray
    prices: FloatArray

    @property
    def value(self) -> float:
        """Return the expected cost."""
        return float((self.rows.program.costs * self.matrix).sum())

    @property
    def product(self) -> float:
        """Return the mean product of slack and weight."""
        return float(self.slack @ self.weights) / len(self.slack)

    @cached_property
    def added_costs(self) -> FloatArray:
        """Return (M, L) what the rows add to the costs."""
        return self.rows.price(self.weights)

    @cached_property
    def least_costs(self) -> FloatArray:
        """Return (N,) the least of what each letter costs on the columns, with what the rows add."""
        program = self.rows.program
        least = program.cutoffs.copy()
        np.minimum.at(least, program.members.ravel(), (program.costs - self.added_costs).ravel())
        return least

    @property
    def bound(self) -> float:
        """Return a lower bound on the optimum, but for rounding."""
        return float(self.least_costs.sum())

    @cached_property
    def missing(self) -> FloatArray:
        """Return (N,) what the rows of the mechanism lack of one."""
        return 1 - self.rows.program.sum_rows(self.matrix)


@dataclass(frozen=True, eq=False)
class PairEnding:
    """How the method ended.

    Attributes:
        matrix: (N, M) the last columns, which meet all pairs of their members.
        proof: the point with the best bound.
        gap: what is left between them.
        iterations: how many there were.
        message: why it ended.
    """

    matrix: FloatArray
    proof: PairIterate
    gap: float
    iterations: int
    message: str


def solve_pair_lp(
    program: PairLP, start: FloatArray, target_gap: float, deadline: Deadline = NO_DEADLINE
) -> PairEnding:
    """Solve the program by Mehrotra's predictor and corrector with Gondzio's corrections.

    Args:
        program: to solve.
        start: (N, M) columns strictly within every pair, whose rows sum to one.
        target_gap: between cost and bound, at which the method ends.
        deadline: at which it ends with what it has.
    """
    point = proof = build_start(program, start)
    present = point.rows.mark_present()
    done, idle, message = 0, 0, ""
    while not message:
        if point.bound > proof.bound or proof is point:
            proof, idle = point, 0
        gap = point.value - proof.bound
        # where columns have few members, rows come to sum to one on the way
        if gap <= target_gap and float(np.abs(point.missing).max()) < 1e-6:
            message = "the gap is closed"
        elif deadline.expired:
            message = "stopped by the time limit"
        # with ten iterations that raise no bound rounding has the upper hand
        elif idle == 10 or done == 200:
            message = "no further progress"
        else:
            moved = _take_step(point, present, gap, deadline)
            message = (
                "stopped by the time limit" if deadline.expired else "rounding ended the steps"
            )
            if moved is not None:
                point, message, done, idle = moved, "", done + 1, idle + 1
    matrix = program.to_matrix(point.matrix)
    return PairEnding(matrix, proof, point.value - proof.bound, done, message)


def build_start(program: PairLP, matrix: FloatArray) -> PairIterate:
    """Build the first point: products of slack and weight that are all equal."""
    rows = PairRows.build_first(program)
    own = np.take_along_axis(matrix, program.members.T, axis=0)
    columns = np.ascontiguousarray(own.T)
    slack = rows.measure(columns)
    # a hundredth of the costs, which the weights are to balance
    weights = 0.01 * float(np.abs(program.costs).sum()) / len(slack) / slack
    point = PairIterate(rows, columns, slack, weights, np.zeros(len(matrix)))
    prices = np.full(len(matrix), np.inf)
    np.minimum.at(prices, program.members.ravel(), (program.costs - point.added_costs).ravel())
    return replace(point, prices=prices)


def _take_step(
    point: PairIterate, present: BoolArray, gap: float, deadline: Deadline
) -> PairIterate | None:
    """Take one step, and bring in the pairs that are nearly met with equality after it.

    Returns:
        None where the time is over, or the equations have no solution in floats.
    """
    system = PairSystem.build(point, deadline)
    if system is None:
        return None
    step = _find_step(point, system)
    if step is None:
        return None
    # what the multipliers leave of the costs counts for every letter
    if len(point.prices) * float(np.abs(system.residual).max()) > 0.05 * gap:
        step = system.refine(step)
    primal, dual = (min(1.0, 0.995 * length) for length in step.lengths)
    primal, new = _limit_columns(point.matrix, step.matrix, primal, present, point.rows.program)
    moved = replace(
        point,
        matrix=point.matrix + primal * step.matrix,
        slack=point.slack + primal * step.slack,
        weights=point.weights + dual * step.weights,
        prices=point.prices + dual * step.prices,
    )
    if not len(new[0]):
        return moved
    # in the middle of the others, but by at most a fiftieth of the gap for all letters together
    return add_rows(moved, new, moved.product, 0.02 * gap / len(moved.prices))


@dataclass(frozen=True, eq=False)
class _Step:
    """A direction, with the lengths up to which slacks and weights stay positive."""

    matrix: FloatArray
    slack: FloatArray
    weights: FloatArray
    prices: FloatArray
    lengths: tuple[float, float]


def _find_step(point: PairIterate, system: PairSystem) -> _Step | None:
    """Find the direction: predictor, corrector, and up to six corrections of products far from the rest."""
    slack, weights = point.slack, point.weights
    products = slack * weights
    step = system.solve(-products)
    primal, dual = step.lengths
    reached = float((slack + primal * step.slack) @ (weights + dual * step.weights)) / len(slack)
    target = point.product * (reached / point.product) ** 3
    wanted = target - products - step.slack * step.weights
    step = system.solve(wanted)
    if not np.isfinite(step.matrix).all() or max(step.lengths) < 1e-9:
        return None
    for _ in range(6):
        primal, dual = (min(1.0, 1.08 * length + 0.2) for length in step.lengths)
        ahead = (slack + primal * step.slack) * (weights + dual * step.weights)
        change = correct_products(ahead, target)
        better = system.solve(wanted + change)
        if not sum(better.lengths) > sum(step.lengths) + 0.005:
            break
        wanted, step = wanted + change, better
    return step


@dataclass(frozen=True, eq=False)
class PairSystem:
    """The Newton system at a point.

    Attributes:
        point: where it is.
        residual: (M, L) what the multipliers leave of the costs.
        inverses: (M, L, L) factors of the inverse of each column's matrix.
        rows: (N, N) the Cholesky factor of their sum; None where the prices are fixed.
    """

    point: PairIterate
    residual: FloatArray
    inverses: FloatArray
    rows: FloatArray | None

    @classmethod
    def build(
        cls, point: PairIterate, deadline: Deadline, fixed_prices: bool = False
    ) -> PairSystem | None:
        """Build and factorise the system; None where the time is over, or rounding makes it indefinite."""
        rows, (columns, size) = point.rows, point.rows.program.shape
        single = point.matrix.ravel()
        entries = rows.pull * rows.unit * point.weights / point.slack
        entries *= single.take(rows.upper)
        entries *= single.take(rows.lower)
        # the place of each entry above the diagonal
        places = np.minimum(rows.upper, rows.lower) * size + np.maximum(rows.above, rows.below)
        sums = point.matrix * point.added_costs
        inverses = np.empty((columns, size, size))
        total = np.zeros((len(point.prices), len(point.prices)), order="F")
        batch = max(1, 2_500_000 // size**2)  # columns at once, 20 MB of them
        for first in range(0, columns, batch):
            if deadline.expired:
                return None
            last = min(columns, first + batch)
            own = slice(rows.ends[first], rows.ends[last])
            count = (last - first) * size**2
            pulled = _add_at(places[own] - first * size**2, entries[own], count)
            scaled = invert_by_factors(-pulled.reshape(-1, size, size), sums[first:last].copy())
            scaled *= point.matrix[first:last, :, None]
            inverses[first:last] = scaled
            if not fixed_prices:
                _add_inverses(total, scaled, rows.program.members[first:last])
        residual = rows.program.costs - point.prices[rows.program.members] - point.added_costs
        if fixed_prices:
            return cls(point, residual, inverses, None)
        factor, failed = get_lapack(single=False).factorise(total)
        return None if failed else cls(point, residual, inverses, factor)

    def solve(self, wanted: FloatArray) -> _Step:
        """Solve for the direction that changes the products of slacks and weights as wanted."""
        return self._solve_for(wanted, self.residual, self.point.missing)

    def refine(self, step: _Step) -> _Step:
        """Add what rounding left of the costs, which the large ratios of weight and slack magnify."""
        program = self.point.rows.program
        left = self.residual - self.point.rows.price(step.weights) - step.prices[program.members]
        missing = self.point.missing - program.sum_rows(step.matrix)
        more = self._solve_for(np.zeros_like(step.slack), left, missing)
        return self._measure(*(
            getattr(step, name) + getattr(more, name)
            for name in ("matrix", "slack", "weights", "prices")
        ))  # fmt: skip

    def _solve_for(self, wanted: FloatArray, residual: FloatArray, missing: FloatArray) -> _Step:
        """Solve for changes of the products, of what the costs leave, and of the row sums."""
        point = self.point
        free = self.move_columns(wanted, residual)
        program = point.rows.program
        prices, _ = get_lapack(single=False).solve(self.rows, missing - program.sum_rows(free))
        matrix = free + self._apply(prices[program.members])
        slack, weights = self.measure_rows(wanted, matrix)
        return self._measure(matrix, slack, weights, prices)

    def move_columns(self, wanted: FloatArray, residual: FloatArray) -> FloatArray:
        """Compute the (M, L) directions of the columns under fixed prices."""
        return self._apply(self.point.rows.price(wanted / self.point.slack) - residual)

    def measure_rows(self, wanted: FloatArray, matrix: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Compute the (R,) directions of slacks and weights from those of the columns."""
        point = self.point
        slack = point.rows.measure(matrix)
        return slack, (wanted - point.weights * slack) / point.slack

    def _measure(
        self, matrix: FloatArray, slack: FloatArray, weights: FloatArray, prices: FloatArray
    ) -> _Step:
        """Return a step with the lengths up to which slacks and weights stay positive."""
        point = self.point
        lengths = _find_length(point.slack, slack), _find_length(point.weights, weights)
        return _Step(matrix, slack, weights, prices, lengths)

    def _apply(self, columns: FloatArray) -> FloatArray:
        """Multiply each (L,) column by its inverse."""
        inner = columns[:, None, :] @ self.inverses
        return np.asarray((self.inverses @ inner.transpose(0, 2, 1))[:, :, 0])


def _add_inverses(total: FloatArray, factors: FloatArray, members: IntArray) -> None:
    """Add the inverses of some columns to the upper triangle of the (N, N) matrix of the rows, in place."""
    from scipy.linalg import lapack

    for factor, own in zip(factors, members, strict=True):
        # the product of a triangle with its transpose is a third of the work of a full one
        inverse, _ = lapack.dlauum(factor)
        if len(own) == len(total):
            total += inverse
        else:  # members are sorted, so that an upper triangle stays one
            total[np.ix_(own, own)] += inverse


def _add_at(places: IntArray, values: FloatArray, size: int) -> FloatArray:
    """Add values up by their places, of a number of them."""
    return np.asarray(np.bincount(places, values, size), dtype=float)


def _find_length(positive: FloatArray, direction: FloatArray) -> float:
    """Return the length of a step, at most one, up to which positive numbers stay so."""
    fastest = -float((direction / positive).min())
    return 1.0 if fastest <= 1.0 else 1 / fastest


def _limit_columns(
    matrix: FloatArray, direction: FloatArray, length: float, present: BoolArray, program: PairLP
) -> tuple[float, PairPlaces]:
    """Shorten a step so that it keeps every pair, and find the pairs that it nearly meets with equality.

    Args:
        matrix: (M, L) before the step.
        direction: (M, L).
        length: that the rows allow.
        present: (M, L, L) the pairs that have rows; those that are found are marked too.
        program: with the factors.

    Returns:
        The length, and the columns, upper and lower entries of the pairs.
    """
    found = []
    for column, mask in enumerate(present):
        length, above, below = limit_column(
            matrix[column], direction[column], length, mask, program.select_factors(column)
        )
        found.append((np.full(len(above), column), above, below))
    columns, upper, lower = (np.concatenate(part) for part in zip(*found, strict=True))
    return length, (columns, upper, lower)


def limit_column(
    column: FloatArray,
    direction: FloatArray,
    length: float,
    present: BoolArray,
    factors: FloatArray,
) -> tuple[float, IntArray, IntArray]:
    """Shorten the step of one column so that it keeps every pair, and find those it nearly meets.

    Returns:
        The length, and the upper and lower entries of the pairs, which are marked as present.
    """
    # the share of the lower entry from which on a pair without a row counts as far from equality
    near = 0.2
    moved = column + length * direction
    close = factors * moved[:, None] > (1 - near) * moved
    close &= ~present
    above, below = np.nonzero(close)
    if len(above):
        now, then = (part[below] - factors[above, below] * part[above] for part in (column, moved))
        # a twentieth of the slack stays
        falling = then < 0.05 * now
        if falling.any():
            length *= float((0.95 * now[falling] / (now - then)[falling]).min())
        present[above, below] = True
    return length, above, below


def add_rows(
    point: PairIterate, new: PairPlaces, product: FloatArray | float, most: float = np.inf
) -> PairIterate:
    """Add rows to the program of a point, with products of slack and weight, and weights up to a limit."""
    added = PairRows(point.rows.program, *new)
    slack = added.measure(point.matrix)
    weights = np.minimum(product / slack, most)
    rows = point.rows
    column = np.concatenate([rows.column, added.column])
    order = np.argsort(column, kind="stable")

    def merge(old: Any, more: Any) -> Any:
        return np.concatenate([old, more])[order]

    both = PairRows(
        rows.program,
        column[order],
        merge(rows.above, added.above),
        merge(rows.below, added.below),
    )
    return replace(
        point, rows=both, slack=merge(point.slack, slack), weights=merge(point.weights, weights)
    )
