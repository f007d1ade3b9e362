"""The expected distortion of a mechanism that answers a query."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from pmlopt.arrays import FloatArray, Label, float_array
from pmlopt.errors import UtilityError
from pmlopt.mechanism import MechanismLike
from pmlopt.queries.channel import record_channel
from pmlopt.queries.query import Query, check_query, numbers_of
from pmlopt.queries.symmetry import law_of, orbits


def expected_distortion(
    query: Query, mechanism: MechanismLike, loss: ArrayLike | None = None, law: ArrayLike | None = None
) -> float:
    """Expected distortion of a query's answer, `E d(f(X), Y) = sum_{x,y} p_0(x) q(y|x) d(f(x), y)`.

    Args:
        query: f.
        mechanism: (T, M) q(y|f(x)), a row for each value of the query; or a row for each class of
            `queries.orbits(query, law)`, or for each dataset: see `record_channel`.
        loss: (T, M) d(f, y); |y - f| over the query's values where left out.
        law: (k_1, ..., k_n) the true law p_0 of the dataset; uniform where left out.

    Raises:
        UtilityError: the loss does not fit.
        MechanismError, QueryError, PriorError: another argument does not.

    Source: [wu2026entropy, eqs. (31) and (32)].

    Examples:
        >>> from pmlopt.queries import ModularSum, Quadratic, symmetric_channel
        >>> parity = ModularSum(4, 2)
        >>> round(expected_distortion(parity, symmetric_channel(parity, 0.3)), 9)
        0.3
        >>> expected_distortion(Quadratic(3), [[1, 0, 0], [1, 0, 0], [0, 1, 0], [0, 0, 1]])  # by weights: f
        0.0
    """
    table, _ = loss_table(query, loss)
    channel = record_channel(query, mechanism, law)
    matrix = channel.mechanism.matrix
    classes = orbits(query, law)
    values, masses = classes.values, classes.masses
    if channel.query is query:
        matrix = _fitting(matrix, table)[values]
    elif len(matrix) != len(values):  # a row for each dataset
        values, masses = query.table().ravel(), law_of(query, law).ravel()
    return float(masses @ (_fitting(matrix, table) * table[values]).sum(axis=1))


def _fitting(matrix: FloatArray, table: FloatArray) -> FloatArray:
    """The mechanism; a UtilityError where it has not as many outputs as the distortion."""
    if matrix.shape[1] != table.shape[1]:
        raise UtilityError(
            f"the mechanism has the shape {matrix.shape} and the distortion {table.shape}: give one entry of "
            "the distortion for each value and output"
        )
    return matrix


def loss_table(query: Query, loss: ArrayLike | None) -> tuple[FloatArray, tuple[Label, ...]]:
    """(T, M) the distortion d(f, y) of each value and output, and the labels of the outputs.

    Raises:
        UtilityError: the loss is no matrix with a row for each value of the query, or is negative.
        QueryError: the query is none, or its values are not numbers and no loss is given.
    """
    check_query(query)
    if loss is None:
        numbers = numbers_of(query)
        return np.abs(numbers[:, None] - numbers), query.values
    table = float_array(loss, 2, "the distortion", UtilityError)
    if len(table) != len(query.values):
        raise UtilityError(
            f"the distortion has {len(table)} rows: give one for each of the query's {len(query.values)} "
            "values"
        )
    if table.min() < 0:
        raise UtilityError(f"the distortion has the entry {table.min():.6g}: give a loss of at least 0")
    square = table.shape[1] == len(query.values)
    return table, query.values if square else tuple(range(table.shape[1]))
