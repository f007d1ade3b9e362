"""Pricing over a set of priors too large to enumerate: nested sets of letters, and relaxed columns."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import product
from typing import ClassVar

import highspy
import numpy as np
from numpy.typing import NDArray

from pmlopt.core.lazy_imports import sparse
from pmlopt.core.numbers.arrays import BoolArray, FloatArray, IntArray, bound_sum_rounding
from pmlopt.model.uncertainty.columns import ColumnCone
from pmlopt.programs.subconvex.columns import (
    ColumnBatch,
    ColumnPricer,
    ColumnUtility,
    DenseBatch,
    PricingResult,
    RelaxedPricing,
)
from pmlopt.programs.subconvex.relaxations import ChordBound
from pmlopt.solvers import highs
from pmlopt.solvers.solver_result import FACTOR_MARGIN_RTOL, NO_DEADLINE, Deadline


class NestedPricer:
    """The heuristic pricing on nested sets of letters over a set of priors.

    The columns are a heuristic: the first letters of an order in the inner set, the next in the outer, and
    then letter by letter what improves the best of them.
    """

    def __init__(self, kernel: ColumnUtility, cone: ColumnCone) -> None:
        self.kernel = kernel
        self.cone = cone
        self.chords = ChordBound(kernel, cone)
        self._rng = np.random.default_rng(0)

    def build_seeds(self) -> list[ColumnBatch]:
        """Build initial columns on nested sets of random orders, which cover all letters."""
        n = len(self.kernel.p)
        sets = _list_prefixes_of([self._rng.permutation(n) for _ in range(3)])
        return [self._build_columns(*sets)]

    def find_best(
        self, rho: FloatArray, max_columns: int, deadline: Deadline = NO_DEADLINE
    ) -> tuple[float, DenseBatch]:
        """Find the best columns on nested sets, and the best reduced value."""
        spread = float(np.abs(rho - rho.mean()).mean())
        # six orders of the letters are tried in a round
        shifts = spread * self._rng.normal(size=(6, len(rho)))
        # the first order is that of the multipliers: the others explore around it
        shifts[0] = 0.0
        orders = [np.argsort(rho + shift, kind="stable") for shift in shifts]
        inner, outer = _list_prefixes_of(orders)
        found = self._search_locally(inner, outer, rho, max_columns, deadline)
        return float(self._reduced_values(found, rho).max(initial=-np.inf)), found

    def search_near(
        self, column: FloatArray, rho: FloatArray, deadline: Deadline = NO_DEADLINE
    ) -> DenseBatch:
        """Search columns near a given one, by its order and by local ascent."""
        nested = _list_nested_prefixes(np.argsort(-column, kind="stable"))
        # at most 50 columns near another one are kept
        return self._search_locally(*nested, rho, 50, deadline)

    def _search_locally(
        self,
        inner: BoolArray,
        outer: BoolArray,
        rho: FloatArray,
        max_columns: int,
        deadline: Deadline,
    ) -> DenseBatch:
        """Run a local search over nested sets, and return its path."""
        parts: list[FloatArray] = []
        last = -np.inf
        # at most 30 steps of local search from the best column
        for _ in range(30):
            columns = self._build_columns(inner, outer)
            values = self._reduced_values(columns, rho)
            if (
                not len(values)
                or (parts and deadline.expired)
                or values.max() <= last + 1e-12 * (1 + abs(last))
            ):
                break
            # strict improvement by more than rounding ends the climb after finitely many steps
            last = float(values.max())
            top = np.argsort(-values, kind="stable")[: max_columns if not parts else 20]
            parts.append(columns[top].entries)
            inner, outer = _list_neighbours(columns.entries[:, top[0]])
        return DenseBatch(np.hstack(parts)) if parts else self._build_columns(inner[:0], outer[:0])

    def _build_columns(self, inner: BoolArray, outer: BoolArray) -> DenseBatch:
        """Build columns of mean one on pairs of nested sets."""
        columns = self.cone.list_nested(inner, outer)
        return DenseBatch(columns / (self.kernel.p @ columns))

    def _reduced_values(self, columns: DenseBatch, rho: FloatArray) -> FloatArray:
        """Compute the reduced values of columns on nested sets."""
        return self.kernel.column_values(columns.entries) - (self.kernel.p * rho) @ columns.entries


def _list_nested_prefixes(order: IntArray) -> tuple[BoolArray, BoolArray]:
    """List all pairs of nested prefixes of an order."""
    n = len(order)
    rank = np.empty(n, int)
    # the inverse permutation: prefixes become comparisons of (P, 1) with (N,)
    rank[order] = np.arange(n)
    first, last = np.triu_indices(n + 1, 1)
    inner = rank < first[:, None]
    return inner, (rank < last[:, None]) & ~inner


def _list_neighbours(column: FloatArray) -> tuple[BoolArray, BoolArray]:
    """List the neighbours of a column's nested sets: one letter moved, or two swapped."""
    # 2 for the top value, 1 between, 0 for zero: a move changes one letter's state
    state = (column > 0).astype(int)
    state[column >= column.max() * (1 - 1e-9)] = 2
    n = len(state)
    letters = np.arange(n)
    moved = np.repeat(state[None, :], 2 * n, axis=0)
    moved[letters, letters] = (state + 1) % 3
    moved[n + letters, letters] = (state + 2) % 3
    # letters of equal states give the same column when swapped
    one, two = np.nonzero(np.triu(state[:, None] != state[None, :]))
    swapped = np.repeat(state[None, :], len(one), axis=0)
    swapped[np.arange(len(one)), one] = state[two]
    swapped[np.arange(len(one)), two] = state[one]
    every = np.vstack([moved, swapped])
    return every == 2, every == 1


