"""Records: classes whose fields are their file format, from which reading, writing and equality follow.

A record is a dataclass, or a class that inherits from `Record`. Its fields are the parameters of its
constructor, or of its class method `from_fields` where it has one; each is an attribute of the same name,
whose type the class annotates. A class with a text `kind` or `name` of its own is told from its relatives by
it: where a field is of a base class, every subclass that is imported is known, those of other packages too.

Types of fields are `float`, `int`, `bool`, `str`, `Fraction`, `None`, `Label`, enumerations, literals, arrays
(`Annotated[FloatArray, Shape("N", "M")]`), records, and unions, tuples and mappings of these.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Mapping
from enum import Enum
from fractions import Fraction
from typing import Any, NoReturn, TypeVar

import numpy as np

from pmlopt.core.arrays import Positions, check_json_labels
from pmlopt.core.fields import COUNT as COUNT
from pmlopt.core.fields import INFINITE as INFINITE
from pmlopt.core.fields import ROOM as ROOM
from pmlopt.core.fields import Context as Context
from pmlopt.core.fields import Field as Field
from pmlopt.core.fields import Given as Given
from pmlopt.core.fields import Named as Named
from pmlopt.core.fields import Range as Range
from pmlopt.core.fields import Record as Record
from pmlopt.core.fields import Shape as Shape
from pmlopt.core.fields import fields_of as fields_of
from pmlopt.core.fields import is_labels, is_record, members, split, tag_of, written_as
from pmlopt.core.fields import kinds_of as kinds_of
from pmlopt.core.fields import same as same
from pmlopt.core.strict import Reader, below
from pmlopt.errors import FileFormatError, InputError

T = TypeVar("T")


def read(kind: type[T], data: Any, where: str = "", context: Context | None = None) -> T:
    """The record that plain data say, read strictly.

    Args:
        kind: its class, or a base of it.
        data: as `plain` gives it.
        where: what errors call it, before the path of what is wrong.
        context: in which it stands.

    Raises:
        FileFormatError: (or the error of the context) a key is missing or not known, a value has another
            type, shape or range, or the constructor refuses it. The message starts with the path.

    Examples:
        >>> read(Range, {"low": 0, "high": 2.5})
        Range(low=0.0, high=2.5)
        >>> read(Range, {"low": 0, "high": [2]}, "file.range")
        Traceback (most recent call last):
        ...
        pmlopt.errors.FileFormatError: file.range.high is [2]: it must be a number
    """
    reader = Reader(context or Context())
    found: T = reader.read(kind, data, where, dict(reader.context.sizes), 0)
    return found


class _Doubled(dict[str, Any]):
    """A table of a JSON file in which a key stands twice."""

    key = ""


def parse_json(content: bytes | str, where: str, error: type[InputError] = FileFormatError) -> Any:
    """Plain data of a JSON text, of which no key may stand twice in a table.

    Examples:
        >>> parse_json('{"a": [{"b": 1, "b": 2}]}', "file")
        Traceback (most recent call last):
        ...
        pmlopt.errors.FileFormatError: file.a[0] has the key 'b' twice
    """
    doubled = []

    def table(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        found = dict(pairs)
        if len(found) < len(pairs):
            keys = [key for key, _ in pairs]
            found = _Doubled(pairs)
            found.key = next(key for key in keys if keys.count(key) > 1)
            doubled.append(found)
        return found

    def constant(text: str) -> NoReturn:
        raise ValueError(f"{text} is no number of JSON")

    try:
        data = json.loads(content, object_pairs_hook=table, parse_constant=constant)
    except (ValueError, RecursionError) as cause:
        raise error(f"{where}: is not a whole JSON file: {cause}") from None
    if doubled:
        path, key = next(_doubled_in(data, where), (where, doubled[0].key))
        raise error(f"{path} has the key {key!r} twice")
    return data


def _doubled_in(data: Any, path: str) -> Iterator[tuple[str, str]]:
    """Where tables have a key twice."""
    if isinstance(data, _Doubled):
        yield path, data.key
    items: Any = data.items() if isinstance(data, dict) else enumerate(data) if isinstance(data, list) else ()
    for key, value in items:
        yield from _doubled_in(value, below(path, key))


def plain(value: Any, context: Context | None = None) -> Any:
    """A record as plain data, from which `read` in the same context makes it again.

    Where the context is not `complete`, fields that have their defaults are left out, as in problem files.

    Raises:
        FileFormatError: a value is none that a file can hold, or a class has no tag of its own.

    Examples:
        >>> plain(Range(0.0, 2.0)), plain(Range(0.0), Context(complete=False))
        ({'low': 0.0, 'high': 2.0}, {'low': 0.0})
    """
    return _plain(value, Any, context or Context())


def _plain(value: Any, kind: Any, context: Context) -> Any:
    kind, notes = split(kind)
    every = [split(one) for one in members(kind)]
    for note in (*notes, *(note for _, own in every for note in own)):
        if isinstance(note, Given) and note.word in context.given and same(value, context.given[note.word]):
            return note.word
    for note in (*notes, *(note for _, own in every for note in own)):
        names = [word for word, one in note.values.items() if one is value] if isinstance(note, Named) else []
        if names:
            return names[0]
    if isinstance(value, tuple) and any(is_labels(one) for one, _ in every):
        check_json_labels(value)
        return len(value) if isinstance(value, Positions) else [_listed(label) for label in value]
    if isinstance(value, np.ndarray | np.generic):
        if value.dtype.kind != "f" or np.isfinite(value).all():
            return value.tolist()
        value = value.tolist()
    if isinstance(value, tuple | list):
        return [_plain(part, Any, context) for part in value]
    if isinstance(value, Mapping):
        return {str(key): _plain(part, Any, context) for key, part in value.items()}
    return _record(value, context) if is_record(type(value)) else _single(value)


def _single(value: Any) -> Any:
    """A value that is no record, and no list or mapping of them."""
    if isinstance(value, Enum):
        return value.value
    if value is None or isinstance(value, str | int):
        return value
    if isinstance(value, float) and not math.isnan(value):
        return value if math.isfinite(value) else str(value)
    if isinstance(value, Fraction):
        return str(value)
    raise FileFormatError(f"{value!r:.80} cannot be written to a file")


def _record(value: Any, context: Context) -> dict[str, Any]:
    kind, tag = written_as(type(value)), tag_of(type(value))
    found = {} if tag is None else dict([tag])
    for one in fields_of(kind):
        own = getattr(value, one.name)
        if context.complete or one.required or not same(own, one.default):
            found[one.name] = _plain(own, one.type, context)
    return found


def _listed(label: Any) -> Any:
    """A label, of which tuples are lists."""
    if isinstance(label, tuple):
        return [_listed(part) for part in label]
    return label.item() if isinstance(label, np.generic) else label
