"""Repair: from a solver's matrix to one that satisfies the requirement exactly."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import count
from typing import Any

import numpy as np

from pmlopt.arrays import FloatArray, Label
from pmlopt.errors import MechanismError
from pmlopt.exact.rationals import holds_exactly, snap
from pmlopt.mechanism import Mechanism
from pmlopt.prior import Prior
from pmlopt.privacy import Requirement

NOISE_THRESHOLD = 1e-8
"""Conditional probabilities of at most this are taken for a solver's noise, and become zero."""

LARGEST_USUAL_MIXING = 1e-9
"""The share mixed in beyond which it is tried whether small entries are no noise."""

LARGEST_SINGLE_MIXING = 1e-6
"""Outputs are mixed with their mean one by one only where that moves no entry by more than this."""


@dataclass(frozen=True, eq=False)
class Repair:
    """What was done to a matrix so that it satisfies the requirement.

    Attributes:
        matrix: (N, M) the repaired matrix, on the exact grid.
        theta: the share in which one law of the output was mixed into every row, in [0, 1].
        dropped: the indices of outputs that were dropped as noise.
        shift: the largest change of an entry.
    """

    matrix: FloatArray
    theta: float
    dropped: tuple[int, ...]
    shift: float

    @classmethod
    def between(cls, before: FloatArray, after: FloatArray, theta: float) -> Repair:
        """What turned one matrix into another, a share theta of one law mixed in on the way."""
        dropped = np.flatnonzero((before.max(axis=0) > 0) & (after.max(axis=0) == 0))
        return cls(after, theta, tuple(int(y) for y in dropped), float(np.abs(after - before).max()))

    def record(self, outputs: Sequence[Label]) -> dict[str, Any]:
        """What was done as plain data, the outputs by their labels."""
        return {
            "theta": self.theta,
            "dropped_outputs": [outputs[y] for y in self.dropped],
            "largest_change": self.shift,
        }


def repair(prior: Prior, privacy: Requirement, matrix: FloatArray, noise: float = NOISE_THRESHOLD) -> Repair:
    """The nearest mechanism of a simple kind that satisfies the requirement in exact arithmetic.

    First the noise: entries of at most `noise` become zero (unless that costs more than it mends), each
    output that breaks the bound by little is mixed with its own mean as far as it must, rows are
    renormalised. Then P becomes (1 - theta) P + theta 1 r', with the smallest theta that will do: the
    excess over the bound is convex along the way, and r is the output law, which then does not change,
    or uniform on the outputs, which helps where an unlikely output breaks the bound. Last, the matrix is
    put on the grid on which rows sum to exactly one, with a theta that is a hair larger where the
    rounding needs it. theta = 1 always satisfies the requirement.

    Args:
        prior: N letters.
        privacy: the requirement to satisfy.
        matrix: (N, M) finite; rows sum to one up to a solver's tolerance.
        noise: entries of at most this are taken for noise; 0 where every column is known to be within
            the requirement.

    Raises:
        MechanismError: a row's sum is off one by 0.5 or more, or an entry is not finite.
    """
    theta, candidate = _repaired(prior, privacy, matrix, noise)
    if theta > LARGEST_USUAL_MIXING and noise > 0:  # under LDP at 20 nats, entries of 1e-9 are no noise
        theta, candidate = min(
            (theta, candidate), _repaired(prior, privacy, matrix, 0.0), key=lambda found: found[0]
        )
    return Repair.between(matrix, candidate, theta)


def roughly(prior: Prior, privacy: Requirement, matrix: FloatArray) -> FloatArray:
    """What `repair` would make of a matrix but for the last digits: to be judged, not to be claimed."""
    clean = _mended(prior, privacy, without_noise(matrix, NOISE_THRESHOLD), NOISE_THRESHOLD)
    law = prior.pmf @ clean
    theta = float(_needed(prior, privacy, clean, law).max())
    return np.asarray((1 - theta) * clean + theta * law)


