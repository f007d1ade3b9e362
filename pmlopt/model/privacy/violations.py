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
    amount = f"{leaks[x, y]:.6g} nats" if np.isfinite(leaks[x, y]) else "infinitely much"
    # log(0 / 0) or log 0: the output never comes from these
    missing = np.flatnonzero(np.isnan(leaks[:, y]) | np.isneginf(leaks[:, y]))
    why = ""
    if not np.isfinite(leaks[x, y]) and len(missing):
        why = f", since it rules out {secrets[int(missing[0])]!r}"
    return (
        f"the output {mechanism.outputs[y]!r} reveals {amount} about {secrets[x]!r}{why}, and the limit is "
        f"{limit:g}"
    )
