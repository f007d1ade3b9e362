"""Exact arithmetic: a float is a dyadic rational, so a claim about floats can be a theorem."""

from __future__ import annotations

from decimal import Context, Decimal
from fractions import Fraction
from typing import Any

import numpy as np

from pmlopt.arrays import FloatArray
from pmlopt.prior import Prior
from pmlopt.privacy import Requirement

GRID = 2**53
"""The common denominator of an exported matrix: k / GRID is a float for every k from 0 to GRID."""

_DIGITS = Context(prec=60)


def snap(matrix: FloatArray) -> FloatArray:
    """The matrix on the grid of multiples of 2^-53, each row summing to exactly one.

    Largest remainders: an entry moves by less than 2^-53; what the row's sum was off beyond that goes
    to the largest entry.

    Args:
        matrix: (N, M) non-negative, rows summing to one up to rounding.

    Examples:
        >>> snapped = snap(np.array([[1 / 3, 1 / 3, 1 / 3]]))
        >>> sum(Fraction(v) for v in snapped[0].tolist())
        Fraction(1, 1)
    """
    scaled = matrix * GRID  # exact: a power of two
    counts = np.floor(scaled).astype(np.int64)
    remainder = np.where(matrix > 0, scaled - counts, -1.0)  # zeros come last, and stay zeros
    rank = np.argsort(np.argsort(-remainder, axis=1, kind="stable"), axis=1, kind="stable")
    short = GRID - counts.sum(axis=1)
    counts += (rank < short[:, None]) & (matrix > 0)
    counts[np.arange(len(counts)), counts.argmax(axis=1)] += GRID - counts.sum(axis=1)
    return np.asarray(counts / GRID)


def integers(matrix: FloatArray) -> Any:
    """The matrix times a power of two, as an object array of Python integers, without rounding."""
    mantissas, exponents = np.frexp(matrix)
    whole = (mantissas * 2.0**53).astype(np.int64).astype(object)
    occurring = exponents[matrix != 0]
    lowest = int(occurring.min()) if occurring.size else 0
    shifts = np.where(matrix != 0, exponents - lowest, 0).astype(object)
    return whole << shifts


def power_below(exponent: float) -> Fraction:
    """A rational at most e^exponent, and within 1e-58 of it relatively; exponent >= 0.

    Examples:
        >>> power_below(0.0), float(power_below(1.0)) == float(np.exp(1.0))
        (Fraction(1, 1), True)
    """
    if exponent == 0:
        return Fraction(1)
    return max(Fraction(1), Fraction(_DIGITS.next_minus(_DIGITS.exp(Decimal(exponent)))))


def power_above(exponent: float) -> Fraction:
    """A rational at least e^exponent, and within 1e-58 of it relatively; exponent >= 0.

    Examples:
        >>> power_above(0.0), power_above(1.0) > power_below(1.0)
        (Fraction(1, 1), True)
    """
    if exponent == 0:
        return Fraction(1)
    return Fraction(_DIGITS.next_plus(_DIGITS.exp(Decimal(exponent))))


def holds_exactly(prior: Prior, privacy: Requirement, matrix: FloatArray) -> bool:
    """Whether the numbers in `matrix` meet the requirement, as rationals: a proof, not a test.

    The prior's weights are its counts, or its floats as rationals over their sum; e^epsilon is
    replaced by a rational below it.
    """
    weights = np.array(prior.weights, dtype=object)
    occurring = matrix[:, matrix.max(axis=0) > 0]  # a column of zeros adds nothing to any bound
    own = privacy.for_prior(prior)
    return bool(np.all(own.excess(weights, integers(occurring), power_below) <= 0))


def rows_are_exact(matrix: FloatArray) -> bool:
    """Whether the entries are non-negative and each row sums to exactly one, as rationals."""
    if (matrix < 0).any():
        return False
    if np.array_equal(np.rint(matrix * GRID), matrix * GRID):  # on the grid: sums in 64-bit integers
        return bool(((matrix * GRID).astype(np.int64).sum(axis=1) == GRID).all())
    return all(sum(map(Fraction, row)) == 1 for row in matrix.tolist())
