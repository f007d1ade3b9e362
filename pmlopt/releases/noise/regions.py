"""The outcomes of noisy numbers that leak more than a level: cells of the line, and lines of the plane.

With `r_j(y) = f(y | x_j) / max_i f(y | x_i)` an outcome leaks more than epsilon under some prior of a set iff
the least mean of r(y) is below e^-epsilon. Log-ratios of two letters are monotone along a line, so that both
ends of a cell bound every r_j on it, from below and from above: a cell is left out, or counted, or halved.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from pmlopt.core.arrays import FloatArray
from pmlopt.releases.noise.letters import PlacedLetters

if TYPE_CHECKING:
    from pmlopt.releases.noise.additive import AdditiveNoise


def bound_leaking_mass(
    noise: AdditiveNoise,
    letters: PlacedLetters,
    places: FloatArray,
    exp_neg_epsilon: float,
    enough: float | None = None,
) -> float:
    """Bound the largest probability of the outcomes that leak more than epsilon from above.

    On a line it is too large by at most 1e-13. In the plane it is integrated over lines, by Gauss and
    Legendre on panels that are halved; what both halves of a panel differ from it by is added to the
    probability, though they are nearer to it.

    Args:
        noise: of a positive scale.
        letters: with their priors.
        places: (N, 1) or (N, 2) where they are.
        exp_neg_epsilon: e^-epsilon.
        enough: the search ends where it is clear on which side of this number the probability is.
    """
    first, line = places[:, 0], places[:, -1]
    if places.shape[1] == 1:
        here, weights = np.zeros((len(line), 1)), np.ones((len(line), 1))
        masses = bound_on_lines(noise, letters, line, here, weights, exp_neg_epsilon, enough)
        return letters.max_mean(masses[:, 0])
    nodes, shares = np.polynomial.legendre.leggauss(10)

    def integrate_panels(left: FloatArray, right: FloatArray) -> FloatArray:
        half = (right - left) / 2
        across = ((left + half)[:, None] + half[:, None] * nodes).ravel()
        offsets = noise.compute_log_likelihoods(across, first)
        weights = noise.compute_density(across - first[:, None]) * np.outer(half, shares).ravel()
        found = bound_on_lines(noise, letters, line, offsets, weights, exp_neg_epsilon)
        return found.reshape(len(first), len(left), -1).sum(axis=2)

    edges = noise.make_edges(first)
    left, right = edges[:-1], edges[1:]
    panels = integrate_panels(left, right)
    settled, error = np.zeros(len(first)), 0.0
    for _ in range(45):
        middle = left + (right - left) / 2
        ends = np.append(left, middle), np.append(middle, right)
        halves = integrate_panels(*ends).reshape(len(first), 2, -1)
        apart = np.abs(halves.sum(axis=1) - panels).max(axis=0)
        found = letters.max_mean(settled + halves.sum(axis=(1, 2)))
        spread = error + float(apart.sum())
        if spread < 1e-11 or (enough is not None and abs(found - enough) > spread):
            break
        wide = apart > 1e-14
        settled += halves[:, :, ~wide].sum(axis=(1, 2))
        error += float(apart[~wide].sum())
        left, right = (both.reshape(2, -1)[:, wide].ravel() for both in ends)
        panels = halves[:, :, wide].reshape(len(first), -1)
    return min(1.0, found + spread)


def bound_on_lines(
    noise: AdditiveNoise,
    letters: PlacedLetters,
    line: FloatArray,
    offsets: FloatArray,
    weights: FloatArray,
    exp_neg_epsilon: float,
    enough: float | None = None,
) -> FloatArray:
    """Bound (N, K) probabilities, given each letter, of what leaks more on each of K lines, from above.

    Cells that are still undecided after 44 halvings are counted.

    Args:
        noise: of a positive scale.
        letters: with their priors.
        line: (N,) places of the letters along each line.
        offsets: (N, K) logarithms of the likelihoods across, up to a number for each line.
        weights: (N, K) by which probabilities on each line are multiplied.
        exp_neg_epsilon: e^-epsilon.
        enough: for a single line, as in `bound_leaking_mass`.
    """
    # a mean that is the limit but for rounding counts as below it
    limit = exp_neg_epsilon * (1 + 1e-13)
    edges, lines = noise.make_edges(line), offsets.shape[1]
    left, right = np.tile(edges[:-1], lines), np.tile(edges[1:], lines)
    at = np.repeat(np.arange(lines), len(edges) - 1)
    low = np.zeros((lines, len(line)))
    for _ in range(45):
        logs = [noise.compute_log_likelihoods(y, line) + offsets[:, at] for y in (left, right)]
        least, most = _bound_ratios(*logs)
        opened = letters.min_mean(least) < limit
        inside = opened & (letters.min_mean(most) < limit)
        masses = (noise.compute_cell_masses(left, right, line) * weights[:, at]).T
        np.add.at(low, at[inside], masses[inside])
        wide = opened & ~inside
        left, right, at, high = left[wide], right[wide], at[wide], low.copy()
        np.add.at(high, at, masses[wide])
        clear = enough is not None and (
            letters.max_mean(low[0]) > enough or letters.max_mean(high[0]) <= enough
        )
        if clear or (high - low).max() < 1e-15 or len(left) > 200_000:
            break
        middle = left + (right - left) / 2
        left, right, at = np.append(left, middle), np.append(middle, right), np.tile(at, 2)
    return high.T


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
