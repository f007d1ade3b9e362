"""Pages on which a trade-off is looked at before a point of it is chosen."""

from pmlopt.publishing.exploring.exploration import Curve, Exploration, Part, Point
from pmlopt.publishing.exploring.sources import explore

__all__ = ["Curve", "Exploration", "Part", "Point", "explore"]
