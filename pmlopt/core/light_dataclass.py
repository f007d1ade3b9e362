"""Dataclasses for what nearly every start loads, and no other package makes or derives from.

The standard library writes the text of each method of each class and compiles it, which took two fifths of
the time in which pmlopt was loaded. Here it does so for the constructor only, and that nothing is assigned
to is left to the type checker.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, fields
from operator import attrgetter
from reprlib import recursive_repr
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from dataclasses import dataclass as light_dataclass
else:

    def light_dataclass(*, eq: bool = True, **options: Any) -> Callable[[type], type]:
        """Make a class as `dataclass` does, whose bases that are dataclasses must be made so, too."""
        del options["frozen"]

        def make(kind: type) -> type:
            made = dataclass(kind, repr=False, eq=False, **options)
            for name, method in make_methods(made, eq).items():
                if vars(made).get(name) is None:
                    setattr(made, name, method)
            return made

        return make


def make_methods(kind: type, eq: bool) -> dict[str, Callable[..., Any]]:
    """Make the methods of a dataclass that is not to be changed, but for its constructor."""
    shown = [one.name for one in fields(kind) if one.repr]
    made = {"__repr__": recursive_repr()(lambda self: describe(self, shown))}
    if not eq:
        return made
    get = attrgetter("__class__", *(one.name for one in fields(kind) if one.compare))
    return {
        **made,
        "__eq__": lambda self, other: (
            get(self) == get(other) if type(other) is type(self) else NotImplemented
        ),
        "__hash__": lambda self: hash(get(self)),
    }


def describe(one: object, names: list[str]) -> str:
    """Write the call that makes an object."""
    values = (f"{name}={getattr(one, name)!r}" for name in names)
    return f"{type(one).__qualname__}({', '.join(values)})"


__all__ = ["light_dataclass"]
