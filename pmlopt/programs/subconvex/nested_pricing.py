"""Pricing of columns over a set of priors where they are too many to list."""

from __future__ import annotations

import numpy as np

from pmlopt.core.arrays import BoolArray, FloatArray, IntArray
from pmlopt.model.uncertainty.columns import Cone
from pmlopt.programs.subconvex.columns import Batch, Explicit, Kernel
from pmlopt.solvers.clock import FOREVER, Clock

LETTER_ORDERS = 6
"""Orders of the letters that are tried in a round."""

MAX_LOCAL_STEPS = 30
"""Steps of the local search from the best column."""

COLUMNS_PER_BATCH = 50
"""Columns near to another that are kept."""


class NestedPricer:
    """Looks for good columns on nested sets of letters; bounds all columns by chords of phi.

    The columns are a heuristic: the first letters of an order in the inner set, the next in the outer, and
    then letter by letter what improves the best of them.
    """

    def __init__(self, kernel: Kernel, cone: Cone) -> None:
        self.kernel, self.cone = kernel, cone
        self.chords = ChordBound(kernel, cone)
        self._rng = np.random.default_rng(0)

    def seeds(self) -> list[Batch]:
        """Columns on the nested sets of random orders: together they cover the letters."""
        n = len(self.kernel.p)
        return [self._explicit(*_joined([_prefixes(self._rng.permutation(n)) for _ in range(3)]))]

    def best(self, multipliers: FloatArray, most: int, clock: Clock = FOREVER) -> tuple[float, Explicit]:
        """The best columns found, and what the best is worth beyond its cost."""
        spread = float(np.abs(multipliers - multipliers.mean()).mean())
        shifts = spread * self._rng.normal(size=(LETTER_ORDERS, len(multipliers)))
        shifts[0] = 0.0
        orders = [np.argsort(multipliers + shift, kind="stable") for shift in shifts]
        inner, outer = _joined([_prefixes(order) for order in orders])
        found = self._climbed(inner, outer, multipliers, most, clock)
        return float(self._values(found, multipliers).max(initial=-np.inf)), found

    def near(self, column: FloatArray, multipliers: FloatArray, clock: Clock = FOREVER) -> Explicit:
        """The best columns that are nested in the order of a column's entries, and on the way from there."""
        return self._climbed(
            *_prefixes(np.argsort(-column, kind="stable")), multipliers, COLUMNS_PER_BATCH, clock
        )

    def _climbed(
        self, inner: BoolArray, outer: BoolArray, multipliers: FloatArray, most: int, clock: Clock
    ) -> Explicit:
        """The best of these columns, and those on the way of the local search from the first of them."""
        parts: list[FloatArray] = []
        last = -np.inf
        for _ in range(MAX_LOCAL_STEPS):
            columns = self._explicit(inner, outer)
            values = self._values(columns, multipliers)
            if not len(values) or (parts and clock.late) or values.max() <= last + 1e-12 * (1 + abs(last)):
                break
            last = float(values.max())
            top = np.argsort(-values, kind="stable")[: most if not parts else 20]
            parts.append(columns[top].entries)
            inner, outer = _neighbours(columns.entries[:, top[0]])
        return Explicit(np.hstack(parts)) if parts else self._explicit(inner[:0], outer[:0])

    def _explicit(self, inner: BoolArray, outer: BoolArray) -> Explicit:
        columns = self.cone.nested(inner, outer)
        return Explicit(columns / (self.kernel.p @ columns))

    def _values(self, columns: Explicit, multipliers: FloatArray) -> FloatArray:
        return self.kernel.worth(columns.entries) - (self.kernel.p * multipliers) @ columns.entries


class ChordBound:
    """An upper bound on `mu(lam) - <p rho, lam>` over a cone: between its ends phi is below its chord.

    It is far from sharp where columns take three values or more.

    Attributes:
        caps: (N,) the largest entry at each letter.
        slopes: (N,) the slopes of the chords: multipliers under which it is a bound in closed form.
    """

    def __init__(self, kernel: Kernel, cone: Cone) -> None:
        self.kernel, self.cone = kernel, cone
        p, phi = kernel.p, kernel.phi
        units = np.diag(1 / p)
        self.caps = np.array([self._most(units[:, [x]]) for x in range(len(p))])
        floors = np.maximum(0.0, [-self._most(-units[:, [x]]) for x in range(len(p))])
        width = np.maximum(self.caps - floors, 0.0)
        wide = width > 1e-9 * (1 + self.caps)
        self.slopes = np.where(wide, (phi(self.caps) - phi(floors)) / np.where(wide, width, 1.0), 0.0)
        ends = np.where(wide, phi(floors), np.maximum(phi(floors), phi(self.caps)))
        self._constant = float(p @ (ends - self.slopes * floors))

    def upper(self, multipliers: FloatArray) -> float:
        """An upper bound on the reduced worth of every nested column, from chords."""
        return self._constant + self._most((self.slopes - multipliers)[:, None])

    def _most(self, gains: FloatArray) -> float:
        return self.cone.priors.relaxation(self.kernel.p, gains, self.cone.keep)


def _prefixes(order: IntArray) -> tuple[BoolArray, BoolArray]:
    """The pairs of sets that are the first i letters of an order and the next j - i, for 0 <= i < j."""
    n = len(order)
    rank = np.empty(n, int)
    rank[order] = np.arange(n)
    first, last = np.triu_indices(n + 1, 1)
    inner = rank < first[:, None]
    return inner, (rank < last[:, None]) & ~inner


def _neighbours(column: FloatArray) -> tuple[BoolArray, BoolArray]:
    """The pairs of sets of a column, and those with one letter elsewhere, or two letters swapped."""
    state = np.where(column >= column.max() * (1 - 1e-9), 2, np.where(column > 0, 1, 0))
    n = len(state)
    moved = np.repeat(state[None, :], 2 * n, axis=0)
    moved[np.arange(n), np.arange(n)] = (state + 1) % 3
    moved[n + np.arange(n), np.arange(n)] = (state + 2) % 3
    one, two = np.nonzero(np.triu(state[:, None] != state[None, :]))
    swapped = np.repeat(state[None, :], len(one), axis=0)
    swapped[np.arange(len(one)), one], swapped[np.arange(len(one)), two] = state[two], state[one]
    every = np.vstack([moved, swapped])
    return every == 2, every == 1


def _joined(pairs: list[tuple[BoolArray, BoolArray]]) -> tuple[BoolArray, BoolArray]:
    inner, outer = zip(*pairs, strict=True)
    return np.vstack(inner), np.vstack(outer)
