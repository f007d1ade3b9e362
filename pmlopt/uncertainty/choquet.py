"""Sets of priors given by a 2-monotone lower probability: the least mean is a Choquet integral."""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import Any

import numpy as np

from pmlopt.arrays import FloatArray
from pmlopt.uncertainty.prior_set import Polytope, PriorSet
from pmlopt.uncertainty.support_functions import Piece, best_thetas, gain_at, largest_gain, two_values


@dataclass(frozen=True, eq=False)
class LowerProbability:
    """A lower probability nu of sets of letters, in floats or in integers.

    `nu(A) = max(0, lower(A) - shift, total - upper(not A))`, and nu(all letters) = total.

    Attributes:
        lower: (N,).
        shift: a number.
        upper: (N,), or None where only nu(all letters) comes from it.
        total: 1, or what integers stand for it.
    """

    lower: Any
    shift: Any
    upper: Any
    total: Any

    def of_first(self, order: Any) -> Any:
        """(N, M) the lower probabilities of the first k letters of each order, for k = 1, ..., N."""
        nu = np.maximum(np.cumsum(self.lower[order], axis=0) - self.shift, 0 * self.total)
        if self.upper is not None:
            after = np.cumsum(self.upper[order][::-1], axis=0)[::-1]
            nu[:-1] = np.maximum(nu[:-1], self.total - after[1:])
        nu[-1] = self.total
        return nu

    def of(self, sets: Any) -> FloatArray:
        """(K,) the lower probabilities of (K, N) sets of letters."""
        nu = np.maximum(sets @ self.lower - self.shift, 0.0)
        if self.upper is not None:
            nu = np.maximum(nu, self.total - ~sets @ self.upper)
        return np.asarray(np.where(sets.all(axis=1), self.total, nu))


