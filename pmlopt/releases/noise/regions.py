"""The outcomes of noisy numbers that leak more than a level, as a union of cells of the line."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from pmlopt.core.arrays import FloatArray


def bound_leaking_mass(
    log_likelihoods: Callable[[FloatArray], FloatArray],
    min_mean: Callable[[FloatArray], FloatArray],
    measure: Callable[[FloatArray, FloatArray], float],
    exp_neg_epsilon: float,
    edges: FloatArray,
    enough: float | None = None,
) -> float:
    """Bound the probability of the outcomes that leak more than epsilon from above, up to 1e-13.

    With `r_j(y) = f(y | x_j) / max_i f(y | x_i)` an outcome leaks more than epsilon under some prior of a
    set iff the least mean of r(y) is below e^-epsilon. Log-ratios of two letters are monotone in y, so that
    both ends of a cell bound every r_j on it, from below and from above: a cell is left out, or counted, or
    halved. Cells that are still undecided after 44 halvings are counted.

    Args:
        log_likelihoods: of K outcomes, (N, K), up to a number for each outcome.
        min_mean: of (N, M) columns.
        measure: the largest probability of a union of disjoint cells, by their left and right ends.
        exp_neg_epsilon: e^-epsilon.
        edges: ascending; beyond the first and the last the ratios are taken for constant.
        enough: the search ends where it is clear on which side of this number the probability is.
    """
    # Undecided cells past which all of them are counted.
    most_cells = 200_000
    # a mean that is the limit but for rounding counts as below it
    limit = exp_neg_epsilon * (1 + 1e-13)
    ends = edges[[0, -1]]
    logs = log_likelihoods(ends)
    beyond = min_mean(np.exp(logs - logs.max(axis=0))) < limit
    lefts, rights = [np.array([-np.inf, ends[1]])[beyond]], [np.array([ends[0], np.inf])[beyond]]
    left, right = edges[:-1], edges[1:]
    for halving in range(45):
        least, most = _bound_ratios(log_likelihoods(left), log_likelihoods(right))
        opened = min_mean(least) < limit
        inside = opened & (min_mean(most) < exp_neg_epsilon)
        undecided = opened & ~inside
        lefts.append(left[inside])
        rights.append(right[inside])
        left, right = left[undecided], right[undecided]
        if halving % 4 == 0 or not len(left) or len(left) > most_cells:
            low = measure(np.concatenate(lefts), np.concatenate(rights))
            high = measure(np.concatenate([*lefts, left]), np.concatenate([*rights, right]))
            clear = enough is not None and (low > enough or high <= enough)
            if clear or high - low < 1e-13 or len(left) > most_cells:
                break
        middle = left + (right - left) / 2
        left, right = np.concatenate([left, middle]), np.concatenate([middle, right])
    return high


def _bound_ratios(at_left: FloatArray, at_right: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Bound (N, C) ratios `r_j` on C cells from below and above, by log-likelihoods at their ends."""
    cells = np.arange(at_left.shape[1])
    least = np.minimum(at_left - at_left.max(axis=0), at_right - at_right.max(axis=0))
    most = np.zeros_like(least)
    for ends in (at_left, at_right):
        # r_j is at most the ratio to any one letter: to the likeliest at an end
        likeliest = ends.argmax(axis=0)
        against = np.maximum(
            at_left - at_left[likeliest, cells], at_right - at_right[likeliest, cells]
        )
        most = np.minimum(most, against)
    return np.exp(least), np.exp(most)
