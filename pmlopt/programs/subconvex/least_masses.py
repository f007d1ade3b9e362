"""Pricing of mutual information over balls and least masses: every count of high letters, by tangents."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from pmlopt.core.arrays import BoolArray, FloatArray, IntArray, rounding_of
from pmlopt.model.uncertainty.columns import Box, Cone, Family, Staircase
from pmlopt.programs.subconvex.columns import RAISED_MARGINS, Batch, Explicit, Kernel, Priced, Pricer
from pmlopt.programs.subconvex.search_pricing import SearchPricer
from pmlopt.programs.subconvex.split_pricing import Relaxed, SplitPricer
from pmlopt.solvers.outcome import FOREVER, Clock

BISECTIONS = 50
"""Halvings of the mass at which a concave worth is touched by its tangent: to its rounding."""

NODES = (100, 3_000)
"""Partial sets of one kind that are kept at a letter, and that where nothing is found; those left out still
count in the bound."""

TANGENTS = np.array([0.0, -1.0, -0.5, 0.5, 1.0])
"""Where tangents touch, from the best mass, as a share of the distance at which the budget is spent."""

_FIRST_THRESHOLD = 1e-3
"""By how much less than the relaxed bound the best column is worth, at the first try."""

_LEAST_BUDGET = 1e-14
"""Budget below which tangents are not spread any further."""


def least_mass(cone: Cone) -> float | None:
    """The mass that every letter has at least, where that is all that the set of priors asks for."""
    if not cone.additive:
        return None
    nu = cone.priors.floats  # type: ignore[attr-defined]
    return float(nu.lower[0] / nu.total) if np.ptp(nu.lower) == 0 else None


@dataclass(frozen=True, eq=False)
class Kinds:
    """Kinds of columns v: 1 on a set S of some letters, `share` at one letter f, and `low` elsewhere.

    With `D = <p, v>`, a column of mean one is v / D, and `mu(v / D) D` is concave in the mass P = p(S).

    Attributes:
        count: (K,) the letters of S.
        low: (K,) r.
        letter: (K,) f, or -1.
        share: (K,) of f, 0 where there is none.
        own: (K,) the mass of f, 0 where there is none.
    """

    count: IntArray
    low: FloatArray
    letter: IntArray
    share: FloatArray
    own: FloatArray

    @classmethod
    def over(cls, p: FloatArray, mass: float, keep: float) -> Kinds:
        """Those that hold every extreme column of PML over the priors with a mass on every letter.

        k letters leave `r = (keep - k mass) / (1 - k mass)` for all others, or the rest to one of them.
        """
        n = len(p)
        count = np.arange(1, n)
        count = count[count * mass < keep]
        low = (keep - count * mass) / (1 - count * mass)
        none = np.zeros(len(count))
        kinds = cls(count, low, np.full(len(count), -1), none, none)
        full = len(count)  # so many letters, and one in part, are enough by themselves
        if full >= n - 1 or mass == 0:
            return kinds
        share = np.full(n, (keep - full * mass) / mass)
        single = cls(np.full(n, full), np.zeros(n), np.arange(n), share, p)
        return cls(
            *(
                np.concatenate([a, b])
                for a, b in zip(vars(kinds).values(), vars(single).values(), strict=True)
            )
        )

    def __getitem__(self, chosen: IntArray) -> Kinds:
        return Kinds(*(value[chosen] for value in vars(self).values()))

    def mean(self, mass: FloatArray) -> FloatArray:
        """(K,) D at the masses of S."""
        return np.asarray(self.low * (1 - self.own) + self.share * self.own + (1 - self.low) * mass)

    def worth(self, mass: FloatArray) -> FloatArray:
        """(K,) `mu(v / D) D` at the masses of S."""
        mean = self.mean(mass)
        rest = _entropy(self.low) * (1 - self.own - mass) + _entropy(self.share) * self.own
        return np.asarray(rest - _entropy(mean))

    def slope(self, mass: FloatArray) -> FloatArray:
        """(K,) its derivative there."""
        return np.asarray(-(1 - self.low) * (np.log(self.mean(mass)) + 1) - _entropy(self.low))

    def cost(self, prices: FloatArray) -> FloatArray:
        """(K,) what v costs without its set, at a price for each letter; a letter of the set adds 1 - r."""
        own = np.where(self.letter >= 0, prices[self.letter], 0.0)
        return np.asarray(self.low * (prices.sum() - own) + self.share * own)

    def columns(self, sets: FloatArray, p: FloatArray) -> FloatArray:
        """(N, K) columns of mean one, one of each kind, from (K, N) shares of letters in the sets."""
        v = sets + self.low[:, None] * (1 - sets)
        has = np.flatnonzero(self.letter >= 0)
        v[has, self.letter[has]] = self.share[has]
        return np.asarray(v.T / (v @ p))


def _entropy(values: FloatArray) -> FloatArray:
    return np.where(values > 0, values * np.log(np.where(values > 0, values, 1.0)), 0.0)


class LeastMassPricer:
    """Prices mutual information of PML over all priors with at least some mass on every letter.

    For each kind of columns the worth over the set's mass is concave, so that a tangent and the letters of
    the largest gains bound it; the best tangents of all kinds are found by one bisection. Where that is not
    enough, the sets are gone through letter by letter, those whose place is clearest first, and left when
    one of five tangents says so.

    Args:
        p: (N,) the prior.
        mass: the least mass m of a letter, in [0, 1/N].
        keep: e^-epsilon.
    """

    name: ClassVar[str] = "least-masses"

    def __init__(self, p: FloatArray, mass: float, keep: float) -> None:
        self.p, self.keep, self.kinds = p, keep, Kinds.over(p, mass, keep)
        taken, rows = _taken(self.kinds, len(p)), np.arange(len(self.kinds.count))
        light = np.sort(np.where(taken, np.inf, p), axis=1)
        heavy = -np.sort(np.where(taken, np.inf, -p), axis=1)
        sums = (np.cumsum(np.pad(ranked, ((0, 0), (1, 0))), axis=1) for ranked in (light, heavy))
        self._ends = tuple(one[rows, self.kinds.count] for one in sums)

    def seeds(self) -> list[Batch]:
        """No columns: the relaxed ones come first."""
        return []

    def relaxed(
        self, multipliers: FloatArray, enough: float, digits: float, clock: Clock = FOREVER
    ) -> Relaxed:
        """The bound from tangents alone, with the relaxed columns that are near to it."""
        values, shares = self._relaxed(self.p * multipliers)
        least, most = (self.kinds.mean(end) for end in self._ends)
        upper = float((values / np.where(values > 0, least, most)).max()) + self._rounding(multipliers)
        lifts = self.kinds.columns(shares, self.p)
        mass = shares @ self.p
        return Relaxed(upper, lifts, self.kinds.worth(mass) / self.kinds.mean(mass), [])

    def price(
        self, multipliers: FloatArray, most: int, enough: float, clock: Clock = FOREVER
    ) -> Priced[Explicit]:
        """The best columns worth more than `enough`, and a bound; see `Pricer.price`."""
        if enough == -math.inf:
            return self._best(multipliers, most, clock)
        loose = self.relaxed(multipliers, enough, 0.0).upper
        if loose <= enough:
            return Priced(-math.inf, loose, [])
        for nodes in NODES:
            priced, whole = self._above(multipliers, most, enough, nodes, clock)
            if whole or priced.best > enough:
                break
        return priced

    def _above(
        self, multipliers: FloatArray, most: int, enough: float, nodes: int, clock: Clock
    ) -> tuple[Priced[Explicit], bool]:
        """The columns worth more than `enough` that so many nodes find, and whether nothing was left out."""
        rounding = self._rounding(multipliers)
        enough -= rounding
        costs = self.p * (multipliers + enough)
        values, shares = self._relaxed(costs)
        open_ = np.flatnonzero(values > 0)
        each = max(1, most // max(1, len(open_)))
        best, upper, whole, found = -math.inf, 0.0, True, []
        for place in open_.tolist():
            kind, least = self.kinds[np.array([place])], self._ends[0][[place]]
            left = float(values[place])
            if not clock.late:
                search = _Sets(self.p, kind, costs, float(shares[place] @ self.p), left)
                search.run(nodes)
                left = search.left
                if len(search.values):
                    best = max(best, float(search.values[0]))
                    kinds = self.kinds[np.full(min(each, len(search.values)), place)]
                    found.append(kinds.columns(search.sets[:each].astype(float), self.p))
            upper, whole = max(upper, left / float(kind.mean(least)[0])), whole and left == 0
        # raising r by a share of 1 - r gives (1 - keep) times as much room; a letter in part gives less
        margins = RAISED_MARGINS if self.kinds.own.any() else self.keep / (1 - self.keep)
        columns = Explicit(np.hstack([np.empty((len(self.p), 0)), *found]), True, margins)
        upper = max(upper, best) + enough + rounding
        return Priced(best + enough, upper, [columns]), whole

    def _rounding(self, multipliers: FloatArray) -> float:
        """What rounding may take off a bound: the terms of `mu(v / D) D` and of the cost are of D's size."""
        return rounding_of(len(self.p), float(np.abs(multipliers).max()) + 4 - 2 * math.log(self.keep))

    def near(
        self, multipliers: FloatArray, most: int, enough: float, clock: Clock = FOREVER
    ) -> Sequence[Explicit]:
        """Many columns worth more than `enough`, some of every kind."""
        return self._above(multipliers, most, enough, NODES[-1], clock)[0].columns

    def bound(self, multipliers: FloatArray, enough: float, clock: Clock = FOREVER) -> float:
        """An upper bound on every column's `mu(lam) - <p rho, lam>`; see `Pricer.bound`."""
        if enough == -math.inf:
            return self._best(multipliers, 1, clock).upper
        loose = self.relaxed(multipliers, enough, 0.0).upper
        return loose if loose <= enough else self._above(multipliers, 1, enough, NODES[-1], clock)[0].upper

    def _best(self, multipliers: FloatArray, most: int, clock: Clock) -> Priced[Explicit]:
        """The best columns, by thresholds that fall until there are some."""
        upper, below = self.relaxed(multipliers, 0.0, 0.0).upper, _FIRST_THRESHOLD
        while True:
            priced = self.price(multipliers, most, upper - below, clock)
            if priced.best > -math.inf or clock.late:
                return priced
            below *= 10

    def _relaxed(self, costs: FloatArray) -> tuple[FloatArray, FloatArray]:
        """(K,) bounds on `mu(v / D) D` less the cost of v, by kind, and (K, N) the shares in its set."""
        p, kinds = self.p, self.kinds
        taken, rows = _taken(kinds, len(p)), np.arange(len(kinds.count))
        low, high = self._ends
        bounds = np.full(len(rows), np.inf)
        inside = np.arange(len(p)) < kinds.count[:, None]

        def top(mass: FloatArray) -> tuple[FloatArray, FloatArray]:
            slope = kinds.slope(mass)
            gains = slope[:, None] * p - (1 - kinds.low)[:, None] * costs
            order = np.argsort(np.where(taken, np.inf, -gains), axis=1)
            sets = np.zeros(gains.shape)
            np.put_along_axis(sets, order, inside.astype(float), axis=1)
            return sets, kinds.worth(mass) - slope * mass + (sets * np.where(taken, 0.0, gains)).sum(axis=1)

        for _ in range(BISECTIONS):
            mass = (low + high) / 2
            sets, values = top(mass)
            bounds = np.minimum(bounds, values)
            more = sets @ p > mass
            low, high = np.where(more, mass, low), np.where(more, high, mass)
        (one, _), (other, _) = top(low), top(high)
        span = (one - other) @ p
        share = np.where(
            np.abs(span) > 1e-15, ((low + high) / 2 - other @ p) / np.where(span == 0, 1, span), 1.0
        )
        share = np.clip(share, 0.0, 1.0)[:, None]
        return bounds - kinds.cost(costs), share * one + (1 - share) * other


