"""Polish: a solver's matrix moved by as little as makes it meet ratio bounds to rounding."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from pmlopt.arrays import FloatArray
from pmlopt.exact.perfect import perfected
from pmlopt.exact.repair import (
    LARGEST_SINGLE_MIXING,
    NOISE_THRESHOLD,
    Repair,
    repair,
    satisfied,
    without_noise,
)
from pmlopt.prior import Prior
from pmlopt.privacy import Requirement

NEGLIGIBLE_MIXING = 1e-8
"""A share mixed in that is not worth the polish: a tenth of the usual tolerance, and it costs no more."""

LARGEST_SYSTEM = 1_000_000
"""Coefficients of the dense equations that are solved: a fraction of a second."""

SHARES = (0.0, 1e-9, 1e-7)
"""Shares of the law that are mixed in before pairs of no room are met exactly, for the others' sake."""

ROW_TOLERANCE = 1e-12
"""By how much a row's sum may be off one for the equations to count as solved."""

ROUNDS = 6
"""Times that pairs which are broken join those that are held with equality."""

ROUNDING = 4 * float(np.finfo(float).eps)
"""By which share of its terms a pair is kept within its bound, so that rounding does not break it."""


def polished_repair(
    prior: Prior, privacy: Requirement, matrix: FloatArray, noise: float = NOISE_THRESHOLD
) -> Repair:
    """The repair of a matrix; where much was mixed in, of the polished one, if that is near and better.

    Pairs that leave a constant no room, such as those of 0 nats, are met exactly where whole numbers can.

    Args:
        prior: N letters.
        privacy: the requirement to satisfy.
        matrix: (N, M), as `repair` takes it.
        noise: the same.

    Raises:
        MechanismError: the matrix is no mechanism even roughly.
    """
    fixed = repair(prior, privacy, matrix, noise)
    if fixed.theta <= NEGLIGIBLE_MIXING:
        return fixed
    for share in SHARES:
        exact = _perfect(prior, privacy, matrix, noise, share)
        if exact is not None:
            return Repair.between(matrix, exact, share)
    near = polished(prior, privacy, np.where(matrix > noise, matrix, 0.0))
    if near is None or np.abs(near - matrix).max() > LARGEST_SINGLE_MIXING:
        return fixed
    better = repair(prior, privacy, near, noise=0.0)
    if better.theta >= fixed.theta:
        return fixed
    return replace(better, shift=float(np.abs(better.matrix - matrix).max()))


def _perfect(
    prior: Prior, privacy: Requirement, matrix: FloatArray, noise: float, share: float
) -> FloatArray | None:
    """The matrix with a share of its law, and with pairs of no room met exactly; None where that fails."""
    exact = perfected(prior, privacy.for_prior(prior), without_noise(matrix, noise), share)
    if exact is None or np.abs(exact - matrix).max() > LARGEST_SINGLE_MIXING:
        return None
    return exact if satisfied(prior, privacy, exact) else None


def polished(prior: Prior, privacy: Requirement, matrix: FloatArray) -> FloatArray | None:
    """The nearest matrix with the same zeros that meets ratio bounds, and row sums of one, to rounding.

    Solvers leave pairs broken by 1e-10. Where a constant is within a pair by 1e-9 only, mixing that away
    would take a tenth of the mechanism. The pairs that are broken are held with equality instead, by the
    least change of the positive entries that also mends the row sums, until no other pair is broken.

    Args:
        prior: N letters.
        privacy: whose list of ratio bounds is to be met.
        matrix: (N, M) non-negative, close to what it should be.

    Returns:
        (N, M); None where the requirement is no list of ratio bounds, the equations are too many, or no
        such matrix is near.
    """
    ratios = privacy.for_prior(prior).ratios(prior.pmf)
    if ratios is None or not len(ratios.exponents):
        return None
    pairs, sizes = (part.toarray() for part in ratios.excesses)
    entries = np.argwhere(matrix > 0)
    held = np.zeros((len(pairs), matrix.shape[1]), dtype=bool)
    moved = matrix
    for _ in range(ROUNDS):
        margin = ROUNDING * (sizes @ moved)
        broken = (pairs @ moved > -margin) & ~held
        if not broken.any() and held.any():
            break
        held |= broken
        if (held.sum() + len(matrix)) * len(entries) > LARGEST_SYSTEM:
            return None
        try:
            moved = _nearest(moved, entries, pairs, held, 2 * margin)
        except np.linalg.LinAlgError:
            return None
    met = (moved >= 0).all() and np.abs(moved.sum(axis=1) - 1).max() <= ROW_TOLERANCE
    return moved if met else None


def _nearest(moved: FloatArray, entries: Any, pairs: FloatArray, held: Any, margin: FloatArray) -> FloatArray:
    """With the least change by which the pairs that are held have their margin, and rows sum to one."""
    rows, columns = entries.T
    which, where = np.nonzero(held)
    system = np.vstack([
        pairs[which][:, rows] * (where[:, None] == columns),
        np.arange(len(moved))[:, None] == rows,
    ])  # fmt: skip
    right = np.append((-margin - pairs @ moved)[held], 1 - moved.sum(axis=1))
    unit = np.abs(system).max(axis=1, initial=0.0)
    told = unit > 0  # a pair of entries that are all zero stays as it is
    scaled, wanted = system[told] / unit[told, None], right[told] / unit[told]
    change = np.linalg.lstsq(scaled, wanted, rcond=None)[0]
    found = moved.copy()
    found[rows, columns] += change
    return found
