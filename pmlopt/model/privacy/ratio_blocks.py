"""Column blocks of ratio bounds, for the structured interior point."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from pmlopt.core.numbers.arrays import FloatArray, IntArray
from pmlopt.model.privacy.ratios import RatioBounds
from pmlopt.solvers.structured.block_program import ColumnBlock

MIN_SLACK_NATS = 1e-9
"""Nats by which a constant must be within every pair: with less the interior is nearly empty."""


def make_block(
    ratios: RatioBounds, p: FloatArray, factor: Callable[[FloatArray], FloatArray]
) -> ColumnBlock | None:
    """Build the column block with rows `<den_k - e^(-eps_k) num_k, v> >= 0`.

    The scalar is at most the mean, and `v <= e^eps u` with the largest exponent of the letters where each is
    bounded by the mean, as under PML; else with twice 1 / min p, which every column satisfies.

    Args:
        ratios: the pairs.
        p: (N,) the prior.
        factor: from (K,) e^-exponent to the factors of the numerators.

    Returns:
        None where the rows would not be few, or nothing lies strictly inside.
    """
    keeps = factor(np.exp(-ratios.exponents))
    capped = _find_mean_pairs(ratios, p)
    cap = float(keeps[capped].min()) if len(capped) else float(p.min()) / 2
    rows = np.ones(len(keeps), dtype=bool)
    rows[capped[keeps[capped] == cap]] = False
    # Rows of a column: their number squared is the work for each of its entries.
    if rows.sum() > min(16, ratios.size) or not ratios.slack > MIN_SLACK_NATS:
        return None
    above = ratios.list_sides(ratios.above[rows])
    below = ratios.list_sides(ratios.below[rows])
    pairs = below - keeps[rows, None] * above
    return ColumnBlock(
        lower=np.zeros(1),
        upper=np.ones(1),
        interior_scalars=np.array([cap**-0.5]),
        weights=np.vstack([pairs, p]),
        mean=np.append(np.zeros(len(pairs)), cap)[:, None],
        is_loose=True,
    )


def _find_mean_pairs(ratios: RatioBounds, p: FloatArray) -> IntArray:
    """Find the pairs of a letter and the mean, if every letter is in one."""
    if not len(ratios.rows):
        return np.zeros(0, dtype=int)
    rows = ratios.compute_products(np.eye(ratios.size))
    means = np.flatnonzero((np.abs(rows - p) <= 1e-12 * p).all(axis=1))
    found = np.flatnonzero(
        (ratios.above < ratios.size) & np.isin(ratios.below, ratios.size + means)
    )
    return found if len(np.unique(ratios.above[found])) == ratios.size else found[:0]
