"""The columns of mean one that a requirement allows: parametric families, and cones with extreme rays."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from itertools import combinations
from math import comb
from typing import TypeAlias

import numpy as np

from pmlopt.core.numbers.arrays import BoolArray, FloatArray
from pmlopt.model.uncertainty.cut_polytopes import CutCube, cut_cube
from pmlopt.model.uncertainty.prior_set import PriorSet, require_form
from pmlopt.model.uncertainty.vertices import build_member_hull

TIE_ATOL = 1e-13
"""Mass by which the letter between the two values may be off one of them and count as at it, by rounding."""

MAX_CUT_VERTICES = 20_000
"""Vertices of a cut cube up to which columns over some priors of a set are listed."""

MAX_RELEVANT_LEVEL = 230.0
"""Level in nats from which on e^-level, 1e-100, counts as zero next to one."""


@dataclass(frozen=True)
class BoxFamily:
    """The columns of mean one with entrywise bounds: `low <= lam <= high` and `<p, lam> = 1`.

    An extreme column solves a fractional knapsack: it is high on a set S, between at one letter f at most,
    and low elsewhere. The columns of PML have low = 0 and high = e^eps, those of LIP low = e^-lower.

    Source: [grosse2024extremal, Lemma 1], the polytope of PML.

    Examples:
        >>> BoxFamily(0.0, 2.0).max_mass
        0.5
    """

    low: float
    high: float

    @property
    def max_mass(self) -> float:
        """Return the largest mass of letters at the upper bound `high`."""
        return (1 - self.low) / (self.high - self.low) if self.high > 1 > self.low else 1.0

    @property
    def is_constant_only(self) -> bool:
        """Return whether the bounds allow only the constant column."""
        return self.high <= 1 or self.low >= 1

    def compute_values(
        self, mass: FloatArray, between: FloatArray
    ) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Compute the values (low, step, extra) of mean-one columns from the masses of high set and letter f.

        Args:
            mass: (K,) the masses p(S).
            between: (K,) the masses p(f), 0 where there is no f; the column is then scaled.
        """
        # mean one: low + step p(S) + extra p(f) = 1
        low = np.full(mass.shape, self.low)
        step = np.full(mass.shape, self.high - self.low)
        rest = 1 - self.low - step * mass
        has = between > 0
        extra = np.divide(rest, between, out=np.zeros(mass.shape), where=has)
        # without a letter between, the step itself must make the mean one, so it is rescaled
        full = ~has & (mass > 0)
        return low, np.where(full, (1 - self.low) / np.where(full, mass, 1.0), step), extra

    def tightened_by(self, fraction: float) -> BoxFamily:
        """Return the family with both bounds tightened by a fraction."""
        return BoxFamily(min(1.0, self.low * (1 + fraction)), max(1.0, self.high * (1 - fraction)))


