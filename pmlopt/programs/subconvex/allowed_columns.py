"""The column space of a design."""

from __future__ import annotations

from pmlopt.prior import Prior
from pmlopt.privacy import Requirement
from pmlopt.programs.subconvex.column_space import ColumnSpace
from pmlopt.programs.subconvex.family_space import FamilySpace
from pmlopt.programs.subconvex.set_space import SetSpace
from pmlopt.uncertainty import Cone
from pmlopt.uncertainty.column_families import Box
from pmlopt.utility import SubConvex


def column_space(prior: Prior, privacy: Requirement, utility: SubConvex) -> ColumnSpace:
    """The space of what the requirement allows; one letter has the constant column only."""
    allowed = privacy.columns(prior)
    if prior.size == 1:
        return FamilySpace(prior, privacy, utility, (Box(1.0, 1.0),))
    if isinstance(allowed, Cone):
        return SetSpace(prior, privacy, utility, allowed)
    return FamilySpace(prior, privacy, utility, allowed)
