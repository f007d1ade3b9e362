"""Leakage with a failure probability or slack: laws, quantiles, events and bounds."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import ArrayLike

from pmlopt.core.numbers.argument_checks import check_all_nonnegative
from pmlopt.core.numbers.arrays import (
    FloatArray,
    check_integer,
    check_nonnegative,
    check_probability,
    copy_float_array,
)
from pmlopt.data.mechanism import MechanismLike, as_mechanism, pair_with_prior
from pmlopt.data.prior import PriorLike
from pmlopt.errors import MechanismError, PrivacyError
from pmlopt.measures.leakage import leakage_level, maximal_leakage, pointwise_leakage
from pmlopt.measures.privacy_losses import compute_max_slack, compute_min_level, merge_levels


def mean_slack(prior: PriorLike, mechanism: MechanismLike, epsilon: float) -> float:
    """Compute the mean slack `psi_1 = E max(0, 1 - e^(eps - l(Y)))` of a mechanism at a level.

    It is below the failure probability; post-processing may raise it.

    Source: [saeidian2026envelopes, Section III, Theorem 1 (i)].

    Examples:
        >>> from fractions import Fraction
        >>> halves = [[0, 0, 0.5, 0.5], [0, 0, 0.5, 0.5], [0, 0.2, 0.4, 0.4], [0.2, 0, 0.4, 0.4]]
        >>> value = mean_slack([0.25] * 4, halves, math.log(10 / 9))
        >>> Fraction(value).limit_denominator(1000)
        Fraction(13, 180)
    """
    level = check_nonnegative(epsilon, "epsilon", PrivacyError)
    p, m = pair_with_prior(prior, mechanism)
    over = np.maximum(pointwise_leakage(p, m)[m.support] - level, 0.0)
    return float((p.pmf @ m.matrix[:, m.support]) @ -np.expm1(-over))


def slack(prior: PriorLike, mechanism: MechanismLike, epsilon: float) -> float:
    """Compute the slack `psi_2 = max_x sum_y max(0, P[x,y] - e^eps q[y])` of a mechanism at a level.

    It is the least delta of `ApproximatePML`. Post-processing cannot raise it; it is no bound on the failure
    probability, nor that on it.

    Source: [saeidian2026envelopes, Section III, Theorem 1 (ii)].

    Examples:
        >>> halves = [[0, 0, 0.5, 0.5], [0, 0, 0.5, 0.5], [0, 0.2, 0.4, 0.4], [0.2, 0, 0.4, 0.4]]
        >>> round(slack([0.25] * 4, halves, math.log(3)), 12)
        0.05
    """
    level = check_nonnegative(epsilon, "epsilon", PrivacyError)
    p, m = pair_with_prior(prior, mechanism)
    # `P[x,y] <= q[y] / p[x]`: no outcome exceeds it, whatever rounding gives
    return 0.0 if level >= p.max_leakage else compute_max_slack(m.matrix, p.pmf @ m.matrix, level)


def approximate_pml_level(prior: PriorLike, mechanism: MechanismLike, delta: float) -> float:
    """Compute the level of a mechanism under `ApproximatePML`: the least epsilon with `slack(epsilon) <=
    delta`.

    `log max_x max_E (P(E | x) - delta) / P(E)`, at least 0; the events are the outcomes in descending order
    of `P[x,y] / q[y]`, as many as are best.

    Args:
        prior: N letters.
        mechanism: (N, M).
        delta: in (0, 1).

    Raises:
        PrivacyError: delta is not in (0, 1).

    Source: [saeidian2026envelopes, Section III], psi_2 by events.

    Examples:
        >>> halves = [[0, 0, 0.5, 0.5], [0, 0, 0.5, 0.5], [0, 0.2, 0.4, 0.4], [0.2, 0, 0.4, 0.4]]
        >>> round(math.exp(approximate_pml_level([0.25] * 4, halves, 0.05)), 12)
        3.0
    """
    probability = check_probability(delta)
    p, m = pair_with_prior(prior, mechanism)
    return compute_min_level(m.matrix, p.pmf @ m.matrix, probability)


def leakage_quantile(
    prior: PriorLike, mechanism: MechanismLike, delta: float, *, upper: bool = False
) -> float:
    """Compute the leakage that an outcome exceeds with probability delta at most, in nats.

    The least t with `P(l(Y) <= t) >= 1 - delta`, so that the mechanism is (t, delta)-probabilistic PML; with
    `upper` the largest t with `P(l(Y) >= t) >= delta`, which is larger where the law of l(Y) has a gap there.
    After the worst post-processing both are `envelope`.

    Args:
        prior: N letters.
        mechanism: (N, M).
        delta: in (0, 1).
        upper: which of the two quantiles.

    Raises:
        PrivacyError: delta is not in (0, 1).

    Source: [saeidian2026envelopes, eqs. (9), (10), Lemma 2 and Section IV].

    Examples:
        >>> halves = [[0, 0, 0.5, 0.5], [0, 0, 0.5, 0.5], [0, 0.2, 0.4, 0.4], [0.2, 0, 0.4, 0.4]]
        >>> low, high = (leakage_quantile([0.25] * 4, halves, 0.1, upper=which) for which in (False, True))
        >>> round(math.exp(low), 12) == round(10 / 9, 12), round(math.exp(high), 12)
        (True, 4.0)
    """
    probability = check_probability(delta)
    p, m = pair_with_prior(prior, mechanism)
    leakages = pointwise_leakage(p, m)[m.support]
    law = (p.pmf @ m.matrix)[m.support]
    return compute_quantile(leakages, law, probability, upper=upper)


def compute_quantile(
    levels: FloatArray, law: FloatArray, probability: float, *, upper: bool
) -> float:
    """Compute the least t exceeded with a probability at most, or with `upper` the largest such t.

    Args:
        levels: (M,) of outcomes, the levels themselves or anything that grows with them.
        law: (M,) their probabilities, in all 1 up to rounding.
        probability: in (0, 1).
        upper: which of the two.

    Examples:
        >>> levels, law = np.array([1.0, 3.0, 2.0]), np.array([0.5, 0.25, 0.25])
        >>> compute_quantile(levels, law, 0.25, upper=False), compute_quantile(levels, law, 0.25, upper=True)
        (2.0, 3.0)
    """
    order = np.argsort(-levels, kind="stable")
    above = np.cumsum(law[order])
    # the masses sum to 1 only up to rounding: the last comparison must succeed
    above[-1] = 1.0
    # up to rounding of the sums, which is a few units in the last place
    if upper:
        enough = above >= probability * (1 - 1e-14)
    else:
        enough = above > min(probability * (1 + 1e-14), math.nextafter(1.0, 0.0))
    return float(levels[order[int(enough.argmax())]])


def event_leakage(prior: PriorLike, mechanism: MechanismLike, event: ArrayLike) -> float:
    """Compute the leakage `log max_x P(E | x) / P(E)` of learning that an event has happened, in nats.

    Args:
        prior: N letters.
        mechanism: (N, M).
        event: (M,) with which probability each outcome is in it: 0 or 1, or between in a generalised event.

    Raises:
        MechanismError: the event is not of M numbers in [0, 1], or never happens.

    Source: [saeidian2026envelopes, Appendix C].

    Examples:
        >>> round(math.exp(event_leakage([0.5, 0.5], [[0.75, 0.25], [0.25, 0.75]], [1, 0])), 12)
        1.5
    """
    p, m = pair_with_prior(prior, mechanism)
    weights = copy_float_array(event, 1, "the event", MechanismError)
    if len(weights) != len(m.outputs) or (weights < 0).any() or (weights > 1).any():
        raise MechanismError(
            f"the event must be {len(m.outputs)} numbers in [0, 1], one for each output"
        )
    shares = m.matrix @ weights
    if not (p.pmf @ shares) > 0:
        raise MechanismError("the event never happens: it holds no output that occurs")
    return max(0.0, float(np.log(shares.max()) - np.log(p.pmf @ shares)))


def binary_envelope(prior: PriorLike, mechanism: MechanismLike, delta: float) -> float:
    """Compute the largest leakage of a (generalised) event of probability delta, in nats.

    A lower bound on `envelope`: post-processing to two outcomes.

    Args:
        prior: N letters.
        mechanism: (N, M).
        delta: in (0, 1).

    Raises:
        PrivacyError: delta is not in (0, 1).

    Source: [saeidian2026envelopes, eq. (13) and Algorithm 1].

    Examples:
        >>> round(math.exp(binary_envelope([0.5, 0.5], [[0.75, 0.25], [0.25, 0.75]], 0.5)), 12)
        1.5
    """
    return event_leakage(prior, mechanism, binary_event(prior, mechanism, delta))


def binary_event(prior: PriorLike, mechanism: MechanismLike, delta: float) -> FloatArray:
    """Compute the (M,) probabilities with which outcomes belong to the event of mass delta that leaks most.

    For each letter the outcomes are taken in descending order of `P[x,y] / q[y]` up to the mass delta, the
    last one in part; the letter with the largest `P(E | x)` decides.

    Raises:
        PrivacyError: delta is not in (0, 1).

    Source: [saeidian2026envelopes, Algorithm 1].

    Examples:
        >>> binary_event([0.5, 0.5], [[0.75, 0.25], [0.25, 0.75]], 0.25)
        array([0.5, 0. ])
    """
    probability = check_probability(delta)
    p, m = pair_with_prior(prior, mechanism)
    columns = m.matrix[:, m.support]
    law = p.pmf @ columns
    order = np.argsort(-columns / law, axis=1, kind="stable")  # of each letter, by `P[x,y] / q[y]`
    shares = np.take_along_axis(columns, order, axis=1)
    masses = law[order]
    # a separate sum: cumsum less the mass loses digits of rare outcomes
    before = np.zeros_like(masses)
    before[:, 1:] = np.cumsum(masses[:, :-1], axis=1)
    # (N, M) a fractional knapsack for each letter: whole outcomes, then one in part, then none
    taken = np.clip(probability - before, 0.0, masses) / masses
    best = int((shares * taken).sum(axis=1).argmax())
    event = np.zeros(len(m.outputs))
    event[np.flatnonzero(m.support)[order[best]]] = taken[best]
    return event


def envelope_bounds(
    prior: PriorLike, mechanism: MechanismLike, delta: float
) -> tuple[float, float]:
    """Compute a lower and an upper bound on the `envelope` without a linear program, in nats.

    Below: no post-processing (`leakage_quantile`) and binary post-processing (`binary_envelope`). Above: the
    level, and the maximal leakage plus `log(1/delta)`.

    Raises:
        PrivacyError: delta is not in (0, 1).

    Source: [saeidian2026envelopes, eq. (14) and Theorem 3].

    Examples:
        >>> low, high = envelope_bounds([0.5, 0.5], [[0.75, 0.25], [0.25, 0.75]], 0.1)
        >>> round(math.exp(low), 12), round(math.exp(high), 12)
        (1.5, 1.5)
    """
    lower = max(
        leakage_quantile(prior, mechanism, delta, upper=True),
        binary_envelope(prior, mechanism, delta),
    )
    p, m = pair_with_prior(prior, mechanism)
    upper = min(leakage_level(p, m), composed_envelope_bound([maximal_leakage(m)], delta))
    # both bounds are rounded, and where they agree the lower one may come out above
    return min(lower, upper), upper


def envelope_slack(size: int, epsilon: float, delta: float, level: float = 0.0) -> float:
    """Compute the slack at which `ApproximatePML(level, slack)` keeps the envelope at delta within epsilon.

    `delta (e^epsilon - e^level) / N`. The outcome of a post-processing that leaks log t through the letter x
    has `t P(z) <= P(z | x) <= e^level P(z) + slack`, and one outcome for each letter suffices: together they
    have at most `N slack / (t - e^level)`, which is below delta for every t above e^epsilon. The condition is
    sufficient only; at 1 or more every mechanism meets it.

    Args:
        size: N, the number of letters.
        epsilon: the leakage that no post-processing may exceed with probability delta, in nats.
        delta: the probability, in (0, 1).
        level: of the approximate PML, in nats, below epsilon.

    Raises:
        PrivacyError: delta is not in (0, 1), a level is negative, or `level` is not below epsilon.

    Examples:
        >>> round(envelope_slack(4, math.log(3), 0.5, math.log(2)), 12)
        0.125
    """
    check_integer(size, "the number of letters", PrivacyError)
    target = check_nonnegative(epsilon, "epsilon", PrivacyError)
    low = check_nonnegative(level, "the level", PrivacyError)
    if low >= target:
        raise PrivacyError(
            f"the level {low:g} is not below epsilon, {target:g}: there is no room for a slack"
        )
    with np.errstate(over="ignore"):  # inf is 1 or more
        # `e^epsilon - e^level` cancels where the two levels are near
        return float(check_probability(delta) * np.exp(low) * np.expm1(target - low) / size)


def composed_envelope_bound(leakages: ArrayLike, delta: float) -> float:
    """Compute the composition bound `sum_i L_i + log(1/delta)` on the envelope of mechanisms, in nats.

    Args:
        leakages: (n,) the maximal leakage of each; where a mechanism depends on earlier outputs, the largest
            over them, with the letters that they leave (`conditional_maximal_leakage`).
        delta: in (0, 1).

    Source: [saeidian2026envelopes, Section IV-A].

    Examples:
        >>> round(math.exp(composed_envelope_bound([math.log(1.5), math.log(2)], 0.5)), 12)
        6.0
    """
    values = copy_float_array(np.atleast_1d(leakages), 1, "the leakages", PrivacyError)
    check_all_nonnegative(values, "the maximal leakages", PrivacyError)
    return float(values.sum()) - math.log(check_probability(delta))


def conditional_maximal_leakage(first: MechanismLike, second: ArrayLike) -> float:
    """Compute the largest maximal leakage of a second mechanism over the outputs of a first, in nats.

    Args:
        first: (N, M).
        second: (M, N, K) the second mechanism for each output of the first.

    Raises:
        MechanismError: shapes disagree, or a matrix is no mechanism.

    Source: [saeidian2026envelopes, Section IV-A]; [issa2020operational, Theorem 6].

    Examples:
        >>> conditional_maximal_leakage(np.eye(2), [np.eye(2), np.eye(2)])  # the first has told all
        0.0
    """
    m = as_mechanism(first)
    rest = copy_float_array(second, 3, "the second mechanisms", MechanismError)
    if rest.shape[:2] != m.matrix.T.shape:
        raise MechanismError(
            f"the second mechanisms have shape {rest.shape}; give {m.matrix.T.shape} and their outputs"
        )
    return max(
        maximal_leakage(as_mechanism(rest[y]).matrix[m.matrix[:, y] > 0])
        for y in np.flatnonzero(m.support)
    )


def counted_envelope_bound(outputs: int, delta: float) -> float:
    """Compute the bound `log(M / delta)` on the envelope of any computation with M outputs, in nats.

    Source: [saeidian2026envelopes, Section VII].

    Examples:
        >>> round(math.exp(counted_envelope_bound(4, 0.5)), 12)
        8.0
    """
    return math.log(check_integer(outputs, "the number of outputs", PrivacyError)) - math.log(
        check_probability(delta)
    )


def leakage_law(prior: PriorLike, mechanism: MechanismLike) -> tuple[FloatArray, FloatArray]:
    """Compute the distribution of the pointwise maximal leakage l(Y).

    Args:
        prior: N letters.
        mechanism: (N, M).

    Returns:
        (K,) the leakages that occur in ascending order, in nats, and (K,) their probabilities. Leakages that
        differ by rounding only are one.

    Source: [saeidian2026envelopes, Section II-C].

    Examples:
        >>> halves = [[0, 0, 0.5, 0.5], [0, 0, 0.5, 0.5], [0, 0.2, 0.4, 0.4], [0.2, 0, 0.4, 0.4]]
        >>> leakages, masses = leakage_law([0.25] * 4, halves)
        >>> np.exp(leakages).round(9), masses.round(9)
        (array([1.11111111, 4.        ]), array([0.9, 0.1]))
    """
    p, m = pair_with_prior(prior, mechanism)
    return merge_levels(pointwise_leakage(p, m)[m.support], (p.pmf @ m.matrix)[m.support])
