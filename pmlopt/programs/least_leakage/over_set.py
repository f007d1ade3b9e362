"""What no mechanism on allowed pairs can be below over a set of priors: the proof of a least level."""

from __future__ import annotations

from collections.abc import Iterable
from fractions import Fraction
from typing import Any

import numpy as np

from pmlopt.arrays import BoolArray, FloatArray
from pmlopt.prior import Prior
from pmlopt.uncertainty import PriorSet


def usable_pairs(allowed: BoolArray, over: PriorSet) -> BoolArray:
    """(N, M) the allowed pairs of the outputs that can occur at a finite level, decided in integers.

    Those are the ones whose letters have together a positive probability under every prior of the set:
    under a prior that leaves all of them out, the output tells all.

    Examples:
        >>> from pmlopt import AllPriors
        >>> usable_pairs(np.array([[True, True], [False, True]]), AllPriors(2)).astype(int)
        array([[0, 1],
               [0, 1]])
    """
    ones = np.array(allowed.astype(int).tolist(), dtype=object).reshape(allowed.shape)
    possible = np.array([bool(least > 0) for least in over.least_sum(ones)[0]], dtype=bool)
    return np.asarray(allowed & possible)


def highest_rank(order: FloatArray, over: PriorSet | None = None) -> int:
    """The highest rank h such that each letter has an output of rank h or more, at a finite level.

    Args:
        order: (N, M) ranks, from 1.
        over: the priors for which the level must be finite; left out, each one of positive probabilities.

    Examples:
        >>> from pmlopt import AllPriors
        >>> order = np.array([[3, 2, 1], [1, 3, 2], [1, 2, 3]])
        >>> highest_rank(order), highest_rank(order, AllPriors(3))
        (3, 2)
    """
    low, high = 1, int(order.max(axis=1).min()) + 1
    if over is None:
        return high - 1
    while high - low > 1:  # fewer letters may emit an output of a higher rank
        middle = (low + high) // 2
        possible = usable_pairs(order >= middle, over).any(axis=1).all()
        low, high = (middle, high) if possible else (low, middle)
    return low


def largest_share(
    over: PriorSet,
    prior: Prior,
    allowed: BoolArray,
    rows: FloatArray,
    laws: FloatArray | None = None,
    *,
    exact: bool = True,
) -> Any:
    """A share s = e^-epsilon that no mechanism of level epsilon over a set of priors can exceed.

    For any y in R^N let `c = p (y - <p, y>)`, which sums to zero. A mechanism's columns sum to the vector of
    ones, so that one of them, scaled to a largest entry of one, is a v in [0, 1]^N that is zero outside its
    letters with `<c, v> >= 0`. At the level epsilon `s <= w(v)`, and w(v) is at most `<Q, v>` for every prior
    Q of the set. So s is at most the largest over outputs of `max_v <Q_y, v>`, for any y and any Q_y in the
    set: a fractional knapsack, filled with letters in descending order of `Q / -c`. Some y and Q_y prove as
    near to the largest share that can be reached as one likes.

    Args:
        over: the set.
        prior: p, of which any will do.
        allowed: (N, M) pairs that may occur.
        rows: (N,) y, finite.
        laws: (N, M) near a prior Q_y of the set for each output, times a positive number: proved is what the
            prior of the set nearby proves. Left out, or where a column is zero or not finite: one at which
            the letters of the output have the least probability.
        exact: whether to compute in rationals; else in floats, without any allowance for rounding, and with
            `laws` as they are.

    Returns:
        A rational, or a float where it is not exact.

    Examples:
        >>> from pmlopt import L1Ball
        >>> p, allowed = Prior([0.5, 0.5]), np.array([[True, False], [True, True]])
        >>> largest_share(L1Ball(p, 0.5), p, allowed, np.zeros(2))  # both letters may have the first output
        Fraction(1, 1)
        >>> largest_share(L1Ball(p, 0.5), p, ~np.eye(2, dtype=bool), np.zeros(2))  # 0.5 less a quarter
        Fraction(1, 4)
    """
    number: Any = Fraction if exact else float
    weights = list(map(number, prior.weights if exact else prior.pmf.tolist()))
    values = list(map(number, rows.tolist()))
    mean = sum(w * y for w, y in zip(weights, values, strict=True)) / sum(weights)
    costs = [w * (mean - y) for w, y in zip(weights, values, strict=True)]
    most = number(0)
    for output, letters in enumerate(allowed.T):
        law = np.zeros(prior.size) if laws is None else np.maximum(laws[:, output], 0.0)
        size = float(law.sum())
        if not (np.isfinite(law).all() and np.isfinite(size) and size > 0):
            law, size = over.worst_prior(letters.astype(np.float64)), 1.0
        near = over.nearby(law / size) if exact else law / size
        places = np.flatnonzero(letters).tolist()
        most = max(most, _knapsack((near[x], costs[x]) for x in places))
    return min(most, number(1))


def _knapsack(items: Iterable[tuple[Any, Any]]) -> Any:
    """The largest sum of gains over items, parts of which may be taken, whose costs sum to at most 0."""
    gain, room, costly = 0, 0, []
    for worth, cost in items:
        if cost > 0:
            costly.append((worth / cost, worth, cost))
        else:
            gain, room = gain + worth, room - cost
    for _, worth, cost in sorted(costly, key=lambda item: item[0], reverse=True):
        if cost > room:
            return gain + worth * room / cost
        gain, room = gain + worth, room - cost
    return gain
