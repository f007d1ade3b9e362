"""Words for a violated requirement: the outcome that reveals most, and about which letter or value."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from pmlopt.core.arrays import FloatArray, Label
from pmlopt.data.mechanism import Mechanism
from pmlopt.data.prior import Prior


def compute_log_lifts(prior: Prior, mechanism: Mechanism) -> FloatArray:
    """Compute (N, M) `log(P[x,y] / q[y])`: what outcomes reveal about letters; NaN where none occurs."""
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.asarray(np.log(mechanism.matrix / (prior.pmf @ mechanism.matrix)))


def describe_largest_leak(
    mechanism: Mechanism, leaks: FloatArray, secrets: Sequence[Label], limit: float
) -> str:
    """Describe the largest of what outcomes reveal.

    Args:
        mechanism: with M outcomes, of which those that never occur reveal nothing.
        leaks: (K, M) in nats.
        secrets: the K letters or values that they are about.
        limit: of each, in nats.
    """
    known = np.where(mechanism.support & ~np.isnan(leaks), leaks, -np.inf)
    x, y = map(int, np.unravel_index(int(known.argmax()), known.shape))
    return (
        f"the outcome {mechanism.outputs[y]!r} reveals {leaks[x, y]:.6g} nats about {secrets[x]!r}, "
        f"and the limit is {limit:g}"
    )
