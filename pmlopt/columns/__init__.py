"""Normalised columns of a mechanism: the extreme ones that a requirement allows, counted, listed, priced."""

from pmlopt.columns.batch import Batch, Columns, recognised, unit_columns
from pmlopt.columns.counting import CountPricer
from pmlopt.columns.explicit import Explicit, ExplicitPricer
from pmlopt.columns.family import STEEPEST, Box, Family, Staircase
from pmlopt.columns.kernel import Kernel
from pmlopt.columns.plateau import Plateau, PlateauSearch
from pmlopt.columns.pricing import Priced, Pricer
from pmlopt.columns.relaxation import closed_multipliers, relaxed
from pmlopt.columns.search import SearchPricer
from pmlopt.columns.vertices import VertexPricer, count_vertices, vertices

__all__ = [
    "STEEPEST",
    "Batch",
    "Box",
    "Columns",
    "CountPricer",
    "Explicit",
    "ExplicitPricer",
    "Family",
    "Kernel",
    "Plateau",
    "PlateauSearch",
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
