"""Loss functions of a pair of labels, for `ExpectedLoss`."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from pmlopt.errors import UtilityError


def hamming(x: Any, y: Any) -> float:
    """The Hamming loss: 1 where the released label differs from the secret, 0 where it is the same.

    NaN is the same label as NaN: a missing value that is released as missing is no error.

    Examples:
        >>> hamming("a", "a"), hamming("a", "b"), hamming(float("nan"), float("nan"))
        (0.0, 1.0, 0.0)
    """
    return float(x is not y and bool(x != y) and not (_is_nan(x) and _is_nan(y)))


def _is_nan(label: Any) -> bool:
    """Whether a label is a number that is none, which no label equals, not even itself."""
    return bool(label != label)


def absolute(x: Any, y: Any) -> float:
    """The absolute loss |x - y|, on labels that are numbers.

    Examples:
        >>> absolute(3, 5)
        2.0
    """
    return abs(_difference(x, y))


def squared(x: Any, y: Any) -> float:
    """The squared loss (x - y)^2, on labels that are numbers.

    Examples:
        >>> squared(3, 5)
        4.0
    """
    difference = _difference(x, y)
    return difference * difference


LOSSES: Mapping[str, Callable[[Any, Any], float]] = {
    "hamming": hamming,
    "absolute": absolute,
    "squared": squared,
}
"""The losses by name."""


def _difference(x: Any, y: Any) -> float:
    try:
        return float(x - y)
    except TypeError:
        raise UtilityError(
            f"the labels {x!r} and {y!r} have no difference: this loss needs labels that are "
            "numbers (in a file, all of them written as 7 or 7.5, not 07 or 7.50); use the Hamming loss or "
            "a matrix for text"
        ) from None
