"""What a sweep is made from, as a text: a journal on disk must be of the same sweep."""

from __future__ import annotations

import dataclasses
import hashlib
from collections.abc import Iterator, Mapping, Set
from functools import cached_property, partial
from types import MethodType
from typing import Any

import numpy as np

from pmlopt.sweeps.table_values import plain

DEPTH = 20
"""How deep data may be nested that is told apart."""


def name_of(builder: Any) -> str:
    """The name of a builder: of a partial function that of the function.

    Examples:
        >>> name_of(partial(name_of, 1))
        'pmlopt.sweeps.fingerprint.name_of'
    """
    if isinstance(builder, partial):
        return name_of(builder.func)
    named = builder if hasattr(builder, "__qualname__") else type(builder)
    return f"{named.__module__}.{named.__qualname__}"


def fingerprint(*things: Any) -> str:
    """A short text that differs where data differ, and is the same in every process.

    Functions count by their names and what they have bound, objects by their class and their fields.

    Examples:
        >>> fingerprint(partial(name_of, np.eye(2))) == fingerprint(partial(name_of, np.eye(2)))
        True
        >>> fingerprint(partial(name_of, np.eye(2))) == fingerprint(partial(name_of, np.eye(3)))
        False
    """
    digest = hashlib.sha256()
    for token in _tokens(things, 0):
        digest.update(token)
    return digest.hexdigest()


def _tokens(value: Any, depth: int) -> Iterator[bytes]:
    """The parts of a value, each with its kind before it."""
    value = value.item() if isinstance(value, np.generic) else value
    yield f"{type(value).__qualname__}:".encode()
    if depth > DEPTH:
        return
    if value is None or isinstance(value, str | bytes | bool | int | float | complex):
        yield repr(value).encode()
    elif isinstance(value, np.ndarray) and not value.dtype.hasobject:
        yield f"{value.dtype}{value.shape}".encode()
        yield np.ascontiguousarray(value).tobytes()
    elif isinstance(value, Set):
        yield from sorted(b"".join(_tokens(item, depth + 1)) for item in value)
    else:
        for part in _parts(value):
            yield from _tokens(part, depth + 1)
    yield b";"


def _parts(value: Any) -> list[Any]:
    if isinstance(value, np.ndarray):
        return [value.shape, *value.ravel().tolist()]
    if isinstance(value, Mapping):
        return [part for item in value.items() for part in item]
    if isinstance(value, list | tuple):
        return list(value)
    if isinstance(value, partial):
        return [value.func, value.args, value.keywords]
    if isinstance(value, MethodType):
        return [value.__func__, value.__self__]
    if hasattr(value, "__qualname__"):  # a function or a class
        cells = getattr(value, "__closure__", None) or ()
        return [name_of(value), getattr(value, "__defaults__", None), *(_content(cell) for cell in cells)]
    return [name_of(value), _fields(value)]


def _content(cell: Any) -> Any:
    try:
        return cell.cell_contents
    except ValueError:  # not bound yet
        return None


def _fields(value: Any) -> Any:
    if dataclasses.is_dataclass(value):
        return {field.name: getattr(value, field.name) for field in dataclasses.fields(value)}
    if not hasattr(value, "__dict__"):
        return plain(value)
    return {
        name: item
        for name, item in vars(value).items()
        if not isinstance(getattr(type(value), name, None), cached_property)
    }