def _taken(kinds: Kinds, size: int) -> BoolArray:
    """(K, N) the letters that are not for the set."""
    return np.asarray(kinds.letter[:, None] == np.arange(size))


class _Sets:
    """All sets of one kind that are worth more than they cost, letter by letter.

    Attributes:
        values: (K,) what columns are worth beyond their cost, the best first.
        sets: (K, N).
        left: what no set that was left out is worth, times D; 0 where none was.
    """

    def __init__(self, p: FloatArray, kind: Kinds, costs: FloatArray, mass: float, budget: float) -> None:
        self.p, self.kind, self.costs, self.left = p, kind, costs, 0.0
        self.values, self.sets = np.empty(0), np.zeros((0, len(p)), bool)
        curvature = (1 - kind.low[0]) ** 2 / kind.mean(np.array([mass]))[0]
        spread = math.sqrt(2 * max(budget, _LEAST_BUDGET) / curvature)
        self._touching = np.clip(mass + spread * TANGENTS, 1e-3 * mass, mass + 0.9 * (1 - mass))

    def run(self, nodes: int) -> None:
        """Go through the letters, with the best so many partial sets; evaluate what is left."""
        kind, count = self.kind, int(self.kind.count[0])
        slope = kind.slope(self._touching)
        gains = slope[:, None] * self.p - (1 - kind.low) * self.costs
        starts = kind.worth(self._touching) - slope * self._touching - kind.cost(self.costs)
        free = np.flatnonzero(np.arange(len(self.p)) != kind.letter[0])
        ranked = np.sort(gains[0, free])[::-1]
        edge = (ranked[count - 1] + ranked[min(count, len(ranked) - 1)]) / 2
        order = free[np.argsort(-np.abs(gains[0, free] - edge), kind="stable")]
        sets, size = np.zeros((1, len(self.p)), bool), np.zeros(1, int)
        worth = starts[None, :]
        for place, letter in enumerate(order):
            rest = order[place + 1 :]
            filled = np.zeros((len(slope), len(rest) + 1))
            filled[:, 1:] = np.cumsum(np.sort(gains[:, rest], axis=1)[:, ::-1], axis=1)
            size = np.concatenate([size, size + 1])
            worth = np.concatenate([worth, worth + gains[:, letter]])
            missing = count - size
            able = np.flatnonzero((missing >= 0) & (missing <= len(rest)))
            bounds = (worth[able] + filled[:, missing[able]].T).min(axis=1)
            kept = np.flatnonzero(bounds > 0)
            if len(kept) > nodes:
                ranking = np.argsort(-bounds[kept], kind="stable")
                self.left = max(self.left, float(bounds[kept[ranking[nodes]]]))
                kept = np.sort(kept[ranking[:nodes]])
            chosen = able[kept]
            inside = chosen >= len(sets)
            sets = sets[chosen % len(sets)]
            sets[inside, letter] = True
            size, worth = size[chosen], worth[chosen]
            if not len(sets):
                return
        mass = sets @ self.p
        spent = kind.cost(self.costs) + (1 - kind.low) * (sets @ self.costs)
        values = (kind.worth(mass) - spent) / kind.mean(mass)
        best = np.argsort(-values, kind="stable")
        best = best[values[best] > 0]
        self.values, self.sets = values[best], sets[best]


