"""The channel from a query's records to the output, with datasets of equal rows merged."""

from __future__ import annotations

import math
import reprlib
from dataclasses import dataclass
from itertools import product
from typing import Annotated, Literal

import numpy as np
from numpy.typing import ArrayLike

from pmlopt.core.numbers.argument_checks import check_all_nonnegative
from pmlopt.core.numbers.arrays import (
    DefaultLabels,
    FloatArray,
    IntArray,
    Labels,
    check_positive,
    check_real,
    copy_float_array,
)
from pmlopt.core.records.fields import ContextReference
from pmlopt.data.mechanism import Mechanism, MechanismLike, as_mechanism
from pmlopt.errors import MechanismError, PrivacyError, QueryError, UtilityError
from pmlopt.model.queries.kinds import Explicit
from pmlopt.model.queries.query import Query, check_listable, check_query, values_as_numbers
from pmlopt.model.queries.symmetry import check_dataset_law, orbits


@dataclass(frozen=True, eq=False)
class RecordChannel:
    """The channel from a query's records to the output, on which record leakage depends.

    Y depends on the dataset through the row q(.|x) only, and a class is a set of datasets with the same row.
    Given the law J of (X_i, T), T the class, the entropy of the dataset is largest when it is uniform inside
    each cell, so that J and the counts `log_counts` represent the whole prior:
    [wu2026entropy, Definition 2.1] in |X_i| T variables instead of |X|. The proof is in docs/results.md.

    Attributes:
        query: whose records they are; with one value for each class where the mechanism is q(y|x).
        mechanism: as it was given.
        rows: (T, M) the distinct rows, each over its sum.
        classes: (number of values of `query`,) the class of each; -1 for a value that no dataset has.
        names: (T,) what each class is called: the values of the query behind it.
    """

    query: Query
    mechanism: Mechanism
    rows: FloatArray
    classes: IntArray
    names: tuple[Labels, ...]

    @classmethod
    def from_fields(
        cls, query: Query, mechanism: Annotated[Mechanism, ContextReference("mechanism", only=True)]
    ) -> RecordChannel:
        """Build the channel from a saved file's fields; see `record_channel`."""
        return record_channel(query, mechanism)

    def log_counts(self, record: int) -> FloatArray:
        """Compute the (k_i, T) logarithms of the numbers of datasets with `x_i = a` and class t; -inf for
        none.
        """
        counts = self.query.log_counts(record)
        merged = np.full((len(counts), len(self.rows)), -np.inf)
        known = np.flatnonzero(self.classes >= 0)
        for letter, row in enumerate(counts):
            np.logaddexp.at(merged[letter], self.classes[known], row[known])
        return merged

    def class_table(self) -> IntArray:
        """Return the (k_1, ..., k_n) class index of every dataset, if they can be listed."""
        return self.classes[self.query.table()]


def record_channel(
    query: Query, mechanism: MechanismLike, law: ArrayLike | None = None
) -> RecordChannel:
    """Build the channel from a query's records to the output of a mechanism on the same datasets.

    Args:
        query: f.
        mechanism: (T, M) q(y|f(x)), a row for each of the query's values in their order; or (|X|, M) q(y|x),
            a row for each dataset in lexicographic order, the last record's letter running fastest; or
            (K, M), a row for each class of `queries.orbits(query, law)`, as a designed mechanism has. Rows
            without names that fit several of these are taken for the first.
        law: the true law of the dataset that the classes belong to; uniform where left out.

    Raises:
        MechanismError: the rows fit none, or their labels are others.
        QueryError: the query is none, or q(y|x) is given for more than 2^20 datasets.

    Examples:
        >>> from pmlopt.model.queries import ModularSum, Quadratic
        >>> record_channel(ModularSum(2, 2), [[0.9, 0.1], [0.1, 0.9]]).names
        ((0,), (1,))
        >>> record_channel(ModularSum(2, 2), [[1, 0], [0, 1], [0, 1], [0, 1]]).rows.tolist()
        [[1.0, 0.0], [0.0, 1.0]]
        >>> record_channel(Quadratic(3), [[1, 0], [1, 0], [0, 1], [0, 1]]).names  # a row for each weight
        ((0, 1), (2, 3))
    """
    check_query(query)
    known = as_mechanism(mechanism)
    values = query.values
    inputs = known.inputs
    count = len(known.inputs)
    unnamed = isinstance(inputs, DefaultLabels)
    as_datasets = abs(count - np.exp(min(query.log_size, 50.0))) < 0.5
    datasets = tuple(product(*map(range, query.alphabets))) if as_datasets else ()
    if not (count == len(values) and (unnamed or inputs == values)) and not (
        as_datasets and (unnamed or inputs == datasets)
    ):
        try:
            classes = orbits(query, law).query
        except QueryError:  # there are too many datasets to look for classes
            classes = query
        if count == len(classes.values) and (unnamed or inputs == classes.values):
            return _merge_rows(classes, known, known.matrix)
    if count == len(values) and not (as_datasets and inputs == datasets):
        _check_row_names(known, values, "the query's values")
        return _merge_rows(query, known, known.matrix)
    if not as_datasets:
        size = math.prod(query.alphabets) if query.log_size < 35 else f"e^{query.log_size:.6g}"
        raise MechanismError(
            f"the mechanism has {count} rows; give one for each of the query's {len(values)} values, one for "
            f"each class of queries.orbits(query, law), or one for each of its {size} datasets"
        )
    check_listable(query)
    _check_row_names(known, datasets, "the datasets, as tuples of letters,")
    rows, places = _find_distinct_rows(known.matrix)
    return _merge_rows(Explicit(places.reshape(query.alphabets)), known, rows)


