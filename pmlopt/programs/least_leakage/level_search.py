"""The search for the least level: linear programs at one level each, and proofs from their multipliers."""

from __future__ import annotations

import math
import time
from dataclasses import dataclass

import numpy as np

from pmlopt.arrays import FloatArray
from pmlopt.backends.outcome import Options
from pmlopt.backends.parametric_program import MovingProgram
from pmlopt.backends.two_sided_search import TIME, Answer, Search
from pmlopt.closed_forms.worst_case import uniform_on
from pmlopt.measures import leakage_level
from pmlopt.programs.least_leakage.certificate import Multipliers, least_level
from pmlopt.programs.least_leakage.certifying import best_allowed, cleaned
from pmlopt.programs.least_leakage.program import LeastLeakage

SEARCH_TOLERANCE_SHARE = 1e-2
"""The share of the tolerance at which the search ends: the last programs cost next to nothing."""


@dataclass(frozen=True, eq=False)
class Found:
    """The two ends of the search over levels, with what proves each.

    Attributes:
        matrix: (N, M) the best mechanism, or None.
        proofs: multipliers that prove the bound.
        iterations: of the simplex, in all.
        ending: in words.
        finished: whether it ended by itself.
        compile_seconds, solve_seconds: its cost.
    """

    matrix: FloatArray | None
    proofs: list[Multipliers]
    iterations: int
    ending: str
    finished: bool
    compile_seconds: float
    solve_seconds: float


def search_level(program: LeastLeakage, start: FloatArray | None, options: Options) -> Found:
    """Close in on the least level from both ends: a search over the share e^-epsilon.

    Args:
        program: what is asked for.
        start: a mechanism that meets the demands, or None.
        options: the time limit, and the gap, in nats, that is good enough: it ends at a hundredth of that.
    """
    begin = time.perf_counter()
    task = _LevelTask(program)
    first = None if start is None else task.witness(start)
    search = Search(
        task,
        [] if first is None else [first],
        [support_multipliers(program)],
        SEARCH_TOLERANCE_SHARE * options.tolerance,
        options.time_limit,
    )
    ending = search.run()
    compiling = 0.0 if task.moving is None else task.moving.seconds
    return Found(
        matrix=search.witness,
        proofs=search.proofs,
        iterations=0 if task.moving is None else task.moving.iterations,
        ending=f"{ending} after {search.programs} linear programs",
        finished=ending != TIME,
        compile_seconds=compiling,
        solve_seconds=time.perf_counter() - begin - compiling,
    )


class _LevelTask:
    """The least level as the largest share e^-epsilon that can be reached."""

    def __init__(self, program: LeastLeakage) -> None:
        self.program = program
        self.blur = 0.0 if program.floor is None else 10 * program.floor.rounding
        self.marks = np.zeros(0)
        self.moving: MovingProgram | None = None
        self._masses = program.prior.pmf @ program.allowed

    def solve(self, number: float, seconds: float | None) -> Answer[Multipliers]:
        program = self.program
        if self.moving is None:
            self.moving = MovingProgram(program.problem, program.share)
        # an output that only letters of less mass may emit leaks more, and cannot occur
        peaks = self.moving.columns(program.variables["column_maximum"])
        self.moving.fix(peaks, self._masses < number * (1 - 1e-12))
        missing, slope = self.moving.solve(number, seconds)
        floor = program.constraints.get("expected")
        return Answer(
            missing=missing,
            slope=slope,
            point=program.matrix(np.asarray(program.variables["entries"].value)),
            proof=Multipliers(
                -np.asarray(program.constraints["rows"].dual_value) / program.prior.pmf,
                0.0 if floor is None else float(floor.dual_value),
            ),
        )

    def witness(self, point: FloatArray) -> tuple[float, FloatArray] | None:
        clean = cleaned(self.program, self._filled(point))
        return None if clean is None else (math.exp(-leakage_level(self.program.prior, clean)), clean)

    def proved(self, proof: Multipliers) -> float:
        program = self.program
        return math.exp(-least_level(program.prior, program.allowed, program.floor, proof))

    def beyond(self, now: Multipliers, then: Multipliers, step: float) -> Multipliers:
        return now.towards(then, -step)

    def _filled(self, matrix: FloatArray) -> FloatArray:
        """The matrix with what its rows are short put on the allowed outputs; noise is left short."""
        short = np.maximum(1 - matrix.sum(axis=1, keepdims=True), 0.0)
        if short.max() <= 1e-9:
            return matrix
        program = self.program
        spread = uniform_on(program.allowed).matrix if program.floor is None else best_allowed(program)
        return np.asarray(matrix + short * spread)


def support_multipliers(program: LeastLeakage) -> Multipliers:
    """A one for the letter whose likeliest output is least likely: proves `closed_forms.support_bound`."""
    masses = program.prior.pmf @ program.allowed
    best = np.where(program.allowed, masses, 0.0).max(axis=1)
    rows = np.zeros(len(best))
    rows[int(best.argmin())] = 1.0
    return Multipliers(rows)
