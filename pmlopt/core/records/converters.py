"""The converters of record field types: strict reading, writing and JSON schemas.

Whatever is not stated to be allowed is refused, with its path.
"""

from __future__ import annotations

import inspect
import math
import reprlib
from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import is_dataclass
from enum import Enum
from fractions import Fraction
from functools import lru_cache
from itertools import chain
from types import UnionType
from typing import Any, Literal, Union, get_args, get_origin

import numpy as np

from pmlopt.core.files.read_locations import (
    FLAG,
    LIST,
    MAX_NESTING_DEPTH,
    NUMBER,
    TABLE,
    WHOLE,
    ReadLocation,
    describe_form,
    describe_forms,
)
from pmlopt.core.numbers.arrays import DefaultLabels, FloatArray, check_json_labels
from pmlopt.core.numbers.blocks import is_all_finite, is_frozen, is_large_matrix
from pmlopt.core.records.fields import (
    COUNT,
    INFINITE,
    Context,
    ContextReference,
    Field,
    NamedValues,
    Range,
    Record,
    find_tagged_classes,
    get_constructor,
    get_fields,
    get_tag,
    get_written_class,
    have_equal_content,
    resolve_alias,
    separate_notes,
)  # fmt: skip
from pmlopt.core.records.scalar_converters import (
    INFINITIES,
    SCALARS,
    Converter,
    EnumConverter,
    ScalarConverter,
    Schema,
    read_label_or_data,
    read_number,
)
from pmlopt.core.suggestions import did_you_mean
from pmlopt.errors import FileFormatError, InputError


class TupleConverter(Converter):
    """A converter of tuples of fixed types, or of lists of one type."""

    forms = frozenset({LIST})

    def __init__(self, kind: Any, notes: Sequence[Any]) -> None:
        super().__init__(kind, notes)
        self.fixed = len(self.args) > 1 and self.args[1] is not Ellipsis
        self.parts = [UnionConverter(one) for one in (self.args if self.fixed else self.args[:1])]

    def read(self, data: Any, place: ReadLocation) -> Any:
        """Convert plain data to the field's value, strictly."""
        parts = self.parts if self.fixed else self.parts * len(data)
        if len(data) != len(parts):
            place.fail(f"has {len(data)} entries: it must have {len(parts)}")
        if self.shape is not None:
            place.check_size((len(data),), self.shape)
        if self.args[0] is Hashable and not self.fixed:
            return read_label_or_data(data, place, Hashable)
        return tuple(one.read(data[k], place.enter(k)) for k, one in enumerate(parts))

    def schemas(self, defs: dict[str, Schema]) -> list[Schema]:
        """Return the JSON schemas of the plain data."""
        parts = [one.schema(defs) for one in self.parts]
        if self.fixed:
            return [{"type": "array", "prefixItems": parts, "items": False, "minItems": len(parts)}]
        return [{"type": "array", "items": parts[0]}]


class LabelsConverter(TupleConverter):
    """A converter of labels, or of a number of default labels."""

    forms = frozenset({LIST, WHOLE})

    def read(self, data: Any, place: ReadLocation) -> Any:
        """Convert plain data to the field's value, strictly."""
        if not isinstance(data, int):
            return super().read(data, place)
        found = DefaultLabels(read_number(data, place, int, (Range(1), COUNT)))
        if self.shape is not None:
            place.check_size((len(found),), self.shape)
        return found

    def schemas(self, defs: dict[str, Schema]) -> list[Schema]:
        """Return the JSON schemas of the plain data."""
        several = [*super().schemas(defs), {"type": "integer", "minimum": 1}]
        return [
            {
                "description": "the labels, or the number of letters without names",
                "anyOf": several,
            }
        ]


class MappingConverter(Converter):
    """A converter of mappings from text to one type."""

    forms = frozenset({TABLE})

    def __init__(self, kind: Any, notes: Sequence[Any]) -> None:
        super().__init__(kind, notes)
        self.part = UnionConverter(self.args[1])

    def read(self, data: Any, place: ReadLocation) -> Any:
        """Convert plain data to the field's value, strictly."""
        return {key: self.part.read(part, place.enter(key)) for key, part in data.items()}

    def schemas(self, defs: dict[str, Schema]) -> list[Schema]:
        """Return the JSON schemas of the plain data."""
        return [{"type": "object", "additionalProperties": self.part.schema(defs)}]


