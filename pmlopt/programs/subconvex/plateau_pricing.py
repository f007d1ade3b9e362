"""Columns over an l1 ball whose largest entries the adversary can all empty: a bound on their worth."""

from __future__ import annotations

import heapq
from dataclasses import dataclass
from itertools import count
from typing import TypeAlias

import numpy as np

from pmlopt.core.arrays import BoolArray, FloatArray
from pmlopt.programs.subconvex.columns import Kernel
from pmlopt.solvers.clock import FOREVER, Clock

MAX_CELLS = 10_000
"""Cells that one node looks at in all."""

FIRST_CELLS_PER_SIDE = 12
"""Cells a side to start from."""

Interval: TypeAlias = tuple[FloatArray, FloatArray]
"""Lower and upper ends."""


@dataclass(frozen=True)
class Plateau:
    """`h` on a set of mass a below `half`, `b` on a set of mass s - a beside it, 0 elsewhere; mean one.

    Over the l1 ball of radius 2 half around the prior the adversary takes all mass off the h, and what is
    left off the b: `keep h = (s - half) b`, so `b = keep / D` and `h = (s - half) / D` with
    `D = a (s - half) + keep (s - a)`.

    Attributes:
        half: in (0, 1).
        keep: e^-epsilon.
    """

    half: float
    keep: float

    @property
    def empty(self) -> bool:
        """Whether no set of letters but all is large enough."""
        return self.half + self.keep >= 1

    def scale(self, a: FloatArray, s: FloatArray) -> FloatArray:
        """The denominator D(a, s) by which a plateau column is scaled to mean one."""
        return a * (s - self.half) + self.keep * (s - a)


class PlateauSearch:
    """Best-first branch and bound on `mu(lam) - <p rho, lam>` over the plateaus.

    It branches on the letter that is in part in one of the sets; see `_Node` for the bound of one node.

    Args:
        kernel: the prior and phi.
        family: the plateaus.
        multipliers: (N,) rho.
        enough: a bound of this much need not be lowered.

    Attributes:
        nodes: how many were looked at.
    """

    def __init__(self, kernel: Kernel, family: Plateau, multipliers: FloatArray, enough: float) -> None:
        n = len(kernel.p)
        none, every = np.zeros(n, bool), np.ones(n, bool)
        self.nodes = 0
        self._problem = kernel, family, multipliers, enough
        self._order = count()
        self._heap: list[tuple[float, int, _Node]] = []
        self._guesses: list[tuple[BoolArray, BoolArray]] = []
        if not family.empty:
            self._look(_Sets(none, every, none, every), np.inf)

    @property
    def upper(self) -> float:
        """The largest bound of the nodes that are left: no plateau is worth more."""
        return -self._heap[0][0] if self._heap else -np.inf

    @property
    def ended(self) -> bool:
        """Whether the bound is low enough, or as low as it gets."""
        return self.upper <= self._problem[3] or not self._heap[0][2].branches

    def run(self, nodes: int, clock: Clock = FOREVER) -> None:
        """Look at so many nodes more, or until the bound is as low as it need be, or the time is over."""
        until = self.nodes + nodes
        while self.nodes < until and not self.ended and not clock.late:
            below, _, node = heapq.heappop(self._heap)
            for sets in node.branches:
                self._look(sets, -below)

    def guesses(self) -> tuple[BoolArray, BoolArray]:
        """(K, N) and (K, N): smaller sets and what larger ones add, at the nodes since the last call."""
        pairs = np.array(self._guesses, bool).reshape(-1, 2, len(self._problem[0].p))
        self._guesses.clear()
        return pairs[:, 0], pairs[:, 1] & ~pairs[:, 0]

    def _look(self, sets: _Sets, most: float) -> None:
        node = _Node(*self._problem[:3], sets, self._problem[3])
        self.nodes += 1
        self._guesses += node.guesses
        if node.upper > -np.inf:
            heapq.heappush(self._heap, (-min(node.upper, most), next(self._order), node))


@dataclass(frozen=True, eq=False)
class _Sets:
    """What is known of both sets: letters in the larger one, letters that may be; the same of the smaller."""

    inside: BoolArray
    free: BoolArray
    top: BoolArray
    maybe: BoolArray

    def larger(self, letter: int) -> list[_Sets]:
        """With the letter in the larger set, and without it."""
        one = np.arange(len(self.free)) == letter
        return [
            _Sets(self.inside | one, self.free & ~one, self.top, self.maybe),
            _Sets(self.inside, self.free & ~one, self.top, self.maybe & ~one),
        ]

    def smaller(self, letter: int) -> list[_Sets]:
        """With the letter in the smaller set, and without it."""
        one = np.arange(len(self.free)) == letter
        return [
            _Sets(self.inside | one, self.free & ~one, self.top | one, self.maybe & ~one),
            _Sets(self.inside, self.free, self.top, self.maybe & ~one),
        ]


