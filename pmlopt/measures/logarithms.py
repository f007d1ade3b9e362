"""Logarithms of ratios without cancellation."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from pmlopt.arrays import FloatArray

_SAME_SUM = 1e-12
"""Sums of two rows that differ by no more, as a share of both, are the same but for rounding."""


def log_quotient(low: ArrayLike, difference: ArrayLike) -> FloatArray:
    """The logarithm of (low + difference) / low for low, difference >= 0, without cancellation.

    A ratio near one is told by the difference, which the caller sums from non-negative terms; inf
    where low is 0 and the difference is not, 0 where both are.

    Examples:
        >>> float(log_quotient(1.0, 1e-20)), float(log_quotient(0.0, 0.5))
        (1e-20, inf)
    """
    below, gap = np.asarray(low, dtype=float), np.asarray(difference, dtype=float)
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        near = np.log1p(gap / below)
        far = np.log(below + gap) - np.log(below)
    return np.where(gap == 0, 0.0, np.where(gap < below, near, far))


def log_product_ratios(above: Any, below: Any, matrix: FloatArray) -> FloatArray:
    """The logarithms of `<above_k, v> / <below_k, v>` for each column v, without cancellation.

    Rows whose sums are the same differ by nothing on a constant, so that the least entry of v cancels;
    and a difference of products that is no more than rounding is none.

    Args:
        above: (K, N) non-negative, dense or sparse.
        below: (K, N) the same.
        matrix: (N, M) non-negative.

    Returns:
        (K, M); -inf where the numerator is 0, inf where the denominator alone is.

    Examples:
        >>> two = log_product_ratios(np.eye(2), np.full((2, 2), 0.5), np.array([[0.75], [0.25]]))
        >>> np.exp(two).round(12).tolist()
        [[1.5], [0.5]]
    """
    least = matrix.min(axis=0)
    rest = matrix - least
    moved = (above - below) @ rest
    rounding = (matrix.shape[0] + 2) * float(np.finfo(float).eps)
    moved[np.abs(moved) <= rounding * ((above + below) @ rest)] = 0.0
    up, down = above.sum(axis=1), below.sum(axis=1)
    moved += np.outer(np.where(np.abs(up - down) <= _SAME_SUM * (up + down), 0.0, up - down), least)
    under = below @ matrix
    with np.errstate(divide="ignore", invalid="ignore"):
        found = np.log1p(np.maximum(moved / under, -1.0))
    return np.where(under > 0, found, np.where(moved > 0, np.inf, -np.inf))


def log_entry_ratios(above: FloatArray, below: FloatArray) -> FloatArray:
    """The logarithms of a / b for entries a, b >= 0, without cancellation: that of 1 + 2^-52 is 2^-52.

    Returns:
        Of the same shape; -inf where a is 0, inf where b alone is.

    Examples:
        >>> log_entry_ratios(np.array([0.5, 0.25, 1.0]), np.array([0.25, 0.5, 0.0])).round(6).tolist()
        [0.693147, -0.693147, inf]
    """
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        found = np.log1p((above - below) / below)
    return np.where(above == 0, -np.inf, np.where(below > 0, found, np.inf))


def level_rounding(level: float, terms: int = 1) -> float:
    """How far a level in nats may be off because the ratio that it is the logarithm of was rounded.

    A ratio of so many terms is off by a few units in its last place, which is as much in nats; but levels
    next to 0 have digits of their own, so it is never more than a share of 1e-9 of the level.

    Examples:
        >>> level_rounding(0.0), 1e-16 < level_rounding(np.log(4 / 3)) < 1e-14
        (0.0, True)
    """
    return min((terms + 8) * float(np.finfo(float).eps) * max(1.0, level), 1e-9 * level)


def log_sum(terms: FloatArray, axis: int | None = None) -> FloatArray:
    """The logarithm of a sum of exponentials along an axis, which is kept.

    -inf terms count as nothing, and one term must be finite.

    Examples:
        >>> log_sum(np.array([-1000.0, -1000.0])).round(6).tolist()
        [-999.306853]
    """
    peaks = terms.max(axis=axis, keepdims=True)
    return np.asarray(peaks + np.log(np.exp(terms - peaks).sum(axis=axis, keepdims=True)))
