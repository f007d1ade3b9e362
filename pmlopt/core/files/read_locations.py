"""Locations in input data, with their error messages."""

from __future__ import annotations

import reprlib
from collections.abc import Sequence
from types import NoneType
from typing import Any, NoReturn

import numpy as np

from pmlopt.core.records.fields import Context, Shape

MAX_NESTING_DEPTH = 50
"""Levels of nesting that are read: a certificate has ten, and the interpreter breaks off at a thousand."""

NULL, FLAG, WHOLE, NUMBER, TEXT, LIST, TABLE = (
    "null", "true or false", "a whole number", "a number", "text", "a list", "a table",
)  # fmt: skip
FORMS: tuple[tuple[Any, str], ...] = (
    (NoneType, NULL), (bool, FLAG), (int, WHOLE), (float, NUMBER), (str, TEXT), (list | np.ndarray, LIST),
    (dict, TABLE),
)  # fmt: skip
"""What plain data may be, and the words for it."""


class ReadLocation:
    """A location in input data: path, depth, context and record sizes."""

    __slots__ = ("context", "depth", "path", "sizes")

    def __init__(self, context: Context, path: str, sizes: dict[str, int], depth: int = 0) -> None:
        self.context = context
        self.path = path
        self.sizes = sizes
        self.depth = depth

    def fail(self, problem: str) -> NoReturn:
        """Raise the context's error with the location's path."""
        raise self.context.error(f"{self.path or 'the record'} {problem}")

    def refuse(self, data: Any, wanted: str) -> NoReturn:
        """Raise an error that data have the wrong form."""
        self.fail(f"is {reprlib.repr(data)}: it must be {wanted}")

    def enter_nested_list(self, *index: Any) -> ReadLocation:
        """Return the location of a nested list entry."""
        path = self.path + "".join(f"[{int(k)}]" for k in index)
        return ReadLocation(self.context, path, self.sizes, self.depth)

    def enter(self, key: str | int, sizes: dict[str, int] | None = None) -> ReadLocation:
        """Return the location of a list entry, table entry or record field."""
        path = extend_path(self.path, key)
        found = ReadLocation(
            self.context, path, self.sizes if sizes is None else sizes, self.depth + 1
        )
        if found.depth > MAX_NESTING_DEPTH:
            found.fail(f"is nested deeper than {MAX_NESTING_DEPTH} levels")
        return found

    def check_size(self, shape: Sequence[int], note: Shape) -> None:
        """Raise an error where a shape does not match its annotation."""
        if len(shape) != len(note.sizes):
            self.fail(f"has the shape {tuple(shape)}: it must have {len(note.sizes)} dimensions")
        for size, length in zip(note.sizes, shape, strict=True):
            wanted = size if isinstance(size, int) else self.sizes.setdefault(size, length)
            if wanted != length:
                told = "" if isinstance(size, int) else f" ({size} is {wanted} here)"
                self.fail(f"has the shape {tuple(shape)}: {length} must be {wanted}{told}")


def extend_path(path: str, key: str | int) -> str:
    """Append a key or index to a path."""
    return f"{path}[{key}]" if isinstance(key, int) else f"{path}.{key}".lstrip(".")


def describe_form(data: Any) -> str:
    """Return the JSON type of plain data as a word."""
    return next((word for kind, word in FORMS if isinstance(data, kind)), type(data).__name__)


def describe_forms(forms: set[str]) -> str:
    """Return text on the allowed JSON types."""
    return " or ".join(sorted(forms - ({WHOLE} if NUMBER in forms else set())))
