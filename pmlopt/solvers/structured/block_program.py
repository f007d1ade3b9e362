"""Column-block linear programs: costs, one block per column, and coupling rows."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pmlopt.core.lazy_imports import sparse
from pmlopt.core.light_dataclass import light_dataclass
from pmlopt.core.numbers.arrays import BoolArray, FloatArray
from pmlopt.data.prior import Prior


@light_dataclass(frozen=True, eq=False)
class HingeVariables:
    """Auxiliary hinge variables `r >= 0`, `r >= sign (v - at'u)` for the entries v of a column.

    Attributes:
        sign: 1 for what is above a threshold, -1 for what is below.
        threshold_coefficients: (k, 1) the threshold, linear in the scalars u, or (1, N) one for
            each letter.
        interior_value: the r of the column of ones, a number or (N, 1).
        costs: (K, N) what r takes from the rows of the column, or None. Letters that cost nothing have no r.
        budget: the most that the r of a letter may add up to over all columns, or None where there are costs.
    """

    sign: float
    threshold_coefficients: FloatArray
    interior_value: float | FloatArray
    costs: FloatArray | None = None
    budget: float | None = None

    def compute_thresholds(self, scalars: NDArray[Any]) -> NDArray[Any]:
        """Compute the thresholds `at'u`, (1, M) or (N, M)."""
        return np.asarray(self.threshold_coefficients.T @ scalars)

    def apply_adjoint(self, part: NDArray[Any]) -> NDArray[Any]:
        """Apply the adjoint of `compute_thresholds`: (k, M) from a number for each entry."""
        return np.asarray(
            self.threshold_coefficients * part.sum(axis=0)
            if self.threshold_coefficients.shape[1] == 1
            else self.threshold_coefficients @ part
        )


@light_dataclass(frozen=True, eq=False)
class ColumnBlock:
    """A block constraint on a column v: bounds linear in auxiliary scalars u, and row inequalities.

    `lower'u <= v[x] <= upper'u` for every letter x; with weights, for each of K rows,
    `weights_k'v - costs_k'r = mean_k'u`, or `>=`; and with a total, `u[0]` adds up to at most that over all
    columns.
    What a requirement declares in cvxpy states the same, with a row for each output where this has a number.

    Attributes:
        lower: (k,) zeros, or those of one scalar only: then `lower'u >= 0` must be stated, unless there is no
            other scalar.
        upper: (k,), infinite where nothing bounds the entries from above.
        interior_scalars: (k,) the u at which the column of ones is strictly between the ends.
        weights: (K, N), or None.
        mean: (K, k) what belongs to the weights, or None.
        is_loose: whether the rows are inequalities `>=`.
        hinge: the r, where there are any.
        total: of u[0], or None.
        without_hinge: the block of columns no entry of which is beyond its threshold, or None.
    """

    lower: FloatArray
    upper: FloatArray
    interior_scalars: FloatArray
    weights: FloatArray | None = None
    mean: FloatArray | None = None
    is_loose: bool = False
    hinge: HingeVariables | None = None
    total: float | None = None
    without_hinge: ColumnBlock | None = None

    @cached_property
    def has_floor(self) -> bool:
        """Return whether the lower bound `lower'u` has its own nonnegativity constraint."""
        return len(self.lower) > 1 and bool(self.lower.any())

    @cached_property
    def has_cap(self) -> bool:
        """Return whether the block has an upper bound."""
        return bool(np.isfinite(self.upper).all())

    @cached_property
    def is_banded(self) -> bool:
        """Return whether the block has only two bounds and one mean equation."""
        rows = 0 if self.weights is None else len(self.weights)
        return self.hinge is None and self.total is None and not self.is_loose and rows <= 1


def build_ratio_block(exp_neg_epsilon: float) -> ColumnBlock | None:
    """Build the block `e^-eps max v <= min v`; None where it has no interior."""
    if exp_neg_epsilon >= 1:
        return None
    return ColumnBlock(np.array([exp_neg_epsilon]), np.ones(1), np.array([exp_neg_epsilon**-0.5]))


def build_mean_block(
    weights: FloatArray, exp_neg_epsilon: float, least: float = 0.0, largest: float = 0.0
) -> ColumnBlock | None:
    """Build the block `e^-eps max v <= weights'v + least min v - largest max v`.

    None where nothing lies strictly inside, which is where the column of ones only just meets the bound.
    """
    # the column of ones has to be strictly inside, or there is no central path
    room = float(weights.sum()) + least - largest - exp_neg_epsilon
    if room <= 0:
        return None
    if least == 0:
        return ColumnBlock(np.zeros(1), np.ones(1), np.array([weights.sum() / (exp_neg_epsilon + largest)]),
                     weights[None, :], np.array([[exp_neg_epsilon + largest]]))  # fmt: skip
    # without weights the mean drops out: a bound on the ratio remains
    if not weights.any():
        return build_ratio_block((exp_neg_epsilon + largest) / least)
    low = max(0.5, 1 - room / (2 * least))
    width = (weights.sum() + least * low) / (exp_neg_epsilon + largest) - low
    mean = np.array([[exp_neg_epsilon + largest, exp_neg_epsilon + largest - least]])
    return ColumnBlock(
        np.array([0.0, 1.0]), np.ones(2), np.array([width, low]), weights[None, :], mean
    )


def build_threshold_block(
    weights: FloatArray, half: float, exp_neg_epsilon: float
) -> ColumnBlock | None:
    """Build the block `e^-eps max v <= w(v)` of an l1 ball with movable mass `half`.

    `w(v) = max_t weights'min(v, t) - half (t - min v)`, with u = (max v - min v, min v, t). Most of the best
    columns are largest on a mass of at least `half`: then `t = max v`, and nothing is above the threshold.
    """
    room = 1 - exp_neg_epsilon
    if room <= 0:
        return None
    low = max(0.5, 1 - room / (4 * half))
    cut = room / 4
    width = (1 - cut - half * (1 - low)) / exp_neg_epsilon - low
    hinge = HingeVariables(1.0, np.array([[0.0], [0.0], [1.0]]), cut, weights[None, :])
    mean = np.array([[exp_neg_epsilon, exp_neg_epsilon - half, half]])
    return ColumnBlock(np.array([0.0, 1.0, 0.0]), np.array([1.0, 1.0, 0.0]), np.array([width, low, 1.0]),
                 weights[None, :], mean, hinge=hinge,
                 without_hinge=build_mean_block(weights, exp_neg_epsilon, half, half))  # fmt: skip


def build_edge_block(
    lower: FloatArray, width: FloatArray, exp_neg_epsilon: float
) -> ColumnBlock | None:
    """Build the block `e^-eps max v <= w(v)` of a box with common width.

    `w(v) = max_e lower'v + (1 - sum(lower)) e - width'max(e - v, 0)`, with u = (max v, e).
    """
    room = 1 - exp_neg_epsilon
    if room <= 0:
        return None
    below = room / (2 * float(width.sum()))
    hinge = HingeVariables(-1.0, np.array([[0.0], [1.0]]), below, width[None, :])
    mean = np.array([[exp_neg_epsilon, float(lower.sum()) - 1]])
    return ColumnBlock(np.zeros(2), np.array([1.0, 0.0]), np.array([(1 - room / 2) / exp_neg_epsilon, 1.0]),
                 lower[None, :], mean, hinge=hinge)  # fmt: skip


def build_hull_block(laws: FloatArray, exp_neg_epsilon: float) -> ColumnBlock | None:
    """Build the block `e^-eps max v <= law'v` for each of K laws."""
    if exp_neg_epsilon >= 1:
        return None
    return ColumnBlock(
        np.zeros(1),
        np.ones(1),
        np.array([exp_neg_epsilon**-0.5]),
        laws,
        np.full((len(laws), 1), exp_neg_epsilon),
        is_loose=True,
    )


def build_peak_block(total: float) -> ColumnBlock | None:
    """Build the block that limits the sum of column maxima to `total`."""
    if total <= 1:
        return None
    return ColumnBlock(np.zeros(1), np.ones(1), np.array([(1 + total) / 2]), total=total)


def build_slack_block(
    weights: FloatArray, exp_neg_epsilon: float, budget: float
) -> ColumnBlock | None:
    """Build the block `e^-eps (v - r) <= weights'v` with limited total slack r per letter."""
    if exp_neg_epsilon >= 1:
        return None
    hinge = HingeVariables(1.0, np.ones((1, 1)), budget / 2, budget=budget)
    return ColumnBlock(
        np.zeros(1),
        np.full(1, np.inf),
        np.array([1 / exp_neg_epsilon]),
        weights[None, :],
        np.array([[exp_neg_epsilon]]),
        hinge=hinge,
    )


def build_largest_block(
    weights: FloatArray, count: int, exp_neg_epsilon: float
) -> ColumnBlock | None:
    """Build the block that limits the sum of the `count` largest weighted entries.

    They add up to `min_t count t + weights'r` with `r[x] >= v[x] - t / weights[x]`, and u = (t).
    """
    ordered = np.sort(weights)[::-1]
    room = 1 / exp_neg_epsilon - float(ordered[:count].sum())
    if room <= 0 or count >= len(weights):
        return None
    threshold = ordered[count - 1]
    at = 1 / weights[None, :]
    # strictly above the hinge, by the room that the bound leaves
    inside = np.maximum(1 - threshold * at.T, 0.0) + room
    hinge = HingeVariables(1.0, at, inside, exp_neg_epsilon * weights[None, :])
    return ColumnBlock(np.zeros(1), np.full(1, np.inf), np.array([threshold]), weights[None, :],
                 np.array([[exp_neg_epsilon * count]]), hinge=hinge)  # fmt: skip


@light_dataclass(frozen=True, eq=False)
class SideConstraints:
    """Linear side constraints `<A_b, P> >= least[b]` or `==` on a matrix P (N, M).

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
    def from_matrices(
        cls, matrices: FloatArray, least: FloatArray, equal: BoolArray | None = None
    ) -> SideConstraints:
        """Build the constraints from an array of matrices (B, N, M)."""
        count, n, m = matrices.shape
        given = np.zeros(count, dtype=bool) if equal is None else equal
        return cls(sparse.csr_array(matrices.reshape(count, n * m)), least, given, (n, m))

    def __len__(self) -> int:
        return len(self.least)

    def evaluate(self, matrix: FloatArray) -> FloatArray:
        """Compute the (B,) left-hand sides at a matrix."""
        return np.asarray(self.rows @ matrix.ravel())

    def apply_adjoint(self, multipliers: FloatArray) -> FloatArray:
        """Compute the (N, M) adjoint `sum_b multipliers[b] A_b`."""
        return np.asarray(self.rows.T @ multipliers).reshape(self.shape)

    def evaluate_by_output(self, part: FloatArray) -> FloatArray:
        """Compute the (B, M) left-hand sides split by output."""
        return np.asarray(self._output_rows @ part.ravel()).reshape(len(self), -1)

    def evaluate_by_letter(self, part: FloatArray) -> FloatArray:
        """Compute the (B, N) left-hand sides split by letter."""
        return np.asarray(self._letter_rows @ part.ravel()).reshape(len(self), -1)

    def weighted_gram(self, psi: FloatArray) -> FloatArray:
        """Compute the (B, B) weighted Gram matrix of the A_b."""
        # (B, N M) times (1, N M): each row scaled by the weights of the entries
        weighted = self.rows * psi.reshape(1, -1)
        return np.asarray((sparse.csr_array(weighted) @ self.rows.T).toarray())

    @cached_property
    def _output_rows(self) -> sparse.csr_array:
        """Return the constraint matrix split by output."""
        return self._split_rows(
            self.shape[1], np.arange(self.shape[0] * self.shape[1]) % self.shape[1]
        )

    @cached_property
    def _letter_rows(self) -> sparse.csr_array:
        """Return the constraint matrix split by letter."""
        return self._split_rows(
            self.shape[0], np.arange(self.shape[0] * self.shape[1]) // self.shape[1]
        )

    def _split_rows(self, parts: int, part: NDArray[np.intp]) -> sparse.csr_array:
        """Split the constraint rows by a part index of each entry."""
        entries = self.rows.tocoo()
        # a row for each pair of constraint and part, numbered row by row
        place = entries.row * parts + part[entries.col]
        shape = (len(self) * parts, self.shape[0] * self.shape[1])
        return sparse.csr_array((entries.data, (place, entries.col)), shape=shape)