SEEDS_PER_LETTER = 4
"""Random columns to start from, for each letter."""

_FIRST_CELLS, _ROUNDS = 64, 60
"""Cells of the interval of c to start from, and how often those that matter are halved."""

_SLACK = 1e-12
"""What the theorem's conditions must have to spare, for the rounding of e^-epsilon."""


def most_information(keep: float, half: float) -> float:
    """What no column of PML over an l1 ball of radius 2 half tells, `-log(keep + half)`; inf where unproved.

    It is proved for `half <= keep` and `3 half + 2 keep <= 2`, keep being e^-epsilon; see Theorem 16 of the
    page of results.

    Examples:
        >>> round(np.exp(-most_information(0.4, 0.1)).item(), 12)
        0.5
        >>> most_information(0.5, 0.49)
        inf
    """
    if half > keep or 3 * half + 2 * keep > 2 - _SLACK:
        return math.inf
    return -math.log(keep + half)


def most_of_ball(families: Sequence[Family]) -> float:
    """The same for the families of columns over a ball, but for plateaus; infinite for others."""
    for family in families:
        if isinstance(family, Staircase) and family.slope < family.base < math.inf:
            box = Box(0.0, family.base)
            if box in families:
                return most_information((1 - family.slope) / family.base, family.slope / family.base)
    return math.inf


