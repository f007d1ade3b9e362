"""The worst case by rank: orders of utilities, and the mechanism that never goes below a rank."""

from __future__ import annotations

from typing import Literal

import numpy as np
from numpy.typing import ArrayLike

from pmlopt.checks import BoolArray, FloatArray, IntArray, float_array, whole
from pmlopt.errors import UtilityError
from pmlopt.measures.logarithms import log_quotient
from pmlopt.mechanism import Mechanism
from pmlopt.prior import PriorLike, as_prior

Ties = Literal["first", "grouped"]
"""How equal utilities of a letter are ranked."""


def utility_order(utilities: ArrayLike, ties: Ties = "first") -> IntArray:
    """The rank of each output among those of its letter: 1 for the lowest utility, M for the highest.

    Args:
        utilities: (N, M) utility of releasing y when the secret is x; of a loss, hand over its negative.
        ties: "first" gives the lower rank to the output that comes first; "grouped" gives equal utilities
            the highest rank among them, so that a threshold allows or forbids them together.

    Returns:
        (N, M) whole numbers from 1 to M.

    Raises:
        UtilityError: the utilities are not finite numbers in a matrix, or `ties` is another word.

    Source: WCU, Section II (which assumes that there are no ties).

    Examples:
        >>> utility_order([[0, -1, -4, -1]])
        array([[4, 2, 1, 3]])
        >>> utility_order([[0, -1, -4, -1]], ties="grouped")
        array([[4, 3, 1, 3]])
    """
    from scipy.stats import rankdata

    table = float_array(utilities, 2, "the utilities", UtilityError)
    methods = {"first": "ordinal", "grouped": "max"}
    if ties not in methods:
        raise UtilityError(f"ties is {ties!r}: write 'first' or 'grouped'")
    return np.asarray(rankdata(table, method=methods[ties], axis=1)).astype(int)


def allowed_pairs(order: ArrayLike, threshold: int) -> BoolArray:
    """(N, M) which pairs of a letter and an output have a rank of at least the threshold.

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
    ranks = float_array(order, 2, "the order", UtilityError)
    outputs = ranks.shape[1]
    wrong = np.argwhere((ranks != np.rint(ranks)) | (ranks < 1) | (ranks > outputs))
    if len(wrong):
        x, y = wrong[0]
        raise UtilityError(
            f"the order has the entry {ranks[x, y]:g} at row {x}, column {y}: give ranks from 1 to "
            f"{outputs}, such as from utility_order(...)"
        )
    least = whole(threshold, "the threshold", UtilityError)
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


def utility_safe(order: ArrayLike, threshold: int) -> Mechanism:
    """M*(h): uniform over each letter's outputs of rank h or more.

    `P[x,y] = 1 / (M - h + 1)` where `u[x,y] >= h`, and 0 elsewhere (a letter with ties has as many equal
    entries as it has such outputs). Of all mechanisms that never emit a rank below h and emit every output
    that is allowed for some letter, none leaks less, for any prior; mechanisms with fewer outputs may
    (`pmlopt.worst_case_utility` finds them).

    Args:
        order: (N, M) ranks from 1 to M, the higher the better.
        threshold: h, from 1 to M.

    Raises:
        UtilityError: the order or the threshold cannot be meant; see `allowed_pairs`.

    Source: WCU, Theorem 1.

    Examples:
        >>> utility_safe([[3, 2, 1], [1, 3, 2], [2, 1, 3]], 2).matrix
        array([[0.5, 0.5, 0. ],
               [0. , 0.5, 0.5],
               [0.5, 0. , 0.5]])
    """
    return uniform_on(allowed_pairs(order, threshold))


def uniform_on(allowed: BoolArray) -> Mechanism:
    """The mechanism that is uniform over each letter's allowed outputs."""
    return Mechanism(allowed / allowed.sum(axis=1, keepdims=True))


def utility_safe_level(prior: PriorLike, order: ArrayLike, threshold: int) -> float:
    """The PML level of M*(h): `-log min_y p({x: u[x,y] >= h})` over the outputs that occur, in nats.

    Args:
        prior: N letters.
        order: (N, M) ranks from 1 to M.
        threshold: h.

    Raises:
        UtilityError: the order or the threshold cannot be meant, sizes disagree, or, because of ties, letters
            have different numbers of outputs left, where the formula does not hold.

    Source: WCU, Corollary 1.

    Examples:
        >>> order = [[3, 2, 1], [1, 3, 2], [2, 1, 3]]
        >>> round(np.exp(utility_safe_level([0.6, 0.2, 0.2], order, 2)).item(), 12)
        2.5
    """
    levels = _support_levels(prior, allowed_pairs(order, threshold), equal=True)
    return float(levels[np.isfinite(levels)].max())


def support_bound(prior: PriorLike, order: ArrayLike, threshold: int) -> float:
    """What no mechanism that never emits a rank below h can leak less than, in nats.

    Each letter x needs an output, and one that only letters of mass p(A) can emit leaks at least -log p(A):
    `max_x min_{y: u[x,y] >= h} -log p({x': u[x',y] >= h})`.

    Args:
        prior: N letters.
        order: (N, M) ranks from 1 to M.
        threshold: h.

    Raises:
        UtilityError: the order or the threshold cannot be meant, or sizes disagree.

    Source: WCU, Lemmas 2 and 3 (the first part of the decomposition alone).

    Examples:
        >>> order = [[3, 2, 1], [1, 3, 2], [2, 1, 3]]
        >>> round(np.exp(-support_bound([0.6, 0.2, 0.2], order, 2)).item(), 12)
        0.8
    """
    allowed = allowed_pairs(order, threshold)
    return float(np.where(allowed, _support_levels(prior, allowed), np.inf).min(axis=1).max())


def _support_levels(prior: PriorLike, allowed: BoolArray, equal: bool = False) -> FloatArray:
    """(M,) -log of the mass of the letters that may emit each output; inf where none may."""
    p = as_prior(prior).pmf
    if len(p) != len(allowed):
        raise UtilityError(f"the order has {len(allowed)} rows for {len(p)} letters: give one for each")
    counts = allowed.sum(axis=1)
    if equal and np.ptp(counts):
        raise UtilityError(
            f"letters have from {counts.min()} to {counts.max()} outputs left, because of ties, and the "
            "formula is for equal numbers: take leakage_level(prior, utility_safe(order, threshold))"
        )
    return log_quotient(p @ allowed, p @ ~allowed)
