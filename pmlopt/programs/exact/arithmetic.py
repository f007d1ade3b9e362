"""Exact arithmetic: floats as dyadic rationals, and decimals of 50 digits, rounded against the claim."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from decimal import Context, Decimal
from fractions import Fraction
from functools import lru_cache
from operator import mul
from typing import Any

import numpy as np

from pmlopt.core.arrays import FloatArray
from pmlopt.data.prior import Prior
from pmlopt.model.privacy import Requirement
from pmlopt.model.queries.record_leakage_measures import allows_only_uniform

GRID_DENOMINATOR = 2**53
"""The common denominator of an exported matrix: k / GRID is a float for every k from 0 to GRID."""

_DECIMAL_CONTEXT = Context(prec=60)


def round_rows_to_grid(matrix: FloatArray, grid: int = GRID_DENOMINATOR) -> FloatArray:
    """Round the matrix to multiples of 2^-53, each row summing to exactly one.

    Largest remainders: an entry moves by less than 2^-53; what the row's sum was off beyond that goes
    to the largest entry.

    Args:
        matrix: (N, M) non-negative, rows summing to one up to rounding.
        grid: the common denominator, where it is another one.

    Examples:
        >>> snapped = round_rows_to_grid(np.array([[1 / 3, 1 / 3, 1 / 3]]))
        >>> sum(Fraction(v) for v in snapped[0].tolist())
        Fraction(1, 1)
    """
    scaled = matrix * grid  # exact for a power of two
    # floors leave less than one unit for each entry: remainders decide who gets one
    counts = np.floor(scaled).astype(np.int64)
    remainder = np.where(matrix > 0, scaled - counts, -1.0)  # zeros come last, and stay zeros
    # the argsort of an argsort is the rank of each entry in its row
    rank = np.argsort(np.argsort(-remainder, axis=1, kind="stable"), axis=1)
    short = grid - counts.sum(axis=1)
    counts += (rank < short[:, None]) & (matrix > 0)
    # what the input's sum was off beyond that: the largest entry notices it least
    counts[np.arange(len(counts)), counts.argmax(axis=1)] += grid - counts.sum(axis=1)
    return np.asarray(counts / grid)


def scale_to_integers(matrix: FloatArray) -> Any:
    """Return the matrix times a power of two, as an object array of Python integers, without rounding."""
    # a float is an integer of 53 bits times a power of two: nothing is rounded
    mantissas, exponents = np.frexp(matrix)
    whole = (mantissas * 2.0**53).astype(np.int64).astype(object)
    # zeros have an exponent that means nothing
    occurring = exponents[matrix != 0]
    lowest = int(occurring.min()) if occurring.size else 0
    return whole << np.where(matrix != 0, exponents - lowest, 0).astype(object)


# a few megabytes: a repair needs the powers of all pairs of letters a dozen times
@lru_cache(32_768)
def round_exp_down(exponent: float) -> Fraction:
    """Return a rational at most e^exponent, and within 1e-58 of it relatively; exponent >= 0.

    Examples:
        >>> round_exp_down(0.0), float(round_exp_down(1.0)) == float(np.exp(1.0))
        (Fraction(1, 1), True)
    """
    if exponent == 0:
        return Fraction(1)
    return max(
        Fraction(1), Fraction(_DECIMAL_CONTEXT.next_minus(_DECIMAL_CONTEXT.exp(Decimal(exponent))))
    )


def round_exp_up(exponent: float) -> Fraction:
    """Return a rational at least e^exponent, and within 1e-58 of it relatively; exponent >= 0.

    Examples:
        >>> round_exp_up(0.0), round_exp_up(1.0) > round_exp_down(1.0)
        (Fraction(1, 1), True)
    """
    return (
        Fraction(_DECIMAL_CONTEXT.next_plus(_DECIMAL_CONTEXT.exp(Decimal(exponent))))
        if exponent
        else Fraction(1)
    )


def round_down_to_float(number: Fraction) -> float:
    """Return the largest float that is at most a rational.

    Examples:
        >>> round_down_to_float(Fraction(1, 3)) < Fraction(1, 3) < round_up_to_float(Fraction(1, 3))
        True
    """
    # conversion rounds to nearest: at most one step in the wrong direction
    nearest = float(number)
    return math.nextafter(nearest, -math.inf) if nearest > number else nearest


def round_up_to_float(number: Fraction) -> float:
    """Return the least float that is at least a rational."""
    return -round_down_to_float(-number)


def is_met_exactly(prior: Prior, privacy: Requirement, matrix: FloatArray) -> bool:
    """Return whether the matrix meets the requirement in rational arithmetic.

    The prior's weights are its counts, or its floats as rationals over their sum; e^epsilon is
    replaced by a rational below it.
    """
    # Python integers: products have more than 64 bits
    weights = np.array(prior.weights, dtype=object)
    occurring = matrix[:, matrix.max(axis=0) > 0]  # a column of zeros adds nothing to any bound
    return bool(
        np.all(
            privacy.for_prior(prior).violation(
                weights, scale_to_integers(occurring), round_exp_down
            )
            <= 0
        )
    )


def has_exact_rows(matrix: FloatArray) -> bool:
    """Return whether the entries are non-negative and each row sums to exactly one, as rationals."""
    if (matrix < 0).any():
        return False
    if np.array_equal(
        np.rint(matrix * GRID_DENOMINATOR), matrix * GRID_DENOMINATOR
    ):  # on the grid: sums in 64-bit integers
        return bool(
            ((matrix * GRID_DENOMINATOR).astype(np.int64).sum(axis=1) == GRID_DENOMINATOR).all()
        )
    return all(sum(map(Fraction, row)) == 1 for row in matrix.tolist())


DECIMAL_DIGITS = 50
DECIMAL_ATOL = Decimal(10) ** -40
"""What the last of 50 digits may hide of an information, which is a sum of terms that cancel."""

DecimalRows = list[list[Decimal]]


def sum_decimals(terms: Iterable[Decimal]) -> Decimal:
    """Sum decimals in the current context; 0 of none."""
    return sum(terms, Decimal(0))


def has_entropy(joint: FloatArray, log_counts: FloatArray, least: float, log_size: float) -> bool:
    """Return whether a joint law of record and class is valid and has at least a given dataset entropy."""
    if not (joint >= 0).all() or not joint.any():
        return False
    masses, counts = normalize_decimal_rows(joint.reshape(1, -1))[0], log_counts.ravel().tolist()
    # letters of no mass are left out: 0 log 0 counts as 0
    pairs = [(mass, count) for mass, count in zip(masses, counts, strict=True) if mass]
    if not all(np.isfinite(count) for _, count in pairs):
        return False
    entropy = sum_decimals(mass * (Decimal(count) - mass.ln()) for mass, count in pairs)
    slack = Decimal(float(np.spacing(log_size))) * 4 if allows_only_uniform(least, log_size) else 0
    return entropy + slack >= Decimal(least)


def normalize_decimal_rows(matrix: FloatArray) -> DecimalRows:
    """Normalize rows to sum one in decimal arithmetic."""
    sums = ((row, sum_decimals(row)) for row in to_decimal_rows(matrix))
    return [[x / mass for x in row] for row, mass in sums if mass]


def to_decimal_rows(matrix: FloatArray) -> DecimalRows:
    """Convert the entries to decimals, which keep every digit of a float."""
    return [to_decimals(row) for row in matrix]


def to_decimals(row: Iterable[float]) -> list[Decimal]:
    """Convert floats to decimals, without rounding."""
    return [Decimal(float(x)) for x in row]


def mix_decimal_rows(weights: Sequence[Decimal], rows: DecimalRows) -> list[Decimal]:
    """Compute the weighted mean of rows in decimal arithmetic."""
    return [dot_decimals(weights, column) for column in zip(*rows, strict=True)]


def dot_decimals(left: Sequence[Decimal], right: Sequence[Decimal]) -> Decimal:
    """Compute the inner product of two rows in decimal arithmetic."""
    return sum_decimals(map(mul, left, right))


def negative_entropy(law: Sequence[Decimal]) -> Decimal:
    """Compute `sum v log(v / sum v)`, the negative entropy of an unnormalized law."""
    mass = sum_decimals(law)
    return sum_decimals(x * (x / mass).ln() for x in law if x > 0)


def log_sum_exp_decimals(terms: Sequence[Decimal]) -> Decimal:
    """Compute `log sum_k e^(t_k)` in decimal arithmetic, shifted by the maximum."""
    # the largest exponent becomes 0: no term overflows, and the sum is at least one
    peak = max(terms)
    return peak + sum_decimals((term - peak).exp() for term in terms).ln()


def normalize_log_law(logs: Iterable[float]) -> list[Decimal]:
    """Normalize a law given by logarithms, by subtracting its log-sum-exp."""
    terms = to_decimals(logs)
    whole = log_sum_exp_decimals(terms)
    return [term - whole for term in terms]
