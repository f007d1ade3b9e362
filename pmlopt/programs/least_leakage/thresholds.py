"""The worst case against the leakage: the whole trade-off, and the best rank within a level."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import partial

import numpy as np
from numpy.typing import ArrayLike

from pmlopt.arrays import nonnegative
from pmlopt.closed_forms import utility_safe
from pmlopt.errors import PrivacyError
from pmlopt.measures import leakage_level
from pmlopt.prior import Prior, PriorLike, as_prior
from pmlopt.programs.least_leakage.program import worst_case_utility
from pmlopt.result import DesignResult
from pmlopt.solving import solve
from pmlopt.utility.orders import highest_threshold


@dataclass(frozen=True, eq=False)
class RankedResult:
    """The least leakage at which no output has a rank below the threshold.

    Attributes:
        threshold: h.
        result: its value is the level, in nats.
    """

    threshold: int
    result: DesignResult


@dataclass(frozen=True, eq=False)
class BestWorstCase(RankedResult):
    """The highest threshold within a level.

    Attributes:
        next_bound: what the next higher threshold leaks at least, in nats; inf where there is none.
        proved: whether that is more than the level asked for.
    """

    next_bound: float
    proved: bool


def worst_case_curve(
    prior: PriorLike,
    order: ArrayLike,
    thresholds: Iterable[int] | None = None,
    *,
    solver: str = "auto",
    time_limit: float | None = None,
    tolerance: float = 1e-7,
) -> list[RankedResult]:
    """The least leakage for each threshold: problem (1) for every epsilon at once.

    Args:
        prior: N letters.
        order: (N, M) ranks from 1 to M; see `worst_case_utility`.
        thresholds: those wanted; left out, all for which each letter has an output.
        solver: as in `solve`.
        time_limit: seconds for each threshold.
        tolerance: as in `solve`.

    Returns:
        In ascending order of the thresholds, so that levels do not fall.

    Raises:
        UtilityError: the order or a threshold cannot be meant.

    Source: WCU, Section II.

    Examples:
        >>> order = [[3, 2, 1], [1, 3, 2], [2, 1, 3]]
        >>> curve = worst_case_curve([0.6, 0.2, 0.2], order)
        >>> [(point.threshold, round(np.exp(point.result.value).item(), 9)) for point in curve]
        [(1, 1.0), (2, 2.0), (3, 5.0)]
    """
    known = as_prior(prior)
    solved = partial(solve, solver=solver, time_limit=time_limit, tolerance=tolerance)
    wanted = range(1, highest_threshold(order) + 1) if thresholds is None else sorted(set(thresholds))
    points: list[RankedResult] = []
    above: DesignResult | None = None
    for threshold in reversed(wanted):  # what is allowed at a threshold is allowed below it
        above = _solved_from(solved, known, order, threshold, above)
        points.append(RankedResult(threshold, above))
    return points[::-1]


def best_worst_case(
    prior: PriorLike,
    order: ArrayLike,
    epsilon: float,
    *,
    solver: str = "auto",
    time_limit: float | None = None,
    tolerance: float = 1e-7,
) -> BestWorstCase:
    """The highest threshold that a mechanism of level epsilon can keep, and the one that leaks least.

    By binary search: the least leakage does not fall with the threshold.

    Args:
        prior: N letters.
        order: (N, M) ranks from 1 to M; see `worst_case_utility`.
        epsilon: the PML level, in nats.
        solver: as in `solve`.
        time_limit: seconds for each threshold.
        tolerance: as in `solve`.

    Raises:
        UtilityError: the order cannot be meant.
        PrivacyError: epsilon is negative.

    Source: WCU, problem (1), Lemma 1.

    Examples:
        >>> order = [[3, 2, 1], [1, 3, 2], [2, 1, 3]]
        >>> best = best_worst_case([0.6, 0.2, 0.2], order, 1.0)
        >>> best.threshold, best.proved, round(np.exp(best.result.value).item(), 9)
        (2, True, 2.0)
    """
    known = as_prior(prior)
    level = nonnegative(epsilon, "epsilon", PrivacyError)
    solved = partial(solve, solver=solver, time_limit=time_limit, tolerance=tolerance)
    low, high = 1, highest_threshold(order) + 1  # low can be kept, high is not known to be
    kept = _solved_from(solved, known, order, 1, None)
    beyond = np.inf
    while high - low > 1:
        middle = (low + high) // 2
        tried = _solved_from(solved, known, order, middle, None)
        if tried.value <= level:
            low, kept = middle, tried
        else:
            high, beyond = middle, tried.bound
    return BestWorstCase(low, kept, next_bound=float(beyond), proved=bool(beyond > level))


def _solved_from(
    solved: Callable[..., DesignResult],
    prior: Prior,
    order: ArrayLike,
    threshold: int,
    above: DesignResult | None,
) -> DesignResult:
    """Start from the closed form, or from the mechanism for a higher threshold where that leaks less."""
    start = utility_safe(order, threshold).matrix
    if above is not None and above.value < leakage_level(prior, start):
        start = above.mechanism.matrix
    return solved(worst_case_utility(prior, order, threshold), warm_start=start)
