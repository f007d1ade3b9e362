"""Pricing of mutual information over balls and minimum masses, by tangents of the scaled utility."""

from __future__ import annotations

import math
import sys
from collections.abc import Sequence
from typing import ClassVar, Self

import numpy as np

from pmlopt.core.numbers.arrays import BoolArray, FloatArray, IntArray, bound_sum_rounding
from pmlopt.model.uncertainty.columns import ColumnCone
from pmlopt.programs.subconvex.column_kinds import (
    BISECTION_STEPS,
    ColumnKinds,
    MinMassKinds,
    PlateauKinds,
)
from pmlopt.programs.subconvex.columns import (
    MASS_SUM_TOLERANCE,
    RAISED_MARGIN_COUNT,
    ColumnPricer,
    DenseBatch,
    PricingResult,
    RelaxedPricing,
)
from pmlopt.solvers.solver_result import NO_DEADLINE, Deadline

MAX_NODES_BY_STAGE = (100, 3_000, 200_000)
"""Partial sets of one kind that are kept at a letter, and when nothing is found; the bound counts all."""

TANGENT_OFFSETS = np.array([0.0, -1.0, -0.5, 0.5, 1.0])
"""Where tangents touch, from the best mass, as a share of the distance at which the budget is spent."""


def get_common_min_mass(cone: ColumnCone) -> float | None:
    """Return the common minimum mass of all letters, if the set of priors has no other constraint."""
    if not cone.is_additive:
        return None
    nu = cone.priors.float_probability
    return float(nu.lower[0] / nu.total) if np.ptp(nu.lower) == 0 else None


