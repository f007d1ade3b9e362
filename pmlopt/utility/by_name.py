"""Sub-convex utilities by name, for the command line and problem files."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from pmlopt.utility.f_information import ChiSquare, Hellinger, MutualInformation, TotalVariation
from pmlopt.utility.subconvex import GuessingProbability, SubConvex

INFORMATIONS: Mapping[str, Callable[[], SubConvex]] = {
    kind().name: kind
    for kind in (MutualInformation, TotalVariation, ChiSquare, Hellinger, GuessingProbability)
}
