"""The largest capacity of many small channels, with laws of the output that prove it for all of them."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from pmlopt.arrays import BoolArray, FloatArray, IntArray, rounding_of

ROUGH_ITERATIONS, FINE_ITERATIONS = 30, 3_000
"""Of Blahut-Arimoto, on all channels, and on those of more than two inputs that may have the largest."""
BISECTIONS = 60
"""Of the input law of two inputs: as many as a float has digits, and some more."""
CONVERGED = 1e-14
"""Nats; nearer to the capacity an input law is left as it is."""
NEAR = 1e-9
"""Nats; channels this near to the largest capacity are kept, and one of them is chosen by other means."""


@dataclass(frozen=True, eq=False)
class LargestCapacity:
    """The largest capacity of the channels that a set of tuples of rows makes.

    Attributes:
        lower, upper: in nats: reached by `prior` on each channel of `best`, and never exceeded.
        best: (L,) the places of the tuples whose capacity is within `NEAR` of the largest.
        priors: (L, A) the best law of the input of each.
        laws: (R, M) laws of the output: for each tuple there is one from which the divergence of each of its
            rows is at most `upper`, which is therefore above its capacity.
    """

    lower: float
    upper: float
    best: IntArray
    priors: FloatArray
    laws: FloatArray


def largest_capacity(rows: FloatArray, tuples: IntArray) -> LargestCapacity:
    """The largest capacity of the channels whose inputs have the rows `rows[t_0], ..., rows[t_(A-1)]`.

    Blahut-Arimoto on all at once; `I(p) <= C <= max_a D(W_a || p W)` for every law p of the input drops those
    that cannot be the largest. For two inputs the root of `D(W_0 || pW) - D(W_1 || pW)`, by bisection.

    Args:
        rows: (T, M) laws.
        tuples: (K, A) which rows each channel has.

    Source: [arimoto1972algorithm], [blahut1972computation].

    Examples:
        >>> rows = np.array([[0.9, 0.1], [0.5, 0.5], [0.1, 0.9]])
        >>> found = largest_capacity(rows, np.array([[0, 1], [0, 2], [1, 2]]))  # log 2 - h(0.1)
        >>> round(found.lower, 9), round(found.upper, 9), found.best.tolist(), found.laws.round(6).tolist()
        (0.368064207, 0.368064207, [1], [[0.5, 0.5]])
    """
    channels = rows[tuples]
    priors = np.full(tuples.shape, 1 / tuples.shape[1])
    left = np.arange(len(tuples))
    for _ in range(ROUGH_ITERATIONS):
        divergences, _ = _divergences(channels[left], priors[left])
        left, divergences = _promising(left, priors, divergences)
        if (divergences.max(axis=1) - (priors[left] * divergences).sum(axis=1)).max() <= CONVERGED:
            break
        priors[left] = _moved(priors[left], divergences)
    else:
        if tuples.shape[1] == 2:
            priors[left] = _bisected(channels[left])
    if tuples.shape[1] > 2:
        for _ in range(FINE_ITERATIONS):
            divergences, _ = _divergences(channels[left], priors[left])
            informations = (priors[left] * divergences).sum(axis=1)
            if divergences.max() - informations.max() <= NEAR / 10:
                break
            left, divergences = _promising(left, priors, divergences)
            priors[left] = _moved(priors[left], divergences)
    divergences, laws = _divergences(channels, priors)
    informations = (priors * divergences).sum(axis=1)
    size = rounding_of(rows.shape[1] + 2, 1 + float(np.abs(np.log(laws[laws > 0])).max(initial=0.0)))
    upper = float(divergences.max(axis=1)[left].max()) + size
    lower = float(informations[left].max())
    best = left[informations[left] >= lower - NEAR]
    order = np.concatenate([best[:1], left, np.arange(len(tuples))])
    proof = _covering(rows, tuples, laws, order, upper - size / 2)
    return LargestCapacity(max(0.0, lower - size), upper, best, priors[best], proof)


def _divergences(channels: FloatArray, priors: FloatArray) -> tuple[FloatArray, FloatArray]:
    """(K, A) of each row from the law of the output, and (K, M) that law."""
    laws = (priors[:, None, :] @ channels)[:, 0]
    ratios = np.where(channels > 0, channels / np.maximum(laws, 1e-300)[:, None, :], 1.0)
    return (channels * np.log(ratios)).sum(axis=2), laws


def _promising(left: IntArray, priors: FloatArray, divergences: FloatArray) -> tuple[IntArray, FloatArray]:
    """The channels that may have the largest capacity, or nearly so."""
    least = (priors[left] * divergences).sum(axis=1).max() - NEAR
    kept = divergences.max(axis=1) >= least
    return left[kept], divergences[kept]


def _moved(priors: FloatArray, divergences: FloatArray) -> FloatArray:
    """The step of Blahut and Arimoto."""
    moved = priors * np.exp(divergences - divergences.max(axis=1, keepdims=True))
    return np.asarray(np.maximum(moved / moved.sum(axis=1, keepdims=True), 1e-300))


def _bisected(channels: FloatArray) -> FloatArray:
    """(K, 2) the laws of the input at which both rows are equally far from the law of the output."""
    low, high = np.zeros(len(channels)), np.ones(len(channels))
    for _ in range(BISECTIONS):
        middle = (low + high) / 2
        found, _ = _divergences(channels, np.stack([middle, 1 - middle], axis=1))
        more = found[:, 0] > found[:, 1]
        low, high = np.where(more, middle, low), np.where(more, high, middle)
    middle = (low + high) / 2
    return np.stack([middle, 1 - middle], axis=1)


def covered(rows: FloatArray, tuples: IntArray, law: FloatArray, bound: float) -> BoolArray:
    """(K,) whether no row of a channel diverges from a law by more than a bound.

    Examples:
        >>> covered(np.eye(2), np.array([[0, 1]]), np.array([0.5, 0.5]), 0.7).tolist()  # log 2 = 0.693
        [True]
    """
    beyond = (rows > 0) & (law <= 0)
    ratios = np.where((rows > 0) & ~beyond, rows / np.where(law > 0, law, 1.0), 1.0)
    near = ((rows * np.log(ratios)).sum(axis=1) <= bound) & ~beyond.any(axis=1)
    return np.asarray(near[tuples].all(axis=1))


def _covering(
    rows: FloatArray, tuples: IntArray, laws: FloatArray, order: IntArray, bound: float
) -> FloatArray:
    """Laws that prove the bound for every tuple, those first in order preferred."""
    missing, chosen = np.ones(len(tuples), dtype=bool), []
    for place in order.tolist():
        if missing[place]:
            chosen.append(place)
            missing &= ~covered(rows, tuples, laws[place], bound)
            missing[place] = False
    return laws[chosen]
