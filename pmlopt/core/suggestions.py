"""Suggestions for misspelled or foreign names in errors."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import cached_property
from typing import TYPE_CHECKING, Any, ClassVar

from pmlopt.core.lazy_imports import difflib


class CompletesUserNames:
    """A base class whose `dir`, from which editors complete names, has the names that users write.

    They are the `USER_NAMES` of the classes of an object and its own fields. A class of another package is
    its author's: all its public names are completed.

    Examples:
        >>> from pmlopt import LDP
        >>> [name for name in dir(LDP(1.0)) if name.startswith(("e", "le", "su"))]
        ['epsilon', 'level', 'levels']
    """

    USER_NAMES: ClassVar[tuple[str, ...]] = ()
    """What users write of an object, in addition to its fields; where there are none, every public name."""

    def __dir__(self) -> list[str]:
        kinds = type(self).__mro__
        listed = {name for kind in kinds for name in vars(kind).get("USER_NAMES", ())}
        foreign = {
            name for kind in kinds if not is_own_module(kind.__module__) for name in vars(kind)
        }
        shown = listed | foreign | self._list_own_fields()
        return [
            name
            for name in super().__dir__()
            if is_dunder(name)
            or (not (name.startswith("_") or name.isupper()) and (name in shown or not listed))
        ]

    def _list_own_fields(self) -> set[str]:
        """List the attributes of the object itself that are not cached."""
        kind = type(self)
        return {
            name
            for name in vars(self)
            if not isinstance(getattr(kind, name, None), cached_property)
        }


def is_own_module(module: str) -> bool:
    """Return whether a module is of pmlopt."""
    return module.partition(".")[0] == "pmlopt"


def is_dunder(name: str) -> bool:
    """Return whether a name is one of Python's own protocols, such as `__len__`."""
    return name.startswith("__") and name.endswith("__")


class SuggestsAttributes(CompletesUserNames):
    """A base class whose `AttributeError` suggests similar names.

    Examples:
        >>> from pmlopt import Mechanism
        >>> Mechanism([[1.0]]).apply
        Traceback (most recent call last):
        ...
        AttributeError: Mechanism has no 'apply': write .sample(values)
    """

    ATTRIBUTE_HINTS: ClassVar[Mapping[str, str]] = {}
    """What to write for names that were tried."""

    if not TYPE_CHECKING:

        def __getattr__(self, name: str) -> Any:
            kind = type(self)
            if name.startswith("_"):
                raise AttributeError(f"{kind.__name__} has no {name!r}")
            write = kind.ATTRIBUTE_HINTS.get(name)
            near = difflib.get_close_matches(
                name, [one for one in dir(self) if not one.startswith("_")], n=1
            )
            hint = f": write {write}" if write else f": did you mean .{near[0]}?" if near else ""
            raise AttributeError(f"{kind.__name__} has no {name!r}{hint}")


def did_you_mean(word: str, known: Iterable[str], otherwise: str) -> str:
    """Return the nearest known word as a question, or a fallback.

    Examples:
        >>> (
        ...     did_you_mean("hamng", ["hamming", "absolute"], "use another"),
        ...     did_you_mean("x", ["hamming"], "use another"),
        ... )
        ("did you mean 'hamming'?", 'use another')
    """
    near = difflib.get_close_matches(word, list(known), n=1)
    return f"did you mean {near[0]!r}?" if near else otherwise


def suggest_module(name: str, modules: Mapping[str, Any]) -> str:
    """Return a hint in which module a name is, or the nearest name.

    Examples:
        >>> from pmlopt import errors, measures
        >>> suggest_module("epsilon_for", {"pmlopt.measures": measures})
        ': it is pmlopt.measures.epsilon_for'
        >>> suggest_module("epsilon_fro", {"pmlopt.measures": measures})
        ': did you mean pmlopt.measures.epsilon_for?'
    """
    owner = {
        one: module for module, found in modules.items() for one in getattr(found, "__all__", ())
    }
    if name in owner:
        return f": it is {owner[name]}.{name}"
    near = difflib.get_close_matches(name, owner, n=1)
    return f": did you mean {owner[near[0]]}.{near[0]}?" if near else ""
