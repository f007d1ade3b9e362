"""Ratio bounds with few pairs as what the structured interior point takes: a block for each column."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np

from pmlopt.arrays import FloatArray, IntArray
from pmlopt.backends.structured.block import Block
from pmlopt.privacy.ratios import Ratios

LEAST_ROOM = 1e-9
"""Nats by which a constant must be within every pair: with less there is hardly an inside to move in."""

MOST_ROWS = 16
"""Rows of a column: their number squared is the work for each of its entries."""


def block_of(ratios: Ratios, p: FloatArray, factor: Callable[[float], float]) -> Block | None:
    """The pairs as a row each, `<den_k - e^(-eps_k) num_k, v> >= 0`, in a column that has one scalar u.

    The scalar is at most the mean, and `v <= e^eps u` with the largest exponent of the letters where each is
    bounded by the mean, as under PML; else with twice 1 / min p, which every column satisfies.

    Args:
        ratios: the pairs.
        p: (N,) the prior.
        factor: from e^-exponent to the factor of the numerator.

    Returns:
        None where the rows would not be few, or nothing lies strictly inside.
    """
    keeps = np.array([factor(math.exp(-exponent)) for exponent in ratios.exponents.tolist()])
    capped = _by_the_mean(ratios, p)
    cap = float(keeps[capped].min()) if len(capped) else float(p.min()) / 2
    rows = np.ones(len(keeps), dtype=bool)
    rows[capped[keeps[capped] == cap]] = False
    if rows.sum() > min(MOST_ROWS, ratios.size) or not ratios.room > LEAST_ROOM:
        return None
    above, below = (side[rows].toarray() for side in ratios.differences)
    pairs = below - keeps[rows, None] * above
    return Block(
        lower=np.zeros(1),
        upper=np.ones(1),
        inside=np.array([cap**-0.5]),
        weights=np.vstack([pairs, p]),
        mean=np.append(np.zeros(len(pairs)), cap)[:, None],
        loose=True,
    )


def _by_the_mean(ratios: Ratios, p: FloatArray) -> IntArray:
    """The pairs of a letter and the mean, if every letter is in one; else none."""
    rows = ratios.products(np.eye(ratios.size))
    means = np.flatnonzero((np.abs(rows - p) <= 1e-12 * p).all(axis=1))
    found = np.flatnonzero((ratios.above < ratios.size) & np.isin(ratios.below, ratios.size + means))
    return found if len(np.unique(ratios.above[found])) == ratios.size else found[:0]
