"""The types that fields of records may have: how each is read strictly, written, and described by a schema.

Whatever is not stated to be allowed is refused, with its path.
"""

from __future__ import annotations

import inspect
import math
import re
import reprlib
from abc import ABC, abstractmethod
from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import is_dataclass
from enum import Enum
from fractions import Fraction
from functools import lru_cache
from itertools import chain
from types import NoneType, UnionType
from typing import Any, Literal, NoReturn, TypeAlias, Union, get_args, get_origin

import numpy as np

from pmlopt.core.arrays import DefaultLabels, check_json_labels
from pmlopt.core.fields import (
    COUNT,
    INFINITE,
    Context,
    ContextReference,
    Field,
    NamedValues,
    Range,
    Record,
    Shape,
    find_tagged_classes,
    get_constructor,
    get_fields,
    get_tag,
    get_written_class,
    have_equal_content,
    resolve_alias,
    separate_notes,
)  # fmt: skip
from pmlopt.core.suggestions import did_you_mean
from pmlopt.errors import FileFormatError, InputError

Schema: TypeAlias = dict[str, Any]

MAX_NESTING_DEPTH = 50
"""Levels of nesting that are read: a certificate has ten, and the interpreter breaks off at a thousand."""
INFINITIES = {"inf": math.inf, "-inf": -math.inf}
"""How infinite numbers are written, for which JSON has no word."""

NULL, FLAG, WHOLE, NUMBER, TEXT, LIST, TABLE = (
    "null", "true or false", "a whole number", "a number", "text", "a list", "a table",
)  # fmt: skip
FORMS: tuple[tuple[Any, str], ...] = (
    (NoneType, NULL), (bool, FLAG), (int, WHOLE), (float, NUMBER), (str, TEXT), (list | np.ndarray, LIST),
    (dict, TABLE),
)  # fmt: skip
"""What plain data may be, and the words for it."""


class ReadLocation:
    """A location in data that are read: path and depth in the file, the context, and the sizes of the
    record.
    """

    __slots__ = ("context", "depth", "path", "sizes")

    def __init__(self, context: Context, path: str, sizes: dict[str, int], depth: int = 0) -> None:
        self.context, self.path, self.sizes, self.depth = context, path, sizes, depth

    def fail(self, problem: str) -> NoReturn:
        """Raise the error of the context, with the path of what is wrong."""
        raise self.context.error(f"{self.path or 'the record'} {problem}")

    def refuse(self, data: Any, wanted: str) -> NoReturn:
        """Raise for data that should be something else."""
        self.fail(f"is {reprlib.repr(data)}: it must be {wanted}")

    def enter_nested_list(self, *index: Any) -> ReadLocation:
        """Return the location of an entry of nested lists."""
        path = self.path + "".join(f"[{int(k)}]" for k in index)
        return ReadLocation(self.context, path, self.sizes, self.depth)

    def enter(self, key: str | int, sizes: dict[str, int] | None = None) -> ReadLocation:
        """Return the location of an entry of a list or a table, or of a field of a record with sizes of
        its own.
        """
        path = extend_path(self.path, key)
        found = ReadLocation(
            self.context, path, self.sizes if sizes is None else sizes, self.depth + 1
        )
        if found.depth > MAX_NESTING_DEPTH:
            found.fail(f"is nested deeper than {MAX_NESTING_DEPTH} levels")
        return found

    def check_size(self, shape: Sequence[int], note: Shape) -> None:
        """Raise for a shape that is not the one of the note."""
        if len(shape) != len(note.sizes):
            self.fail(f"has the shape {tuple(shape)}: it must have {len(note.sizes)} dimensions")
        for size, length in zip(note.sizes, shape, strict=True):
            wanted = size if isinstance(size, int) else self.sizes.setdefault(size, length)
            if wanted != length:
                told = "" if isinstance(size, int) else f" ({size} is {wanted} here)"
                self.fail(f"has the shape {tuple(shape)}: {length} must be {wanted}{told}")


def extend_path(path: str, key: str | int) -> str:
    """Return the path of an entry of a list or a table."""
    return f"{path}[{key}]" if isinstance(key, int) else f"{path}.{key}".lstrip(".")


def describe_form(data: Any) -> str:
    """Return what plain data are, in a word."""
    return next((word for kind, word in FORMS if isinstance(data, kind)), type(data).__name__)


