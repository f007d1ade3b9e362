"""Perfect privacy in floats: columns that whole numbers of units make exactly equal under several laws."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any

import numpy as np

from pmlopt.arrays import FloatArray
from pmlopt.exact.rationals import GRID
from pmlopt.prior import Prior
from pmlopt.privacy import Requirement

LARGEST_UNIT = 2.0**33
"""Units of 2^-53 that a step of a column may have, at most 1e-6 of probability: larger ones would show."""

MOST_STEPS = 4
"""Times that columns are shrunk until no row sums to more than one."""


def perfected(
    prior: Prior, privacy: Requirement, matrix: FloatArray, mixing: float = 0.0
) -> FloatArray | None:
    """The nearest mechanism with multiples of 2^-53 that meets ratio bounds of no room as equations.

    A pair that a constant meets with equality, such as one of 0 nats about a secret, holds for all columns of
    a mechanism only with equality: their sum is a constant. With joint counts the equations have whole
    coefficients, and the columns that solve them are the combinations of a few columns of whole numbers. Each
    column is rounded to such a combination, a little below what it was, and what the rows then lack of one
    solves the equations too: it goes to the most likely output.

    Args:
        prior: N letters.
        privacy: the requirement, for this prior.
        matrix: (N, M) that meets the equations up to a solver's noise; zeros stay zeros, but for one output.
        mixing: the share of the output law that is mixed in, for the sake of other pairs.

    Returns:
        (N, M) rows that sum to exactly one; None where there are no such equations, or their coefficients are
        too large: those of joint laws in floats are.
    """
    equations = _equations(prior, privacy)
    if not equations:
        return None
    target = matrix / matrix.sum(axis=1, keepdims=True)
    bases: dict[tuple[int, ...], Any] = {}
    for column in target.T:
        support = tuple(np.flatnonzero(column).tolist())
        if support and support not in bases:
            bases[support] = _basis(equations, support)
            if bases[support] is None:
                return None
    law = prior.pmf @ target
    constants = np.array([int(mass * mixing * GRID) for mass in law.tolist()], dtype=object)
    step = target.shape[1] * max(
        (int(np.abs(basis[2]).sum(axis=1).max()) for basis in bases.values()), default=0
    )
    share = mixing
    for _ in range(MOST_STEPS):
        whole = _rounded((1 - share) * target, bases)
        if whole is None:
            return None
        whole = whole + constants
        missing = GRID - whole.sum(axis=1)
        if missing.min() >= 0:
            whole[:, int(law.argmax())] += missing
            return np.asarray((whole / GRID).astype(float))
        share += float(step - missing.min()) / GRID  # rounding moves a row by less than a step
    return None


def _equations(prior: Prior, privacy: Requirement) -> list[list[int]]:
    """The whole coefficients of the pairs of 0 nats that a constant meets with equality."""
    ratios = privacy.ratios(np.array(prior.weights, dtype=object))
    if ratios is None or ratios.exponents.min(initial=1.0) > 0:
        return []
    n = ratios.size
    sides = np.vstack([np.eye(n, dtype=int).astype(object), ratios.rows])
    scales = np.append(np.ones(n, dtype=object), ratios.scales)
    found = []
    for k in np.flatnonzero(ratios.exponents == 0).tolist():
        up, down = int(ratios.above[k]), int(ratios.below[k])
        row = [int(v) for v in sides[up] * scales[down] - sides[down] * scales[up]]
        divisor = math.gcd(*row)
        if divisor and not sum(row):
            found.append([v // divisor for v in row])
    return found


def _basis(equations: list[list[int]], support: tuple[int, ...]) -> tuple[list[int], list[int], Any] | None:
    """Whole columns on a support that span those which solve the equations.

    Returns:
        The free letters, the units of each (the multiples of which the entry of a column is), and the columns
        (|support|, K); None where they are too large.
    """
    rows = [[Fraction(row[x]) for x in support] for row in equations]
    pivots: list[int] = []
    for place in range(len(support)):
        done = len(pivots)
        first = next((k for k in range(done, len(rows)) if rows[k][place]), None)
        if first is None:
            continue
        rows[done], rows[first] = rows[first], rows[done]
        rows[done] = [v / rows[done][place] for v in rows[done]]
        for k, row in enumerate(rows):
            if k != done and row[place]:
                rows[k] = [v - row[place] * w for v, w in zip(row, rows[done], strict=True)]
        pivots.append(place)
    free = [place for place in range(len(support)) if place not in pivots]
    columns = np.zeros((len(support), len(free)), dtype=object)
    for k, place in enumerate(free):
        unit = math.lcm(*(rows[j][place].denominator for j in range(len(pivots))))
        if unit > LARGEST_UNIT:
            return None
        columns[place, k] = unit
        for j, pivot in enumerate(pivots):
            columns[pivot, k] = int(-rows[j][place] * unit)
    if not free or np.abs(columns).sum(axis=1).max() > LARGEST_UNIT:
        return None
    return free, [int(columns[place, k]) for k, place in enumerate(free)], columns


def _rounded(target: FloatArray, bases: dict[tuple[int, ...], Any]) -> Any:
    """(N, M) whole units that solve the equations, near a matrix; None where one is negative."""
    whole = np.zeros(target.shape, dtype=object)
    for y, column in enumerate(target.T):
        support = np.flatnonzero(column)
        if not len(support):
            continue
        free, units, columns = bases[tuple(support.tolist())]
        steps = [round(Fraction(float(column[support[place]])) * GRID / unit)
                 for place, unit in zip(free, units, strict=True)]  # fmt: skip
        whole[support, y] = columns @ np.array(steps, dtype=object)
    return None if (whole < 0).any() else whole
