"""The extreme columns of a requirement: as cones, as a list, or by a search where they are too many."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from highspy import Highs

from pmlopt.core.lazy_imports import sparse
from pmlopt.core.numbers.arrays import BoolArray, FloatArray
from pmlopt.data.prior import Prior
from pmlopt.errors import ProgramError
from pmlopt.model.privacy import Requirement
from pmlopt.model.privacy.ratios import RatioBounds
from pmlopt.model.uncertainty import ColumnCone
from pmlopt.model.uncertainty.columns import TIE_ATOL, BoxFamily, Family, StaircaseFamily
from pmlopt.programs.subconvex.columns import (
    ColumnBatch,
    ColumnFamily,
    DenseBatch,
    recognize_columns,
)
from pmlopt.programs.subconvex.vertex_enumeration import list_vertices
from pmlopt.solvers import highs
from pmlopt.solvers.solver_result import FACTOR_MARGIN_RTOL, NO_DEADLINE, Deadline

CONE_RTOL = 1e-12
"""Share by which factors such as e^epsilon are moved outward, for the rounding of their floats."""


@dataclass(frozen=True, eq=False)
class EstimationCone:
    """A cone of columns lam of mean one with auxiliary scalars s, given by nonnegative linear forms.

    With v = (lam, s): `rows v >= 0` and `<mean, v> = 1`. Products of two rows are quadratic forms that are
    not negative either, and so are the `forms` at the extreme columns.

    Attributes:
        letters: N.
        rows: (K, N + S).
        mean: (N + S,) the prior, and zeros.
        size: an upper bound on |v|^2.
        forms: (N + S, N + S) symmetric, each with `v' form v >= 0` at the extreme columns.
        has_two_ends: whether the first N rows are the lower ends of the letters, and the next N their upper
            ends.
    """

    letters: int
    rows: FloatArray
    mean: FloatArray
    size: float
    forms: tuple[FloatArray, ...] = ()
    has_two_ends: bool = True

    @cached_property
    def product_pairs(self) -> tuple[np.ndarray, np.ndarray]:
        """Return the index pairs of the linear forms whose products are relaxed."""
        return np.triu_indices(len(self.rows), 1)

    @property
    def form_count(self) -> int:
        """Return the number of quadratic forms: products of two linear forms, and `forms`."""
        return len(self.product_pairs[0]) + len(self.forms)

    def combine_forms(self, weights: FloatArray, absolute: bool = False) -> FloatArray:
        """Compute the (N + S, N + S) weighted sum of the quadratic forms, or of their absolute values."""
        rows = np.abs(self.rows) if absolute else self.rows
        # the sum of w_ij r_i r_j' over pairs as one product: rows' W rows
        products = np.zeros((len(rows), len(rows)))
        products[self.product_pairs] = weights[: len(self.product_pairs[0])]
        total = rows.T @ (products + products.T) @ rows / 2
        for weight, form in zip(weights[len(self.product_pairs[0]) :], self.forms, strict=True):
            total += weight * (np.abs(form) if absolute else form)
        return total

    def list_forms(self) -> FloatArray:
        """List all quadratic forms as an array (count, N + S, N + S)."""
        one, other = (self.rows[place] for place in self.product_pairs)
        products = one[:, :, None] * other[:, None, :]
        return np.concatenate(
            [(products + products.transpose(0, 2, 1)) / 2, *(f[None] for f in self.forms)]
        )


def build_column_cones(
    p: FloatArray, allowed: tuple[Family, ...] | ColumnCone | RatioBounds
) -> tuple[EstimationCone, ...] | None:
    """Build the cones of a requirement's extreme columns; None where these have too many quadratic forms."""
    if isinstance(allowed, tuple):
        return tuple(
            _build_box_cone(p, one) if isinstance(one, BoxFamily) else _build_staircase_cone(p, one)
            for one in allowed
        )
    found = (
        _build_ratio_cone(p, allowed)
        if isinstance(allowed, RatioBounds)
        else _build_vertex_cone(p, allowed)
    )
    # 200 linear forms have 19,900 products
    return None if found is None or len(found.rows) > 200 else (found,)


