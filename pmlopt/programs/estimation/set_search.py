"""Search for columns of LDP that lower the error, where there are too many to list."""

from __future__ import annotations

import numpy as np

from pmlopt.arrays import BoolArray, FloatArray

SWEEPS = 60
"""Letters that one local search may move into or out of a set."""


def sets_to_start(size: int) -> BoolArray:
    """(K, N) sets of letters: all intervals, their complements, and as many that are drawn at random."""
    place = np.arange(size)
    intervals = np.array([(place >= i) & (place <= j) for i in range(size) for j in range(i, size)])
    drawn = np.random.default_rng(0).random((2 * len(intervals), size)) < 0.4
    sets = np.unique(np.concatenate([intervals, ~intervals, drawn]), axis=0)
    return np.asarray(sets[sets.any(axis=1) & ~sets.all(axis=1)])


def improved_sets(
    sets: BoolArray, p: FloatArray, ratio: float, sensitivities: FloatArray, multipliers: FloatArray
) -> tuple[BoolArray, FloatArray]:
    """Local optima of `|Z' lam|^2 - <pi, lam>` over the columns of sets, by moving one letter at a time.

    Args:
        sets: (K, N) to start from.
        p: (N,) the prior.
        ratio: of the two values of a column.
        sensitivities: (N, L) Z.
        multipliers: (N,) pi.

    Returns:
        (K, N) sets, and (K,) what they reach.
    """
    sets, step, norms = sets.copy(), ratio - 1, (sensitivities**2).sum(axis=1)
    rows = np.arange(len(sets))
    for _ in range(SWEEPS):
        columns = 1 + step * sets
        along, mass, cost = columns @ sensitivities, columns @ p, columns @ multipliers
        here = (along**2).sum(axis=1) / mass**2 - cost / mass
        sign = step * np.where(sets, -1.0, 1.0)
        squares = (along**2).sum(axis=1)[:, None] + 2 * sign * (along @ sensitivities.T) + step**2 * norms
        masses = mass[:, None] + sign * p
        there = squares / masses**2 - (cost[:, None] + sign * multipliers) / masses
        best = there.argmax(axis=1)
        better = there[rows, best] > here + 1e-12 * np.abs(here)
        if not better.any():
            break
        sets[rows[better], best[better]] ^= True
    return sets, here
