"""The interior point in column blocks, as a method for linear designs."""

from __future__ import annotations

import time

import numpy as np

from pmlopt.core.arrays import FloatArray
from pmlopt.errors import MechanismError
from pmlopt.model.closed_forms import constant
from pmlopt.model.utility.linear import expectation
from pmlopt.programs.exact.repair import roughly
from pmlopt.programs.linear.program import LinearDesign
from pmlopt.solvers.outcome import Options, Outcome, one_thread
from pmlopt.solvers.outcome import Point as Found
from pmlopt.solvers.structured.block_program import Task
from pmlopt.solvers.structured.interior_point import minimise
from pmlopt.solvers.structured.points import Point, centre

NAME = "structured"


def run(program: LinearDesign, task: Task, options: Options) -> Outcome:
    """Solve a design in column blocks to the requested certified gap.

    Args:
        program: the design; constraints that were added get their multipliers.
        task: the same as numbers.
        options: what was asked.
    """
    begin = time.perf_counter()
    added = program.added_rows() if program.added else None

    def gap(matrix: FloatArray, rho: FloatArray, point: Point) -> float:
        """Compute the gap that the multipliers leave to a mechanism's value, in units of the program's costs.

        But for rounding: to steer by, not to claim.
        """
        gains, more = program.centred, 0.0
        if added is not None:
            gains, more = added.bound_of(gains, program.prior, added.multipliers(task, point))
        bound = program.columns.raw_bound(gains, rho) + more
        return abs(bound - expectation(program.prior, program.centred, matrix)) / task.scale

    def gap_of(point: Point) -> float:
        try:
            matrix = roughly(program.prior, program.privacy, point.parts(task.allowed, task.hinged)[0])
        except MechanismError:  # far from any mechanism
            return np.inf
        return gap(matrix, task.multipliers(point.rows), point)

    allowed = program.allowed_gap(options.tolerance) / task.scale
    ready = time.perf_counter()
    with one_thread():
        ending = minimise(task, centre(task), gap_of, allowed / 2, options.clock)
    found = Found(ending.point.parts(task.allowed, task.hinged)[0], task.multipliers(ending.point.rows))
    message = ending.message
    proved = ending.gap <= allowed
    if added is not None:
        added.save(added.multipliers(task, ending.point))
    elif not proved:  # at a level of next to nothing there is hardly an inside to move in
        still = constant(program.prior, program.centred).matrix
        worth = (still * program.centred).sum(axis=1)
        if gap(still, worth, ending.point) <= allowed:
            found, message, proved = Found(still, worth), "a constant is within the tolerance", True
    return Outcome(
        state="point",
        finished=proved and added is None,  # with rows of one's own the certificate has the last word
        message=message,
        iterations=ending.iterations,
        warm_started=False,
        compile_seconds=ready - begin,
        solve_seconds=time.perf_counter() - ready,
        found=found,
    )
