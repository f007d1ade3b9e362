"""Strict reading of plain data as records: whatever is not said to be allowed is refused, with its path."""

from __future__ import annotations

import inspect
import math
import re
import reprlib
from collections.abc import Callable, Hashable, Mapping, Sequence
from difflib import get_close_matches
from fractions import Fraction
from itertools import chain
from types import NoneType
from typing import Any, NoReturn, get_args, get_origin

import numpy as np

from pmlopt.core.arrays import Positions
from pmlopt.core.fields import (
    COUNT,
    ENTRIES,
    INFINITE,
    TABLE,
    Context,
    Given,
    Range,
    Shape,
    fields_of,
    form_of,
    forms_of,
    is_labels,
    is_record,
    kinds_of,
    maker,
    members,
    split,
    tag_of,
    words_of,
)
from pmlopt.errors import InputError

DEEPEST = 50
"""Levels of nesting that are read: a certificate has ten, and the interpreter breaks off at a thousand."""
LONGEST_FRACTION = 4_000
"""Digits of a fraction; Python refuses whole numbers of more than 4,300."""
INFINITIES = {"inf": math.inf, "-inf": -math.inf}
"""How infinite numbers are written, for which JSON has no word."""


def below(path: str, key: str | int) -> str:
    """The path of an entry of a list or a table."""
    return f"{path}[{key}]" if isinstance(key, int) else f"{path}.{key}".lstrip(".")


