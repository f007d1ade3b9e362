"""Clopper-Pearson intervals for the probabilities of events that were counted."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from pmlopt.arrays import BoolArray, FloatArray

OUTWARD = 1e-9
"""By this share an end of an interval is moved outward, for rounding of the incomplete beta function."""

HALVINGS = 64
"""Halvings of the interval of an end: more than a float has digits."""


def binomial_intervals(
    successes: FloatArray, failures: FloatArray, tail: float
) -> tuple[FloatArray, FloatArray]:
    """The ends of Clopper-Pearson intervals, each wrong with probability `tail` at most.

    They are rounded outward, and looked for by the binomial's tails: SciPy's inverse of them can be far off
    in large samples.

    Args:
        successes: (K,) how often each event was seen.
        failures: (K,) how often it was not; together at least one trial.
        tail: the probability with which each end may be wrong, in (0, 1).

    Source: [clopper1934confidence].

    Examples:
        >>> lower, upper = binomial_intervals(np.array([5.0]), np.array([5.0]), 0.025)
        >>> lower.round(4), upper.round(4)
        (array([0.1871]), array([0.8129]))
    """
    from scipy.special import betainc, betaincc

    k, rest = successes, failures
    draws = k + rest
    shares, start = k / draws, np.maximum(k, 0.5) / draws
    lower = _moved(shares, np.full(len(k), -750.0), lambda end: betainc(k, rest + 1, end) <= tail)
    upper = _moved(start, 1 - np.log(start), lambda end: betaincc(k + 1, rest, end) <= tail)
    return lower * (1 - OUTWARD), np.minimum(upper * (1 + OUTWARD), 1.0)


def _moved(start: FloatArray, furthest: FloatArray, right: Callable[[FloatArray], BoolArray]) -> FloatArray:
    """The nearest ends that are right, (K,) and at most 1, by bisection of their logarithms.

    Args:
        start: (K,) where the ends are too near.
        furthest: (K,) what to add to the logarithms of the starts for ends that are right for sure.
        right: whether each end is.
    """
    near, far = np.zeros(len(start)), furthest
    for _ in range(HALVINGS):
        middle = (near + far) / 2
        enough = right(np.minimum(start * np.exp(middle), 1.0))
        near, far = np.where(enough, near, middle), np.where(enough, middle, far)
    return np.minimum(start * np.exp(far), 1.0)
