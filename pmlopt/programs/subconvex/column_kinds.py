"""Parametric kinds of columns for mutual information: a set of high letters, others at a lower value."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Self

import numpy as np

from pmlopt.core.numbers.arrays import BoolArray, FloatArray, IntArray
from pmlopt.core.numbers.roots import bisect_intervals

BISECTION_STEPS = 50
"""Halvings of the mass at which a concave function is touched by its tangent: to its rounding."""


@dataclass(frozen=True, eq=False)
class ColumnKinds(ABC):
    """A batch of parametric column kinds v that depend on a set S of letters.

    With `D = <p, v>`, a column of mean one is v / D, and `mu(v / D) D` is concave in the mass P = p(S).

    Attributes:
        p: (N,) the prior.
        free: (K, N) the letters that S may have.
        count: (K,) how many it has; None for any number, of some mass at least.
    """

    p: FloatArray
    free: BoolArray
    count: IntArray | None

    def get_known_bounds(self, cutoff: float) -> FloatArray:
        """Return (K,) known bounds on the reduced values, multiplied by the mean D."""
        return np.full(len(self), np.inf)

    @abstractmethod
    def __getitem__(self, chosen: IntArray) -> Self:
        """Select some of the kinds."""

    @abstractmethod
    def compute_means(self, mass: FloatArray) -> FloatArray:
        """Compute (K, ...) the column mean D as a function of the mass of S."""

    @abstractmethod
    def compute_values(self, mass: FloatArray) -> FloatArray:
        """Compute (K, ...) the scaled utility `mu(v / D) D` as a function of the mass of S."""

    @abstractmethod
    def compute_slopes(self, mass: FloatArray) -> FloatArray:
        """Compute (K, ...) the derivative of the scaled utility in the mass of S."""

    @abstractmethod
    def compute_costs(self, prices: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Compute the (K,) fixed cost of a column, and the (K, N) cost of each letter in S."""

    @abstractmethod
    def build_columns(self, sets: FloatArray) -> FloatArray:
        """Build (N, K) columns of mean one from (K, N) sets S."""

    def __len__(self) -> int:
        return len(self.free)

    def find_best_sets(self, gains: FloatArray) -> BoolArray:
        """Find the (K, N) sets with positive or largest gains."""
        if self.count is None:
            return self.free & (gains > 0)
        # letters that are not free sort last, so that the first `count` are free
        order = np.argsort(np.where(self.free, -gains, np.inf), axis=1)
        sets = np.zeros(gains.shape, bool)
        np.put_along_axis(sets, order, np.arange(len(self.p)) < self.count[:, None], axis=1)
        return sets

    @cached_property
    def mass_range(self) -> tuple[FloatArray, FloatArray]:
        """Return the (K,) smallest and largest feasible mass of S."""
        masses = np.broadcast_to(self.p, self.free.shape)
        min_mass = (self.find_best_sets(-masses) * self.p).sum(axis=1)
        max_mass = (self.find_best_sets(masses) * self.p).sum(axis=1)
        return min_mass, max_mass