@dataclass(frozen=True)
class StaircaseFamily:
    """The columns of mean one with bounded ratio of entries: `m <= lam <= base + slope m`.

    An extreme column takes two values, the upper one on a set S. The columns of LDP have base = 0 and
    slope = e^eps. Those of the l1 ball [grosse2025empirical, Proposition 2] that are nowhere zero have
    `base = e^eps / (1 + beta e^eps / 2)` and `slope = base beta / 2`.

    Source: [kairouz2016extremal, Theorem 2] (staircase mechanisms).
    """

    base: float
    slope: float

    @property
    def max_mass(self) -> float:
        """Return the mass of S below which the lower value m is positive."""
        return 1 / self.base if self.base > 1 else 1.0

    @property
    def is_constant_only(self) -> bool:
        """Return whether the bounds allow only the constant column."""
        return self.base + self.slope <= 1

    def lower_values(self, mass: FloatArray) -> FloatArray:
        """Compute the (K,) lower values m of extreme columns from the masses p(S)."""
        return (1 - self.base * mass) / (1 - mass + self.slope * mass)

    def compute_values(
        self, mass: FloatArray, between: FloatArray
    ) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Compute lower value and step of columns of mean one; see `BoxFamily.compute_values`."""
        low = self.lower_values(mass)
        return low, self.base + (self.slope - 1) * low, np.zeros(mass.shape)

    def tightened_by(self, fraction: float) -> StaircaseFamily:
        """Return the family with the upper bound tightened by a fraction."""
        # nothing is stricter than the constant column, which every requirement must allow
        if self.is_constant_only:
            return self
        # base + slope stays at least 1, the value at which the constant column is feasible
        shrunk = max(1 / (self.base + self.slope), 1 - fraction)
        return StaircaseFamily(self.base * shrunk, self.slope * shrunk)


Family: TypeAlias = BoxFamily | StaircaseFamily


@dataclass(frozen=True, eq=False)
class ColumnCone:
    """The cone of columns `v >= 0` with `e^-eps max v <= w(v)`, w being the least mean over a set of priors.

    Over a lower probability nu an extreme column has a set where it is largest, a larger one outside of
    which it is zero, and one value between, since on the columns in one order w is linear and leaves one row:
    nu(inner) < e^-eps <= nu(inner and outer). Where only lower bounds bind, nu adds up on all sets but the
    full one, and the value between is that of one letter, or of all others. Over K vertices it has at most K
    letters between.

    Attributes:
        priors: the set.
        exp_neg_epsilon: e^-epsilon, in (0, 1].
        relaxed: the set of priors of which `priors` has some only, so that the cone is larger than that of
            the set; None where it has all.

    Examples:
        >>> from pmlopt import AllPriors
        >>> ColumnCone(AllPriors(2), 0.5).extreme_columns(np.array([0.5, 0.5]), 100).round(12).T.tolist()
        [[1.0, 1.0], [1.333333333333, 0.666666666667], [0.666666666667, 1.333333333333]]
    """

    priors: PriorSet
    exp_neg_epsilon: float
    relaxed: PriorSet | None = None

    @classmethod
    def from_members(
        cls, priors: PriorSet, exp_neg_epsilon: float, laws: FloatArray | None = None
    ) -> ColumnCone:
        """Build the cone for finitely many priors of a set, an outer approximation."""
        return cls(build_member_hull(priors, laws), exp_neg_epsilon, priors)

    @cached_property
    def candidate_count(self) -> int:
        """Return the number of candidates that `extreme_columns` looks at, of which some are not columns
        or not extreme.
        """
        n = self.priors.size
        laws = self.priors.list_vertices()
        if laws is not None:
            k = len(laws)
            return sum(comb(n, t) * comb(k, t) * 2 ** (n - t) for t in range(min(n, k) + 1))
        return int(2**n + n * 2 ** (n - 1)) if self.is_additive else int(3**n)

    @property
    def is_additive(self) -> bool:
        """Return whether the set has only lower bounds, without upper bounds or a shift."""
        nu = self.priors.float_probability
        return nu is not None and nu.upper is None and bool(nu.shift == 0)

    def extreme_columns(self, p: FloatArray, limit: int) -> FloatArray | None:
        """Enumerate all (N, K) extreme columns of mean one under p; None above a limit."""
        if self.relaxed is not None:
            cut = self.cut_cube(limit)
            return None if cut is None else to_mean_one(p, cut.vertices.T)
        if self.candidate_count > limit:
            return None
        laws = self.priors.list_vertices()
        if laws is not None:
            found = _list_vertices(laws, self.exp_neg_epsilon)
        elif self.is_additive:
            found = self._list_single_between()
        else:
            digits = (
                np.arange(self.candidate_count)[:, None] // 3 ** np.arange(self.priors.size) % 3
            )
            found = self.list_nested(digits == 2, digits == 1)
        # digits relative to each entry: rounding at a fixed place would merge entries near 0
        mantissas, exponents = np.frexp(found / found.max(axis=0))
        _, first = np.unique(
            np.ldexp(np.round(mantissas, 15), exponents), axis=1, return_index=True
        )
        kept = found[:, np.sort(first)]  # all but repeats, to 15 digits of each entry
        return kept / (p @ kept)

    @cached_property
    def member_cube(self) -> CutCube | None:
        """Return the vertices of `cut_cube` up to a default limit."""
        return self.cut_cube(MAX_CUT_VERTICES)

    def cut_cube(self, limit: int) -> CutCube | None:
        """Enumerate the vertices of [0, 1]^N cut by mean constraints of some priors.

        None past a limit of vertices, which is at most 20,000.
        """
        return cut_cube(self.laws, self.exp_neg_epsilon, min(limit, MAX_CUT_VERTICES))

    @property
    def laws(self) -> FloatArray:
        """Return the (K, N) priors of a cone for some priors of a set."""
        laws = self.priors.list_vertices()
        assert laws is not None
        return laws

    def add_deepest_cuts(
        self, cube: CutCube, columns: FloatArray, limit: int
    ) -> tuple[FloatArray, CutCube, bool]:
        """Cut by the worst priors of (N, K) columns over the whole set, the deepest first.

        Args:
            cube: the vertices for the priors of the cone.
            columns: (N, K), allowed by these priors.
            limit: the number of vertices at which no more cuts come in.

        Returns:
            (L, N) the priors of the cone and the new ones, their vertices, and whether the limit was reached.
        """
        laws = self.laws
        least = self.exp_neg_epsilon
        assert self.relaxed is not None
        found = np.array([self.relaxed.minimizer(column) for column in columns.T])
        depths = least * columns.max(axis=0) - (found.T * columns).sum(axis=0)
        is_new = np.abs(found[:, None, :] - laws).max(axis=2).min(axis=1) > 1e-9
        added = list(laws)
        for k in np.argsort(-depths, kind="stable"):
            if not is_new[k] or np.abs(found[k] - added).max(axis=1).min() <= 1e-8:
                continue
            cut = cube.cut_by(found[k], least)
            if len(cut.vertices) > limit:
                return np.array(added), cube, True
            cube = cut
            added.append(found[k])
        return np.array(added), cube, False

    def list_cut_columns(self, p: FloatArray, limit: int) -> FloatArray:
        """List (N, K) extreme columns of mean one under p that priors of the whole set allow, a few more than
        the whole set does: those of a cone that is cut as deep as the limit on columns lets it.
        """
        cone = self
        cube = self.member_cube
        is_full = False
        assert cube is not None
        assert self.relaxed is not None
        while not is_full:
            laws, cube, is_full = cone.add_deepest_cuts(cube, cube.vertices.T, limit)
            if len(laws) == len(cone.laws):
                break
            cone = ColumnCone.from_members(self.relaxed, self.exp_neg_epsilon, laws)
        return to_mean_one(p, cube.vertices.T)

    def _list_single_between(self) -> FloatArray:
        """List the (N, K) columns with entries 0 and 1 but for one fractional value."""
        n = self.priors.size
        # (2^n, n): the bits of each number are a subset of the letters
        sets = (np.arange(2**n)[:, None] >> np.arange(n)) & 1 == 1
        single = np.eye(n, dtype=bool)
        parts = [self.list_nested(sets, ~sets)]
        for letter in range(n):
            inner = sets[~sets[:, letter]]
            parts.append(self.list_nested(inner, np.broadcast_to(single[letter], inner.shape)))
        return np.hstack(parts)

    def list_nested(self, inner: BoolArray, outer: BoolArray) -> FloatArray:
        """Build the (N, K') columns with 1 on `inner`, the least feasible value on `outer`, and 0 elsewhere.

        Args:
            inner: (K, N).
            outer: (K, N), disjoint from the inner sets; where even 1 on both does not suffice, there is
                no column, and where 1 on the inner set suffices, `outer` is left out.
        """
        # NaN where no value suffices, so that such pairs give no column
        entry = require_form(
            self.priors.max_partial_entry(inner, outer, self.exp_neg_epsilon),
            self.priors,
            "lists of extreme columns",
            "no formula for them",
        )
        able = np.flatnonzero(~np.isnan(entry) & (inner | outer).any(axis=1))
        return (inner[able] + np.clip(entry[able], 0.0, 1.0)[:, None] * outer[able]).T


def to_mean_one(p: FloatArray, columns: FloatArray) -> FloatArray:
    """Scale nonzero (N, K) columns to mean one under p."""
    found = columns[:, columns.max(axis=0) > 0]
    return found / (p @ found)


def _list_vertices(laws: FloatArray, exp_neg_epsilon: float) -> FloatArray:
    """Enumerate the (N, K) vertices of `0 <= v <= 1, laws v >= e^-eps`.

    Each has as many letters with entries between as tight rows.
    """
    # Violation of a bound by a vertex with entries in [0, 1] that is put down to rounding.
    feasibility_tolerance = 1e-12
    count, n = laws.shape
    found = []
    for free in range(min(n, count) + 1):
        ones = np.arange(2 ** (n - free))[:, None] >> np.arange(n - free) & 1
        for letters in combinations(range(n), free):
            rest = np.setdiff1d(np.arange(n), letters)
            # (sets, K): what the letters at 1 give to each row already
            have = ones @ laws[:, rest].T
            for tight in combinations(range(count), free):
                between = _solve_scaled(
                    laws[np.ix_(tight, letters)], (exp_neg_epsilon - have[:, tight]).T
                ).T
                # a basic solution need not be feasible: the rows that are not tight are looked at
                # as well
                met = have + between @ laws[:, letters].T >= exp_neg_epsilon - feasibility_tolerance
                inside = (between >= -feasibility_tolerance) & (
                    between <= 1 + feasibility_tolerance
                )
                able = met.all(axis=1) & inside.all(axis=1)
                columns = np.zeros((n, int(able.sum())))
                columns[rest] = ones[able].T
                columns[list(letters)] = np.clip(between[able], 0.0, 1.0).T
                found.append(columns)
    columns = np.hstack(found)
    return columns[:, columns.max(axis=0) > 0]


def _solve_scaled(square: FloatArray, right: FloatArray) -> FloatArray:
    """Solve K scaled linear systems; NaN where singular."""
    units = square.max(axis=0, initial=0.0)
    none = np.full(right.shape, np.nan)
    # a column of zeros makes the system singular, and the scaling would divide by 0
    if not units.all():
        return none
    try:
        with np.errstate(over="ignore", invalid="ignore"):
            found = np.linalg.solve(square / units, right) / units[:, None]
    except np.linalg.LinAlgError:
        return none
    return np.where(np.isfinite(found), found, none)
