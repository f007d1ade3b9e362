"""Mehrotra's predictor-corrector method on a design in column blocks.

Source: S. Mehrotra, SIAM J. Optim. 2 (1992).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from itertools import count

import numpy as np

from pmlopt.core.programming_errors import raise_if_strict
from pmlopt.solvers.outcome import FOREVER, Clock
from pmlopt.solvers.structured.block_program import Task
from pmlopt.solvers.structured.newton import Newton, newton_at
from pmlopt.solvers.structured.points import Family, Point, narrowed, narrowed_point, widened_point

SHORT, PATIENCE = 1e-3, 5
"""Steps shorter than this are no progress; after so many in a row the method ends."""


AIMED_GAP_SHARE = 0.01
"""The share of that gap which the method aims at: one or two iterations more leave a cleaner matrix."""


SINGLE_PRECISION_ENTRIES = 5_000
"""Matrices of more entries than this are begun in single precision: an iteration takes half as long there."""


SINGLE_PRECISION_MISMATCH = (1e-3, 1e-5)
"""What the equations of the entries and the coupling rows may miss there; where more is missed than at the
point before, rounding has the upper hand."""

EVERY, NEAR = 25, 4.0
"""The gap is certified every so many iterations, when the products are near to it, and whenever they have
halved from there."""


@dataclass(frozen=True, eq=False)
class Ending:
    """The best point of the interior-point method, and why it ended there.

    Attributes:
        point: the point with the least certified gap.
        gap: that gap.
        iterations: how many there were.
        message: why it ended.
    """

    point: Point
    gap: float
    iterations: int
    message: str


def minimise(
    task: Task,
    start: Point,
    gap_of: Callable[[Point], float],
    enough: float,
    clock: Clock = FOREVER,
) -> Ending:
    """Follow the central path until the certified gap is small enough, or nothing improves.

    Args:
        task: the program.
        start: strictly inside.
        gap_of: the certified gap at a point, in units of the task's costs.
        enough: the gap that is wanted; where it can, it ends at a hundredth of it.
        clock: what is left of the time.
    """
    watch = _Watch(gap_of, enough, start)
    point, done, idle = start, 0, 0
    if task.border is None and task.costs.size > SINGLE_PRECISION_ENTRIES:
        point, done = _begun(task, start, watch, clock)
    for iteration in count(done):
        if iteration % EVERY == EVERY - 1 or point.gap <= watch.near:
            watch.look(point)
        following, trouble = point, _over(iteration, idle, clock)
        # products so small no longer change the certified gap
        if point.gap <= 1e-6 * watch.least:
            trouble = "nothing improves"
        if not (watch.proved or trouble):
            try:
                with np.errstate(all="raise", under="ignore"):
                    following, length = _iterate(newton_at(task, point))
                idle = idle + 1 if length < SHORT else 0
            except ArithmeticError as cause:
                raise_if_strict(cause)
                trouble = f"numerical trouble: {cause}"
        if trouble:
            watch.look(point)
            if done and watch.gap > enough and not _over(iteration, 0, clock):
                following, trouble, done, idle = start, "", 0, 0  # once more, all in double precision
        if watch.proved or trouble:
            message = "the certified gap is within the tolerance" if watch.proved else trouble
            return Ending(watch.best, watch.gap, iteration, message)
        point = following
    raise AssertionError


def _begun(task: Task, start: Point, watch: _Watch, clock: Clock) -> tuple[Point, int]:
    """Return the point that single precision reaches, and after how many iterations."""
    narrow, point = narrowed(task), narrowed_point(start)
    # below 1e-6 for each letter, slacks are lost in the rounding of single precision
    least = max(1e-6 * task.prior.size, watch.near)
    idle, last = 0, None
    for iteration in count():
        if point.gap <= least or idle > 1 or _over(iteration, 0, clock):
            break
        try:
            with np.errstate(all="raise", under="ignore"):
                newton = newton_at(narrow, point)
                if last is not None and _blurred(newton, last):
                    point = last.at
                    break
                following, length = _iterate(newton)
        except ArithmeticError as cause:
            raise_if_strict(cause)
            break
        point, last = following, newton
        idle = idle + 1 if length < SHORT else 0
    return widened_point(task, point), iteration


def _blurred(newton: Newton, last: Newton) -> bool:
    """Return whether equations are violated by more than before, and by more than rounding makes."""
    return any(
        here > max(there, most)
        for here, there, most in zip(newton.mismatch, last.mismatch, SINGLE_PRECISION_MISMATCH, strict=True)
    )


class _Watch:
    """The point with the least certified gap so far."""

    def __init__(self, gap_of: Callable[[Point], float], enough: float, start: Point) -> None:
        self.gap_of, self.enough = gap_of, enough
        self.best, self.gap = start, np.inf
        # a smaller gap may never come
        self.least = max(enough, 1e-14 * start.gap)
        self.near = NEAR * AIMED_GAP_SHARE * self.least

    @property
    def proved(self) -> bool:
        """Return whether the target is reached, or the gap is small and no longer follows the products."""
        return (
            self.gap
            <= (AIMED_GAP_SHARE if self.best.gap > AIMED_GAP_SHARE**2 * self.enough else 1.0) * self.enough
        )

    def look(self, point: Point) -> None:
        """Certify a point; the next one is due when the products have halved."""
        gap = self.gap_of(point)
        self.near = min(self.near, point.gap / 2)
        if gap < self.gap:
            self.best, self.gap = point, gap


def _over(iteration: int, idle: int, clock: Clock) -> str:
    """Return why the method must end here; empty if it need not."""
    if idle >= PATIENCE:
        return "nothing improves"
    # 15 to 60 iterations are usual
    if iteration >= 200:
        return "iteration limit"
    return "time limit" if clock.late else ""


def _iterate(newton: Newton) -> tuple[Point, float]:
    """Return the next point, and the shorter one of the two step lengths."""
    at = newton.at
    now = at.products
    pairs = sum(product.size for product in now.values()) - newton.task.unpaired
    gap = at.gap
    step = newton.step()
    primal, dual = at.lengths(step)
    # Mehrotra's exponent 3 takes a quarter more iterations here
    target = gap / pairs * (at.gap_after(step, primal, dual) / gap) ** 4
    wanted: Family = {}
    for name, product in now.items():
        change = step.slacks[name] * step.duals[name]
        change += product
        wanted[name] = np.subtract(target, change, out=change)
    step = newton.step(wanted)
    primal, dual = at.lengths(step)
    # a step goes 99.9 % of the way to the boundary
    primal, dual = (length if length == 1 else 0.999 * length for length in (primal, dual))
    return at.moved(step, primal, dual), min(primal, dual)
