"""Mehrotra's predictor-corrector method with Gondzio's centrality corrections, on a banded design.

Source: S. Mehrotra, SIAM J. Optim. 2 (1992); J. Gondzio, Comput. Optim. Appl. 6 (1996).
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from itertools import count

import numpy as np

from pmlopt.checks import FloatArray
from pmlopt.solvers.banded.newton import Newton, Point
from pmlopt.solvers.banded.task import Task

CORRECTIONS = 1
"""Centrality corrections tried in an iteration: one more saves fewer iterations than it costs."""

WORTH = 0.02
"""A correction is kept where it lengthens the two steps by this in all."""

CENTRAL = 0.1
"""Products within this factor of their target, both ways, are central."""

BACK = 0.999
"""The share of the way to the boundary that a step goes."""

MOST = 200
"""Iterations after which the method ends; 15 to 60 are usual."""

SHORT, PATIENCE = 1e-3, 5
"""Steps shorter than this are no progress; after so many in a row the method ends."""

EVERY, NEAR = 10, 4.0
"""The gap is certified every so many iterations, and whenever the complementarity is this near to it."""


@dataclass(frozen=True, eq=False)
class Ending:
    """Where the method ended.

    Attributes:
        point: the point with the least certified gap.
        gap: that gap.
        iterations: how many there were.
        proved: whether the gap is small enough.
        message: why it ended.
    """

    point: Point
    gap: float
    iterations: int
    proved: bool
    message: str


def minimise(
    task: Task, start: Point, gap_of: Callable[[Point], float], enough: float, seconds: float | None = None
) -> Ending:
    """Follow the central path until the certified gap is small enough, or nothing improves.

    Args:
        task: the program.
        start: strictly inside.
        gap_of: the certified gap at a point, in units of the task's costs.
        enough: the gap at which it ends.
        seconds: the time limit.
    """
    begin = time.perf_counter()
    point = best = start
    least, idle = np.inf, 0

    def ending(message: str) -> Ending:
        return Ending(best, least, iteration, least <= enough, message)

    for iteration in count():
        trouble = ""
        if iteration >= MOST or idle >= PATIENCE:
            trouble = "iteration limit" if iteration >= MOST else "nothing improves"
        elif seconds is not None and time.perf_counter() - begin > seconds:
            trouble = "time limit"
        else:
            try:
                with np.errstate(all="raise", under="ignore"):
                    following, length = _iterate(task, point)
            except ArithmeticError as cause:
                trouble = f"numerical trouble: {cause}"
        if trouble or iteration % EVERY == EVERY - 1 or point.gap <= NEAR * enough:
            gap = gap_of(point)
            if gap < least:
                best, least = point, gap
            if least <= enough:
                return ending("the certified gap is within the tolerance")
        if trouble:
            return ending(trouble)
        point, idle = following, idle + 1 if length < SHORT else 0
    raise AssertionError


def _iterate(task: Task, at: Point) -> tuple[Point, float]:
    """The next point, and the shorter one of the two steps."""
    newton = Newton(task, at)
    now = at.products
    mu = at.gap / task.pairs
    step = newton.step(*(-product for product in now))
    primal, dual = _lengths(task, at, step)
    target = mu * (at.moved(step, primal, dual).gap / (mu * task.pairs)) ** 3
    wanted = [target - product for product in now]
    wanted[0] -= step.a * step.above
    wanted[1] -= step.b * step.below
    wanted[2] -= step.f * step.low
    step = newton.step(*wanted)
    primal, dual = _lengths(task, at, step)
    for _ in range(CORRECTIONS):
        ahead = at.moved(step, min(1.0, 1.3 * primal + 0.1), min(1.0, 1.3 * dual + 0.1))
        for change, product in zip(wanted, ahead.products, strict=True):
            change += _centred(product, target)
        other = newton.step(*wanted)
        longer = _lengths(task, at, other)
        if sum(longer) < primal + dual + WORTH:
            break
        step, (primal, dual) = other, longer
    primal, dual = (length if length == 1 else BACK * length for length in (primal, dual))
    return at.moved(step, primal, dual), min(primal, dual)


def _centred(product: FloatArray, target: float) -> FloatArray:
    """What moves outlying products to the nearest central value, but down by no more than that value."""
    lowest, highest = CENTRAL * target, target / CENTRAL
    return np.maximum(np.clip(product, lowest, highest) - product, -highest)


def _lengths(task: Task, at: Point, step: Point) -> tuple[float, float]:
    """The longest primal and dual steps inside, at most 1."""
    primal = [_ratio(step.above, at.above), _ratio(step.below, at.below)]
    dual = [_ratio(step.a, at.a), _ratio(step.b, at.b)]
    if task.band.floored:
        primal.append(_ratio(step.low, at.low))
        dual.append(_ratio(step.f, at.f))
    return min(primal), min(dual)


def _ratio(step: FloatArray, at: FloatArray) -> float:
    least = float((step / at).min())
    return 1.0 if least >= -1 else -1 / least
