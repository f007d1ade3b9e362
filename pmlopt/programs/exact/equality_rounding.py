"""Rounding and polishing of matrices that keep the equalities of a requirement exactly."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any

import numpy as np

from pmlopt.core.numbers.arrays import GRID_DENOMINATOR, FloatArray
from pmlopt.data.prior import Prior
from pmlopt.model.privacy import Requirement
from pmlopt.model.uncertainty.row_programs import reduce_rows


def round_with_equalities(
    prior: Prior, privacy: Requirement, matrix: FloatArray, mixing: float = 0.0
) -> FloatArray | None:
    """Round a matrix to multiples of 2^-53 that meet zero-level ratio bounds as exact equalities.

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
    equations = _list_equations(prior, privacy)
    if not equations:
        return None
    target = matrix / matrix.sum(axis=1, keepdims=True)
    bases: dict[tuple[int, ...], Any] = {}
    for column in target.T:
        # columns of the same zeros share one basis: elimination is done once for each
        support = tuple(np.flatnonzero(column).tolist())
        if support and support not in bases:
            bases[support] = _find_integer_basis(equations, support)
            if bases[support] is None:
                return None
    law = prior.pmf @ target
    constants = np.array(
        [int(mass * mixing * GRID_DENOMINATOR) for mass in law.tolist()], dtype=object
    )
    sizes = (int(np.abs(basis[2]).sum(axis=1).max()) for basis in bases.values())
    step = target.shape[1] * max(sizes)
    weight = mixing
    # columns are shrunk at most four times until no row sums to more than one
    for _ in range(4):
        whole = _round_to_integers((1 - weight) * target, bases)
        if whole is None:
            return None
        whole = whole + constants
        # a combination of solutions solves the equations too, since these are linear
        missing = GRID_DENOMINATOR - whole.sum(axis=1)
        if missing.min() >= 0:
            whole[:, int(law.argmax())] += missing
            return np.asarray((whole / GRID_DENOMINATOR).astype(float))
        # rounding moves a row by less than a step
        weight += float(step - missing.min()) / GRID_DENOMINATOR
    return None


