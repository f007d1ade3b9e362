"""Light dataclasses behave as those of the standard library, but for what the type checker refuses."""

from __future__ import annotations

import copy
import dataclasses
import pickle
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any

import pytest

from pmlopt.core.light_dataclass import light_dataclass


def make_classes(make: Callable[..., Any]) -> dict[str, Any]:
    """Make classes of which each has another of the options that pmlopt uses."""

    @make(frozen=True)
    class Pair:
        left: int
        right: float = 2.0

    @make(frozen=True)
    class Longer(Pair):
        words: tuple[str, ...] = field(default_factory=lambda: ("a",))
        note: str = field(default="", compare=False)
        hidden: int = field(default=0, repr=False)

    @make(frozen=True, eq=False, kw_only=True)
    class Own:
        one: Any = None

    @make(frozen=True)
    class Shown:
        one: int = 1

        def __repr__(self) -> str:
            return f"<{self.one}>"

    @make(frozen=True, eq=False)
    class SameAsBase(Pair):
        more: int = 0

    @make(frozen=True)
    class Empty:
        pass

    return {kind.__name__: kind for kind in (Pair, Longer, Own, Shown, SameAsBase, Empty)}


LIGHT, PLAIN = make_classes(light_dataclass), make_classes(dataclass)
OBJECTS: tuple[tuple[str, dict[str, Any]], ...] = (
    ("Pair", {"left": 1}),
    ("Pair", {"left": 1, "right": 3.0}),
    ("Longer", {"left": 1}),
    ("Longer", {"left": 1, "note": "x"}),
    ("Longer", {"left": 1, "hidden": 2}),
    ("Own", {"one": 1}),
    ("Own", {"one": 1}),
    ("Shown", {}),
    ("SameAsBase", {"left": 1, "more": 1}),
    ("SameAsBase", {"left": 1, "more": 2}),
    ("Empty", {}),
)


def make_all(kinds: dict[str, Any]) -> list[Any]:
    return [kinds[name](**values) for name, values in OBJECTS]


def test_they_are_shown_and_compared_as_others() -> None:
    light, plain = make_all(LIGHT), make_all(PLAIN)
    assert list(map(repr, light)) == list(map(repr, plain))
    assert [one == other for one in light for other in light] == [
        one == other for one in plain for other in plain
    ]
    for one in light:
        for other in light:
            assert one != other or hash(one) == hash(other)
    assert light[0] != (1, 2.0)


def test_what_holds_itself_is_shown() -> None:
    values: list[Any] = []
    one = LIGHT["Own"](one=values)
    values.append(one)
    assert repr(one).endswith("Own(one=[...])")


@pytest.mark.parametrize("make", [copy.copy, copy.deepcopy, replace])
def test_copies_are_equal(make: Callable[[Any], Any]) -> None:
    assert make(LIGHT["Longer"](1, note="x")) == LIGHT["Longer"](1)


def test_the_fields_are_known() -> None:
    for name, kind in LIGHT.items():
        assert [one.name for one in dataclasses.fields(kind)] == [
            one.name for one in dataclasses.fields(PLAIN[name])
        ]


def test_one_of_a_module_is_pickled() -> None:
    from pmlopt.core.records.fields import Range

    assert pickle.loads(pickle.dumps(Range(0.0, 1.0))) == Range(0.0, 1.0)
