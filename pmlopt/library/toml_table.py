"""A TOML table read key by key: each value checked for its kind, and no key left over."""

from __future__ import annotations

import math
import reprlib
from collections.abc import Mapping
from dataclasses import replace
from difflib import get_close_matches
from fractions import Fraction
from pathlib import Path
from typing import Any, TypeVar

from pmlopt.core.arrays import real
from pmlopt.core.records import Context, read
from pmlopt.errors import InstanceError

T = TypeVar("T")
LONGEST_RATIONAL = 400
"""Characters of a rational in a file: the powers of ten at the end of the floats have 309 digits."""
LARGEST_EXPONENT = 400
"""Of a rational written like 1e-3: floats, and with them the levels of mechanisms, end at 308."""


class Table:
    """A TOML table that is read key by key; what is left over at the end is an error."""

    def __init__(self, file: Path, name: str, data: Mapping[str, Any]) -> None:
        self.file, self.name, self._left = file, name, dict(data)
        self._known: list[str] = []

    def take(self, key: str, kind: type | tuple[type, ...], default: Any = ...) -> Any:
        """The value of a key, checked for its kind; an error where it is missing without a default."""
        self._known.append(key)
        if key not in self._left:
            if default is ...:
                raise self.error(key, "is missing: add it")
            return default
        value = self._left.pop(key)
        kinds = kind if isinstance(kind, tuple) else (kind,)
        if not isinstance(value, kind) or (isinstance(value, bool) and bool not in kinds):
            wanted = " or ".join(
                dict.fromkeys(_KINDS[k] for k in kinds if k is not int or float not in kinds)
            )
            raise self.error(key, f"is {value!r}: write {wanted}")
        return value

    def table(self, key: str) -> Table:
        """The table under a key, which is read key by key too."""
        return Table(self.file, self._path(key), self.take(key, dict))

    def number(self, key: str, default: Any = ...) -> float:
        """The finite number under a key, as a float."""
        return self._finite(key, self.take(key, (int, float), default))

    def level(self, key: str) -> float:
        """A level in nats: a number, or `{ log = "9/8" }` for the logarithm of a rational."""
        value = self.take(key, (int, float, dict))
        if not isinstance(value, dict):
            return self._finite(key, value)
        inner = Table(self.file, self._path(key), value)
        text = inner.take("log", (str, int, float))
        inner.done()
        try:
            return math.log(_rational(str(text)))
        except (ValueError, ZeroDivisionError, OverflowError):
            raise inner.error(
                "log", f'is {reprlib.repr(text)}: write a positive rational such as "9/8"'
            ) from None

    def count(self, key: str, most: int) -> int:
        """The whole number under a key, at least 1 and at most a limit.

        Raises:
            InstanceError: it is another one; the message says how else a larger problem can be solved.
        """
        value = int(self.take(key, int))
        if not 1 <= value <= most:
            raise self.error(
                key,
                f"is {reprlib.repr(value)}: write a whole number from 1 to {most:,}; larger problems are "
                "solved from Python",
            )
        return value

    def choice(self, key: str, allowed: tuple[str, ...]) -> str:
        """The text under a key, which must be one of the allowed words."""
        value = str(self.take(key, str))
        if value not in allowed:
            raise self.error(key, f"is {value!r}: write one of {', '.join(allowed)}")
        return value

    def only(self, allowed: tuple[str, ...]) -> str:
        """The one key of a table that holds exactly one of the allowed keys."""
        present = [key for key in self._left if key in allowed]
        self._known.extend(allowed)
        if len(present) != 1:
            found = ", ".join(map(repr, self._left)) or "nothing"
            raise self.error("", f"must hold exactly one of {', '.join(allowed)}; it holds {found}")
        return present[0]

    def peek(self, key: str) -> Any:
        """The value of a key, which stays to be taken; None where it is missing."""
        return self._left.get(key)

    def record(self, kind: type[T], context: Context) -> T:
        """The record that the whole table says; keys with a default may be missing."""
        data, self._left = self._left, {}
        within = replace(context, complete=False, error=InstanceError)
        return read(kind, data, f"{self.file}: {self.name}", within)

    def __contains__(self, key: str) -> bool:
        return key in self._left

    def done(self) -> None:
        """Raise for a key that nothing asked for."""
        for key in self._left:
            near = get_close_matches(key, self._known, n=1)
            hint = f"did you mean {near[0]!r}?" if near else f"the keys here are {', '.join(self._known)}"
            raise self.error(key, f"is not a known key: {hint}")

    def error(self, key: str, problem: str) -> InstanceError:
        """An error that names the file and the key."""
        return InstanceError(f"{self.file}: {self._path(key)} {problem}")

    def _finite(self, key: str, value: Any) -> float:
        return real(value, f"{self.file}: {self._path(key)}", InstanceError)

    def _path(self, key: str) -> str:
        return ".".join(part for part in (self.name, key) if part)


def _rational(text: str) -> Fraction:
    """The number that a text such as "9/8" or "1e-3" says, without numbers that would fill the memory."""
    exponent = text.lower().partition("e")[2]
    if len(text) > LONGEST_RATIONAL or (exponent and abs(int(exponent)) > LARGEST_EXPONENT):
        raise ValueError
    return Fraction(text)


_KINDS = {
    str: "text",
    int: "a whole number",
    float: "a number",
    list: "a list",
    dict: "a table",
    bool: "true or false",
}