def _build_box_cone(p: FloatArray, box: BoxFamily) -> EstimationCone:
    """Build the cone `lam >= low q`, `lam <= high q` with q = <p, lam>."""
    n = len(p)
    low = box.low * (1 - CONE_RTOL)
    high = box.high * (1 + CONE_RTOL)
    # (N, N) with the prior in each row: lam -> q for every letter
    q = np.ones((n, 1)) * p
    rows = np.vstack([np.eye(n) - low * q, high * q - np.eye(n)])
    return EstimationCone(n, rows, p.copy(), n * high**2, _build_equal_mass_form(p, box, rows))


def _build_equal_mass_form(
    p: FloatArray, box: BoxFamily, rows: FloatArray
) -> tuple[FloatArray, ...]:
    """Build the quadratic form that holds for extreme columns of a box where all letters are equally likely.

    So `sum_x (lam[x] - low) (high - lam[x])` is `(r - low) (high - r)`, where a relaxation would have 0.
    """
    n = len(p)
    # with unequal masses the entry between depends on the set: no form is common to all
    if np.ptp(p) > 1e-15 or box.is_constant_only:
        return ()
    above = n * (1 - box.low) / (box.high - box.low)
    # the fractional part of the number of high letters is what the letter between has
    part = above - math.floor(above)
    slack = (box.high - box.low) ** 2 * part * (1 - part) * (1 - 1e-9)
    # the capacity is a whole number of letters: none is between, and the form adds nothing
    if min(part, 1 - part) < 1e-9:
        return ()
    form = rows[:n].T @ rows[n:]
    return ((form + form.T) / 2 - slack * np.outer(p, p),)


def _build_staircase_cone(p: FloatArray, family: StaircaseFamily) -> EstimationCone:
    """Build the cone `lam - m >= 0`, `base q + slope m - lam >= 0`, m >= 0 with the auxiliary scalar m."""
    n = len(p)
    base = family.base * (1 + CONE_RTOL)
    slope = family.slope * (1 + CONE_RTOL)
    rows = np.zeros((2 * n + 1, n + 1))
    rows[:n, :n] = np.eye(n)
    rows[:n, n] = -1.0
    rows[n : 2 * n, :n] = base * p - np.eye(n)
    rows[n : 2 * n, n] = slope
    rows[2 * n, n] = 1.0
    return EstimationCone(
        n, rows, np.append(p, 0.0), n * min(base + slope, 1 / float(p.min())) ** 2 + 1
    )


def _build_ratio_cone(p: FloatArray, ratios: RatioBounds) -> EstimationCone:
    """Build the cone of nonnegative entries and ratio bounds `<num, lam> <= e^exponent <den, lam>`."""
    above, below = (side.toarray() for side in ratios.differences)
    pairs = np.exp(ratios.exponents)[:, None] * (1 + CONE_RTOL) * below - above
    # rows of size one: factors e^eps of different pairs differ by orders of magnitude
    pairs = pairs / np.abs(pairs).max(axis=1, keepdims=True)
    return EstimationCone(
        len(p), np.vstack([np.eye(len(p)), pairs]), p, float(1 / p.min()) ** 2, has_two_ends=False
    )


def _build_vertex_cone(p: FloatArray, cone: ColumnCone) -> EstimationCone | None:
    """Build the cone of entries below their maximum M and of `<Q, lam> - keep M` for each vertex Q."""
    laws = cone.priors.list_vertices()
    n = len(p)
    if laws is None:
        return None
    rows = np.zeros((2 * n + len(laws), n + 1))
    rows[:n, :n] = np.eye(n)
    rows[n : 2 * n, :n] = -np.eye(n)
    rows[n : 2 * n, n] = 1.0
    rows[2 * n :, :n] = laws * (1 + CONE_RTOL)
    rows[2 * n :, n] = -cone.exp_neg_epsilon
    return EstimationCone(n, rows, np.append(p, 0.0), 2 * float(1 / p.min()) ** 2)


