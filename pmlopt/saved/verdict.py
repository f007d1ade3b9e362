"""What a check of a saved result found: claim by claim, and together."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from pmlopt.result import Claim


@dataclass(frozen=True)
class Verdict:
    """All claims of a file.

    Attributes:
        kind: of the certificate.
        statement: what is claimed of the leakage.
        parts: the claims, each checked by itself.
    """

    kind: str
    statement: str
    parts: tuple[Claim, ...]

    @property
    def holds(self) -> bool | None:
        """False where a claim fails; None where none does and one was not checked; else True."""
        found = [part.holds for part in self.parts]
        if False in found:
            return False
        return None if None in found else True

    @property
    def failures(self) -> tuple[Claim, ...]:
        """The claims that are false."""
        return tuple(part for part in self.parts if part.holds is False)

    def to_dict(self) -> dict[str, Any]:
        """Plain data: what `pmlopt verify --json` prints."""
        return {
            "kind": self.kind,
            "statement": self.statement,
            "holds": self.holds,
            "parts": [part.to_dict() for part in self.parts],
        }

    def __str__(self) -> str:
        word = {True: "the claim holds", False: "the claim FAILS", None: "not all of it was checked"}
        return "\n".join([f"{self.kind}: {self.statement}", *map(str, self.parts), word[self.holds]])