class Converter(ABC):
    """A type of a field, with its notes, that is no union; `forms` are what its plain data may be."""

    forms: frozenset[str]

    def __init__(self, kind: Any, notes: Sequence[Any]) -> None:
        self.kind, self.args, self.notes = kind, tuple(map(resolve_alias, get_args(kind))), notes
        self.shape = next((note for note in notes if isinstance(note, Shape)), None)

    @abstractmethod
    def read(self, data: Any, place: ReadLocation) -> Any:
        """Return the value that plain data of the right form stand for."""

    @abstractmethod
    def schemas(self, defs: dict[str, Schema]) -> list[Schema]:
        """Return the JSON schemas of which its plain data meet one."""

    def add_range(self, schema: Schema) -> Schema:
        """Return the schema of a number, with its ends."""
        found = dict(schema)
        for note in self.notes:
            if isinstance(note, Range):
                ends = {"minimum": note.low, "maximum": note.high}
                found |= {key: end for key, end in ends.items() if not math.isinf(end)}
        return found


def _read_number(data: Any, place: ReadLocation, kind: Any, notes: Sequence[Any]) -> Any:
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
    text = str(data) if isinstance(data, int) else data
    # Digits of a fraction; Python refuses whole numbers of more than 4,300.
    if len(text) > 4_000 or not re.fullmatch(r"-?[0-9]+(/[0-9]+)?", text):
        place.refuse(data, "a fraction of whole numbers, such as '3/8'")
    above, _, under = text.partition("/")
    if under and not int(under):
        place.fail(f"is {reprlib.repr(data)}: it must not be divided by 0")
    return Fraction(int(above), int(under or 1))


def _read_unchanged(data: Any, _: ReadLocation, __: Any, ___: Any) -> Any:
    return data


def _read_open(data: Any, place: ReadLocation, kind: Any, _: Any = ()) -> Any:
    """Return a label, of which lists are tuples, or any plain data."""
    if isinstance(data, list):
        made: Callable[..., Any] = list if kind is Any else tuple
        kinds = set(map(type, data))  # tables have many
        if kinds <= {int, bool, str} or (kinds == {float} and np.isfinite(data).all()):
            return made(data)
        return made(_read_open(part, place.enter(k), kind) for k, part in enumerate(data))
    if describe_form(data) not in SCALARS[kind][0] or (
        isinstance(data, float) and not math.isfinite(data)
    ):
        place.refuse(data, "text, a finite number or a list of these")
    if isinstance(data, dict):
        return {key: _read_open(part, place.enter(key), kind) for key, part in data.items()}
    return data


SCALARS: Mapping[Any, tuple[set[str], Schema, Callable[..., Any]]] = {
    float: ({WHOLE, NUMBER}, {"type": "number"}, _read_number),
    int: ({WHOLE}, {"type": "integer"}, _read_number),
    str: ({TEXT}, {"type": "string"}, _read_unchanged),
    bool: ({FLAG}, {"type": "boolean"}, _read_unchanged),
    NoneType: ({NULL}, {"type": "null"}, _read_unchanged),
    Fraction: (
        {TEXT, WHOLE}, {"type": ["string", "integer"], "pattern": "^-?[0-9]+(/[0-9]+)?$"}, _read_fraction,
    ),
    Hashable: ({FLAG, WHOLE, NUMBER, TEXT, LIST}, {"$ref": "#/$defs/label"}, _read_open),
    Any: ({NULL, FLAG, WHOLE, NUMBER, TEXT, LIST, TABLE}, {}, _read_open),
}  # fmt: skip
"""Types without parts: what their plain data may be, the JSON schema of these, and how they are read."""


class ScalarConverter(Converter):
    """A converter of a type of `SCALARS`."""

    def __init__(self, kind: Any, notes: Sequence[Any]) -> None:
        super().__init__(kind, notes)
        forms, self.schema, self.reading = SCALARS[kind]
        self.infinite = kind is float and INFINITE in notes
        self.forms = frozenset(forms | ({TEXT} if self.infinite else set()))

    def read(self, data: Any, place: ReadLocation) -> Any:
        return self.reading(data, place, self.kind, self.notes)

    def schemas(self, defs: dict[str, Schema]) -> list[Schema]:
        return [*([{"enum": [*INFINITIES]}] if self.infinite else []), self.add_range(self.schema)]