def _list_equations(prior: Prior, privacy: Requirement) -> list[list[int]]:
    """List the integer equations of the ratio bounds of 0 nats that force equality."""
    ratios = privacy.ratios(prior.integer_weights)
    if ratios is None or ratios.exponents.min(initial=1.0) > 0:
        return []
    n = ratios.size
    sides = np.vstack([np.eye(n, dtype=int).astype(object), ratios.rows])
    scales = np.append(np.ones(n, dtype=object), ratios.scales)
    found = []
    for k in np.flatnonzero(ratios.exponents == 0).tolist():
        up = int(ratios.above[k])
        down = int(ratios.below[k])
        row = [int(v) for v in sides[up] * scales[down] - sides[down] * scales[up]]
        divisor = math.gcd(*row)
        # coefficients that sum to zero: a constant meets the pair with equality
        if divisor and not sum(row):
            found.append([v // divisor for v in row])
    return found


def _find_integer_basis(
    equations: list[list[int]], support: tuple[int, ...]
) -> tuple[list[int], list[int], Any] | None:
    """Find an integer basis of the equations' solution space on a given support.

    Returns:
        The free letters, the units of each (the multiples of which the entry of a column is), and the columns
        (|support|, K); None where they are too large.
    """
    # Units of 2^-53 that a step of a column may have, at most 1e-6 of probability: larger ones would show.
    largest_unit = 2.0**33
    rows = [[Fraction(row[x]) for x in support] for row in equations]
    pivots = reduce_rows(rows, len(support))
    free = [place for place in range(len(support)) if place not in pivots]
    columns = np.zeros((len(support), len(free)), dtype=object)
    for k, place in enumerate(free):
        # the least multiple of the free letter that makes all pivots whole
        unit = math.lcm(*(rows[j][place].denominator for j in range(len(pivots))))
        if unit > largest_unit:
            return None
        columns[place, k] = unit
        for j, pivot in enumerate(pivots):
            columns[pivot, k] = int(-rows[j][place] * unit)
    if not free or np.abs(columns).sum(axis=1).max() > largest_unit:
        return None
    return free, [int(columns[place, k]) for k, place in enumerate(free)], columns


def _round_to_integers(target: FloatArray, bases: dict[tuple[int, ...], Any]) -> Any:
    """Round to nearby (N, M) integers that solve the equations; None where one would be negative."""
    whole = np.zeros(target.shape, dtype=object)
    for y, column in enumerate(target.T):
        support = np.flatnonzero(column)
        if not len(support):
            continue
        free, units, columns = bases[tuple(support.tolist())]
        steps = [round(Fraction(float(column[support[place]])) * GRID_DENOMINATOR / unit)
                 for place, unit in zip(free, units, strict=True)]  # fmt: skip
        whole[support, y] = columns @ np.array(steps, dtype=object)
    return None if (whole < 0).any() else whole


def polish_matrix(prior: Prior, privacy: Requirement, matrix: FloatArray) -> FloatArray | None:
    """Project a matrix on its active ratio bounds and row sums, keeping its zeros.

    Solvers leave pairs broken by 1e-10. Where a constant is within a pair by 1e-9 only, mixing that away
    would take a tenth of the mechanism. The pairs that are broken are kept with equality instead, by the
    least change of the positive entries that also mends the row sums, until no other pair is broken.

    Args:
        prior: N letters.
        privacy: whose list of ratio bounds is to be met.
        matrix: (N, M) non-negative, close to what it should be.

    Returns:
        (N, M); None where the requirement is no list of ratio bounds, the equations are too many, or no
        such matrix is near.
    """
    ratios = privacy.list_ratios(prior)
    if ratios is None or not len(ratios.exponents):
        return None
    pairs, sizes = (part.toarray() for part in ratios.excess_rows)
    # zeros stay zeros: only positive entries may move
    entries = np.argwhere(matrix > 0)
    held = np.zeros((len(pairs), matrix.shape[1]), dtype=bool)
    moved = matrix
    # violated pairs join the active ones at most six times
    for _ in range(6):
        # rounding does not break a pair that keeps four units in the last place
        margin = (4 * float(np.finfo(float).eps)) * (sizes @ moved)
        # an active set method: pairs once broken are kept as equations
        broken = (pairs @ moved > -margin) & ~held
        if not broken.any() and held.any():
            break
        held |= broken
        # a dense system of a million coefficients takes a fraction of a second
        if (held.sum() + len(matrix)) * len(entries) > 1_000_000:
            return None
        try:
            moved = _project_on_equations(moved, entries, pairs, held, 2 * margin)
        except np.linalg.LinAlgError:
            return None
    # the equations count as solved where rows are off one by at most 1e-12
    met = (moved >= 0).all() and np.abs(moved.sum(axis=1) - 1).max() <= 1e-12
    return moved if met else None


def _project_on_equations(
    moved: FloatArray, entries: Any, pairs: FloatArray, held: Any, margin: FloatArray
) -> FloatArray:
    """Make the smallest change that puts active pairs at their margin and row sums at one."""
    rows, columns = entries.T
    which, where = np.nonzero(held)
    system = np.vstack([
        pairs[which][:, rows] * (where[:, None] == columns),
        np.arange(len(moved))[:, None] == rows,
    ])  # fmt: skip
    right = np.append((-margin - pairs @ moved)[held], 1 - moved.sum(axis=1))
    # rows of size one, so that least squares weighs all equations alike
    unit = np.abs(system).max(axis=1, initial=0.0)
    distinct = unit > 0  # a pair of entries that are all zero stays as it is
    scaled = system[distinct] / unit[distinct, None]
    wanted = right[distinct] / unit[distinct]
    # entries are many more than equations: a small system is left
    base, corner = np.linalg.qr(scaled.T)
    change = base @ np.linalg.lstsq(corner.T, wanted, rcond=None)[0]
    found = moved.copy()
    found[rows, columns] += change
    return found
