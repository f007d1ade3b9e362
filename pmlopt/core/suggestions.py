"""Suggestions for misspelled or foreign names in errors."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from difflib import get_close_matches
from typing import TYPE_CHECKING, Any, ClassVar


class SuggestsAttributes:
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
            near = get_close_matches(
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
    near = get_close_matches(word, list(known), n=1)
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
    near = get_close_matches(name, owner, n=1)
    return f": did you mean {owner[near[0]]}.{near[0]}?" if near else ""
