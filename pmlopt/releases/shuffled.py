"""The histogram of what many people release: what it tells of one of them."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator

import numpy as np

from pmlopt.arrays import FloatArray, nonnegative, probability, whole
from pmlopt.errors import PrivacyError
from pmlopt.measures import leakage_level
from pmlopt.mechanism import Mechanism, MechanismLike, as_mechanism, paired
from pmlopt.prior import Prior, PriorLike, as_prior
from pmlopt.releases.means_of_lifts import chernoff_excess, chernoff_tail, mean_near, mean_rarer

MOST_HISTOGRAMS = 20_000
"""Histograms that are listed; with more of them the law of a mean of lifts is convolved on a grid."""
FEW_PEOPLE = 1000
"""Below, the first tilt may be far off, for the tail of the mean is not yet normal: a second one is tried."""
SAME = 1e-12
"""By how much lifts that are made one may differ, relatively; the larger one is kept."""

LEAST_SHARE = 1e-3
"""The share of a local level to which it is found, and of the largest one below which none is tried."""


def shuffled_level(prior: PriorLike, mechanism: MechanismLike, people: int, delta: float) -> float:
    """The level of the histogram of n people's outputs about one of them, with slack delta, in nats.

    The least epsilon with `P(E | X_i = a) <= e^epsilon P(E) + delta` for every letter a and every event E
    of the histogram, where all people are independent with the same prior. Given the histogram h, the
    probability ratio of a letter is the mean of its lifts, `P(h | a) / P(h) = sum_y (h_y / n) P[a,y] / q[y]`,
    so the slack is `E max(0, mean - e^epsilon)`. Post-processing keeps it, as for `ApproximatePML`.

    Few histograms are listed; the law of the mean for many people is convolved on a grid, rounded so that
    the level is never too small.

    Args:
        prior: N letters.
        mechanism: (N, M), the same for all people.
        people: n.
        delta: the slack, in (0, 1).

    Raises:
        PrivacyError: the number of people is none, or delta is not in (0, 1).

    Examples:
        >>> response = [[0.75, 0.25], [0.25, 0.75]]
        >>> round(math.exp(shuffled_level([0.5, 0.5], response, 1, 0.125)), 9)  # 0.75 - e^eps / 2 = 0.125
        1.25
        >>> round(shuffled_level([0.5, 0.5], response, 10_000, 1e-6), 4)
        0.0158
    """
    count, share = whole(people, "the number of people", PrivacyError), probability(delta)
    p, m = paired(prior, mechanism)
    most = leakage_level(p, m)
    found = 1.0
    for values, law in _lifts(p, m):
        if _listed(values, count):
            found = max(found, _level_listed(*_means(values, law, count), share))
        elif chernoff_excess(values, law, count, found) > share:
            t = mean_rarer(values, law, count, share).level(share)
            if count < FEW_PEOPLE:
                t = min(t, mean_near(values, law, count, max(t, 1.0)).level(share))
            found = max(found, t)
    return min(most, math.log(found) + 4 * math.ulp(1.0)) if found > 1 else 0.0


def shuffled_slack(prior: PriorLike, mechanism: MechanismLike, people: int, epsilon: float) -> float:
    """The least delta at which the histogram of n people's outputs has the level epsilon.

    `max_a E max(0, mean of n lifts of a - e^epsilon)`, never too small; see `shuffled_level`.

    Raises:
        PrivacyError: the number of people is none, or epsilon is negative.

    Examples:
        >>> round(shuffled_slack([0.5, 0.5], [[0.75, 0.25], [0.25, 0.75]], 1, 0.0), 12)
        0.25
    """
    count = whole(people, "the number of people", PrivacyError)
    t = math.exp(min(nonnegative(epsilon, "epsilon", PrivacyError), 700.0))
    found = 0.0
    for values, law in _lifts(*paired(prior, mechanism)):
        if _listed(values, count):
            means, masses = _means(values, law, count)
            excess = float(np.maximum(means - t, 0.0) @ masses)
        elif chernoff_excess(values, law, count, t) > found:
            excess = mean_near(values, law, count, t).excess(t)
        else:
            continue
        # the mean of n has no more excess than one of them, by Jensen's inequality
        alone = float(np.maximum(values - t, 0.0) @ law) * (1 + SAME)
        found = max(found, min(excess, alone))
    return found


def shuffled_failure(prior: PriorLike, mechanism: MechanismLike, people: int, epsilon: float) -> float:
    """The probability that the histogram of n people's outputs leaks more than epsilon about one of them.

    The sum over the letters of `P(mean of n lifts > e^epsilon)`, letters with the same lifts once: an upper
    bound on the probability that the PML of the histogram about a person is above epsilon, and at most N
    times as large. Post-processing
    may raise that probability; `shuffled_slack` is what it cannot.

    Raises:
        PrivacyError: the number of people is none, or epsilon is negative.

    Examples:
        >>> response = [[0.75, 0.25], [0.25, 0.75]]
        >>> round(shuffled_failure([0.5, 0.5], response, 2, math.log(1.25)), 12)  # all alike
        0.5
    """
    count = whole(people, "the number of people", PrivacyError)
    t = math.exp(min(nonnegative(epsilon, "epsilon", PrivacyError), 700.0))
    found = []
    for values, law in _lifts(*paired(prior, mechanism)):
        if _listed(values, count):
            means, masses = _means(values, law, count)
            found.append(float(masses[means > t * (1 + SAME)].sum()))
        else:  # a bound by formula where a letter adds next to nothing
            bound = chernoff_tail(values, law, count, t)
            small = bound <= 1e-3 * math.fsum(found)
            found.append(bound if small else mean_near(values, law, count, t).tail(t))
    return min(1.0, math.fsum(found))


def calibrate_shuffled(
    prior: PriorLike,
    build: Callable[[float], MechanismLike],
    people: int,
    epsilon: float,
    delta: float,
    most: float | None = None,
) -> tuple[float, Mechanism]:
    """The largest local level whose mechanism keeps the histogram of n people within (epsilon, delta).

    Found by bisection to a share of 1e-3; the mechanism that is returned was checked by `shuffled_level`.
    Where the level of the histogram does not grow with the local one, it may not be the largest.

    Args:
        prior: N letters.
        build: the mechanism for a local level in nats, such as
            `lambda e: solve(design(prior, PML(e), utility)).mechanism`.
        people: n.
        epsilon: the level of the histogram about one person, in nats.
        delta: its slack, in (0, 1).
        most: the largest local level that is tried; left out, that of the prior, which releases everything.

    Returns:
        The local level and its mechanism.

    Raises:
        PrivacyError: not even the mechanism at a thousandth of `most` is within (epsilon, delta).

    Examples:
        >>> def response(level):  # two letters, even prior
        ...     half = math.exp(level) / 2
        ...     return [[half, 1 - half], [1 - half, half]]
        >>> local, mechanism = calibrate_shuffled([0.5, 0.5], response, 10_000, 0.01, 1e-6)
        >>> round(local, 2), shuffled_level([0.5, 0.5], mechanism, 10_000, 1e-6) <= 0.01
        (0.28, True)
    """
    p, target = as_prior(prior), nonnegative(epsilon, "epsilon", PrivacyError)
    high = p.max_leakage if most is None else nonnegative(most, "the largest local level", PrivacyError)

    def within(level: float) -> Mechanism | None:
        mechanism = as_mechanism(build(level))
        return mechanism if shuffled_level(p, mechanism, people, delta) <= target else None

    everything = within(high)
    if everything is not None:
        return high, everything
    low, best, floor = 0.0, None, LEAST_SHARE * high
    while high - low > LEAST_SHARE * high and (best is not None or high >= floor):
        middle = (low + high) / 2
        mechanism = within(middle)
        if mechanism is None:
            high = middle
        else:
            low, best = middle, mechanism
    if best is None:
        raise PrivacyError(
            f"a local level of {high:.3g} nats still leaves the histogram above ({target:g}, {delta:g}): ask "
            "for more people, a larger epsilon or delta, or a smaller `most`"
        )
    return low, best


def _lifts(p: Prior, m: Mechanism) -> Iterator[tuple[FloatArray, FloatArray]]:
    """For each letter the distinct lifts `P[a,y] / q[y]` and their law; those that vary most first.

    Letters whose lifts differ by rounding alone have the same events, and come once, with the larger lifts.
    """
    columns = m.matrix[:, m.support]
    law = p.pmf @ columns
    lifts, law = columns / law, law / law.sum()
    groups: dict[bytes, FloatArray] = {}
    for row in lifts:
        key = row.round(9).tobytes()
        groups[key] = np.maximum(groups.get(key, row), row)
    for row in sorted(groups.values(), key=lambda row: -float((row - 1) ** 2 @ law)):
        order = np.argsort(row)
        ascending = row[order]
        starts = np.flatnonzero(np.append(True, np.diff(ascending) > SAME * ascending[1:]))
        ends = np.append(starts[1:], len(row)) - 1
        yield ascending[ends], np.add.reduceat(law[order], starts)


def _listed(values: FloatArray, people: int) -> bool:
    """Whether there are few histograms of so many people on these lifts."""
    return math.comb(people + len(values) - 1, len(values) - 1) <= MOST_HISTOGRAMS


def _means(values: FloatArray, law: FloatArray, people: int) -> tuple[FloatArray, FloatArray]:
    """The mean of the lifts of each histogram, and its probability."""
    counts, sums, logs = np.array([people]), np.zeros(1), np.array([math.lgamma(people + 1)])
    factorials = np.array([math.lgamma(k + 1) for k in range(people + 1)])
    for place, (value, mass) in enumerate(zip(values.tolist(), law.tolist(), strict=True)):
        last = place == len(values) - 1
        taken = counts if last else np.concatenate([np.arange(count + 1) for count in counts])
        rows = np.arange(len(counts)) if last else np.repeat(np.arange(len(counts)), counts + 1)
        counts, sums = counts[rows] - taken, sums[rows] + taken * value
        logs = logs[rows] - factorials[taken] + taken * math.log(mass)
    # a logarithm is off by units of the largest of its terms: raised by as much
    largest = 3 * factorials[-1] + people * float(np.abs(np.log(law)).max())
    masses = np.exp(logs + 8 * np.finfo(float).eps * len(values) * largest)
    return sums[masses > 0] / people, masses[masses > 0]


def _level_listed(means: FloatArray, masses: FloatArray, delta: float) -> float:
    """The least t with `sum masses max(0, means - t) <= delta`, for t of at least 0."""
    order = np.argsort(-means, kind="stable")
    mean, above = means[order], np.cumsum(masses[order])
    # with the k largest means above t the sum is `worth_k - t above_k`, and at most that for other t
    worth = np.cumsum(masses[order] * mean)
    enough = worth > delta
    return float(((worth[enough] - delta) / above[enough]).max(initial=0.0))
