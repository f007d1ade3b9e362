"""Queries on a dataset of records, the number of datasets behind each value, and mechanisms that answer."""

from pmlopt.model.queries.channel import (
    RecordChannel,
    expected_distortion,
    exponential,
    laplace,
    record_channel,
    symmetric_channel,
)
from pmlopt.model.queries.kinds import Explicit, ModularSum, Quadratic, Weight
from pmlopt.model.queries.query import Query
from pmlopt.model.queries.record_leakage_measures import independent_leakage
from pmlopt.model.queries.symmetry import Orbits, orbits

__all__ = [
    "Explicit",
    "ModularSum",
    "Orbits",
    "Quadratic",
    "Query",
    "RecordChannel",
    "Weight",
    "expected_distortion",
    "exponential",
    "independent_leakage",
    "laplace",
    "orbits",
    "record_channel",
    "symmetric_channel",
]
