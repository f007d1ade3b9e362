"""The certificate of a design with a sub-convex utility."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from pmlopt.core.arrays import rounding_of
from pmlopt.model.utility import informations
from pmlopt.programs.certificate import FLOATS, SHARE, Claim, bound_claim, gap_claim, value_claim
from pmlopt.programs.design_program import DesignCertificate
from pmlopt.programs.subconvex.column_spaces import column_space


@dataclass(frozen=True, eq=False, kw_only=True)
class ColumnCertificate(DesignCertificate):
    """The certificate of a sub-convex utility.

    The bound is `column_bound(prior, privacy, utility, multipliers)`, or, where that took a search, what
    the search proved for these multipliers.

    Attributes:
        utility: the name of the utility.
        pricing: what the bound on the extreme columns rests on: "counts" and "vertices" are exact,
            "search" and "tangents" go through what bounds leave open, "ball" adds what plateaus may be
            worth, "split" and "relaxed" are relaxed columns and the chords of the utility, "everything" is
            the utility of releasing the secret itself.
    """

    kind: ClassVar[str] = "sub-convex"
    flat = False

    utility: str
    pricing: str

    @property
    def is_maximised(self) -> bool:
        return True

    @property
    def bound_rounding(self) -> float:
        if self.utility not in informations():
            return 1e-14 * max(1.0, abs(self.value))
        space = column_space(self.prior, self.privacy, informations()[self.utility]())
        return rounding_of(sum(self.mechanism.matrix.shape), max(1.0, abs(space.everything)))

    def checks(self) -> tuple[Claim, ...]:
        """Return the claims of level, value and bound, with the extreme columns priced again."""
        if self.utility not in informations():
            text = f"the utility {self.utility!r} is a function, which no file holds"
            claims = (Claim(name, None, FLOATS, text) for name in ("value", "bound"))
            return (*self.level_checks, *claims, gap_claim(self, self.bound_rounding, self.is_maximised))
        prior, utility, rho = self.prior, informations()[self.utility](), self.multipliers
        space = column_space(prior, self.privacy, utility)
        value = value_claim(self.value, utility.value(prior, self.mechanism), self.bound_rounding)
        found = (*self.level_checks, value, gap_claim(self, self.bound_rounding, self.is_maximised))
        if rho is None or rho.shape != (prior.size,):
            return (*found, bound_claim(self.bound, None, True))
        if np.array_equal(rho, space.released):
            proved = space.everything_bound
        else:
            proved = space.bound(rho, self.bound, None)[0]
        return (*found, bound_claim(self.bound, proved - SHARE * space.blur, True))