def plateau_bound(
    p: FloatArray, keep: float, half: float, multipliers: FloatArray, others: float, enough: float
) -> float:
    """What no plateau is worth beyond its cost in mutual information, from what the other columns are worth.

    A plateau is `c A + (1 - c) B` with A and B the columns that are constant on one of two nested sets, of
    masses `a < half < s < 1`, and zero elsewhere. B is a column of the ball, too, and with `tall = c / a`

        mu(lam) <= (1 - c) mu(B) + c (c + log top),   top = (1 - c + tall half) / (keep + half),
        mu(B) <= log(1 - keep tall / (1 - c)) - log(keep + half):

    so that a plateau is worth little more than its B, or is tall, and then its B is worth less than other
    columns. The largest value over c is bounded cell by cell. (Proof: Theorem 16 of the page of results.)

    Args:
        p: (N,) the prior.
        keep: e^-epsilon.
        half: half of the ball's radius, at most `keep`.
        multipliers: (N,) rho.
        others: what no column without plateau is worth beyond its cost.
        enough: a bound of this much need not be lowered.
    """
    total, light = keep + half, p <= half * (1 + _SLACK)
    if total >= 1 or not light.any():
        return others
    mass = min(half, float(p[light].sum()) * (1 + _SLACK))
    most = -math.log(total) - float(multipliers.min())  # what B is worth at most
    rate = float(multipliers[light].min())
    same = (
        max(0.0, -math.expm1(min(others - most, 0.0))) / keep
    )  # a taller plateau has a B that is worth less

    def bounds(low: FloatArray, high: FloatArray) -> FloatArray:
        with np.errstate(divide="ignore"):
            less = np.log(np.maximum(1 - keep * low / (mass * (1 - low)), 0.0))
        other = np.minimum(others, most + less)
        tall = np.maximum((1 - low) * same, high / mass)
        slope = np.log(np.minimum((1 - low + tall * half) / total, 1 / keep)) - rate
        alone = np.maximum(low * (low + slope), high * (high + slope))
        return np.asarray(np.maximum((1 - low) * other, (1 - high) * other) + alone)

    edges = np.linspace(0.0, mass / (mass + keep), _FIRST_CELLS + 1)
    low, high, reached = edges[:-1], edges[1:], max(others, enough)
    upper = reached
    for _ in range(_ROUNDS):
        found = bounds(low, high)
        reached = max(reached, float(bounds(low, low).max()))
        open_ = found > reached + _SLACK * (1 + abs(reached))
        upper = max(upper, float(found[~open_].max(initial=-np.inf)))
        low, high = low[open_], high[open_]
        if not len(low):
            return upper
        middle = (low + high) / 2
        low, high = np.concatenate([low, middle]), np.concatenate([middle, high])
    return max(upper, float(found.max()))


