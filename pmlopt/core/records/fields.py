"""The definition of records: typed fields, class tags, and equality by content."""

from __future__ import annotations

import inspect
import math
import sys
from abc import ABC
from collections.abc import Callable, Mapping
from dataclasses import field, is_dataclass
from dataclasses import fields as dataclass_fields
from enum import Enum
from functools import cache, cached_property, lru_cache
from importlib import import_module
from typing import Annotated, Any, Generic, TypeVar, get_args, get_origin, get_type_hints

import numpy as np

from pmlopt.core.lazy_imports import pkgutil
from pmlopt.core.light_dataclass import light_dataclass
from pmlopt.core.suggestions import CompletesUserNames, SuggestsAttributes, is_own_module
from pmlopt.errors import FileFormatError, InputError

MAX_UNLISTED_LETTERS = 10_000
"""Letters that any file may speak of without listing them; a longer file may speak of as many as it has
bytes, for what is saved of letters has a number for at least every second one."""


@light_dataclass(frozen=True, init=False)
class Shape:
    """A field annotation: array shape or tuple length, as numbers or named sizes.

    Sizes of one name are the same within a record, and where the context has one, the same everywhere.
    """

    sizes: tuple[str | int, ...]

    def __init__(self, *sizes: str | int) -> None:
        object.__setattr__(self, "sizes", sizes)


@light_dataclass(frozen=True)
class Range:
    """A field annotation: the range of a number or array entries."""

    low: float = -math.inf
    high: float = math.inf

    def __str__(self) -> str:
        if math.isinf(self.high):
            return f"at least {self.low:g}"
        if math.isinf(self.low):
            return f"at most {self.high:g}"
        return f"from {self.low:g} to {self.high:g}"


@light_dataclass(frozen=True)
class ContextReference:
    """A field annotation: a context value is written as its word."""

    word: str
    only: bool = False


@light_dataclass(frozen=True, eq=False)
class NamedValues:
    """A field annotation: the value is one of some named objects."""

    values: Mapping[str, Any]


class NumberFlag(Enum):
    """Flags of numeric fields."""

    INFINITE = "may be infinite, which is written as the text inf or -inf"
    COUNT = "a number of letters that are not listed, at most as many as a file of its length may declare"
    ADDED_LATER = "files that were written before the field was added lack it, and have its default"


INFINITE = NumberFlag.INFINITE
COUNT = NumberFlag.COUNT
ADDED_LATER = NumberFlag.ADDED_LATER


@light_dataclass(frozen=True)
class Context:
    """The context of reading or writing a record: letters, prior and error class.

    Attributes:
        given: what is known already, by the words of `ContextReference`, such as the prior of a design.
        sizes: by the names of `Shape`, such as N letters and M outputs.
        room: bytes of the file.
        complete: whether every key is required, as in files; else those without a default, and one that
            may be the word of `given` is what is given.
        error: the class of what is raised.
        number: what reads a table that represents a number, such as `{ log = "5/4" }`, from it and its path.
        forms: by a class, functions that make its objects too, by the words that distinguish them from its
            subclasses; the one by the empty word is meant where there is no word.
        keeps_matrices: whether large matrices stay arrays when a record is written, for a file that holds
            arrays.
    """

    given: Mapping[str, Any] = field(default_factory=dict)
    sizes: Mapping[str, int] = field(default_factory=dict)
    room: int = MAX_UNLISTED_LETTERS
    complete: bool = True
    error: type[InputError] = FileFormatError
    number: Callable[[Mapping[str, Any], str], float] | None = None
    forms: Mapping[type, Mapping[str, Callable[..., Any]]] = field(default_factory=dict)
    keeps_matrices: bool = False

    @property
    def max_letters(self) -> int:
        """Return the largest number of unnamed letters that a file may state."""
        return max(MAX_UNLISTED_LETTERS, self.room, getattr(self.given.get("prior"), "size", 0))


class Record(CompletesUserNames):
    """The base of classes whose fields define their file format and equality.

    A class with `is_form = True` makes the objects of which the constructor of another class with the same
    `name` decides: they are written as the fields of that class, and have attributes of their names.
    """

    def __eq__(self, other: object) -> bool:
        kind: Any = type(self)
        names = [one.name for one in get_fields(kind)]
        return type(other) is kind and all(
            have_equal_content(getattr(self, name), getattr(other, name)) for name in names
        )

    def __hash__(self) -> int:
        kind: Any = type(self)
        return hash((kind, *(_hash_content(getattr(self, one.name)) for one in get_fields(kind))))


