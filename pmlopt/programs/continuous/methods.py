"""The method for continuous secrets: solve on bins, bound from below, halve the bins that cost most."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from pmlopt.arrays import FloatArray
from pmlopt.backends.outcome import Options, seconds_until
from pmlopt.errors import ProgramError
from pmlopt.grids import Grid
from pmlopt.programs.continuous.bracket import BOUND_BOXES, least_loss
from pmlopt.programs.continuous.certificate import ContinuousCertificate
from pmlopt.programs.continuous.program import ContinuousDesign
from pmlopt.programs.kind import Found, Kind, Method, MethodError
from pmlopt.programs.linear.methods import LinearKind
from pmlopt.programs.linear.program import LinearDesign
from pmlopt.result import WarmStart, restart_of

ON_BINS = 1e-6
"""The tolerance of the design on the bins, as a share of its scale: far below what bins cost."""


@dataclass(frozen=True)
class Refinement(Method[ContinuousDesign, None, ContinuousCertificate]):
    """Designs on finer and finer bins, until the loss and its bound are close.

    Args:
        most: the number of bins past which none are halved any more.
        boxes: on about how many boxes the bound is computed; its error shrinks as one over them, along each
            axis.

    Raises:
        ProgramError: fewer than two bins, or two boxes, are allowed.
    """

    most: int = 512
    boxes: int = BOUND_BOXES
    name: str = "refinement"
    reason: str = "bins halved where they cost most, with both ends of the loss at each step"

    def __post_init__(self) -> None:
        if min(self.most, self.boxes) < 2:
            raise ProgramError(f"{self.most} bins and {self.boxes} boxes: allow two of each at least")

    def run(self, program: ContinuousDesign, options: Options, start: None) -> Found[ContinuousCertificate]:
        """Solve, bound, halve; the best bound of all steps is kept with the best value."""
        begin = time.perf_counter()
        deadline = options.deadline(begin)
        allowed = program.allowed_gap(options.tolerance)
        grid, steps = program.first, 0
        best: ContinuousCertificate | None = None
        while True:
            found = certified_on(program, grid, self.boxes, seconds_until(deadline, least=1e-3))
            steps += 1
            best = found if best is None or found.gap < best.gap else best
            finer = grid.halved_where(_cost(found))
            finished = best.gap <= allowed or finer.size > self.most
            if finished or time.perf_counter() >= deadline:
                break
            grid = finer
        detail = f"{steps} grids, the last of {grid.size} bins"
        seconds = time.perf_counter() - begin
        return Found(
            certificate=best,
            finished=finished,
            message=detail,
            detail=detail,
            iterations=steps,
            solve_seconds=seconds,
        )


def certified_on(
    program: ContinuousDesign, grid: Grid, boxes: int = BOUND_BOXES, seconds: float | None = None
) -> ContinuousCertificate:
    """The certificate of the best mechanism on the bins of a grid."""
    design = program.on(grid)
    kind = LinearKind()
    start = kind.start(design, None)
    failed = []
    for method in kind.automatic(design, start):
        try:
            found = method.run(design, Options(seconds, ON_BINS), start).certificate
        except MethodError as cause:
            failed.append(f"{method.name}: {cause}")
            continue
        if found.gap <= design.allowed_gap(ON_BINS) or seconds is not None:
            break
    else:
        raise MethodError(f"no solver on {grid.size} bins: {'; '.join(failed)}")
    rho = _multipliers(program, design, grid, found.multipliers)
    bound = max(0.0, least_loss(program.secret, program.privacy, program.utility, grid, rho, boxes))
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


def _multipliers(
    program: ContinuousDesign, design: LinearDesign, grid: Grid, found: FloatArray | None
) -> FloatArray:
    """(size,) the multipliers of the losses on all bins; those without probability have their neighbours'."""
    inside = np.zeros(design.prior.size) if found is None else found
    kept = program.secret.masses(grid) > 0
    where = np.flatnonzero(kept)
    nearest = where[np.abs(np.arange(grid.size)[:, None] - where).argmin(axis=1)]
    all_bins = np.zeros(grid.size)
    all_bins[kept] = design.offsets - inside
    return np.asarray(all_bins[nearest])


def _cost(found: ContinuousCertificate) -> FloatArray:
    """(size,) what each bin costs: the loss less that of the nearest points, as secret and as output."""
    grid, matrix = found.grid, found.bins.prior.pmf[:, None] * found.mechanism.matrix
    kept = found.secret.masses(grid) > 0
    apart = found.utility.of(grid.nearest())[kept]
    lost = matrix * np.maximum(found.bins.table - apart, 0.0)
    share = lost.sum(axis=0)
    share[kept] += lost.sum(axis=1)
    return np.asarray(share)


class ContinuousKind(Kind[ContinuousDesign, None, ContinuousCertificate]):
    """Designs for continuous secrets: what bins reach, beside what nothing betters."""

    names = (Refinement.name,)

    def start(self, program: ContinuousDesign, warm_start: WarmStart) -> None:
        """Nothing: each grid has letters of its own.

        Raises:
            ProgramError: a mechanism was given.
        """
        if warm_start is not None and warm_start is not False and restart_of(warm_start) is None:
            raise ProgramError(
                "a continuous secret has no letters that a mechanism could start from: leave it out"
            )

    def automatic(self, program: ContinuousDesign, start: None) -> Sequence[Refinement]:
        """The refinement of bins, the only method."""
        return [Refinement()]

    def certify(
        self, program: ContinuousDesign, matrix: FloatArray, multipliers: FloatArray | None
    ) -> Found[ContinuousCertificate]:
        """There are no letters for a matrix to be on.

        Raises:
            ProgramError: always.
        """
        raise ProgramError("a matrix has no bins: certify it in `program.on(grid)`, a design on the bins")
