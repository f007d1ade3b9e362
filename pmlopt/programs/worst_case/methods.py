"""The method for the highest threshold: bisection, with a least-leakage problem at each."""

from __future__ import annotations

import math
from functools import partial

from pmlopt.core.numbers.arrays import FloatArray
from pmlopt.errors import MechanismError, ProgramError
from pmlopt.programs.least_leakage import methods as least_leakage
from pmlopt.programs.least_leakage.build_certificate import NOISE_THRESHOLDS, certify_level
from pmlopt.programs.least_leakage.certificate import LevelCertificate
from pmlopt.programs.least_leakage.level_search import LevelSearch, decide_level, search_level
from pmlopt.programs.program import (
    Method,
    MethodRegistry,
    MethodResult,
    reject_warm_start,
    wrap_given_certificate,
)
from pmlopt.programs.registry import register_question
from pmlopt.programs.worst_case.certificate import ThresholdCertificate, is_within_level
from pmlopt.programs.worst_case.program import BestWorstCase
from pmlopt.solvers.solver_result import MethodOptions


def search_thresholds(
    program: BestWorstCase, options: MethodOptions, _: None
) -> MethodResult[ThresholdCertificate]:
    """Bisect over thresholds; an undecided one counts as neither feasible nor infeasible."""
    found: dict[int, list[MethodResult[LevelCertificate]]] = {}
    deadline = options.deadline

    def solve_at(threshold: int) -> LevelCertificate:
        """Solve the least leakage at a threshold; of a large table, as far as needed to decide."""
        least = program.build_least_leakage(threshold)
        searches = found.setdefault(threshold, [])
        start = least_leakage.make_start(least, None)
        large = program.order.size > least_leakage.MAX_SMALL_ENTRIES and program.over is None
        ways: list[LevelSearch] = [partial(decide_level, program.epsilon)] if large else []
        for search in (*ways, search_level):
            own = MethodOptions(deadline.at_least(1e-3), least.tolerance)
            searches.append(
                least_leakage.search_and_certify(search, certify_level, least, own, start)
            )
            level = searches[-1].certificate
            if is_within_level(level, program.epsilon) or level.bound > program.epsilon:
                break
        return level

    low = 1
    kept = solve_at(1)
    ruled_out = program.highest_rank + 1
    beyond = None
    while (
        left := [h for h in range(low + 1, ruled_out) if h not in found]
    ) and not deadline.expired:
        middle = left[len(left) // 2]  # one that is not decided stays between both ends
        level = solve_at(middle)
        if is_within_level(level, program.epsilon):
            low, kept = middle, level
        elif level.bound > program.epsilon:
            ruled_out, beyond = middle, level
    every = [one for searches in found.values() for one in searches]
    return MethodResult(
        certificate=_build_certificate(program, low, ruled_out - 1, kept, beyond),
        finished=not left,
        message=f"{len(found)} thresholds tried",
        iterations=sum(one.iterations or 0 for one in every),
        solve_seconds=math.fsum(one.solve_seconds for one in every),
        certify_seconds=math.fsum(one.certify_seconds for one in every),
        arrays={"matrix": kept.mechanism.matrix},
    )


def _certify_given_matrix(
    program: BestWorstCase, matrix: FloatArray, multipliers: FloatArray | None
) -> MethodResult[ThresholdCertificate]:
    """Certify the lowest rank that a given matrix emits, if its level is within epsilon."""
    if matrix.shape != program.order.shape:
        raise MechanismError(f"the matrix has shape {matrix.shape}, not {program.order.shape}")
    if multipliers is not None:
        raise ProgramError(
            "a highest threshold has no multipliers of rows: leave out the multipliers"
        )
    # entries below the noise become zeros in the repair: they do not count as emitted
    low = int(program.order[matrix > max(NOISE_THRESHOLDS)].min())
    kept = least_leakage.certify_given_matrix(
        program.build_least_leakage(low), matrix, None
    ).certificate
    if not is_within_level(kept, program.epsilon):
        raise ProgramError(f"the matrix leaks {kept.level:g} nats, above {program.epsilon:g}")
    return wrap_given_certificate(
        _build_certificate(program, low, program.highest_rank, kept, None)
    )


def _build_certificate(
    program: BestWorstCase,
    low: int,
    max_rank: int,
    kept: LevelCertificate,
    beyond: LevelCertificate | None,
) -> ThresholdCertificate:
    """Build the certificate that rank `low` is feasible and ranks above `max_rank` are not."""
    value = float(low)
    bound = float(max_rank)
    if program.utilities is not None:
        value = float(program.utilities[low - 1])
        bound = float(program.utilities[max_rank - 1])
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


METHODS = MethodRegistry(
    BestWorstCase,
    (
        Method(
            "threshold-search",
            "binary search over the threshold, with a least leakage at each",
            search_thresholds,
        ),
    ),
    reject_warm_start("a highest threshold starts from closed forms: leave out the mechanism"),
    _certify_given_matrix,
)
"""Highest thresholds: the one that is kept is returned with the highest that is not ruled out."""

register_question(METHODS)
