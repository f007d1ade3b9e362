"""One-sided tests of many shares at once, at a fixed sample size and at every stopping time.

Each share p is allowed an error in proportion to itself, `error * p`, so that the errors of any number of
outcomes, also of those that nobody listed, add up to `error`: their probabilities sum to at most one.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple, TypeAlias

import numpy as np

from pmlopt.core.lazy_imports import special
from pmlopt.core.numbers.arrays import BoolArray, FloatArray
from pmlopt.core.numbers.roots import bisect
from pmlopt.model.uncertainty.confidence import CONFIDENCE_RTOL

Shares: TypeAlias = FloatArray | float
"""One number, or an array of them."""

ShareTest: TypeAlias = Callable[[Shares, Shares, Shares, Shares], BoolArray]
"""A test of successes, draws, a threshold of the share, and an error."""


def is_above_at_size(successes: Shares, draws: Shares, share: Shares, error: Shares) -> BoolArray:
    """Return whether a share is surely above a threshold p at a fixed number of draws.

    `P(Bin(n, p) >= k) <= error p` and `p <= (k - 1) / (n - 1)`. Up to there the tail is convex in p and 0 at
    0, so its quotient by p rises: a share p' below p passes the test with probability `error p'` at most.

    Args:
        successes: k, how often it was seen.
        draws: n.
        share: p, in (0, 1].
        error: in (0, 1).

    Examples:
        >>> is_above_at_size(3.0, 3.0, np.array([0.0999, 0.1001]), 0.01).tolist()  # p^3 = 0.01 p
        [True, False]
    """
    tail = special.betainc(np.maximum(successes, 1), draws - successes + 1, share)
    is_rare = tail <= error * share * (1 - CONFIDENCE_RTOL)
    return np.asarray(_has_room_below(successes, draws, share) & is_rare)


def is_below_at_size(successes: Shares, draws: Shares, share: Shares, error: Shares) -> BoolArray:
    """Return whether a share is surely below a threshold p at a fixed number of draws.

    `P(Bin(n, p) <= k) <= error`.

    Examples:
        >>> is_below_at_size(0.0, 1.0, np.array([0.74, 0.76]), 0.25).tolist()
        [False, True]
    """
    tail = special.betaincc(successes + 1, np.maximum(draws - successes, 1), share)
    return np.asarray((successes < draws) & (tail <= error * (1 - CONFIDENCE_RTOL)))


def log_beta_mixture(successes: Shares, draws: Shares, share: Shares) -> FloatArray:
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
    rest = draws - successes
    mixed = special.betaln(successes + 0.5, rest + 0.5) - special.betaln(0.5, 0.5)
    likelihood = special.xlogy(successes, share) + special.xlog1py(rest, -share)
    return np.asarray(mixed - likelihood)


def is_above_anytime(successes: Shares, draws: Shares, share: Shares, error: Shares) -> BoolArray:
    """Return whether a share is surely above a threshold p, with one test at every stopping time.

    The martingale against p has reached `1 / (error p)`, and `(k - 1) / (n - 1) >= p`. The second makes the
    likelihood ratio of any smaller share p' at that time at most `p' / p`, and so p' passes the test at any
    time with probability `error p'` at most.
    """
    limit = _count_rounding(draws) - np.log(error * share)
    reached = log_beta_mixture(successes, draws, share) >= limit
    return _has_room_below(successes, draws, share) & reached


def is_below_anytime(successes: Shares, draws: Shares, share: Shares, error: Shares) -> BoolArray:
    """Return whether a share is surely below a threshold p, with one test at every stopping time.

    The martingale against p has reached `1 / error`, and `k / n < p`: then p and all above it are outside of
    the confidence sequence.
    """
    reached = log_beta_mixture(successes, draws, share) >= _count_rounding(draws) - np.log(error)
    return (successes < share * draws) & reached


def _has_room_below(successes: Shares, draws: Shares, share: Shares) -> BoolArray:
    """Return whether `(k - 1) / (n - 1)` is at least a threshold, below which errors are in proportion."""
    return np.asarray((successes > 1) & (successes - 1 >= share * (draws - 1)))


def _count_rounding(draws: Shares) -> FloatArray:
    """Bound what rounding adds to the logarithm of the martingale, whose terms grow with the draws."""
    return 1e-14 * (draws + 100) * np.log(draws + 100)


def find_ends(
    is_below: ShareTest, successes: float, draws: float, error: float
) -> tuple[float, float]:
    """Compute the ends of a share's interval, each wrong with one error, by the test that it is below.

    At a fixed number of draws they are Clopper and Pearson's, at any time those of a confidence sequence.

    Examples:
        >>> find_ends(is_below_anytime, 0, 0, 0.05)
        (0.0, 1.0)
        >>> lower, upper = find_ends(is_below_anytime, 1, 1, 0.05)  # the martingale is 1 / (2 p)
        >>> round(lower, 8), upper
        (0.025, 1.0)
        >>> lower, upper = find_ends(is_below_at_size, 5, 10, 0.025)
        >>> round(lower, 4), round(upper, 4)
        (0.1871, 0.8129)
    """
    if draws == 0:
        return 0.0, 1.0

    def find_upper(k: float) -> float:
        return bisect(lambda share: bool(is_below(k, draws, share, error)), k / draws, 1.0, 0.0)

    # less what the difference may be rounded by
    return max(0.0, 1 - find_upper(draws - successes) - 2**-52), find_upper(successes)


class ShareTests(NamedTuple):
    """Tests whether shares are surely above, or surely below, a threshold."""

    is_above: ShareTest
    is_below: ShareTest


AT_SIZE = ShareTests(is_above_at_size, is_below_at_size)
AT_ANY_TIME = ShareTests(is_above_anytime, is_below_anytime)