def _list_prefixes_of(orders: Sequence[IntArray]) -> tuple[BoolArray, BoolArray]:
    """List the pairs of nested prefixes of several orders."""
    inner, outer = zip(*map(_list_nested_prefixes, orders), strict=True)
    return np.vstack(inner), np.vstack(outer)


@dataclass(frozen=True, eq=False)
class SplitFamily:
    """The columns with values `top`, `mid` or 0 but for few letters, with their linear constraints.

    The columns lam of mean one have `0 <= sum_x row_k(lam[x]) + share_k mid - keep_k top` for each row k,
    where `row_k` is concave, piecewise linear, and `by_mid[k, o, x] mid + by_top[k, o, x] top` at value o.

    Attributes:
        values: (O,) which of (0, mid, top) occur, as 0, 1 and 2.
        by_mid: (K, O, N).
        by_top: (K, O, N).
        mid_rates: (K,).
        top_rates: (K,).
    """

    values: tuple[int, ...]
    by_mid: FloatArray
    by_top: FloatArray
    mid_rates: FloatArray
    top_rates: FloatArray


def build_split_families(cone: ColumnCone) -> tuple[SplitFamily, ...]:
    """Build the families that cover all extreme PML columns over a set of priors.

    With a lower probability `nu(A) = max(0, lower(A) - shift, 1 - upper(not A))` the least mean is the
    largest, over a threshold mid, of a sum over letters that is linear between 0, mid and top. Over an l1
    ball there is the smallest entry, too: an extreme column has it at 0, or the threshold at one end. None
    for sets of another kind, such as hulls of vertices.
    """
    nu = cone.priors.float_probability
    keep = cone.exp_neg_epsilon
    none = np.zeros(cone.priors.size)
    if nu is None or (nu.shift > 0 and nu.upper is not None):
        return ()
    lower = nu.lower / nu.total
    shift = float(nu.shift / nu.total)
    rest = 1 - float(lower.sum()) + shift
    if nu.upper is not None:
        # upper probabilities: a letter below mid takes up to its width more
        width = nu.upper / nu.total - lower
        by_mid = [-width, lower, none]
        by_top = [none, none, lower]
        return (_make_split_family((0, 1, 2), by_mid, by_top, rest, keep),)
    stairs = _make_split_family((1, 2), [lower, none], [none, lower], rest, keep + shift)
    if shift == 0:
        return (stairs,)
    emptied = _make_split_family((0, 1, 2), [none, lower, lower], [none] * 3, -shift, keep)
    flat = _make_split_family((1, 2), [none] * 2, [none] * 2, 1.0, keep)
    return emptied, stairs, flat


