"""The optimal split of a total leakage level over several releases."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from pmlopt.core.numbers.arrays import FloatArray, check_positive
from pmlopt.errors import InputError, PrivacyError, ProgramError


@dataclass(frozen=True, eq=False)
class Split:
    """The optimal levels of k releases under a total, with value and bound.

    Attributes:
        levels: (k,) in nats, whose exact sum is at most the total.
        value: the weighted sum of the values at these levels.
        bound: what no split of the total betters, whatever the mechanisms.
        answers: (k,) what was solved at these levels; None where nothing is spent and nothing can be done.
        solves: how many levels were solved.
    """

    levels: tuple[float, ...]
    value: float
    bound: float
    answers: tuple[Any, ...]
    solves: int

    @property
    def gap(self) -> float:
        """Return the gap |bound - value|."""
        return abs(self.bound - self.value)


# Solves after which a search ends with the gap that it has.
def best_split(
    solve_at: Sequence[Callable[[float], Any]],
    total: float,
    weights: Sequence[float] | None = None,
    maximised: bool = False,
    tolerance: float = 1e-2,
    most_solves: int = 500,
) -> Split:
    """Optimize the levels of k releases with a given sum, by monotone bounds on their losses.

    The sum of levels is a level of everything for attributes that are independent (PML, about their tuple)
    and for releases of one secret under LDP; not under PML, where levels add under the posteriors (`Ledger`).

    No form of the curves is assumed. The loss need not be convex in the level: at the uniform prior the
    chance to guess one of N letters is `e^epsilon / N`, and the even split has the least of it. It falls with
    the level, though, so that a bound at the upper end of an interval of levels holds in all of it; the
    least sum of such bounds over intervals that fit the total bounds every split, and the intervals that
    reach it are halved.

    Args:
        solve_at: for each release the answer at a level in nats, with its `value` and `bound`, such as
            `lambda e: solve(design(prior, PML(e), utility))`; a `ProgramError` at level 0 states that nothing
            can be done there.
        total: the sum of the levels, in nats.
        weights: (k,) positive, by which the values are multiplied; left out, 1.
        maximised: whether the values are gains.
        tolerance: the gap at which the search ends, as a share of the value.
        most_solves: levels that are solved at most.

    Raises:
        PrivacyError: the total is not positive.
        InputError: there is no release, a weight is not positive, or there is not one for each release.

    Examples:
        >>> from types import SimpleNamespace
        >>> def loss(level):  # convex: the even split is best
        ...     return SimpleNamespace(value=math.exp(-level), bound=math.exp(-level))
        >>> split = best_split([loss, loss], 2.0)
        >>> split.levels, split.gap <= 0.01 * split.value
        ((1.0, 1.0), True)
        >>> def gain(level):
        ...     return SimpleNamespace(value=math.exp(level) / 10, bound=math.exp(level) / 10)
        >>> sorted(best_split([gain, gain], 2.0, maximised=True).levels)
        [0.0, 2.0]
    """
    most = check_positive(total, "the total", PrivacyError)
    shares = _check_weights(weights, len(solve_at))
    unit = math.ulp(most)
    sign = -1.0 if maximised else 1.0
    # one for all releases that are solved and weighed alike
    known: dict[tuple[int, float], _LossCurve] = {}
    curves = [
        known.setdefault((id(solve), weight), _LossCurve(solve, sign * weight, unit))
        for solve, weight in zip(solve_at, shares.tolist(), strict=True)
    ]
    for curve in curves:
        for level in (0.0, int(most / unit) // len(curves) * unit, most):
            curve.solve_level(level)
    while True:
        value, chosen = _choose_cheapest([(c.levels, c.values) for c in curves], most)
        bound, cells = _choose_cheapest([(c.levels[:-1], c.bounds[1:]) for c in curves], most)
        solves = sum(len(curve.answers) for curve in set(curves))
        proved = math.isfinite(value) and value - bound <= tolerance * abs(value)
        if proved or solves >= most_solves:
            break
        if not _spend_rest(curves, chosen, most) and not _halve_interval(curves, cells):
            break
    levels = tuple(float(curve.levels[place]) for curve, place in zip(curves, chosen, strict=True))
    answers = tuple(curve.answers[level] for curve, level in zip(curves, levels, strict=True))
    return Split(levels, sign * value, sign * bound, answers, solves)


@dataclass(eq=False)
class _LossCurve:
    """The solved points of one release's loss as a function of its level.

    Levels are multiples of a unit, the distance of the total to the next float. Floats hold every such
    multiple up to the total, so that sums of levels are exact as long as they are within it.
    """

    solve_at: Callable[[float], Any]
    weight: float
    unit: float
    answers: dict[float, Any] = field(default_factory=dict)
    levels: FloatArray = field(default_factory=lambda: np.zeros(0))
    values: FloatArray = field(default_factory=lambda: np.zeros(0))
    bounds: FloatArray = field(default_factory=lambda: np.zeros(0))

    def solve_level(self, level: float) -> bool:
        """Solve at a new level; return False for a known one."""
        if level in self.answers:
            return False
        try:
            answer = self.solve_at(level)
        except ProgramError:
            if level > 0:
                raise
            answer = None
        self.answers[level] = answer
        place = int(np.searchsorted(self.levels, level))
        self.levels = np.insert(self.levels, place, level)
        # a mechanism of a lower level is one of this level, and a bound of a higher level one of this
        w = self.weight
        value, bound = (
            (math.inf, math.inf) if answer is None else (w * answer.value, w * answer.bound)
        )
        self.values = np.insert(self.values, place, value)
        self.bounds = np.insert(self.bounds, place, bound)
        return True


def _check_weights(weights: Sequence[float] | None, count: int) -> FloatArray:
    """Validate release weights, by default one."""
    if not count:
        raise InputError("there is no release to split the total over: give at least one")
    if weights is None:
        return np.ones(count)
    if len(weights) != count:
        raise InputError(
            f"give a positive weight for each of the {count} releases, not {list(weights)!r}"
        )
    return np.array(
        [check_positive(weight, f"weight {k}", InputError) for k, weight in enumerate(weights)]
    )


def _choose_cheapest(
    choices: Sequence[tuple[FloatArray, FloatArray]], most: float
) -> tuple[float, tuple[int, ...]]:
    """Choose one option per release with the least total cost under a budget.

    By dynamic programming: of the choices for the first releases those are kept than which none uses and
    costs less.
    """
    used = np.zeros(1)
    costs = np.zeros(1)
    taken = np.zeros((1, 0), dtype=int)
    for uses, prices in choices:
        sums = (used[:, None] + uses).ravel()
        totals = (costs[:, None] + prices).ravel()
        fits = np.flatnonzero(sums <= most)
        order = fits[np.lexsort((totals[fits], sums[fits]))]
        best = np.minimum.accumulate(totals[order])
        kept = order[np.append(True, best[1:] < best[:-1])]
        rows, columns = np.divmod(kept, len(uses))
        used = sums[kept]
        costs = totals[kept]
        taken = np.column_stack([taken[rows], columns])
    last = int(costs.argmin())
    return float(costs[last]), tuple(taken[last].tolist())


def _spend_rest(curves: Sequence[_LossCurve], chosen: Sequence[int], total: float) -> bool:
    """Solve with the remaining budget added to one release; return False where nothing remains."""
    left = total - math.fsum(
        curve.levels[place] for curve, place in zip(curves, chosen, strict=True)
    )
    if left <= 1e-9 * total:
        return False
    slopes = []
    for curve, place in zip(curves, chosen, strict=True):
        after = min(place + 1, len(curve.levels) - 1)
        width = curve.levels[after] - curve.levels[place]
        drop = _loss_decrease(curve.values, place, after)
        slopes.append(drop / width if width > 0 and math.isfinite(drop) else 0.0)
    k = int(np.argmax(slopes))
    return curves[k].solve_level(float(curves[k].levels[chosen[k]] + left))


def _loss_decrease(losses: FloatArray, low: int, high: int) -> float:
    """Compute the decrease of a loss curve between two levels."""
    return float(losses[low] - losses[high]) if math.isfinite(losses[high]) else 0.0


def _halve_interval(curves: Sequence[_LossCurve], cells: Sequence[int]) -> bool:
    """Bisect the interval with the largest decrease of the bound; return False where none can be."""
    falls = [
        _loss_decrease(curve.bounds, cell, cell + 1)
        for curve, cell in zip(curves, cells, strict=True)
    ]
    for k in np.argsort(-np.array(falls), kind="stable"):
        low = curves[k].levels[cells[k]]
        high = curves[k].levels[cells[k] + 1]
        middle = math.floor((low + high) / 2 / curves[k].unit) * curves[k].unit
        if low < middle < high:
            return bool(curves[k].solve_level(middle))
    return False
