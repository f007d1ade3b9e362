"""Mechanisms as privacy loss distributions of `dp_accounting`, which composes them with other releases.

The law of the privacy loss is about local differential privacy: two inputs, whatever the prior. For levels of
pointwise maximal leakage under a prior, `pmlopt.Ledger` keeps the account.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from pmlopt.core.arrays import FloatArray
from pmlopt.data.mechanism import MechanismLike, as_mechanism
from pmlopt.errors import InputError, MissingExtraError
from pmlopt.measures import ldp_level

try:
    from dp_accounting.pld import pld_pmf
    from dp_accounting.pld.privacy_loss_distribution import PrivacyLossDistribution
except ImportError:
    raise MissingExtraError(
        "privacy loss distributions need dp-accounting: pip install 'pmlopt[accounting]'"
    ) from None

MAX_LOSSES = 10**6
"""Multiples of the interval that a distribution may have."""


def hockey_stick_divergences(mechanism: MechanismLike, losses: FloatArray) -> FloatArray:
    """Compute (K,) the largest hockey-stick divergence between two rows of a mechanism at each loss.

    `max over x, z of sum_y max(P[x,y] - e^loss P[z,y], 0)`: the least delta of local differential privacy
    with epsilon = loss.

    Args:
        mechanism: (N, M).
        losses: (K,) nats.

    Examples:
        >>> hockey_stick_divergences([[0.75, 0.25], [0.25, 0.75]], np.array([0.0, np.log(3)])).round(12)
        array([0.5, 0. ])
    """
    matrix = as_mechanism(mechanism).matrix
    found = np.zeros(len(losses))
    for row in matrix:
        for place, factor in enumerate(np.exp(losses)):
            excess = np.maximum(row - factor * matrix, 0.0).sum(axis=1)
            found[place] = max(found[place], float(excess.max()))
    return found


def privacy_loss_distribution(mechanism: MechanismLike, interval: float = 1e-3) -> Any:
    """Build a privacy loss distribution that dominates those of all pairs of inputs.

    It has the largest hockey-stick divergence of the mechanism at each multiple of the interval, and at least
    it between them, so that what `dp_accounting` composes is never too small. The rows of the mechanism are
    any two inputs, as local differential privacy compares them.

    Args:
        mechanism: (N, M).
        interval: between two losses of the distribution, in nats.

    Returns:
        a `dp_accounting.pld.privacy_loss_distribution.PrivacyLossDistribution`.

    Raises:
        InputError: the interval is not positive, or so short that there are over a million losses.

    Source: [doroshenko2022connect, Algorithm 1].

    Examples:
        >>> found = privacy_loss_distribution([[0.75, 0.25], [0.25, 0.75]])
        >>> twice = found.self_compose(2)
        >>> [round(float(twice.get_delta_for_epsilon(epsilon)), 9) for epsilon in (math.log(3), 2.3)]
        [0.375, 0.0]
    """
    known = as_mechanism(mechanism)
    if not interval > 0:
        raise InputError(f"the interval must be positive, not {interval!r}")
    level = ldp_level(known)
    # past the largest finite loss only outcomes that exclude an input count
    reach = level if math.isfinite(level) else _largest_finite_loss(known.matrix)
    count = math.ceil(reach / interval) + 1
    if count > MAX_LOSSES:
        raise InputError(
            f"the interval {interval!r} divides {reach:.6g} nats too often: take a longer one"
        )
    steps = np.arange(-count, count + 1)
    divergences = hockey_stick_divergences(known, np.asarray(steps * interval, dtype=np.float64))
    # rounding in the sums must not make the next one larger, nor any too small
    upward = np.minimum(divergences + 2.0**-52 * known.shape[1] * (divergences > 0), 1.0)
    falling = np.maximum.accumulate(upward[::-1])[::-1]
    return PrivacyLossDistribution(
        pld_pmf.create_pmf_pessimistic_connect_dots(interval, steps, falling)
    )


def _largest_finite_loss(matrix: FloatArray) -> float:
    """Compute the largest log ratio of two positive entries of a column."""
    low = np.where(matrix > 0, matrix, np.inf).min(axis=0)
    high = matrix.max(axis=0)
    used = high > 0
    return float(np.log(high[used] / low[used]).max())
