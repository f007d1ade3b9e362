"""The structured interior point as a solver of the dispatch."""

from __future__ import annotations

import time
from contextlib import AbstractContextManager
from functools import cache
from typing import Any, cast

import numpy as np
from threadpoolctl import ThreadpoolController

from pmlopt.builders import LinearDesign
from pmlopt.certificate import utility_bound
from pmlopt.certificate.repair import roughly
from pmlopt.checks import FloatArray
from pmlopt.solvers.banded.interior import minimise
from pmlopt.solvers.banded.newton import Point
from pmlopt.solvers.banded.task import Task
from pmlopt.solvers.outcome import Options, Outcome
from pmlopt.solvers.outcome import Point as Found
from pmlopt.utility.linear import expectation

NAME = "structured"

SHARE = 0.01
"""The share of the tolerance at which it ends: one or two iterations more leave a cleaner matrix."""


def run(program: LinearDesign, task: Task, options: Options) -> Outcome:
    """Solve a banded design to the certified gap that was asked for."""
    begin = time.perf_counter()
    start = centre(task)

    def gap_of(point: Point) -> float:
        matrix = roughly(program.prior, program.privacy, point.mechanism)
        rho = task.multipliers(point.y)
        bound = utility_bound(program.prior, program.privacy, program.centred, rho)
        return (bound - expectation(program.prior, program.centred, matrix)) / task.scale

    allowed = max(options.tolerance * program.range, program.rounding)
    ready = time.perf_counter()
    with one_thread():
        ending = minimise(task, start, gap_of, SHARE * allowed / task.scale, options.time_limit)
    return Outcome(
        state="point",
        finished=ending.proved,
        message=ending.message,
        iterations=ending.iterations,
        warm_started=False,
        compile_seconds=ready - begin,
        solve_seconds=time.perf_counter() - ready,
        found=Found(ending.point.mechanism, task.multipliers(ending.point.y)),
    )


@cache
def _blas() -> ThreadpoolController:
    return ThreadpoolController()


def one_thread() -> AbstractContextManager[Any]:
    """One thread of BLAS: these matrices gain little from more, and where cores are busy, lose manyfold."""
    return cast("AbstractContextManager[Any]", _blas().limit(limits=1, user_api="blas"))


def centre(task: Task) -> Point:
    """The uniform mechanism, strictly inside, with multipliers for which each entry's cost is met."""
    n, m = task.costs.shape
    band = task.band
    scalars = np.repeat(band.inside[:, None] / m, m, axis=1)
    low, high = band.lower @ scalars, band.upper @ scalars
    y = task.costs.mean(axis=1)
    reduced = task.costs - y[:, None]
    size = max(float(np.abs(reduced).max()) / 2, 1e-3)
    return Point(
        above=_filled(1 / m - low, n),
        below=_filled(high - 1 / m, n),
        scalars=scalars,
        low=low,
        a=np.maximum(reduced, 0.0) + size,
        b=np.maximum(-reduced, 0.0) + size,
        f=np.full(m, size * n if band.floored else 0.0),
        y=y,
        z=np.zeros(m),
    )


def _filled(row: FloatArray, n: int) -> FloatArray:
    return np.repeat(row[None, :], n, axis=0)