@light_dataclass(frozen=True, eq=False)
class BlockLP:
    """The linear program `min scale <costs, P>` over mechanisms with block-constrained columns.

    Attributes:
        prior: N letters.
        costs: (N, M), the largest of size one: solvers stop at absolute tolerances.
        scale: their unit.
        block: with k scalars for each output.
        allowed: (N, M) False for entries that must be zero, or None. The lower ends must be zero then; see
            `find_attainable`.
        allows_short_rows: whether rows may add up to less than one.
        border: linear constraints on the matrix, or None.
    """

    prior: Prior
    costs: FloatArray
    scale: float
    block: ColumnBlock
    allowed: BoolArray | None = None
    allows_short_rows: bool = False
    border: SideConstraints | None = None

    def __post_init__(self) -> None:
        if self.allowed is not None and self.block.lower.any():
            raise ValueError("entries can be kept at zero only where the lower ends are zero")

    def select_columns(self, kept: BoolArray) -> BlockLP:
        """Return the program of the columns (M,) that are kept; none of them may have constraints."""
        return replace(self, costs=np.ascontiguousarray(self.costs[:, kept]))

    @cached_property
    def hinge_mask(self) -> BoolArray | None:
        """Return the (N, M) mask of entries with hinge variables; None for all."""
        hinge = self.block.hinge
        if hinge is None or hinge.costs is None or (hinge.costs.sum(axis=0) > 0).all():
            return self.allowed
        some = np.repeat((hinge.costs.sum(axis=0) > 0)[:, None], self.costs.shape[1], axis=1)
        return some if self.allowed is None else some & self.allowed

    @cached_property
    def absent_slack_count(self) -> int:
        """Return the number of masked (absent) slack entries."""
        ends = 2 if self.block.has_cap else 1
        hinged = (
            0
            if self.block.hinge is None or self.hinge_mask is None
            else 2 * int((~self.hinge_mask).sum())
        )
        return hinged + (0 if self.allowed is None else ends * int((~self.allowed).sum()))

    @cached_property
    def column_weights(self) -> FloatArray:
        """Return the (K, N) entry coefficients of a column's rows."""
        weights = self.block.weights
        return np.zeros((0, self.prior.size), self.costs.dtype) if weights is None else weights

    @cached_property
    def column_means(self) -> FloatArray:
        """Return the (K, k) scalar coefficients of a column's rows."""
        mean = self.block.mean
        if mean is None:
            return np.zeros((0, len(self.block.interior_scalars)), self.costs.dtype)
        return mean

    @cached_property
    def hinge_costs(self) -> FloatArray:
        """Return the (K, N) hinge coefficients of a column's rows."""
        hinge = self.block.hinge
        if hinge is None or hinge.costs is None:
            return np.zeros_like(self.column_weights)
        return hinge.costs

    @property
    def budget(self) -> float | None:
        """Return the limit on a letter's total hinge value; None without one."""
        return None if self.block.hinge is None else self.block.hinge.budget

    def to_certificate_multipliers(self, rows: FloatArray) -> FloatArray:
        """Convert coupling-row multipliers to (N,) certificate multipliers.

        Of letters of 1e-299 they can be infinite, which no certificate takes.
        """
        with np.errstate(over="ignore"):
            return np.asarray(-self.scale * rows[: self.prior.size] / self.prior.pmf)

    def reduced_costs(self, rows: FloatArray, means: FloatArray) -> FloatArray:
        """Compute the (N, M) reduced costs at given multipliers."""
        out = self.costs - rows[: self.prior.size, None] - self.column_weights.T @ means
        if self.border is None:
            return out
        return out - self.border.apply_adjoint(self.split_coupling_rows(rows)[2])

    def evaluate_column_rows(
        self, v: FloatArray, r: FloatArray | None, u: FloatArray
    ) -> FloatArray:
        """Compute the (K, M) column-row residuals `weights'v - costs'r - mean'u`."""
        out = self.column_weights @ v - self.column_means @ u
        return out if r is None else np.asarray(out - self.hinge_costs @ r)

    # The coupling rows: the sums of the rows, the budgets (at least less the budget), the border, the total
    # (at least less the total).

    @cached_property
    def row_offsets(self) -> tuple[int, int, int]:
        """Return the offsets of the side constraints among the coupling rows."""
        first = self.prior.size * (1 if self.budget is None else 2)
        last = first + (0 if self.border is None else len(self.border))
        return first, last, last + (self.block.total is not None)

    @cached_property
    def right_sides(self) -> FloatArray:
        """Return the (C,) right-hand sides of the coupling rows."""
        bounds = np.ones(self.row_offsets[2], self.costs.dtype)
        if self.budget is not None:
            bounds[self.prior.size : self.row_offsets[0]] = -self.budget
        if self.border is not None:
            bounds[self.row_offsets[0] : self.row_offsets[1]] = self.border.least
        if self.block.total is not None:
            bounds[-1] = -self.block.total
        return bounds

    @cached_property
    def row_signs(self) -> FloatArray:
        """Return the (C,) signs of the coupling rows: 1 for >=, -1 for <=, 0 for ==."""
        signs = np.ones(self.row_offsets[2], self.costs.dtype)
        signs[: self.prior.size] = -1.0 if self.allows_short_rows else 0.0
        if self.border is not None:
            signs[self.row_offsets[0] : self.row_offsets[1]] = ~self.border.equal
        return signs

    @cached_property
    def inequality_mask(self) -> BoolArray:
        """Return the (C,) mask of inequality coupling rows."""
        return np.asarray(self.row_signs != 0)

    def evaluate_coupling_rows(
        self, v: FloatArray, r: FloatArray | None, u: FloatArray
    ) -> FloatArray:
        """Compute the (C,) left-hand sides of the coupling rows."""
        # without other coupling rows the sums are all: no copy
        sums = v.sum(axis=1)
        if self.row_offsets[2] == len(sums):
            return np.asarray(sums)
        budgets = [] if self.budget is None or r is None else -r.sum(axis=1)
        total = [] if self.block.total is None else [-u[0].sum()]
        border = v[0, :0] if self.border is None else self.border.evaluate(v)
        return np.concatenate([sums, budgets, border, total], dtype=v.dtype)

    def split_coupling_rows(
        self, rows: FloatArray
    ) -> tuple[FloatArray, FloatArray, FloatArray, float]:
        """Split a coupling-row vector into row sums, budgets, side constraints and total."""
        n, (first, last, count) = self.prior.size, self.row_offsets
        return rows[:n], rows[n:first], rows[first:last], float(rows[-1]) if count > last else 0.0


def find_attainable(block: ColumnBlock, allowed: BoolArray) -> BoolArray:
    """Find the (N, M) allowed entries that can be positive in their column.

    Under PML those are the outputs y that letters of a mass of less than e^-epsilon may have.
    """
    if block.weights is None or block.mean is None or block.hinge is not None:
        return allowed
    # the most that a row can reach with allowed entries at their upper end
    max_means = np.maximum(block.weights, 0.0) @ allowed * block.upper[0]
    return np.asarray(allowed & (max_means > block.mean[:, :1]).all(axis=0))


def have_shapes(arrays: Mapping[str, NDArray[Any]], shapes: Mapping[str, tuple[int, ...]]) -> bool:
    """Return whether named arrays have given shapes."""
    return all(name in arrays and arrays[name].shape == shape for name, shape in shapes.items())
