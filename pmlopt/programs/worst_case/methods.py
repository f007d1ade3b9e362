"""The method for the highest threshold: a binary search, with a least leakage at each threshold."""

from __future__ import annotations

import math
from functools import partial

import numpy as np

from pmlopt.core.arrays import FloatArray
from pmlopt.errors import MechanismError, ProgramError
from pmlopt.programs.least_leakage import methods as least_leakage
from pmlopt.programs.least_leakage.certificate import LevelCertificate
from pmlopt.programs.least_leakage.certifying import NOISE_THRESHOLDS, certify_level
from pmlopt.programs.least_leakage.level_search import Searching, decide, search_level
from pmlopt.programs.program import Found, Method, Question, certified, starts_cold
from pmlopt.programs.worst_case.certificate import ThresholdCertificate, keeps
from pmlopt.programs.worst_case.program import BestWorstCase
from pmlopt.solvers.outcome import Options


def search_thresholds(program: BestWorstCase, options: Options, _: None) -> Found[ThresholdCertificate]:
    """Search thresholds by bisection; one whose least leakage is undecided is neither kept nor ruled out."""
    found: dict[int, list[Found[LevelCertificate]]] = {}
    clock = options.clock

    def at(threshold: int) -> LevelCertificate:
        """Solve the least leakage at a threshold; of a large table, as far as needed to decide."""
        least, searches = program.at(threshold), found.setdefault(threshold, [])
        start = least_leakage.start(least, None)
        large = program.order.size > least_leakage.SMALL_ENTRIES and program.over is None
        ways: list[Searching] = [partial(decide, program.epsilon)] if large else []
        for search in (*ways, search_level):
            own = Options(clock.at_least(1e-3), least.tolerance)
            searches.append(least_leakage.searched(search, certify_level, least, own, start))
            level = searches[-1].certificate
            if keeps(level, program.epsilon) or level.bound > program.epsilon:
                break
        return level

    low, kept = 1, at(1)
    ruled_out, beyond = program.highest + 1, None
    while (left := [h for h in range(low + 1, ruled_out) if h not in found]) and not clock.late:
        middle = left[len(left) // 2]  # one that is not decided stays between both ends
        level = at(middle)
        if keeps(level, program.epsilon):
            low, kept = middle, level
        elif level.bound > program.epsilon:
            ruled_out, beyond = middle, level
    every = [one for searches in found.values() for one in searches]
    return Found(
        certificate=_certificate(program, low, ruled_out - 1, kept, beyond),
        finished=not left,
        message=f"{len(found)} thresholds tried",
        iterations=sum(one.iterations or 0 for one in every),
        solve_seconds=math.fsum(one.solve_seconds for one in every),
        certify_seconds=math.fsum(one.certify_seconds for one in every),
        arrays={"matrix": kept.mechanism.matrix},
    )


def _certify(
    program: BestWorstCase, matrix: FloatArray, multipliers: FloatArray | None
) -> Found[ThresholdCertificate]:
    """Certify the lowest rank that the matrix emits, where its level is within epsilon."""
    if matrix.shape != program.order.shape:
        raise MechanismError(f"the matrix has shape {matrix.shape}, not {program.order.shape}")
    if multipliers is not None:
        raise ProgramError("a highest threshold has no multipliers of rows: certify the matrix alone")
    low = int(program.order[matrix > max(NOISE_THRESHOLDS)].min())
    kept = least_leakage.certify(program.at(low), matrix, None).certificate
    if not keeps(kept, program.epsilon):
        raise ProgramError(f"the matrix leaks {kept.level:g} nats, above {program.epsilon:g}")
    return certified(_certificate(program, low, program.highest, kept, None))


def _certificate(
    program: BestWorstCase, low: int, most: int, kept: LevelCertificate, beyond: LevelCertificate | None
) -> ThresholdCertificate:
    """Build the claim that the rank `low` is kept, and those up to `most` are not ruled out."""
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