class EnumConverter(Converter):
    """A converter of a type with few values, by what is written for each: named ones, literals and
    enumerations.
    """

    def __init__(self, values: Mapping[Any, Any], notes: Sequence[Any]) -> None:
        super().__init__(None, notes)
        self.values, self.forms = values, frozenset(map(describe_form, values))

    def read(self, data: Any, place: ReadLocation) -> Any:
        if data not in self.values:
            place.refuse(data, f"one of {', '.join(map(repr, self.values))}")
        return self.values[data]

    def schemas(self, defs: dict[str, Schema]) -> list[Schema]:
        return [{"enum": list(self.values)}]


class TupleConverter(Converter):
    """A converter of a tuple of so many parts, each of its type, or of a list of any number of one type."""

    forms = frozenset({LIST})

    def __init__(self, kind: Any, notes: Sequence[Any]) -> None:
        super().__init__(kind, notes)
        self.fixed = len(self.args) > 1 and self.args[1] is not Ellipsis
        self.parts = [UnionConverter(one) for one in (self.args if self.fixed else self.args[:1])]

    def read(self, data: Any, place: ReadLocation) -> Any:
        parts = self.parts if self.fixed else self.parts * len(data)
        if len(data) != len(parts):
            place.fail(f"has {len(data)} entries: it must have {len(parts)}")
        if self.shape is not None:
            place.check_size((len(data),), self.shape)
        if self.args[0] is Hashable and not self.fixed:
            return _read_open(data, place, Hashable)
        return tuple(one.read(data[k], place.enter(k)) for k, one in enumerate(parts))

    def schemas(self, defs: dict[str, Schema]) -> list[Schema]:
        parts = [one.schema(defs) for one in self.parts]
        if self.fixed:
            return [{"type": "array", "prefixItems": parts, "items": False, "minItems": len(parts)}]
        return [{"type": "array", "items": parts[0]}]


class LabelsConverter(TupleConverter):
    """A converter of labels, or of the number of letters without names, for which `DefaultLabels` stand."""

    forms = frozenset({LIST, WHOLE})

    def read(self, data: Any, place: ReadLocation) -> Any:
        if not isinstance(data, int):
            return super().read(data, place)
        found = DefaultLabels(_read_number(data, place, int, (Range(1), COUNT)))
        if self.shape is not None:
            place.check_size((len(found),), self.shape)
        return found

    def schemas(self, defs: dict[str, Schema]) -> list[Schema]:
        several = [*super().schemas(defs), {"type": "integer", "minimum": 1}]
        return [
            {
                "description": "the labels, or the number of letters that nobody named",
                "anyOf": several,
            }
        ]


class MappingConverter(Converter):
    """A converter of a mapping of texts to values of one type."""

    forms = frozenset({TABLE})

    def __init__(self, kind: Any, notes: Sequence[Any]) -> None:
        super().__init__(kind, notes)
        self.part = UnionConverter(self.args[1])

    def read(self, data: Any, place: ReadLocation) -> Any:
        return {key: self.part.read(part, place.enter(key)) for key, part in data.items()}

    def schemas(self, defs: dict[str, Schema]) -> list[Schema]:
        return [{"type": "object", "additionalProperties": self.part.schema(defs)}]


