"""Decimal arithmetic of 50 digits on what claims are about: rows, laws, entropies."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from decimal import Decimal

import numpy as np

from pmlopt.arrays import FloatArray
from pmlopt.measures.record_information import uniform_alone

DIGITS = 50
LAST_DIGITS = Decimal(10) ** -40
"""What the last of 50 digits may hide of an information, which is a sum of terms that cancel."""

Rows = list[list[Decimal]]


def total(terms: Iterable[Decimal]) -> Decimal:
    """Sum of decimals in the current context; 0 of none."""
    return sum(terms, Decimal(0))


def has_entropy(joint: FloatArray, log_counts: FloatArray, least: float, log_size: float) -> bool:
    """Whether a law of (X_i, T) is one, and its dataset has an entropy, up to what a float can say."""
    if not (joint >= 0).all() or not joint.any():
        return False
    masses, counts = stochastic(joint.reshape(1, -1))[0], log_counts.ravel().tolist()
    pairs = [(mass, count) for mass, count in zip(masses, counts, strict=True) if mass]
    if not all(np.isfinite(count) for _, count in pairs):
        return False
    entropy = total(mass * (Decimal(count) - mass.ln()) for mass, count in pairs)
    slack = Decimal(float(np.spacing(log_size))) * 4 if uniform_alone(least, log_size) else 0
    return entropy + slack >= Decimal(least)


def stochastic(matrix: FloatArray) -> Rows:
    """Rows as decimals, over their sums."""
    sums = ((row, total(row)) for row in table_of(matrix))
    return [[x / mass for x in row] for row, mass in sums if mass]


def table_of(matrix: FloatArray) -> Rows:
    """The entries as decimals, which hold every digit of a float."""
    return [decimals(row) for row in matrix]


def decimals(row: Iterable[float]) -> list[Decimal]:
    """Floats as decimals, without rounding."""
    return [Decimal(float(x)) for x in row]


def mixed(weights: Sequence[Decimal], rows: Rows) -> list[Decimal]:
    """The mean of some rows under weights."""
    return [dot(weights, column) for column in zip(*rows, strict=True)]


def dot(left: Sequence[Decimal], right: Sequence[Decimal]) -> Decimal:
    """Inner product of two rows of decimals."""
    return total(x * y for x, y in zip(left, right, strict=True))


def phi(law: Sequence[Decimal]) -> Decimal:
    """`sum v log(v / sum v)`: minus the entropy of a law, times its mass."""
    mass = total(law)
    return total(x * (x / mass).ln() for x in law if x > 0)


def log_sum(terms: Sequence[Decimal]) -> Decimal:
    """`log sum_k e^(t_k)` of decimals, the largest taken out first."""
    peak = max(terms)
    return peak + total((term - peak).exp() for term in terms).ln()


def normalised(logs: Iterable[float]) -> list[Decimal]:
    """Logarithms of a law, less the log-sum of all."""
    terms = decimals(logs)
    whole = log_sum(terms)
    return [term - whole for term in terms]
