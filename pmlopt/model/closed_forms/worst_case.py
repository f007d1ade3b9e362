"""Closed forms for worst-case rank utilities: the utility-safe mechanism, and a lower bound on leakage."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from pmlopt.core.numbers.argument_checks import check_one_for_each
from pmlopt.core.numbers.arrays import BoolArray, FloatArray
from pmlopt.data.mechanism import Mechanism
from pmlopt.data.prior import PriorLike, as_prior
from pmlopt.errors import UtilityError
from pmlopt.measures.leakage import log_quotient
from pmlopt.model.utility.orders import allowed_pairs


def utility_safe_mechanism(order: ArrayLike, threshold: int) -> Mechanism:
    """Build the utility-safe mechanism M*(h): uniform over each letter's outputs of rank h or more.

    `P[x,y] = 1 / (M - h + 1)` where `u[x,y] >= h`, and 0 elsewhere (a letter with ties has as many equal
    entries as it has such outputs). Where there are no ties: of all mechanisms that never emit a rank below h
    and emit every output that is allowed for some letter, none leaks less, for any prior; mechanisms with
    fewer outputs may (`pmlopt.worst_case_utility` finds them). With ties, letters
    have different numbers of outputs left, and one with the same outputs may leak less (second example).

    Args:
        order: (N, M) ranks from 1 to M, the higher the better.
        threshold: h, from 1 to M.

    Raises:
        UtilityError: the order or the threshold cannot be meant; see `allowed_pairs`.

    Source: [song2026worstcase, Theorem 1].

    Examples:
        >>> utility_safe_mechanism([[3, 2, 1], [1, 3, 2], [2, 1, 3]], 2).matrix
        array([[0.5, 0.5, 0. ],
               [0. , 0.5, 0.5],
               [0.5, 0. , 0.5]])
        >>> tied = utility_safe_mechanism([[3, 2, 2], [3, 3, 3], [1, 3, 3]], 3).matrix
        >>> p = np.array([0.2, 0.2, 0.6])
        >>> other = np.array([[1, 0, 0], [0.98, 0.01, 0.01], [0, 0.5, 0.5]])  # the same outputs
        >>> [float(round((m.max(axis=0) / (p @ m)).max(), 3)) for m in (tied, other)]
        [3.75, 2.525]
    """
    return build_uniform_on(allowed_pairs(order, threshold))


def build_uniform_on(allowed: BoolArray) -> Mechanism:
    """Build the mechanism uniform over each letter's allowed outputs."""
    return Mechanism(allowed / allowed.sum(axis=1, keepdims=True))


def utility_safe_level(prior: PriorLike, order: ArrayLike, threshold: int) -> float:
    """Compute the PML level of the utility-safe mechanism M*(h), in nats.

    `-log min_y p({x: u[x,y] >= h})` over the outputs that occur.

    Args:
        prior: N letters.
        order: (N, M) ranks from 1 to M.
        threshold: h.

    Raises:
        UtilityError: the order or the threshold cannot be meant, sizes disagree, or, because of ties, letters
            have different numbers of outputs left, where the formula does not hold.

    Source: [song2026worstcase, Corollary 1].

    Examples:
        >>> order = [[3, 2, 1], [1, 3, 2], [2, 1, 3]]
        >>> round(np.exp(utility_safe_level([0.6, 0.2, 0.2], order, 2)).item(), 12)
        2.5
    """
    levels = _support_levels(prior, allowed_pairs(order, threshold), equal=True)
    return float(levels[np.isfinite(levels)].max())


def support_bound(prior: PriorLike, order: ArrayLike, threshold: int) -> float:
    """Compute a lower bound on the PML level, in nats, of every mechanism that never emits a rank below h.

    Each letter x needs an output, and one that only letters of mass p(A) can emit leaks at least -log p(A):
    `max_x min_{y: u[x,y] >= h} -log p({x': u[x',y] >= h})`.

    Args:
        prior: N letters.
        order: (N, M) ranks from 1 to M.
        threshold: h.

    Raises:
        UtilityError: the order or the threshold cannot be meant, or sizes disagree.

    Source: [song2026worstcase, Lemmas 2 and 3], the first part of the decomposition only.

    Examples:
        >>> order = [[3, 2, 1], [1, 3, 2], [2, 1, 3]]
        >>> round(np.exp(-support_bound([0.6, 0.2, 0.2], order, 2)).item(), 12)
        0.8
    """
    allowed = allowed_pairs(order, threshold)
    return float(np.where(allowed, _support_levels(prior, allowed), np.inf).min(axis=1).max())


def _support_levels(prior: PriorLike, allowed: BoolArray, equal: bool = False) -> FloatArray:
    """Compute the (M,) least PML of each output, -log of the mass of its allowed letters; inf for none."""
    p = as_prior(prior).pmf
    check_one_for_each("the order has", len(allowed), "rows", len(p), "letters", UtilityError)
    counts = allowed.sum(axis=1)
    if equal and np.ptp(counts):
        raise UtilityError(
            f"letters have from {counts.min()} to {counts.max()} outputs left, because of ties, and the "
            "formula is for equal numbers: take leakage_level of utility_safe_mechanism(order, threshold)"
        )
    return log_quotient(p @ allowed, p @ ~allowed)
