"""Ratio bounds on one column: `<num, v>` is at most a multiple of `<den, v>`."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from functools import cached_property
from typing import Any

import numpy as np

from pmlopt.core.lazy_imports import cp, sparse
from pmlopt.core.light_dataclass import light_dataclass
from pmlopt.core.numbers.arrays import BoolArray, FloatArray, IntArray, bound_sum_rounding
from pmlopt.errors import PrivacyError
from pmlopt.measures.leakage import largest_log_entry_ratios, log_entry_ratios, log_product_ratios
from pmlopt.model.privacy.basic_columns import list_basic_columns
from pmlopt.model.privacy.pair_weights import (
    compress_rows,
    find_joint_multipliers,
    find_line_weights,
    find_row_sizes,
)
from pmlopt.model.uncertainty.prior_set import LinearRows

MAX_RATIO_EXPONENT = 700.0
"""The largest exponent in nats of a ratio bound; e^epsilon past it is no float."""


MAX_BASES = 1_000_000
"""Bases that are tried to list extreme columns: half a minute for six letters."""

_MAX_BATCH_ENTRIES = 250_000
"""Values of pairs on columns that are kept at once: 2 MB of floats, which stay in a processor's cache."""


@light_dataclass(frozen=True, eq=False)
class RatioBounds:
    """The cone of columns v >= 0 with `<num_k, v> <= e^(exponent_k) <den_k, v>` for K pairs.

    Each side of a pair is an entry of the column, or one of its products with a few rows, which the pairs
    share. The numbers are floats, or whole numbers in object arrays: then everything here is exact.

    Attributes:
        size: N.
        rows: (R, N) non-negative, each over its scale.
        scales: (R,) positive.
        above: (K,) which side is the numerator: x < N is the entry x, N + r the product with row r.
        below: (K,) the same of the denominator.
        exponents: (K,) in nats, at least 0, or one number; past `MAX_RATIO_EXPONENT` they bind nothing.

    Source: [kifer2014pufferfish] for pairs of conditional laws, [saeidian2023pointwise] for letters and
    their mean.
    """

    size: int
    rows: Any
    scales: Any
    above: IntArray
    below: IntArray
    exponents: FloatArray

    def __post_init__(self) -> None:
        shape = np.shape(self.above)
        kind = np.asarray(self.exponents, dtype=float)
        capped = np.minimum(np.broadcast_to(kind, shape), MAX_RATIO_EXPONENT)
        object.__setattr__(self, "exponents", capped)

    @property
    def candidate_count(self) -> int:
        """Return the number of candidate bases for `extreme_columns`."""
        k = len(self.exponents)
        n = self.size
        return sum(math.comb(n, t + 1) * math.comb(k, t) for t in range(min(k, n - 1) + 1))

    def log_ratios(self, matrix: FloatArray) -> FloatArray:
        """Compute the (K, M) log-ratios `log(<num_k, v> / <den_k, v>)` of each column."""
        single = self._is_letter_pair
        found = np.empty((len(self.exponents), matrix.shape[1]))
        found[single] = log_entry_ratios(matrix[self.above[single]], matrix[self.below[single]])
        if not single.all():
            above, below = self.differences
            if single.any():
                above = above[~single]
                below = below[~single]
            found[~single] = log_product_ratios(above, below, matrix)
        return found

    def max_log_ratios(self, matrix: FloatArray) -> FloatArray:
        """Compute the (K, 1) largest log-ratios over the columns, in chunks of pairs."""
        found = [part._compute_max_log_ratios(matrix) for part in self._split_pairs(matrix)]
        return np.vstack([np.zeros((0, 1)), *found])

    def _compute_max_log_ratios(self, matrix: FloatArray) -> FloatArray:
        """Compute the largest log-ratio of each pair, without chunks."""
        if self._is_letter_pair.all() and matrix.shape[1]:
            return largest_log_entry_ratios(matrix[self.above], matrix[self.below])
        return np.asarray(self.log_ratios(matrix).max(axis=1, keepdims=True))

    def violation(self, matrix: Any, power: Callable[[float], Any]) -> Any:
        """Compute the (M,) largest scaled violation of each column; at most 0 where all pairs hold.

        In floats the unit is what a constant column leaves: in a pair of 50 nats that is e^48 times as much
        as in one of 2, and the share of a constant that mends one would be taken for that of the other.
        """
        if not len(self.exponents):
            return 0 * matrix.max(axis=0)
        if matrix.dtype == object:
            return self._compute_exact_violation(matrix, power)
        found = [
            (part._evaluate_differences(matrix) / part._pair_units).max(axis=0)
            for part in self._split_pairs(matrix)
        ]
        return np.max(found, axis=0)

    def _evaluate_differences(self, matrix: FloatArray) -> FloatArray:
        """Compute (K, M) `<num_k, v> - e^exponent <den_k, v>` for all pairs and columns."""
        sides = self._compute_sides(matrix)
        return sides[self.above] - np.exp(self.exponents)[:, None] * sides[self.below]

    def _compute_sides(self, matrix: FloatArray) -> FloatArray:
        """Compute (N + R, M) the entries of each column and its products with the rows."""
        return np.vstack([matrix, self._float_rows @ matrix]) if len(self._float_rows) else matrix

    @cached_property
    def _pair_units(self) -> FloatArray:
        """Return the (K, 1) scale of each pair: its slack at a constant column; 1 where that is 0."""
        room = -self._evaluate_differences(np.ones((self.size, 1)))
        return np.where(room > 0, room, 1.0)

    def _compute_exact_violation(self, matrix: Any, power: Callable[[float], Any]) -> Any:
        """Compute each column's largest violation in exact arithmetic; pairs with much slack are skipped.

        Args:
            matrix: (N, M) whole numbers.
            power: as for `violation`.
        """
        # the same over one number, each rounded to the nearest; zeros stay zeros
        near = (matrix / (matrix.max() or 1)).astype(float)
        sides = self._compute_sides(np.where(matrix == 0, 0.0, np.maximum(near, 5e-324)))
        found = [0] * matrix.shape[1]
        products = dict[tuple[int, int], int]()
        entries: list[list[int]] = matrix.tolist()

        def compute_side(side: int, y: int) -> int:
            """Return a whole entry, or the product of a column with a row, times the row's scale."""
            if side < self.size:
                return entries[side][y]
            if (side, y) not in products:
                products[side, y] = self.rows[side - self.size] @ matrix[:, y]
            return products[side, y]

        scales = [1] * self.size + self.scales.tolist()
        for part in self._split_pairs(matrix):
            clear = part._find_clear(sides)
            for k in np.flatnonzero(~clear.all(axis=1)).tolist():
                above = int(part.above[k])
                below = int(part.below[k])
                numerator, denominator = power(float(part.exponents[k])).as_integer_ratio()
                upper = scales[above] * numerator
                lower = scales[below] * denominator
                for y in np.flatnonzero(~clear[k]).tolist():
                    over = lower * compute_side(above, y) - upper * compute_side(below, y)
                    found[y] = max(found[y], over)
        return np.array(found, dtype=object)

    def _find_clear(self, sides: FloatArray) -> BoolArray:
        """Find the (K, M) pairs that hold in floats by more than rounding: they hold exactly.

        Args:
            sides: (N + R, M) of `_compute_sides`, each within a few roundings.
        """
        # the roundings of an exponential and of a level are a part of this share, and where a side is a row
        # those of two sums of positive numbers
        share = 2.0**-46 + (self.size * 2.0**-51 if len(self.rows) else 0.0)
        shares = share + self.exponents[:, None] * 2.0**-50
        up = sides[self.above]
        down = sides[self.below]
        clear = up * (1 + shares) <= np.exp(self.exponents)[:, None] * down
        # floats above this have all their digits
        full_digits = 1e-290
        if not (sides > full_digits).all():
            clear &= (down > full_digits) & ((up > full_digits) | (up == 0))
        return clear

    def hold_with_margin(self, matrix: FloatArray) -> bool:
        """Return whether all pairs hold in floats by more than rounding: they hold exactly, and in levels."""
        sides = self._compute_sides(matrix)
        return all(part._find_clear(sides).all() for part in self._split_pairs(matrix))

    @cached_property
    def _is_letter_pair(self) -> BoolArray:
        """Return the (K,) mask of pairs with a single letter on both sides."""
        return np.maximum(self.above, self.below) < self.size

    def _split_pairs(self, matrix: Any) -> Iterator[RatioBounds]:
        """Yield chunks of the pairs, to bound memory."""
        count = len(self.exponents)
        step = max(1, _MAX_BATCH_ENTRIES // max(1, matrix.shape[1]))
        if count <= step:
            yield self
            return
        for first in range(0, count, step):
            few = slice(first, first + step)
            yield replace(
                self, above=self.above[few], below=self.below[few], exponents=self.exponents[few]
            )

    @cached_property
    def differences(self) -> tuple[Any, Any]:
        """Return the (K, N) numerator and denominator matrices, sparse."""
        ones = np.ones(len(self.exponents))
        return self._weigh_sides(self.above, ones), self._weigh_sides(self.below, ones)

    @cached_property
    def excess_rows(self) -> tuple[Any, Any]:
        """Return the (K, N) matrices of `num - e^exponent den` and `num + e^exponent den`, sparse."""
        if self._is_small:  # sparse sums take longer
            up = self.list_sides(self.above)
            down = self.list_sides(self.below)
            down *= np.exp(self.exponents)[:, None]
            return compress_rows(up - down), compress_rows(up + down)
        above = self._weigh_sides(self.above, np.ones(len(self.exponents)))
        below = self._weigh_sides(self.below, np.exp(self.exponents))
        return above - below, above + below

    @cached_property
    def _excess_columns(self) -> tuple[Any, Any]:
        """Return the (N, K) transposes of `excess_rows`, dense where they are small."""
        return tuple(part.toarray().T if self._is_small else part.T for part in self.excess_rows)

    @property
    def _is_small(self) -> bool:
        """Return whether a dense matrix of the pairs takes less time than a sparse one."""
        return len(self.exponents) * self.size <= 20_000

    def list_sides(self, sides: IntArray) -> FloatArray:
        """Return the (K, N) rows of some sides of pairs, dense."""
        single = sides < self.size
        found = np.zeros((len(sides), self.size))
        found[single, sides[single]] = 1.0
        found[~single] = self._float_rows[sides[~single] - self.size]
        return found

    def _weigh_sides(self, sides: IntArray, factors: FloatArray) -> sparse.csr_array:
        """Return the (K, N) rows of the sides of the pairs, each times a factor, sparse."""
        row, letter = np.nonzero(self._float_rows)
        letters = np.append(np.arange(self.size), letter)
        values = np.append(np.ones(self.size), self._float_rows[row, letter])
        counts = np.append(
            np.ones(self.size, dtype=int), np.bincount(row, minlength=len(self.rows))
        )
        lengths = counts[sides]
        ends = np.cumsum(counts)
        starts = np.append(0, np.cumsum(lengths))
        places = np.arange(starts[-1]) + np.repeat(ends[sides] - starts[1:], lengths)
        entries = values[places] * np.repeat(factors, lengths)
        return sparse.csr_array((entries, letters[places], starts), (len(sides), self.size))

    @property
    def slack(self) -> float:
        """Return the smallest slack of a constant column over the pairs, in nats; inf without pairs."""
        sums = np.append(np.ones(self.size), self._float_rows.sum(axis=1))
        above = sums[self.above]
        below = sums[self.below]
        with np.errstate(divide="ignore"):
            return float((self.exponents + np.log(below) - np.log(above)).min(initial=np.inf))

    def to_cvxpy(
        self, mechanism: cp.Variable, factor: Callable[[FloatArray], FloatArray]
    ) -> tuple[dict[str, cp.Constraint], dict[str, cp.Variable]]:
        """Build the cvxpy constraints of the pairs, with auxiliary variables for shared inner products.

        Args:
            mechanism: (N, M).
            factor: from (K,) e^-exponent to the factors of the numerators.
        """
        constraints: dict[str, cp.Constraint] = {}
        variables: dict[str, cp.Variable] = {}
        sides: cp.Expression = mechanism
        if len(self._float_rows):
            products = cp.Variable(
                (len(self._float_rows), mechanism.shape[1]), nonneg=True, name="products"
            )
            constraints["products"] = self._float_rows @ mechanism == products
            variables["products"] = products
            sides = cp.vstack([mechanism, products])
        return {**constraints, "pairs": self.linear_system(factor) @ sides <= 0}, variables

    def linear_system(self, factor: Callable[[FloatArray], FloatArray]) -> sparse.csr_array:
        """Return the (K, N + R) constraint matrix on a column's entries and its auxiliary products."""
        k = len(self.exponents)
        every = self.size + len(self._float_rows)
        factors = factor(np.exp(-self.exponents))
        entries = np.column_stack([factors, -np.ones(k)]).ravel()
        sides = np.column_stack([self.above, self.below]).ravel()
        return sparse.csr_array((entries, sides, 2 * np.arange(k + 1)), (k, every))

    def compute_products(self, matrix: FloatArray) -> FloatArray:
        """Compute the (R, M) scaled inner products of rows and columns."""
        return self._float_rows @ matrix

    def support_function(self, p: FloatArray, gains: FloatArray) -> float:
        """Compute the maximum of `<p g, v>` over feasible columns with `<p, v> = 1` and over g, rounded up.

        From any w >= 0: `max_x [g[x] + sum_k w[k] (e^eps_k den_k[x] - num_k[x]) / p[x]]`.
        """
        return self.bound_gains(p, gains, self.find_weights(p, gains))

    def find_weights(
        self, p: FloatArray, gains: FloatArray, column_rows: LinearRows | None = None
    ) -> FloatArray:
        """Find (K, M) dual weights of the pairs for `bound_gains`, by an LP for each column g.

        Those of the last gains are kept: a bound, and the witness that proves it, need the same.

        Args:
            p: (N,) the prior.
            gains: (N, M) the columns g.
            column_rows: what else the columns are within.
        """
        last: tuple[Any, ...] | None = self.__dict__.get("_last")
        if (
            last is None
            or last[0] is not p
            or last[1] is not column_rows
            or not np.array_equal(last[2], gains)
        ):
            last = self.__dict__["_last"] = (
                p,
                column_rows,
                gains.copy(),
                self._solve_for_weights(p, gains, column_rows),
            )
        return np.asarray(last[3])

    def _solve_for_weights(
        self, p: FloatArray, gains: FloatArray, column_rows: LinearRows | None
    ) -> FloatArray:
        """Solve the LP for the dual weights of the pairs."""
        found = np.zeros((len(self.exponents), gains.shape[1]))
        if not len(self.exponents) or (column_rows is None and self._allow_best_letters(gains)):
            return found
        if column_rows is None and self._line_places is not None:
            rises, falls = self._line_places
            on_line = find_line_weights(p, gains, self.exponents[rises], self.exponents[falls])
            if on_line is not None:
                found[rises], found[falls] = on_line
                return found
        from pmlopt.model.uncertainty.row_multipliers import find_row_multipliers

        distinct, unit, scaled = self._distinct_pairs
        scale = float(np.abs(gains).max()) or 1.0
        weights = (
            find_row_multipliers(p, gains / scale, scaled, np.zeros(0))
            if column_rows is None
            else column_rows.find_multipliers(p, gains / scale, scaled)
        )
        found[distinct] = scale * weights[: len(unit)] / unit[:, None]
        return found

    def _allow_best_letters(self, gains: FloatArray) -> bool:
        """Return whether a column may have only the letters of the largest gain: no weights prove less."""
        best = gains[:, gains.max(axis=0).argmax()]
        return bool((self.excess_rows[0] @ (best == best.max()) <= 0).all())

    @cached_property
    def _line_places(self) -> tuple[IntArray, IntArray] | None:
        """Return which pairs bound each letter by the next one, and the next one by it; None where there are
        others, or fewer.
        """
        first = self.size - 1
        last = self.below - self.above
        if len(self.rows) or len(last) != 2 * first or (np.abs(last) != 1).any():
            return None
        places = np.full((2, first), -1)
        kinds = (last < 0).astype(int)
        places[kinds, np.minimum(self.above, self.below)] = np.arange(len(last))
        return None if (places < 0).any() else (places[0], places[1])

    def find_prices(self, p: FloatArray, gains: FloatArray) -> tuple[FloatArray, FloatArray] | None:
        """Find row multipliers rho (N,) and pair weights (K, M) from one LP.

        The rho are those of `find_row_prices`: a rare letter then counts by its probability, where
        multipliers that a solver found for its row are off by its tolerance over that.

        Returns:
            None where the program is large, or has no multipliers.
        """
        distinct = self._distinct_pairs[0]
        pairs = self.excess_rows[0][distinct]
        # with so many coefficients the linear program takes some tenths of a second
        if not pairs.nnz or pairs.nnz * gains.shape[1] > 20_000:
            return None
        priced = find_joint_multipliers(pairs, p, gains)
        if priced is None:
            return None
        weights = np.zeros((len(self.exponents), gains.shape[1]))
        weights[distinct] = priced
        return self.find_row_prices(p, gains, weights), weights

    def find_row_prices(self, p: FloatArray, gains: FloatArray, weights: Any) -> FloatArray:
        """Find the (N,) smallest row multipliers for which `bound_gains` of `g - rho` is at most zero."""
        rho = np.zeros(self.size)
        for _ in range(2):  # the second time with an allowance for rounding next to rho
            rho = rho + self.remaining_gains(p, gains - rho[:, None], weights).max(axis=1)
        return rho

    def bound_gains(self, p: FloatArray, gains: FloatArray, weights: Any) -> float:
        """Compute the upper bound on the gain proved by (K, M) pair weights, with a rounding margin."""
        return float(self.remaining_gains(p, gains, weights).max())

    def remaining_gains(self, p: FloatArray, gains: FloatArray, weights: Any) -> FloatArray:
        """Return the (N, M) gains less the weighted pairs, with a rounding margin.

        The weights are (K, M), an array or a sparse one.
        """
        if not len(self.exponents):
            return gains
        if not (weights.max() if weights.size else 0.0) > 0:
            return gains + bound_sum_rounding(len(self.exponents), 1.0) * np.abs(gains)
        pairs, sizes = self._excess_columns
        dense = isinstance(weights, np.ndarray)
        used = np.maximum(weights, 0.0) if dense else weights.maximum(0.0)
        # of an exponent in nats as many units are lost as it has, in e to its power
        units = (1 + self.exponents)[:, None]
        taken = pairs @ used
        lost = sizes @ (used * units if dense else used.multiply(units))
        if sparse.issparse(taken):
            taken = taken.toarray()
            lost = lost.toarray()
        terms = np.abs(gains) + lost / p[:, None]
        bounds = gains - taken / p[:, None]
        return np.asarray(bounds + bound_sum_rounding(len(self.exponents), 1.0) * terms)

    @cached_property
    def _distinct_pairs(self) -> tuple[BoolArray, FloatArray, Any]:
        """Return the (K,) mask of pairs with different sides, and these pairs normalized."""
        pairs, sizes = self.excess_rows
        unit = find_row_sizes(pairs)
        # a pair whose sides differ by rounding bounds nothing in floats
        distinct = unit > 1e-14 * find_row_sizes(sizes)
        kept = pairs if distinct.all() else pairs[distinct]
        scaled = kept.data / np.repeat(unit[distinct], np.diff(kept.indptr))
        return (
            distinct,
            unit[distinct],
            sparse.csr_array((scaled, kept.indices, kept.indptr), kept.shape),
        )

    def extreme_columns(self, p: FloatArray, limit: int) -> FloatArray | None:
        """Enumerate all (N, K) extreme columns of mean one under p; None for too many bases.

        A basis is a set of t pairs that hold with equality and of t + 1 letters outside of which the column
        is zero. Up to a factor its entries are the minors of the t by t + 1 system with alternating signs.
        """
        if self.candidate_count > min(limit, MAX_BASES):
            return None
        pairs, sizes = (part.toarray() for part in self.excess_rows)
        columns = list_basic_columns(pairs, sizes)
        columns = columns / (p @ columns)
        _, first = np.unique(np.round(columns, 12) + 0.0, axis=1, return_index=True)
        return columns[:, np.sort(first)]

    @cached_property
    def _float_rows(self) -> FloatArray:
        """Return the (R, N) normalized rows as floats."""
        # of whole numbers rounded to the nearest, as of floats
        shares = self.rows / self.scales[:, None]
        return np.asarray(shares, dtype=float).reshape(-1, self.size)


def make_ratio_bounds(
    numerators: Sequence[tuple[Any, Any]],
    denominators: Sequence[tuple[Any, Any]],
    exponents: Sequence[float],
) -> RatioBounds:
    """Build ratio bounds from K pairs of rows with scales; equal rows are shared.

    Args:
        numerators: K pairs (row, scale): (N,) non-negative numbers, to be divided by the scale.
        denominators: the same.
        exponents: (K,).

    Raises:
        PrivacyError: a pair is broken by a column of ones, which releases nothing: no mechanism meets it.
    """
    size = len(numerators[0][0])
    places: dict[Any, int] = {}
    rows: list[Any] = []
    scales: list[Any] = []

    def find_row(row: Any, scale: Any) -> int:
        support = np.flatnonzero(row)
        if len(support) == 1 and row[support[0]] == scale:
            return int(support[0])
        key = (*row.tolist(), scale)
        if key not in places:
            places[key] = size + len(rows)
            rows.append(row)
            scales.append(scale)
        return places[key]

    above = np.array([find_row(*side) for side in numerators], dtype=int)
    below = np.array([find_row(*side) for side in denominators], dtype=int)
    for pair, ((up, d), (down, e), exponent) in enumerate(
        zip(numerators, denominators, exponents, strict=True)
    ):
        max_exponent = min(exponent, MAX_RATIO_EXPONENT)
        if float(up.sum() / d) > math.exp(max_exponent) * float(down.sum() / e) * (1 + 1e-9):
            raise PrivacyError(
                f"pair {pair} requires {float(up.sum() / d):.6g} <= e^{max_exponent:.6g} "
                f"{float(down.sum() / e):.6g} of a mechanism that releases nothing: no mechanism meets it"
            )
    kind = object if numerators[0][0].dtype == object else float
    every = np.array(rows, dtype=kind).reshape(-1, size)
    return RatioBounds(size, every, np.array(scales, dtype=kind), above, below, np.array(exponents))


def join_ratio_bounds(several: Iterable[RatioBounds | None]) -> RatioBounds | None:
    """Return all pairs of several lists on the same letters; None where one of them is None."""
    lists = []
    for one in several:
        if one is None:
            return None
        lists.append(one)
    size = lists[0].size
    starts = np.cumsum([0, *(len(one.rows) for one in lists)])
    above, below = (
        np.concatenate([
            np.where(side < size, side, side + start)
            for side, start in zip((getattr(one, name) for one in lists), starts, strict=False)
        ])
        for name in ("above", "below")
    )  # fmt: skip
    rows = np.concatenate([one.rows for one in lists])
    scales = np.concatenate([one.scales for one in lists])
    exponents = np.concatenate([one.exponents for one in lists])
    return RatioBounds(size, rows, scales, above, below, exponents)


def make_mean_ratios(weights: Any, exponents: FloatArray, reverse: bool = False) -> RatioBounds:
    """Build the ratio bounds `v[x] <= e^(exponent_x) <p, v>`, or their reverse.

    Args:
        weights: (N,) proportional to p.
        exponents: (N,) or one number.
        reverse: whether the mean is the numerator.
    """
    n = len(weights)
    sides = np.arange(n), np.full(n, n)
    above, below = sides[::-1] if reverse else sides
    total = np.array([weights.sum()], dtype=weights.dtype)
    return RatioBounds(n, np.array([weights]), total, above, below, exponents)


def make_letter_ratios(weights: Any, pairs: IntArray, exponents: FloatArray) -> RatioBounds:
    """Build the ratio bounds `v[x] <= e^exponent v[x']` of letter pairs.

    Args:
        weights: (N,) of the kind of numbers that is wanted.
        pairs: (K, 2) the letters x and x'.
        exponents: (K,) or one number.
    """
    none = np.zeros((0, len(weights)), dtype=weights.dtype)
    return RatioBounds(len(weights), none, none[:, 0], pairs[:, 0], pairs[:, 1], exponents)
