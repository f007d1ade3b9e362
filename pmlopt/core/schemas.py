"""JSON schemas of records, which say of each field what `read` demands of it."""

from __future__ import annotations

import math
from collections.abc import Hashable, Mapping, Sequence
from typing import Any, get_args, get_origin

import numpy as np

from pmlopt.core.fields import (
    ENTRIES,
    SCALARS,
    Given,
    Range,
    Shape,
    fields_of,
    is_labels,
    is_record,
    kinds_of,
    members,
    split,
    tag_of,
    words_of,
)
from pmlopt.core.records import INFINITE

Schema = dict[str, Any]

_LABELS: Schema = {
    "description": "the labels, or the number of letters that nobody named",
    "anyOf": [{"type": "array", "items": {"$ref": "#/$defs/label"}}, {"type": "integer", "minimum": 1}],
}


def definitions(*kinds: type) -> dict[str, Schema]:
    """The JSON schemas of record classes, of their subclasses, and of the records within.

    A class stands under its name, and a base of several under its own, or under `Any` and its own, with a
    list of them. Subclasses that other packages define are left out.

    Examples:
        >>> definitions(Range)["Range"]["required"]
        ['low', 'high']
    """
    defs: dict[str, Schema] = {
        "label": {
            "description": "a list is a tuple",
            "anyOf": [
                {"type": ["string", "number", "boolean"]},
                {"type": "array", "items": {"$ref": "#/$defs/label"}},
            ],
        }
    }
    for kind in kinds:
        _reference(kind, defs)
    return defs


def _reference(kind: type, defs: dict[str, Schema]) -> Schema:
    """A reference to a class of records, or to a list of its subclasses where it has any."""
    home = kind.__module__.partition(".")[0]
    known = [one for _, one in sorted(kinds_of(kind).items()) if one.__module__.partition(".")[0] == home]
    if known in ([], [kind]):
        return _own(kind, defs)
    name = f"Any{kind.__name__}" if kind in known else kind.__name__
    if name not in defs:
        defs[name] = {}  # for records within themselves
        defs[name] = {"oneOf": [_own(one, defs) for one in known]}
    return {"$ref": f"#/$defs/{name}"}


def _own(kind: type, defs: dict[str, Schema]) -> Schema:
    """A reference to the definition of one class, which is added where it is missing."""
    if kind.__name__ not in defs:
        defs[kind.__name__] = {}
        defs[kind.__name__] = _record(kind, defs)
    return {"$ref": f"#/$defs/{kind.__name__}"}


def _record(kind: type, defs: dict[str, Schema]) -> Schema:
    tag = tag_of(kind)
    found: Schema = {} if tag is None else {tag[0]: {"const": tag[1]}}
    found |= {one.name: _of(one.type, (), defs) for one in fields_of(kind)}
    names = list(found)
    return {"type": "object", "properties": found, "required": names, "additionalProperties": False}


def _of(kind: Any, notes: Sequence[Any], defs: dict[str, Schema]) -> Schema:
    """The schema of a type of a field."""
    kind, own = split(kind)
    notes = (*notes, *own)
    words: list[Schema] = [{"const": note.word} for note in notes if isinstance(note, Given)]
    if any(note.only for note in notes if isinstance(note, Given)):
        return words[0]
    rest = tuple(note for note in notes if not isinstance(note, Given))
    several = [_of(one, rest, defs) for one in members(kind)] if len(members(kind)) > 1 else []
    several = several or [_single(kind, rest, defs)]
    if INFINITE in notes and kind is float:
        words.append({"enum": ["inf", "-inf"]})
    both = [*words, *several]
    return both[0] if len(both) == 1 else {"anyOf": both}


def _single(kind: Any, notes: Sequence[Any], defs: dict[str, Schema]) -> Schema:
    origin, args = get_origin(kind), get_args(kind)
    if isinstance(kind, Hashable) and kind in SCALARS:
        return SCALARS[kind][1] | _range(notes)
    words = words_of(kind, notes)
    if words is not None:
        return {"enum": list(words)}
    if origin is np.ndarray:
        return _array(get_args(args[1])[0], notes)
    if is_labels(kind):
        return _LABELS
    if origin in (dict, Mapping):
        return {"type": "object", "additionalProperties": _of(args[1], (), defs)}
    if is_record(kind):
        return _reference(kind, defs)
    if len(args) == 2 and args[1] is not Ellipsis:
        parts = [_of(one, (), defs) for one in args]
        return {"type": "array", "prefixItems": parts, "items": False, "minItems": len(parts)}
    return {"type": "array", "items": _of(args[0], (), defs)}


def _array(scalar: Any, notes: Sequence[Any]) -> Schema:
    plain = SCALARS[ENTRIES[scalar]][1]
    found = plain | _range(notes)
    if INFINITE in notes:
        found = {"anyOf": [found, {"enum": ["inf", "-inf"]}]}
    shape = next((note for note in notes if isinstance(note, Shape)), None)
    if shape is None:
        return {"description": "nested lists of one depth, or one entry", "type": ["array", plain["type"]]}
    for size in reversed(shape.sizes):
        fixed = {"minItems": size, "maxItems": size} if isinstance(size, int) else {"title": size}
        found = {"type": "array", **fixed, "items": found}
    return found


def _range(notes: Sequence[Any]) -> Schema:
    found: Schema = {}
    for note in notes:
        if isinstance(note, Range):
            ends = {"minimum": note.low, "maximum": note.high}
            found |= {key: end for key, end in ends.items() if not math.isinf(end)}
    return found