class ColumnSearch(ABC):
    """The interface of heuristic searches for extreme columns of a requirement."""

    @cached_property
    @abstractmethod
    def start_columns(self) -> FloatArray:
        """Return (K, N) initial extreme columns for the column generation."""

    @abstractmethod
    def improve_columns(self, columns: FloatArray, form: FloatArray, pi: FloatArray) -> FloatArray:
        """Improve each of (K, N) columns by one local-search step, where that increases its value."""

    @abstractmethod
    def to_batch(self, columns: FloatArray) -> ColumnBatch:
        """Drop duplicates of (K, N) columns, and pack the others into a batch."""

    def find_local_maxima(
        self, sensitivities: FloatArray, multipliers: FloatArray, deadline: Deadline = NO_DEADLINE
    ) -> ColumnBatch:
        """Find local maxima of `|Z' lam|^2 - <pi, lam>` over the extreme columns by local search.

        Args:
            sensitivities: (N, L) Z.
            multipliers: (N,) pi.
            deadline: of the search; after it the best columns so far are taken.
        """
        columns = self.start_columns.copy()
        form = sensitivities @ sensitivities.T
        here = _evaluate_columns(columns, form, multipliers)
        live = np.arange(len(columns))
        # a local search takes at most 60 steps
        for _ in range(60):
            if deadline.expired or not len(live):
                break
            moved = self.improve_columns(columns[live], form, multipliers)
            there = _evaluate_columns(moved, form, multipliers)
            # rises below rounding would cycle between columns of equal worth
            better = there > here[live] + 1e-12 * np.abs(here[live])
            live = live[better]
            columns[live] = moved[better]
            here[live] = there[better]
        return self.to_batch(columns)


def _evaluate_columns(columns: FloatArray, form: FloatArray, pi: FloatArray) -> FloatArray:
    """Evaluate the quadratic objective `lam' form lam - <pi, lam>` of (K, N) columns."""
    return np.asarray(((columns @ form) * columns).sum(axis=1) - columns @ pi)


@dataclass(frozen=True, eq=False)
class TwoValueSearch(ColumnSearch):
    """A local search over two-valued columns that moves one letter into or out of the high set."""

    p: FloatArray
    family: StaircaseFamily

    @cached_property
    def start_columns(self) -> FloatArray:
        """Return (K, N) initial extreme columns for the column generation."""
        sets = list_start_sets(len(self.p), self._find_best_mass())
        allowed, low, step = self._compute_two_values((sets @ self.p)[:, None])
        return (low + step * sets)[allowed[:, 0]]

    def improve_columns(self, columns: FloatArray, form: FloatArray, pi: FloatArray) -> FloatArray:
        """Improve each of (K, N) columns by one local-search step, where that increases its value."""
        # all N single moves of all K sets at once: (K, N) values by rank-one updates
        sets = _find_high_sets(columns)
        rows = np.arange(len(columns))
        # a member leaves, another letter enters
        sign = np.where(sets, -1.0, 1.0)
        mass = (sets @ self.p)[:, None] + sign * self.p
        allowed, low, step = self._compute_two_values(mass)
        # the products of the constant, and those of each set with and without a letter
        along = sets @ form
        ones = form.sum(axis=0)
        own = (along * sets).sum(axis=1)[:, None] + 2 * sign * along + np.diag(form)
        mixed = (sets @ ones)[:, None] + sign * ones
        squares = low**2 * float(ones.sum()) + 2 * low * step * mixed + step**2 * own
        prices = (sets @ pi)[:, None] + sign * pi
        costs = low * float(pi.sum()) + step * prices
        best = np.where(allowed, squares - costs, -np.inf).argmax(axis=1)
        sets[rows, best] ^= allowed[rows, best]
        _, low, step = self._compute_two_values((sets @ self.p)[:, None])
        return low + step * sets

    def to_batch(self, columns: FloatArray) -> ColumnBatch:
        """Drop duplicates of (K, N) columns, and pack the others into a batch."""
        sets = np.unique(_find_high_sets(columns), axis=0)
        return ColumnFamily(self.family, sets, np.full(len(sets), -1))

    def _find_best_mass(self) -> float:
        """Find the probability of the high set at which the two values have the largest variance."""
        masses = np.linspace(0.005, 0.995, 199) * min(1.0, self.family.max_mass)
        allowed, _, step = self._compute_two_values(masses)
        variances = np.where(allowed, masses * (1 - masses) * step**2, 0.0)
        return float(masses[variances.argmax()])

    def _compute_two_values(self, mass: FloatArray) -> tuple[BoolArray, FloatArray, FloatArray]:
        """Compute the two values of columns for a high set of this mass, and whether it is feasible."""
        allowed = mass < self.family.max_mass * (1 - TIE_ATOL)
        safe_mass = np.where(allowed, mass, 0.0)
        low, step, _ = self.family.compute_values(safe_mass, np.zeros(mass.shape))
        return allowed, low, step


def _find_high_sets(columns: FloatArray) -> BoolArray:
    """Find the (K, N) sets of letters with the larger of two values."""
    return np.asarray(columns > columns.mean(axis=1, keepdims=True))


