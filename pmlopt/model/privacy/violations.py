"""Words for a violated requirement: the outcome that reveals most, and about which letters or value."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from pmlopt.core.numbers.arrays import FloatArray, Label
from pmlopt.data.mechanism import Mechanism
from pmlopt.data.prior import Prior


def compute_log_lifts(prior: Prior, mechanism: Mechanism) -> FloatArray:
    """Compute (N, M) `log(P[x,y] / q[y])`: what outcomes reveal about letters; NaN where none occurs."""
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.log(mechanism.matrix / (prior.pmf @ mechanism.matrix))


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
    output = mechanism.output_names[y]
    return f"the output {output!r} reveals {amount} about {secrets[x]!r}{why}, and the limit is {limit:g}"


def describe_largest_ratio(mechanism: Mechanism, letters: Sequence[Label], limit: float) -> str:
    """Describe the largest ratio of the probabilities of an outcome, given two letters.

    Args:
        mechanism: with N letters.
        letters: their labels.
        limit: of the logarithm of the ratio, in nats.

    Examples:
        >>> response = Mechanism([[0.6, 0.4], [0.4, 0.6]], ["no", "yes"], ["a", "b"])
        >>> describe_largest_ratio(response, ["no", "yes"], 0.4).partition(", a level")[0]
        "the output 'a' is 1.5 times as likely for 'no' as for 'yes'"
    """
    matrix = mechanism.matrix
    with np.errstate(divide="ignore", invalid="ignore"):
        levels = np.log(matrix.max(axis=0) / matrix.min(axis=0))
    y = int(np.where(mechanism.support, levels, -np.inf).argmax())
    most = int(np.argmax(matrix[:, y]))
    least = int(np.argmin(matrix[:, y]))
    if np.isfinite(levels[y]):
        ratio, level = f"{math.exp(levels[y]):.4g} times as likely for", f"{levels[y]:.6g} nats"
        found = f"{ratio} {letters[most]!r} as for {letters[least]!r}, a level of {level}"
    else:
        found = f"possible for {letters[most]!r} and impossible for {letters[least]!r}"
    return f"the output {mechanism.output_names[y]!r} is {found}, and the limit is {limit:g}"
