"""The shuffle model: what the histogram of many people's outputs reveals about one person."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np

from pmlopt.core.numbers.arrays import (
    FloatArray,
    check_integer,
    check_nonnegative,
    check_probability,
)
from pmlopt.core.numbers.roots import bisect
from pmlopt.data.mechanism import Mechanism, MechanismLike, as_mechanism, pair_with_prior
from pmlopt.data.prior import Prior, PriorLike, as_prior
from pmlopt.errors import PrivacyError
from pmlopt.measures import leakage_level

GRID_LENGTH = 2**18
"""Points of the transform: 30 ms, and a step of 1/10,000 of the sum's standard deviation."""
WINDOW_DEVIATIONS = 12.0
"""Standard deviations of the tilted sum on each side of the window; a normal law has 1e-33 outside."""
TILT_RTOL = 1e-9
"""Steps by which a value on the grid may be off it, and by which all are raised: rounding is 1e-10."""
UNIT_ROUNDOFF = 2.0**-53


@dataclass(frozen=True)
class MeanOfLifts:
    """An upper bound on the law of a mean, on an equidistant grid.

    Attributes:
        first: the smallest point.
        step: between two points.
        tails: (L,) a bound on the probability of a mean of a grid point or more.
        excesses: (L,) a bound on `E max(0, mean - t)` at the points t.
        above: a bound on the mass above the last point.
        largest: the largest value of a term; no mean is above it.
        moved: by how much the grid moves each term at most, 0 where all values are on it.
        people: n.
    """

    first: float
    step: float
    tails: FloatArray
    excesses: FloatArray
    above: float
    largest: float
    moved: float
    people: int

    def min_level(self, delta: float) -> float:
        """Compute an upper bound on the least t with `E max(0, mean - t) <= delta`."""
        # the excess falls with t, so the first point that meets delta is the least
        held = np.flatnonzero(self.excesses <= delta)
        if not held.size:
            return self.largest
        place = float(held[0])
        if place:  # between two points the excess of a law on the grid is linear
            before, after = self.excesses[held[0] - 1 : held[0] + 1].tolist()
            place -= (delta - after) / (before - after) * (1 - 1e-9) if before < math.inf else 0.0
        return min(self.first + place * self.step, self.largest)

    def bound_excess(self, t: float) -> float:
        """Bound `E max(0, mean - t)` from above."""
        # the excess is convex in t, so the chord between two points is an upper bound
        low, part = divmod((t - self.first) / self.step, 1.0)
        if not 0 <= low < len(self.excesses) - 1:
            return max(self.largest - t, 0.0)
        before, after = self.excesses[int(low) : int(low) + 2].tolist()
        return float((1 - part) * before + part * after)

    def bound_tail(self, t: float) -> float:
        """Bound `P(mean > t)` from above, with a Hoeffding term for the grid's rounding."""
        best = 1.0
        for digits in (
            (0.0, 2.0, 5.0, 10.0, 20.0, 40.0, 80.0, 160.0, 320.0) if self.moved else (math.inf,)
        ):
            allowed = (
                0.0 if math.isinf(digits) else self.moved * math.sqrt(digits / (2 * self.people))
            )
            place = math.floor((t - allowed - self.first) / self.step)
            if 0 <= place < len(self.tails):
                best = min(best, float(self.tails[place]) + self.above + math.exp(-digits))
        return best


def compute_mean_near(values: FloatArray, law: FloatArray, people: int, t: float) -> MeanOfLifts:
    """Compute an upper bound on the mean's law near a value t."""
    return _compute_mean(
        values, law, people, _find_tilt(values, lambda s: _tilted_mean(values, law, s) >= t)
    )


def compute_mean_near_tail(
    values: FloatArray, law: FloatArray, people: int, delta: float
) -> MeanOfLifts:
    """Compute an upper bound on the mean's law near its delta-quantile."""
    # the tail of a mean is about its Chernoff bound over sqrt(n): the tilt aims at that exponent
    rare = -math.log(min(0.5, delta * math.sqrt(people)))

    def is_rarer(s: float) -> bool:
        return people * (s * _tilted_mean(values, law, s) - _log_moment(values, law, s)) >= rare

    return _compute_mean(values, law, people, _find_tilt(values, is_rarer))


