"""The privacy loss of differential privacy, its law, and approximate and probabilistic differential privacy.

All of them are about the channel alone, and local: any two letters are neighbours.
"""

from __future__ import annotations

import math
from collections.abc import Iterator

import numpy as np

from pmlopt.core.arrays import FloatArray, Label, nonnegative, probability
from pmlopt.data.mechanism import Mechanism, MechanismLike, as_mechanism, paired
from pmlopt.data.prior import PriorLike
from pmlopt.errors import MechanismError, PrivacyError
from pmlopt.measures.leakage import level_rounding, log_quotient, pointwise_leakage


def privacy_loss(mechanism: MechanismLike, first: Label, second: Label) -> FloatArray:
    """The privacy loss `L(y) = log(P[x,y] / P[x',y])` of each outcome for two letters, in nats.

    inf where only the first letter can emit y, -inf where only the second can, NaN where neither.

    Args:
        mechanism: (N, M).
        first: x, by its label; the position, where the mechanism has no labels.
        second: x'.

    Returns:
        (M,) losses.

    Raises:
        MechanismError: the mechanism has no such letter.

    Source: [saeidian2026envelopes, Section II-B].

    Examples:
        >>> np.exp(privacy_loss([[0.75, 0.25], [0.25, 0.75]], 0, 1)).round(12)
        array([3.        , 0.33333333])
    """
    m = as_mechanism(mechanism)
    return _losses(_row(m, first), _row(m, second))


def privacy_loss_law(mechanism: MechanismLike, first: Label, second: Label) -> tuple[FloatArray, FloatArray]:
    """The law of the privacy loss for two letters, where the first is the true one.

    Args:
        mechanism: (N, M).
        first: x, by its label; Y has the law P[x,.].
        second: x'.

    Returns:
        (K,) the losses that occur in ascending order, in nats, the last one perhaps inf, and (K,) their
        probabilities. Losses that differ by rounding alone are one.

    Raises:
        MechanismError: the mechanism has no such letter.

    Source: [saeidian2026envelopes, Section II-B].

    Examples:
        >>> losses, masses = privacy_loss_law([[0.5, 0.25, 0.25], [0.25, 0.125, 0.625]], 0, 1)
        >>> np.exp(losses).round(12), masses
        (array([0.4, 2. ]), array([0.25, 0.75]))
    """
    m = as_mechanism(mechanism)
    truth = _row(m, first)
    occurring = truth > 0
    return _law(_losses(truth, _row(m, second))[occurring], truth[occurring])


def leakage_law(prior: PriorLike, mechanism: MechanismLike) -> tuple[FloatArray, FloatArray]:
    """The law of the pointwise maximal leakage l(Y).

    Args:
        prior: N letters.
        mechanism: (N, M).

    Returns:
        (K,) the leakages that occur in ascending order, in nats, and (K,) their probabilities. Leakages that
        differ by rounding alone are one.

    Source: [saeidian2026envelopes, Section II-C].

    Examples:
        >>> halves = [[0, 0, 0.5, 0.5], [0, 0, 0.5, 0.5], [0, 0.2, 0.4, 0.4], [0.2, 0, 0.4, 0.4]]
        >>> leakages, masses = leakage_law([0.25] * 4, halves)
        >>> np.exp(leakages).round(9), masses.round(9)
        (array([1.11111111, 4.        ]), array([0.9, 0.1]))
    """
    p, m = paired(prior, mechanism)
    return _law(pointwise_leakage(p, m)[m.support], (p.pmf @ m.matrix)[m.support])


def approximate_dp_delta(mechanism: MechanismLike, epsilon: float) -> float:
    """The least delta at which a mechanism is (epsilon, delta)-differentially private: its privacy profile.

    `max_{x,x'} sum_y max(0, P[x,y] - e^eps P[x',y])`, the largest hockey-stick divergence of rows. It is a
    slack and no probability of failure: the privacy loss exceeds epsilon with at least this probability
    (`probabilistic_dp_delta`). Post-processing cannot raise it.

    Args:
        mechanism: (N, M).
        epsilon: in nats.

    Raises:
        PrivacyError: epsilon is negative, NaN or infinite.

    Source: [saeidian2026envelopes, eq. (3)].

    Examples:
        >>> response = [[0.75, 0.25], [0.25, 0.75]]
        >>> round(approximate_dp_delta(response, 0.0), 12), approximate_dp_delta(response, math.log(3.1))
        (0.5, 0.0)
    """
    level = nonnegative(epsilon, "epsilon", PrivacyError)
    return max(
        float((-np.expm1(-np.maximum(losses - level, 0.0)) @ truth).max())
        for truth, _, losses in _against_all(mechanism)
    )