class ArrayConverter(Converter):
    """A converter of an array, written as nested lists; without a shape, of the depth of its first entry."""

    ENTRIES: Mapping[Any, type] = {
        np.float64: float,
        np.int64: int,
        np.object_: int,
        np.bool_: bool,
    }

    def __init__(self, kind: Any, notes: Sequence[Any]) -> None:
        super().__init__(kind, notes)
        self.scalar = resolve_alias(get_args(self.args[1])[0])
        self.entry = self.ENTRIES[self.scalar]
        self.forms = frozenset({LIST} | ({NUMBER, WHOLE, FLAG} if self.shape is None else set()))

    def read(self, data: Any, place: ReadLocation) -> Any:
        shape, leaves = self._flatten(
            data.tolist() if isinstance(data, np.ndarray) else data, place
        )
        if self.shape is not None:
            place.check_size(shape, self.shape)

        def check_leaves(wrong: Any, wanted: str) -> None:
            _check_leaves(place, shape, leaves, wrong, wanted)

        infinite = INFINITE in self.notes
        if infinite and str in set(map(type, leaves)):
            leaves = [INFINITIES.get(leaf, leaf) if type(leaf) is str else leaf for leaf in leaves]
        allowed = {int, float} if self.entry is float else {self.entry}
        if not set(map(type, leaves)) <= allowed:
            check_leaves(
                [type(leaf) not in allowed for leaf in leaves],
                _describe_forms(SCALARS[self.entry][0]),
            )
        try:
            array = np.array(leaves, dtype=self.scalar)
        except OverflowError:
            large = 2**63 if self.scalar is np.int64 else 10**308
            check_leaves([abs(leaf) >= large for leaf in leaves], f"below {large:.3g}")
        if self.scalar is np.float64:
            check_leaves(np.isnan(array) if infinite else ~np.isfinite(array), "a finite number")
        for one in self.notes:
            if isinstance(one, Range):
                check_leaves((array < one.low) | (array > one.high), str(one))
        array = array.reshape(shape)
        array.setflags(write=False)
        return array

    def _flatten(self, data: Any, place: ReadLocation) -> tuple[tuple[int, ...], list[Any]]:
        """Return the shape of nested lists, which must be regular, and their entries in order."""
        shape: list[int] = []
        level, most = [data], MAX_NESTING_DEPTH if self.shape is None else len(self.shape.sizes)
        while level and len(shape) < most:
            if self.shape is None and type(level[0]) is not list:
                break
            if set(map(type, level)) != {list}:
                _check_leaves(
                    place, shape, level, [type(part) is not list for part in level], "a list"
                )
            lengths = [len(part) for part in level]
            if len(set(lengths)) > 1:
                first = next(k for k, length in enumerate(lengths) if length != lengths[0])
                where = place.enter_nested_list(*np.unravel_index(first, tuple(shape)))
                where.fail(f"has {lengths[first]} entries, and the first {lengths[0]}")
            shape.append(lengths[0])
            level = list(chain.from_iterable(level))
        if self.shape is not None:  # of an empty list the other sizes are not seen
            rest = self.shape.sizes[len(shape) :]
            shape += [size if isinstance(size, int) else place.sizes.get(size, 0) for size in rest]
        return tuple(shape), level

    def schemas(self, defs: dict[str, Schema]) -> list[Schema]:
        plain = SCALARS[self.entry][1]
        if self.shape is None:
            told = "nested lists of one depth, or one entry"
            return [{"description": told, "type": ["array", plain["type"]]}]
        found = self.add_range(plain)
        if INFINITE in self.notes:
            found = {"anyOf": [found, {"enum": [*INFINITIES]}]}
        for size in reversed(self.shape.sizes):
            fixed = (
                {"minItems": size, "maxItems": size} if isinstance(size, int) else {"title": size}
            )
            found = {"type": "array", **fixed, "items": found}
        return [found]


def _check_leaves(
    place: ReadLocation, shape: Sequence[int], leaves: Sequence[Any], wrong: Any, wanted: str
) -> None:
    """Raise at the first entry of nested lists that is wrong."""
    if np.any(wrong):
        first = int(np.argmax(wrong))
        place.enter_nested_list(*(np.unravel_index(first, tuple(shape)) if shape else ())).refuse(
            leaves[first], wanted
        )