@dataclass(frozen=True, eq=False)
class BoxColumnSearch(ColumnSearch):
    """A local search over columns with entrywise bounds: along the gradient, or along an edge.

    The best column for the slope is a knapsack; since the worth is convex, it is worth no less. An edge leads
    from a column to one at which another letter is between.
    """

    p: FloatArray
    family: BoxFamily

    @cached_property
    def start_columns(self) -> FloatArray:
        """Return initial columns for some sets of letters and for random directions."""
        set_fraction = (1 - self.family.low) / (self.family.high - self.family.low)
        sets = list_start_sets(len(self.p), set_fraction).astype(float)
        drawn = np.random.default_rng(0).normal(size=sets.shape)
        # ties within a set are broken at random: letters between differ from start to start
        near = sets + 1e-3 * drawn
        return self._maximize_slopes(
            np.vstack([near, drawn]) if len(self.p) <= MAX_RELAXED_LETTERS else near
        )

    def improve_columns(self, columns: FloatArray, form: FloatArray, pi: FloatArray) -> FloatArray:
        # convexity: a column that is best for the gradient is worth no less than the start
        """Improve each of (K, N) columns by one local-search step, where that increases its value."""
        sloped = self._maximize_slopes(2 * columns @ form - pi)
        moved = self._move_along_edges(columns, form, pi)
        return np.where(
            (_evaluate_columns(sloped, form, pi) >= _evaluate_columns(moved, form, pi))[:, None],
            sloped,
            moved,
        )

    def to_batch(self, columns: FloatArray) -> ColumnBatch:
        """Drop duplicates of (K, N) columns, and pack the others into a batch."""
        return recognize_columns(self.family, columns.T).drop_duplicates(self.p)

    def _maximize_slopes(self, slopes: FloatArray) -> FloatArray:
        """Find the (K, N) columns that maximise linear objectives, by a fractional knapsack."""
        order = np.argsort(-slopes / self.p, axis=1, kind="stable")
        # the mass of the letters before, by which a letter is full, in part, or low
        before = self.p[order].cumsum(axis=1) - self.p[order]
        span = self.family.high - self.family.low
        rest = (1 - self.family.low - span * before) / self.p[order]
        columns = np.empty(slopes.shape)
        np.put_along_axis(columns, order, self.family.low + np.clip(rest, 0.0, span), axis=1)
        return columns

    def _move_along_edges(
        self, columns: FloatArray, form: FloatArray, pi: FloatArray
    ) -> FloatArray:
        """Move each of (K, N) columns along its best edge: mass moves between two letters."""
        low = self.family.low
        high = self.family.high
        p = self.p
        rows = np.arange(len(columns))
        middle = np.minimum(columns - low, high - columns).argmax(axis=1)  # the letter between
        mass = p[middle][:, None]
        value = columns[rows, middle][:, None]
        rises = columns < (low + high) / 2
        room = np.where(rises, high - columns, columns - low) * p
        taken = np.where(rises, value - low, high - value) * mass
        step = np.where(rises, 1.0, -1.0) * np.minimum(room, np.maximum(taken, 0.0))
        step[rows, middle] = 0.0
        # exact change along an edge: twice the gradient times the step, plus the curvature
        slope = columns @ form
        along = slope / p - slope[rows, middle][:, None] / mass
        own = np.diag(form)
        mixed = 2 * form[middle] / (p * mass)
        square = own / p**2 - mixed + own[middle][:, None] / mass**2
        cost = pi / p - pi[middle][:, None] / mass
        gained = 2 * step * along + step**2 * square - step * cost
        best = gained.argmax(axis=1)
        moved = columns.copy()
        change = step[rows, best]
        moved[rows, best] += change / p[best]
        moved[rows, middle] -= change / p[middle]
        # rounding may leave the box by an ulp
        return np.clip(moved, low, high)


