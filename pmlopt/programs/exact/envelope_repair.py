"""Repair of a matrix under ratio bounds on letter pairs, by lower McShane envelopes on the exact grid.

A column v is within the bounds where `v[z] <= e^d[z,x] v[x]` for every two letters. The least column above
any other w that is within them is `v[x] = max_z e^-d[z,x] w[z]`, if d satisfies the triangle inequality. Rows
of envelopes sum to too much: all are divided by the largest sum, and what the others then lack goes to one
output.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from pmlopt.core.numbers.arrays import GRID_DENOMINATOR, BoolArray, FloatArray
from pmlopt.data.prior import Prior
from pmlopt.model.privacy import Requirement
from pmlopt.model.privacy.metric_privacy import compute_shortest_paths
from pmlopt.model.privacy.ratios import RatioBounds

MAX_MIXING_WEIGHT = 0.5
"""The share of one output from which on a mechanism has lost more than it kept."""


@dataclass(frozen=True, eq=False)
class EnvelopeRepair:
    """A mechanism repaired by McShane envelopes, with the weight of the constant part mixed in.

    Attributes:
        matrix: (N, M) on the exact grid, rows that sum to exactly one.
        theta: the share of every row that goes to one output.
    """

    matrix: FloatArray
    theta: float


def pair_exponents(prior: Prior, privacy: Requirement) -> FloatArray | None:
    """Return (N, N) exponents d with `v[z] <= e^d[z,x] v[x]` implied for every column; None for other bounds.

    Bounds on a way over other letters imply one on its ends: d is the length of the shortest way.
    """
    ratios = privacy.for_prior(prior).list_required_ratios(prior.pmf)
    if ratios is None or len(ratios.rows) or not len(ratios.exponents):
        return None
    return _measure_shortest_ways(ratios)


# a design of a thousand letters needs them three times, for four seconds each
@lru_cache(1)
def _measure_shortest_ways(ratios: RatioBounds) -> FloatArray:
    """Measure the (N, N) shortest ways along bounds on pairs of letters."""
    exponents = np.full((ratios.size, ratios.size), np.inf)
    # several bounds on one pair: the tightest counts
    np.minimum.at(exponents, (ratios.above, ratios.below), ratios.exponents)
    # shortest paths start from 0 at each letter
    np.fill_diagonal(exponents, 0.0)
    exponents = compute_shortest_paths(exponents)
    # v[z] <= v[x] for every column of a mechanism means equality, for rows have equal sums
    tied = (exponents == 0) | (exponents.T == 0)
    if (tied & (exponents > 0)).any():
        exponents = compute_shortest_paths(np.where(tied, 0.0, exponents))
    exponents.setflags(write=False)
    return exponents


def lower_envelope(exponents: FloatArray, matrix: FloatArray) -> FloatArray:
    """Compute the smallest (N, M) matrix above a given one whose columns meet the pair bounds."""
    # e^-inf is 0: pairs without a bound drop out
    factors = np.exp(-exponents)
    found = matrix.copy()
    for letter, row in enumerate(matrix):
        # (N, 1) times (M,): one letter's row pulls all letters up to its envelope
        np.maximum(found, factors[letter][:, None] * row, out=found)
    return found


def repair_by_envelope(
    prior: Prior, exponents: FloatArray, matrix: FloatArray, gains: FloatArray | None = None
) -> EnvelopeRepair | None:
    """Repair a matrix by McShane envelopes of its columns; None where too much mass would be lost.

    Args:
        prior: N letters.
        exponents: (N, N) of `pair_exponents`.
        matrix: (N, M) non-negative, with a positive entry in each row.
        gains: (N, M) by which the output that takes the rest is chosen; without gains, the one that needs the
            least constant in addition.
    """
    envelope = lower_envelope(exponents, matrix / matrix.sum(axis=1)[:, None])
    sums = envelope.sum(axis=1)
    # rows lack different amounts, which on one output may break the bounds there
    rest = sums.max() - sums
    # adding a constant to a column brings every ratio closer to one
    constants = _compute_missing_constants(np.exp(-exponents), envelope + rest[:, None])
    totals = sums.max() + constants
    if gains is None:
        cost = constants
    else:
        weighted = prior.pmf[:, None] * gains
        taken = (weighted * rest[:, None]).sum(axis=0) + constants * weighted.sum(axis=0)
        cost = -((weighted * envelope).sum() + taken) / totals
    output = int(np.where(constants <= MAX_MIXING_WEIGHT * totals, cost, np.inf).argmin())
    constant = float(constants[output])
    total = float(totals[output])
    if not constant <= MAX_MIXING_WEIGHT * total:
        return None
    found = _round_to_grid(exponents, envelope / total, output)
    if found is None:
        return None
    return EnvelopeRepair(found.matrix, min(1.0, found.theta + constant / total))


def _compute_missing_constants(factors: FloatArray, columns: FloatArray) -> FloatArray:
    """Compute the (M,) smallest constants that make columns meet `w[x] >= factors[z,x] w[z]`.

    The pairs with the factor one are passed over: their entries are equal already, and no constant helps.
    """
    found = np.zeros(columns.shape[1])
    room = 1 - factors
    for letter, row in enumerate(columns):
        bound = room[letter] > 0
        factor = factors[letter][bound][:, None]
        missing = (factor * row - columns[bound]) / room[letter][bound][:, None]
        np.maximum(found, missing.max(axis=0, initial=0.0), out=found)
    return found


def _round_to_grid(exponents: FloatArray, matrix: FloatArray, output: int) -> EnvelopeRepair | None:
    """Round the columns to multiples of 2^-53 so that all pair bounds hold exactly.

    Entries are rounded down, and raised as far as other entries of the column require. What the rows then
    lack goes to one output. It differs between rows by rounding, so a share of all rows is set aside for it.
    """
    # at a factor of one the bound is an equality, which whole numbers meet exactly
    # The share by which every pair is kept within its bound: floats then prove it, as they round by less.
    factors = np.minimum(np.exp(-exponents) * (1 + (2.0**-45)), 1.0)
    theta = 4 * matrix.shape[1] / GRID_DENOMINATOR
    # Shares of one output that are tried until the rest of the rows is within the bounds on the grid.
    for _ in range(12):
        # rounded down first: raising by the envelope then terminates near the input
        whole = _raise_to_feasible_integers(
            factors, np.floor((1 - theta) * matrix * GRID_DENOMINATOR)
        )
        if whole is None or theta > MAX_MIXING_WEIGHT:
            return None
        # summed as integers: floats of up to 2^53 would round beyond it
        taken = np.zeros(len(whole), dtype=np.int64)
        for column in whole.T:
            taken += column.astype(np.int64)
        last = whole[:, output] + (GRID_DENOMINATOR - taken).astype(float)
        missing = _compute_missing_integer(factors, last)
        lowest = float(last.min())
        if missing == 0 and lowest >= 0:
            whole[:, output] = last
            return EnvelopeRepair(whole / GRID_DENOMINATOR, theta)
        theta += 2 * (max(missing, 0.0) + max(-lowest, 0.0) + 1) / GRID_DENOMINATOR
    return None


def _raise_to_feasible_integers(factors: FloatArray, whole: FloatArray) -> FloatArray | None:
    """Raise integers until `w[x] >= factors[z,x] w[z]` for every pair; None after too many passes."""
    changed: BoolArray = whole.max(axis=0) > 0
    # Passes over all pairs in which entries on the grid are raised; two to five are usual.
    for _ in range(100):
        # only columns that moved in the last pass can have broken pairs left
        before = whole[:, changed]
        raised = before.copy()
        for letter, row in enumerate(before):
            np.maximum(raised, factors[letter][:, None] * row, out=raised)
        # up: rounding down could break the pair that was just met
        raised = np.ceil(raised)
        moved = (raised != before).any(axis=0)
        if not moved.any():
            return whole
        places = np.flatnonzero(changed)
        whole[:, places] = raised
        changed = np.zeros(whole.shape[1], dtype=bool)
        changed[places[moved]] = True
    return None


def _compute_missing_integer(factors: FloatArray, column: FloatArray) -> float:
    """Compute the smallest integer that, added to a column, makes it meet all pair bounds."""
    # (N, N): how much each letter is below what each other one requires
    short = factors * column[:, None] - column
    if not (short > 0).any():
        return 0.0
    room = 1 - factors
    # a constant does not help where both must be equal
    if (room[short > 0] == 0).any():
        return np.inf
    return float((short[short > 0] / room[short > 0]).max())
