"""Sums, mixtures and entropies of laws in decimals of 50 digits."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from decimal import Decimal
from operator import mul

import numpy as np

from pmlopt.core.numbers.arrays import FloatArray
from pmlopt.model.queries.record_leakage_measures import allows_only_uniform

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
    masses = normalize_decimal_rows(joint.reshape(1, -1))[0]
    counts = log_counts.ravel().tolist()
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
