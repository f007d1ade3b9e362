"""Pages on which a trade-off is looked at before a point of it is chosen."""

from pmlopt.exploring.exploration import Exploration
from pmlopt.exploring.points import Curve, Part, Point
from pmlopt.exploring.sources import explore

__all__ = ["Curve", "Exploration", "Part", "Point", "explore"]
