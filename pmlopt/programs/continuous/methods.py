"""The method for continuous secrets: solve on bins, compute a lower bound, and refine costly bins."""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import Any

import numpy as np

from pmlopt.core.grids import Grid
from pmlopt.core.numbers.arrays import FloatArray
from pmlopt.errors import PriorError, ProgramError
from pmlopt.programs.continuous.certificate import BOUND_BOXES, ContinuousCertificate, bound_loss
from pmlopt.programs.continuous.program import ContinuousDesign
from pmlopt.programs.linear.certificate import LinearCertificate
from pmlopt.programs.linear.feasible import find_first_mechanism
from pmlopt.programs.linear.program import LinearDesign
from pmlopt.programs.program import (
    Method,
    MethodError,
    MethodRegistry,
    MethodResult,
    describe_failure,
    find_registry,
    refuse_to_certify,
    reject_warm_start,
)
from pmlopt.programs.registry import register_question
from pmlopt.programs.solving import try_methods
from pmlopt.solvers.solver_result import NO_DEADLINE, Deadline, MethodOptions


@dataclass(frozen=True)
class GridRefinement:
    """The method of designs on finer and finer bins, until the loss and its bound are close.

    It ends, too, where three finer grids in a row have not brought them nearer by a hundredth: what is left
    of the gap is then the error of the bound, which more `boxes` make smaller.

    Args:
        max_bins: the number of bins past which none are halved any more.
        boxes: on about how many boxes the bound is computed; its error shrinks as one over them, along each
            axis.

    Raises:
        ProgramError: fewer than two bins, or two boxes, are allowed.
    """

    max_bins: int = 512
    boxes: int = BOUND_BOXES

    def __post_init__(self) -> None:
        if min(self.max_bins, self.boxes) < 2:
            raise ProgramError(
                f"{self.max_bins} bins and {self.boxes} boxes: allow two of each at least"
            )

    def __call__(
        self, program: ContinuousDesign, options: MethodOptions, _: None
    ) -> MethodResult[ContinuousCertificate]:
        """Alternate solving, bounding and bin refinement; keep the certificate of the smallest gap."""
        begin = time.perf_counter()
        deadline = options.deadline
        allowed = program.compute_allowed_gap(options.tolerance)
        grid = program.first_grid
        steps = 0
        best: ContinuousCertificate | None = None
        gaps: list[float] = []  # the smallest so far, after each grid
        ending = ""
        while True:
            before = deadline.read()
            try:
                found = certify_on_grid(program, grid, self.boxes, deadline)
            except PriorError as cause:
                if best is None:
                    raise
                finished, ending = True, f"; {cause}"
                break
            steps += 1
            # a finer grid is not always better: its design may have been cut short
            best = found if best is None or found.proved_gap < best.proved_gap else best
            finer = grid.halve_where(_compute_bin_costs(found))
            gaps.append(best.proved_gap)
            finished = best.proved_gap <= allowed or finer.size > self.max_bins
            if not finished and len(gaps) > 3 and gaps[-1] > 0.99 * gaps[-4]:
                finished, ending = True, "; finer bins win nothing, more boxes may"
            # a finer grid takes longer than this one
            if finished or deadline.expired_for(before - deadline.read()):
                break
            grid = finer
        detail = f"{steps} grids, the last of {found.grid.size} bins{ending}"
        seconds = time.perf_counter() - begin
        return MethodResult(
            certificate=best,
            finished=finished,
            message=detail,
            iterations=steps,
            solve_seconds=seconds,
        )