class Reader:
    """Strict reading in a context; `sizes` are those of the record that is read, by their names."""

    def __init__(self, context: Context) -> None:
        self.context = context

    def fail(self, path: str, problem: str) -> NoReturn:
        """Raise the error of the context, with the path of what is wrong."""
        raise self.context.error(f"{path or 'the record'} {problem}")

    def read(self, kind: Any, data: Any, path: str, sizes: dict[str, int], depth: int) -> Any:
        """The value of a type that plain data say."""
        if depth > DEEPEST:
            self.fail(path, f"is nested deeper than {DEEPEST} levels")
        kind, notes = split(kind)
        every = [split(one) for one in members(kind)]
        known = [note for _, own in [(kind, notes), *every] for note in own if isinstance(note, Given)]
        words = {note.word for note in known}
        if isinstance(data, str) and data in words:
            if data not in self.context.given:
                self.fail(path, f"is {data!r}, and no {data} is given here")
            return self.context.given[data]
        if any(note.only for note in known):
            self.fail(path, f"is {_shown(data)}: it must be the word {' or '.join(sorted(words))}")
        form = form_of(data)
        if self.context.number is not None and form == TABLE and any(one is float for one, _ in every):
            data = self.context.number(data, path)
            form = form_of(data)
        fitting = [(one, (*notes, *own)) for one, own in every if form in forms_of(one, (*notes, *own))]
        if not fitting:
            self.fail(path, f"is {_shown(data)}: it must be {_words(kind, notes)}")
        if form == TABLE and is_record(fitting[0][0]):
            return self._record([one for one, _ in fitting], data, path, depth)
        found = self._value(*fitting[0], data, path, sizes, depth)
        for note in fitting[0][1]:
            if isinstance(note, Shape) and isinstance(found, tuple):
                self._sized(path, (len(found),), note, sizes)
        return found

    def _value(
        self, kind: Any, notes: Sequence[Any], data: Any, path: str, sizes: dict[str, int], depth: int
    ) -> Any:
        origin, args = get_origin(kind), get_args(kind)
        if origin is np.ndarray:
            return self._array(kind, notes, data, path, sizes)
        words = words_of(kind, notes)
        if words is not None:
            if data not in words:
                self.fail(path, f"is {_shown(data)}: it must be one of {', '.join(map(repr, words))}")
            return words[data]
        if origin is None:
            return self._single(kind, notes, data, path, depth)
        if isinstance(data, dict):
            return {
                key: self.read(args[1], part, below(path, key), sizes, depth + 1)
                for key, part in data.items()
            }
        if is_labels(kind) and isinstance(data, int):
            return Positions(self._number(int, (Range(1), COUNT), data, path))
        if args[0] is Hashable and args[1:] in ((), (Ellipsis,)):
            return tuple(self._open(Hashable, part, below(path, k), depth + 1) for k, part in enumerate(data))
        each = args[:1] * len(data) if len(args) < 2 or args[1] is Ellipsis else args
        if len(data) != len(each):
            self.fail(path, f"has {len(data)} entries: it must have {len(each)}")
        return tuple(
            self.read(one, part, below(path, k), sizes, depth + 1)
            for k, (one, part) in enumerate(zip(each, data, strict=True))
        )

    def _single(self, kind: Any, notes: Sequence[Any], data: Any, path: str, depth: int) -> Any:
        """A value that is no tuple, array or mapping."""
        if kind in (float, int):
            return self._number(kind, notes, data, path)
        if kind is Fraction:
            return self._fraction(data, path)
        return data if kind in (str, bool, NoneType) else self._open(kind, data, path, depth)

    def _open(self, kind: Any, data: Any, path: str, depth: int) -> Any:
        """A label, of which lists are tuples; or any plain data."""
        if depth > DEEPEST:
            self.fail(path, f"is nested deeper than {DEEPEST} levels")
        if isinstance(data, list):
            kinds = set(map(type, data))
            if kinds <= {int, bool, str} or (
                kinds == {float} and np.isfinite(data).all()
            ):  # tables have many
                return data if kind is Any else tuple(data)
            parts = (self._open(kind, part, below(path, k), depth + 1) for k, part in enumerate(data))
            return list(parts) if kind is Any else tuple(parts)
        if form_of(data) not in forms_of(kind) or (isinstance(data, float) and not math.isfinite(data)):
            self.fail(path, f"is {_shown(data)}: it must be text, a finite number or a list of these")
        if isinstance(data, dict):
            return {key: self._open(kind, part, below(path, key), depth + 1) for key, part in data.items()}
        return data

    def _record(self, bases: Sequence[type], data: Any, path: str, depth: int) -> Any:
        if not isinstance(data, dict):
            self.fail(path, f"is {_shown(data)}: it must be a table")
        kind, tag = self._chosen(bases, data, path)
        known = fields_of(kind)
        names = [one.name for one in known]
        for key in data:
            if key not in names and (tag is None or key != tag[0]):
                near = get_close_matches(str(key), names, n=1)
                hint = f"did you mean {near[0]!r}?" if near else f"the keys here are {', '.join(names)}"
                self.fail(below(path, str(key)), f"is not a known key: {hint}")
        sizes, values = dict(self.context.sizes), {}
        for one in known:
            if one.name in data:
                here = below(path, one.name)
                values[one.name] = self.read(one.type, data[one.name], here, sizes, depth + 1)
            elif not self.context.complete and one.required and (word := self._given(one.type)):
                values[one.name] = self.context.given[word]
            elif self.context.complete or one.required:
                self.fail(path, f"lacks the key {one.name!r}")
        parts = [part for one in known if one.several for part in values.pop(one.name, ())]
        try:
            return maker(kind)(*parts, **values)
        except InputError as cause:
            raise self.context.error(f"{path or 'the record'}: {cause}") from None
        except (TypeError, ValueError, ArithmeticError, LookupError) as cause:
            raise self.context.error(
                f"{path or 'the record'}: is no {kind.__name__}: {type(cause).__name__}: {cause}"
            ) from None

    def _given(self, kind: Any) -> str:
        """The word of what is given that a field may be, or none."""
        notes = [note for one in (kind, *members(split(kind)[0])) for note in split(one)[1]]
        words = [note.word for note in notes if isinstance(note, Given)]
        return next((word for word in words if word in self.context.given), "")

    def _chosen(
        self, bases: Sequence[type], data: Mapping[str, Any], path: str
    ) -> tuple[Callable[..., Any], tuple[str, str] | None]:
        """The class that a table is of, or the function that makes it, and the tag that says so."""
        kinds: dict[str, Callable[..., Any]] = {**kinds_of(*bases)}
        for base in bases:
            kinds.update(self.context.forms.get(base, {}))
        if not kinds:
            if len(bases) > 1 or inspect.isabstract(bases[0]):
                raise TypeError(f"{bases} have no kind or name to be told apart by")
            return bases[0], None
        tags = (tag_of(kind) for kind in kinds.values() if isinstance(kind, type))
        key = next((tag[0] for tag in tags if tag), "kind")
        if key not in data and "" in kinds:
            return kinds[""], None
        if key not in data:
            self.fail(path, f"lacks the key {key!r}")
        word = data[key]
        if not isinstance(word, str) or word not in kinds:
            known = ", ".join(filter(None, kinds))
            self.fail(
                below(path, key),
                f"is {_shown(word)}: known are {known}; import the module that defines others",
            )
        return kinds[word], (key, word)

    def _number(self, kind: Any, notes: Sequence[Any], data: Any, path: str) -> Any:
        value = INFINITIES.get(data, math.nan) if isinstance(data, str) else data
        if kind is float:
            try:
                value = float(value)
            except OverflowError:
                self.fail(path, "is too large for a float: give a number below 1e308")
            if not (math.isfinite(value) or (INFINITE in notes and not math.isnan(value))):
                self.fail(path, f"is {value}: it must be a finite number")
        for note in notes:
            if isinstance(note, Range) and not note.low <= value <= note.high:
                self.fail(path, f"is {_shown(data)}: it must be {note}")
        if COUNT in notes and value > self.context.most:
            self.fail(
                path, f"is {_shown(data)}: a file of this length may speak of {self.context.most:,} at most"
            )
        return value

    def _fraction(self, data: Any, path: str) -> Fraction:
        text = str(data) if isinstance(data, int) else data
        if len(text) > LONGEST_FRACTION or not re.fullmatch(r"-?[0-9]+(/[0-9]+)?", text):
            self.fail(path, f"is {_shown(data)}: it must be a fraction of whole numbers, such as '3/8'")
        above, _, below = text.partition("/")
        if below and not int(below):
            self.fail(path, f"is {_shown(data)}: it must not be divided by 0")
        return Fraction(int(above), int(below or 1))

    def _array(self, kind: Any, notes: Sequence[Any], data: Any, path: str, sizes: dict[str, int]) -> Any:
        scalar = get_args(get_args(kind)[1])[0]
        note = next((one for one in notes if isinstance(one, Shape)), None)
        if isinstance(data, np.ndarray):
            shape, leaves = data.shape, data.ravel().tolist()
        else:
            shape, leaves = self._leaves(data, path, note, sizes)
        if note is not None:
            self._sized(path, shape, note, sizes)
        infinite = INFINITE in notes
        if infinite and str in set(map(type, leaves)):
            leaves = [INFINITIES.get(leaf, leaf) if type(leaf) is str else leaf for leaf in leaves]
        entry = ENTRIES[scalar]
        allowed, word = {int, float} if entry is float else {entry}, _words(entry, ())
        if not set(map(type, leaves)) <= allowed:
            self._check(path, shape, leaves, [type(leaf) not in allowed for leaf in leaves], word)
        try:
            array = np.array(leaves, dtype=scalar)
        except OverflowError:
            large = 2**63 if scalar is np.int64 else 10**308
            self._check(path, shape, leaves, [abs(leaf) >= large for leaf in leaves], f"below {large:.3g}")
        if scalar is np.float64:
            strange = np.isnan(array) if infinite else ~np.isfinite(array)
            self._check(path, shape, leaves, strange, "a finite number")
        for one in notes:
            if isinstance(one, Range):
                self._check(path, shape, leaves, (array < one.low) | (array > one.high), str(one))
        array = array.reshape(shape)
        array.setflags(write=False)
        return array

    def _check(self, path: str, shape: Sequence[int], leaves: Sequence[Any], wrong: Any, wanted: str) -> None:
        """Fail at the first entry that is wrong."""
        if np.any(wrong):
            place = int(np.argmax(wrong))
            self.fail(_at(path, place, shape), f"is {_shown(leaves[place])}: it must be {wanted}")

    def _leaves(
        self, data: Any, path: str, note: Shape | None, sizes: Mapping[str, int]
    ) -> tuple[tuple[int, ...], list[Any]]:
        """The shape of nested lists, which must be regular, and their entries in order."""
        shape: list[int] = []
        level, most = [data], DEEPEST if note is None else len(note.sizes)
        while level and len(shape) < most:
            if note is None and type(level[0]) is not list:  # the first entry says how deep it is
                break
            if set(map(type, level)) != {list}:
                self._check(path, shape, level, [type(part) is not list for part in level], "a list")
            lengths = [len(part) for part in level]
            if len(set(lengths)) > 1:
                place = next(k for k, length in enumerate(lengths) if length != lengths[0])
                self.fail(
                    _at(path, place, shape), f"has {lengths[place]} entries, and the first {lengths[0]}"
                )
            shape.append(lengths[0])
            level = list(chain.from_iterable(level))
        if note is not None:  # of an empty list the other sizes are not seen
            rest = note.sizes[len(shape) :]
            shape += [size if isinstance(size, int) else sizes.get(size, 0) for size in rest]
        return tuple(shape), level

    def _sized(self, path: str, shape: tuple[int, ...], note: Shape, sizes: dict[str, int]) -> None:
        if len(shape) != len(note.sizes):
            self.fail(path, f"has the shape {shape}: it must have {len(note.sizes)} dimensions")
        for size, length in zip(note.sizes, shape, strict=True):
            wanted = size if isinstance(size, int) else sizes.setdefault(size, length)
            if wanted != length:
                told = "" if isinstance(size, int) else f" ({size} is {wanted} here)"
                self.fail(path, f"has the shape {shape}: {length} must be {wanted}{told}")


def _at(path: str, place: int, shape: Sequence[int]) -> str:
    """The path of an entry of nested lists."""
    index = np.unravel_index(place, tuple(shape)) if shape else ()
    return path + "".join(f"[{int(k)}]" for k in index)


def _words(kind: Any, notes: Sequence[Any]) -> str:
    """What the plain data of a type may be, in words."""
    forms = forms_of(kind, notes)
    return " or ".join(sorted(forms - ({"a whole number"} if "a number" in forms else set())))


def _shown(data: Any) -> str:
    return reprlib.repr(data)