class ArrayConverter(Converter):
    """A converter of arrays written as nested lists."""

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
        """Convert plain data to the field's value, strictly."""
        if is_large_matrix(data) and is_frozen(data) and data.dtype == self.scalar == np.float64:
            return self._check_matrix(data, place)
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
                describe_forms(SCALARS[self.entry][0]),
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

    def _check_matrix(self, matrix: FloatArray, place: ReadLocation) -> FloatArray:
        """Return a large matrix of a file as it is; raise an error where it is not as its field requires."""
        if self.shape is not None:
            place.check_size(matrix.shape, self.shape)
        lowest = max((one.low for one in self.notes if isinstance(one, Range)), default=-math.inf)
        highest = min((one.high for one in self.notes if isinstance(one, Range)), default=math.inf)
        if not is_all_finite(matrix) or matrix.min() < lowest or matrix.max() > highest:
            wrong = ~np.isfinite(matrix) | (matrix < lowest) | (matrix > highest)
            row, column = np.unravel_index(int(wrong.argmax()), matrix.shape)
            wanted = (
                Range(lowest, highest) if np.isfinite(matrix[row, column]) else "a finite number"
            )
            place.enter_nested_list(row, column).refuse(float(matrix[row, column]), str(wanted))
        return matrix

    def _flatten(self, data: Any, place: ReadLocation) -> tuple[tuple[int, ...], list[Any]]:
        """Flatten regular nested lists; return their shape and entries."""
        shape: list[int] = []
        level = [data]
        most = MAX_NESTING_DEPTH if self.shape is None else len(self.shape.sizes)
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
        """Return the JSON schemas of the plain data."""
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
    """Raise an error at the first invalid entry of nested lists."""
    if np.any(wrong):
        first = int(np.argmax(wrong))
        place.enter_nested_list(*(np.unravel_index(first, tuple(shape)) if shape else ())).refuse(
            leaves[first], wanted
        )


class RecordConverter(Converter):
    """A converter of record classes, distinguished by a `kind` or `name` tag."""

    forms = frozenset({TABLE})

    def read(self, data: Any, place: ReadLocation) -> Any:
        """Convert plain data to the field's value, strictly."""
        if not isinstance(data, dict):
            place.refuse(data, "a table")
        kind, tag = self._select_class(data, place)
        known = get_fields(kind)
        context = place.context
        names = [one.name for one in known]
        for key in data:
            if key not in names and key != tag:
                near = did_you_mean(str(key), names, f"the keys here are {', '.join(names)}")
                place.enter(str(key)).fail(f"is not a known key: {near}")
        sizes = dict(context.sizes)
        values = {}
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
        """Select the record class of a table by its tag."""
        kinds: dict[str, Callable[..., Any]] = {**find_tagged_classes(*self.kind)}
        for base in self.kind:
            kinds.update(place.context.forms.get(base, {}))
        if not kinds:
            if len(self.kind) > 1 or inspect.isabstract(self.kind[0]):
                raise TypeError(f"{self.kind} have no kind or name that distinguishes them")
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
        """Return the JSON schemas of the plain data."""
        return [self._reference_definition(kind, defs) for kind in self.kind]

    def _reference_definition(
        self, kind: type, defs: dict[str, Schema], alone: bool = False
    ) -> Schema:
        """Return a schema reference to a record class, defining it if missing."""
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
        """Build the JSON schema of one record class."""
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
    """A converter of fields with one or several types, and context references."""

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
        # of these the type states how a value is written; of all others the value does
        self.typed = [one for one in self.every if isinstance(one, EnumConverter | LabelsConverter)]

    def read(self, data: Any, place: ReadLocation) -> Any:
        """Convert plain data to the field's value by the matching type."""
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
            place.refuse(data, describe_forms(set[str]().union(*(one.forms for one in self.every))))
        if isinstance(fitting[0], RecordConverter):
            return RecordConverter(tuple(base for one in fitting for base in one.kind), ()).read(
                data, place
            )
        return fitting[0].read(data, place)

    def find_word(self, context: Context) -> str:
        """Return the word that stands for a context value; None without one."""
        return next((word for word in self.words if word in context.given), "")

    def schema(self, defs: dict[str, Schema]) -> Schema:
        """Return the JSON schema of the plain data."""
        several = [{"const": word} for word in self.own]
        if not self.only:
            several += [one.schema(defs) for one in self.choices] or self.every[0].schemas(defs)
        return several[0] if len(several) == 1 else {"anyOf": several}

    def write(self, value: Any, context: Context) -> Any:
        """Convert a value to plain data."""
        for word in self.words:
            if word in context.given:
                given = context.given[word]
                if value is given or have_equal_content(value, given):
                    return word
        for one in self.typed:
            if isinstance(one, EnumConverter):
                names = [name for name, v in one.values.items() if v is value]
                if names:
                    return names[0]
            elif isinstance(value, tuple):
                check_json_labels(value)
                if isinstance(value, DefaultLabels):
                    return len(value)
                return [_to_list_label(label) for label in value]
        return to_plain(value, context)