class _Cheapest:
    """G: the cost of the cheapest letters up to a mass, the last one in part; convex."""

    def __init__(self, kernel: Kernel, multipliers: FloatArray, first: BoolArray, free: BoolArray) -> None:
        order = np.flatnonzero(free)
        self.order = order[np.argsort(multipliers[order], kind="stable")]
        costs = kernel.p * multipliers
        self.rates = multipliers[self.order] if len(order) else np.zeros(1)
        self.masses = kernel.p[first].sum() + np.concatenate([[0.0], np.cumsum(kernel.p[self.order])])
        self.costs = costs[first].sum() + np.concatenate([[0.0], np.cumsum(costs[self.order])])

    def at(self, mass: FloatArray) -> FloatArray:
        return np.asarray(np.interp(mass, self.masses, self.costs))

    def place(self, mass: FloatArray) -> FloatArray:
        """The letter, by its place in the order, up to which a mass goes."""
        last = len(self.rates) - 1
        return np.asarray(np.clip(np.searchsorted(self.masses, mass) - 1, 0, last))

    def partial(self, kernel: Kernel, mass: float) -> int:
        """The letter that a mass holds in part; -1 where there is none."""
        if not len(self.order):
            return -1
        place = int(self.place(np.array([mass]))[0])
        share = (self.masses[place + 1] - mass) / kernel.p[self.order[place]]
        return int(self.order[place]) if 1e-9 < share < 1 - 1e-9 else -1

    def up_to(self, mass: float, first: BoolArray) -> list[BoolArray]:
        """The letters that a mass holds, without and with the last of them."""
        place = int(self.place(np.array([mass]))[0])
        sets = [first.copy(), first.copy()]
        sets[0][self.order[:place]] = True
        sets[1][self.order[: place + 1]] = True
        return sets

    def slopes(self, low: FloatArray, high: FloatArray) -> Interval:
        """The slopes on an interval of masses."""
        return self.rates[self.place(low * (1 - 1e-13))], self.rates[self.place(high * (1 + 1e-13))]

    def values(self, low: FloatArray, high: FloatArray) -> Interval:
        """The costs on an interval of masses."""
        return _convex((self.at(low), self.at(high)), self.slopes(low, high), high - low)