def _check_row_names(mechanism: Mechanism, names: Labels, what: str) -> None:
    """Raise a MechanismError where row labels differ from the expected ones, also in order."""
    if mechanism.inputs == names or isinstance(mechanism.inputs, DefaultLabels):
        return
    how = (
        "the same in another order: reorder the rows"
        if set(mechanism.inputs) == set(names)
        else "others"
    )
    raise MechanismError(
        f"the mechanism's inputs {reprlib.repr(mechanism.inputs)} differ from {what} {reprlib.repr(names)}: "
        f"they are {how}"
    )


def _merge_rows(query: Query, mechanism: Mechanism, matrix: FloatArray) -> RecordChannel:
    """Merge equal rows of a mechanism, and drop rows of values without datasets."""
    reached = np.flatnonzero(np.isfinite(query.log_counts(0)).any(axis=0))
    rows, places = _find_distinct_rows(matrix[reached] / matrix[reached].sum(axis=1, keepdims=True))
    classes = np.full(len(query.values), -1)
    classes[reached] = places
    names = tuple(
        tuple(query.values[value] for value in np.flatnonzero(classes == place))
        for place in range(len(rows))
    )
    return RecordChannel(query, mechanism, rows, classes, names)


def _find_distinct_rows(matrix: FloatArray) -> tuple[FloatArray, IntArray]:
    """Find distinct rows in order of appearance, and each row's index among them."""
    _, first, places = np.unique(matrix, axis=0, return_index=True, return_inverse=True)
    order = np.argsort(first)
    return matrix[first[order]], np.argsort(order)[places.ravel()]


def expected_distortion(
    query: Query,
    mechanism: MechanismLike,
    loss: ArrayLike | None = None,
    law: ArrayLike | None = None,
) -> float:
    """Compute the expected distortion of an answer, `E d(f(X), Y) = sum_{x,y} p_0(x) q(y|x) d(f(x), y)`.

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
        >>> from pmlopt.model.queries import ModularSum, Quadratic, symmetric_channel
        >>> parity = ModularSum(4, 2)
        >>> round(expected_distortion(parity, symmetric_channel(parity, 0.3)), 9)
        0.3
        >>> expected_distortion(Quadratic(3), [[1, 0, 0], [1, 0, 0], [0, 1, 0], [0, 0, 1]])  # by weights: f
        0.0
    """
    table, _ = compute_loss_table(query, loss)
    channel = record_channel(query, mechanism, law)
    matrix = channel.mechanism.matrix
    classes = orbits(query, law)
    values = classes.values
    masses = classes.masses
    if channel.query is query:
        matrix = _check_output_count(matrix, table)[values]
    elif len(matrix) != len(values):  # a row for each dataset
        values = query.table().ravel()
        masses = check_dataset_law(query, law).ravel()
    return float(masses @ (_check_output_count(matrix, table) * table[values]).sum(axis=1))


def _check_output_count(matrix: FloatArray, table: FloatArray) -> FloatArray:
    """Raise a UtilityError where mechanism and distortion have different numbers of outputs."""
    if matrix.shape[1] != table.shape[1]:
        raise UtilityError(
            f"the mechanism has the shape {matrix.shape} and the distortion {table.shape}: give one entry of "
            "the distortion for each value and output"
        )
    return matrix


def compute_loss_table(query: Query, loss: ArrayLike | None) -> tuple[FloatArray, Labels]:
    """Compute the (T, M) distortion table d(f, y), and the output labels.

    Raises:
        UtilityError: the loss is no matrix with a row for each value of the query, or is negative.
        QueryError: the query is none, or its values are not numbers and no loss is given.
    """
    check_query(query)
    if loss is None:
        numbers = values_as_numbers(query)
        return np.abs(numbers[:, None] - numbers), query.values
    table = copy_float_array(loss, 2, "the distortion", UtilityError)
    if len(table) != len(query.values):
        raise UtilityError(
            f"the distortion has {len(table)} rows: give one for each of the query's {len(query.values)} "
            "values"
        )
    check_all_nonnegative(table, "the losses of the distortion", UtilityError)
    square = table.shape[1] == len(query.values)
    return table, query.values if square else tuple(range(table.shape[1]))


