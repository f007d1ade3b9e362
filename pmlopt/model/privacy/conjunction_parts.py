"""Comparison and naming of the parts of a requirement conjunction."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import chain, count
from typing import Any

import numpy as np

from pmlopt.core.records import Record, get_fields, have_equal_content


def make_distinct_names(each: Sequence[Sequence[str]]) -> list[dict[str, str]]:
    """Make the limit names of all parts unique, by appending numbers."""
    taken: set[str] = set()
    found: list[dict[str, str]] = []
    for names in each:
        own: dict[str, str] = {}
        for name in names:
            others = (f"{name}_{number}" for number in count(2))
            own[name] = next(new for new in chain([name], others) if new not in taken)
            taken.add(own[name])
        found.append(own)
    return found


LEVEL_FIELDS = ("epsilon", "lower", "upper")
"""The fields of requirements that are levels: with larger ones a requirement is weaker."""


def differ_in_levels_only(one: Record, other: Record) -> bool:
    """Return whether two requirements differ only in levels, one being stricter in each."""
    if type(one) is not type(other):
        return False
    kind: Any = type(one)
    names = [field.name for field in get_fields(kind)]
    rest = [name for name in names if name not in LEVEL_FIELDS]
    if not all(have_equal_content(getattr(one, name), getattr(other, name)) for name in rest):
        return False
    pairs = [
        (np.asarray(getattr(one, name)), np.asarray(getattr(other, name)))
        for name in names
        if name in LEVEL_FIELDS
    ]
    if any(own.shape != their.shape for own, their in pairs):
        return False
    weaker = all((own <= their).all() for own, their in pairs)
    return bool(weaker or all((own >= their).all() for own, their in pairs))
