"""Records: classes whose fields define file format, reading, writing and equality.

A record is a dataclass, or a class that inherits from `Record`. Its fields are the parameters of its
constructor, or of its class method `from_fields` where it has one; each is an attribute of the same name,
whose type the class annotates. A class with a text `kind` or `name` is distinguished from its
relatives by
it: where a field is of a base class, every subclass that is imported is known, those of other packages too.

Types of fields are `float`, `int`, `bool`, `str`, `Fraction`, `None`, `Label`, enumerations, literals, arrays
(`Annotated[FloatArray, Shape("N", "M")]`), records, and unions, tuples and mappings of these.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any, NoReturn, TypeVar

from pmlopt.core.files.read_locations import ReadLocation, extend_path
from pmlopt.core.numbers.arrays import Label
from pmlopt.core.records.converters import TupleConverter, UnionConverter
from pmlopt.core.records.fields import Context
from pmlopt.core.records.scalar_converters import Schema
from pmlopt.errors import FileFormatError, InputError

T = TypeVar("T")


def read_record(kind: type[T], data: Any, where: str = "", context: Context | None = None) -> T:
    """Read a record from plain data, strictly.

    Args:
        kind: its class, or a base of it.
        data: as `to_plain` gives it.
        where: what errors call it, before the path of what is wrong.
        context: of the record.

    Raises:
        FileFormatError: (or the error of the context) a key is missing or not known, a value has another
            type, shape or range, or the constructor refuses it. The message starts with the path.

    Examples:
        >>> from pmlopt.core.records.fields import Range
        >>> read_record(Range, {"low": 0, "high": 2.5})
        Range(low=0.0, high=2.5)
        >>> read_record(Range, {"low": 0, "high": [2]}, "file.range")
        Traceback (most recent call last):
        ...
        pmlopt.errors.FileFormatError: file.range.high is [2]: it must be a number
    """
    known = context or Context()
    found: T = UnionConverter(kind).read(data, ReadLocation(known, where, dict(known.sizes)))
    return found


class _RepeatedKey(dict[str, Any]):
    """A marker of a JSON object with a duplicate key."""

    key = ""


def parse_json(content: bytes | str, where: str, error: type[InputError] = FileFormatError) -> Any:
    """Parse JSON; raise an error for duplicate keys.

    Examples:
        >>> parse_json('{"a": [{"b": 1, "b": 2}]}', "file")
        Traceback (most recent call last):
        ...
        pmlopt.errors.FileFormatError: file.a[0] has the key 'b' twice
    """
    doubled = []

    def make_table(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        found = dict(pairs)
        if len(found) < len(pairs):
            keys = [key for key, _ in pairs]
            found = _RepeatedKey(pairs)
            found.key = next(key for key in keys if keys.count(key) > 1)
            doubled.append(found)
        return found

    def refuse_constant(text: str) -> NoReturn:
        raise ValueError(f"{text} is no number of JSON")

    try:
        data = json.loads(content, object_pairs_hook=make_table, parse_constant=refuse_constant)
    except (ValueError, RecursionError) as cause:
        raise error(f"{where}: is not a whole JSON file: {cause}") from None
    if doubled:
        path, key = next(_find_repeated_keys(data, where), (where, doubled[0].key))
        raise error(f"{path} has the key {key!r} twice")
    return data


def _find_repeated_keys(data: Any, path: str) -> Iterator[tuple[str, str]]:
    """Find the paths of objects with duplicate keys."""
    if isinstance(data, _RepeatedKey):
        yield path, data.key
    items: Any = (
        data.items()
        if isinstance(data, dict)
        else enumerate(data)
        if isinstance(data, list)
        else ()
    )
    for key, value in items:
        yield from _find_repeated_keys(value, extend_path(path, key))


def build_definitions(*kinds: type) -> dict[str, Schema]:
    """Build the JSON schemas of record classes and their parts.

    The definition of a class has the name of the class; that of a base of several has the name of the base,
    or `Any` and that name, with a list of them. Subclasses that other packages define are left out.

    Examples:
        >>> from pmlopt.core.records.fields import Range
        >>> build_definitions(Range)["Range"]["required"]
        ['low', 'high']
    """
    several = [
        {"type": ["string", "number", "boolean"]},
        TupleConverter(list[Label], ()).schemas({})[0],
    ]
    defs: dict[str, Schema] = {"label": {"description": "a list is a tuple", "anyOf": several}}
    for kind in kinds:
        UnionConverter(kind).schema(defs)
    return defs