class RecordConverter(Converter):
    """A converter of classes of records, which a `kind` or `name` distinguishes where there are several."""

    forms = frozenset({TABLE})

    def read(self, data: Any, place: ReadLocation) -> Any:
        if not isinstance(data, dict):
            place.refuse(data, "a table")
        kind, tag = self._select_class(data, place)
        known, context = get_fields(kind), place.context
        names = [one.name for one in known]
        for key in data:
            if key not in names and key != tag:
                near = did_you_mean(str(key), names, f"the keys here are {', '.join(names)}")
                place.enter(str(key)).fail(f"is not a known key: {near}")
        sizes, values = dict(context.sizes), {}
        for one in known:
            choice = get_converter(one)
            if one.name in data:
                values[one.name] = choice.read(data[one.name], place.enter(one.name, sizes))
            elif one.required and not context.complete and (word := choice.find_word(context)):
                values[one.name] = context.given[word]
            elif (one.required or context.complete) and not one.may_be_absent:
                place.fail(f"lacks the key {one.name!r}")
        parts = [part for one in known if one.several for part in values.pop(one.name, ())]
        where = place.path or "the record"
        try:
            return get_constructor(kind)(*parts, **values)
        except InputError as cause:
            raise context.error(f"{where}: {cause}") from None
        except (TypeError, ValueError, ArithmeticError, LookupError) as cause:
            raise context.error(
                f"{where}: is no {kind.__name__}: {type(cause).__name__}: {cause}"
            ) from None

    def _select_class(
        self, data: Mapping[str, Any], place: ReadLocation
    ) -> tuple[Callable[..., Any], str | None]:
        """Return the class or maker that a table stands for, and the key of its tag."""
        kinds: dict[str, Callable[..., Any]] = {**find_tagged_classes(*self.kind)}
        for base in self.kind:
            kinds.update(place.context.forms.get(base, {}))
        if not kinds:
            if len(self.kind) > 1 or inspect.isabstract(self.kind[0]):
                raise TypeError(f"{self.kind} have no kind or name to be told apart by")
            return self.kind[0], None
        tags = (get_tag(kind) for kind in kinds.values() if isinstance(kind, type))
        key = next((tag[0] for tag in tags if tag), "kind")
        if key not in data and "" in kinds:
            return kinds[""], None
        if key not in data:
            place.fail(f"lacks the key {key!r}")
        word = data[key]
        if not isinstance(word, str) or word not in kinds:
            known = ", ".join(filter(None, kinds))
            place.enter(key).fail(
                f"is {reprlib.repr(word)}: known are {known}; import the module that defines others"
            )
        return kinds[word], key

    def schemas(self, defs: dict[str, Schema]) -> list[Schema]:
        return [self._reference_definition(kind, defs) for kind in self.kind]

    def _reference_definition(
        self, kind: type, defs: dict[str, Schema], alone: bool = False
    ) -> Schema:
        """Return a reference to the definition of a class or of all its subclasses, which is added if
        missing.
        """
        home = kind.__module__.partition(".")[0]
        known = [
            one
            for _, one in sorted(find_tagged_classes(kind).items())
            if one.__module__.partition(".")[0] == home
        ]
        alone = alone or known in ([], [kind])
        name = kind.__name__ if alone or kind not in known else f"Any{kind.__name__}"
        if name not in defs:
            defs[name] = {}  # for records within themselves
            several = (
                []
                if alone
                else [self._reference_definition(one, defs, alone=True) for one in known]
            )
            defs[name] = {"oneOf": several} if several else self._define_class(kind, defs)
        return {"$ref": f"#/$defs/{name}"}

    @staticmethod
    def _define_class(kind: type, defs: dict[str, Schema]) -> Schema:
        found: Schema = {} if (tag := get_tag(kind)) is None else {tag[0]: {"const": tag[1]}}
        found |= {one.name: get_converter(one).schema(defs) for one in get_fields(kind)}
        later = {one.name for one in get_fields(kind) if one.may_be_absent}
        names = [name for name in found if name not in later]
        return {
            "type": "object",
            "properties": found,
            "required": names,
            "additionalProperties": False,
        }


class UnionConverter:
    """A converter of a field of one type or of several, with the words for values of the context."""

    def __init__(self, kind: Any, notes: Sequence[Any] = ()) -> None:
        kind, own = separate_notes(kind)
        notes = (*notes, *own)
        own_words = [note for note in notes if isinstance(note, ContextReference)]
        rest = [note for note in notes if not isinstance(note, ContextReference)]
        self.own = [note.word for note in own_words]
        several = get_args(kind) if get_origin(kind) in (Union, UnionType) else ()
        self.choices = [UnionConverter(one, rest) for one in several]
        self.every: list[Converter] = [part for one in self.choices for part in one.every] or [
            _make_converter(kind, rest)
        ]
        self.words: list[str] = [*self.own, *(word for one in self.choices for word in one.words)]
        self.only: bool = any(note.only for note in own_words) or any(
            one.only for one in self.choices
        )

    def read(self, data: Any, place: ReadLocation) -> Any:
        """Return the value that plain data stand for."""
        context = place.context
        if isinstance(data, str) and data in self.words:
            if data not in context.given:
                place.fail(f"is {data!r}, and no {data} is given here")
            return context.given[data]
        if self.only:
            place.refuse(data, f"the word {' or '.join(sorted(set(self.words)))}")
        if (
            context.number is not None
            and isinstance(data, dict)
            and any(one.kind is float for one in self.every)
        ):
            data = context.number(data, place.path)
        form = describe_form(data)
        fitting = [one for one in self.every if form in one.forms]
        if not fitting:
            place.refuse(
                data, _describe_forms(set[str]().union(*(one.forms for one in self.every)))
            )
        if isinstance(fitting[0], RecordConverter):
            return RecordConverter(tuple(base for one in fitting for base in one.kind), ()).read(
                data, place
            )
        return fitting[0].read(data, place)

    def find_word(self, context: Context) -> str:
        """Return the word for the value of the context that a field may be, or None."""
        return next((word for word in self.words if word in context.given), "")

    def schema(self, defs: dict[str, Schema]) -> Schema:
        """Return the JSON schema of its plain data."""
        several = [{"const": word} for word in self.own]
        if not self.only:
            several += [one.schema(defs) for one in self.choices] or self.every[0].schemas(defs)
        return several[0] if len(several) == 1 else {"anyOf": several}

    def write(self, value: Any, context: Context) -> Any:
        """Return a value as plain data."""
        for word in self.words:
            if word in context.given and have_equal_content(value, context.given[word]):
                return word
        for one in self.every:
            if isinstance(one, EnumConverter) and (
                names := [name for name, v in one.values.items() if v is value]
            ):
                return names[0]
            if isinstance(one, LabelsConverter) and isinstance(value, tuple):
                check_json_labels(value)
                return (
                    len(value)
                    if isinstance(value, DefaultLabels)
                    else [_to_list_label(label) for label in value]
                )
        return write_plain(value, context)


