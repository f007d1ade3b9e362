"""The tail and the excess of a mean of many independent lifts, by convolution on a grid, from above.

For V_1, ..., V_n independent with one law, the excess is `E max(0, mean - t)` and the tail `P(mean > t)`.
Both are bounds from above whatever is rounded:

- Each value is put on the grid by moving its mass to the two neighbours so that the mean stays. That raises
  the expectation of every convex function of the sum, so the excess; the tail is corrected by Hoeffding's
  inequality for what the sum moves by.
- The law is tilted by `e^(s v)` so that t is in its middle, and the excess keeps its digits however small.
- The sum is taken modulo the length of the transform. What wraps around only adds; what is above the window
  is bounded by Chernoff's inequality; and the rounding of the transform is added to each mass.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from pmlopt.arrays import FloatArray

LENGTH = 2**18
"""Points of the transform: 30 ms, and a step of 1/10,000 of the sum's standard deviation."""
DEVIATIONS = 12.0
"""Standard deviations of the tilted sum on each side of the window; a normal law has 1e-33 outside."""
NEAR = 1e-9
"""Steps by which a value on the grid may be off it, and by which all are raised: rounding is 1e-10."""
UNIT = 2.0**-53


@dataclass(frozen=True)
class MeanOfLifts:
    """The law of a mean at equally spaced points, from above.

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

    def level(self, delta: float) -> float:
        """The least t of the window with `E max(0, mean - t) <= delta`, or more."""
        held = np.flatnonzero(self.excesses <= delta)
        if not held.size:
            return self.largest
        place = float(held[0])
        if place:  # between two points the excess of a law on the grid is linear
            before, after = self.excesses[held[0] - 1 : held[0] + 1].tolist()
            place -= (delta - after) / (before - after) * (1 - 1e-9) if before < math.inf else 0.0
        return min(self.first + place * self.step, self.largest)

    def excess(self, t: float) -> float:
        """`E max(0, mean - t)`, or more."""
        if t >= self.largest:
            return 0.0
        place = (t - self.first) / self.step
        if place < 0:  # the excess falls with slope -1 or less steeply
            return min(self.largest - t, float(self.excesses[0]) + self.first - t)
        low = min(int(place), len(self.excesses) - 1)
        if low == len(self.excesses) - 1:
            return min(float(self.excesses[-1]), self.largest - t)
        part = place - low
        return float((1 - part) * self.excesses[low] + part * self.excesses[low + 1])

    def tail(self, t: float) -> float:
        """`P(mean > t)`, or more: `P(mean' > t - d) + e^(-2 n d^2 / h^2)` for the mean on the grid."""
        if t >= self.largest:
            return 0.0
        best = 1.0
        for digits in (0.0, 2.0, 5.0, 10.0, 20.0, 40.0, 80.0, 160.0, 320.0) if self.moved else (math.inf,):
            allowed = 0.0 if math.isinf(digits) else self.moved * math.sqrt(digits / (2 * self.people))
            place = math.floor((t - allowed - self.first) / self.step)
            if 0 <= place < len(self.tails):
                best = min(best, float(self.tails[place]) + self.above + math.exp(-digits))
        return best


def mean_near(values: FloatArray, law: FloatArray, people: int, t: float) -> MeanOfLifts:
    """The law of the mean around t, which is above the mean of one term."""
    return _mean(values, law, people, _tilt(values, lambda s: _slope(values, law, s) >= t))


def mean_rarer(values: FloatArray, law: FloatArray, people: int, delta: float) -> MeanOfLifts:
    """The law of the mean around where its tail is near delta."""
    rare = -math.log(min(0.5, delta * math.sqrt(people)))

    def rarer(s: float) -> bool:
        return people * (s * _slope(values, law, s) - _log_moment(values, law, s)) >= rare

    return _mean(values, law, people, _tilt(values, rarer))


def chernoff_tail(values: FloatArray, law: FloatArray, people: int, t: float) -> float:
    """A bound on `P(mean > t)` without a convolution: `e^(n (log E e^(s V) - s t))` by tilts s."""
    if t >= values.max():
        return 0.0
    return min(1.0, *(math.exp(exponent) for _, exponent in _chernoff_exponents(values, law, people, t)))


def chernoff_excess(values: FloatArray, law: FloatArray, people: int, t: float) -> float:
    """A bound on `E max(0, mean - t)` without a convolution, `e^(n (log E e^(s V) - s t) - 1) / (n s)`.

    For `max(0, x) <= e^(u x - 1) / u` with u = n s.
    """
    if t >= values.max():
        return 0.0
    exponents = _chernoff_exponents(values, law, people, t)
    return min(math.exp(exponent - 1) / (people * s) for s, exponent in exponents)


def _chernoff_exponents(
    values: FloatArray, law: FloatArray, people: int, t: float
) -> list[tuple[float, float]]:
    """Tilts s around that of t, each with `n (log E e^(s V) - s t)`, raised by what rounding takes."""
    best = _tilt(values, lambda s: _slope(values, law, s) >= t)
    found = []
    for s in (0.9 * best, best, 1.1 * best):
        rounding = _exponent_rounding(people, s, float(values.max()))
        found.append((s, min(700.0, people * (_log_moment(values, law, s) - s * t) + rounding)))
    return found


def _tilt(values: FloatArray, enough: Callable[[float], bool]) -> float:
    """A tilt at which a condition begins to hold; any tilt gives a bound, this one a tight one."""
    spread = float(values.max() - values.min()) or 1.0
    low, high = 1e-9 / spread, 40.0 / spread
    if not enough(high):
        return high
    for _ in range(60):
        middle = math.sqrt(low * high)
        low, high = (low, middle) if enough(middle) else (middle, high)
    return high


def _log_moment(values: FloatArray, law: FloatArray, s: float) -> float:
    peak = float(values.max())
    return s * peak + math.log(float(law @ np.exp(s * (values - peak))))


def _slope(values: FloatArray, law: FloatArray, s: float) -> float:
    weights = law * np.exp(s * (values - values.max()))
    return float(weights @ values / weights.sum())


def _mean(values: FloatArray, law: FloatArray, people: int, s: float) -> MeanOfLifts:
    low, high = float(values.min()), float(values.max())
    if high == low:
        return MeanOfLifts(low, 1.0, np.ones(1), np.zeros(1), 0.0, high, 0.0, people)
    center = _slope(values, law, s)
    weights = law * np.exp(s * (values - high))
    deviation = math.sqrt(people * float(weights @ (values - center) ** 2 / weights.sum()))
    width = 2 * (DEVIATIONS * deviation + 40 * (high - low))
    steps = max(1, math.floor((high - low) * LENGTH / width), (LENGTH - 1) // people)
    steps = min(steps, LENGTH - 1)
    step = (high - low) / steps
    places, masses, moves = _on_grid((values - low) / step, law, steps)
    points = low + places * step
    log_moment = _log_moment(points, masses, s)
    tilted = masses * np.exp(s * points - log_moment)
    sums, rounding = _convolved(places, tilted, people)
    # the places of the window: all of them, or those around the center
    whole = people * steps < LENGTH
    start = 0 if whole else min(
        max(0, round(people * (center - low) / step) - LENGTH // 2), people * steps - LENGTH + 1
    )  # fmt: skip
    count = people * steps + 1 if whole else LENGTH
    window = start + np.arange(count)
    mass = np.maximum(sums[window % LENGTH], 0.0) + rounding
    total = people * low + window * step
    # an exponent is off by units for each person
    slack = _exponent_rounding(people, s, high)
    with np.errstate(over="ignore"):
        mass *= np.exp(people * log_moment - s * total + slack)
        tails = np.cumsum(mass[::-1])[::-1]
        after = np.append(np.cumsum(tails[:0:-1])[::-1], 0.0) * (step / people)
    last = float(total[-1])
    above = 0.0 if start + count > people * steps else chernoff_tail(points, masses, people, last / people)
    grown = 1 + 4 * UNIT * count  # the sums' own rounding
    return MeanOfLifts(
        low + start * step / people + NEAR * step,
        step / people,
        tails * grown,
        after * grown + above * high,
        above,
        high,
        step if moves else 0.0,
        people,
    )


def _on_grid(places: FloatArray, law: FloatArray, steps: int) -> tuple[FloatArray, FloatArray, bool]:
    """The law on whole places, each value's mass on its two neighbours with the same mean; if any moved."""
    near = np.rint(places)
    on = np.abs(places - near) < NEAR / 2
    floor = np.where(on, near, np.floor(places))
    part = np.where(on, 0.0, places - floor)
    at = np.concatenate([floor, floor + 1]).astype(np.int64)
    masses = np.concatenate([law * (1 - part), law * part])
    found, where = np.unique(at[masses > 0], return_inverse=True)
    weights = np.bincount(where, masses[masses > 0]).astype(float)
    return np.minimum(found, steps).astype(float), weights, not bool(on.all())


