"""Words for a violated requirement: the outcome that reveals most, and about which letter or value."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from pmlopt.core.arrays import FloatArray, Label
from pmlopt.data.mechanism import Mechanism
from pmlopt.data.prior import Prior

if TYPE_CHECKING:
    from pmlopt.model.privacy.requirement import Requirement


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


def describe_worst_pair(
    privacy: Requirement, prior: Prior, mechanism: Mechanism, of_letter: str = " alone"
) -> str:
    """Describe the pair by which a list of ratio bounds is violated most; else the level above its limit.

    Args:
        privacy: the requirement.
        prior: N letters.
        mechanism: that violates it.
        of_letter: what follows the letter of a pair.
    """
    ratios = privacy.for_prior(prior).required_ratios(prior.pmf)
    if ratios is None or not len(ratios.exponents):
        levels = privacy.levels(prior, mechanism)
        name = max(privacy.limits, key=lambda limit: levels[limit] - privacy.limits[limit])
        return f"the level {name} is {levels[name]:.6g} nats, and the limit is {privacy.limits[name]:g}"
    used = np.flatnonzero(mechanism.support)
    over = ratios.log_ratios(mechanism.matrix[:, used]) - ratios.exponents[:, None]
    pair, y = np.unravel_index(int(np.nanargmax(over)), over.shape)
    side = int(ratios.above[pair])
    what = f"{prior.labels[side]!r}{of_letter}" if side < prior.size else f"the pair {pair}"
    return (
        f"the outcome {mechanism.outputs[used[y]]!r} is {over[pair, y]:.6g} nats above the limit for "
        f"{what}"
    )
