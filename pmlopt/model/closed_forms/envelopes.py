"""The PML envelope of randomized response by formula for every prior, and the bounds of the literature."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from pmlopt.core.numbers.arrays import FloatArray, check_nonnegative, check_probability
from pmlopt.data.prior import PriorLike, as_prior
from pmlopt.errors import PrivacyError


def randomized_response_envelope(prior: PriorLike, epsilon: float, delta: float) -> float:
    """Compute the exact PML envelope of k-ary randomized response at delta, in nats.

    With `alpha = e^eps / (e^eps + k - 1)`, `beta = 1 / (e^eps + k - 1)`, the law q of the output in ascending
    order, N the least number of outputs whose mass is delta or more, and theta the share of the N-th that
    delta takes:

    `log max(alpha / q_N, max_{n < N} min(alpha / q_n, (n alpha + (N - 1 - n + theta) beta) / delta))`.

    n = 1 is the binary envelope and n = N - 1 the bound of [saeidian2026envelopes, Theorem 5], which is the
    largest under its condition: so its conjecture holds. The formula needs no condition. docs/results.md has
    the proof.

    Args:
        prior: k letters, at least two.
        epsilon: the LDP level of the mechanism, in nats.
        delta: in (0, 1).

    Raises:
        PrivacyError: the prior has one letter, epsilon is negative, or delta is not in (0, 1).

    Examples:
        >>> round(math.exp(randomized_response_envelope([0.25] * 4, math.log(3), 0.5)), 12)
        2.0
    """
    case = _make_case(prior, epsilon, delta)
    count = np.arange(1, case.number)
    spread = (count * case.alpha + (case.number - 1 - count + case.theta) * case.beta) / case.delta
    best = np.minimum(case.alpha / case.law[: case.number - 1], spread)
    return math.log(max(case.alpha / case.law[case.number - 1], best.max(initial=0.0)))


def randomized_response_lower_bound(prior: PriorLike, epsilon: float, delta: float) -> float:
    """Compute the lower bound h_delta(theta) on the envelope of randomized response, in nats.

    Post-processing that splits the N-th output over the rarer ones reaches it: `log(alpha / q_{N-1})` up to
    theta_1, `log(((N-1) alpha + theta beta) / delta)` up to theta_2, then `log(alpha / q_N)`; and
    `log(alpha / q_1)` for delta up to q_1. It equals the envelope where `randomized_response_condition` holds
    and is at most the envelope elsewhere. docs/results.md has the proof.

    Args:
        prior: k letters, at least two.
        epsilon: the LDP level of the mechanism, in nats.
        delta: in (0, 1).

    Source: [saeidian2026envelopes, Theorem 5 (i) and (iii)].

    Examples:
        >>> value = randomized_response_lower_bound([0.2, 0.3, 0.5], 1.0, 0.4)
        >>> abs(value - randomized_response_envelope([0.2, 0.3, 0.5], 1.0, 0.4)) < 1e-12
        True
    """
    case = _make_case(prior, epsilon, delta)
    last = case.number - 1
    if last == 0:
        return math.log(case.alpha / case.law[0])
    # between theta_1 and theta_2
    spread = (last * case.alpha + case.theta * case.beta) / case.delta
    return math.log(max(case.alpha / case.law[last], min(case.alpha / case.law[last - 1], spread)))


def randomized_response_thresholds(
    prior: PriorLike, epsilon: float, delta: float
) -> tuple[float, float]:
    """Compute the breakpoints theta_1 and theta_2 of `randomized_response_lower_bound`.

    `alpha ((N-2) q_{N-1} - sum_{j<N-1} q_j) / (alpha q_N - beta q_{N-1})` and
    `alpha ((N-1) q_N - sum_{j<N} q_j) / (q_N (alpha - beta))`.

    Raises:
        PrivacyError: delta is at most q_1, where there is nothing to split, or epsilon is 0.

    Source: [saeidian2026envelopes, Theorem 5 (iii)].

    Examples:
        >>> thresholds = randomized_response_thresholds([0.2, 0.3, 0.5], math.log(2), 0.7)
        >>> [round(value, 12) for value in thresholds] == [round(2 / 17, 12), round(2 / 3, 12)]
        True
    """
    case = _make_case(prior, epsilon, delta)
    if case.number == 1 or case.alpha == case.beta:
        raise PrivacyError("there are no thresholds where delta is at most q_1, or epsilon is 0")
    n = case.number
    q = case.law
    alpha = case.alpha
    beta = case.beta
    first = alpha * ((n - 2) * q[n - 2] - q[: n - 2].sum()) / (alpha * q[n - 1] - beta * q[n - 2])
    second = alpha * ((n - 1) * q[n - 1] - q[: n - 1].sum()) / (q[n - 1] * (alpha - beta))
    return float(first), float(second)


def randomized_response_condition(prior: PriorLike, epsilon: float, delta: float) -> bool:
    """Return whether the prior meets the condition under which `randomized_response_lower_bound` was
    published.

    `p_N <= (alpha sum_{j<N} p_j + beta) / ((N - 2) alpha + beta)`; true where delta is at most q_1, where
    there is no condition.

    Source: [saeidian2026envelopes, Theorem 5 (iii)].

    Examples:
        >>> randomized_response_condition([0.2, 0.3, 0.5], 1.0, 0.7)
        True
    """
    case = _make_case(prior, epsilon, delta)
    if case.number == 1:
        return True
    p = np.sort(as_prior(prior).pmf)
    max_mass = case.alpha * p[: case.number - 1].sum() + case.beta
    return bool(p[case.number - 1] * ((case.number - 2) * case.alpha + case.beta) <= max_mass)


def randomized_response_upper_bound(prior: PriorLike, epsilon: float, delta: float) -> float:
    """Compute the upper bound on the envelope of randomized response from maximal leakage and the PML level,
    in nats.

    `min(log(k alpha / delta), log(alpha / q_1))`.

    Source: [saeidian2026envelopes, Theorem 5 (ii)].

    Examples:
        >>> round(math.exp(randomized_response_upper_bound([0.5, 0.5], math.log(3), 0.9)), 12)
        1.5
    """
    case = _make_case(prior, epsilon, delta)
    return math.log(min(len(case.law) * case.alpha / case.delta, case.alpha / case.law[0]))


def randomized_response_adp(size: int, epsilon: float, delta: float) -> float:
    """Compute the level of randomized response in approximate local differential privacy with slack delta, in
    nats.

    `max(log((alpha - delta) / beta), 0)`.

    Here delta is a slack and no probability of failure: neither curve bounds the other.

    Source: [saeidian2026envelopes, Section V-B]; [balle2020profiles, Theorem 2].

    Examples:
        >>> randomized_response_adp(4, 1.0, 0.9)
        0.0
    """
    case = _make_case(np.full(size, 1 / size), epsilon, delta)
    if case.alpha - case.delta <= case.beta:
        return 0.0
    return check_nonnegative(epsilon, "epsilon", PrivacyError) + math.log1p(
        -case.delta / case.alpha
    )


@dataclass(frozen=True, eq=False)
class _ResponseCase:
    """Randomized response with the quantities of [saeidian2026envelopes, Theorem 5].

    Attributes:
        alpha, beta: the entries on and off the diagonal.
        law: q, in ascending order.
        number: N, the least number of outputs whose mass is delta or more.
        theta: the share of the N-th output that delta takes.
        delta: the probability of failure.
    """

    alpha: float
    beta: float
    law: FloatArray
    number: int
    theta: float
    delta: float


def _make_case(prior: PriorLike, epsilon: float, delta: float) -> _ResponseCase:
    """Validate the arguments, and build the case of [saeidian2026envelopes, Theorem 5]."""
    p = as_prior(prior)
    level = check_nonnegative(epsilon, "epsilon", PrivacyError)
    probability = check_probability(delta)
    if p.size < 2:
        raise PrivacyError("randomized response needs at least two letters")
    down = math.exp(-level)
    alpha = 1 / (1 + (p.size - 1) * down)
    beta = down / (1 + (p.size - 1) * down)
    law = beta + (alpha - beta) * np.sort(p.pmf)
    before = np.concatenate([[0.0], np.cumsum(law)])
    number = min(int(np.searchsorted(before[1:], probability * (1 - 1e-15))) + 1, p.size)
    theta = min(1.0, (probability - before[number - 1]) / law[number - 1])
    return _ResponseCase(alpha, beta, law, number, float(theta), probability)
