"""Searches for the least number at which a monotone condition holds.

A claim rests on a condition that was checked at the number returned, never on where a root should be.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction

import numpy as np

from pmlopt.core.numbers.arrays import BoolArray, FloatArray


def step_up_until(holds: Callable[[float], bool], start: float) -> float:
    """Find a number from `start` on at which a condition holds, by doubling ulp steps.

    Args:
        holds: the condition.
        start: at least 0; near 0 the unit is that of 1e-16.

    Examples:
        >>> step_up_until(lambda x: x >= 1 + 4e-16, 1.0) == 1 + 3 * math.ulp(1.0)
        True
    """
    # the unit of a number near 0 is so small that doubling would take a thousand steps
    found = start
    step = math.ulp(max(start, 1e-16))
    while found < math.inf and not holds(found):
        found = found + step
        step = 2 * step
    return found


def find_min_holding(holds: Callable[[float], bool], start: float) -> float:
    """Find the least float from `start` on at which a monotone condition holds, up to a few ulp.

    It steps by 1, 2, 4, ... units in the last place until the condition holds, and halves the last step.

    Args:
        holds: once true, true for every larger float (where it is not, the answer still holds).
        start: a float; returned where the condition holds there.

    Returns:
        A float at which the condition was checked; inf where it holds nowhere below.

    Examples:
        >>> find_min_holding(lambda x: x * x >= 2, math.sqrt(2) - 4e-16) == math.sqrt(2)
        True
    """
    fails = start
    found = start
    step = math.ulp(start)
    while found < math.inf and not holds(found):
        fails = found
        found = found + step
        step = 2 * step
    return bisect(holds, fails, found, 0.0) if found < math.inf else found


def bisect_intervals(
    above: Callable[[FloatArray], BoolArray], low: FloatArray, high: FloatArray, halvings: int = 60
) -> tuple[FloatArray, FloatArray]:
    """Bisect many intervals (K,) for monotone conditions.

    Args:
        above: whether the number that is looked for is above each of K numbers.
        low: (K,).
        high: (K,).
        halvings: of each interval.

    Examples:
        >>> low, high = bisect_intervals(
        ...     lambda x: x * x < np.array([2.0, 9.0]), np.zeros(2), np.array([4.0, 4.0])
        ... )
        >>> low.round(9).tolist()
        [1.414213562, 3.0]
    """
    for _ in range(halvings):
        middle = (low + high) / 2
        more = above(middle)
        low = np.where(more, middle, low)
        high = np.where(more, high, middle)
    return low, high


def find_crossings(
    rises: Callable[[FloatArray], FloatArray],
    low: FloatArray,
    high: FloatArray,
    are_found: Callable[[FloatArray, FloatArray, FloatArray], bool],
    points: int = 16,
) -> FloatArray | None:
    """Find where (M,) functions that rise cross 0; None where a few dozen steps do not suffice.

    Intervals are divided by several points at once, then by secants, of which an end that stays counts half.

    Args:
        rises: from (K, M) numbers, K for each function, to their values.
        low: (M,) where they are below 0, or their least arguments.
        high: (M,) where they are above 0, or their largest arguments.
        are_found: of values at numbers and the ends around these, whether the numbers are near enough.
        points: K of the first divisions.

    Examples:
        >>> def are_found(value, low, high):
        ...     return bool((np.abs(value) < 1e-12).all())
        >>> ends = np.zeros(2), np.full(2, 4.0)
        >>> find_crossings(lambda x: x * x - np.array([2.0, 9.0]), *ends, are_found).round(9).tolist()
        [1.414213562, 3.0]
    """
    places = np.arange(len(low))
    shares = np.linspace(0, 1, points + 2)[:, None]
    at_low = np.full(len(low), -np.inf)
    at_high = np.full(len(low), np.inf)
    # to 1/256 of the interval, from where on secants are nearly straight
    for _ in range(math.ceil(math.log(256) / math.log(points + 1))):
        grid = low + shares * (high - low)
        values = np.vstack([at_low, rises(grid[1:-1]), at_high])
        first = (values[1:-1] < 0).sum(axis=0)
        low = grid[first, places]
        high = grid[first + 1, places]
        at_low = values[first, places]
        at_high = values[first + 1, places]
    last = np.zeros(len(low), dtype=int)
    for step in range(40):
        with np.errstate(divide="ignore", invalid="ignore"):
            share = at_low / (at_low - at_high)
        # every fourth step halves: secants of steep functions hardly move
        known = np.isfinite(share) & (step % 4 < 3)
        number = low + np.where(known, np.clip(share, 0.0, 1.0), 0.5) * (high - low)
        value = rises(number[None])[0]
        if are_found(value, low, high):
            return number
        below = value < 0
        at_low = np.where(below, value, np.where(last > 0, 0.5, 1.0) * at_low)
        at_high = np.where(below, np.where(last < 0, 0.5, 1.0) * at_high, value)
        low = np.where(below, number, low)
        high = np.where(below, high, number)
        last = np.where(below, -1, 1)
    return None


def find_least_share(holds: Callable[[float], bool]) -> float:
    """Find the least number in (0, 1] at which a monotone condition holds, up to 2^-60; 1 is assumed to.

    Examples:
        >>> round(find_least_share(lambda share: share * share >= 0.25), 12)
        0.5
    """
    fails, found = 0.0, 1.0
    for _ in range(60):
        middle = (fails + found) / 2
        fails, found = (fails, middle) if holds(middle) else (middle, found)
    return found


def find_near_share(holds: Callable[[Fraction], bool], fails: Fraction) -> Fraction:
    """Find a number of at most 1 at which a monotone condition holds, not far above the least one.

    It is above that by an eighth of what the least one is above the start, or by 2^-50. Where that is little,
    few evaluations find it. At 1 the condition is assumed to hold.

    Args:
        holds: the condition.
        fails: the start, at which it does not hold.

    Examples:
        >>> round(float(find_near_share(lambda share: share >= Fraction(1, 10**9), Fraction(0))), 12)
        1.019e-09
    """
    start = fails
    step = Fraction(1, 1 << 50)
    found = start + step
    while found < 1 and not holds(found):
        fails = found
        step = 4 * step
        found = start + step
    found = min(found, Fraction(1))
    while found - fails > (found - start) / 9 and step > Fraction(1, 1 << 50):
        middle = (fails + found) / 2
        fails, found = (fails, middle) if holds(middle) else (middle, found)
    return found


def find_min_integer(holds: Callable[[int], bool], most: int) -> int | None:
    """Find the least positive integer at which a monotone condition holds; None above a limit.

    Examples:
        >>> find_min_integer(lambda n: n * n > 1000, 10**6), find_min_integer(lambda n: False, 10**6)
        (32, None)
    """
    fails, found = 0, 1
    while not holds(found):
        fails = found
        found = 2 * found
        if found > most:
            return None
    while found - fails > 1:
        middle = (fails + found) // 2
        fails, found = (fails, middle) if holds(middle) else (middle, found)
    return found


def bisect(holds: Callable[[float], bool], fails: float, found: float, width: float) -> float:
    """Bisect between a number at which a condition fails and one at which it holds.

    Args:
        holds: the condition.
        fails: a number where it does not hold.
        found: a larger one where it does.
        width: relative; 0 for neighbouring floats.

    Returns:
        A number at which it holds, at most `width` (relative) above one at which it does not.

    Examples:
        >>> round(bisect(lambda x: x * x >= 2, 1.0, 2.0, 1e-12), 9)
        1.414213562
    """
    while found - fails > width * abs(found):
        # not (fails + found) / 2, of which the sum may overflow
        middle = fails + (found - fails) / 2
        # neighbouring floats: the middle rounds to an end, and the loop would not end
        if not fails < middle < found:
            break
        fails, found = (fails, middle) if holds(middle) else (middle, found)
    return found
