"""Pages on which a trade-off is looked at before a point of it is chosen."""

from pmlopt.publishing.exploring.exploration import (
    CurvePoint,
    Exploration,
    ExploredCurve,
    ExploredPart,
)
from pmlopt.publishing.exploring.sources import explore

__all__ = ["CurvePoint", "Exploration", "ExploredCurve", "ExploredPart", "explore"]
