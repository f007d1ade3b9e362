"""The certificate of a design with a sub-convex utility."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

from pmlopt.programs.design_certificate import DesignCertificate


@dataclass(frozen=True, eq=False, kw_only=True)
class ColumnCertificate(DesignCertificate):
    """The certificate of a sub-convex utility.

    The bound is `column_bound(prior, privacy, utility, multipliers)`, or, where that took a search, what
    the search proved for these multipliers.

    Attributes:
        utility: the name of the utility.
        pricing: what the bound on the extreme columns rests on: "counts" and "vertices" are exact,
            "search" is branch and bound, "relaxed" the chords of the utility, "everything" the utility of
            releasing the secret itself.
    """

    kind: ClassVar[str] = "sub-convex"

    utility: str
    pricing: str

    @property
    def flat(self) -> bool:
        return False

    def utility_record(self) -> dict[str, Any]:
        return {"kind": self.utility}

    def bound_record(self) -> dict[str, Any]:
        return {"pricing": self.pricing}