def have_equal_content(one: Any, other: Any) -> bool:
    """Return whether two values are equal by content.

    Labels that no one gave differ from the same numbers as labels.

    Examples:
        >>> from pmlopt.core.numbers.arrays import DefaultLabels
        >>> (
        ...     have_equal_content((np.ones(2), "a"), (np.ones(2), "a")),
        ...     have_equal_content(DefaultLabels(2), (0, 1)),
        ... )
        (True, False)
    """
    if isinstance(one, np.ndarray) or isinstance(other, np.ndarray):
        return (
            type(one) is type(other)
            and one.dtype.kind == other.dtype.kind
            and np.array_equal(one, other)
        )
    if type(one) is not type(other):
        numbers = all(
            isinstance(value, int | float) and not isinstance(value, bool) for value in (one, other)
        )
        return numbers and bool(one == other)
    if isinstance(one, tuple | list):
        return len(one) == len(other) and all(map(have_equal_content, one, other))
    if isinstance(one, Mapping):
        return set(one) == set(other) and all(
            have_equal_content(one[key], other[key]) for key in one
        )
    if is_dataclass(one) and type(one).__eq__ is object.__eq__:  # one of arrays, without an own ==
        return all(
            have_equal_content(getattr(one, part.name), getattr(other, part.name))
            for part in dataclass_fields(one)
        )
    return bool(one == other)


def _hash_content(value: Any) -> int:
    """Compute a hash consistent with `have_equal_content`."""
    if isinstance(value, np.ndarray):
        return hash(value.shape)
    if isinstance(value, list | dict):
        return hash(len(value))
    return hash(tuple(map(_hash_content, value))) if isinstance(value, tuple) else hash(value)


@light_dataclass(frozen=True, eq=False)
class Field:
    """A record field: name, type and default."""

    name: str
    type: Any
    default: Any
    several: bool
    """Whether the constructor takes the values one by one, as `*parts`."""

    @property
    def required(self) -> bool:
        """Return whether the field has no default."""
        return self.default is inspect.Parameter.empty and not self.several

    @cached_property
    def may_be_absent(self) -> bool:
        """Return whether older files may lack the field."""
        return ADDED_LATER in separate_notes(self.type)[1]


def get_constructor(kind: Callable[..., Any]) -> Any:
    """Return a record class's constructor: `from_fields`, or the class itself.

    Of both the one that the nearest class defines; a function makes its own.
    """
    if not isinstance(kind, type):
        return kind
    owner = next(base for base in kind.__mro__ if {"from_fields", "__init__"} & set(vars(base)))
    return getattr(kind, "from_fields") if "from_fields" in vars(owner) else kind  # noqa: B009


@lru_cache(maxsize=1024)
def get_fields(kind: Callable[..., Any]) -> tuple[Field, ...]:
    """Return the constructor fields of a record class, or a function's parameters.

    Examples:
        >>> from dataclasses import dataclass
        >>> @dataclass(frozen=True)
        ... class Ball(Record):
        ...     radius: float
        ...     delta: float | None = None
        >>> [(one.name, one.required) for one in get_fields(Ball)]
        [('radius', True), ('delta', False)]
    """
    made = get_constructor(kind)
    make: Any = made
    if made is kind and isinstance(kind, type):
        make = vars(kind).get("__init__", kind.__init__)  # type: ignore[misc]
    if make is object.__init__:
        return ()
    hints = get_type_hints(made, include_extras=True)
    found = []
    for one in inspect.signature(make).parameters.values():
        if one.name == "self" or one.kind is inspect.Parameter.VAR_KEYWORD:
            continue
        if one.name not in hints:
            hints = {**get_type_hints(make, include_extras=True), **hints}
        several = one.kind is inspect.Parameter.VAR_POSITIONAL
        found.append(Field(one.name, hints[one.name], one.default, several))
    return tuple(found)


def resolve_alias(kind: Any) -> Any:
    """Resolve a type alias.

    An alias made by a `type` statement (PEP 695) is a separate object, and so is one that is given
    arguments, such as `NDArray[np.float64]` from numpy 2.5 on. Aliases of aliases are followed to the end;
    the arguments of what is found may be aliases again.

    Examples:
        >>> from numpy.typing import NDArray
        >>> get_origin(resolve_alias(NDArray[np.float64])) is np.ndarray
        True
        >>> resolve_alias(int | None)
        int | None
    """
    origin = get_origin(kind)
    alias = kind if origin is None else origin
    # objects made by an alias pass attributes on to it, so the alias itself is what must be looked at
    if isinstance(alias, type) or not hasattr(alias, "__value__"):
        return kind
    value = alias.__value__
    wanted = getattr(alias.__value__, "__parameters__", ())
    if origin is not None and isinstance(value, TypeVar):  # `type Same[T] = T`
        return resolve_alias(get_args(kind)[0])
    if origin is not None and wanted:
        given = dict(zip(alias.__type_params__, get_args(kind), strict=True))
        value = value[tuple(given[one] for one in wanted)]
    return resolve_alias(value)