def certify_on_grid(
    program: ContinuousDesign,
    grid: Grid,
    boxes: int = BOUND_BOXES,
    deadline: Deadline = NO_DEADLINE,
) -> ContinuousCertificate:
    """Solve the design on the bins of one grid, and certify its best mechanism."""
    # The tolerance of the design on the bins, as a share of its scale: far below what bins cost.
    on_bins = 1e-6
    design = program.design_on_grid(grid)
    options = MethodOptions(deadline.at_least(1e-3), on_bins)
    question = find_registry(design)
    start = question.make_start(design, None, options.deadline)
    failed: list[str] = []
    found: LinearCertificate | None = None
    methods = question.list_automatic(design, start)

    def report(method: Method[Any, Any, Any], cause: BaseException) -> None:
        failed.append(describe_failure(method, cause))

    for _, result in try_methods(methods, design, options, start, report):
        tried = result.certificate
        found = tried if found is None or tried.proved_gap < found.proved_gap else found
        if found.proved_gap <= design.compute_allowed_gap(on_bins):
            break
    if found is None and deadline.is_limited:
        found = find_first_mechanism(design).certificate
    if found is None:
        raise MethodError(f"no solver on {grid.size} bins: {'; '.join(failed)}")
    rho = _spread_multipliers(program, design, grid, found.multipliers)
    bound, boxes = _compute_bound(program, grid, rho, boxes, deadline)
    return ContinuousCertificate(
        mechanism=found.mechanism,
        value=found.value,
        bound=bound,
        secret=program.secret,
        utility=program.utility,
        grid=grid,
        multipliers=rho,
        boxes=boxes,
        bins=found,
    )


def _compute_bound(
    program: ContinuousDesign, grid: Grid, rho: FloatArray, boxes: int, deadline: Deadline
) -> tuple[float, int]:
    """Compute the lower bound on more and more boxes until time is over; return it with their number."""
    # in limited time the first bound is computed on 8 times fewer boxes
    count = max(2, boxes // 8) if deadline.is_limited else boxes
    found = []
    while True:
        before = deadline.read()
        found.append(
            (bound_loss(program.secret, program.privacy, program.utility, grid, rho, count), count)
        )
        # a bound on twice as many boxes takes about 5 times as long: four times as many losses, sorted
        if count >= boxes or deadline.expired_for(5 * (before - deadline.read())):
            return max(found)
        count = min(2 * count, boxes)


def _spread_multipliers(
    program: ContinuousDesign, design: LinearDesign, grid: Grid, found: FloatArray | None
) -> FloatArray:
    """Expand the multipliers of bins with positive probability to all bins, by nearest neighbours."""
    inside = np.zeros(design.prior.size) if found is None else found
    kept = program.secret.masses(grid) > 0
    where = np.flatnonzero(kept)
    # (size, kept) distances of bins in index: the closest bin that has a multiplier
    nearest = where[np.abs(np.arange(grid.size)[:, None] - where).argmin(axis=1)]
    all_bins = np.zeros(grid.size)
    # multipliers are for centred gains: offsets and sign turn them into those of losses
    all_bins[kept] = design.row_offsets - inside
    return np.asarray(all_bins[nearest])


def _compute_bin_costs(found: ContinuousCertificate) -> FloatArray:
    """Compute each bin's contribution to the discretization gap, which decides where to refine."""
    grid = found.grid
    matrix = found.bins.prior.pmf[:, None] * found.mechanism.matrix
    kept = found.secret.masses(grid) > 0
    apart = found.utility.evaluate_distances(grid.compute_min_distances())[kept]
    lost = matrix * np.maximum(found.bins.table - apart, 0.0)
    # both sides count: as an output's bin, and as a secret's
    rate = lost.sum(axis=0)
    rate[kept] += lost.sum(axis=1)
    return np.asarray(rate)


METHODS = MethodRegistry(
    ContinuousDesign,
    (
        Method(
            "refinement",
            "bins halved where they cost most, with both ends of the loss at each step",
            GridRefinement(),
        ),
    ),
    reject_warm_start(
        "a continuous secret has no letters that a mechanism could start from: leave it out"
    ),
    refuse_to_certify(
        "a matrix has no bins: certify it in `program.on(grid)`, a design on the bins"
    ),
)
"""Designs for continuous secrets: what bins reach, next to what nothing betters."""

register_question(METHODS)
