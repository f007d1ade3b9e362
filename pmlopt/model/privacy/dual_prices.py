"""Dual multipliers of norm constraints of finite order, computed without cancellation."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np

from pmlopt.core.numbers.arrays import FloatArray
from pmlopt.core.numbers.roots import find_crossings
from pmlopt.measures.orders import order_surplus
from pmlopt.model.privacy.requirement import Witness, check_certificate_array

GOLDEN, SECTIONS = (math.sqrt(5) - 1) / 2, 70
"""Of the interval in which a least value is searched: to 1e-15 of it."""

MAX_LOG_TOP_DISTANCE = 40.0
"""Logarithm of how many times as large as their differences prices may be; beta times that near order 1."""

MAX_TOP_ENTRY = 1e300
"""The largest price."""

CHORDS, FEW_SECTIONS = 10, 25
"""By which the least value that a law proves is searched, and sections for the tops at each of them."""


def minimize_by_golden_sections(
    value: Callable[[FloatArray], FloatArray],
    low: FloatArray,
    high: FloatArray,
    sections: int = SECTIONS,
) -> tuple[FloatArray, FloatArray]:
    """Minimise (M,) unimodal functions on intervals by golden-section search."""
    one = high - GOLDEN * (high - low)
    two = low + GOLDEN * (high - low)
    at_one = value(one)
    at_two = value(two)
    for _ in range(sections):
        left = at_one < at_two
        low = np.where(left, low, one)
        high = np.where(left, two, high)
        new = np.where(left, high - GOLDEN * (high - low), low + GOLDEN * (high - low))
        at_new = value(new)
        one, two = np.where(left, new, two), np.where(left, one, new)
        at_one, at_two = np.where(left, at_new, at_two), np.where(left, at_one, at_new)
    return np.where(at_one < at_two, one, two), np.minimum(at_one, at_two)


def minimize_on_grids(
    value: Callable[[FloatArray], FloatArray], low: FloatArray, high: FloatArray, points: int
) -> tuple[FloatArray, FloatArray]:
    """Minimise (M,) unimodal functions on intervals by finer and finer grids, to 1e-15 of the interval.

    The functions take the K M points of a whole grid at once, K for the first function, then the second: they
    are called less often than by golden sections, which pays off where a call costs more than its numbers.
    """
    shares = np.linspace(0.0, 1.0, points)
    places = np.arange(len(low))
    for _ in range(math.ceil(SECTIONS * math.log(GOLDEN) / math.log(2 / (points - 1)))):
        grid = low[:, None] + shares * (high - low)[:, None]
        values = value(grid.ravel()).reshape(grid.shape)
        best = values.argmin(axis=1)
        low = grid[places, np.maximum(best - 1, 0)]
        high = grid[places, np.minimum(best + 1, points - 1)]
    return grid[places, best], values[places, best]


def center_prices(law: FloatArray, prices: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Subtract from (N, M) multipliers their (M,) means under a law; return both."""
    mean = (law * prices).sum(axis=0)
    return prices - mean, mean


def compute_costs(
    law: FloatArray, prices: FloatArray, tops: FloatArray, beta: float, room: float
) -> FloatArray:
    """Compute the (M,) dual costs `K |h| - c` of multipliers `h = max(c + e, 0)` in the norm of order beta.

    As e has mean 0, `|h|^beta` is `c^beta` times the mean of one and terms that are at least 0: nothing is
    rounded in units of c, which may be far above e. That is the bound of a threshold `t = m - c` on gains
    `m + e`, less m.

    Args:
        law: (N, 1) or (N, M), that sums to one up to rounding.
        prices: (N, M) e, of mean 0 under the law.
        tops: (M,) c.
        beta: above 1.
        room: the logarithm of K.
    """
    with np.errstate(over="ignore", divide="ignore", invalid="ignore"):
        heights = np.maximum(prices + tops, 0.0)
        peaks = heights.max(axis=0)
        scale = np.where(peaks > 0, peaks, 1.0)
        near = (
            math.exp(room) * scale * ((law * (heights / scale) ** beta).sum(axis=0)) ** (1 / beta)
            - tops
        )
        c = np.where(tops > 0, tops, 1.0)
        d = prices / c
        inside = np.maximum(d, -1.0)
        terms = (beta - 1) * order_surplus(inside, beta) + beta * (inside - d)
        moved = (law * terms).sum(axis=0)
        tall = np.log1p(inside.max(axis=0))
        shares = np.exp(beta * (np.log1p(inside) - tall))
        far = tall + np.log((law * shares).sum(axis=0)) / beta
        length = np.where(moved < 1, np.log1p(np.minimum(moved, 1.0)) / beta, far)
        distant = c * np.expm1(room + length)
    return np.where(peaks > 0, np.where(tops > 0, distant, near), -tops)


def compute_net_prices(
    law: FloatArray, prices: FloatArray, tops: FloatArray, beta: float, room: float
) -> FloatArray:
    """Compute (N, M) `h - K |h|` of multipliers `h = max(c + e, 0)`; see `compute_costs`."""
    return np.maximum(prices, -tops) - compute_costs(law, prices, tops, beta, room)