def separate_notes(kind: Any) -> tuple[Any, tuple[Any, ...]]:
    """Split an annotated type into the type and its annotations.

    Examples:
        >>> separate_notes(Annotated[float, Range(0)])
        (<class 'float'>, (Range(low=0, high=inf),))
    """
    kind = resolve_alias(kind)
    if get_origin(kind) is not Annotated:
        return kind, ()
    inner, notes = separate_notes(kind.__origin__)
    return inner, (*kind.__metadata__, *notes)


def get_tag(kind: type) -> tuple[str, str] | None:
    """Return the tag key (`kind` or `name`) and text of a record class, if any."""
    own = {one.name for one in dataclass_fields(kind)} if is_dataclass(kind) else set()
    for key in ("kind", "name"):
        word = next((vars(one)[key] for one in kind.__mro__ if key in vars(one)), None)
        if isinstance(word, str) and key not in own:
            return key, word
    return None


def find_tagged_classes(*bases: type) -> dict[str, type]:
    """Find the tagged subclasses of some base classes, by tag.

    A class that was defined again, as in a notebook, replaces the earlier one. Where the package of a base
    declares it among its names, these are all loaded first, and of pmlopt all modules of the package, so that
    each of its classes is known.

    Raises:
        FileFormatError: two classes have the same tag.
    """
    for base in bases:
        _load_package(base)
    return _find_loaded_classes(*bases)


def find_tagged_class(base: type, tag: str) -> type | None:
    """Find the subclass with a tag; None where there is none.

    A class of pmlopt that is loaded is found without loading the others, whose tags differ.

    Raises:
        FileFormatError: two classes have the same tag.

    Examples:
        >>> from pmlopt.model.privacy import Requirement
        >>> find_tagged_class(Requirement, "ldp").__name__
        'LDP'
    """
    known = _find_loaded_classes(base).get(tag)
    if known is not None and is_own_module(known.__module__):
        return known
    return find_tagged_classes(base).get(tag)


def _load_package(base: type) -> None:
    """Load what the package of a base class has, if the base is one of its names."""
    name = base.__module__.rpartition(".")[0]
    package = sys.modules.get(name)
    names = getattr(package, "__all__", ())
    if package is None or base.__name__ not in names:
        return
    if is_own_module(name):
        _load_modules(name)
    else:
        for one in names:
            getattr(package, one)


@cache
def _load_modules(package: str) -> None:
    """Load all modules of a package."""
    for module in pkgutil.iter_modules(sys.modules[package].__path__):
        import_module(f"{package}.{module.name}")


def _find_loaded_classes(*bases: type) -> dict[str, type]:
    """Find the tagged subclasses of some base classes that are loaded, by tag."""
    found: dict[str, type] = {}
    waiting = list(bases)
    while waiting:
        kind = waiting.pop(0)
        waiting += kind.__subclasses__()
        own = vars(kind)
        if "is_form" in own or not {"kind", "name"} & own.keys() or inspect.isabstract(kind):
            continue
        tag = get_tag(kind)
        if tag is None or tag[0] not in own:
            continue
        other = found.get(tag[1], kind)
        if (other.__module__, other.__qualname__) != (kind.__module__, kind.__qualname__):
            raise FileFormatError(
                f"{other.__qualname__} and {kind.__qualname__} have the same {tag[0]}, {tag[1]!r}: give one "
                "of them another"
            )
        found[tag[1]] = kind
    return found


def get_written_class(kind: type) -> type:
    """Return the class under which an object's class is serialized.

    Raises:
        FileFormatError: it has no tag, where its relatives have one.
    """
    root = [
        base
        for base in kind.__mro__
        if base not in (object, ABC, Generic, Record, CompletesUserNames, SuggestsAttributes)
    ][-1]
    kinds = find_tagged_classes(root)
    tag = get_tag(kind)
    if not kinds:
        return kind
    known = kinds.get("" if tag is None else tag[1])
    if known is None or (known is not kind and "is_form" not in vars(kind)):
        key = next(tag[0] for one in kinds.values() if (tag := get_tag(one)))
        raise FileFormatError(
            f"{kind.__qualname__} cannot be saved: give it a `{key}` that no other class has, by which it is "
            "read again"
        )
    return known


def finite_or_none(number: float | None) -> float | None:
    """Return the number, or None where it is infinite or missing: JSON has no form for infinity."""
    return number if number is not None and math.isfinite(number) else None
