"""What a check of a saved result found: part by part, and together."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

RATIONAL = "rational arithmetic"
FLOATS = "floating point, rounding allowed for"
DECIMAL = "decimal arithmetic of 50 digits"


@dataclass(frozen=True)
class Part:
    """One part of what a file claims.

    Attributes:
        name: what was looked at, such as "level".
        holds: whether it is so; None where the file does not hold what the check needs.
        arithmetic: in which it was decided.
        detail: what was found, in words.
    """

    name: str
    holds: bool | None
    arithmetic: str
    detail: str

    @property
    def verdict(self) -> str:
        """In one word or two."""
        return {True: "holds", False: "FAILS", None: "not checked"}[self.holds]

    @property
    def exact(self) -> bool:
        """Whether it was decided without rounding that could matter."""
        return self.arithmetic == RATIONAL

    def __str__(self) -> str:
        return f"{self.name}: {self.verdict} ({self.arithmetic}): {self.detail}"


@dataclass(frozen=True)
class Verdict:
    """All parts of what a file claims.

    Attributes:
        kind: of the certificate.
        statement: what is claimed of the leakage.
        parts: each checked by itself.
    """

    kind: str
    statement: str
    parts: tuple[Part, ...]

    @property
    def holds(self) -> bool | None:
        """False where a part fails; None where none does and one was not checked; else True."""
        found = [part.holds for part in self.parts]
        if False in found:
            return False
        return None if None in found else True

    def to_dict(self) -> dict[str, Any]:
        """Plain data: what `pmlopt verify --json` prints."""
        return {
            "kind": self.kind,
            "statement": self.statement,
            "holds": self.holds,
            "parts": [
                {
                    "part": p.name,
                    "holds": p.holds,
                    "exact": p.exact,
                    "arithmetic": p.arithmetic,
                    "detail": p.detail,
                }
                for p in self.parts
            ],
        }

    def __str__(self) -> str:
        word = {True: "the claim holds", False: "the claim FAILS", None: "not all of it was checked"}
        return "\n".join([f"{self.kind}: {self.statement}", *map(str, self.parts), word[self.holds]])