@dataclass(frozen=True, eq=False)
class LPColumnSearch(ColumnSearch):
    """A local search over the columns of a general cone, by linear programs."""

    cone: EstimationCone
    raisable: bool

    @cached_property
    def _solver(self) -> Highs:
        """Return the HiGHS solver of the search, built once."""
        rows, columns = self.cone.rows.shape
        system = sparse.csc_array(np.vstack([self.cone.rows, self.cone.mean]))
        lower = np.append(np.zeros(rows), 1.0)
        upper = np.append(np.full(rows, np.inf), 1.0)
        model = highs.build_columnwise_model(
            np.zeros(columns),
            (-np.inf, np.inf),
            (lower, upper),
            (system.indptr, system.indices, system.data),
        )
        return highs.load_model(model, highs.RESTART_OPTIONS)

    @cached_property
    def start_columns(self) -> FloatArray:
        """Return (K, N) initial extreme columns for the column generation."""
        n = self.cone.letters
        # thirty random directions for each letter
        slopes = np.random.default_rng(0).normal(size=(30 * n, n))
        return self._maximize_slopes(slopes, np.ones(slopes.shape))

    def improve_columns(self, columns: FloatArray, form: FloatArray, pi: FloatArray) -> FloatArray:
        """Improve each of (K, N) columns by one local-search step, where that increases its value."""
        return self._maximize_slopes(2 * columns @ form - pi, columns)

    def _maximize_slopes(self, slopes: FloatArray, before: FloatArray) -> FloatArray:
        """Find the (K, N) columns that maximise linear objectives by LPs; keep one where its LP fails."""
        n = self.cone.letters
        m = len(self.cone.mean)
        every = np.arange(m, dtype=np.int32)
        found = before.copy()
        for place, slope in enumerate(slopes):
            costs = np.zeros(m)
            costs[:n] = -slope / np.abs(slope).max()
            self._solver.changeColsCost(m, every, costs)
            self._solver.run()
            # a solver returns entries just below 0, and nothing at all if it fails
            column = np.maximum(np.array(self._solver.getSolution().col_value)[:n], 0.0)
            if len(column) == n and column.any():
                found[place] = column / (self.cone.mean[:n] @ column)
        return found

    def to_batch(self, columns: FloatArray) -> ColumnBatch:
        """Drop duplicates of (K, N) columns, and pack the others into a batch."""
        return DenseBatch(columns.T, self.raisable).drop_duplicates(
            self.cone.mean[: self.cone.letters]
        )


START_SET_COUNT, LETTER_SWAP_COUNT = 4, 3000
"""Sets of which all rotations are taken where letters are many, and how often two letters are swapped."""


def list_start_sets(size: int, set_fraction: float) -> BoolArray:
    """List (K, N) starting sets of letters: intervals, their complements, and random sets.

    Of many letters it is the rotations of few sets of about a share of them, and each single letter: for
    equal masses their information has the sums of the squared Fourier coefficients as its eigenvalues, which
    are made even by swapping letters (supplementary difference sets have them equal).
    """
    if size > MAX_RELAXED_LETTERS:
        return _list_rotations(size, set_fraction)
    place = np.arange(size)
    first, last = np.triu_indices(size)
    intervals = (place >= first[:, None]) & (place <= last[:, None])
    drawn = np.random.default_rng(0).random((2 * len(intervals), size)) < 0.4
    sets = np.unique(np.concatenate([intervals, ~intervals, drawn]), axis=0)
    return sets[sets.any(axis=1) & ~sets.all(axis=1)]


def _list_rotations(size: int, set_fraction: float) -> BoolArray:
    """List all rotations of a few sets with nearly isotropic Fisher information, and all singletons."""
    rng = np.random.default_rng(0)
    count = min(max(round(set_fraction * size), 1), size - 1)
    bases = np.array([rng.permutation(size) < count for _ in range(START_SET_COUNT)])
    # rotations have a circulant information matrix: its eigenvalues are Fourier powers
    squares = np.abs(np.fft.rfft(bases, axis=1)[:, 1:]) ** 2
    lost = _sum_inverses(squares)
    for which in rng.integers(START_SET_COUNT, size=LETTER_SWAP_COUNT):
        moved = bases[which].copy()
        moved[rng.choice(np.flatnonzero(moved))] = False
        moved[rng.choice(np.flatnonzero(~bases[which]))] = True
        others = squares.copy()
        others[which] = np.abs(np.fft.rfft(moved)[1:]) ** 2
        now = _sum_inverses(others)
        if now < lost:
            bases[which] = moved
            squares = others
            lost = now
    # unit columns make the rank full where rotations lack it
    turned = [np.roll(base, turn) for base in bases for turn in range(size)]
    single = np.eye(size, dtype=bool)
    return np.unique(np.array([*turned, *single]), axis=0)


def _sum_inverses(squares: FloatArray) -> float:
    """Compute the trace of the inverse of the information from squared coefficients, up to a factor."""
    return float((1 / np.maximum(squares.sum(axis=0), 1e-9)).sum())


