"""What a requirement asks of one column, as numbers for solvers that do not go through cvxpy."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from pmlopt.arrays import FloatArray


@dataclass(frozen=True, eq=False)
class Hinge:
    """A variable r for each entry v of a column, with `r >= 0` and `r >= sign (v - at'u)`.

    Attributes:
        sign: 1 for what is above a threshold, -1 for what is below.
        at: (k,) the threshold, linear in the scalars u.
        inside: the r of the column of ones.
        costs: (K, N) what r takes from the rows of the column, or None. Letters that cost nothing have no r.
        budget: the most that the r of a letter may add up to over all columns, or None where there are costs.
    """

    sign: float
    at: FloatArray
    inside: float
    costs: FloatArray | None = None
    budget: float | None = None


@dataclass(frozen=True, eq=False)
class Block:
    """Columns v between two ends that are linear in few scalars u of the column's own.

    `lower'u <= v[x] <= upper'u` for every letter x; with weights, for each of K rows,
    `weights_k'v - costs_k'r = mean_k'u`, or `>=`; and with a total, `u[0]` adds up to at most that over all
    columns.
    What a requirement declares in cvxpy says the same, with a row for each output where this has a number.

    Attributes:
        lower: (k,) zeros, or one scalar's alone: then `lower'u >= 0` must be said, unless that is the only
            scalar.
        upper: (k,), infinite where nothing bounds the entries from above.
        inside: (k,) the u at which the column of ones is strictly between the ends.
        weights: (K, N), or None.
        mean: (K, k) what belongs to the weights, or None.
        loose: whether the rows say `>=`.
        hinge: the r, where there are any.
        total: of u[0], or None.
    """

    lower: FloatArray
    upper: FloatArray
    inside: FloatArray
    weights: FloatArray | None = None
    mean: FloatArray | None = None
    loose: bool = False
    hinge: Hinge | None = None
    total: float | None = None

    @cached_property
    def floored(self) -> bool:
        """Whether `lower'u >= 0` must be said: the lower end is a scalar of its own."""
        return len(self.lower) > 1 and bool(self.lower.any())

    @cached_property
    def capped(self) -> bool:
        """Whether there is an upper end."""
        return bool(np.isfinite(self.upper).all())

    @cached_property
    def banded(self) -> bool:
        """Whether there is nothing but two ends and one mean: a program of few nonzeros an entry."""
        rows = 0 if self.weights is None else len(self.weights)
        return self.hinge is None and self.total is None and not self.loose and rows <= 1


def ratio_block(keep: float) -> Block | None:
    """Columns with `keep max v <= min v`; None where nothing lies strictly inside."""
    if keep >= 1:
        return None
    return Block(np.array([keep]), np.ones(1), np.array([keep**-0.5]))


def mean_block(weights: FloatArray, keep: float, least: float = 0.0, largest: float = 0.0) -> Block | None:
    """Columns `v >= 0` with `keep max v <= weights'v + least min v - largest max v`.

    None where nothing lies strictly inside, which is where the column of ones only just meets the bound.
    """
    room = float(weights.sum()) + least - largest - keep
    if room <= 0:
        return None
    if least == 0:
        return Block(np.zeros(1), np.ones(1), np.array([weights.sum() / (keep + largest)]),
                     weights[None, :], np.array([[keep + largest]]))  # fmt: skip
    if not weights.any():
        return ratio_block((keep + largest) / least)
    low = max(0.5, 1 - room / (2 * least))
    width = (weights.sum() + least * low) / (keep + largest) - low
    mean = np.array([[keep + largest, keep + largest - least]])
    return Block(np.array([0.0, 1.0]), np.ones(2), np.array([width, low]), weights[None, :], mean)


def threshold_block(weights: FloatArray, half: float, keep: float) -> Block | None:
    """Columns `v >= 0` with `keep max v <= w(v)`, `half` of the mass moving from the top to the least entry.

    `w(v) = max_t weights'min(v, t) - half (t - min v)`, with u = (max v - min v, min v, t).
    """
    room = 1 - keep
    if room <= 0:
        return None
    low = max(0.5, 1 - room / (4 * half))
    cut = room / 4
    width = (1 - cut - half * (1 - low)) / keep - low
    hinge = Hinge(1.0, np.array([0.0, 0.0, 1.0]), cut, weights[None, :])
    mean = np.array([[keep, keep - half, half]])
    return Block(np.array([0.0, 1.0, 0.0]), np.array([1.0, 1.0, 0.0]), np.array([width, low, 1.0]),
                 weights[None, :], mean, hinge=hinge)  # fmt: skip


def edge_block(lower: FloatArray, width: FloatArray, keep: float) -> Block | None:
    """Columns `v >= 0` with `keep max v <= w(v)`, where each letter has from `lower` to `lower + width`.

    `w(v) = max_e lower'v + (1 - sum(lower)) e - width'max(e - v, 0)`, with u = (max v, e).
    """
    room = 1 - keep
    if room <= 0:
        return None
    below = room / (2 * float(width.sum()))
    hinge = Hinge(-1.0, np.array([0.0, 1.0]), below, width[None, :])
    mean = np.array([[keep, float(lower.sum()) - 1]])
    return Block(np.zeros(2), np.array([1.0, 0.0]), np.array([(1 - room / 2) / keep, 1.0]),
                 lower[None, :], mean, hinge=hinge)  # fmt: skip


def hull_block(laws: FloatArray, keep: float) -> Block | None:
    """Columns `v >= 0` with `keep max v <= law'v` for each of K laws."""
    if keep >= 1:
        return None
    return Block(
        np.zeros(1), np.ones(1), np.array([keep**-0.5]), laws, np.full((len(laws), 1), keep), loose=True
    )


def peak_block(total: float) -> Block | None:
    """Columns `v >= 0` whose largest entries add up to at most `total`."""
    if total <= 1:
        return None
    return Block(np.zeros(1), np.ones(1), np.array([(1 + total) / 2]), total=total)


def slack_block(weights: FloatArray, keep: float, budget: float) -> Block | None:
    """Columns `v >= 0` with `keep (v - r) <= weights'v`, the r of a letter adding up to at most `budget`."""
    if keep >= 1:
        return None
    hinge = Hinge(1.0, np.ones(1), budget / 2, budget=budget)
    return Block(
        np.zeros(1),
        np.full(1, np.inf),
        np.array([1 / keep]),
        weights[None, :],
        np.array([[keep]]),
        hinge=hinge,
    )
