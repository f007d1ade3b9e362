"""The base of converters, and those of scalars: numbers, text and labels."""

from __future__ import annotations

import math
import re
import reprlib
from abc import ABC, abstractmethod
from collections.abc import Callable, Hashable, Mapping, Sequence
from fractions import Fraction
from types import NoneType
from typing import Any, TypeAlias, get_args

import numpy as np

from pmlopt.core.files.read_locations import (
    FLAG,
    LIST,
    NULL,
    NUMBER,
    TABLE,
    TEXT,
    WHOLE,
    ReadLocation,
    describe_form,
)
from pmlopt.core.records.fields import COUNT, INFINITE, Range, Shape, resolve_alias

Schema: TypeAlias = dict[str, Any]
INFINITIES = {"inf": math.inf, "-inf": -math.inf}
"""How infinite numbers are written, for which JSON has no word."""


class Converter(ABC):
    """The base of converters of one field type."""

    forms: frozenset[str]

    def __init__(self, kind: Any, notes: Sequence[Any]) -> None:
        self.kind = kind
        self.args = tuple(map(resolve_alias, get_args(kind)))
        self.notes = notes
        self.shape = next((note for note in notes if isinstance(note, Shape)), None)

    @abstractmethod
    def read(self, data: Any, place: ReadLocation) -> Any:
        """Convert plain data to the field's value, strictly."""

    @abstractmethod
    def schemas(self, defs: dict[str, Schema]) -> list[Schema]:
        """Return the JSON schemas of the plain data."""

    def add_range(self, schema: Schema) -> Schema:
        """Add the range of a number to its JSON schema."""
        found = dict(schema)
        for note in self.notes:
            if isinstance(note, Range):
                ends = {"minimum": note.low, "maximum": note.high}
                found |= {key: end for key, end in ends.items() if not math.isinf(end)}
        return found


def read_number(data: Any, place: ReadLocation, kind: Any, notes: Sequence[Any]) -> Any:
    """Read a number within its annotated ranges."""
    value = INFINITIES.get(data, math.nan) if isinstance(data, str) else data
    if kind is float:
        try:
            value = float(value)
        except OverflowError:
            place.fail("is too large for a float: give a number below 1e308")
        if not (math.isfinite(value) or (INFINITE in notes and not math.isnan(value))):
            place.fail(f"is {value}: it must be a finite number")
    for note in notes:
        if isinstance(note, Range) and not note.low <= value <= note.high:
            place.refuse(data, str(note))
    if COUNT in notes and value > (most := place.context.max_letters):
        place.fail(f"is {reprlib.repr(data)}: a file of this length may speak of {most:,} at most")
    return value


def _read_fraction(data: Any, place: ReadLocation, _: Any, __: Any) -> Fraction:
    """Read an exact fraction."""
    text = str(data) if isinstance(data, int) else data
    # Digits of a fraction; Python refuses whole numbers of more than 4,300.
    if len(text) > 4_000 or not re.fullmatch(r"-?[0-9]+(/[0-9]+)?", text):
        place.refuse(data, "a fraction of whole numbers, such as '3/8'")
    above, _, under = text.partition("/")
    if under and not int(under):
        place.fail(f"is {reprlib.repr(data)}: it must not be divided by 0")
    return Fraction(int(above), int(under or 1))


def _read_unchanged(data: Any, _: ReadLocation, __: Any, ___: Any) -> Any:
    """Return plain data unchanged."""
    return data


def read_label_or_data(data: Any, place: ReadLocation, kind: Any, _: Any = ()) -> Any:
    """Read a label (lists as tuples), or any plain data."""
    if isinstance(data, list):
        made: Callable[..., Any] = list if kind is Any else tuple
        kinds = set(map(type, data))  # tables have many
        if kinds <= {int, bool, str} or (kinds == {float} and np.isfinite(data).all()):
            return made(data)
        return made(read_label_or_data(part, place.enter(k), kind) for k, part in enumerate(data))
    if describe_form(data) not in SCALARS[kind][0] or (
        isinstance(data, float) and not math.isfinite(data)
    ):
        place.refuse(data, "text, a finite number or a list of these")
    if isinstance(data, dict):
        return {key: read_label_or_data(part, place.enter(key), kind) for key, part in data.items()}
    return data


SCALARS: Mapping[Any, tuple[set[str], Schema, Callable[..., Any]]] = {
    float: ({WHOLE, NUMBER}, {"type": "number"}, read_number),
    int: ({WHOLE}, {"type": "integer"}, read_number),
    str: ({TEXT}, {"type": "string"}, _read_unchanged),
    bool: ({FLAG}, {"type": "boolean"}, _read_unchanged),
    NoneType: ({NULL}, {"type": "null"}, _read_unchanged),
    Fraction: (
        {TEXT, WHOLE}, {"type": ["string", "integer"], "pattern": "^-?[0-9]+(/[0-9]+)?$"}, _read_fraction,
    ),
    Hashable: ({FLAG, WHOLE, NUMBER, TEXT, LIST}, {"$ref": "#/$defs/label"}, read_label_or_data),
    Any: ({NULL, FLAG, WHOLE, NUMBER, TEXT, LIST, TABLE}, {}, read_label_or_data),
}  # fmt: skip
"""Types without parts: what their plain data may be, the JSON schema of these, and how they are read."""


class ScalarConverter(Converter):
    """A converter of scalar types."""

    def __init__(self, kind: Any, notes: Sequence[Any]) -> None:
        super().__init__(kind, notes)
        forms, self.schema, self.reading = SCALARS[kind]
        self.infinite = kind is float and INFINITE in notes
        self.forms = frozenset(forms | ({TEXT} if self.infinite else set()))

    def read(self, data: Any, place: ReadLocation) -> Any:
        """Convert plain data to the field's value, strictly."""
        return self.reading(data, place, self.kind, self.notes)

    def schemas(self, defs: dict[str, Schema]) -> list[Schema]:
        """Return the JSON schemas of the plain data."""
        return [*([{"enum": [*INFINITIES]}] if self.infinite else []), self.add_range(self.schema)]


class EnumConverter(Converter):
    """A converter of types with few values: named values, literals and enums."""

    def __init__(self, values: Mapping[Any, Any], notes: Sequence[Any]) -> None:
        super().__init__(None, notes)
        self.values = values
        self.forms = frozenset(map(describe_form, values))

    def read(self, data: Any, place: ReadLocation) -> Any:
        """Convert plain data to the field's value, strictly."""
        if data not in self.values:
            place.refuse(data, f"one of {', '.join(map(repr, self.values))}")
        return self.values[data]

    def schemas(self, defs: dict[str, Schema]) -> list[Schema]:
        """Return the JSON schemas of the plain data."""
        return [{"enum": list(self.values)}]