class TangentPricer(ColumnPricer):
    """The pricing of mutual information over parametric column kinds, by tangents.

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
        self.p = kinds.p
        self.kinds = kinds
        self.exp_neg_epsilon = exp_neg_epsilon
        self.margins = margins
        self.roundings = rounding

    @classmethod
    def for_min_mass(cls, p: FloatArray, mass: float, exp_neg_epsilon: float) -> TangentPricer:
        """Build the pricer for priors with a minimum mass m in [0, 1/N] on every letter.

        Raising r by a share of 1 - r gives (1 - keep) times as much room; a letter in part gives less.
        """
        kinds = MinMassKinds.build(p, mass, exp_neg_epsilon)
        margins = (
            RAISED_MARGIN_COUNT if kinds.own.any() else exp_neg_epsilon / (1 - exp_neg_epsilon)
        )
        return cls(kinds, exp_neg_epsilon, margins)

    @classmethod
    def for_plateaus(cls, p: FloatArray, exp_neg_epsilon: float, half: float) -> Self | None:
        """Build the pricer of plateaus over an l1 ball; None where too many or not concave."""
        kinds = PlateauKinds.build(p, exp_neg_epsilon, half)
        if kinds is None:
            return None
        return cls(kinds, exp_neg_epsilon, RAISED_MARGIN_COUNT, 1 + half / exp_neg_epsilon**2)

    def keep_profitable(self, rho: FloatArray, cutoff: float, others: float) -> Self:
        """Keep the plateaus whose reduced value may exceed `cutoff`."""
        assert isinstance(self.kinds, PlateauKinds)
        kinds = self.kinds.keep_profitable(rho, others, cutoff, self._bound_rounding(rho))
        return type(self)(kinds, self.exp_neg_epsilon, self.margins, self.roundings)

    def bound_roughly(self, rho: FloatArray) -> float:
        """Compute the upper bound from tangents only."""
        return self.price_relaxed(rho, 0.0, 0.0).upper_bound

    def price_relaxed(
        self, rho: FloatArray, cutoff: float, digits: float, deadline: Deadline = NO_DEADLINE
    ) -> RelaxedPricing:
        """Compute the tangent bound, with its near-maximising relaxed columns."""
        values, sets, shares, _ = self._relax_kinds(rho, 0.0)
        min_means, max_means = (self.kinds.compute_means(end) for end in self.kinds.mass_range)
        worths = values / np.where(values > 0, min_means, max_means)
        upper = float(worths.max(initial=-math.inf)) + self._bound_rounding(rho)
        mass = shares @ self.p
        # the five best kinds bring a column of the requirement, too
        best = np.argsort(-worths, kind="stable")[:5]
        guesses = DenseBatch(
            self.kinds[best].build_columns(sets[best].astype(float)), True, self.margins
        )
        utilities = self.kinds.compute_values(mass) / self.kinds.compute_means(mass)
        return RelaxedPricing(upper, self.kinds.build_columns(shares), utilities, [guesses])

    def price_columns(
        self, rho: FloatArray, max_columns: int, cutoff: float, deadline: Deadline = NO_DEADLINE
    ) -> PricingResult[DenseBatch]:
        """Find columns with reduced value above `cutoff`, and a bound; see `ColumnPricer.price_columns`."""
        loose = self.price_relaxed(rho, cutoff, 0.0).upper_bound
        if cutoff > -math.inf:
            if loose <= cutoff:
                return PricingResult(-math.inf, loose, [])
            return self._price_above(rho, max_columns, cutoff, MAX_NODES_BY_STAGE, deadline)
        # the first threshold is 1e-3 below the relaxed bound
        below = 1e-3
        while True:  # thresholds that fall until there are some
            priced = self._price_above(
                rho, max_columns, loose - below, MAX_NODES_BY_STAGE, deadline
            )
            if priced.best_value > -math.inf or deadline.expired:
                return priced
            below *= 10

    def _price_above(
        self,
        rho: FloatArray,
        max_columns: int,
        cutoff: float,
        steps: Sequence[int],
        deadline: Deadline,
    ) -> PricingResult[DenseBatch]:
        """Enumerate columns with reduced value above `cutoff`, more deeply for kinds that have none yet."""
        rounding = self._bound_rounding(rho)
        cutoff -= rounding
        costs = self.p * (rho + cutoff)
        values, _, shares, extra = self._relax_kinds(rho, cutoff)
        left = np.maximum(values, 0.0)
        open_ = np.flatnonzero(values > 0)
        each = max(1, max_columns // max(1, len(open_)))
        best = 0.0
        found = [np.empty((len(self.p), 0))]
        for nodes in steps:
            remaining = open_[left[open_] > 0] if best == 0 else open_[:0]
            for place in remaining[np.argsort(-left[remaining], kind="stable")].tolist():
                # after a hundred kinds with profitable columns the others wait for another round
                if deadline.expired or len(found) > max(max_columns, 100):
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
            best + cutoff if best else -math.inf, upper + cutoff + rounding, [columns]
        )

    def _bound_rounding(self, rho: FloatArray) -> float:
        """Bound the rounding error of a bound."""
        size = float(np.abs(rho).max()) + 4 - 2 * math.log(self.exp_neg_epsilon)
        return bound_sum_rounding(len(self.p), self.roundings * size)

    def list_near_optimal(
        self, rho: FloatArray, max_columns: int, cutoff: float, deadline: Deadline = NO_DEADLINE
    ) -> Sequence[DenseBatch]:
        """List many columns with reduced value above `cutoff`, some of every kind."""
        return self._price_above(
            rho, max_columns, cutoff, MAX_NODES_BY_STAGE[1:2], deadline
        ).columns

    def bound_reduced_values(
        self, rho: FloatArray, cutoff: float, deadline: Deadline = NO_DEADLINE
    ) -> float:
        """Compute an upper bound on the reduced value `mu(lam) - <p rho, lam>` of every column."""
        return self.price_columns(rho, sys.maxsize, cutoff, deadline).upper_bound

    def _relax_kinds(
        self, rho: FloatArray, cutoff: float
    ) -> tuple[FloatArray, BoolArray, FloatArray, FloatArray]:
        """Compute the (K,) tangent bounds of each kind, and where they are attained.

        Returns:
            The bounds, (K, N) the sets next to them, (K, N) the shares of letters in the relaxed set, and
            (K,) by how much the tangents are steeper than the worth, which they may be where the mass is the
            least.
        """
        p = self.p
        kinds = self.kinds
        fixed, each = kinds.compute_costs(p * (rho + cutoff))
        min_mass, max_mass = kinds.mass_range
        low = min_mass - 1
        high = max_mass
        steeper = (
            np.maximum((each / p).max(axis=1, initial=0.0) - kinds.compute_slopes(min_mass), 0.0)
            + 1
        )
        bounds = np.full(len(kinds), np.inf)

        def evaluate_top(at: FloatArray) -> tuple[BoolArray, FloatArray, FloatArray]:
            mass = np.maximum(at, min_mass)
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
            low = np.where(more, middle, low)
            high = np.where(more, high, middle)
        (one, *_), (other, *_) = evaluate_top(low), evaluate_top(high)
        span = (one.astype(float) - other) @ p
        middle = (low + high) / 2
        wanted = np.maximum(middle, min_mass) - other @ p
        fraction = np.where(np.abs(span) > 1e-15, wanted / np.where(span == 0, 1, span), 1.0)
        fraction = np.clip(fraction, 0.0, 1.0)[:, None]
        shares = fraction * one + (1 - fraction) * other
        bounds = np.minimum(bounds - fixed, kinds.get_known_bounds(cutoff))
        return bounds, one, shares, steeper * np.maximum(min_mass - middle, 0.0)


class _SetSearch:
    """The branch-and-bound search over sets of one kind, letter by letter.

    Attributes:
        values: (K,) what columns are worth beyond their cost, the best first.
        sets: (K, N).
        left: a bound on the value of the sets that were left out, times D; 0 without any.
    """

    def __init__(
        self, kind: ColumnKinds, costs: FloatArray, mass: float, budget: float, extra: float
    ) -> None:
        self.p = kind.p
        self.kind = kind
        self.left = 0.0
        self.values = np.empty(0)
        self.sets = np.zeros((0, len(kind.p)), bool)
        fixed, each = kind.compute_costs(costs)
        self._fixed = float(fixed[0])
        self._each = each[0]
        self._least = float(kind.mass_range[0][0])
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
        kind = self.kind
        p = self.p
        count = None if kind.count is None else int(kind.count[0])
        gains = self._slopes[:, None] * p - self._each
        order = _order_by_clarity(np.flatnonzero(kind.free[0]), gains[0], count)
        sets = np.zeros((1, len(p)), bool)
        size = np.zeros(1, int)
        mass = np.zeros(1)
        value = (kind.compute_values(self._touching) - self._slopes * self._touching - self._fixed)[
            None, :
        ]
        for place, letter in enumerate(order):
            rest = order[place + 1 :]
            size = np.concatenate([size, size + 1])
            mass = np.concatenate([mass, mass + p[letter]])
            value = np.concatenate([value, value + gains[:, letter]])
            if count is None:
                reached = mass + p[rest].sum() >= self._least * (1 - MASS_SUM_TOLERANCE)
                able = np.flatnonzero(reached & (mass <= self._most + MASS_SUM_TOLERANCE))
                filled = np.maximum(gains[:, rest], 0.0).sum(axis=1)
            else:
                missing = count - size
                able = np.flatnonzero((missing >= 0) & (missing <= len(rest)))
                ends = np.zeros((len(gains), len(rest) + 1))
                ends[:, 1:] = np.cumsum(np.sort(gains[:, rest], axis=1)[:, ::-1], axis=1)
                # (A, T): per tangent the largest gains of so many of the letters left
                filled = ends[:, missing[able]].T
            # each of the five tangents is a bound, so that the least of them is
            bounds = (value[able] + filled).min(axis=1)
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
            size = size[chosen]
            mass = mass[chosen]
            value = value[chosen]
            if not len(sets):
                return
        mass = sets @ p
        values = (kind.compute_values(mass) - self._fixed - sets @ self._each) / kind.compute_means(
            mass
        )
        best = np.argsort(-values, kind="stable")
        best = best[values[best] > 0]
        self.values = values[best]
        self.sets = sets[best]


def _order_by_clarity(letters: IntArray, gains: FloatArray, count: int | None) -> IntArray:
    """Order letters by how clear their place is: how far their gain is from that at the edge of the best set.

    The best set has the letters of positive gains, or so many as `count` of the largest.
    """
    edge = 0.0
    if count is not None:
        ranked = np.sort(gains[letters])[::-1]
        edge = ranked[[count - 1, min(count, len(ranked) - 1)]].mean()
    return letters[np.argsort(-np.abs(gains[letters] - edge), kind="stable")]
