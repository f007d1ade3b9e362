"""Exact differences of large numbers, such as nanosecond times.

Floats hold whole numbers to 2^53 only. The difference of two numbers of any size is taken exactly here, and
rounded once.
"""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pmlopt.core.numbers.arrays import FloatArray

MAX_EXACT_INTEGER = 2**53
"""The largest size up to which every whole number is a float."""

MAX_DIFFERENCE = 1e150
"""The largest difference of numbers whose square is a float, and one over the least."""


def is_label_number(label: Any) -> bool:
    """Return whether a label is an int or float, and no truth value."""
    return isinstance(label, int | float) and not isinstance(label, bool)


def subtract_exactly(x: Any, y: Any) -> float:
    """Subtract two numbers exactly, and round once to a float.

    Raises:
        TypeError: they have no difference.
        OverflowError: it is larger than every float.

    Examples:
        >>> subtract_exactly(2**53 + 1, 2**53), subtract_exactly(2**53 + 1, 2.0**53)
        (1.0, 1.0)
    """
    if _mixes_sizes(x, y) or _mixes_sizes(y, x):
        return float(Fraction(x) - Fraction(y))
    return float(x - y)


def _mixes_sizes(whole: Any, real: Any) -> bool:
    """Return whether Python's int-float subtraction would round first."""
    return isinstance(whole, int) and abs(whole) > MAX_EXACT_INTEGER and isinstance(real, float)


def to_exact_array(values: Any) -> NDArray[Any]:
    """Convert numbers to an exact array: floats where exact, else objects.

    Args:
        values: finite numbers, or nested lists or an array of them.

    Examples:
        >>> to_exact_array([0.5, 2]).dtype.name, to_exact_array([0.5, 2**53 + 1]).tolist()
        ('float64', [Fraction(1, 2), 9007199254740993])
    """
    if isinstance(values, np.ndarray) and values.dtype.kind == "f":
        return values.astype(float)
    objects = np.array(values, dtype=object)
    plain = [_to_plain_number(value) for value in objects.ravel().tolist()]
    if all(isinstance(value, float) or abs(value) <= MAX_EXACT_INTEGER for value in plain):
        return np.array(plain, dtype=float).reshape(objects.shape)
    found = np.empty(len(plain), dtype=object)
    found[:] = [Fraction(value) if isinstance(value, float) else value for value in plain]
    return found.reshape(objects.shape)


def _to_plain_number(value: Any) -> int | float:
    """Convert a number to an int or float."""
    if isinstance(value, float):
        return float(value)
    return int(value) if value == int(value) else float(value)


def subtract_arrays(values: NDArray[Any], origins: NDArray[Any]) -> FloatArray:
    """Subtract arrays of `to_exact_array` with a single rounding.

    Raises:
        OverflowError: one is larger than every float.

    Examples:
        >>> times = to_exact_array([2**60, 2**60 + 1])
        >>> subtract_arrays(times, times[:1]).tolist()
        [0.0, 1.0]
    """
    if values.dtype == origins.dtype == float:
        return np.asarray(values - origins)
    if values.dtype == float or origins.dtype == float:  # exactly, in the type of the other side
        to_fractions = np.vectorize(Fraction, otypes=[object])
        values = to_fractions(values)
        origins = to_fractions(origins)
    return np.asarray(values - origins).astype(float)
