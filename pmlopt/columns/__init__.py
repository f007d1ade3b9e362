"""Normalised columns of a mechanism: the extreme ones that a requirement allows, counted, listed, priced."""

from pmlopt.columns.batch import Columns, recognised, unit_columns
from pmlopt.columns.counting import CountPricer
from pmlopt.columns.family import Box, Family, Staircase
from pmlopt.columns.kernel import Kernel
from pmlopt.columns.pricing import Priced, Pricer
from pmlopt.columns.relaxation import closed_multipliers, relaxed
from pmlopt.columns.search import SearchPricer
from pmlopt.columns.vertices import VertexPricer, count_vertices, vertices

__all__ = [
    "Box",
    "Columns",
    "CountPricer",
    "Family",
    "Kernel",
    "Priced",
    "Pricer",
    "SearchPricer",
    "Staircase",
    "VertexPricer",
    "closed_multipliers",
    "count_vertices",
    "recognised",
    "relaxed",
    "unit_columns",
    "vertices",
]