def _convolved(places: FloatArray, law: FloatArray, people: int) -> tuple[FloatArray, float]:
    """(LENGTH,) the law of the sum of places modulo LENGTH, and a bound on how far an entry is off.

    A transform is off by some units times log2(LENGTH) in the Euclidean norm, and a power multiplies that
    by the number of people.
    """
    line = np.bincount(places.astype(np.int64), law, LENGTH)
    transform = np.fft.rfft(line)
    size = np.abs(transform)
    power = np.exp(people * np.log(np.maximum(size, 1e-300))) * np.exp(1j * people * np.angle(transform))
    units = 8 * UNIT * math.log2(LENGTH)
    off = units * math.sqrt(LENGTH) * float(np.linalg.norm(law))
    spread = float(np.mean(np.minimum(size + off, 1.0) ** (people - 1)))
    first = off * people * spread
    turned = 8 * UNIT * people * spread  # of the angle, times the number of people
    sums = np.fft.irfft(power, LENGTH)
    return sums, 2 * (first + turned + units * float(np.linalg.norm(sums)))


def _exponent_rounding(people: int, s: float, high: float) -> float:
    """What rounding takes off `n log E e^(s V) - s n t`: some units of the largest term for each person."""
    return 64 * UNIT * people * (1 + 2 * s * high)
