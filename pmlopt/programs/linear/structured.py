"""The structured interior point as a solver of the dispatch."""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pmlopt.arrays import FloatArray
from pmlopt.backends.outcome import Options, Outcome
from pmlopt.backends.outcome import Point as Found
from pmlopt.backends.structured.block_program import Task
from pmlopt.backends.structured.interior_point import minimise
from pmlopt.backends.structured.point import Point
from pmlopt.backends.structured.starts import centre, kept, pushed
from pmlopt.backends.threads import one_thread
from pmlopt.closed_forms import constant
from pmlopt.errors import MechanismError
from pmlopt.exact.repair import roughly
from pmlopt.programs.linear.dual_bound import raw_bound
from pmlopt.programs.linear.program import LinearDesign
from pmlopt.utility.linear import expectation

NAME = "structured"

START_GAP_SHARE = 0.01
"""The gap, as a share of the utility's range, at which a point is kept as a start for a program nearby."""


def run(
    program: LinearDesign, task: Task, options: Options, arrays: Mapping[str, NDArray[Any]] | None = None
) -> Outcome:
    """Solve a design in column blocks to the certified gap that was asked for.

    Args:
        program: the design.
        task: the same as numbers.
        options: what was asked.
        arrays: what `kept` has kept of a neighbour's solve.
    """
    begin = time.perf_counter()
    near = None if arrays is None else pushed(task, arrays)
    start = centre(task) if near is None else near

    def gap_of(point: Point) -> float:
        try:
            matrix = roughly(program.prior, program.privacy, point.mechanism)
        except MechanismError:  # far from any mechanism
            return np.inf
        return _gap(program, matrix, task.multipliers(point.rows)) / task.scale

    allowed = program.allowed_gap(options.tolerance) / task.scale
    halfway = START_GAP_SHARE * program.scale / task.scale
    ready = time.perf_counter()
    with one_thread():
        ending = minimise(task, start, gap_of, allowed / 2, halfway, options.time_limit)
    found, message = Found(ending.point.mechanism, task.multipliers(ending.point.rows)), ending.message
    proved = ending.gap <= allowed
    if not proved:  # at a level of next to nothing there is hardly an inside to move in
        still = constant(program.prior, program.centred).matrix
        worth = (still * program.centred).sum(axis=1)
        if _gap(program, still, worth) / task.scale <= allowed:
            found, message, proved = Found(still, worth), "a constant is within the tolerance", True
    return Outcome(
        state="point",
        finished=proved,
        message=message,
        iterations=ending.iterations,
        warm_started=near is not None,
        compile_seconds=ready - begin,
        solve_seconds=time.perf_counter() - ready,
        found=found,
        restart=kept(task, ending.halfway),
    )


def _gap(program: LinearDesign, matrix: FloatArray, rho: FloatArray) -> float:
    """What the multipliers leave open of a mechanism's value, but for rounding: to steer by, not to claim."""
    prior, gains = program.prior, program.centred
    return raw_bound(prior, program.privacy, gains, rho) - expectation(prior, gains, matrix)


def task_of(program: object) -> Task | None:
    """The program as numbers; None where constraints were added, or the requirement has no blocks."""
    if not isinstance(program, LinearDesign) or program.block is None:
        return None
    costs = -program.prior.pmf[:, None] * program.centred
    largest = float(np.abs(costs).max())
    scale = largest if largest > 0 else 1.0
    return Task(program.prior, costs / scale, scale, program.block)
