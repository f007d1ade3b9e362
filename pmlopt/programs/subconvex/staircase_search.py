"""Upper bounds for staircases: one variable, the mass of the set, by bisection; then branch and bound."""

from __future__ import annotations

import heapq
from itertools import count
from typing import TypeAlias

import numpy as np

from pmlopt.core.arrays import BoolArray, FloatArray
from pmlopt.model.uncertainty.columns import Staircase
from pmlopt.programs.subconvex.columns import Kernel
from pmlopt.solvers.clock import FOREVER, Clock

MAX_STAIRCASE_NODES = 150
"""Nodes of branch and bound in one round of pricing."""

_ROUNDS, _INTERVALS, _SHARE = 40, 20_000, 1e-8


class StaircaseBound:
    """A bound on staircases whose set holds the letters `fixed`, any of `free`, and no others.

    The cost of the free letters is replaced by that of the cheapest ones up to the set's mass, the last one
    in part. What is left depends on the mass s alone: `s phi(m + step) + (1 - s) phi(m) - m <p, rho> -
    step K(s)`, with m and the step falling in s and K convex. The interval of s is bisected; on each
    part every term takes the better of its ends.

    Args:
        enough: a bound of this much need not be lowered.
        digits: how much of the bound may be left to the bisection; at least 1e-8 of the largest worth is.

    Attributes:
        upper: the bound.
        split: the letter that is in the set in part at the best mass found; -1 where none is.
    """

    def __init__(
        self,
        kernel: Kernel,
        family: Staircase,
        multipliers: FloatArray,
        fixed: BoolArray | None = None,
        free: BoolArray | None = None,
        enough: float = -np.inf,
        digits: float = 0.0,
    ) -> None:
        self._digits = digits
        self._phi, self._family = kernel.phi, family
        inside = np.zeros(len(kernel.p), bool) if fixed is None else fixed
        order = np.argsort(multipliers, kind="stable")
        order = order if free is None else order[free[order]]
        costs = kernel.p * multipliers
        self._mass = np.concatenate([[0.0], np.cumsum(kernel.p[order])]) + kernel.p[inside].sum()
        self._cost = np.concatenate([[0.0], np.cumsum(costs[order])]) + costs[inside].sum()
        self._total = float(costs.sum())
        self.upper, best = self._bisect(enough)
        place = int(np.searchsorted(self._mass, best, side="right")) - 1
        partial = (
            place < len(order) and place >= 0 and best - self._mass[place] > 1e-9 * kernel.p[order[place]]
        )
        self.split = int(order[place]) if partial else -1

    def _bisect(self, enough: float) -> tuple[float, float]:
        room = min(self._family.capacity, 1.0)
        edges = np.unique(np.append(self._mass[self._mass < room], min(room, float(self._mass[-1]))))
        if self._mass[0] >= room:
            return -np.inf, 0.0
        if len(edges) == 1:
            return float(self._bounds(np.repeat(edges, 2)[:, None])[0][0]), float(edges[0])
        low, step, _ = self._family.fill(edges, np.zeros(edges.shape))
        worths = edges * self._phi(low + step) + (1 - edges) * self._phi(np.maximum(low, 0.0))
        self._largest = float(np.abs(worths).max())
        ends = np.stack([edges[:-1], edges[1:]])
        best, where = -np.inf, 0.0
        for _ in range(_ROUNDS):
            bounds, values = self._bounds(ends)
            top = np.unravel_index(int(values.argmax()), values.shape)
            if values[top] > best:
                best, where = float(values[top]), float(ends[top])
            slack = max(self._digits, _SHARE * self._largest)
            promising = bounds > max(best + slack, enough)
            if not promising.any():
                return max(best + slack, enough), where
            if promising.sum() > _INTERVALS:
                break
            left, right = ends[:, promising]
            middle = (left + right) / 2
            ends = np.stack([np.append(left, middle), np.append(middle, right)])
        return float(bounds.max()), where

    def _bounds(self, ends: FloatArray) -> tuple[FloatArray, FloatArray]:
        """The bound on each interval of s, and the values at both ends."""
        low, step, _ = self._family.fill(ends, np.zeros(ends.shape))
        low = np.maximum(low, 0.0)
        spent = np.interp(ends, self._mass, self._cost)
        tops, feet = self._phi(low + step), self._phi(low)
        values = ends * tops + (1 - ends) * feet - low * self._total - step * spent
        valley = float(self._mass[int(self._cost.argmin())])
        least = np.where((ends[0] < valley) & (valley < ends[1]), self._cost.min(), spent.min(axis=0))
        bound = (
            (ends * tops.max(axis=0)).max(axis=0)
            + ((1 - ends) * feet.max(axis=0)).max(axis=0)
            - (low * self._total).min(axis=0)
            - (step * least).min(axis=0)
        )
        return bound, values


def staircase_bound(
    kernel: Kernel, family: Staircase, multipliers: FloatArray, enough: float, clock: Clock = FOREVER
) -> float:
    """Best-first branch and bound on the letter that is in the set in part, `MAX_STAIRCASE_NODES` at most.

    A bound of `enough` need not be lowered.
    """
    n, order = len(kernel.p), count()

    def node(fixed: BoolArray, free: BoolArray, digits: float) -> _Node:
        part = StaircaseBound(kernel, family, multipliers, fixed, free, enough, digits)
        return -part.upper, next(order), part.split, digits, fixed, free

    heap = [node(np.zeros(n, bool), np.ones(n, bool), 0.0)]
    for _ in range(MAX_STAIRCASE_NODES):
        upper, _, split, digits, fixed, free = heap[0]
        if -upper <= enough or not free.any() or clock.late:
            break
        heapq.heappop(heap)
        if split < 0 and digits > 0:
            heapq.heappush(heap, node(fixed, free, 0.0))
            continue
        if split < 0:
            split = int(np.flatnonzero(free)[kernel.p[free].argmax()])
        rest, with_letter = free.copy(), fixed.copy()
        rest[split], with_letter[split] = False, True
        coarse = 0.02 * (-upper - enough) if np.isfinite(enough) else 0.0
        for inside in (fixed, with_letter):
            heapq.heappush(heap, node(inside, rest, coarse))
    return -heap[0][0]


_Node: TypeAlias = tuple[float, int, int, float, BoolArray, BoolArray]
