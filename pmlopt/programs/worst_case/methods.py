"""The method for the highest threshold: a binary search, with a least leakage at each threshold."""

from __future__ import annotations

import math
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import partial

import numpy as np

from pmlopt.arrays import FloatArray
from pmlopt.backends.outcome import Options, seconds_until
from pmlopt.errors import MechanismError, ProgramError
from pmlopt.programs.kind import Found, Kind, Method, certified
from pmlopt.programs.least_leakage.certificate import LevelCertificate
from pmlopt.programs.least_leakage.certifying import NOISE_THRESHOLDS
from pmlopt.programs.least_leakage.level_search import decide
from pmlopt.programs.least_leakage.methods import SMALL_ENTRIES, LeastLeakageKind, LevelSearch
from pmlopt.programs.least_leakage.program import LeastLeakage
from pmlopt.programs.worst_case.certificate import ThresholdCertificate, keeps
from pmlopt.programs.worst_case.program import BestWorstCase
from pmlopt.result import WarmStart, restart_of


@dataclass
class _Tried:
    """The thresholds tried so far."""

    program: BestWorstCase
    options: Options
    found: list[Found[LevelCertificate]] = field(default_factory=list)
    thresholds: set[int] = field(default_factory=set)

    def __post_init__(self) -> None:
        self._deadline = self.options.deadline(time.perf_counter())

    def at(self, threshold: int) -> LevelCertificate:
        """The least leakage at a threshold; of a large table, as much of it as decides about epsilon."""
        self.thresholds.add(threshold)
        least = self.program.at(threshold)
        if self.program.order.size > SMALL_ENTRIES and self.program.over is None:
            level = self._run(least, LevelSearch(search=partial(decide, self.program.epsilon)))
            if keeps(level, self.program.epsilon) or level.bound > self.program.epsilon:
                return level
        return self._run(least, LevelSearch())

    def _run(self, least: LeastLeakage, method: LevelSearch) -> LevelCertificate:
        """What a method makes of a threshold, in the time that is left."""
        left = seconds_until(self._deadline, least=1e-3)
        start = LeastLeakageKind().start(least, None)
        self.found.append(method.run(least, Options(left, least.tolerance), start))
        return self.found[-1].certificate

    @property
    def late(self) -> bool:
        """Whether the time is over."""
        return time.perf_counter() >= self._deadline


@dataclass(frozen=True)
class ThresholdSearch(Method[BestWorstCase, None, ThresholdCertificate]):
    """A binary search over the threshold: the least leakage does not fall with it."""

    name: str = "threshold-search"
    reason: str = "binary search over the threshold, with a least leakage at each"

    def run(self, program: BestWorstCase, options: Options, start: None) -> Found[ThresholdCertificate]:
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


class WorstCaseKind(Kind[BestWorstCase, None, ThresholdCertificate]):
    """Highest thresholds: the one that is kept is returned with the highest that is not ruled out."""

    names = (ThresholdSearch.name,)

    def start(self, program: BestWorstCase, warm_start: WarmStart) -> None:
        """Nothing: each threshold starts from its own closed form.

        Raises:
            ProgramError: a mechanism was given.
        """
        if warm_start is not None and warm_start is not False and restart_of(warm_start) is None:
            raise ProgramError("a highest threshold starts from closed forms: leave out the mechanism")

    def automatic(self, program: BestWorstCase, start: None) -> Sequence[ThresholdSearch]:
        """The search over thresholds, the only method."""
        return [ThresholdSearch()]

    def certify(
        self, program: BestWorstCase, matrix: FloatArray, multipliers: FloatArray | None
    ) -> Found[ThresholdCertificate]:
        """The lowest rank that the matrix emits, where its level is within epsilon; nothing is ruled out."""
        if matrix.shape != program.order.shape:
            raise MechanismError(f"the matrix has shape {matrix.shape}, not {program.order.shape}")
        if multipliers is not None:
            raise ProgramError("a highest threshold has no multipliers of rows: certify the matrix alone")
        low = int(program.order[matrix > max(NOISE_THRESHOLDS)].min())
        least = program.at(low)
        kept = LeastLeakageKind().certify(least, matrix, None).certificate
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