def bound_chernoff_tail(values: FloatArray, law: FloatArray, people: int, t: float) -> float:
    """Compute Chernoff's bound on `P(mean > t)`."""
    if t >= values.max():
        return 0.0
    return min(
        1.0,
        *(
            math.exp(exponent)
            for _, exponent in _compute_chernoff_exponents(values, law, people, t)
        ),
    )


def bound_chernoff_excess(values: FloatArray, law: FloatArray, people: int, t: float) -> float:
    """Compute a Chernoff-type bound on `E max(0, mean - t)`.

    For `max(0, x) <= e^(u x - 1) / u` with u = n s.
    """
    if t >= values.max():
        return 0.0
    exponents = _compute_chernoff_exponents(values, law, people, t)
    return min(math.exp(exponent - 1) / (people * s) for s, exponent in exponents)


def _compute_chernoff_exponents(
    values: FloatArray, law: FloatArray, people: int, t: float
) -> list[tuple[float, float]]:
    """Compute the Chernoff exponents of several tilts, with an allowance for rounding."""
    # the Chernoff exponent is least where the tilted mean is t
    best = _find_tilt(values, lambda s: _tilted_mean(values, law, s) >= t)
    found = []
    for s in (0.9 * best, best, 1.1 * best):
        rounding = _bound_exponent_rounding(people, s, float(values.max()))
        found.append((s, min(700.0, people * (_log_moment(values, law, s) - s * t) + rounding)))
    return found


def _find_tilt(values: FloatArray, enough: Callable[[float], bool]) -> float:
    """Find the tilt at which a condition begins to hold, by doubling and bisection."""
    spread = float(values.max() - values.min()) or 1.0
    # a tilt has the unit of 1 / values: relative to the spread the range fits any mechanism
    low = 1e-9 / spread
    high = 40.0 / spread
    if not enough(high):
        return high
    return math.exp(bisect(lambda log: enough(math.exp(log)), math.log(low), math.log(high), 1e-15))


def _log_moment(values: FloatArray, law: FloatArray, s: float) -> float:
    # the largest exponent is taken out: the sum neither overflows nor vanishes
    """Compute the log moment generating function log E e^(s V)."""
    peak = float(values.max())
    return s * peak + math.log(float(law @ np.exp(s * (values - peak))))


def _tilted_mean(values: FloatArray, law: FloatArray, s: float) -> float:
    # the common factor cancels in the quotient, and no exponential overflows
    """Compute the mean of the exponentially tilted law."""
    weights = law * np.exp(s * (values - values.max()))
    return float(weights @ values / weights.sum())


