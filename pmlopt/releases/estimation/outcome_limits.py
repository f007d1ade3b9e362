"""One-sided limits of many shares at once, at a fixed sample size and at every stopping time.

Each share p is allowed an error in proportion to itself, `error * p`, so that the errors of any number of
outcomes, also of those that nobody listed, add up to `error`: their probabilities sum to at most one.
"""

from __future__ import annotations

import numpy as np

from pmlopt.core.arrays import BoolArray, FloatArray
from pmlopt.core.lazy_imports import special
from pmlopt.core.roots import bisect_intervals
from pmlopt.model.uncertainty.confidence import CONFIDENCE_RTOL


def find_spending_lower(successes: FloatArray, draws: FloatArray, error: float) -> FloatArray:
    """Compute (K,) lower limits of shares with errors in proportion to the share.

    The largest p with `P(Bin(n, p) >= k) <= error p` and `p <= (k - 1) / (n - 1)`. On that interval the tail
    is convex in p and 0 at 0, so its quotient by p rises: a share p below a threshold exceeds it with
    probability `error p` at most.

    Args:
        successes: (K,) k, at least 1.
        draws: (K,) n.
        error: in (0, 1).

    Examples:
        >>> find_spending_lower(np.array([3.0]), np.array([3.0]), 0.01).round(8)  # p^3 = 0.01 p
        array([0.1])
    """
    k, rest = successes, draws - successes
    most = np.maximum(k - 1, 0) / np.maximum(draws - 1, 1)

    def is_allowed(logs: FloatArray) -> BoolArray:
        with np.errstate(divide="ignore", invalid="ignore"):
            share = most * np.exp(logs)
            return np.asarray(special.betainc(k, rest + 1, share) <= error * share)

    # bisection of logarithms of the quotient by the end of the interval
    low, _ = bisect_intervals(is_allowed, np.full(len(k), -700.0), np.zeros(len(k)), 64)
    found = np.where(is_allowed(np.zeros(len(k))), most, most * np.exp(low))
    return np.where(k > 1, found, 0.0) * (1 - CONFIDENCE_RTOL)


def find_spending_upper(successes: FloatArray, draws: float, error: float) -> FloatArray:
    """Compute (K,) upper limits of shares with errors in proportion to the share.

    The least p with `P(Bin(n, p) <= k) <= error p`. At most 1/p outcomes have a probability of p or more, so
    that one of them is seen so seldom with probability `error` at most.

    Args:
        successes: (K,) k.
        draws: n, at least 1.
        error: in (0, 1).

    Examples:
        >>> find_spending_upper(np.array([0.0]), 1, 0.25).round(8)  # 1 - p = 0.25 p
        array([0.8])
    """
    k = successes

    def is_above(logs: FloatArray) -> BoolArray:
        share = np.exp(logs)
        rest = np.maximum(draws - k, 1e-300)
        return np.asarray(special.betaincc(k + 1, rest, share) > error * share)

    _, high = bisect_intervals(is_above, np.full(len(k), -700.0), np.zeros(len(k)), 64)
    return np.where(k < draws, np.minimum(np.exp(high) * (1 + CONFIDENCE_RTOL), 1.0), 1.0)


def log_beta_mixture(
    successes: FloatArray | float, draws: FloatArray | float, share: FloatArray | float
) -> FloatArray:
    """Compute the logarithm of the beta-binomial mixture martingale against a share.

    `log B(k + 1/2, n - k + 1/2) - log B(1/2, 1/2) - k log p - (n - k) log(1 - p)`: the likelihood of k of n,
    averaged over Beta(1/2, 1/2), over that at p. If the share is p, it is the logarithm of a martingale from
    1 on, which ever reaches 1/error with probability `error` at most (Ville's inequality).

    Args:
        successes: k, at most n.
        draws: n.
        share: p, in (0, 1).

    Source: [robbins1970statistical]; [howard2021time, Section 3.2], by Ville's inequality
    [ville1939etude].

    Examples:
        >>> float(log_beta_mixture(0, 0, 0.3)), float(log_beta_mixture(1, 1, 0.25).round(9))
        (0.0, 0.693147181)
    """
    k, rest = np.asarray(successes), np.asarray(draws) - np.asarray(successes)
    mixed = special.betaln(k + 0.5, rest + 0.5) - special.betaln(0.5, 0.5)
    return np.asarray(mixed - special.xlogy(k, share) - special.xlog1py(rest, -np.asarray(share)))


def is_surely_above(
    successes: FloatArray | float,
    draws: FloatArray | float,
    share: FloatArray | float,
    error: FloatArray | float,
) -> BoolArray:
    """Return whether a share is surely above a threshold p, with errors in proportion to the share.

    The martingale against p has reached `1 / (error p)`, and `(k - 1) / (n - 1) >= p`. The second makes the
    likelihood ratio of any smaller share p' at that time at most `p' / p`, and so p' passes the test at any
    time with probability `error p'` at most.
    """
    k, n = np.asarray(successes, dtype=float), np.asarray(draws, dtype=float)
    rises = (k > 1) & (k - 1 >= share * (n - 1))
    return np.asarray(
        rises & (log_beta_mixture(k, n, share) >= _count_rounding(n) - np.log(error * share))
    )


def is_surely_below(
    successes: FloatArray | float,
    draws: FloatArray | float,
    share: FloatArray | float,
    error: FloatArray | float,
) -> BoolArray:
    """Return whether a share is surely below a threshold p, with one error at every stopping time.

    The martingale against p has reached `1 / error`, and `k / n < p`: then p and all above it are outside of
    the confidence sequence.
    """
    k, n = np.asarray(successes, dtype=float), np.asarray(draws, dtype=float)
    return np.asarray(
        (k < share * n) & (log_beta_mixture(k, n, share) >= _count_rounding(n) - np.log(error))
    )


def _count_rounding(draws: FloatArray) -> FloatArray:
    """Bound what rounding adds to the logarithm of the martingale, whose terms grow with the draws."""
    return 1e-14 * (draws + 100) * np.log(draws + 100)


def find_sequence_ends(successes: int, draws: int, error: float) -> tuple[float, float]:
    """Compute the ends of the confidence sequence of a share: each is wrong, ever, with one error.

    Examples:
        >>> find_sequence_ends(0, 0, 0.05)
        (0.0, 1.0)
        >>> tuple(round(end, 8) for end in find_sequence_ends(1, 1, 0.05))  # the martingale is 1 / (2 p)
        (0.025, 1.0)
    """
    if draws == 0:
        return 0.0, 1.0
    k, share = float(successes), successes / draws
    limit = -np.log(error)

    def is_inside(ends: FloatArray) -> BoolArray:
        with np.errstate(divide="ignore"):
            return np.asarray(log_beta_mixture(k, draws, np.clip(ends, 1e-300, 1 - 1e-16)) < limit)

    _, found = bisect_intervals(is_inside, np.array([share, share]), np.array([0.0, 1.0]), 80)
    # the end at 0 or 1 is exact where nothing else, or nothing, was seen
    lower, upper = float(found[0]) * (1 - CONFIDENCE_RTOL), float(found[1]) * (1 + CONFIDENCE_RTOL)
    return lower if successes else 0.0, min(1.0, upper) if successes < draws else 1.0
