"""The method for the highest threshold: a binary search, with a least leakage at each threshold."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from functools import partial

import numpy as np

from pmlopt.core.arrays import FloatArray
from pmlopt.errors import MechanismError, ProgramError
from pmlopt.programs.least_leakage import methods as least_leakage
from pmlopt.programs.least_leakage.certificate import LevelCertificate
from pmlopt.programs.least_leakage.certifying import NOISE_THRESHOLDS, certify_level
from pmlopt.programs.least_leakage.level_search import Searching, decide, search_level
from pmlopt.programs.least_leakage.program import LeastLeakage
from pmlopt.programs.question import Found, Method, Question, certified, starts_cold
from pmlopt.programs.worst_case.certificate import ThresholdCertificate, keeps
from pmlopt.programs.worst_case.program import BestWorstCase
from pmlopt.solvers.outcome import Options


@dataclass
class _Tried:
    """The thresholds tried so far."""

    program: BestWorstCase
    options: Options
    found: list[Found[LevelCertificate]] = field(default_factory=list)
    thresholds: set[int] = field(default_factory=set)

    def at(self, threshold: int) -> LevelCertificate:
        """The least leakage at a threshold; of a large table, as much of it as decides about epsilon."""
        self.thresholds.add(threshold)
        least = self.program.at(threshold)
        if self.program.order.size > least_leakage.SMALL_ENTRIES and self.program.over is None:
            level = self._run(least, partial(decide, self.program.epsilon))
            if keeps(level, self.program.epsilon) or level.bound > self.program.epsilon:
                return level
        return self._run(least, search_level)

    def _run(self, least: LeastLeakage, search: Searching) -> LevelCertificate:
        """What a search makes of a threshold, in the time that is left."""
        start = least_leakage.start(least, None)
        options = Options(self.options.clock.at_least(1e-3), least.tolerance)
        self.found.append(least_leakage.searched(search, certify_level, least, options, start))
        return self.found[-1].certificate

    @property
    def late(self) -> bool:
        """Whether the time is over."""
        return self.options.clock.late


def search_thresholds(program: BestWorstCase, options: Options, _: None) -> Found[ThresholdCertificate]:
    """Search; a threshold whose least leakage is not decided is neither kept nor ruled out."""
    tried = _Tried(program, options)
    low, kept = 1, tried.at(1)
    high, beyond, ruled_out = program.highest + 1, None, program.highest + 1
    while high - low > 1 and not tried.late:
        middle = (low + high) // 2
        level = tried.at(middle)
        if keeps(level, program.epsilon):
            low, kept = middle, level
            continue
        high = middle
        if level.bound > program.epsilon:
            beyond, ruled_out = level, middle
    finished = high - low <= 1
    while ruled_out - high > 1 and not tried.late:  # `high` is not decided: where does the proof begin?
        middle = (high + ruled_out) // 2
        level = tried.at(middle)
        if level.bound > program.epsilon:
            beyond, ruled_out = level, middle
        else:
            high = middle
    certificate = _certificate(program, low, ruled_out - 1, kept, beyond)
    searches = tried.found
    return Found(
        certificate=certificate,
        finished=finished,
        message=f"{len(tried.thresholds)} thresholds tried",
        detail=f"{len(tried.thresholds)} thresholds tried",
        iterations=sum(found.iterations or 0 for found in searches),
        compile_seconds=math.fsum(found.compile_seconds for found in searches),
        solve_seconds=math.fsum(found.solve_seconds for found in searches),
        certify_seconds=math.fsum(found.certify_seconds for found in searches),
        arrays={"matrix": kept.mechanism.matrix},
    )


def _certify(
    program: BestWorstCase, matrix: FloatArray, multipliers: FloatArray | None
) -> Found[ThresholdCertificate]:
    """The lowest rank that the matrix emits, where its level is within epsilon; nothing is ruled out."""
    if matrix.shape != program.order.shape:
        raise MechanismError(f"the matrix has shape {matrix.shape}, not {program.order.shape}")
    if multipliers is not None:
        raise ProgramError("a highest threshold has no multipliers of rows: certify the matrix alone")
    low = int(program.order[matrix > max(NOISE_THRESHOLDS)].min())
    least = program.at(low)
    kept = least_leakage.certify(least, matrix, None).certificate
    if not keeps(kept, program.epsilon):
        raise ProgramError(f"the matrix leaks {kept.level:g} nats, above {program.epsilon:g}")
    return certified(_certificate(program, low, program.highest, kept, None))


def _certificate(
    program: BestWorstCase, low: int, most: int, kept: LevelCertificate, beyond: LevelCertificate | None
) -> ThresholdCertificate:
    """What is claimed where the rank `low` is kept, and those up to `most` are not ruled out."""
    of = np.arange(1.0, low + most + 1) if program.utilities is None else program.utilities
    value, bound = float(of[low - 1]), float(of[most - 1])
    return ThresholdCertificate(
        mechanism=kept.mechanism,
        value=value,
        bound=bound,
        epsilon=program.epsilon,
        kept=kept,
        beyond=beyond,
        order=program.order,
        utilities=program.utilities,
    )


QUESTION = Question(
    BestWorstCase,
    (
        Method(
            "threshold-search",
            "binary search over the threshold, with a least leakage at each",
            search_thresholds,
        ),
    ),
    starts_cold("a highest threshold starts from closed forms: leave out the mechanism"),
    _certify,
)
"""Highest thresholds: the one that is kept is returned with the highest that is not ruled out."""
