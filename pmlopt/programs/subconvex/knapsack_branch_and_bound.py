"""Branch and bound over the extreme columns of a box, many nodes at a time."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from pmlopt.core.arrays import BoolArray, FloatArray, IntArray
from pmlopt.model.uncertainty.columns import Box, Family
from pmlopt.programs.subconvex.columns import LETTERS_PER_WORD, Columns, Kernel, sets_of
from pmlopt.programs.subconvex.staircase_search import StaircaseBound
from pmlopt.solvers.clock import FOREVER, Clock


def relaxed(kernel: Kernel, family: Family, multipliers: FloatArray) -> float:
    """An upper bound on `mu(lam) - <p rho, lam>` over the columns of a family.

    For a box phi is replaced by its chords, which leaves a fractional knapsack. For staircases the cost of
    a set is replaced by that of the cheapest letters up to its mass, which leaves one variable.
    """
    if family.constant:
        return kernel.at(1.0) - float(kernel.p @ multipliers)
    if isinstance(family, Box):
        base = kernel.at(family.low) - family.low * float(kernel.p @ multipliers)
        return base + float(Knapsack(kernel, family, multipliers).fill(0, np.array([1 - family.low]))[0])
    return StaircaseBound(kernel, family, multipliers).upper


def closed_multipliers(kernel: Kernel, family: Family) -> FloatArray:
    """Multipliers whose relaxed bound needs no solving: the chords of a box, zeros for staircases.

    For mutual information under PML the bound is `sum_x p[x] min(eps, -log p[x])`.
    """
    return kernel.chords(family) if isinstance(family, Box) else np.zeros(len(kernel.p))


class Knapsack:
    """The fractional knapsack of a box under multipliers: letters in the order of what their mass gains."""

    def __init__(self, kernel: Kernel, box: Box, multipliers: FloatArray) -> None:
        p = kernel.p
        gain = kernel.chords(box) - multipliers
        self.order = np.argsort(-gain, kind="stable")
        self.gain = gain[self.order]
        self.room = (p * (kernel.caps(box) - box.low))[self.order]
        self.fits = (p <= box.capacity * (1 + 1e-13))[self.order]
        self._filled = np.concatenate([[0.0], np.cumsum(self.room)])
        self._gained = np.concatenate([[0.0], np.cumsum(self.room * self.gain)])

    def fill(self, start: int, mass: FloatArray) -> FloatArray:
        """(K,) the most that a mass can gain on the letters from `start` on; -inf where they are too few."""
        target = self._filled[start] + mass
        last = np.minimum(np.searchsorted(self._filled, target, side="right") - 1, len(self.gain) - 1)
        value = self._gained[last] - self._gained[start] + (target - self._filled[last]) * self.gain[last]
        return np.where(target <= self._filled[-1] * (1 + 1e-12) + 1e-12, value, -np.inf)


NODES_AT_A_TIME = 200_000
"""Nodes that are worked on at a time."""


@dataclass(frozen=True, eq=False)
class Nodes:
    """Partial columns of one depth: their sets, the mass left, their profit, the letter between, a bound."""

    depth: int
    sets: NDArray[np.uint16]
    rest: FloatArray
    profit: FloatArray
    between: IntArray
    bound: FloatArray

    def taken(self, chosen: BoolArray | IntArray) -> Nodes:
        """The nodes at the given places."""
        return Nodes(
            self.depth,
            self.sets[chosen],
            self.rest[chosen],
            self.profit[chosen],
            self.between[chosen],
            self.bound[chosen],
        )


class BranchAndBound:
    """All columns of a box above a threshold, letter by letter in the order of the knapsack, in chunks.

    Each letter is out, in, or between; a partial column is left when filling it up with the letters to
    come, at the chords of phi, does not reach the threshold. The threshold rises when enough is found.
    """

    def __init__(
        self, kernel: Kernel, box: Box, multipliers: FloatArray, threshold: float, most: int
    ) -> None:
        self.box, self.most, self.kernel = box, most, kernel
        self.knapsack = knapsack = Knapsack(kernel, box, multipliers)
        self.p, self.rho = kernel.p[knapsack.order], multipliers[knapsack.order]
        self.bottom = kernel.at(box.low)
        rise = box.high - box.low
        self.profit = self.p * (kernel.at(box.high) - self.bottom - rise * self.rho)
        self.base = self.bottom - box.low * float(kernel.p @ multipliers)
        self.threshold = threshold
        self.best, self.nodes = -np.inf, 0
        self._asked = threshold
        self._found: list[tuple[FloatArray, NDArray[np.uint16], IntArray]] = []
        sets, none = np.zeros((1, -(-len(self.p) // LETTERS_PER_WORD)), np.uint16), np.full(1, -1)
        self._open = [Nodes(0, sets, np.full(1, 1 - box.low), np.zeros(1), none, np.full(1, np.inf))]

    @property
    def upper(self) -> float:
        """What no column exceeds: the threshold, the best found, or what is open still."""
        return max([self._asked, self.best, *(float(nodes.bound.max()) for nodes in self._open)])

    def run(self, limit: int, clock: Clock = FOREVER) -> None:
        """Search on, until done, or until so many nodes in all, or until the time is over."""
        while self._open and self.nodes < limit and not clock.late:
            nodes = self._open.pop()
            self.nodes += len(nodes.rest)
            nodes = nodes.taken(nodes.bound > self.threshold)
            if nodes.depth == len(self.p) or len(nodes.rest) == 0:
                continue
            children = self._children(nodes)
            order = np.argsort(children.bound)
            chunks = np.array_split(order, max(1, -(-len(order) // NODES_AT_A_TIME)))
            self._open.extend(children.taken(chunk) for chunk in chunks if len(chunk))

    def _children(self, nodes: Nodes) -> Nodes:
        """The next letter out, in, or between; those that can still reach the threshold."""
        depth, rest, profit, between = nodes.depth, nodes.rest, nodes.profit, nodes.between
        room = self.p[depth] * (self.box.high - self.box.low)
        fits = np.flatnonzero(rest >= room * (1 - 1e-13)) if self.knapsack.fits[depth] else np.empty(0, int)
        free = np.flatnonzero(between < 0)
        with_letter = nodes.sets[fits]
        with_letter[:, depth // LETTERS_PER_WORD] |= np.uint16(1 << depth % LETTERS_PER_WORD)
        sets = np.concatenate([nodes.sets, with_letter, nodes.sets[free]])
        rest = np.concatenate([rest, np.maximum(rest[fits] - room, 0.0), rest[free]])
        profit = np.concatenate([profit, profit[fits] + self.profit[depth], profit[free]])
        between = np.concatenate([between, between[fits], np.full(len(free), depth)])
        self._collect(sets, rest, profit, between)
        has = between >= 0
        letter = np.where(has, between, 0)
        share = np.where(has, np.minimum(self.knapsack.room[letter], rest), 0.0)
        filled = self.knapsack.fill(depth + 1, rest - share)
        bound = self.base + profit + share * self.knapsack.gain[letter] + filled
        children = Nodes(depth + 1, sets, rest, profit, between, bound)
        return children.taken(bound > self.threshold)

    def _collect(
        self, sets: NDArray[np.uint16], rest: FloatArray, profit: FloatArray, between: IntArray
    ) -> None:
        """Keep the columns that are complete as they are: the letter between takes what is left."""
        whole = np.flatnonzero((between >= 0) & (rest <= self.knapsack.room[between] * (1 + 1e-13)))
        if len(whole) == 0:
            return
        letter, left = between[whole], rest[whole]
        p = self.p[letter]
        value = (
            self.base
            + profit[whole]
            + p * (self.kernel.phi(self.box.low + left / p) - self.bottom)
            - left * self.rho[letter]
        )
        good = np.flatnonzero(value > self.threshold)
        if len(good) == 0:
            return
        self.best = max(self.best, float(value[good].max()))
        top = good[largest(value[good], self.most)]
        self._found.append((value[top], sets[whole[top]], letter[top]))
        if sum(len(values) for values, _, _ in self._found) >= 2 * self.most:
            kept = self._top()
            self._found = [kept]
            self.threshold = max(self.threshold, float(kept[0].min()))

    def _top(self) -> tuple[FloatArray, NDArray[np.uint16], IntArray]:
        values = np.concatenate([value for value, _, _ in self._found])
        top = largest(values, self.most)
        sets = np.concatenate([item for _, item, _ in self._found])[top]
        return values[top], sets, np.concatenate([letter for _, _, letter in self._found])[top]

    def columns(self) -> list[Columns]:
        """What was found, the best first."""
        if not self._found:
            return []
        _, sets, letter = self._top()
        order = self.knapsack.order
        high: BoolArray = np.zeros((len(sets), len(self.p)), bool)
        high[:, order] = sets_of(sets, len(self.p))
        return [Columns(self.box, high, order[letter])]


def largest(values: FloatArray, most: int) -> IntArray:
    """The places of the largest values, in descending order."""
    chosen = np.argpartition(-values, most - 1)[:most] if len(values) > most else np.arange(len(values))
    return np.asarray(chosen[np.argsort(-values[chosen], kind="stable")])
