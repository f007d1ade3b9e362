"""The values of a table: plain data, and their texts in a CSV file."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

import numpy as np

COLUMNS: Mapping[str, type] = {
    "status": str,
    "value": float,
    "bound": float,
    "gap": float,
    "level": float,
    "solver": str,
    "iterations": int,
    "warm_started": bool,
    "seconds": float,
    "error": str,
}
"""The columns of a table after those of the grid, and what they hold; any but the status may be empty."""


def plain(value: Any) -> Any:
    """A value of a grid as text, a number, a truth value or None: other objects by their name or text.

    Examples:
        >>> plain(np.float64(0.5)), plain("a"), plain(plain), plain((1, 2))
        (0.5, 'a', 'plain', '(1, 2)')
    """
    if isinstance(value, np.generic):
        value = value.item()
    if value is None or isinstance(value, str | bool | int | float):
        return value
    name = getattr(value, "__qualname__", None)
    return name if isinstance(name, str) else re.sub(r" at 0x[0-9a-fA-F]+", "", str(value))


def text_of(value: Any) -> str:
    """The cell of a value: floats with every digit, nothing for None.

    Examples:
        >>> text_of(0.1 + 0.2), text_of(None), text_of(True)
        ('0.30000000000000004', '', 'True')
    """
    known = plain(value)
    return "" if known is None else repr(known) if isinstance(known, float) else str(known)


def value_of(column: str, text: str) -> Any:
    """The value in a cell of one of `COLUMNS`: the inverse of `text_of`.

    Examples:
        >>> value_of("value", "0.30000000000000004"), value_of("error", ""), value_of("warm_started", "False")
        (0.30000000000000004, None, False)
    """
    if text == "":
        return None
    kind = COLUMNS[column]
    return text == "True" if kind is bool else kind(text)


def one_line(text: str) -> str:
    """A text with its line ends as spaces."""
    return " ".join(text.split())


def as_array(values: list[Any]) -> np.ndarray[Any, Any]:
    """Plain values as a vector: of numbers, of truth values or of text where all are, else of objects.

    Examples:
        >>> as_array([1, 2.5]).dtype.kind, as_array(["a", "b"]).dtype.kind, as_array([1, "a"]).dtype.kind
        ('f', 'U', 'O')
    """
    kinds = {type(value) for value in values}
    alike = kinds <= {int, float} or len(kinds) == 1
    return np.array(values) if alike and kinds != {type(None)} else np.array(values, dtype=object)
