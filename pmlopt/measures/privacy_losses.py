"""Privacy loss of letter pairs, its law, and (epsilon, delta) differential privacy.

It is about the channel: any two letters are neighbours.
"""

from __future__ import annotations

import math
from collections.abc import Iterator

import numpy as np

from pmlopt.core.numbers.arrays import FloatArray, Label, check_nonnegative, check_probability
from pmlopt.data.mechanism import Mechanism, MechanismLike, as_mechanism
from pmlopt.errors import MechanismError, PrivacyError
from pmlopt.measures.leakage import bound_level_rounding, log_quotient


def privacy_loss(mechanism: MechanismLike, first: Label, second: Label) -> FloatArray:
    """Compute the privacy loss `L(y) = log(P[x,y] / P[x',y])` of each outcome for two letters, in nats.

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
    return _compute_losses(_get_row(m, first), _get_row(m, second))


def privacy_loss_law(
    mechanism: MechanismLike, first: Label, second: Label
) -> tuple[FloatArray, FloatArray]:
    """Compute the law of the privacy loss for two letters, where the first is the true one.

    Args:
        mechanism: (N, M).
        first: x, by its label; Y has the law P[x,.].
        second: x'.

    Returns:
        (K,) the losses that occur in ascending order, in nats, the last one perhaps inf, and (K,) their
        probabilities. Losses that differ by rounding only are one.

    Raises:
        MechanismError: the mechanism has no such letter.

    Source: [saeidian2026envelopes, Section II-B].

    Examples:
        >>> losses, masses = privacy_loss_law([[0.5, 0.25, 0.25], [0.25, 0.125, 0.625]], 0, 1)
        >>> np.exp(losses).round(12), masses
        (array([0.4, 2. ]), array([0.25, 0.75]))
    """
    m = as_mechanism(mechanism)
    truth = _get_row(m, first)
    occurring = truth > 0
    return merge_levels(_compute_losses(truth, _get_row(m, second))[occurring], truth[occurring])


def approximate_dp_delta(mechanism: MechanismLike, epsilon: float) -> float:
    """Compute the least delta at which a mechanism is (epsilon, delta)-differentially private: its privacy
    profile.

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
    matrix = as_mechanism(mechanism).matrix
    return compute_max_slack(matrix, matrix, check_nonnegative(epsilon, "epsilon", PrivacyError))


def approximate_dp_level(mechanism: MechanismLike, delta: float) -> float:
    """Compute the least epsilon at which a mechanism is (epsilon, delta)-differentially private, in nats.

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
    probability = check_probability(delta)
    matrix = as_mechanism(mechanism).matrix
    return compute_min_level(matrix, matrix, probability)


def probabilistic_dp_delta(mechanism: MechanismLike, epsilon: float) -> float:
    """Compute the least delta of (epsilon, delta)-probabilistic differential privacy of a mechanism.

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
    level = check_nonnegative(epsilon, "epsilon", PrivacyError)
    # a loss that equals epsilon must not count as a failure by a rounded logarithm
    max_level = level + bound_level_rounding(level)
    matrix = as_mechanism(mechanism).matrix
    return max(
        float(((losses > max_level) * matrix).sum(axis=1).max())
        for _, losses in _pair_with_losses(matrix, matrix)
    )


def compute_max_slack(matrix: FloatArray, others: FloatArray, level: float) -> float:
    """Compute the largest hockey-stick divergence `sum_y max(0, P[x,y] - e^level o[y])`."""
    return max(
        float((matrix * -np.expm1(-np.maximum(losses - level, 0.0))).sum(axis=1).max())
        for _, losses in _pair_with_losses(matrix, others)
    )


def compute_min_level(matrix: FloatArray, others: FloatArray, delta: float) -> float:
    """Compute the least nonnegative level at which the hockey-stick divergence is `delta`.

    It is found by the events of the largest losses, and rounded up at its own size; where the laws are not
    rows of the matrix they are means of these, rounded.
    """
    best = -1.0  # e^level - 1
    for law, losses in _pair_with_losses(matrix, others):
        order = np.argsort(-losses, axis=1, kind="stable")
        truth = np.take_along_axis(matrix, order, axis=1)
        other = law[order]
        # (N, M) probabilities of the events of the first k outcomes, given the letter and under the law
        masses = np.cumsum(truth.astype(np.longdouble), axis=1)
        below = np.cumsum(other.astype(np.longdouble), axis=1)
        # an event of more than delta that the other law excludes: no finite level suffices
        if (masses[below == 0] > delta).any():
            return math.inf
        over = np.cumsum(truth.astype(np.longdouble) - other, axis=1) - delta
        rounding = (matrix.shape[1] + 4) * np.finfo(np.longdouble).eps * (masses + below + delta)
        # only where rounding may decide the sign is the sum repeated with one rounding
        close = np.abs(over) <= rounding
        over += rounding
        for x, last in np.argwhere(close).tolist():  # a sum that is rounded once has the right sign
            terms = (*truth[x, : last + 1].tolist(), *(-other[x, : last + 1]).tolist(), -delta)
            over[x, last] = math.fsum(terms)
        best = max(best, float((over[below > 0] / below[below > 0]).max(initial=-1.0)))
    off = float(np.finfo(float).eps)
    best += 8 * off * abs(best) + (
        0.0 if others is matrix else (len(matrix) + 4) * off * (1 + best)
    )
    # best is `e^level - 1`: log1p keeps the digits of levels near 0
    return math.log1p(best) * (1 + 4 * off) if best > 0 else 0.0


def _pair_with_losses(
    matrix: FloatArray, others: FloatArray
) -> Iterator[tuple[FloatArray, FloatArray]]:
    """Yield output laws with the (N, M) log-ratios to them."""
    for law in np.atleast_2d(others):
        yield law, np.where(matrix > 0, _compute_losses(matrix, law), -np.inf)


def _compute_losses(truth: FloatArray, other: FloatArray) -> FloatArray:
    """Compute log(truth / other) without cancellation."""
    up = log_quotient(np.minimum(truth, other), np.abs(truth - other))
    # the quotient is formed over the smaller one, for which log_quotient is made
    signed = np.where(truth >= other, up, -up)
    return np.where((truth == 0) & (other == 0), np.nan, signed)


def _get_row(m: Mechanism, letter: Label) -> FloatArray:
    """Look up the matrix row of a letter."""
    if letter not in m.inputs:
        raise MechanismError(
            f"the mechanism has no letter {letter!r}; it has {', '.join(map(repr, m.inputs))}"
        )
    return np.asarray(m.matrix[m.inputs.index(letter)])


def merge_levels(levels: FloatArray, masses: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Sort levels with their masses, merging those equal up to rounding."""
    order = np.argsort(levels, kind="stable")
    ascending = levels[order]
    # compared with the first of its group, so that a chain of near levels cannot grow into one
    starts = [0]
    for place in range(1, len(ascending)):
        last = float(ascending[starts[-1]])
        if ascending[place] > last + (
            bound_level_rounding(abs(last)) if math.isfinite(last) else 0.0
        ):
            starts.append(place)
    return ascending[starts], np.add.reduceat(masses[order], starts)
