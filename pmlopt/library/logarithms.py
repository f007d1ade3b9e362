"""Levels that are the logarithm of a rational, as problem files and plans of releases write them."""

from __future__ import annotations

import math
import reprlib
from collections.abc import Mapping
from fractions import Fraction
from typing import Any

from pmlopt.errors import InstanceError


def parse_logarithm(table: Mapping[str, Any], path: str) -> float:
    """Parse a rational logarithm `{ log = "9/8" }`.

    Raises:
        InstanceError: it is another table, or the number is not positive or too long.

    Examples:
        >>> parse_logarithm({"log": "9/8"}, "epsilon") == math.log(1.125)
        True
    """
    text = str(table["log"]) if set(table) == {"log"} else ""
    exponent = text.lower().partition("e")[2]
    try:
        # Characters of a rational in a file: the powers of ten at the end of the floats have 309 digits.
        # Of a rational written like 1e-3: floats, and with them the levels of mechanisms, end at 308.
        if len(text) > 400 or (exponent and abs(int(exponent)) > 400):
            raise ValueError
        return math.log(Fraction(text))
    except (ValueError, ZeroDivisionError, OverflowError):
        raise InstanceError(
            f"{path} is {reprlib.repr(dict(table))}: write a number, or {{ log = ... }} of a positive "
            'rational such as "9/8"'
        ) from None