class _Node:
    """The plateaus that some knowledge of their sets leaves.

    The cost of the two sets is replaced by that of the cheapest letters up to their masses, G(a) and G(s):
    what is left is the function `a phi(h) + (s - a) phi(b) + (1 - s) phi(0) - (h - b) G(a) - b G(s)` of two
    masses. It is bounded cell by cell, by its value at the centre and intervals that hold its slopes; cells
    whose bound is too large are quartered.

    Attributes:
        upper: the bound.
        branches: the knowledge to go on with; empty where the sets are known.
        guesses: pairs of a smaller and a larger set near to where the bound is reached.
    """

    def __init__(
        self, kernel: Kernel, family: Plateau, multipliers: FloatArray, sets: _Sets, enough: float
    ) -> None:
        self.kernel, self.family = kernel, family
        self.none = kernel.at(0.0)
        self.inner = _Cheapest(kernel, multipliers, sets.top, sets.maybe)
        self.both = _Cheapest(kernel, multipliers, sets.inside, sets.free)
        self.upper = -np.inf
        self.branches: list[_Sets] = []
        self.guesses: list[tuple[BoolArray, BoolArray]] = []
        masses = (
            (float(self.inner.masses[0]), min(family.half, float(self.inner.masses[-1]))),
            (
                max(family.half + family.keep, float(self.both.masses[0])),
                min(1.0, float(self.both.masses[-1])),
            ),
        )
        if all(least <= most * (1 + 1e-12) for least, most in masses):
            self.upper, a, s = self._bound(*masses, enough)
            self.branches = self._branches(sets, a, s)
            small, large = self.inner.up_to(a, sets.top), self.both.up_to(s, sets.inside)
            self.guesses = [(inner, both | inner) for inner in small for both in large]

    def _branches(self, sets: _Sets, a: float, s: float) -> list[_Sets]:
        """On a letter that is in part in a set of these masses, else on the likeliest that is open."""
        letter = self.both.partial(self.kernel, s)
        if letter >= 0:
            return sets.larger(letter)
        letter = self.inner.partial(self.kernel, a)
        if letter >= 0:
            return sets.smaller(letter)
        for open_, split in ((sets.free, sets.larger), (sets.maybe, sets.smaller)):
            if open_.any():
                return split(int(np.where(open_, self.kernel.p, 0.0).argmax()))
        return []

    def _bound(
        self, smaller: tuple[float, float], larger: tuple[float, float], enough: float
    ) -> tuple[float, float, float]:
        """The bound, and the two masses at which the function is largest."""
        wide, high = (max(most - least, 0.0) / FIRST_CELLS_PER_SIDE for least, most in (smaller, larger))
        steps = np.arange(FIRST_CELLS_PER_SIDE)
        a, s = np.meshgrid(smaller[0] + wide * steps, larger[0] + high * steps, indexing="ij")
        a, s = a.ravel(), s.ravel()
        settled, looked, best, where = -np.inf, 0, -np.inf, (smaller[0], larger[0])
        while True:
            values, bounds = self._cells(a, a + wide, s, s + high)
            looked += len(a)
            top = int(values.argmax())
            if values[top] > best:
                best, where = float(values[top]), (float(a[top] + wide / 2), float(s[top] + high / 2))
            target = max(enough, best + 1e-10 * (1 + abs(best)))
            open_ = bounds > target
            settled = max(settled, float(bounds[~open_].max(initial=-np.inf)))
            if not open_.any() or looked + 4 * int(open_.sum()) > MAX_CELLS:
                return max(settled, float(bounds[open_].max(initial=-np.inf))), *where
            wide, high = wide / 2, high / 2
            a, s = (
                np.concatenate([a[open_] + i * wide for i in (0, 1) for _ in (0, 1)]),
                np.concatenate([s[open_] + j * high for _ in (0, 1) for j in (0, 1)]),
            )

    def _cells(
        self, a1: FloatArray, a2: FloatArray, s1: FloatArray, s2: FloatArray
    ) -> tuple[FloatArray, FloatArray]:
        """(K,) values at the centres, and (K,) upper bounds on the cells."""
        keep, half, scale = self.family.keep, self.family.half, self.family.scale
        value = self._at((a1 + a2) / 2, (s1 + s2) / 2)
        small, large = scale(a1, s1), scale(a2, s2)
        inverse = 1 / large**2, 1 / small**2
        b = keep / large, keep / small
        h = (s1 - half) / scale(a2, s1), (s2 - half) / scale(a1, s2)
        rise = s1 - half - keep, s2 - half - keep  # the slope of D in a
        h_a = _minus(_times(_times((s1 - half, s2 - half), rise), inverse))
        h_s = _times((keep * (half - a2), keep * (half - a1)), inverse)
        b_a = _minus(_times((keep * rise[0], keep * rise[1]), inverse))
        b_s = _minus(_times((keep * (a1 + keep), keep * (a2 + keep)), inverse))
        cost_a, cost_s = self.inner.values(a1, a2), self.both.values(s1, s2)
        slope_h, slope_b = self._slopes(h), self._slopes(b)
        phi_h, phi_b = (self._phi(ends, slopes) for ends, slopes in ((h, slope_h), (b, slope_b)))
        by_h = _sum(_times((a1, a2), slope_h), _minus(cost_a))
        by_b = _sum(_times((s1 - a2, s2 - a1), slope_b), cost_a, _minus(cost_s))
        step = np.maximum(h[0] - b[1], 0.0), h[1] - b[0]
        slope_a = _sum(
            phi_h,
            _minus(phi_b),
            _times(by_h, h_a),
            _times(by_b, b_a),
            _minus(_times(step, self.inner.slopes(a1, a2))),
        )
        slope_s = _sum(
            (phi_b[0] - self.none, phi_b[1] - self.none),
            _times(by_h, h_s),
            _times(by_b, b_s),
            _minus(_times(b, self.both.slopes(s1, s2))),
        )
        return value, value + (a2 - a1) / 2 * _size(slope_a) + (s2 - s1) / 2 * _size(slope_s)

    def _at(self, a: FloatArray, s: FloatArray) -> FloatArray:
        phi, scale = self.kernel.phi, self.family.scale(a, s)
        b, h = self.family.keep / scale, (s - self.family.half) / scale
        worth = a * phi(h) + (s - a) * phi(b) + (1 - s) * self.none
        return np.asarray(worth - (h - b) * self.inner.at(a) - b * self.both.at(s))

    def _phi(self, ends: Interval, slopes: Interval) -> Interval:
        """An enclosure of phi of an interval, from its ends and its slopes there."""
        return _convex((self.kernel.phi(ends[0]), self.kernel.phi(ends[1])), slopes, ends[1] - ends[0])

    def _slopes(self, ends: Interval) -> Interval:
        """The slopes of phi on an interval, from chords a little beyond its ends."""
        phi = self.kernel.phi
        low, high = ends[0] * (1 - 1e-4), ends[1] * (1 + 1e-4)
        return (phi(ends[0]) - phi(low)) / (ends[0] - low), (phi(high) - phi(ends[1])) / (high - ends[1])


def _convex(ends: Interval, slopes: Interval, width: FloatArray) -> Interval:
    """What a convex function takes on an interval, from its values and slopes at the ends."""
    left = ends[0] + np.minimum(slopes[0] * width, 0.0)
    right = ends[1] - np.maximum(slopes[1] * width, 0.0)
    return np.maximum(left, right), np.maximum(ends[0], ends[1])


def _sum(*parts: Interval) -> Interval:
    return sum(part[0] for part in parts[1:]) + parts[0][0], sum(part[1] for part in parts[1:]) + parts[0][1]


def _minus(one: Interval) -> Interval:
    return -one[1], -one[0]


def _times(one: Interval, two: Interval) -> Interval:
    products = [x * y for x in one for y in two]
    return np.minimum.reduce(products), np.maximum.reduce(products)


def _size(one: Interval) -> FloatArray:
    return np.asarray(np.maximum(np.abs(one[0]), np.abs(one[1])))