class ChoquetSet(PriorSet):
    """The set of priors `{Q: Q(A) >= nu(A) for all A}` of a 2-monotone lower probability nu.

    With the letters in descending order of v, the worst prior gives the k-th the mass
    `nu(first k) - nu(first k - 1)`, and w(v) is its mean: the adversary has the least possible mass on
    the largest entries.

    Source: [choquet1954capacities]; [huber1973minimax] (l1 balls); [decampos1994intervals] (boxes).
    """

    @cached_property
    @abstractmethod
    def floats(self) -> LowerProbability:
        """The lower probability in floats, with a total near one."""

    @cached_property
    @abstractmethod
    def integers(self) -> LowerProbability:
        """The lower probability times a positive number, in Python integers without rounding."""

    @property
    def size(self) -> int:
        return len(self.floats.lower)

    @cached_property
    def vacuous(self) -> bool:
        """Whether the set is that of all priors: nu is 0 but on the set of all letters."""
        return bool((self.floats.of(~np.eye(self.size, dtype=bool)) <= 0).all())

    def least_mean(self, matrix: FloatArray) -> FloatArray:
        least, total = self.least_sum(matrix)
        return np.asarray(least / total)

    def least_sum(self, matrix: Any) -> tuple[Any, Any]:
        exact = matrix.dtype == object
        nu = self.integers if exact else self.floats
        order = np.argsort(-matrix, axis=0, kind="stable")
        masses = np.diff(nu.of_first(order), axis=0, prepend=0 * nu.total)
        return (masses * np.take_along_axis(matrix, order, axis=0)).sum(axis=0), nu.total

    def worst_prior(self, column: FloatArray) -> FloatArray:
        order = np.argsort(-column, kind="stable")
        worst = np.empty(len(column))
        worst[order] = np.diff(self.floats.of_first(order[:, None])[:, 0], prepend=0.0)
        return np.asarray(worst / self.floats.total)

    def nearby(self, law: FloatArray) -> Any:
        # Q is in the set iff `sum_x max(lower - Q, 0) <= shift` and Q <= upper: these are nu, set by set
        lower, shift, upper = self._rationals
        q = np.array([Fraction(max(mass, 0.0)) for mass in law.tolist()], dtype=object)
        missing = np.maximum(lower - q, 0)
        if missing.sum() > shift:
            q = q + (1 - shift / missing.sum()) * missing
        q = np.minimum(q, upper)
        for surplus in (np.maximum(q - lower, 0), None):  # what is above `lower` goes first
            if q.sum() > 1:
                surplus = q if surplus is None else surplus
                q = q - min((q.sum() - 1) / (surplus.sum() or 1), 1) * surplus
        if q.sum() < 1:
            q = q + (1 - q.sum()) / (upper - q).sum() * (upper - q)
        return q

    @cached_property
    def _rationals(self) -> tuple[Any, Fraction, Any]:
        """The lower probability's `lower`, `shift` and `upper` over its total, as rationals."""
        nu, n = self.integers, self.size
        total = int(nu.total)
        ends = [nu.lower, np.full(n, total, dtype=object) if nu.upper is None else nu.upper]
        lower, upper = (np.array([Fraction(int(v), total) for v in end], dtype=object) for end in ends)
        return lower, Fraction(int(nu.shift), total), upper

    @property
    def polytope(self) -> Polytope:
        """`Q = lower - taken + given`: at most `shift` is taken in all, and Q stays within 0 and `upper`.

        The first part of z is one; what is taken and given follows. A letter that has more than `shift` can
        give all that is taken.
        """
        nu, n = self.floats, self.size
        lower, shift, eye = nu.lower / nu.total, float(nu.shift / nu.total), np.eye(n)
        taken = eye[lower > 0] if shift > 0 else eye[:0]
        poor = np.flatnonzero(taken @ lower < shift)
        k = len(taken)
        one, balance = np.zeros((1, 1 + k + n)), np.ones((1, 1 + k + n))
        one[0, 0], balance[0, 0], balance[0, 1 : 1 + k] = 1.0, lower.sum() - 1, -1.0
        rows = [one, balance]
        if k:
            rows.append(np.hstack([[-shift], np.ones(k), np.zeros(n)])[None, :])
            rows.append(np.hstack([-(taken @ lower)[poor, None], np.eye(k)[poor], np.zeros((len(poor), n))]))
        if nu.upper is not None:
            rows.append(np.hstack([lower[:, None] - nu.upper[:, None] / nu.total, np.zeros((n, k)), eye]))
        system = np.vstack(rows)
        place = np.arange(len(system))
        parts = np.hstack([lower[:, None], -taken.T, eye])
        return Polytope(parts, system, (place == 0).astype(np.float64), place < 2)

    def relaxation(self, p: FloatArray, gains: FloatArray, keep: float) -> float:
        if self.vacuous:
            return two_values(p, gains, keep)
        return largest_gain(self.pieces, p, gains, keep)

    def thetas(self, p: FloatArray, gains: FloatArray, keep: float) -> FloatArray:
        if self.vacuous or keep >= 1:
            return np.zeros((1, gains.shape[1]))
        return best_thetas(self.pieces, p, gains, keep)

    def proved_gain(self, p: FloatArray, gains: FloatArray, keep: float, theta: FloatArray) -> float:
        if self.vacuous:
            return two_values(p, gains, keep)
        return gain_at(self.pieces, p, gains, keep, theta)

    @property
    def pieces(self) -> tuple[Piece, ...]:
        """The least total of `(a + theta Q)^+` over Q, as the largest of these pieces."""
        nu, n = self.floats, self.size
        lower, shift = nu.lower / nu.total, nu.shift / nu.total
        pieces = [Piece(lower, float(lower.sum()) - shift)]
        if shift > 0:
            pieces.append(Piece(np.zeros(n), 0.0))
        if nu.upper is None:
            pieces.append(Piece(None, 1.0))
        else:
            upper = nu.upper / nu.total
            pieces.append(Piece(upper, 1.0))
        return tuple(pieces)

    def between(self, inner: Any, outer: Any, keep: float) -> FloatArray:
        nu = self.floats
        low, high = nu.of(inner) / nu.total, nu.of(inner | outer) / nu.total
        with np.errstate(divide="ignore", invalid="ignore"):
            share = (keep - low) / (high - low)
        return np.where(high >= keep, share, np.nan)