class BallPricer:
    """Prices columns over an l1 ball around the prior: those without plateau, and what plateaus add.

    Every extreme column is one of a box or of staircases, which have pricers of their own, or a plateau:
    those are looked for among nested sets, and bounded by `plateau_bound` or as relaxed columns.
    """

    name: ClassVar[str] = "ball"

    def __init__(self, exact: Pricer, split: SplitPricer, half: float, information: bool) -> None:
        self.exact, self.split, self.nested = exact, split, split.nested
        self.keep, self.half, self.information = split.nested.cone.keep, half, information
        self.kernel: Kernel = split.kernel

    def seeds(self) -> list[Batch]:
        """Columns to start from."""
        if isinstance(self.exact, SearchPricer):
            return [*self.exact.seeds(SEEDS_PER_LETTER * len(self.kernel.p))]
        return self.nested.seeds()

    def closed(self, multipliers: FloatArray) -> float:
        """A bound on every column from the least multiplier alone; infinite where there is none."""
        if not self.information:
            return math.inf
        return most_information(self.keep, self.half) - float(multipliers.min())

    def price(
        self, multipliers: FloatArray, most: int, enough: float, clock: Clock = FOREVER
    ) -> Priced[Batch]:
        """The best columns of both kinds; see `Pricer.price`."""
        best, found = self.nested.best(multipliers, most, clock)
        priced = self.exact.price(multipliers, most, enough, clock)
        best, upper = max(best, priced.best), math.inf
        if best <= enough:
            upper = max(best, self._with_plateaus(multipliers, priced.upper, enough, clock))
        return Priced(best, upper, [*priced.columns, found])

    def bound(self, multipliers: FloatArray, enough: float, clock: Clock = FOREVER) -> float:
        """The larger of both bounds; see `Pricer.bound`."""
        loose = self.closed(multipliers)
        if loose <= enough:
            return loose
        others = self.exact.bound(multipliers, enough, clock)
        return min(loose, self._with_plateaus(multipliers, others, enough, clock))

    def _with_plateaus(self, multipliers: FloatArray, others: float, enough: float, clock: Clock) -> float:
        upper = math.inf
        if self.information and self.half <= self.keep:
            upper = plateau_bound(self.kernel.p, self.keep, self.half, multipliers, others, enough)
        if upper > max(others, enough):
            upper = min(upper, max(others, self.split.bound(multipliers, max(enough, others), clock)))
        return upper
