"""Mechanisms for local differential privacy, and the conversion between LDP and PML levels."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import ArrayLike

from pmlopt.core.numbers.arrays import (
    DefaultLabels,
    check_integer,
    check_nonnegative,
    copy_float_array,
)
from pmlopt.core.numbers.blocks import freeze
from pmlopt.data.mechanism import Mechanism, wrap_checked_matrix
from pmlopt.data.prior import PriorLike, as_prior
from pmlopt.errors import PrivacyError, UtilityError
from pmlopt.measures.leakage import log_quotient

_MIN_NORMAL_RATIO = 1e-290
"""Differences of floats below this are formed in logarithms: below 2^-1022 = 2e-308 floats lose digits."""


def randomized_response(size: int, epsilon: float) -> Mechanism:
    """Build k-ary randomized response: `e^eps / (e^eps + k - 1)` on the diagonal, `1 / (e^eps + k - 1)` off
    it.

    Satisfies epsilon-LDP with equality; optimal under LDP for the uniform prior and Hamming loss.

    Source: [kairouz2016extremal, eq. (14)]; [song2026worstcase, Section IV-A].

    Examples:
        >>> randomized_response(3, math.log(2)).matrix
        array([[0.5 , 0.25, 0.25],
               [0.25, 0.5 , 0.25],
               [0.25, 0.25, 0.5 ]])
    """
    n = check_integer(size, "the size of the alphabet", PrivacyError)
    # e^-eps, not e^eps: it cannot overflow, and an infinite level gives the identity
    down = math.exp(-check_nonnegative(epsilon, "epsilon", PrivacyError))
    matrix = np.full((n, n), down)
    np.fill_diagonal(matrix, 1.0)
    # rows sum to one by the formula
    return wrap_checked_matrix(freeze(matrix / (1 + (n - 1) * down)), DefaultLabels(n))


def geometric(size: int, epsilon: float) -> Mechanism:
    """Build the truncated geometric mechanism on 0, ..., N-1: `P[x,y] ~ e^(-epsilon |x - y|)`, ends
    collected.

    `(1 - a) / (1 + a) a^|x - y|` inside and `a^|x - y| / (1 + a)` at the two ends, with a = e^-epsilon.
    Within epsilon-metric privacy of the distance |x - x'|, some post-processing of it is optimal for every
    prior and every loss that grows with |x - y|.

    Args:
        size: N, at least 2.
        epsilon: in nats for a distance of one.

    Source: [ghosh2012universally, Theorem 1.1] (the same for differential privacy of counts).

    Examples:
        >>> geometric(3, math.log(2)).matrix.round(12).tolist()[0]
        [0.666666666667, 0.166666666667, 0.166666666667]
    """
    n = check_integer(size, "the size of the alphabet", PrivacyError)
    if n < 2:
        raise PrivacyError("the geometric mechanism needs two letters or more")
    level = check_nonnegative(epsilon, "epsilon", PrivacyError)
    letters = np.arange(n)
    down = math.exp(-level)
    # expm1 keeps the digits of 1 - e^-level for small levels
    inside = np.full(n, -math.expm1(-level) / (1 + down))
    inside[[0, -1]] = 1 / (1 + down)
    return Mechanism(np.exp(-level * np.abs(letters[:, None] - letters)) * inside)


def exponential(scores: ArrayLike, epsilon: float) -> Mechanism:
    """Build the exponential mechanism `P[x,y] ~ exp(epsilon u[x,y] / (2 S))`, which satisfies epsilon-LDP.

    S = max_y (max_x u[x,y] - min_x u[x,y]) is the sensitivity of the scores u.

    Args:
        scores: (N, M) utility of releasing y when the secret is x; larger is better.
        epsilon: LDP level in nats.

    Source: [mcsherry2007mechanism]; [song2026worstcase, Section IV-A], where S = 37.

    Examples:
        >>> exponential([[1.0, 0.0], [0.0, 1.0]], 2 * math.log(3)).matrix.round(12)
        array([[0.75, 0.25],
               [0.25, 0.75]])
    """
    level = check_nonnegative(epsilon, "epsilon", PrivacyError)
    table = copy_float_array(scores, 2, "the scores", UtilityError)
    sensitivity = float(np.ptp(table, axis=0).max())
    if sensitivity == 0:  # no letter changes a score: the best output, whatever the secret
        sensitivity = 1.0
    # relative to the best output of a row: the factor cancels in the law, and nothing overflows
    weights = np.exp(level * (table - table.max(axis=1, keepdims=True)) / (2 * sensitivity))
    return Mechanism(weights / weights.sum(axis=1, keepdims=True))


def ldp_for_pml(prior: PriorLike, epsilon: float) -> float:
    """Compute the largest LDP level that guarantees epsilon-PML: -log((e^-eps - pmin) / (1 - pmin)), in nats.

    inf from eps = -log(pmin) on, where any mechanism will do.

    Source: [song2026worstcase, Proposition 1]; [saeidian2023pointwise, Proposition 6].

    Examples:
        >>> round(math.exp(ldp_for_pml([0.5, 0.5], math.log(1.5))), 12)
        3.0
    """
    level = check_nonnegative(epsilon, "epsilon", PrivacyError)
    return ratio_for_level(float(as_prior(prior).pmf.min()), level)


def pml_of_ldp(prior: PriorLike, epsilon: float) -> float:
    """Compute the largest PML level of an epsilon-LDP mechanism: -log(pmin + (1 - pmin) e^-eps), in nats.

    The inverse of `ldp_for_pml`, and no more than `epsilon`; reached by a column that is e^eps times
    higher at the least likely letter than anywhere else.

    Source: [song2026worstcase, Proposition 1], solved for the other level.

    Examples:
        >>> round(math.exp(pml_of_ldp([0.5, 0.5], math.log(2))), 12) == round(4 / 3, 12)
        True
    """
    level = check_nonnegative(epsilon, "epsilon", PrivacyError)
    return level_of_ratio(float(as_prior(prior).pmf.min()), level)


def ratio_for_level(least: float, level: float) -> float:
    """Compute the largest log-ratio of a column's entries that keeps the PML at a level, in nats.

    `-log((e^-level - a) / (1 - a))` where the column is that high at the letter and even elsewhere; inf from
    `level = -log a` on.

    Examples:
        >>> round(math.exp(ratio_for_level(0.5, math.log(1.5))), 12)
        3.0
    """
    if least == 0:
        return level
    # no outcome leaks more than -log a, so from there on every ratio is allowed
    max_epsilon = -math.log(least)
    if level >= max_epsilon:
        return math.inf
    down = math.exp(-level)
    if down < _MIN_NORMAL_RATIO:
        return level - math.log(-math.expm1(level - max_epsilon))
    rest = down - least
    if least > 0.5 or rest <= 0:  # the difference has lost its digits
        rest = least * math.expm1(max_epsilon - level)
    return float(log_quotient(rest, -math.expm1(-level)))


def level_of_ratio(least: float, ratio: float) -> float:
    """Compute the PML of an outcome from the log-ratio of its column's entries, in nats.

    `-log(a + (1 - a) e^-ratio)`, in nats: the inverse of `ratio_for_level`.
    """
    if least == 0:
        return ratio
    low = least + (1 - least) * math.exp(-ratio)
    if low < _MIN_NORMAL_RATIO:
        return -float(np.logaddexp(math.log(least), -ratio))
    return float(log_quotient(low, -(1 - least) * math.expm1(-ratio)))