def _make_split_family(
    values: tuple[int, ...],
    by_mid: list[FloatArray],
    by_top: list[FloatArray],
    mid_rate: float,
    exp_neg_epsilon: float,
) -> SplitFamily:
    """Build a split family from its coefficients of mid and top."""
    mid = np.stack([np.atleast_2d(part) for part in by_mid], axis=1)
    top = np.stack([np.atleast_2d(part) for part in by_top], axis=1)
    rows = np.ones(len(mid))
    return SplitFamily(values, mid, top, mid_rate * rows, exp_neg_epsilon * rows)


class SplitRelaxation:
    """A Lagrangian bound on `mu(lam) - <p rho, lam>` over a split family with (top, mid) in a cell.

    For multipliers alpha of the mean and theta >= 0 of the rows, a column is worth at most

        alpha + theta (share mid - keep top)
            + sum_x max_o (p[x] (phi(o) - (rho[x] + alpha) o) + theta row(o)),

    since phi is convex between the values o and the rows are linear there. As a function of (top, mid) this
    is a sum of maxima of convex functions: on a cell it is largest at a corner. So for any multipliers the
    largest of four numbers bounds a whole cell; the multipliers are improved by the ellipsoid method.
    """

    def __init__(self, kernel: ColumnUtility, split: SplitFamily, rho: FloatArray) -> None:
        self.kernel = kernel
        self.split = split
        self.rho = rho
        self.dimension = 1 + len(split.top_rates)

    def evaluate_corners(
        self, corners: FloatArray, dual: FloatArray
    ) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Evaluate the Lagrangian bound at cell corners, with the gain and best value of each letter.

        Returns:
            (B, C) bounds, (B, C, O, N) worths and (B, C, O) values.
        """
        split = self.split
        p = self.kernel.p
        top = corners[..., 0]
        mid = corners[..., 1]
        # (B, C, O): each corner's values 0, mid or top, as far as the family has them
        entries = np.zeros_like(top), mid, top
        points = np.stack([entries[value] for value in split.values], axis=2)
        alpha = dual[:, :1]
        theta = dual[:, 1:]
        by_mid = np.tensordot(theta, split.by_mid, axes=1)
        by_top = np.tensordot(theta, split.by_top, axes=1)
        cost = p * (self.rho + alpha)
        # (B, C, O, N): cells, corners, values, letters
        worths = self.kernel.phi(points)[..., None] * p - points[..., None] * cost[:, None, None, :]
        worths += top[..., None, None] * by_top[:, None]
        worths += mid[..., None, None] * by_mid[:, None]
        mid_share = (theta @ split.mid_rates)[:, None]
        top_share = (theta @ split.top_rates)[:, None]
        bounds = alpha + mid * mid_share - top * top_share
        return bounds + worths.max(axis=2).sum(axis=2), worths, points

    def compute_slopes(
        self, corners: FloatArray, worths: FloatArray, points: FloatArray, at: NDArray[np.intp]
    ) -> FloatArray:
        """Compute the (B, 1 + K) subgradients of the bound in the multipliers."""
        split = self.split
        rows = np.arange(len(at))
        top = corners[rows, at, 0]
        mid = corners[rows, at, 1]
        chosen = worths[rows, at].argmax(axis=1)
        # Danskin: a subgradient of a maximum is the gradient of the term that attains it
        taken = np.take_along_axis(points[rows, at], chosen, axis=1)
        mean = 1 - taken @ self.kernel.p
        letters = np.arange(chosen.shape[1])
        by_mid = split.by_mid[:, chosen, letters].sum(axis=2).T
        by_top = split.by_top[:, chosen, letters].sum(axis=2).T
        kept = mid[:, None] * (by_mid + split.mid_rates)
        kept += top[:, None] * (by_top - split.top_rates)
        return np.column_stack([mean, kept])

    def minimize_bounds(
        self, cells: FloatArray, dual: FloatArray, radius: FloatArray, steps: int, cutoff: float
    ) -> tuple[FloatArray, FloatArray]:
        """Minimise (B,) Lagrangian bounds of cells over their multipliers by the ellipsoid method.

        A cell has the ends of top, then those of mid over top; multipliers are sought `radius` around `dual`.
        """
        # a convex function of (top, mid) on a cell is largest at one of its corners
        corners = _list_corners(cells)
        count = len(cells)
        size = self.dimension
        best = np.full(count, np.inf)
        kept = dual.copy()
        centre = dual.copy()
        # the first ellipsoid is a ball of the given radius around the multipliers
        shape = radius[:, None, None] ** 2 * np.eye(size)
        least = np.zeros(size)
        least[0] = -np.inf
        live = np.arange(count)
        for _ in range(steps):
            here = centre[live]
            # weights of rows have to be non-negative for weak duality; alpha is free
            valid = np.maximum(here, least)
            values, worths, points = self.evaluate_corners(corners[live], valid)
            at = values.argmax(axis=1)
            value = values[np.arange(len(live)), at]
            better = value < best[live]
            best[live[better]] = value[better]
            kept[live[better]] = valid[better]
            slope = self.compute_slopes(corners[live], worths, points, at)
            depth = value - best[live]
            # feasibility cut: outside theta >= 0 the cut is along the worst constraint
            outside = here[:, 1:].min(axis=1) < 0
            worst = 1 + here[:, 1:].argmin(axis=1)
            slope[outside] = 0.0
            slope[outside, worst[outside]] = -1.0
            depth = np.where(outside, -here[np.arange(len(here)), worst], depth)
            moved, going = _cut_ellipsoid(centre[live], shape[live], slope, depth)
            centre[live] = moved[0]
            shape[live] = moved[1]
            live = live[going & (best[live] > cutoff)]
            if not len(live):
                break
        # the bound is rounded outward by the size of its terms
        largest = float(np.abs(self.rho).max())
        terms = np.abs(kept).sum(axis=1) * (1 + cells[:, 1]) + largest + 1.0
        return best + bound_sum_rounding(len(self.kernel.p), 1.0) * terms, kept


def _list_corners(cells: FloatArray) -> FloatArray:
    """List the (B, 4, 2) corners of cells in (top, mid)."""
    top = cells[:, [0, 1, 0, 1]]
    share = cells[:, [2, 2, 3, 3]]
    return np.stack([top, top * share], axis=2)


def _cut_ellipsoid(
    centre: FloatArray, shape: FloatArray, slope: FloatArray, depth: FloatArray
) -> tuple[tuple[FloatArray, FloatArray], BoolArray]:
    """Take one step of the ellipsoid method with deep cuts, and return whether to go on."""
    n = centre.shape[1]
    along = np.einsum("bij,bj->bi", shape, slope)
    # a quadratic form of a positive definite matrix; below zero only by rounding
    length = np.sqrt(np.maximum(np.einsum("bi,bi->b", along, slope), 0.0))
    going = (length > 0) & (length > 1e-14)
    safe = np.where(going, length, 1.0)
    # how far the cut is past the centre, in radii of the ellipsoid: 0 is a central cut
    deep = np.clip(depth / safe, 0.0, 1.0)
    going &= deep < 1 - 1e-9
    along = along / safe[:, None]
    moved = centre - ((1 + n * deep) / (n + 1))[:, None] * along
    # the smallest ellipsoid around what the cut leaves
    factor = n * n / (n * n - 1.0) * (1 - deep**2)
    weight = 2 * (1 + n * deep) / ((n + 1) * (1 + deep))
    outer = along[:, :, None] * along[:, None, :]
    new = factor[:, None, None] * (shape - weight[:, None, None] * outer)
    return (
        np.where(going[:, None], moved, centre),
        np.where(going[:, None, None], new, shape),
    ), going


FIRST_CELLS_PER_SIDE = 8
"""Cells a side to start from."""

MAX_REFINED_CELLS = 4_000
"""Cells of one family that are looked at in all."""


FIRST_ELLIPSOID_STEPS, LATER_ELLIPSOID_STEPS = 60, 30
"""Steps of the ellipsoid method on the first cells, and on their parts."""


class SplitPricer(ColumnPricer):
    """The pricing on nested sets over a set of priors, with bounds from relaxed split families."""

    name: ClassVar[str] = "split"

    def __init__(
        self, kernel: ColumnUtility, cone: ColumnCone, families: tuple[SplitFamily, ...]
    ) -> None:
        self.nested = NestedPricer(kernel, cone)
        self.kernel = kernel
        self.splits = families
        self._largest = float(self.nested.chords.caps.max())

    def build_seeds(self, count: int) -> list[ColumnBatch]:
        """Build initial columns; `count` is ignored."""
        return self.nested.build_seeds()

    def bound_roughly(self, rho: FloatArray) -> float:
        """Compute a rough upper bound, which only shows the size of the gap."""
        # half the time of a fine bound, where the bound only shows how large a gap is
        return self.bound_reduced_values(rho, -np.inf, digits=1e-2)

    def price_columns(
        self, rho: FloatArray, max_columns: int, cutoff: float, deadline: Deadline = NO_DEADLINE
    ) -> PricingResult[DenseBatch]:
        """Find the best columns, and compute the bound where none exceeds `cutoff`."""
        best, found = self.nested.find_best(rho, max_columns, deadline)
        upper = np.inf if best > cutoff else self.bound_reduced_values(rho, cutoff, deadline)
        return PricingResult(best, max(best, upper), [found])

    # What the search of cells may leave of a bound on one set of multipliers.
    def bound_reduced_values(
        self, rho: FloatArray, cutoff: float, deadline: Deadline = NO_DEADLINE, digits: float = 1e-4
    ) -> float:
        """Compute an upper bound on the reduced value `mu(lam) - <p rho, lam>` of every column."""
        loose = self.nested.chords.compute_bound(rho)
        if loose <= cutoff or not self.splits:
            return loose
        cells = [_CellRefinement(self.kernel, split, rho, self._largest) for split in self.splits]
        return min(loose, max(family.refine(cutoff, digits, deadline) for family in cells))

    def price_relaxed(
        self, rho: FloatArray, cutoff: float, digits: float, deadline: Deadline = NO_DEADLINE
    ) -> RelaxedPricing:
        """Compute the relaxed bound, with its near-maximising relaxed columns and neighbours of these."""
        upper = -np.inf
        lifts = []
        worths = []
        guesses = []
        for split in self.splits:
            cells = _CellRefinement(self.kernel, split, rho, self._largest)
            upper = max(upper, cells.refine(cutoff, digits, deadline))
            # a round adds at most twelve relaxed columns of each family
            for place, (top, mid) in enumerate(cells.list_peaks(12)):
                if deadline.expired:
                    break
                found = solve_relaxed_column(self.kernel, split, rho, top, mid)
                if found is not None:
                    lifts.append(found[0])
                    worths.append(found[1])
                    if place == 0:  # columns are sought near the best relaxed column only
                        guesses.append(self.nested.search_near(found[0], rho, deadline))
        if lifts:
            guesses.append(self._make_allowed(np.array(lifts).T))
        stacked = np.array(lifts).reshape(-1, len(self.kernel.p)).T
        loose = self.nested.chords.compute_bound(rho)
        return RelaxedPricing(
            min(upper, loose) if self.splits else loose, stacked, np.array(worths), guesses
        )

    def _make_allowed(self, lifts: FloatArray) -> DenseBatch:
        """Mix relaxed columns with the constant until they are feasible."""
        cone = self.nested.cone
        least = cone.priors.min_mean(lifts)
        # what the least mean is short of keep times the largest entry, for each column
        lacks = np.maximum(
            cone.exp_neg_epsilon * lifts.max(axis=0) * (1 + FACTOR_MARGIN_RTOL) - least, 0.0
        )
        # the constant has 1 - keep to spare: mixing is linear in the shortfall
        weight = lacks / (lacks + max(1 - cone.exp_neg_epsilon, FACTOR_MARGIN_RTOL))
        return DenseBatch((1 - weight) * lifts + weight)


class _CellRefinement:
    """The adaptive bisection of (top, mid) cells of one split family."""

    def __init__(
        self, kernel: ColumnUtility, split: SplitFamily, rho: FloatArray, largest: float
    ) -> None:
        self._relaxation = SplitRelaxation(kernel, split, rho)
        # multipliers are sought within the size of prices and worths
        heights = kernel.phi(np.array([0.0, 1.0, largest]))
        spread = float(np.ptp(rho)) + float(np.ptp(heights))
        self._radius = 2 * (1 + spread)
        n = FIRST_CELLS_PER_SIDE
        # a column of mean one has its largest entry at 1 or above
        tops = np.linspace(1.0, max(largest, 1.0) * (1 + 1e-12), n + 1)
        # mid as a share of top: the triangle mid <= top becomes a square of cells
        ratios = np.linspace(0.0, 1.0, n + 1)
        places = product(range(n), repeat=2)
        self._cells = np.array([(*tops[i : i + 2], *ratios[j : j + 2]) for i, j in places])
        self._points: list[tuple[float, float, float]] = []

    def refine(self, cutoff: float, digits: float = 0.0, deadline: Deadline = NO_DEADLINE) -> float:
        """Bisect cells until the largest bound is tight enough or below the cutoff; return it."""
        relaxation = self._relaxation
        cells = self._cells
        radius = np.full(len(cells), self._radius)
        start = np.zeros((len(cells), relaxation.dimension))
        start[:, 1:] = self._radius / 4
        bounds, dual = relaxation.minimize_bounds(
            cells, start, radius, FIRST_ELLIPSOID_STEPS, cutoff
        )
        looked = len(cells)
        reached = -np.inf
        while True:
            top = np.argsort(-bounds, kind="stable")
            first = top[:8]
            value = self._evaluate_middles(cells[first], dual[first], radius[first])
            reached = max(reached, value)
            # cells below what a point attains cannot be refined away, and need not be
            target = max(cutoff, reached + max(digits, 1e-7 * (1 + abs(reached))))
            if bounds[top[0]] <= target or looked > MAX_REFINED_CELLS or deadline.expired:
                return float(bounds[top[0]])
            # 200 cells are halved together
            chosen = top[:200]
            chosen = chosen[bounds[chosen] > target]
            parts = _halve_cells(cells[chosen])
            above = np.tile(bounds[chosen], 2)
            begin = np.tile(dual[chosen], (2, 1))
            radii = np.tile(radius[chosen], 2)
            found, better = relaxation.minimize_bounds(
                parts, begin, radii, LATER_ELLIPSOID_STEPS, cutoff
            )
            moved = np.abs(better - begin).max(axis=1)
            # halved cells are replaced by their parts; all others keep bound and multipliers
            rest = np.delete(np.arange(len(cells)), chosen)
            cells = np.concatenate([cells[rest], parts])
            dual = np.concatenate([dual[rest], better])
            # the bound of the whole holds for its parts: refining never makes it worse
            bounds = np.concatenate([bounds[rest], np.minimum(found, above)])
            # multipliers of a part are sought at least so far from those of its cell
            wider = np.clip(3 * moved, np.maximum(radii / 2, 1.0), 4 * radii)
            radius = np.concatenate([radius[rest], wider])
            looked += len(parts)

    def _evaluate_middles(self, cells: FloatArray, dual: FloatArray, radius: FloatArray) -> float:
        """Evaluate relaxed columns at the cell centres approximately."""
        # a cell of width zero: its four corners are one point
        low_ends = cells[:, [0, 0, 2, 2]]
        high_ends = cells[:, [1, 1, 3, 3]]
        middles = low_ends / 2 + high_ends / 2
        values, _ = self._relaxation.minimize_bounds(
            middles, dual, radius, FIRST_ELLIPSOID_STEPS, -np.inf
        )
        for value, (top, _, share, _) in zip(values.tolist(), middles.tolist(), strict=True):
            self._points.append((value, top, top * share))
        return float(values.max())

    def list_peaks(self, max_peaks: int) -> list[tuple[float, float]]:
        """List well-separated points at which the bound is largest."""
        found: list[tuple[float, float]] = []
        for _, top, mid in sorted(self._points, reverse=True):
            if all(abs(top - t) + abs(mid - m) > 1e-3 for t, m in found):
                found.append((top, mid))
            if len(found) == max_peaks:
                break
        return found


def _halve_cells(cells: FloatArray) -> FloatArray:
    """Bisect each cell across its longer side."""
    # top is scaled by ratio, so its length is a logarithm; mid over top is a difference
    low_top, high_top, low_share, high_share = cells.T
    across = high_share - low_share > np.log(high_top / low_top)
    first = cells.copy()
    second = cells.copy()
    rows = np.arange(len(cells))
    side = np.where(across, 2, 0)
    middle = (cells[rows, side] + cells[rows, side + 1]) / 2
    first[rows, side + 1] = middle
    second[rows, side] = middle
    return np.concatenate([first, second])


def solve_relaxed_column(
    kernel: ColumnUtility, split: SplitFamily, rho: FloatArray, top: float, mid: float
) -> tuple[FloatArray, float] | None:
    """Solve the LP of the best relaxed column for fixed (top, mid), with its value."""
    points = np.array([0.0, mid, top])[list(split.values)]
    p = kernel.p
    count = len(points)
    n = len(p)
    heights = kernel.phi(points)
    gains = heights[:, None] * p - points[:, None] * (p * rho)
    sums = sparse.kron(np.ones((1, count)), sparse.eye_array(n))
    mean_row = (points[:, None] * p).ravel()
    rows = mid * split.by_mid + top * split.by_top
    matrix = sparse.vstack([sums, mean_row[None, :], rows.reshape(len(rows), -1)])
    rates = split.top_rates * top - split.mid_rates * mid
    lower = np.append(np.ones(n + 1), rates)
    upper = np.append(np.ones(n + 1), np.full(len(rates), np.inf))
    model = highs.build_sparse_model(-gains.ravel(), (0.0, np.inf), (lower, upper), matrix)
    solver = highs.load_model(model, _TIGHT_OPTIONS)
    solver.run()
    if solver.getModelStatus() != highspy.HighsModelStatus.kOptimal:
        return None
    values = np.array(solver.getSolution().col_value)
    shares = np.clip(values.reshape(count, n), 0.0, 1.0)
    # letters are mixtures of values: the shares of each sum to one but for the solver
    shares /= shares.sum(axis=0)
    column = points @ shares
    mean = float(p @ column)
    return column / mean, float(p @ (heights @ shares)) / mean


_TIGHT_OPTIONS: dict[str, float | str] = {
    "primal_feasibility_tolerance": 1e-10,
    "dual_feasibility_tolerance": 1e-10,
}