def log_mean_power(law: FloatArray, differences: FloatArray, order: float) -> FloatArray:
    """Compute the logarithm of the mean of `max(1 + d, 0)^order` of differences d with mean 0 under a law."""
    inside = np.maximum(differences, -1.0)
    logs = np.log1p(inside)
    tall = logs.max(axis=0)
    far = order * tall + np.log((law * np.exp(order * (logs - tall))).sum(axis=0))
    # one and what is added to it, where all differences are small: else its terms would cancel
    near = np.abs(differences).max(axis=0) < 0.1
    if not near.any():
        return np.asarray(far)
    terms = order * (inside - differences)
    if order != 1:
        terms += (order - 1) * order_surplus(inside, order)
    moved = (law * terms).sum(axis=0)
    near &= np.abs(moved) < 0.5
    return np.where(near, np.log1p(np.where(near, moved, 0.0)), far)


def compute_log_slopes(
    law: FloatArray, prices: FloatArray, tops: FloatArray, beta: float, room: float
) -> FloatArray:
    """Compute the logarithm of one plus the derivative of `compute_costs` in the tops, which rises.

    With `h = max(c + e, 0)` it is `log K + log E h^(beta-1) - (beta - 1) / beta log E h^beta`: 0 at the top
    with the least cost.

    Args:
        law: (N, 1) or (N, M), that sums to one up to rounding.
        prices: (N, M) e, of mean 0 under the law.
        tops: (K, M) c.
        beta: above 1.
        room: the logarithm of K.
    """
    own = law[:, None, :]
    e = prices[:, None, :]
    distant = tops > 0
    found = np.full(tops.shape, -np.inf)
    with np.errstate(over="ignore", divide="ignore", invalid="ignore"):
        if not distant.all():
            heights = np.maximum(e + tops, 0.0)
            peaks = heights.max(axis=0)
            logs = np.log(heights / np.where(peaks > 0, peaks, 1.0))
            one = np.log((own * np.exp((beta - 1) * logs)).sum(axis=0))
            two = np.log((own * np.exp(beta * logs)).sum(axis=0))
            found = np.where(peaks > 0, one - (beta - 1) / beta * two, -np.inf)
        if distant.any():
            d = e / np.where(distant, tops, 1.0)
            one = log_mean_power(own, d, beta - 1)
            two = log_mean_power(own, d, beta)
            found = np.where(distant, one - (beta - 1) / beta * two, found)
    return room + found


MIN_SLOPE_ORDER, MAX_SLOPE_ORDER, MIN_SLOPE_ROOM = 1.1, 1e3, 1e-9
"""Orders of the norm for which slopes are looked at, and the least logarithm of K.

Below the orders costs have edges, at which slopes jump; above them, and without room, slopes lose digits.
"""


def find_best_offsets(
    law: FloatArray, prices: FloatArray, beta: float, room: float, sections: int = SECTIONS
) -> tuple[FloatArray, FloatArray]:
    """Minimise `compute_costs`, convex in the (M,) offsets c; return offsets and costs.

    Arguments are as in `compute_costs`, of whose prices the mean is 0.
    """
    if MIN_SLOPE_ORDER <= beta <= MAX_SLOPE_ORDER and room >= MIN_SLOPE_ROOM:
        found = _find_flat_tops(law, prices, beta, room)
        if found is not None:
            return found
    return _compare_tops(law, prices, beta, room, sections)


