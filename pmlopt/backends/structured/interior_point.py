"""Mehrotra's predictor-corrector method with Gondzio's centrality corrections, on a design in column blocks.

Source: S. Mehrotra, SIAM J. Optim. 2 (1992); J. Gondzio, Comput. Optim. Appl. 6 (1996).
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from itertools import count

import numpy as np

from pmlopt.arrays import FloatArray
from pmlopt.backends.structured.block_program import Task
from pmlopt.backends.structured.newton import Newton
from pmlopt.backends.structured.point import Family, Point

MAX_CENTRALITY_CORRECTIONS = 1
"""Centrality corrections tried in an iteration: one more saves fewer iterations than it costs."""

LONG_STEP_SUM = 0.8
"""Steps whose lengths add up to this are not corrected."""

LEAST_STEP_GAIN = 0.02
"""A correction is kept where it lengthens the two steps by this in all."""

CENTRALITY_FACTOR = 0.1
"""Products within this factor of their target, both ways, are central."""

BOUNDARY_FRACTION = 0.999
"""The share of the way to the boundary that a step goes."""

MAX_STEPS = 200
"""Iterations after which the method ends; 15 to 60 are usual."""

SHORT, PATIENCE = 1e-3, 5
"""Steps shorter than this are no progress; after so many in a row the method ends."""

VANISHED_PRODUCTS = 1e-6
"""Where the products are this small a share of the gap that is wanted, nothing more will come of them."""

AIMED_GAP_SHARE = 0.01
"""The share of that gap which the method aims at: one or two iterations more leave a cleaner matrix."""

SMALLEST_GAP_SHARE = 1e-14
"""A gap below this share of the first is not waited for: it may never come."""

EVERY, NEAR = 25, 4.0
"""The gap is certified every so many iterations, when the products are near to it, and whenever they have
halved from there."""


@dataclass(frozen=True, eq=False)
class Ending:
    """The best point of the interior-point method, and why it ended there.

    Attributes:
        point: the point with the least certified gap.
        gap: that gap.
        halfway: the first point whose products were small enough for that.
        iterations: how many there were.
        message: why it ended.
    """

    point: Point
    gap: float
    halfway: Point | None
    iterations: int
    message: str


def minimise(
    task: Task,
    start: Point,
    gap_of: Callable[[Point], float],
    enough: float,
    halfway: float = 0.0,
    seconds: float | None = None,
) -> Ending:
    """Follow the central path until the certified gap is small enough, or nothing improves.

    Args:
        task: the program.
        start: strictly inside.
        gap_of: the certified gap at a point, in units of the task's costs.
        enough: the gap that is wanted; where it can, it ends at a hundredth of it.
        halfway: the gap at which a point is a good start for a program nearby.
        seconds: the time limit.
    """
    begin = time.perf_counter()
    watch = _Watch(gap_of, enough, start)
    point, idle = start, 0
    passed: Point | None = None
    for iteration in count():
        if passed is None and point.gap <= halfway:
            passed = point
        if iteration % EVERY == EVERY - 1 or point.gap <= watch.near:
            watch.look(point)
        following, trouble = point, _over(iteration, idle, begin, seconds)
        if point.gap <= VANISHED_PRODUCTS * watch.least:
            trouble = "nothing improves"
        if not (watch.proved or trouble):
            try:
                with np.errstate(all="raise", under="ignore"):
                    following, length = _iterate(task, point)
                idle = idle + 1 if length < SHORT else 0
            except ArithmeticError as cause:
                trouble = f"numerical trouble: {cause}"
        if trouble:
            watch.look(point)
        if watch.proved or trouble:
            message = "the certified gap is within the tolerance" if watch.proved else trouble
            return Ending(watch.best, watch.gap, passed, iteration, message)
        point = following
    raise AssertionError


class _Watch:
    """The point with the least certified gap so far."""

    def __init__(self, gap_of: Callable[[Point], float], enough: float, start: Point) -> None:
        self.gap_of, self.enough = gap_of, enough
        self.best, self.gap = start, np.inf
        self.least = max(enough, SMALLEST_GAP_SHARE * start.gap)
        self.near = NEAR * AIMED_GAP_SHARE * self.least

    @property
    def proved(self) -> bool:
        """Whether the aim is reached, or the gap is small enough and no longer follows the products."""
        return (
            self.gap
            <= (AIMED_GAP_SHARE if self.best.gap > AIMED_GAP_SHARE**2 * self.enough else 1.0) * self.enough
        )

    def look(self, point: Point) -> None:
        """Certify a point; the next is due when the products have halved."""
        gap = self.gap_of(point)
        self.near = min(self.near, point.gap / 2)
        if gap < self.gap:
            self.best, self.gap = point, gap


def _over(iteration: int, idle: int, begin: float, seconds: float | None) -> str:
    """Why it must end here, if it must."""
    if idle >= PATIENCE:
        return "nothing improves"
    if iteration >= MAX_STEPS:
        return "iteration limit"
    return "time limit" if seconds is not None and time.perf_counter() - begin > seconds else ""


def _iterate(task: Task, at: Point) -> tuple[Point, float]:
    """The next point, and the shorter one of the two steps."""
    newton = Newton(task, at)
    now = at.products
    pairs = sum(product.size for product in now.values()) - task.unpaired
    gap = at.gap
    step = newton.step()
    primal, dual = at.lengths(step)
    target = gap / pairs * (at.gap_after(step, primal, dual) / gap) ** 3
    wanted: Family = {}
    for name, product in now.items():
        change = step.slacks[name] * step.duals[name]
        change += product
        wanted[name] = np.subtract(target, change, out=change)
    step = newton.step(wanted)
    primal, dual = at.lengths(step)
    for _ in range(MAX_CENTRALITY_CORRECTIONS):
        if primal + dual > LONG_STEP_SUM:
            break
        ahead = at.moved(step, min(1.0, 1.3 * primal + 0.1), min(1.0, 1.3 * dual + 0.1))
        for name, product in ahead.products.items():
            wanted[name] += _centred(product, target)
        other = newton.step(wanted)
        longer = at.lengths(other)
        if sum(longer) < primal + dual + LEAST_STEP_GAIN:
            break
        step, (primal, dual) = other, longer
    primal, dual = (length if length == 1 else BOUNDARY_FRACTION * length for length in (primal, dual))
    return at.moved(step, primal, dual), min(primal, dual)


def _centred(product: FloatArray, target: float) -> FloatArray:
    """What moves outlying products to the nearest central value, but down by no more than that value."""
    lowest, highest = CENTRALITY_FACTOR * target, target / CENTRALITY_FACTOR
    change = np.clip(product, lowest, highest)
    change -= product
    return np.maximum(change, -highest, out=change)