def _make_converter(kind: Any, notes: Sequence[Any]) -> Converter:
    """Return the converter of a type that is no union.

    Raises:
        TypeError: it is no type of a field.
    """
    origin, args = get_origin(kind), get_args(kind)
    named = next((note.values for note in notes if isinstance(note, NamedValues)), None)
    if named is not None:
        return EnumConverter(named, notes)
    if origin is Literal:
        return EnumConverter({one: one for one in args}, notes)
    if isinstance(kind, type) and issubclass(kind, Enum):
        return EnumConverter({one.value: one for one in kind}, notes)
    if isinstance(kind, Hashable) and kind in SCALARS:
        return ScalarConverter(kind, notes)
    if is_record_class(kind):
        return RecordConverter((kind,), notes)
    makers: Mapping[Any, type[Converter]] = {
        np.ndarray: ArrayConverter,
        tuple: TupleConverter,
        list: TupleConverter,
        Sequence: TupleConverter,
        dict: MappingConverter,
        Mapping: MappingConverter,
    }
    if origin not in makers:
        raise TypeError(f"{kind} is no type of a field of a record")
    return (LabelsConverter if origin is tuple and args == (Hashable, ...) else makers[origin])(
        kind, notes
    )


def is_record_class(kind: Any) -> bool:
    """Return whether a type is a class of records."""
    return isinstance(kind, type) and (is_dataclass(kind) or issubclass(kind, Record))


@lru_cache(maxsize=4096)
def get_converter(field: Field) -> UnionConverter:
    """Return how a field is read, written and described."""
    return UnionConverter(field.type)


def write_plain(value: Any, context: Context) -> Any:
    """Return a value as plain data, where its type states nothing about it."""
    if isinstance(value, np.ndarray | np.generic):
        if value.dtype.kind != "f" or np.isfinite(value).all():
            return value.tolist()
        value = value.tolist()
    if isinstance(value, tuple | list):
        return [write_plain(part, context) for part in value]
    if isinstance(value, Mapping):
        return {str(key): write_plain(part, context) for key, part in value.items()}
    if is_record_class(type(value)):
        return _write_value(value, context)
    if value is None or isinstance(value, Enum):
        return value and value.value
    if isinstance(value, str | int) or (isinstance(value, float) and math.isfinite(value)):
        return value
    if isinstance(value, Fraction) or (isinstance(value, float) and not math.isnan(value)):
        return str(value)
    raise FileFormatError(f"{value!r:.80} cannot be written to a file")


def _write_value(value: Any, context: Context) -> dict[str, Any]:
    kind, tag = get_written_class(type(value)), get_tag(type(value))
    found = {} if tag is None else dict([tag])
    for one in get_fields(kind):
        own = getattr(value, one.name)
        if context.complete or one.required or not have_equal_content(own, one.default):
            found[one.name] = get_converter(one).write(own, context)
    return found


def _to_list_label(label: Any) -> Any:
    """Return a label as plain data, with tuples as lists."""
    if isinstance(label, tuple):
        return [_to_list_label(part) for part in label]
    return label.item() if isinstance(label, np.generic) else label


def _describe_forms(forms: set[str]) -> str:
    """Return what plain data may be, in words."""
    return " or ".join(sorted(forms - ({WHOLE} if NUMBER in forms else set())))