def _repaired(
    prior: Prior, privacy: Requirement, matrix: FloatArray, noise: float
) -> tuple[float, FloatArray]:
    """Theta and the repaired matrix, entries of at most `noise` taken for zeros."""
    clean = without_noise(matrix, noise)
    candidate = snap(clean)
    if satisfied(prior, privacy, candidate):
        return 0.0, candidate
    mended = _of_laws(prior, privacy, _mended(prior, privacy, clean, noise))
    if mended[0] <= LARGEST_USUAL_MIXING:
        return mended
    # where a constant is hardly within the bound, rows over their sums undo more than was mended
    return min(mended, _of_laws(prior, privacy, clean), key=lambda found: found[0])


def _of_laws(prior: Prior, privacy: Requirement, clean: FloatArray) -> tuple[float, FloatArray]:
    """Theta and the mixture, with the output law or the uniform one on the outputs that occur."""
    used = clean.max(axis=0) > 0
    laws = (prior.pmf @ clean, used / used.sum())
    return min((_mixed(prior, privacy, clean, law) for law in laws), key=lambda found: found[0])


def _mixed(
    prior: Prior, privacy: Requirement, clean: FloatArray, law: FloatArray
) -> tuple[float, FloatArray]:
    """The least theta that a doubling search finds from the chord's, and its mixture; theta = 1 ends it."""
    theta = float(_needed(prior, privacy, clean, law).max())
    for attempt in count():
        candidate = snap((1 - theta) * clean + theta * law)
        if satisfied(prior, privacy, candidate):
            break
        if theta >= 1:
            raise MechanismError("a constant does not meet the requirement in floating-point arithmetic")
        missing = float(_needed(prior, privacy, candidate, law).max())
        theta = min(1.0, theta + 2.0**attempt * max(missing, 2.0**-53))
    return theta, candidate


def satisfied(prior: Prior, privacy: Requirement, matrix: FloatArray) -> bool:
    """In exact arithmetic, and in the floating-point arithmetic of whoever checks it next."""
    return privacy.holds(prior, Mechanism(matrix)) and holds_exactly(prior, privacy, matrix)


def without_noise(matrix: FloatArray, noise: float) -> FloatArray:
    """Small entries as zeros, rows over their sums."""
    if not np.isfinite(matrix).all():
        raise MechanismError("the matrix to repair has an entry that is not finite")
    sparse = np.where(matrix > noise, matrix, 0.0)
    sums = sparse.sum(axis=1)
    if not (np.abs(sums - 1) < 0.5).all():
        raise MechanismError(
            f"the matrix to repair has a row that sums to {sums[np.abs(sums - 1).argmax()]:.3g}: it is no "
            "mechanism, not even roughly"
        )
    return np.asarray(sparse / sums[:, None])


def _mended(prior: Prior, privacy: Requirement, sparse: FloatArray, noise: float) -> FloatArray:
    """Outputs that miss the bound by little mixed with their means, one by one; rows over their sums."""
    means = prior.pmf @ sparse
    share = _needed(prior, privacy, sparse, means)
    share = np.where(share * np.ptp(sparse, axis=0) <= LARGEST_SINGLE_MIXING, share, 0.0)
    mixed = (1 - share) * sparse + share * means
    kept = np.where(mixed.max(axis=0) > noise, mixed, 0.0)
    return np.asarray(kept / kept.sum(axis=1, keepdims=True))


def _needed(prior: Prior, privacy: Requirement, matrix: FloatArray, means: FloatArray) -> FloatArray:
    """The share of a constant that each column needs mixed in; one number where the bound is joint.

    The excess is convex along the mixture, so the chord between both ends tells a share that suffices.
    """
    constant = np.broadcast_to(means, matrix.shape)
    over = np.asarray(privacy.excess(prior.pmf, matrix, math.exp))
    slack = np.maximum(-np.asarray(privacy.excess(prior.pmf, constant, math.exp)), 0.0)
    with np.errstate(invalid="ignore", divide="ignore"):
        return np.where(over > 0, over / (over + slack), 0.0)
