"""Utility orders: rank tables of outputs by letter, and the pairs that a threshold allows."""

from __future__ import annotations

from typing import Literal

import numpy as np
from numpy.typing import ArrayLike

from pmlopt.core.numbers.arrays import BoolArray, IntArray, check_integer, copy_float_array
from pmlopt.data.mechanism import MechanismLike, as_mechanism
from pmlopt.errors import UtilityError

Ties = Literal["first", "grouped"]
"""How equal utilities of a letter are ranked."""


def utility_order(utilities: ArrayLike, ties: Ties = "first") -> IntArray:
    """Rank each letter's outputs by utility, from 1 (lowest) to M.

    Args:
        utilities: (N, M) utility of releasing y when the secret is x; of a loss, hand over its negative.
        ties: "first" gives the lower rank to the output that comes first; "grouped" gives equal utilities
            the highest rank among them, so that a threshold allows or forbids them together.

    Returns:
        (N, M) whole numbers from 1 to M.

    Raises:
        UtilityError: the utilities are not finite numbers in a matrix, or `ties` is another word.

    Source: [song2026worstcase, Section II], which assumes that there are no ties.

    Examples:
        >>> utility_order([[0, -1, -4, -1]])
        array([[4, 2, 1, 3]])
        >>> utility_order([[0, -1, -4, -1]], ties="grouped")
        array([[4, 3, 1, 3]])
    """
    from scipy.stats import rankdata

    table = copy_float_array(utilities, 2, "the utilities", UtilityError)
    methods = {"first": "ordinal", "grouped": "max"}
    if ties not in methods:
        raise UtilityError(f"ties is {ties!r}: write 'first' or 'grouped'")
    return np.asarray(rankdata(table, method=methods[ties], axis=1)).astype(int)


def allowed_pairs(order: ArrayLike, threshold: int) -> BoolArray:
    """Return the (N, M) mask of pairs with a rank of at least the threshold.

    Args:
        order: (N, M) whole numbers from 1 to M, the higher the better, as from `utility_order`.
        threshold: h, from 1 to M.

    Raises:
        UtilityError: the order is not of whole numbers from 1 to M, the threshold is not either, or a letter
            has no output of that rank.

    Examples:
        >>> allowed_pairs([[3, 2, 1], [1, 3, 2]], 2)
        array([[ True,  True, False],
               [False,  True,  True]])
    """
    ranks = copy_float_array(order, 2, "the order", UtilityError)
    outputs = ranks.shape[1]
    wrong = np.argwhere((ranks != np.rint(ranks)) | (ranks < 1) | (ranks > outputs))
    if len(wrong):
        x, y = wrong[0]
        raise UtilityError(
            f"the order has the entry {ranks[x, y]:g} at row {x}, column {y}: give ranks from 1 to "
            f"{outputs}, such as from utility_order(...)"
        )
    least = check_integer(threshold, "the threshold", UtilityError)
    if least > outputs:
        raise UtilityError(f"the threshold {least} is above the number of outputs, {outputs}")
    allowed = ranks >= least
    empty = np.flatnonzero(~allowed.any(axis=1))
    if len(empty):
        raise UtilityError(
            f"row {empty[0]} of the order has no rank of {least} or more: no output is good enough for "
            "that letter; lower the threshold"
        )
    return allowed


def kept_threshold(order: ArrayLike, mechanism: MechanismLike) -> int:
    """Compute the lowest rank that a mechanism emits with positive probability.

    Args:
        order: (N, M) whole numbers from 1 to M, as from `utility_order`.
        mechanism: (N, M).

    Raises:
        UtilityError: the order cannot be meant, or has another shape than the mechanism.

    Source: [song2026worstcase, Section II].

    Examples:
        >>> order = [[3, 2, 1], [1, 3, 2], [2, 1, 3]]
        >>> kept_threshold(order, np.eye(3)), kept_threshold(order, [[0.5, 0.5, 0], [0, 1, 0], [1, 0, 0]])
        (3, 2)
    """
    allowed_pairs(order, 1)  # checks it
    ranks = np.asarray(order)
    matrix = as_mechanism(mechanism).matrix
    if ranks.shape != matrix.shape:
        raise UtilityError(f"the order has shape {ranks.shape} and the mechanism {matrix.shape}")
    return int(ranks[matrix > 0].min())


def highest_threshold(order: ArrayLike) -> int:
    """Compute the largest feasible threshold: the highest rank that every letter has an output of.

    Examples:
        >>> highest_threshold([[3, 2, 1], [2, 2, 2]])
        2
    """
    allowed_pairs(order, 1)  # checks it
    return int(np.max(np.asarray(order), axis=1).min())