def _make_converter(kind: Any, notes: Sequence[Any]) -> Converter:
    """Build the converter of a non-union type.

    Raises:
        TypeError: it is no type of a field.
    """
    origin = get_origin(kind)
    args = get_args(kind)
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
    """Return whether a type is a record class."""
    return isinstance(kind, type) and (is_dataclass(kind) or issubclass(kind, Record))


_PLAIN = frozenset((str, int, bool))
"""Types of which every value is plain data."""


@lru_cache(maxsize=4096)
def get_converter(field: Field) -> UnionConverter:
    """Return the converter of a record field."""
    return UnionConverter(field.type)


def to_plain(value: Any, context: Context | None = None) -> Any:
    """Convert a record to plain data, the inverse of `read_record`.

    Where the context is not `complete`, fields that have their defaults are left out, as in problem files.

    Raises:
        FileFormatError: a value is none that a file can hold, or a class has no tag of its own.

    Examples:
        >>> to_plain(Range(0.0, 2.0)), to_plain(Range(0.0), Context(complete=False))
        ({'low': 0.0, 'high': 2.0}, {'low': 0.0})
    """
    context = context or Context()
    if type(value) in _PLAIN:
        return value
    if isinstance(value, np.ndarray | np.generic):
        if value.dtype.kind != "f" or np.isfinite(value).all():
            is_kept = context.keeps_matrices and is_large_matrix(value)
            return value if is_kept and value.dtype == np.float64 else value.tolist()
        value = value.tolist()
    if isinstance(value, tuple | list):
        return [to_plain(part, context) for part in value]
    if isinstance(value, Mapping):
        return {str(key): to_plain(part, context) for key, part in value.items()}
    if is_record_class(type(value)):
        return _write_record(value, context)
    if value is None or isinstance(value, Enum):
        return value and value.value
    if isinstance(value, str | int) or (isinstance(value, float) and math.isfinite(value)):
        return value
    if isinstance(value, Fraction) or (isinstance(value, float) and not math.isnan(value)):
        return str(value)
    raise FileFormatError(f"{value!r:.80} cannot be written to a file")


def _write_record(value: Any, context: Context) -> dict[str, Any]:
    """Convert a record to a dictionary of tag and fields; defaults may be omitted."""
    kind: Any = type(value)
    tag, writers = _get_writers(kind)
    found: dict[str, Any] = dict(tag)
    for one, converter in writers:
        own = getattr(value, one.name)
        if context.complete or one.required or not have_equal_content(own, one.default):
            found[one.name] = converter.write(own, context)
    return found


@lru_cache(maxsize=1024)
def _get_writers(
    kind: type,
) -> tuple[tuple[tuple[str, str], ...], tuple[tuple[Field, UnionConverter], ...]]:
    """Return the tag and field converters of a record class, cached."""
    tag = get_tag(kind)
    fields = get_fields(get_written_class(kind))
    return () if tag is None else (tag,), tuple((one, get_converter(one)) for one in fields)


def _to_list_label(label: Any) -> Any:
    """Convert a label to plain data, tuples to lists."""
    if isinstance(label, tuple):
        return [_to_list_label(part) for part in label]
    return label.item() if isinstance(label, np.generic) else label
