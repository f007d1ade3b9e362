"""Queries on a dataset of records, the number of datasets behind each value, and mechanisms that answer."""

from pmlopt.queries.channel import RecordChannel, record_channel
from pmlopt.queries.distortion import expected_distortion
from pmlopt.queries.explicit import Explicit
from pmlopt.queries.mechanisms import exponential, laplace, symmetric_channel
from pmlopt.queries.modular import ModularSum
from pmlopt.queries.query import Query
from pmlopt.queries.symmetry import Orbits, orbits
from pmlopt.queries.weight import Quadratic, Weight

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
    "laplace",
    "orbits",
    "record_channel",
    "symmetric_channel",
]