@dataclass(frozen=True, eq=False)
class MinMassKinds(ColumnKinds):
    """Columns with 1 on a set S, `partial_entry` at one letter, and `low` elsewhere.

    Attributes:
        low: (K,) r.
        partial_entry: (K,) of f, 0 where there is none.
        own: (K,) the mass of f, 0 where there is none.
    """

    low: FloatArray
    partial_entry: FloatArray
    own: FloatArray

    @classmethod
    def build(cls, p: FloatArray, mass: float, exp_neg_epsilon: float) -> MinMassKinds:
        """Build the kinds that cover all extreme PML columns over priors of a minimum mass.

        k letters leave `r = (e^-eps - k mass) / (1 - k mass)` for all others, or the rest to one of them.
        """
        n = len(p)
        count = np.arange(1, n)
        count = count[count * mass < exp_neg_epsilon]
        low = (exp_neg_epsilon - count * mass) / (1 - count * mass)
        none = np.zeros(len(count))
        free = np.ones((len(count), n), bool)
        kinds = cls(p, free, count, low, none, none)
        full = len(count)  # so many letters, and one in part, suffice
        if full >= n - 1 or mass == 0:
            return kinds
        partial_entry = np.append(none, np.full(n, (exp_neg_epsilon - full * mass) / mass))
        free = np.vstack([free, ~np.eye(n, dtype=bool)])
        count = np.append(count, np.full(n, full))
        return cls(p, free, count, np.append(low, np.zeros(n)), partial_entry, np.append(none, p))

    def __getitem__(self, chosen: IntArray) -> MinMassKinds:
        assert self.count is not None
        low = self.low[chosen]
        partial_entry = self.partial_entry[chosen]
        own = self.own[chosen]
        return MinMassKinds(self.p, self.free[chosen], self.count[chosen], low, partial_entry, own)

    def compute_means(self, mass: FloatArray) -> FloatArray:
        """Compute (K, ...) the column mean D as a function of the mass of S."""
        return np.asarray(
            self.low * (1 - self.own) + self.partial_entry * self.own + (1 - self.low) * mass
        )

    def compute_values(self, mass: FloatArray) -> FloatArray:
        """Compute (K, ...) the scaled utility `mu(v / D) D` as a function of the mass of S."""
        mean = self.compute_means(mass)
        rest = (
            _negative_entropy(self.low) * (1 - self.own - mass)
            + _negative_entropy(self.partial_entry) * self.own
        )
        return rest - _negative_entropy(mean)

    def compute_slopes(self, mass: FloatArray) -> FloatArray:
        """Compute (K, ...) the derivative of the scaled utility in the mass of S."""
        return np.asarray(
            -(1 - self.low) * (np.log(self.compute_means(mass)) + 1) - _negative_entropy(self.low)
        )

    def compute_costs(self, prices: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Compute the (K,) fixed cost of a column, and the (K, N) cost of each letter in S."""
        own = np.where(self.free, 0.0, prices).sum(axis=1)
        return self.low * (prices.sum() - own) + self.partial_entry * own, (1 - self.low)[
            :, None
        ] * prices

    def build_columns(self, sets: FloatArray) -> FloatArray:
        """Build (N, K) columns of mean one from (K, N) sets S."""
        v = np.where(self.free, sets + self.low[:, None] * (1 - sets), self.partial_entry[:, None])
        return v.T / (v @ self.p)


@dataclass(frozen=True, eq=False)
class PlateauKinds(ColumnKinds):
    """Plateau columns over an l1 ball: `s >= 1` on a light set A, 1 on a set S and 0 elsewhere.

    With k = e^-eps, the radius 2 half leaves `s = (p(A) + P - half) / k`, and the worth is concave in P where
    `half <= 2 k`: its second derivative is `a / (k^2 s) - (1 + a / k)^2 / D` with a = p(A) and
    `D = (k + a) s + half - a`, which is not positive where `a (half - a) <= s k (k + a)`.

    Attributes:
        own: (K,) p(A).
        min_mass: (K,) the least mass of S.
        max_mass: (K,) the largest.
        limits: (K,) what no column is worth beyond its cost and `cutoff`, times D, as far as it is known.
        exp_neg_epsilon: e^-epsilon.
        half: half of the ball's radius.
        cutoff: what the limits leave out of the worth of a column of mean one.
    """

    own: FloatArray
    min_mass: FloatArray
    max_mass: FloatArray
    limits: FloatArray
    exp_neg_epsilon: float
    half: float
    cutoff: float = 0.0

    @classmethod
    def build(cls, p: FloatArray, exp_neg_epsilon: float, half: float) -> PlateauKinds | None:
        """Build the plateau kinds for all sets A; None where too many or not concave."""
        if half > 2 * exp_neg_epsilon:
            return None
        order = np.flatnonzero(p < half)
        sets = np.zeros((1, len(p)), bool)
        mass = np.zeros(1)
        for letter in order:
            more = np.flatnonzero(mass + p[letter] < half)
            added = sets[more]
            added[:, letter] = True
            sets = np.vstack([sets, added])
            mass = np.append(mass, mass[more] + p[letter])
            # at most 10,000 sets A are enumerated
            if len(sets) > 10_000:
                return None
        # the first set is the empty one, which is no plateau
        own = mass[1:]
        ends = exp_neg_epsilon + half - own, 1 - own
        return cls(p, ~sets[1:], None, own, *ends, np.full(len(own), np.inf), exp_neg_epsilon, half)

    def __getitem__(self, chosen: IntArray) -> PlateauKinds:
        every = {
            name: getattr(self, name)[chosen]
            for name in ("free", "own", "min_mass", "max_mass", "limits")
        }
        return replace(self, **every)

    def keep_profitable(
        self, rho: FloatArray, others: float, cutoff: float, slack: float
    ) -> PlateauKinds:
        """Keep the plateau kinds whose reduced value may be positive, with their mass intervals.

        The column that is constant on the union U of A and S is one of the ball, too, with
        `mu(1_U / p(U)) = -log p(U)`. If it is worth at most `others` beyond its cost, the cost of U is known
        from below, and v is worth at most

            F(P) = mu(v / D) D + p(U) (log p(U) + others) - (s - 1) times the cost of A

        beyond its own. F is concave where `half <= exp_neg_epsilon`: F'' has the sign of
        `half (half - a) - e^-eps (e^-eps + a) s`. (v = 1_U + (s - 1) 1_A)

        Args:
            rho: (N,) what a letter costs, as a share of its mass.
            others: what no column without plateau is worth beyond its cost.
            cutoff: columns whose reduced value is at most this are not wanted: it counts as a cost.
            slack: what rounding may hide, for a column of mean one.
        """
        if self.half > self.exp_neg_epsilon:
            return self
        prices = self.p * (rho + cutoff)
        others = others - cutoff
        cost = np.where(self.free, 0.0, prices).sum(axis=1)

        def compute_slope(mass: FloatArray) -> FloatArray:
            return np.asarray(
                self.compute_slopes(mass)
                + np.log(self.own + mass)
                + 1
                + others
                - cost / self.exp_neg_epsilon
            )

        def compute_reduced_value(mass: FloatArray) -> FloatArray:
            union = self.own + mass
            utility = self.compute_values(mass) + union * (np.log(union) + others)
            return np.asarray(utility - (self._plateau_height(mass) - 1) * cost)

        peak = _find_crossings(self.min_mass, self.max_mass, compute_slope)
        left = _find_crossings(self.min_mass, peak, lambda mass: -compute_reduced_value(mass))
        right = _find_crossings(peak, self.max_mass, compute_reduced_value)
        limits = compute_reduced_value(peak)
        needed = np.flatnonzero(limits > slack * self.compute_means(peak))
        return replace(self, min_mass=left, max_mass=right, limits=limits, cutoff=cutoff)[needed]

    def get_known_bounds(self, cutoff: float) -> FloatArray:
        """Return (K,) known bounds on the reduced values, multiplied by the mean D."""
        change = self.cutoff - cutoff  # for each column of mean one, and so D times as much here
        return self.limits + np.maximum(
            change * self.compute_means(self.min_mass), change * self.compute_means(self.max_mass)
        )

    def _plateau_height(self, mass: FloatArray) -> FloatArray:
        """Compute the plateau's value s as a function of the mass of S."""
        return np.maximum((self.own + mass - self.half) / self.exp_neg_epsilon, 1.0)

    def compute_means(self, mass: FloatArray) -> FloatArray:
        """Compute (K, ...) the column mean D as a function of the mass of S."""
        return self.own * self._plateau_height(mass) + mass

    def compute_values(self, mass: FloatArray) -> FloatArray:
        """Compute (K, ...) the scaled utility `mu(v / D) D` as a function of the mass of S."""
        return self.own * _negative_entropy(self._plateau_height(mass)) - _negative_entropy(
            self.compute_means(mass)
        )

    def compute_slopes(self, mass: FloatArray) -> FloatArray:
        """Compute (K, ...) the derivative of the scaled utility in the mass of S."""
        rate = self.own / self.exp_neg_epsilon
        slope = rate * (np.log(self._plateau_height(mass)) + 1) - (1 + rate) * (
            np.log(self.compute_means(mass)) + 1
        )
        return np.asarray(slope)

    def compute_costs(self, prices: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Compute the (K,) fixed cost of a column, and the (K, N) cost of each letter in S."""
        rate = np.where(self.free, 0.0, prices).sum(axis=1) / self.exp_neg_epsilon
        return (self.own - self.half) * rate, prices + rate[:, None] * self.p

    def build_columns(self, sets: FloatArray) -> FloatArray:
        """Build (N, K) columns of mean one from (K, N) sets S."""
        v = np.where(self.free, sets, self._plateau_height(sets @ self.p)[:, None])
        return v.T / (v @ self.p)

    @cached_property
    def mass_range(self) -> tuple[FloatArray, FloatArray]:
        """Return the (K,) smallest and largest feasible mass of S."""
        return self.min_mass, self.max_mass


def _find_crossings(
    low: FloatArray, high: FloatArray, falling: Callable[[FloatArray], FloatArray]
) -> FloatArray:
    """Find (K,) the zero crossings of decreasing functions by bisection."""
    return np.asarray(
        np.mean(bisect_intervals(lambda at: falling(at) > 0, low, high, BISECTION_STEPS), axis=0)
    )


def _negative_entropy(values: FloatArray) -> FloatArray:
    """Compute `v log v` elementwise, 0 at 0."""
    return np.where(values > 0, values * np.log(np.where(values > 0, values, 1.0)), 0.0)