def symmetric_channel(query: Query, error: float) -> Mechanism:
    """Build the generalized symmetric channel: the true value with probability 1 - p, else a uniform other.

    `q(y|x) = 1 - p` for `y = f(x)` and `p / (m - 1)` for the other m - 1 values.

    Args:
        query: with m values.
        error: p, in [0, 1]; 0 where there is one value only.

    Raises:
        MechanismError: p is not such a number.

    Source: [wu2026entropy, eq. (33)].

    Examples:
        >>> from pmlopt.model.queries import ModularSum
        >>> symmetric_channel(ModularSum(4, 3), 0.2).matrix.tolist()
        [[0.8, 0.1, 0.1], [0.1, 0.8, 0.1], [0.1, 0.1, 0.8]]
    """
    flip = check_real(error, "the error probability", MechanismError)
    m = len(query.values)
    if not 0 <= flip <= (1 if m > 1 else 0):
        raise MechanismError(
            f"the error probability is {flip:g} for {m} values: give one in [0, 1], and 0 for a single value"
        )
    matrix = np.full((m, m), flip / max(1, m - 1))
    np.fill_diagonal(matrix, 1 - flip)
    return Mechanism(matrix, query.values, query.values)


def laplace(query: Query, epsilon: float) -> Mechanism:
    """Build the Laplace mechanism of scale `sensitivity / epsilon`, rounded to the query's values.

    Thresholds lie half way between neighbouring values; for parity it is 0.5, and the channel is
    binary-symmetric with `p = exp(-epsilon / 2) / 2`.

    Args:
        query: its values are numbers.
        epsilon: above 0; the answer is epsilon-DP.

    Raises:
        PrivacyError: epsilon is not a positive number.
        QueryError: the values are not numbers.

    Source: [wu2026entropy, eqs. (45) and (46)], for the parity. The paper takes 1 as the sensitivity of a sum
    modulo m; for m > 2 one record can change that sum by more, and the query's true sensitivity is used.

    Examples:
        >>> from pmlopt.model.queries import ModularSum
        >>> laplace(ModularSum(4, 2), 1.0).matrix.round(4).tolist()
        [[0.6967, 0.3033], [0.3033, 0.6967]]
    """
    level = _check_level(epsilon)
    numbers = values_as_numbers(query)
    widest = query.sensitivity
    if widest == 0:
        return _build_answer_mechanism(query, np.eye(len(numbers)))
    edges = np.concatenate([[-np.inf], (numbers[1:] + numbers[:-1]) / 2, [np.inf]])
    with np.errstate(over="ignore"):
        away = np.abs(edges - numbers[:, None]) / widest * level
        width = np.diff(edges) / widest * level
    # a tail of one side times its share up to the next threshold: no difference of numbers that are close
    matrix = np.exp(-np.minimum(away[:, 1:], away[:, :-1])) / 2 * -np.expm1(-width)
    np.fill_diagonal(matrix, -(np.expm1(-away[:, 1:]) + np.expm1(-away[:, :-1])).diagonal() / 2)
    return _build_answer_mechanism(query, matrix)


def exponential(
    query: Query, epsilon: float, score: Literal["match", "distance"] = "match"
) -> Mechanism:
    """Build the exponential mechanism of a query, with a match or distance score.

    `q(y|x)` is proportional to `exp(epsilon u(x, y) / (2 sensitivity of u))`.

    Args:
        query: any for "match"; with numbers as values for "distance".
        epsilon: above 0; the answer is epsilon-DP.
        score: u, "match" for 1 where y = f(x) and 0 elsewhere, of sensitivity 1; "distance" for -|y - f(x)|,
            of the query's sensitivity.

    Raises:
        PrivacyError: epsilon is not a positive number, or the score is unknown.
        QueryError: the score needs numbers.

    Source: [wu2026entropy, eqs. (47) and (48)], which is "match"; [mcsherry2007mechanism].

    Examples:
        >>> from pmlopt.model.queries import ModularSum
        >>> exponential(ModularSum(4, 2), 1.0).matrix.round(4).tolist()
        [[0.6225, 0.3775], [0.3775, 0.6225]]
    """
    level = _check_level(epsilon)
    if score == "match":
        return _build_softmax(query, level / 2 * np.eye(len(query.values)))
    if score != "distance":
        raise PrivacyError(f"the score is {score!r}: write match or distance")
    numbers = values_as_numbers(query)
    widest = query.sensitivity
    if widest == 0:
        return _build_answer_mechanism(query, np.eye(len(numbers)))
    with np.errstate(over="ignore"):
        return _build_softmax(query, np.abs(numbers - numbers[:, None]) / widest * (-level / 2))


def _check_level(epsilon: float) -> float:
    """Validate a positive level."""
    return check_positive(epsilon, "epsilon", PrivacyError)


def _build_softmax(query: Query, scores: FloatArray) -> Mechanism:
    """Build the mechanism with softmax rows of scores."""
    return _build_answer_mechanism(query, np.exp(scores - scores.max(axis=1, keepdims=True)))


def _build_answer_mechanism(query: Query, weights: FloatArray) -> Mechanism:
    """Build the mechanism on a query's values from row weights."""
    return Mechanism(weights / weights.sum(axis=1, keepdims=True), query.values, query.values)