def _find_flat_tops(
    law: FloatArray, prices: FloatArray, beta: float, room: float
) -> tuple[FloatArray, FloatArray] | None:
    """Find the tops where costs are flat, and the costs there; None where that is not certain.

    Numbers below 0 stand for tops below 0, numbers above 0 for others, each by logarithms.
    """
    high = prices.max(axis=0)
    spread = np.maximum((law * np.abs(prices)).sum(axis=0), 1e-300)
    widest = np.maximum(np.abs(prices).max(axis=0), spread)
    low, top = _get_log_ends(spread, widest, beta)
    # minus the logarithm of how near a top is to the highest price, as a share of it
    nearest = 36.0

    def place(numbers: FloatArray) -> FloatArray:
        near = high * np.expm1(nearest * np.minimum(numbers, 0.0))
        far = np.exp(low + np.maximum(numbers, 0.0) * (top - low))
        return np.where(numbers < 0, near, np.minimum(far, MAX_TOP_ENTRY))

    def are_found(slope: FloatArray, low: FloatArray, high: FloatArray) -> bool:
        # costs are convex: within an interval they are above the least by at most this
        with np.errstate(over="ignore", invalid="ignore"):
            above = np.abs(np.expm1(slope)) * (place(high) - place(low))
        return bool((above <= 1e-16 * widest).all())

    numbers = find_crossings(
        lambda numbers: compute_log_slopes(law, prices, place(numbers), beta, room),
        np.full(len(high), -1.0),
        np.ones(len(high)),
        are_found,
        # so that at most 100,000 prices are looked at together
        int(np.clip(100_000 // prices.size, 1, 16)),
    )
    if numbers is None:
        return None
    tops = place(numbers)
    costs = compute_costs(law, prices, tops, beta, room)
    if not np.isfinite(costs).all():
        return None
    # slopes may have lost digits: then costs nearby are less
    for near in (-1e-4, 1e-4):
        moved = tops + near * (tops + high)
        around = compute_costs(law, prices, moved, beta, room)
        if (around < costs - 1e-15 * (widest + np.abs(costs))).any():
            return None
    return np.where(high <= costs, -high, tops), np.minimum(high, costs)


def _get_log_ends(
    spread: FloatArray, widest: FloatArray, beta: float
) -> tuple[FloatArray, FloatArray]:
    """Return the logarithms of the least and the largest top above 0 that is looked at."""
    most = MAX_LOG_TOP_DISTANCE + math.log(beta)
    return np.log(spread) - MAX_LOG_TOP_DISTANCE, np.log(widest) + most


def _compare_tops(
    law: FloatArray, prices: FloatArray, beta: float, room: float, sections: int
) -> tuple[FloatArray, FloatArray]:
    """Find the best tops by values only; see `find_best_offsets`."""
    high = prices.max(axis=0)
    spread = np.maximum((law * np.abs(prices)).sum(axis=0), 1e-300)
    widest = np.maximum(np.abs(prices).max(axis=0), spread)

    def evaluate_at(tops: FloatArray) -> FloatArray:
        return compute_costs(law, prices, tops, beta, room)

    def evaluate_far(logs: FloatArray) -> FloatArray:
        return np.minimum(np.exp(logs), MAX_TOP_ENTRY)

    def evaluate_near(logs: FloatArray) -> FloatArray:
        return np.asarray(high * np.expm1(logs))

    logs, at_far = minimize_by_golden_sections(
        lambda logs: evaluate_at(evaluate_far(logs)), *_get_log_ends(spread, widest, beta), sections
    )
    best = evaluate_far(logs)
    least = at_far
    near_ends = np.full(len(high), -MAX_LOG_TOP_DISTANCE), np.zeros(len(high))
    logs, at_near = minimize_by_golden_sections(
        lambda logs: evaluate_at(evaluate_near(logs)), *near_ends, sections
    )
    for tops, values in ((evaluate_near(logs), at_near), (-high, high)):
        best = np.where(values <= least, tops, best)
        least = np.minimum(values, least)
    return best, least


def center_with_best_offsets(
    law: FloatArray, prices: FloatArray, beta: float, room: float
) -> tuple[FloatArray, FloatArray]:
    """Center multipliers, and compute the optimal offsets of these."""
    own, _ = center_prices(law, prices)
    return own, find_best_offsets(law, own, beta, room)[0]


def find_best_prices(
    p: FloatArray, gains: FloatArray, laws: FloatArray, beta: float, room: float
) -> tuple[FloatArray, FloatArray]:
    """Find centred multipliers and offsets with the best dual bound, for one law per output.

    For a column v within the bound for Q, `<p (g - s), v>` is at most 0 where the support function of
    `p (g - s) / Q` under Q is; letters without mass in Q have at most s.

    Args:
        p: (N,) the prior of the gains.
        gains: (N, M).
        laws: (N, M) Q.
        beta: above 1.
        room: the logarithm of the largest norm.
    """
    inside = laws > 0
    weights = np.where(inside, p[:, None] / np.where(inside, laws, 1.0), 0.0)
    high = gains.max(axis=0)
    low = np.maximum(p @ gains, np.where(inside, -np.inf, gains).max(axis=0))

    def evaluate_own(values: FloatArray) -> tuple[FloatArray, FloatArray]:
        return center_prices(laws, weights * np.where(inside, gains - values, 0.0))

    def evaluate_over(values: FloatArray) -> FloatArray:
        prices, mean = evaluate_own(values)
        return mean + find_best_offsets(laws, prices, beta, room, FEW_SECTIONS)[1]

    at_low = evaluate_over(low)
    at_high = np.zeros(len(high))
    # the support function is convex in s, and falls: a chord ends where it is met
    for step in range(CHORDS):
        fraction = np.where(at_low > 0, at_low / np.where(at_low > 0, at_low - at_high, 1.0), 0.0)
        middle = low + (fraction if step % 2 == 0 else 0.5 * fraction) * (high - low)
        at_middle = evaluate_over(middle)
        within = at_middle <= 0
        low = np.where(within, low, middle)
        high = np.where(within, middle, high)
        at_low = np.where(within, at_low, at_middle)
        at_high = np.where(within, at_middle, at_high)
    prices, _ = evaluate_own(high)
    return prices, find_best_offsets(laws, prices, beta, room)[0]


def unpack_prices(
    certificate: Witness, shape: tuple[int, ...]
) -> list[tuple[FloatArray, FloatArray]]:
    """Unpack the multipliers and offsets of a dual certificate, for each law.

    Nothing is added where there is no array `tops`, and prices that are below 0 are 0.
    """
    prices = check_certificate_array(certificate, "prices", shape)
    tops = (shape[0], shape[2])
    added = (
        check_certificate_array(certificate, "tops", tops)
        if "tops" in certificate
        else np.zeros(tops)
    )
    return list(zip(prices, added, strict=True))
