"""Short descriptions of values for messages."""

from __future__ import annotations

import reprlib
from collections.abc import Sequence
from typing import Any

MAX_SHOWN_CHARACTERS = 80
"""Characters that a value takes in a message."""
MAX_SHOWN_ENTRIES = 12
"""Entries up to which an array is shown."""

_SHORT = reprlib.Repr()
_SHORT.maxstring = _SHORT.maxother = MAX_SHOWN_CHARACTERS
_SHORT.maxlevel = 3
_SHORT.maxlist = MAX_SHOWN_ENTRIES
_SHORT.maxtuple = MAX_SHOWN_ENTRIES


def describe_value(value: Any) -> str:
    """Describe a value in a short phrase.

    Examples:
        >>> describe_value("hamming"), describe_value(lambda x: x), describe_value(sorted)
        ("'hamming'", 'a function without a name', "the function 'sorted'")
        >>> import numpy as np
        >>> describe_value(np.eye(50)), describe_value(object()), describe_value([1, 2])
        ('an array of shape (50, 50)', 'an object of the class object', '[1, 2]')
    """
    if isinstance(value, type):
        return f"the class {value.__name__}"
    shape = getattr(value, "shape", None)
    if isinstance(shape, tuple) and hasattr(value, "__array__"):
        return _describe_array(value, shape)
    if callable(value) and hasattr(value, "__name__"):
        name = str(value.__name__)
        return "a function without a name" if name == "<lambda>" else f"the function {name!r}"
    try:
        text = " ".join(_SHORT.repr(value).split())
    except Exception:  # a user's class may raise anything
        text = " at 0x"
    if " at 0x" in text or "<lambda>" in text:
        kind = type(value).__name__
        article = "an" if kind[0] in "aeiou" else "a"
        builtin = isinstance(value, list | tuple | dict | set | frozenset)
        return f"{article} {kind}" if builtin else f"an object of the class {kind}"
    return text if len(text) <= 2 * MAX_SHOWN_CHARACTERS else f"{text[:MAX_SHOWN_CHARACTERS]}..."


def _describe_array(value: Any, shape: tuple[Any, ...]) -> str:
    """Describe an array, series or frame by type and shape, with the entries of small ones."""
    kind = type(value).__name__
    numbers = getattr(getattr(value, "dtype", None), "kind", "") in tuple("biuf")
    if kind in ("ndarray", "generic") and numbers and value.size <= MAX_SHOWN_ENTRIES:
        return _SHORT.repr(value.tolist())
    if numbers and shape == ():
        return str(value)
    name = "array" if kind in ("ndarray", "MaskedArray") else kind
    return f"{'an' if name[0].lower() in 'aeiou' else 'a'} {name} of shape {shape}"


def escape_control_characters(text: str) -> str:
    r"""Escape control characters and undecodable bytes in a text.

    Labels and names of files come from those who made them, and must not look like what pmlopt prints.

    Examples:
        >>> (
        ...     escape_control_characters("yes"),
        ...     escape_control_characters("no\nThe claim holds"),
        ...     escape_control_characters("\x1b[2K"),
        ... )
        ('yes', 'no\\nThe claim holds', '\\x1b[2K')
    """
    return "".join(
        character if character.isprintable() else character.encode("unicode_escape").decode()
        for character in text
    )


def describe_position(index: Sequence[int]) -> str:
    """Format the index of an entry for a message, such as "row 3, column 1"."""
    if not index:
        return "its only position"
    if len(index) == 1:
        return f"position {index[0]}"
    return f"row {index[0]}, column {index[1]}"
