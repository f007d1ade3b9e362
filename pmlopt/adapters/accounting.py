"""Mechanisms as privacy loss distributions of `dp_accounting`, which composes them with other releases.

The law of the privacy loss is about local differential privacy: two inputs, whatever the prior. For levels of
pointwise maximal leakage under a prior, `pmlopt.Ledger` keeps the account.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from pmlopt.core.lazy_imports import require_extra
from pmlopt.core.numbers.arrays import BoolArray, FloatArray
from pmlopt.data.mechanism import MechanismLike, as_mechanism
from pmlopt.errors import InputError
from pmlopt.measures import ldp_level

with require_extra("privacy loss distributions need dp-accounting", "accounting"):
    from dp_accounting.pld import pld_pmf
    from dp_accounting.pld.privacy_loss_distribution import PrivacyLossDistribution


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
    for first in range(0, len(losses), 2**14):
        block = slice(first, first + 2**14)
        factors = np.exp(losses[block])
        for row in matrix:
            excess = np.zeros((len(matrix), len(factors)))
            for share, column in zip(row, matrix.T, strict=True):
                excess += np.maximum(share - column[:, None] * factors, 0.0)
            found[block] = np.maximum(found[block], excess.max(axis=0))
    return found


class PureDistribution(PrivacyLossDistribution):  # type: ignore[misc]  # dp_accounting has no types
    """A privacy loss distribution that knows the largest loss, which holds without any delta.

    `dp_accounting` cuts 1e-15 off the tails of what it composes, and counts them as infinite losses. Here
    nothing is cut where all parts are pure, so that an epsilon at delta 0 stays finite.

    Attributes:
        level: nats; the largest loss.
    """

    def __init__(self, pmf: Any, level: float) -> None:
        super().__init__(pmf)
        self.level = level

    def get_epsilon_for_delta(self, delta: float) -> float:
        """Return the least epsilon at a delta, at most the level."""
        return self.level if delta == 0 else min(super().get_epsilon_for_delta(delta), self.level)

    def self_compose(self, num_times: int, tail_mass_truncation: float = 0.0) -> Any:
        """Compose the distribution with itself."""
        pmf = self._pmf_remove.self_compose(num_times, tail_mass_truncation)
        return PureDistribution(pmf, num_times * self.level)

    def compose(self, other: Any, tail_mass_truncation: float = 0.0) -> Any:
        """Compose the distribution with another, which may be one of `dp_accounting`."""
        level = self.level + other.get_epsilon_for_delta(0.0)
        composed = super().compose(other, tail_mass_truncation)
        # one that is not symmetric has two laws of the loss
        if not (math.isfinite(level) and composed._symmetric):
            return composed
        return PureDistribution(composed._pmf_remove, level)


def privacy_loss_distribution(mechanism: MechanismLike, interval: float = 1e-4) -> Any:
    """Build a privacy loss distribution that dominates those of all pairs of inputs.

    It has the largest hockey-stick divergence of the mechanism at each multiple of the interval, and at least
    it between them, so that what `dp_accounting` composes is never too small. The rows of the mechanism are
    any two inputs, as local differential privacy compares them.

    Args:
        mechanism: (N, M).
        interval: between two losses of the distribution, in nats; `dp_accounting` composes those alone whose
            intervals are equal, and its own have 1e-4.

    Returns:
        a `dp_accounting.pld.privacy_loss_distribution.PrivacyLossDistribution`; a `PureDistribution`, whose
        epsilon at delta 0 is finite, where no outcome excludes an input.

    Raises:
        InputError: the interval is not positive, or so short that there are over a million losses.

    Source: [doroshenko2022connect, Algorithm 1].

    Examples:
        >>> found = privacy_loss_distribution([[0.75, 0.25], [0.25, 0.75]])
        >>> twice = found.self_compose(2)
        >>> [round(float(twice.get_delta_for_epsilon(epsilon)), 9) for epsilon in (math.log(3), 2.3)]
        [0.375, 0.0]
        >>> bool(np.isclose(twice.get_epsilon_for_delta(0.0), math.log(9)))
        True
    """
    known = as_mechanism(mechanism)
    if not interval > 0:
        raise InputError(f"the interval must be positive, not {interval!r}")
    level = ldp_level(known)
    # past the largest finite loss only outcomes that exclude an input count
    reach = level if math.isfinite(level) else _largest_finite_loss(known.matrix)
    count = math.ceil(reach / interval)
    # arrays of millions of losses would take minutes to compose
    if count > 10**6:
        raise InputError(
            f"the interval {interval!r} divides {reach:.6g} nats too often: take a longer one"
        )
    if hockey_stick_divergences(known, np.array([count * interval]))[0] > 0 and level < math.inf:
        count += 1  # the quotient was rounded down to a whole number
    steps = np.arange(-count, count + 1)
    divergences = hockey_stick_divergences(known, np.asarray(steps * interval, dtype=np.float64))
    # rounding in the sums must not make the next one larger, nor any too small
    upward = np.minimum(divergences + 2.0**-52 * known.shape[1] * (divergences > 0), 1.0)
    falling = np.maximum.accumulate(upward[::-1])[::-1]
    kept = _find_kinks(falling, interval, known.shape[1])
    law = pld_pmf.create_pmf_pessimistic_connect_dots(interval, steps[kept], falling[kept])
    if math.isinf(level):
        return PrivacyLossDistribution(law)
    return PureDistribution(law, level * (1 + 2.0**-50))


def _find_kinks(divergences: FloatArray, interval: float, outputs: int) -> BoolArray:
    """Find the losses that have a probability, beyond rounding, and the two ends.

    Divergences are convex in `e^loss`: the lines between those kept lie nowhere below the others. Few losses
    stay few when they are composed, and exact.
    """
    rises = np.diff(divergences)
    noise = 2.0**-48 * outputs / math.expm1(interval)
    kept = np.ones(len(divergences), dtype=bool)
    kept[1:-1] = (rises[1:] - rises[:-1] * math.exp(interval)) / math.expm1(interval) > noise
    return kept


def _largest_finite_loss(matrix: FloatArray) -> float:
    """Compute the largest log ratio of two positive entries of a column."""
    low = np.where(matrix > 0, matrix, np.inf).min(axis=0)
    high = matrix.max(axis=0)
    used = high > 0
    return float(np.log(high[used] / low[used]).max())
