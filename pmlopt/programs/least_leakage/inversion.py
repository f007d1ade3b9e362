"""The best that one level after another allows, by the interior point method of designs."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pmlopt.core.arrays import FloatArray
from pmlopt.errors import MechanismError
from pmlopt.model.privacy import PML
from pmlopt.model.utility import ExpectedGain
from pmlopt.programs.exact.repair import roughly
from pmlopt.programs.least_leakage.certificate import Multipliers
from pmlopt.programs.least_leakage.program import LeastLeakage
from pmlopt.programs.linear import structured
from pmlopt.programs.linear.program import LinearDesign, linear_design
from pmlopt.solvers.clock import Clock
from pmlopt.solvers.outcome import Options, one_thread
from pmlopt.solvers.structured.block import mean_block
from pmlopt.solvers.structured.block_program import Task, attainable
from pmlopt.solvers.structured.interior_point import minimise
from pmlopt.solvers.structured.points import centre
from pmlopt.solvers.two_sided_search import Answer

DESIGN_TOLERANCE = 1e-10
"""The gap of each design, as a share of what the choice of outputs can change: a tenth of what a level that
is proved to 1e-9 needs, and as fine as the interior point method gets."""

MASS_TOLERANCE = 1e-11
"""The gap of each largest mass, which is 1 where a level suffices."""


class GainWithin:
    """The best expected gain within one level after another, each from the point that the last one left."""

    def __init__(self, program: LeastLeakage) -> None:
        assert program.floor is not None
        self.program, self.floor, self.iterations = program, program.floor, 0
        self.utility = ExpectedGain(program.floor.gains)
        self._left: Mapping[str, NDArray[Any]] | None = None

    def ask(self, share: float, clock: Clock) -> Answer[Multipliers]:
        """The best expected gain at a share e^-epsilon."""
        prior = self.program.prior
        design = linear_design(prior, PML(-math.log(share)), self.utility, self.program.outputs)
        task = design.task()
        if task is None:
            raise ArithmeticError("a level of 0 has no inside")
        outcome = structured.run(design, task, Options(clock, DESIGN_TOLERANCE), self._left)
        self._left = outcome.restart or None
        self.iterations += outcome.iterations or 0
        if outcome.found is None or outcome.found.multipliers is None:
            raise ArithmeticError(outcome.message)
        try:
            matrix = roughly(prior, design.privacy, outcome.found.matrix)
        except MechanismError as cause:
            raise ArithmeticError(str(cause)) from cause
        worth = outcome.found.multipliers + design.offsets
        return Answer(
            point=matrix,
            proof=Multipliers(-worth, 1.0),
            missing=self.floor.relaxed - design.utility.value(prior, matrix),
            slope=_slope(design, matrix, worth, share),
        )


def _slope(design: LinearDesign, matrix: FloatArray, worth: FloatArray, share: float) -> float:
    """By how much the best expected gain falls with the share.

    With the multipliers w of the rows it is `<p, w>` plus the mean over outputs of the largest mean of g - w
    over a share s of the letters. The derivative of that in s is what the last letter in it has beyond the
    mean, over s.
    """
    p = design.prior.pmf
    over = design.table - worth[:, None]
    order = np.argsort(-over, axis=0, kind="stable")
    last = (np.cumsum(p[order], axis=0) < share).sum(axis=0)
    at = order[np.minimum(last, len(p) - 1), np.arange(matrix.shape[1])]
    law = p @ matrix
    means = (p[:, None] * over * matrix).sum(axis=0)  # law times the largest mean
    return float((means - law * over[at, np.arange(len(law))]).sum() / share)


class MassWithin:
    """How much of the rows allowed pairs can fill within one level after another."""

    def __init__(self, program: LeastLeakage) -> None:
        self.program, self.iterations = program, 0

    def ask(self, share: float, clock: Clock) -> Answer[Multipliers]:
        """The largest mass `sum_xy p[x] P[x,y]` at a share e^-epsilon, where rows may stay short."""
        prior = self.program.prior
        block = mean_block(prior.pmf, share)
        if block is None:
            raise ArithmeticError("a level of 0 has no inside")
        allowed = attainable(block, self.program.allowed)
        scale = float(prior.pmf.max())
        costs = np.repeat(-prior.pmf[:, None] / scale, allowed.shape[1], axis=1)
        task = Task(prior, costs, scale, block, allowed, short=True)
        with one_thread():
            ending = minimise(
                task, centre(task), lambda point: point.gap, MASS_TOLERANCE / scale, clock=clock
            )
        self.iterations += ending.iterations
        point = ending.point
        matrix, _ = point.parts(task.allowed, task.hinged)
        missing = max(0.0, 1 - float((prior.pmf @ matrix).sum()))
        slope = scale * abs(float((point.means * point.scalars).sum()))
        return Answer(
            point=matrix,
            proof=Multipliers(1 - task.multipliers(point.rows)),
            missing=missing,
            slope=slope if missing > MASS_TOLERANCE else math.nan,  # where all fits, nothing tells the root
        )
