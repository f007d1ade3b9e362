"""Interactive pages for choosing a point of a privacy-utility trade-off."""

from pmlopt.publishing.exploring.exploration import (
    CurvePoint,
    Exploration,
    ExploredCurve,
    ExploredPart,
)
from pmlopt.publishing.exploring.sources import explore

__all__ = ["CurvePoint", "Exploration", "ExploredCurve", "ExploredPart", "explore"]