def _compute_mean(values: FloatArray, law: FloatArray, people: int, s: float) -> MeanOfLifts:
    """Compute an upper bound on the law of a mean of n draws, by a tilted FFT convolution."""
    low = float(values.min())
    high = float(values.max())
    # all lifts are equal: the mean is constant, and a grid of no width would divide by 0
    if high == low:
        return MeanOfLifts(low, 1.0, np.ones(1), np.zeros(1), 0.0, high, 0.0, people)
    # the window follows the tilted law: there the rare tail is typical and keeps its digits
    center = _tilted_mean(values, law, s)
    weights = law * np.exp(s * (values - high))
    deviation = math.sqrt(people * float(weights @ (values - center) ** 2 / weights.sum()))
    width = 2 * (WINDOW_DEVIATIONS * deviation + 40 * (high - low))
    steps = max(1, math.floor((high - low) * GRID_LENGTH / width), (GRID_LENGTH - 1) // people)
    steps = min(steps, GRID_LENGTH - 1)
    step = (high - low) / steps
    places, masses, moves = _project_to_grid((values - low) / step, law, steps)
    points = low + places * step
    log_moment = _log_moment(points, masses, s)
    tilted = masses * np.exp(s * points - log_moment)
    sums, rounding = _convolve(places, tilted, people)
    # the places of the window: all of them, or those around the center
    whole = people * steps < GRID_LENGTH
    start = 0 if whole else min(
        max(0, round(people * (center - low) / step) - GRID_LENGTH // 2), people * steps - GRID_LENGTH + 1
    )  # fmt: skip
    count = people * steps + 1 if whole else GRID_LENGTH
    window = start + np.arange(count)
    # the transform is cyclic: sums come modulo its length, and rounding can make them negative
    mass = np.maximum(sums[window % GRID_LENGTH], 0.0) + rounding
    total = people * low + window * step
    # an exponent is off by units for each person
    slack = _bound_exponent_rounding(people, s, high)
    with np.errstate(over="ignore"):
        mass *= np.exp(people * log_moment - s * total + slack)
        # summed from the far end: small masses first, so that they are not lost in large ones
        tails = np.cumsum(mass[::-1])[::-1]
        beyond = np.cumsum(tails[:0:-1])[::-1]
        after = np.append(beyond, 0.0) * (step / people)
    last = float(total[-1])
    above = 0.0
    if start + count <= people * steps:
        above = bound_chernoff_tail(points, masses, people, last / people)
    grown = 1 + 4 * UNIT_ROUNDOFF * count  # the sums' own rounding
    first = low + start * step / people + TILT_RTOL * step
    moved = step if moves else 0.0
    excesses = after * grown + above * high
    return MeanOfLifts(first, step / people, tails * grown, excesses, above, high, moved, people)


def _project_to_grid(
    places: FloatArray, law: FloatArray, steps: int
) -> tuple[FloatArray, FloatArray, bool]:
    """Project a law to integer grid points with preserved mean."""
    # values meant to be on the grid are off it by rounding only, and must not be split in two
    near = np.rint(places)
    on = np.abs(places - near) < TILT_RTOL / 2
    floor = np.where(on, near, np.floor(places))
    part = np.where(on, 0.0, places - floor)
    at = np.concatenate([floor, floor + 1]).astype(np.int64)
    # a split that keeps the mean is a convex order: the excess can only grow, by Jensen
    masses = np.concatenate([law * (1 - part), law * part])
    occurs = masses > 0
    found, where = np.unique(at[occurs], return_inverse=True)
    weights = np.bincount(where, masses[occurs]).astype(float)
    return np.minimum(found, steps).astype(float), weights, not bool(on.all())


def _convolve(places: FloatArray, law: FloatArray, people: int) -> tuple[FloatArray, float]:
    """Compute the cyclic n-fold convolution by FFT, with a bound on its rounding error.

    A transform is off by some units times log2(LENGTH) in the Euclidean norm, and a power multiplies that
    by the number of people.
    """
    line = np.bincount(places.astype(np.int64), law, GRID_LENGTH)
    transform = np.fft.rfft(line)
    # the power in polar form: repeated products would gather an error for each person
    size = np.abs(transform)
    power_size = np.exp(people * np.log(np.maximum(size, 1e-300)))
    power = power_size * np.exp(1j * people * np.angle(transform))
    units = 8 * UNIT_ROUNDOFF * math.log2(GRID_LENGTH)
    off = units * math.sqrt(GRID_LENGTH) * float(np.linalg.norm(law))
    spread = float(np.mean(np.minimum(size + off, 1.0) ** (people - 1)))
    first = off * people * spread
    turned = 8 * UNIT_ROUNDOFF * people * spread  # of the angle, times the number of people
    sums = np.fft.irfft(power, GRID_LENGTH)
    return sums, 2 * (first + turned + units * float(np.linalg.norm(sums)))


def _bound_exponent_rounding(people: int, s: float, high: float) -> float:
    """Bound the rounding error of the Chernoff exponent `n log E e^(s V) - s n t`."""
    return 64 * UNIT_ROUNDOFF * people * (1 + 2 * s * high)


MAX_HISTOGRAMS = 20_000
"""Histograms that are listed; with more of them the law of a mean of lifts is convolved on a grid."""
LIFT_RTOL = 1e-12
"""By how much lifts that are made one may differ, relatively; the larger one is kept."""


def shuffled_level(prior: PriorLike, mechanism: MechanismLike, people: int, delta: float) -> float:
    """Compute the leakage level of n people's histogram about one of them, with slack delta, in nats.

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
    count = check_integer(people, "the number of people", PrivacyError)
    share = check_probability(delta)
    p, m = pair_with_prior(prior, mechanism)
    # the level of one output bounds that of the histogram, which is post-processing of all
    most = leakage_level(p, m)
    found = 0.0  # e^level - 1
    for values, law in _find_lift_laws(p, m):
        if _is_listable(values, count):
            found = max(found, _compute_listed_level(*_list_means(values, law, count), share))
        elif bound_chernoff_excess(values, law, count, 1 + found) > share:
            t = compute_mean_near_tail(values, law, count, share).min_level(share)
            # Below, the first tilt may be far off, for the tail of the mean is not yet normal: a second one
            # is tried.
            if count < 1000:
                t = min(t, compute_mean_near(values, law, count, max(t, 1.0)).min_level(share))
            found = max(found, round_up(t) - 1)
    return min(round_up(most), round_up(math.log1p(found)))


def shuffled_slack(
    prior: PriorLike, mechanism: MechanismLike, people: int, epsilon: float
) -> float:
    """Compute the least slack delta at which n people's histogram has the level epsilon.

    `max_a E max(0, mean of n lifts of a - e^epsilon)`, never too small; see `shuffled_level`.

    Raises:
        PrivacyError: the number of people is none, or epsilon is negative.

    Examples:
        >>> round(shuffled_slack([0.5, 0.5], [[0.75, 0.25], [0.25, 0.75]], 1, 0.0), 12)
        0.25
    """
    count = check_integer(people, "the number of people", PrivacyError)
    level = min(check_nonnegative(epsilon, "epsilon", PrivacyError), 700.0)
    t = round_down(math.exp(level))
    over = round_down(math.expm1(level))
    found = 0.0
    for values, law in _find_lift_laws(*pair_with_prior(prior, mechanism)):
        if _is_listable(values, count):
            means, masses = _list_means(values, law, count)
            excess = round_up(float(np.maximum(means - 1 - over, 0.0) @ masses), len(means))
        elif bound_chernoff_excess(values, law, count, t) > found:
            excess = compute_mean_near(values, law, count, t).bound_excess(t)
        else:
            continue
        # the mean of n has no more excess than one of them, by Jensen's inequality
        alone = round_up(float(np.maximum(values - 1 - over, 0.0) @ law), len(values))
        found = max(found, min(excess, alone))
    return found


def shuffled_failure(
    prior: PriorLike, mechanism: MechanismLike, people: int, epsilon: float
) -> float:
    """Compute the probability that n people's histogram leaks more than epsilon about one of them.

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
    count = check_integer(people, "the number of people", PrivacyError)
    t = math.exp(min(check_nonnegative(epsilon, "epsilon", PrivacyError), 700.0))
    found = []
    for values, law in _find_lift_laws(*pair_with_prior(prior, mechanism)):
        if _is_listable(values, count):
            means, masses = _list_means(values, law, count)
            found.append(float(masses[means > t * (1 + LIFT_RTOL)].sum()))
        else:  # a bound by formula where a letter adds almost nothing
            bound = bound_chernoff_tail(values, law, count, t)
            small = bound <= 1e-3 * math.fsum(found)
            found.append(bound if small else compute_mean_near(values, law, count, t).bound_tail(t))
    return min(1.0, math.fsum(found))


def calibrate_shuffled(
    prior: PriorLike,
    build: Callable[[float], MechanismLike],
    people: int,
    epsilon: float,
    delta: float,
    most: float | None = None,
) -> tuple[float, Mechanism]:
    """Find the largest local level for which n people's histogram is within (epsilon, delta).

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
    # The share of a local level to which it is found, and of the largest one below which none is tried.
    least_share = 1e-3
    p = as_prior(prior)
    target = check_nonnegative(epsilon, "epsilon", PrivacyError)
    high = p.max_leakage
    if most is not None:
        high = check_nonnegative(most, "the largest local level", PrivacyError)

    made: dict[float, Mechanism] = {}

    def is_within(level: float) -> bool:
        made[level] = as_mechanism(build(level))
        return shuffled_level(p, made[level], people, delta) <= target

    if is_within(high):
        return high, made[high]
    low = least_share * high
    if not is_within(low):
        raise PrivacyError(
            f"a local level of {low:.3g} nats still leaves the histogram above ({target:g}, {delta:g}): ask "
            "for more people, a larger epsilon or delta, or a smaller `most`"
        )
    while high - low > least_share * high:
        middle = (low + high) / 2
        low, high = (middle, high) if is_within(middle) else (low, middle)
    return low, made[low]


def _find_lift_laws(p: Prior, m: Mechanism) -> Iterator[tuple[FloatArray, FloatArray]]:
    """Compute each letter's distinct lifts `P[a,y] / q[y]` with their law.

    Letters whose lifts differ by rounding only have the same events, and come once, with the larger lifts.
    Lifts and probabilities are raised by what rounding may have taken off them and off means of them; an
    output that all letters are as likely to have has the lift 1.
    """
    columns = m.matrix[:, m.support]
    law = p.pmf @ columns
    share = 1 + bound_relative_rounding(sum(columns.shape))
    lifts = np.where(np.ptp(columns, axis=0) == 0, 1.0, columns / law * share)
    law = law / law.sum() * share
    groups: dict[bytes, FloatArray] = {}
    for row in lifts:
        key = row.round(9).tobytes()
        groups[key] = np.maximum(groups.get(key, row), row)
    for row in sorted(groups.values(), key=lambda row: -float((row - 1) ** 2 @ law)):
        order = np.argsort(row)
        ascending = row[order]
        starts = np.flatnonzero(np.append(True, np.diff(ascending) > LIFT_RTOL * ascending[1:]))
        ends = np.append(starts[1:], len(row)) - 1
        yield ascending[ends], np.add.reduceat(law[order], starts)


def _is_listable(values: FloatArray, people: int) -> bool:
    """Return whether the histograms of so many people are few enough to enumerate."""
    return math.comb(people + len(values) - 1, len(values) - 1) <= MAX_HISTOGRAMS


def _list_means(values: FloatArray, law: FloatArray, people: int) -> tuple[FloatArray, FloatArray]:
    """Enumerate the mean lift of each histogram, with its probability."""
    counts = np.array([people])
    sums = np.zeros(1)
    logs = np.array([math.lgamma(people + 1)])
    factorials = np.array([math.lgamma(k + 1) for k in range(people + 1)])
    for place, (value, mass) in enumerate(zip(values.tolist(), law.tolist(), strict=True)):
        rows = np.arange(len(counts))
        taken = counts
        if place < len(values) - 1:
            rows = np.repeat(rows, counts + 1)
            taken = np.concatenate([np.arange(count + 1) for count in counts])
        counts = counts[rows] - taken
        sums = sums[rows] + taken * value
        logs = logs[rows] - factorials[taken] + taken * math.log(mass)
    # a logarithm is off by units of the largest of its terms: raised by as much
    largest = 3 * factorials[-1] + people * float(np.abs(np.log(law)).max())
    masses = np.exp(logs + 8 * np.finfo(float).eps * len(values) * largest)
    return sums[masses > 0] / people, masses[masses > 0]


def _compute_listed_level(means: FloatArray, masses: FloatArray, delta: float) -> float:
    """Compute the least u with `sum masses max(0, means - 1 - u) <= delta`, rounded up."""
    order = np.argsort(-means, kind="stable")
    # with the k largest means above 1 + u the sum is `worth_k - u above_k`, and at most that for other u
    weights = masses[order].astype(np.longdouble)
    terms = weights * (means[order] - 1)
    worth = np.cumsum(terms)
    above = np.cumsum(weights)
    sizes = np.cumsum(np.abs(terms)) + delta
    rounding = (len(means) + 4) * np.finfo(np.longdouble).eps * sizes
    levels = (worth - delta + rounding) / above
    return round_up(float(levels.max(initial=0.0)))


def bound_relative_rounding(terms: int) -> float:
    """Return the relative rounding error bound of a number of float operations."""
    return (terms + 8) * 2 * UNIT_ROUNDOFF


def round_up(number: float, terms: int = 0) -> float:
    """Round a nonnegative number up by the error of a number of float operations."""
    return number * (1 + bound_relative_rounding(terms))


def round_down(number: float) -> float:
    """Round a nonnegative number down by one unit in the last place."""
    return number * (1 - bound_relative_rounding(0))
