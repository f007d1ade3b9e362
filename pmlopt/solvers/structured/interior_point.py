"""Mehrotra's predictor-corrector method on a design in column blocks.

Source: S. Mehrotra, SIAM J. Optim. 2 (1992). In large systems products far from the others are corrected.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from itertools import count
from typing import ClassVar

import numpy as np

from pmlopt.core.numbers.arrays import BoolArray, FloatArray
from pmlopt.core.programming_errors import raise_if_strict
from pmlopt.solvers.solver_result import NO_DEADLINE, Deadline
from pmlopt.solvers.structured.block_program import BlockLP, ColumnBlock
from pmlopt.solvers.structured.centrality import correct_products
from pmlopt.solvers.structured.iterates import (
    Iterate,
    NamedArrays,
    build_start,
    to_double_point,
    to_single_point,
    to_single_precision,
)
from pmlopt.solvers.structured.newton import NewtonSystem, build_newton_system

SHORT_STEP, MAX_SHORT_STEPS = 1e-3, 5
"""Steps shorter than this are no progress; after so many in a row the method ends."""


MIN_CENTRED_ORDER, CENTRED_STEP_SHARE, CENTRED_DETOUR = 600, 0.99, 0.3
"""Systems of this order cost so much to factor that a further solve, which makes the steps longer, pays: how
far they go then, and by how much longer the step is at whose end it looks."""


MIN_SINGLE_PRECISION_ENTRIES = 5_000
"""Matrices of more entries than this are begun in single precision: an iteration takes half as long there."""


SINGLE_PRECISION_RESIDUALS = (1e-3, 1e-5)
"""What the equations of the entries and the coupling rows may miss there; where more is missed than at the
point before, rounding has the upper hand."""

CERTIFY_INTERVAL, CERTIFY_DISTANCE = 25, 4.0
"""The gap is certified every so many iterations, when the products are near to it, and whenever they have
halved from there."""


@dataclass(frozen=True, eq=False)
class InteriorPointResult:
    """The best iterate of the interior-point method, with the stopping reason.

    Attributes:
        point: the point with the least certified gap.
        gap: that gap.
        iterations: how many there were.
        message: why it ended.
    """

    point: Iterate
    gap: float
    iterations: int
    message: str


@dataclass(frozen=True, eq=False)
class GapGoal:
    """What ends a solve: a certified gap, or the deadline.

    Attributes:
        gap_of: the certified gap at a point, in units of the program's costs.
        target_gap: the gap that is wanted; where it can, a solve ends at a hundredth of it.
        deadline: of the solve.
    """

    gap_of: Callable[[Iterate], float]
    target_gap: float
    deadline: Deadline = NO_DEADLINE


def follow_central_path(task: BlockLP, start: Iterate, goal: GapGoal) -> InteriorPointResult:
    """Run the predictor-corrector iteration until the certified gap is within the target.

    Args:
        task: the program.
        start: strictly inside.
        goal: what ends it.
    """
    # certifying costs more than a step: it is done near the goal, and then at halvings
    watch, deadline = _BestIterate(goal, start), goal.deadline
    point, done, idle = start, 0, 0
    if task.border is None and task.costs.size > MIN_SINGLE_PRECISION_ENTRIES:
        # below 1e-6 for each letter, slacks are lost in the rounding of single precision
        least = max(1e-6 * task.prior.size, watch.near)
        point, done = _iterate_in_single_precision(
            task,
            start,
            lambda iteration, at: (
                at.duality_gap <= least or bool(_find_stop_reason(iteration, 0, deadline))
            ),
        )
    for iteration in count(done):
        if iteration % CERTIFY_INTERVAL == CERTIFY_INTERVAL - 1 or point.duality_gap <= watch.near:
            watch.certify_point(point)
        following, trouble = point, _find_stop_reason(iteration, idle, deadline)
        # products so small no longer change the certified gap
        if point.duality_gap <= 1e-6 * watch.least:
            trouble = "nothing improves"
        if not (watch.is_done or trouble):
            try:
                with np.errstate(all="raise", under="ignore"):
                    following, length = _step_once(build_newton_system(task, point))
                idle = idle + 1 if length < SHORT_STEP else 0
            except ArithmeticError as cause:
                raise_if_strict(cause)
                trouble = f"numerical trouble: {cause}"
        if trouble:
            watch.certify_point(point)
            is_open = watch.gap > goal.target_gap
            if done and is_open and not _find_stop_reason(iteration, 0, deadline):
                # once more, all in double precision
                following, trouble, done, idle = start, "", 0, 0
        if watch.is_done or trouble:
            message = "the certified gap is within the tolerance" if watch.is_done else trouble
            return InteriorPointResult(watch.best, watch.gap, iteration, message)
        point = following
    raise AssertionError


def follow_used_columns(
    task: BlockLP, start: Iterate, goal: GapGoal, likely: BoolArray | None = None
) -> InteriorPointResult:
    """Run the iteration on the columns that carry mass after a few steps; the rest become zero.

    With random gains a tenth of 1,000 columns are used at the optimum, and a step costs as much as
    there are columns. The certified gap decides whether the choice was right: where it was not, the
    iteration continues with all columns.

    Args:
        task: the program.
        start: strictly inside.
        goal: what ends it; its gap is priced on all columns, also on those whose entries are zero.
        likely: (M,) the columns that a similar program used, which are tried first; or None.
    """
    # In smaller programs the steps that choose the columns cost what they save. With a budget nearly every
    # column carries some of it.
    if (
        task.border is not None
        or task.allowed is not None
        or task.budget is not None
        or task.costs.size < 20 * MIN_SINGLE_PRECISION_ENTRIES
    ):
        return follow_central_path(task, start, goal)
    ending = None if likely is None else _follow_some_columns(task, likely, goal)
    if ending is not None:
        return ending
    point, kept, done = _find_used_columns(task, start, goal.deadline)
    plain = None if kept.all() else _leave_out_hinge(task.block, point.scalars[:, kept])
    ending = None if plain is None else _follow_some_columns(replace(task, block=plain), kept, goal)
    if ending is None and not kept.all():
        ending = _follow_some_columns(task, kept, goal)
    if ending is None:
        ending = follow_central_path(task, point, goal)
    return replace(ending, iterations=done + ending.iterations)


def _leave_out_hinge(block: ColumnBlock, scalars: FloatArray) -> ColumnBlock | None:
    """Return the block without hinge where thresholds of (k, M) scalars tend to the upper ends, or None."""
    if block.hinge is None:
        return None
    # After 8 steps they are above .9 of them with random gains and distances, and near a half under Hamming
    # loss, whose columns peak on one letter.
    is_idle = block.hinge.compute_thresholds(scalars) >= 0.9 * (block.upper @ scalars)
    return block.without_hinge if is_idle.all() else None


class _MissingColumnsError(Exception):
    """A column that was left out would lower the objective."""


def _follow_some_columns(
    task: BlockLP, kept: BoolArray, goal: GapGoal
) -> InteriorPointResult | None:
    """Run the iteration on the columns (M,) that are kept; None where one that was left out is missing."""

    def certify_gap(part: Iterate) -> float:
        gap = goal.gap_of(part.place_columns(kept))
        # at the end products vanish, and a repaired gap with them, if later, unless a column is missing
        if max(goal.target_gap, 1e4 * part.duality_gap) < gap < np.inf:
            raise _MissingColumnsError
        return gap

    small = task.select_columns(kept)
    try:
        ending = follow_central_path(small, build_start(small), replace(goal, gap_of=certify_gap))
    except _MissingColumnsError:
        return None
    if ending.gap > goal.target_gap and not goal.deadline.expired:
        return None
    return replace(ending, point=ending.point.place_columns(kept))


def _find_used_columns(
    task: BlockLP, start: Iterate, deadline: Deadline
) -> tuple[Iterate, BoolArray, int]:
    """Take a few steps; return the point, the (M,) mask of columns with mass, and the step count."""
    kept = np.ones(task.costs.shape[1], dtype=bool)

    def is_decided(iteration: int, point: Iterate) -> bool:
        # After 8 steps the columns of an optimum have .8 of the mean mass or more. Where more than .4 of
        # all columns have it, a wrong choice costs more than a right one saves.
        if iteration >= 8:
            mass = point.mechanism.sum(axis=0)
            heavy = mass >= 0.8 * mass.mean()
            if heavy.sum() <= 0.4 * heavy.size:
                kept[:] = heavy
                return True
        # so near to the end all columns cost little, and rounding is near
        is_near = point.duality_gap <= 1e-3 * task.prior.size
        return iteration >= 16 or is_near or deadline.expired

    point, done = _iterate_in_single_precision(task, start, is_decided)
    return point, kept, done


def _iterate_in_single_precision(
    task: BlockLP, start: Iterate, is_enough: Callable[[int, Iterate], bool]
) -> tuple[Iterate, int]:
    """Run the first iterations in single precision; return the point and iteration count.

    Args:
        task: the program.
        start: strictly inside.
        is_enough: by the number of steps and the point, whether to end; it ends earlier where rounding or
            short steps leave no progress.
    """
    # early iterations need few digits, and half the memory traffic
    narrow, point = to_single_precision(task), to_single_point(start)
    idle, last = 0, None
    for iteration in count():
        if idle > 1 or is_enough(iteration, point):
            break
        try:
            with np.errstate(all="raise", under="ignore"):
                newton = build_newton_system(narrow, point)
                if last is not None and _is_limited_by_rounding(newton, last):
                    point = last.at
                    break
                following, length = _step_once(newton)
        except ArithmeticError as cause:
            raise_if_strict(cause)
            break
        point, last = following, newton
        idle = idle + 1 if length < SHORT_STEP else 0
    return to_double_point(task, point), iteration


def _is_limited_by_rounding(newton: NewtonSystem, last: NewtonSystem) -> bool:
    """Return whether residuals grow and exceed the rounding level."""
    return any(
        here > max(there, limit)
        for here, there, limit in zip(
            newton.max_residuals, last.max_residuals, SINGLE_PRECISION_RESIDUALS, strict=True
        )
    )


class _BestIterate:
    """The iterate with the smallest certified gap so far."""

    TARGET_GAP_FRACTION: ClassVar[float] = 0.01
    """The share of that gap which the method aims at: one or two iterations more leave a cleaner matrix."""

    def __init__(self, goal: GapGoal, start: Iterate) -> None:
        self.gap_of, self.enough = goal.gap_of, goal.target_gap
        self.best, self.gap = start, np.inf
        # a smaller gap may never come
        self.least = max(self.enough, 1e-14 * start.duality_gap)
        self.near = CERTIFY_DISTANCE * self.TARGET_GAP_FRACTION * self.least

    @property
    def is_done(self) -> bool:
        """Return whether the target gap is reached, or the gap has stopped to decrease."""
        return (
            self.gap
            <= (
                self.TARGET_GAP_FRACTION
                if self.best.duality_gap > self.TARGET_GAP_FRACTION**2 * self.enough
                else 1.0
            )
            * self.enough
        )

    def certify_point(self, point: Iterate) -> None:
        """Certify the gap of an iterate; the next certification follows when complementarity has halved."""
        gap = self.gap_of(point)
        self.near = min(self.near, point.duality_gap / 2)
        if gap < self.gap:
            self.best, self.gap = point, gap


def _find_stop_reason(iteration: int, idle: int, deadline: Deadline) -> str:
    """Return the reason to stop the iteration; empty to go on."""
    if idle >= MAX_SHORT_STEPS:
        return "nothing improves"
    # 15 to 60 iterations are usual
    if iteration >= 200:
        return "iteration limit"
    return "time limit" if deadline.expired else ""


def _step_once(newton: NewtonSystem) -> tuple[Iterate, float]:
    """Take one predictor-corrector step; return the new point and the shorter step length."""
    at = newton.at
    target, wanted = _predict_products(newton)
    step = newton.compute_step(wanted)
    lengths = at.max_step_lengths(step)
    share = 0.999  # of the way to the boundary
    if newton.order >= MIN_CENTRED_ORDER:
        share = CENTRED_STEP_SHARE
        centred = newton.compute_step(_center_products(at, step, lengths, target, wanted))
        longer = at.max_step_lengths(centred)
        if sum(longer) > sum(lengths):
            step, lengths = centred, longer
    primal, dual = (length if length == 1 else share * length for length in lengths)
    return at.move_along(step, primal, dual), min(primal, dual)


def _predict_products(newton: NewtonSystem) -> tuple[float, NamedArrays]:
    """Return the target of the complementarity products, and how each is wanted, by Mehrotra's predictor."""
    at = newton.at
    now = at.slack_products
    pairs = sum(product.size for product in now.values()) - newton.task.absent_slack_count
    gap = at.duality_gap
    # the predictor: a pure Newton step shows how much of the gap can go
    step = newton.compute_step()
    after = at.duality_gap_after(step, *at.max_step_lengths(step))
    # Mehrotra's exponent 3 takes a quarter more iterations here
    target = gap / pairs * (after / gap) ** 4
    wanted: NamedArrays = {}
    for name, product in now.items():
        # the second-order term that the linearisation left out
        change = step.slacks[name] * step.duals[name]
        change += product
        wanted[name] = np.subtract(target, change, out=change)
    return target, wanted


def _center_products(
    at: Iterate,
    step: Iterate,
    lengths: tuple[float, float],
    target: float,
    wanted: NamedArrays,
) -> NamedArrays:
    """Return the products to want so that those far from the target after a longer step come back to it.

    That is of a step that is longer by CENTRED_DETOUR.
    """
    primal, dual = (min(1.0, length + CENTRED_DETOUR) for length in lengths)
    centred: NamedArrays = {}
    for name, want in wanted.items():
        product = at.slacks[name] + primal * step.slacks[name]
        product *= at.duals[name] + dual * step.duals[name]
        centred[name] = want + correct_products(product, target)
    return centred
