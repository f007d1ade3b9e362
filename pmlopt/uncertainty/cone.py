"""The cone of columns that PML over a set of priors allows, and its extreme rays."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from itertools import combinations
from math import comb

import numpy as np

from pmlopt.arrays import BoolArray, FloatArray
from pmlopt.uncertainty.choquet import ChoquetSet
from pmlopt.uncertainty.prior_set import PriorSet
from pmlopt.uncertainty.vertices import Vertices

_FEASIBILITY_TOLERANCE = 1e-12
"""Violation of a bound by a vertex with entries in [0, 1] that is put down to rounding."""


@dataclass(frozen=True, eq=False)
class Cone:
    """The cone of columns `v >= 0` with `keep max v <= w(v)`, w being the least mean over a set of priors.

    Over a lower probability nu an extreme column has a set where it is largest, a larger one outside of
    which it is zero, and one value between, since on the columns in one order w is linear and leaves one row:
    nu(inner) < keep <= nu(inner and outer). Where only lower bounds bind, nu adds up on all sets but the
    full one, and the value between is that of one letter, or of all others. Over K vertices it has at most K
    letters between.

    Attributes:
        priors: the set.
        keep: e^-epsilon, in (0, 1].

    Examples:
        >>> from pmlopt import AllPriors
        >>> Cone(AllPriors(2), 0.5).extreme(np.array([0.5, 0.5]), 100).round(12).T.tolist()
        [[1.0, 1.0], [1.333333333333, 0.666666666667], [0.666666666667, 1.333333333333]]
    """

    priors: PriorSet
    keep: float

    @cached_property
    def count(self) -> int:
        """The number of candidates that `extreme` looks at, of which some are not columns or not extreme."""
        n = self.priors.size
        if isinstance(self.priors, Vertices):
            k = len(self.priors.laws)
            return sum(comb(n, t) * comb(k, t) * 2 ** (n - t) for t in range(min(n, k) + 1))
        return int(2**n + n * 2 ** (n - 1)) if self._additive else int(3**n)

    @property
    def _additive(self) -> bool:
        priors = self.priors
        return isinstance(priors, ChoquetSet) and priors.floats.upper is None and priors.floats.shift == 0

    def extreme(self, p: FloatArray, limit: int) -> FloatArray | None:
        """(N, K) all extreme columns of mean one under p, and possibly others; None above the limit."""
        if self.count > limit:
            return None
        if isinstance(self.priors, Vertices):
            found = _corners(self.priors.laws, self.keep)
        elif self._additive:
            found = self._one_between()
        else:
            digits = np.arange(self.count)[:, None] // 3 ** np.arange(self.priors.size) % 3
            found = self.nested(digits == 2, digits == 1)
        mantissas, exponents = np.frexp(found / found.max(axis=0))
        _, first = np.unique(np.ldexp(np.round(mantissas, 15), exponents), axis=1, return_index=True)
        kept = found[:, np.sort(first)]  # all but repeats, to 15 digits of each entry
        return np.asarray(kept / (p @ kept))

    def _one_between(self) -> FloatArray:
        """(N, K) the columns that are 1 on a set, and between at all other letters or at one, 0 elsewhere."""
        n = self.priors.size
        sets = (np.arange(2**n)[:, None] >> np.arange(n)) & 1 == 1
        single = np.eye(n, dtype=bool)
        parts = [self.nested(sets, ~sets)]
        for letter in range(n):
            inner = sets[~sets[:, letter]]
            parts.append(self.nested(inner, np.broadcast_to(single[letter], inner.shape)))
        return np.hstack(parts)

    def nested(self, inner: BoolArray, outer: BoolArray) -> FloatArray:
        """(N, K') the columns that are 1 on `inner`, as small as allowed on `outer`, and 0 elsewhere.

        Args:
            inner: (K, N).
            outer: (K, N), disjoint from the inner sets; where even 1 on both does not suffice, there is
                no column, and where 1 on the inner set suffices, `outer` is left out.
        """
        share = self.priors.between(inner, outer, self.keep)
        able = np.flatnonzero(~np.isnan(share) & (inner | outer).any(axis=1))
        return np.asarray((inner[able] + np.clip(share[able], 0.0, 1.0)[:, None] * outer[able]).T)


def _corners(laws: FloatArray, keep: float) -> FloatArray:
    """(N, K) the vertices of `0 <= v <= 1, laws v >= keep`, with as many letters between as tight rows."""
    count, n = laws.shape
    found = []
    for free in range(min(n, count) + 1):
        ones = np.arange(2 ** (n - free))[:, None] >> np.arange(n - free) & 1
        for letters in combinations(range(n), free):
            rest = np.setdiff1d(np.arange(n), letters)
            have = ones @ laws[:, rest].T
            for tight in combinations(range(count), free):
                between = _solved(laws[np.ix_(tight, letters)], (keep - have[:, tight]).T).T
                met = have + between @ laws[:, letters].T >= keep - _FEASIBILITY_TOLERANCE
                inside = (between >= -_FEASIBILITY_TOLERANCE) & (between <= 1 + _FEASIBILITY_TOLERANCE)
                able = met.all(axis=1) & inside.all(axis=1)
                columns = np.zeros((n, int(able.sum())))
                columns[rest], columns[list(letters)] = ones[able].T, np.clip(between[able], 0.0, 1.0).T
                found.append(columns)
    columns = np.hstack(found)
    return columns[:, columns.max(axis=0) > 0]


def _solved(square: FloatArray, right: FloatArray) -> FloatArray:
    """(K, M) the solutions of K linear equations, with unknowns scaled to one unit; NaN where singular."""
    units, none = square.max(axis=0, initial=0.0), np.full(right.shape, np.nan)
    if not units.all():
        return none
    try:
        with np.errstate(over="ignore", invalid="ignore"):
            found = np.linalg.solve(square / units, right) / units[:, None]
    except np.linalg.LinAlgError:
        return none
    return np.where(np.isfinite(found), found, none)
