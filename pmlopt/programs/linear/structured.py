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
from pmlopt.backends.structured.band import Band
from pmlopt.backends.structured.band_program import Task, have
from pmlopt.backends.structured.interior_point import minimise
from pmlopt.backends.structured.newton import Point
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

START_CONSTANT_SHARE = 0.3
"""The share of constant columns with which a neighbour's point is pushed inside."""


def run(
    program: LinearDesign, task: Task, options: Options, arrays: Mapping[str, NDArray[Any]] | None = None
) -> Outcome:
    """Solve a banded design to the certified gap that was asked for.

    Args:
        program: the design.
        task: the same as numbers.
        options: what was asked.
        arrays: "halfway", "low", "rows" and "means", which a neighbour's solve has left.
    """
    begin = time.perf_counter()
    near = None if arrays is None else pushed(task, arrays)
    start = centre(task) if near is None else near

    def gap_of(point: Point) -> float:
        try:
            matrix = roughly(program.prior, program.privacy, point.mechanism)
        except MechanismError:  # far from any mechanism
            return np.inf
        return _gap(program, matrix, task.multipliers(point.y)) / task.scale

    allowed = program.allowed_gap(options.tolerance) / task.scale
    halfway = START_GAP_SHARE * program.scale / task.scale
    ready = time.perf_counter()
    with one_thread():
        ending = minimise(task, start, gap_of, allowed / 2, halfway, options.time_limit)
    found, message = Found(ending.point.mechanism, task.multipliers(ending.point.y)), ending.message
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
        restart=_kept(task, ending.halfway),
    )


def _gap(program: LinearDesign, matrix: FloatArray, rho: FloatArray) -> float:
    """What the multipliers leave open of a mechanism's value, but for rounding: to steer by, not to claim."""
    prior, gains = program.prior, program.centred
    return raw_bound(prior, program.privacy, gains, rho) - expectation(prior, gains, matrix)


def _kept(task: Task, point: Point | None) -> Mapping[str, NDArray[Any]]:
    if point is None:
        return {}
    rows, means = task.scale * point.y, task.scale * point.z
    return {"halfway": point.mechanism, "low": point.low, "rows": rows, "means": means}


def _given(task: Task, arrays: Mapping[str, NDArray[Any]]) -> tuple[FloatArray, ...] | None:
    """What `_kept` has kept, if it is of this shape: it may come from a file."""
    n, m = task.costs.shape
    shapes = {"halfway": (n, m), "low": (m,), "rows": (n,), "means": (m,)}
    if not have(arrays, shapes):
        return None
    found = tuple(arrays[name] for name in shapes)
    return found if all(part.dtype.kind == "f" and np.isfinite(part).all() for part in found) else None


def pushed(task: Task, arrays: Mapping[str, NDArray[Any]]) -> Point | None:
    """A neighbour's point pushed inside the bands of this task; None where it is too far or of another shape.

    The matrix is mixed with its own law. The multipliers of the entries are those that its rows and means
    leave, and enough more for products of one size.
    """
    given = _given(task, arrays)
    if given is None:
        return None
    band, m = task.band, task.costs.shape[1]
    matrix = np.maximum(given[0], 1e-3 / m)
    matrix /= matrix.sum(axis=1, keepdims=True)
    law = task.prior.pmf @ matrix
    inside = (1 - START_CONSTANT_SHARE) * matrix + START_CONSTANT_SHARE * law
    floor = (1 - START_CONSTANT_SHARE) * given[1] + START_CONSTANT_SHARE * law * band.inside[-1]
    scalars = _scalars(band, inside, floor)
    low, high = band.lower @ scalars, band.upper @ scalars
    above, below = inside - low, high - inside
    if not min(above.min(), below.min(), scalars.min()) > 0:
        return None
    y, z = given[2] / task.scale, given[3] / task.scale
    reduced = task.costs - y[:, None]
    if band.weights is not None:
        reduced -= band.weights[:, None] * z
    up, down = np.maximum(reduced, 0.0), np.maximum(-reduced, 0.0)
    mu = max(float(np.vdot(up, above) + np.vdot(down, below)), 1e-12) / task.pairs
    most = max(float(np.abs(reduced).max()), 1e-3)
    return Point(
        above=above,
        below=below,
        scalars=scalars,
        low=low,
        a=up + np.minimum(mu / above, most),
        b=down + np.minimum(mu / below, most),
        f=mu / low if band.floored else np.zeros(m),
        y=y,
        z=z,
    )


def _scalars(band: Band, matrix: FloatArray, floor: FloatArray) -> FloatArray:
    """(k, M) scalars whose ends are off the columns of a matrix, if there are; `floor` where it is free."""
    least, largest = matrix.min(axis=0), matrix.max(axis=0)
    if band.weights is None or band.mean is None:
        return np.array([np.sqrt(least * largest / (band.lower[0] * band.upper[0]))])
    means = band.weights @ matrix
    if not band.floored:
        return np.array([means / band.mean[0]])
    return np.array([(means - band.mean[1] * floor) / band.mean[0], floor])


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


def task_of(program: object) -> Task | None:
    """The program as numbers; None where constraints were added, or the requirement is not a band."""
    if not isinstance(program, LinearDesign) or program.band is None:
        return None
    costs = -program.prior.pmf[:, None] * program.centred
    largest = float(np.abs(costs).max())
    scale = largest if largest > 0 else 1.0
    return Task(program.prior, costs / scale, scale, program.band)
