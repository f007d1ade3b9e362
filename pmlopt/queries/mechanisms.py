"""Mechanisms that answer a query: q(y|f(x)) over the query's own values."""

from __future__ import annotations

from typing import Literal

import numpy as np

from pmlopt.arrays import FloatArray, real
from pmlopt.errors import MechanismError, PrivacyError
from pmlopt.mechanism import Mechanism
from pmlopt.queries.query import Query, numbers_of


def symmetric_channel(query: Query, error: float) -> Mechanism:
    """The generalised binary symmetric channel: the true value with probability 1 - p, else another one.

    `q(y|x) = 1 - p` for `y = f(x)` and `p / (m - 1)` for the other m - 1 values.

    Args:
        query: with m values.
        error: p, in [0, 1]; 0 where there is one value only.

    Raises:
        MechanismError: p is not such a number.

    Source: [wu2026entropy, eq. (33)].

    Examples:
        >>> from pmlopt.queries import ModularSum
        >>> symmetric_channel(ModularSum(4, 3), 0.2).matrix.tolist()
        [[0.8, 0.1, 0.1], [0.1, 0.8, 0.1], [0.1, 0.1, 0.8]]
    """
    flip = real(error, "the error probability", MechanismError)
    m = len(query.values)
    if not 0 <= flip <= (1 if m > 1 else 0):
        raise MechanismError(
            f"the error probability is {flip:g} for {m} values: give one in [0, 1], and 0 for a single value"
        )
    matrix = np.full((m, m), flip / max(1, m - 1))
    np.fill_diagonal(matrix, 1 - flip)
    return Mechanism(matrix, query.values, query.values)


def laplace(query: Query, epsilon: float) -> Mechanism:
    """The Laplace mechanism of scale `sensitivity / epsilon`, rounded to the nearest value of the query.

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
        >>> from pmlopt.queries import ModularSum
        >>> laplace(ModularSum(4, 2), 1.0).matrix.round(4).tolist()
        [[0.6967, 0.3033], [0.3033, 0.6967]]
    """
    level = _level(epsilon)
    numbers, widest = numbers_of(query), query.sensitivity
    if widest == 0:
        return Mechanism(np.eye(len(numbers)), query.values, query.values)
    edges = np.concatenate([[-np.inf], (numbers[1:] + numbers[:-1]) / 2, [np.inf]])
    with np.errstate(over="ignore"):
        away = np.abs(edges - numbers[:, None]) / widest * level
        width = np.diff(edges) / widest * level
    # a tail of one side times its share up to the next threshold: no difference of numbers that are close
    matrix = np.exp(-np.minimum(away[:, 1:], away[:, :-1])) / 2 * -np.expm1(-width)
    np.fill_diagonal(matrix, -(np.expm1(-away[:, 1:]) + np.expm1(-away[:, :-1])).diagonal() / 2)
    return Mechanism(matrix / matrix.sum(axis=1, keepdims=True), query.values, query.values)


def exponential(query: Query, epsilon: float, score: Literal["match", "distance"] = "match") -> Mechanism:
    """The exponential mechanism of a query with a score of matches or of distances.

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
        >>> from pmlopt.queries import ModularSum
        >>> exponential(ModularSum(4, 2), 1.0).matrix.round(4).tolist()
        [[0.6225, 0.3775], [0.3775, 0.6225]]
    """
    level = _level(epsilon)
    if score == "match":
        return _softmax(query, level / 2 * np.eye(len(query.values)))
    if score != "distance":
        raise PrivacyError(f"the score is {score!r}: write match or distance")
    numbers, widest = numbers_of(query), query.sensitivity
    if widest == 0:
        return Mechanism(np.eye(len(numbers)), query.values, query.values)
    with np.errstate(over="ignore"):
        return _softmax(query, np.abs(numbers - numbers[:, None]) / widest * (-level / 2))


def _level(epsilon: float) -> float:
    level = real(epsilon, "epsilon", PrivacyError)
    if level <= 0:
        raise PrivacyError(f"epsilon is {level:g}: noise for it would be infinite; give a positive number")
    return level


def _softmax(query: Query, scores: FloatArray) -> Mechanism:
    weights = np.exp(scores - scores.max(axis=1, keepdims=True))
    return Mechanism(weights / weights.sum(axis=1, keepdims=True), query.values, query.values)
