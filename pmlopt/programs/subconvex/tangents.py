"""Pricing of mutual information over balls and least masses: every count of high letters, by tangents."""

from __future__ import annotations

import math
import sys
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import ClassVar, Self

import numpy as np

from pmlopt.core.arrays import BoolArray, FloatArray, IntArray, bound_sum_rounding
from pmlopt.core.roots import bisect_intervals
from pmlopt.model.uncertainty.columns import ColumnCone
from pmlopt.programs.subconvex.columns import (
    RAISED_MARGIN_COUNT,
    ColumnPricer,
    DenseBatch,
    PricingResult,
    RelaxedPricing,
)
from pmlopt.solvers.solver_result import NO_DEADLINE, Deadline

BISECTION_STEPS = 50
"""Halvings of the mass at which a concave worth is touched by its tangent: to its rounding."""

MAX_NODES_BY_STAGE = (100, 3_000, 200_000)
"""Partial sets of one kind that are kept at a letter, and when nothing is found; the bound counts all."""

TANGENT_OFFSETS = np.array([0.0, -1.0, -0.5, 0.5, 1.0])
"""Where tangents touch, from the best mass, as a share of the distance at which the budget is spent."""


def get_common_min_mass(cone: ColumnCone) -> float | None:
    """Return the minimum mass of every letter, where the set of priors has no other constraint; else None."""
    if not cone.is_additive:
        return None
    nu = cone.priors.float_probability  # type: ignore[attr-defined]
    return float(nu.lower[0] / nu.total) if np.ptp(nu.lower) == 0 else None


