"""Columns of a box that lose least where the prior is whole counts, and the multipliers that price them."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from pmlopt.arrays import BoolArray, FloatArray, IntArray
from pmlopt.programs.subconvex.column_batch import Columns, joined
from pmlopt.programs.subconvex.kernel import Kernel
from pmlopt.programs.subconvex.sets_of_count import random_sets
from pmlopt.uncertainty.column_families import Box

_ROUNDING = 1e-9
"""By how much a total count may be off a whole number by rounding."""

_USED = 1e-9
"""Weights of kinds of columns, and prices as a share of the losses, that are more than rounding."""


@dataclass(frozen=True, eq=False)
class LeastLoss:
    """Columns that lose least.

    Attributes:
        columns: on random sets.
        multipliers: (N,) rho, at which none of them is worth more than the others.
    """

    columns: Columns
    multipliers: FloatArray


def least_loss(
    kernel: Kernel, box: Box, counts: Sequence[int], count: int, rng: np.random.Generator
) -> LeastLoss | None:
    """The kinds of columns that a mechanism needs where every total count is that of many sets.

    A set S at `high` holds a whole number of counts. Where the capacity R, in counts, is none, each column
    has a letter f between, of which a rest `r = R - c(S)` of its c[f] counts is high, so to speak, and it is
    worth less than the chords of phi by a concave function of r. So it loses least at the ends, where
    `c(S) = floor(R)` or `floor(R) - c[f] + 1`. How the 2 N kinds of columns are mixed is a linear program in
    their weights w: `min <loss, w>` over `sum w = 1`, where what a letter has from the columns in which it
    is between, and may have from the others, meets its row. Its multipliers, on top of the slopes of the
    chords, are rho. The columns are random sets of these totals, without the letters whose price is above
    zero, and with those below.

    No column was compared with all others: that rho bounds them is for pricing to say.

    Args:
        kernel: the prior and phi.
        box: the bounds on a column.
        counts: N whole numbers proportional to the prior.
        count: how many columns are wanted.
        rng: where the random sets come from.

    Returns:
        The columns, and rho; None where the letters below the capacity are too few to exceed it, or no sets
        were found.

    Raises:
        ArithmeticError: the linear program does not end at an optimum.
    """
    numbers = np.array(counts)
    limit = box.capacity * float(numbers.sum())
    light = numbers < limit
    if numbers[light].sum() <= limit:
        return None
    kinds = _Kinds(kernel, box, numbers, np.flatnonzero(light), limit)
    weights, prices = kinds.mixture(limit / float(numbers[light].sum()))
    parts = []
    for kind in np.flatnonzero(weights > _USED):
        letter = int(kinds.letter[kind])
        high = _sets(
            numbers, light, prices, letter, int(kinds.inside[kind]), math.ceil(count * weights[kind]), rng
        )
        parts.append(Columns(box, high, np.full(len(high), letter)))
    columns = joined(parts)
    if len(columns) == 0:
        return None
    # a heavy letter's own column loses nothing: its multiplier makes it worth as much as the others
    above = np.where(light, prices / (kernel.p * (box.high - box.low)), kinds.least(prices) / (1 - box.low))
    return LeastLoss(columns, kernel.chords(box) + above)


def _sets(
    counts: IntArray,
    light: BoolArray,
    prices: FloatArray,
    letter: int,
    inside: int,
    wanted: int,
    rng: np.random.Generator,
) -> BoolArray:
    """(K, N) random sets of a total count for a letter between, with what the prices ask for."""
    others = light & (np.arange(len(counts)) != letter)
    always = others & (prices < 0)
    free = np.flatnonzero(others & (prices == 0))
    high = random_sets(counts, free, inside - int(counts[always].sum()), wanted, rng)
    high[:, always] = True
    return high


class _Kinds:
    """Two kinds of columns for each letter f between: next to low and next to high.

    Attributes:
        letter: (K,) f.
        share: (K,) how far it is from low to high.
        inside: (K,) the total count of the set.
        loss: (K,) what the column is worth less than the chords of phi.
    """

    def __init__(self, kernel: Kernel, box: Box, counts: IntArray, letters: IntArray, limit: float) -> None:
        whole = math.floor(limit + _ROUNDING)
        rest, own = max(0.0, limit - whole), counts[letters]
        self.letter, self._size = np.tile(letters, 2), len(counts)
        self.inside = np.concatenate([np.full(len(letters), whole), whole - own + 1])
        self.share = np.concatenate([rest / own, (own - 1 + rest) / own])
        low, high = kernel.at(box.low), kernel.at(box.high)
        chord = low + self.share * (high - low)
        short = chord - kernel.phi(box.low + self.share * (box.high - box.low))
        self.loss = np.maximum(kernel.p[self.letter] * short, 0.0)

    def mixture(self, mean: float) -> tuple[FloatArray, FloatArray]:
        """The (K,) weights of the best mixture, and the (N,) prices of a letter's way from low to high.

        Args:
            mean: how far each letter goes from low to high, in the mean over the columns.

        Raises:
            ArithmeticError: HiGHS does not end at an optimum.
        """
        from scipy import sparse
        from scipy.optimize import linprog

        places, scale = np.arange(len(self.letter)), float(self.loss.max()) or 1.0
        rows = [
            sparse.csr_array((part, (self.letter, places)), shape=(self._size, len(places)))
            for part in (self.share, 1 - self.share)
        ]
        solved = linprog(
            self.loss / scale,
            A_ub=sparse.vstack(rows),  # not more than the row asks for, and not less
            b_ub=np.repeat([mean, 1 - mean], self._size),
            A_eq=np.ones((1, len(places))),
            b_eq=[1.0],
            method="highs",
        )
        if not solved.success:
            raise ArithmeticError(f"the mixture of columns: {solved.message}")
        more, less = -solved.ineqlin.marginals.reshape(2, self._size)
        prices = np.where(np.abs(more - less) > _USED, more - less, 0.0)
        return np.asarray(solved.x), prices * scale

    def least(self, prices: FloatArray) -> float:
        """What the best column loses when it pays the prices."""
        cheap = np.minimum(prices, 0.0)
        own = prices[self.letter] * self.share - cheap[self.letter]
        return float((self.loss + own).min() + cheap.sum())
