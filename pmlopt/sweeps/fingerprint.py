"""What a sweep is made from, as a text: a journal on disk must be of the same sweep."""

from __future__ import annotations

import dataclasses
import hashlib
import reprlib
from collections.abc import Iterator, Mapping, Set
from functools import cached_property, partial
from types import CodeType, MethodType, ModuleType
from typing import Any

import numpy as np

from pmlopt.errors import SweepError

DEPTH = 30
"""How deep data may be nested: deeper than tables and closures are, and far from the end of a recursion."""


def name_of(builder: Any) -> str:
    """The full name of a builder; that of a partial function is the name of the function.

    Examples:
        >>> name_of(partial(name_of, 1))
        'pmlopt.sweeps.fingerprint.name_of'
    """
    if isinstance(builder, partial):
        return name_of(builder.func)
    named = builder if _is_named(builder) else type(builder)
    return f"{getattr(named, '__module__', None)}.{named.__qualname__}"


def _is_named(value: Any) -> bool:
    """Whether a value is a function or a class; generators have names too, and nothing to tell them by."""
    return callable(value) and hasattr(value, "__qualname__")


def fingerprint(*things: Any) -> str:
    """A short text that differs where data differ, and is the same in every process.

    Functions count by their names, their code, their defaults and what they have bound, other objects by
    what a copy of them would be made from. Global variables that a function reads do not count.

    Raises:
        SweepError: something cannot be told from another of its kind, such as a generator or an open file, or
            is nested deeper than `DEPTH`.

    Examples:
        >>> fingerprint(partial(name_of, np.eye(2))) == fingerprint(partial(name_of, np.eye(2)))
        True
        >>> fingerprint(partial(name_of, np.eye(2))) == fingerprint(partial(name_of, np.eye(3)))
        False
    """
    digest = hashlib.sha256()
    for token in _tokens(things, ()):
        digest.update(token)
    return digest.hexdigest()


def _tokens(value: Any, around: tuple[Any, ...]) -> Iterator[bytes]:
    """The parts of a value, each with its kind before it.

    Args:
        value: data or a function.
        around: what it is inside of, the outermost first.
    """
    value = value.item() if isinstance(value, np.generic) else value
    yield f"{type(value).__qualname__}:".encode()
    outer = [place for place, other in enumerate(around) if other is value]
    if value is None or isinstance(value, str | bytes | bool | int | float | complex):
        yield repr(value).encode()
    elif outer:  # it holds itself
        yield f"{outer[0]}".encode()
    elif len(around) > DEPTH:
        raise SweepError(
            f"the builder or the grid holds data nested deeper than {DEPTH}, as {reprlib.repr(around[1])}: a "
            "sweep with `out` could not tell it from others; give a file's name or plain numbers instead"
        )
    elif type(value) is np.ndarray and not value.dtype.hasobject:
        yield f"{value.dtype}{value.shape}".encode()
        yield np.ascontiguousarray(value).tobytes()
    elif isinstance(value, Set):
        yield from sorted(b"".join(_tokens(item, (*around, value))) for item in value)
    else:
        for part in _parts(value):
            yield from _tokens(part, (*around, value))
    yield b";"


def _parts(value: Any) -> list[Any]:
    if type(value) is np.ndarray:
        return [value.shape, *value.ravel().tolist()]
    if isinstance(value, Mapping):
        return [part for item in value.items() for part in item]
    if isinstance(value, list | tuple):
        return list(value)
    if isinstance(value, partial):
        return [value.func, value.args, value.keywords]
    if isinstance(value, MethodType):
        return [value.__func__, value.__self__]
    if isinstance(value, ModuleType):
        return [value.__name__]
    if isinstance(value, CodeType):
        return [value.co_code, value.co_consts, value.co_names, value.co_varnames]
    if _is_named(value):
        return _function_parts(value)
    return [name_of(value), *_fields(value)]


def _function_parts(function: Any) -> list[Any]:
    """The name of a function or a class, and what it is called with besides its arguments."""
    cells = getattr(function, "__closure__", None) or ()
    names = ("__code__", "__defaults__", "__kwdefaults__", "__wrapped__", "__self__")
    return [
        name_of(function),
        *(getattr(function, name, None) for name in names),
        *(_content(cell) for cell in cells),
    ]


def _content(cell: Any) -> Any:
    try:
        return cell.cell_contents
    except ValueError:  # not bound yet
        return None


def _fields(value: Any) -> list[Any]:
    """What an object holds: the fields of a dataclass, else what a copy of it is made from."""
    if dataclasses.is_dataclass(value):
        return [{field.name: getattr(value, field.name) for field in dataclasses.fields(value)}]
    try:
        made = value.__reduce_ex__(4)
    except Exception as cause:  # whatever a class of one's own raises
        raise SweepError(
            f"{reprlib.repr(value)} cannot be told from another {type(value).__qualname__} ({cause}), and "
            "a sweep with `out` might go on with the rows of the other: give a list, a file's name or plain "
            "numbers instead"
        ) from None
    if isinstance(made, str):
        return [made]
    function, arguments, state, items, pairs = (*made, None, None, None)[:5]
    return [function, arguments, _lasting(value, state), list(items or ()), list(pairs or ())]


def _lasting(value: Any, state: Any) -> Any:
    """The state of an object without its cached properties, which say nothing new."""
    if isinstance(state, tuple):
        return tuple(_lasting(value, part) for part in state)
    if not isinstance(state, dict):
        return state
    kind = type(value)
    return {
        name: item
        for name, item in state.items()
        if not isinstance(getattr(kind, str(name), None), cached_property)
    }