@dataclass(frozen=True, eq=False)
class ColumnKinds(ABC):
    """Kinds of columns v that grow with a set S of some letters.

    With `D = <p, v>`, a column of mean one is v / D, and `mu(v / D) D` is concave in the mass P = p(S).

    Attributes:
        p: (N,) the prior.
        free: (K, N) the letters that S may have.
        count: (K,) how many it has; None for any number, of some mass at least.
    """

    p: FloatArray
    free: BoolArray
    count: IntArray | None

    def get_known_bounds(self, enough: float) -> FloatArray:
        """Return (K,) known bounds on the reduced values of columns, times D."""
        return np.full(len(self), np.inf)

    @abstractmethod
    def __getitem__(self, chosen: IntArray) -> Self:
        """Select some of the kinds."""

    @abstractmethod
    def compute_means(self, mass: FloatArray) -> FloatArray:
        """Compute (K, ...) the mean D at the masses of S."""

    @abstractmethod
    def compute_values(self, mass: FloatArray) -> FloatArray:
        """Compute (K, ...) `mu(v / D) D` at the masses of S."""

    @abstractmethod
    def compute_slopes(self, mass: FloatArray) -> FloatArray:
        """Compute (K, ...) the derivative of the value at the masses of S."""

    @abstractmethod
    def compute_costs(self, prices: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Compute (K,) the cost of v without its set at given prices, and (K, N) what each letter adds."""

    @abstractmethod
    def build_columns(self, sets: FloatArray) -> FloatArray:
        """Build (N, K) columns of mean one, one of each kind, from (K, N) shares of letters in the sets."""

    def __len__(self) -> int:
        return len(self.free)

    def find_best_sets(self, gains: FloatArray) -> BoolArray:
        """Find (K, N) the sets of the largest gains, from (K, N) gains."""
        if self.count is None:
            return np.asarray(self.free & (gains > 0))
        # letters that are not free sort last, so that the first `count` are free
        order = np.argsort(np.where(self.free, -gains, np.inf), axis=1)
        sets = np.zeros(gains.shape, bool)
        np.put_along_axis(sets, order, np.arange(len(self.p)) < self.count[:, None], axis=1)
        return sets

    @cached_property
    def mass_range(self) -> tuple[FloatArray, FloatArray]:
        """Return (K,) the least and the largest mass of the sets."""
        masses = np.broadcast_to(self.p, self.free.shape)
        least, most = (
            (self.find_best_sets(sign * masses) * self.p).sum(axis=1) for sign in (-1, 1)
        )
        return least, most


@dataclass(frozen=True, eq=False)
class MinMassKinds(ColumnKinds):
    """Columns with 1 on a set S of some letters, `share` at one letter f, and `low` elsewhere.

    Attributes:
        low: (K,) r.
        share: (K,) of f, 0 where there is none.
        own: (K,) the mass of f, 0 where there is none.
    """

    low: FloatArray
    share: FloatArray
    own: FloatArray

    @classmethod
    def build(cls, p: FloatArray, mass: float, exp_neg_epsilon: float) -> MinMassKinds:
        """Build the kinds that contain every extreme column of PML over priors of a minimum mass.

        k letters leave `r = (e^-eps - k mass) / (1 - k mass)` for all others, or the rest to one of them.
        """
        n = len(p)
        count = np.arange(1, n)
        count = count[count * mass < exp_neg_epsilon]
        low = (exp_neg_epsilon - count * mass) / (1 - count * mass)
        none, free = np.zeros(len(count)), np.ones((len(count), n), bool)
        kinds = cls(p, free, count, low, none, none)
        full = len(count)  # so many letters, and one in part, are enough by themselves
        if full >= n - 1 or mass == 0:
            return kinds
        share = np.append(none, np.full(n, (exp_neg_epsilon - full * mass) / mass))
        free, count = np.vstack([free, ~np.eye(n, dtype=bool)]), np.append(count, np.full(n, full))
        return cls(p, free, count, np.append(low, np.zeros(n)), share, np.append(none, p))

    def __getitem__(self, chosen: IntArray) -> MinMassKinds:
        assert self.count is not None
        low, share, own = (value[chosen] for value in (self.low, self.share, self.own))
        return MinMassKinds(self.p, self.free[chosen], self.count[chosen], low, share, own)

    def compute_means(self, mass: FloatArray) -> FloatArray:
        return np.asarray(self.low * (1 - self.own) + self.share * self.own + (1 - self.low) * mass)

    def compute_values(self, mass: FloatArray) -> FloatArray:
        mean = self.compute_means(mass)
        rest = (
            _negative_entropy(self.low) * (1 - self.own - mass)
            + _negative_entropy(self.share) * self.own
        )
        return np.asarray(rest - _negative_entropy(mean))

    def compute_slopes(self, mass: FloatArray) -> FloatArray:
        return np.asarray(
            -(1 - self.low) * (np.log(self.compute_means(mass)) + 1) - _negative_entropy(self.low)
        )

    def compute_costs(self, prices: FloatArray) -> tuple[FloatArray, FloatArray]:
        own = np.where(self.free, 0.0, prices).sum(axis=1)
        return self.low * (prices.sum() - own) + self.share * own, (1 - self.low)[:, None] * prices

    def build_columns(self, sets: FloatArray) -> FloatArray:
        v = np.where(self.free, sets + self.low[:, None] * (1 - sets), self.share[:, None])
        return np.asarray(v.T / (v @ self.p))


@dataclass(frozen=True, eq=False)
class PlateauKinds(ColumnKinds):
    """Plateaus over an l1 ball: `s >= 1` on a set A lighter than `half`, 1 on a set S and 0 elsewhere.

    With k = e^-eps, the radius 2 half leaves `s = (p(A) + P - half) / k`, and the worth is concave in P where
    `half <= 2 k`: its second derivative is `a / (k^2 s) - (1 + a / k)^2 / D` with a = p(A) and
    `D = (k + a) s + half - a`, which is not positive where `a (half - a) <= s k (k + a)`.

    Attributes:
        own: (K,) p(A).
        least: (K,) the least mass of S.
        most: (K,) the largest.
        limits: (K,) what no column is worth beyond its cost and `enough`, times D, as far as it is known.
        exp_neg_epsilon: e^-epsilon.
        half: half of the ball's radius.
        enough: what the limits leave out of the worth of a column of mean one.
    """

    own: FloatArray
    least: FloatArray
    most: FloatArray
    limits: FloatArray
    exp_neg_epsilon: float
    half: float
    enough: float = 0.0

    @classmethod
    def build(cls, p: FloatArray, exp_neg_epsilon: float, half: float) -> PlateauKinds | None:
        """Build all plateaus, one for each A; None where they are not concave or too many."""
        if half > 2 * exp_neg_epsilon:
            return None
        order = np.flatnonzero(p < half)
        sets, mass = np.zeros((1, len(p)), bool), np.zeros(1)
        for letter in order:
            more = np.flatnonzero(mass + p[letter] < half)
            added = sets[more]
            added[:, letter] = True
            sets, mass = np.vstack([sets, added]), np.append(mass, mass[more] + p[letter])
            # at most 10,000 sets A are enumerated
            if len(sets) > 10_000:
                return None
        # the first set is the empty one, which is no plateau
        own = mass[1:]
        ends = exp_neg_epsilon + half - own, 1 - own
        return cls(p, ~sets[1:], None, own, *ends, np.full(len(own), np.inf), exp_neg_epsilon, half)

    def __getitem__(self, chosen: IntArray) -> PlateauKinds:
        every = {
            name: getattr(self, name)[chosen] for name in ("free", "own", "least", "most", "limits")
        }
        return replace(self, **every)

    def keep_profitable(
        self, rho: FloatArray, others: float, enough: float, slack: float
    ) -> PlateauKinds:
        """Keep the plateaus of possibly positive reduced value, between the masses where it may be positive.

        The column that is constant on the union U of A and S is one of the ball, too, with
        `mu(1_U / p(U)) = -log p(U)`. If it is worth at most `others` beyond its cost, the cost of U is known
        from below, and v is worth at most

            F(P) = mu(v / D) D + p(U) (log p(U) + others) - (s - 1) times the cost of A

        beyond its own. F is concave where `half <= exp_neg_epsilon`: F'' has the sign of
        `half (half - a) - e^-eps (e^-eps + a) s`. (v = 1_U + (s - 1) 1_A)

        Args:
            rho: (N,) what a letter costs, as a share of its mass.
            others: what no column without plateau is worth beyond its cost.
            enough: columns worth no more than this beyond their cost are of no use: it counts as a cost.
            slack: what rounding may hide, for a column of mean one.
        """
        if self.half > self.exp_neg_epsilon:
            return self
        prices, others = self.p * (rho + enough), others - enough
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
            told = self.compute_values(mass) + union * (np.log(union) + others)
            return np.asarray(told - (self._plateau_height(mass) - 1) * cost)

        peak = _find_crossings(self.least, self.most, compute_slope)
        left = _find_crossings(self.least, peak, lambda mass: -compute_reduced_value(mass))
        right = _find_crossings(peak, self.most, compute_reduced_value)
        limits = compute_reduced_value(peak)
        needed = np.flatnonzero(limits > slack * self.compute_means(peak))
        return replace(self, least=left, most=right, limits=limits, enough=enough)[needed]

    def get_known_bounds(self, enough: float) -> FloatArray:
        change = self.enough - enough  # for each column of mean one, and so D times as much here
        return self.limits + np.maximum(
            change * self.compute_means(self.least), change * self.compute_means(self.most)
        )

    def _plateau_height(self, mass: FloatArray) -> FloatArray:
        return np.maximum((self.own + mass - self.half) / self.exp_neg_epsilon, 1.0)

    def compute_means(self, mass: FloatArray) -> FloatArray:
        return np.asarray(self.own * self._plateau_height(mass) + mass)

    def compute_values(self, mass: FloatArray) -> FloatArray:
        return self.own * _negative_entropy(self._plateau_height(mass)) - _negative_entropy(
            self.compute_means(mass)
        )

    def compute_slopes(self, mass: FloatArray) -> FloatArray:
        rate = self.own / self.exp_neg_epsilon
        told = rate * (np.log(self._plateau_height(mass)) + 1) - (1 + rate) * (
            np.log(self.compute_means(mass)) + 1
        )
        return np.asarray(told)

    def compute_costs(self, prices: FloatArray) -> tuple[FloatArray, FloatArray]:
        rate = np.where(self.free, 0.0, prices).sum(axis=1) / self.exp_neg_epsilon
        return (self.own - self.half) * rate, prices + rate[:, None] * self.p

    def build_columns(self, sets: FloatArray) -> FloatArray:
        v = np.where(self.free, sets, self._plateau_height(sets @ self.p)[:, None])
        return np.asarray(v.T / (v @ self.p))

    @cached_property
    def mass_range(self) -> tuple[FloatArray, FloatArray]:
        return self.least, self.most


def _find_crossings(
    low: FloatArray, high: FloatArray, falling: Callable[[FloatArray], FloatArray]
) -> FloatArray:
    """Find (K,) where decreasing functions fall below zero, or the end at which they are next to it."""
    return np.asarray(
        np.mean(bisect_intervals(lambda at: falling(at) > 0, low, high, BISECTION_STEPS), axis=0)
    )


def _negative_entropy(values: FloatArray) -> FloatArray:
    return np.where(values > 0, values * np.log(np.where(values > 0, values, 1.0)), 0.0)


class TangentPricer(ColumnPricer):
    """The pricing of mutual information over kinds of columns, by tangents.

    For each kind of columns the worth over the set's mass is concave, so that a tangent and the letters of
    the largest gains bound it; the best tangents of all kinds are found by one bisection. Where that is not
    enough, the sets are gone through letter by letter, those whose place is clearest first, and left when
    one of five tangents states so.

    Args:
        kinds: the columns.
        keep: e^-epsilon.
        margins: by how many margins columns are raised that are to have room.
        rounding: how many times the roundings of the terms of a column of mean one its own may be.
    """

    name: ClassVar[str] = "tangents"

    def __init__(
        self, kinds: ColumnKinds, exp_neg_epsilon: float, margins: float, rounding: float = 1.0
    ) -> None:
        self.p, self.kinds, self.exp_neg_epsilon = kinds.p, kinds, exp_neg_epsilon
        self.margins, self.roundings = margins, rounding

    @classmethod
    def for_min_mass(cls, p: FloatArray, mass: float, exp_neg_epsilon: float) -> TangentPricer:
        """Build the pricer of PML over all priors with at least the mass m, in [0, 1/N], on every letter.

        Raising r by a share of 1 - r gives (1 - keep) times as much room; a letter in part gives less.
        """
        kinds = MinMassKinds.build(p, mass, exp_neg_epsilon)
        margins = (
            RAISED_MARGIN_COUNT if kinds.own.any() else exp_neg_epsilon / (1 - exp_neg_epsilon)
        )
        return cls(kinds, exp_neg_epsilon, margins)

    @classmethod
    def for_plateaus(cls, p: FloatArray, exp_neg_epsilon: float, half: float) -> Self | None:
        """Build the pricer of plateaus over an l1 ball of radius 2 half; None if too many or not concave."""
        kinds = PlateauKinds.build(p, exp_neg_epsilon, half)
        if kinds is None:
            return None
        return cls(kinds, exp_neg_epsilon, RAISED_MARGIN_COUNT, 1 + half / exp_neg_epsilon**2)

    def keep_profitable(self, rho: FloatArray, enough: float, others: float) -> Self:
        """Keep the plateaus that may exceed `enough`, where no other column is worth over `others`."""
        assert isinstance(self.kinds, PlateauKinds)
        kinds = self.kinds.keep_profitable(rho, others, enough, self._bound_rounding(rho))
        return type(self)(kinds, self.exp_neg_epsilon, self.margins, self.roundings)

    def bound_roughly(self, rho: FloatArray) -> float:
        """Compute the bound from tangents only."""
        return self.price_relaxed(rho, 0.0, 0.0).upper_bound

    def price_relaxed(
        self, rho: FloatArray, enough: float, digits: float, deadline: Deadline = NO_DEADLINE
    ) -> RelaxedPricing:
        """Compute the bound from tangents only, with the relaxed columns that are near to it."""
        values, sets, shares, _ = self._relax_kinds(rho, 0.0)
        least, most = (self.kinds.compute_means(end) for end in self.kinds.mass_range)
        worths = values / np.where(values > 0, least, most)
        upper = float(worths.max(initial=-math.inf)) + self._bound_rounding(rho)
        mass = shares @ self.p
        # the five best kinds bring a column of the requirement, too
        best = np.argsort(-worths, kind="stable")[:5]
        guesses = DenseBatch(
            self.kinds[best].build_columns(sets[best].astype(float)), True, self.margins
        )
        told = self.kinds.compute_values(mass) / self.kinds.compute_means(mass)
        return RelaxedPricing(upper, self.kinds.build_columns(shares), told, [guesses])

    def price_columns(
        self, rho: FloatArray, most: int, enough: float, deadline: Deadline = NO_DEADLINE
    ) -> PricingResult[DenseBatch]:
        """Find the best columns worth more than `enough`, and a bound; see `ColumnPricer.price_columns`."""
        loose = self.price_relaxed(rho, enough, 0.0).upper_bound
        if enough > -math.inf:
            if loose <= enough:
                return PricingResult(-math.inf, loose, [])
            return self._price_above(rho, most, enough, MAX_NODES_BY_STAGE, deadline)
        # the first threshold is 1e-3 below the relaxed bound
        below = 1e-3
        while True:  # thresholds that fall until there are some
            priced = self._price_above(rho, most, loose - below, MAX_NODES_BY_STAGE, deadline)
            if priced.best_value > -math.inf or deadline.expired:
                return priced
            below *= 10

    def _price_above(
        self, rho: FloatArray, most: int, enough: float, steps: Sequence[int], deadline: Deadline
    ) -> PricingResult[DenseBatch]:
        """Find the columns worth more than `enough`, with more nodes for kinds that have none yet."""
        rounding = self._bound_rounding(rho)
        enough -= rounding
        costs = self.p * (rho + enough)
        values, _, shares, extra = self._relax_kinds(rho, enough)
        left, open_ = np.maximum(values, 0.0), np.flatnonzero(values > 0)
        each = max(1, most // max(1, len(open_)))
        best, found = 0.0, [np.empty((len(self.p), 0))]
        for nodes in steps:
            remaining = open_[left[open_] > 0] if best == 0 else open_[:0]
            for place in remaining[np.argsort(-left[remaining], kind="stable")].tolist():
                # after a hundred kinds with profitable columns the others wait for another round
                if deadline.expired or len(found) > max(most, 100):
                    break
                kind = self.kinds[np.array([place])]
                search = _SetSearch(
                    kind, costs, float(shares[place] @ self.p), float(values[place]), extra[place]
                )
                search.run(nodes)
                left[place] = min(left[place], search.left)
                if len(search.values):
                    best = max(best, float(search.values[0]))
                    kinds = self.kinds[np.full(min(each, len(search.values)), place)]
                    found.append(kinds.build_columns(search.sets[:each].astype(float)))
        upper = max(
            float((left / self.kinds.compute_means(self.kinds.mass_range[0])).max(initial=0.0)),
            best,
        )
        columns = DenseBatch(np.hstack(found), True, self.margins)
        return PricingResult(
            best + enough if best else -math.inf, upper + enough + rounding, [columns]
        )

    def _bound_rounding(self, rho: FloatArray) -> float:
        """Bound what rounding may take off a bound: the terms of value and cost are of D's size."""
        size = float(np.abs(rho).max()) + 4 - 2 * math.log(self.exp_neg_epsilon)
        return bound_sum_rounding(len(self.p), self.roundings * size)

    def list_near_optimal(
        self, rho: FloatArray, most: int, enough: float, deadline: Deadline = NO_DEADLINE
    ) -> Sequence[DenseBatch]:
        """List many columns worth more than `enough`, some of every kind."""
        return self._price_above(rho, most, enough, MAX_NODES_BY_STAGE[1:2], deadline).columns

    def bound_reduced_values(
        self, rho: FloatArray, enough: float, deadline: Deadline = NO_DEADLINE
    ) -> float:
        """Compute an upper bound on every column's `mu(lam) - <p rho, lam>`."""
        return self.price_columns(rho, sys.maxsize, enough, deadline).upper_bound

    def _relax_kinds(
        self, rho: FloatArray, enough: float
    ) -> tuple[FloatArray, BoolArray, FloatArray, FloatArray]:
        """Compute (K,) bounds on `mu(v / D) D` less the cost of v, by kind, and where they are attained.

        Returns:
            The bounds, (K, N) the sets next to them, (K, N) the shares of letters in the relaxed set, and
            (K,) by how much the tangents are steeper than the worth, which they may be where the mass is the
            least.
        """
        p, kinds = self.p, self.kinds
        fixed, each = kinds.compute_costs(p * (rho + enough))
        least, most = kinds.mass_range
        low, high = least - 1, most
        steeper = (
            np.maximum((each / p).max(axis=1, initial=0.0) - kinds.compute_slopes(least), 0.0) + 1
        )
        bounds = np.full(len(kinds), np.inf)

        def evaluate_top(at: FloatArray) -> tuple[BoolArray, FloatArray, FloatArray]:
            mass = np.maximum(at, least)
            slope = kinds.compute_slopes(mass) + steeper * (mass - at)
            gains = slope[:, None] * p - each
            sets = kinds.find_best_sets(gains)
            return (
                sets,
                kinds.compute_values(mass) - slope * mass + (sets * gains).sum(axis=1),
                mass,
            )

        for _ in range(BISECTION_STEPS):
            middle = (low + high) / 2
            sets, values, mass = evaluate_top(middle)
            # every tangent is a bound, wherever it touches: the least one so far is kept
            bounds = np.minimum(bounds, values)
            # a subgradient in the mass: it changes sign at the best tangent
            more = sets @ p > mass
            low, high = np.where(more, middle, low), np.where(more, high, middle)
        (one, *_), (other, *_) = evaluate_top(low), evaluate_top(high)
        span = (one.astype(float) - other) @ p
        middle = (low + high) / 2
        wanted = np.maximum(middle, least) - other @ p
        share = np.where(np.abs(span) > 1e-15, wanted / np.where(span == 0, 1, span), 1.0)
        share = np.clip(share, 0.0, 1.0)[:, None]
        shares = share * one + (1 - share) * other
        bounds = np.minimum(bounds - fixed, kinds.get_known_bounds(enough))
        return bounds, one, shares, steeper * np.maximum(least - middle, 0.0)


class _SetSearch:
    """The search of all sets of one kind that are worth more than they cost, letter by letter.

    Attributes:
        values: (K,) what columns are worth beyond their cost, the best first.
        sets: (K, N).
        left: what no set that was left out is worth, times D; 0 where none was.
    """

    def __init__(
        self, kind: ColumnKinds, costs: FloatArray, mass: float, budget: float, extra: float
    ) -> None:
        self.p, self.kind, self.left = kind.p, kind, 0.0
        self.values, self.sets = np.empty(0), np.zeros((0, len(kind.p)), bool)
        fixed, each = kind.compute_costs(costs)
        self._fixed, self._each, self._least = (
            float(fixed[0]),
            each[0],
            float(kind.mass_range[0][0]),
        )
        self._most = float(kind.mass_range[1][0])
        at = np.array([max(mass, 1e-6)])
        rate = float(
            (kind.compute_slopes(at) - kind.compute_slopes(at * (1 + 1e-6)))[0] / (1e-6 * at[0])
        )
        # tangents are not spread any further for budgets below 1e-14
        spread = math.sqrt(2 * max(budget, 1e-14) / max(rate, 1e-3))
        lowest = max(1e-3 * mass, min(self._least, mass))
        self._touching = np.clip(mass + spread * TANGENT_OFFSETS, lowest, mass + 0.9 * (1 - mass))
        if extra > 0:
            self._touching = np.full(len(TANGENT_OFFSETS), max(mass, self._least))
        self._slopes = kind.compute_slopes(self._touching) + extra * (1 + TANGENT_OFFSETS)

    def run(self, nodes: int) -> None:
        """Extend the best partial sets letter by letter, at most so many, and evaluate complete ones."""
        # a set may be lighter than the least mass by rounding
        lighter = 1e-12
        kind, p = self.kind, self.p
        count = None if kind.count is None else int(kind.count[0])
        gains = self._slopes[:, None] * p - self._each
        free = np.flatnonzero(kind.free[0])
        edge = 0.0
        if count is not None:
            ranked = np.sort(gains[0, free])[::-1]
            edge = (ranked[count - 1] + ranked[min(count, len(ranked) - 1)]) / 2
        order = free[np.argsort(-np.abs(gains[0, free] - edge), kind="stable")]
        sets, size, mass = np.zeros((1, len(p)), bool), np.zeros(1, int), np.zeros(1)
        worth = (kind.compute_values(self._touching) - self._slopes * self._touching - self._fixed)[
            None, :
        ]
        for place, letter in enumerate(order):
            rest = order[place + 1 :]
            size = np.concatenate([size, size + 1])
            mass = np.concatenate([mass, mass + p[letter]])
            worth = np.concatenate([worth, worth + gains[:, letter]])
            if count is None:
                reached = mass + p[rest].sum() >= self._least * (1 - lighter)
                able = np.flatnonzero(reached & (mass <= self._most + lighter))
                filled = np.maximum(gains[:, rest], 0.0).sum(axis=1)
            else:
                missing = count - size
                able = np.flatnonzero((missing >= 0) & (missing <= len(rest)))
                ends = np.zeros((len(gains), len(rest) + 1))
                ends[:, 1:] = np.cumsum(np.sort(gains[:, rest], axis=1)[:, ::-1], axis=1)
                # (A, T): per tangent the largest gains of so many of the letters left
                filled = ends[:, missing[able]].T
            # each of the five tangents is a bound, so that the least of them is
            bounds = (worth[able] + filled).min(axis=1)
            kept = np.flatnonzero(bounds > 0)
            if len(kept) > nodes:
                ranking = np.argsort(-bounds[kept], kind="stable")
                # the best bound left out: what is not searched still counts in the upper bound
                self.left = max(self.left, float(bounds[kept[ranking[nodes]]]))
                kept = np.sort(kept[ranking[:nodes]])
            chosen = able[kept]
            inside = chosen >= len(sets)
            sets = sets[chosen % len(sets)]
            sets[inside, letter] = True
            size, mass, worth = size[chosen], mass[chosen], worth[chosen]
            if not len(sets):
                return
        mass = sets @ p
        values = (kind.compute_values(mass) - self._fixed - sets @ self._each) / kind.compute_means(
            mass
        )
        best = np.argsort(-values, kind="stable")
        best = best[values[best] > 0]
        self.values, self.sets = values[best], sets[best]