MAX_ESTIMATION_COLUMNS = 300_000
"""Extreme columns up to which they are listed: 18 letters under LDP have 262,142."""

MAX_RELAXED_LETTERS, MAX_MOMENT_LETTERS = 40, 400
"""Letters up to which a design is searched without a list, and bounded by a relaxation with all products of
two rows; and those of columns between two ends, where the second moments of the letters are enough."""


@dataclass(frozen=True, eq=False)
class DesignColumns:
    """The extreme columns of mean one of a requirement, and the constant column.

    Attributes:
        exact: (N, K) the columns.
        inner: (N, K) the same a little inside of the requirement, so that rounding does not break it.
        searches: what finds others, where not every extreme column is among them.
        cones: of all columns, where not every extreme one is among them.
    """

    exact: FloatArray
    inner: FloatArray
    searches: tuple[ColumnSearch, ...] = ()
    cones: tuple[EstimationCone, ...] = ()

    @property
    def is_complete(self) -> bool:
        """Return whether all extreme columns are included."""
        return not self.searches


def build_design_columns(prior: Prior, privacy: Requirement) -> DesignColumns:
    """Enumerate the extreme columns of a requirement, or some of them where there are too many.

    Raises:
        PrivacyError: the requirement does not bound each column separately.
        ProgramError: there are too many; the message states how many can be listed.
    """
    p = prior.pmf
    purpose = "designs for estimation"
    allowed = privacy.require_extreme_columns(prior, purpose)
    batches: Sequence[ColumnBatch] | None = None
    if prior.size == 1:
        batches = []
    elif isinstance(allowed, ColumnCone) and allowed.relaxed and allowed.member_cube:
        # of a curved cone on 3 letters 256 columns are near enough, on 4 letters 1,024; on 5 letters 4,096
        # leave a gap of about 0.1 %
        most = min(4 ** (prior.size + 1), 8_000)
        batches = [DenseBatch(allowed.list_cut_columns(p, most), True)]
    elif isinstance(allowed, ColumnCone | RatioBounds):
        entries = allowed.extreme_columns(p, MAX_ESTIMATION_COLUMNS)
        if entries is not None and entries.shape[1] <= MAX_ESTIMATION_COLUMNS:
            batches = [DenseBatch(entries, isinstance(allowed, ColumnCone))]
    else:
        batches = list_vertices(p, allowed, MAX_ESTIMATION_COLUMNS)
    if batches is not None:
        return DesignColumns(*prepend_constant(p, batches))
    cones = build_column_cones(p, allowed) if prior.size <= MAX_MOMENT_LETTERS else None
    # with two ends per letter the second moments bound the error without all products
    between = (
        cones is not None
        and len(cones) == 1
        and cones[0].has_two_ends
        and not isinstance(allowed, ColumnCone)
    )
    if cones is None or not (between or prior.size <= MAX_RELAXED_LETTERS):
        raise ProgramError(
            f"under {privacy} there are more extreme columns on {prior.size} letters than the "
            f"{MAX_ESTIMATION_COLUMNS:,} that a design for estimation lists. Without a list it takes up to "
            f"{MAX_MOMENT_LETTERS} under PML, LDP and LIP, and {MAX_RELAXED_LETTERS} under others, of "
            "sets of priors those with few vertices and l1 balls inside the simplex: take one of these"
        )
    searches: tuple[ColumnSearch, ...]
    if isinstance(allowed, ColumnCone | RatioBounds):
        searches = (LPColumnSearch(cones[0], isinstance(allowed, ColumnCone)),)
    else:
        searches = tuple(
            BoxColumnSearch(p, one) if isinstance(one, BoxFamily) else TwoValueSearch(p, one)
            for one in allowed
        )
    batches = [search.to_batch(search.start_columns) for search in searches]
    return DesignColumns(*prepend_constant(p, batches), searches, cones)


def prepend_constant(
    p: FloatArray, batches: Sequence[ColumnBatch]
) -> tuple[FloatArray, FloatArray]:
    """Prepend the constant column to columns of mean one, and pull these slightly into the interior."""
    constant = np.ones((len(p), 1))
    exact = [batch.build_lifts(p, 0.0) for batch in batches]
    inner = [batch.build_lifts(p, FACTOR_MARGIN_RTOL) for batch in batches]
    return np.hstack([constant, *exact]), np.hstack([constant, *inner])