def approximate_dp_level(mechanism: MechanismLike, delta: float) -> float:
    """The least epsilon at which a mechanism is (epsilon, delta)-differentially private, in nats.

    `log max_{x,x'} max_E (P(E | x) - delta) / P(E | x')`, at least 0, over the events E of outcomes in
    descending order of the privacy loss; inf where some event of more than delta is impossible for x'.

    Args:
        mechanism: (N, M).
        delta: the slack, in (0, 1).

    Raises:
        PrivacyError: delta is not in (0, 1).

    Source: [saeidian2026envelopes, Definition 2 and eq. (3)].

    Examples:
        >>> response = [[0.75, 0.25], [0.25, 0.75]]
        >>> round(math.exp(approximate_dp_level(response, 0.25)), 12)  # (0.75 - 0.25) / 0.25
        2.0
        >>> approximate_dp_level(np.eye(2), 0.25)
        inf
    """
    share, best = probability(delta), 1.0
    for truth, others, losses in _against_all(mechanism):
        order = np.argsort(-losses, axis=1, kind="stable")
        above = np.cumsum(truth[order], axis=1) - share
        below = np.cumsum(np.take_along_axis(others, order, axis=1), axis=1)
        if (above[below == 0] > 0).any():
            return math.inf
        best = max(best, float((above[below > 0] / below[below > 0]).max(initial=1.0)))
    return math.log(best)


def probabilistic_dp_delta(mechanism: MechanismLike, epsilon: float) -> float:
    """The least delta at which a mechanism is (epsilon, delta)-probabilistically differentially private.

    `max_{x,x'} P(L(Y) > epsilon | x)`, the largest probability that the privacy loss exceeds epsilon. A loss
    that is epsilon but for rounding does not. Post-processing may raise it.

    Args:
        mechanism: (N, M).
        epsilon: in nats.

    Raises:
        PrivacyError: epsilon is negative, NaN or infinite.

    Source: [saeidian2026envelopes, Definition 3].

    Examples:
        >>> response = [[0.75, 0.25], [0.25, 0.75]]
        >>> probabilistic_dp_delta(response, 1.0), probabilistic_dp_delta(response, math.log(3))
        (0.75, 0.0)
    """
    level = nonnegative(epsilon, "epsilon", PrivacyError)
    most = level + level_rounding(level)
    return max(float(((losses > most) @ truth).max()) for truth, _, losses in _against_all(mechanism))


def _against_all(mechanism: MechanismLike) -> Iterator[tuple[FloatArray, FloatArray, FloatArray]]:
    """For each letter the (K,) probabilities of its outcomes, (N, K) those of all letters, and the losses."""
    matrix = as_mechanism(mechanism).matrix
    for row in matrix:
        truth, others = row[row > 0], matrix[:, row > 0]
        yield truth, others, _losses(truth, others)


def _losses(truth: FloatArray, other: FloatArray) -> FloatArray:
    """log(truth / other), without cancellation where both are near."""
    up = log_quotient(np.minimum(truth, other), np.abs(truth - other))
    signed = np.where(truth >= other, up, -up)
    return np.where((truth == 0) & (other == 0), np.nan, signed)


def _row(m: Mechanism, letter: Label) -> FloatArray:
    if letter not in m.inputs:
        raise MechanismError(
            f"the mechanism has no letter {letter!r}; it has {', '.join(map(repr, m.inputs))}"
        )
    return np.asarray(m.matrix[m.inputs.index(letter)])


def _law(levels: FloatArray, masses: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Levels in ascending order with their masses, those that differ by rounding alone made one."""
    order = np.argsort(levels, kind="stable")
    ascending = levels[order]
    starts = [0]
    for place in range(1, len(ascending)):
        last = float(ascending[starts[-1]])
        if ascending[place] > last + (level_rounding(abs(last)) if math.isfinite(last) else 0.0):
            starts.append(place)
    return ascending[starts], np.add.reduceat(masses[order], starts)
