"""Sub-convex utilities by name, for the command line and problem files."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from pmlopt.model.utility.subconvex import (
    ChiSquare,
    GuessingProbability,
    Hellinger,
    MutualInformation,
    SubConvex,
    TotalVariation,
)

INFORMATIONS: Mapping[str, Callable[[], SubConvex]] = {
    kind().name: kind
    for kind in (MutualInformation, TotalVariation, ChiSquare, Hellinger, GuessingProbability)
}
