"""The search for the least level: linear programs at one level each, and proofs from their multipliers.

Bisection of a quasiconvex program by cvxpy takes some 60 times as long at 20 letters, and leaves a matrix
that has to be repaired; linear programs for targets on the expectation take 60 times as long at 100 letters
as the interior point.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cache

import numpy as np

from pmlopt.core.numbers.arrays import FloatArray
from pmlopt.programs.least_leakage.build_certificate import (
    build_best_allowed,
    prove_level,
    remove_noise,
)
from pmlopt.programs.least_leakage.certificate import LevelMultipliers, bound_exp_neg_level
from pmlopt.programs.least_leakage.level_programs import (
    BestGainPrograms,
    LargestMassPrograms,
    build_level_program,
)
from pmlopt.programs.least_leakage.program import (
    LeastLeakage,
    SymmetricLeastLeakage,
    build_least_leakage,
)
from pmlopt.solvers.solver_result import TIME_LIMIT, Deadline, MethodOptions
from pmlopt.solvers.two_sided_search import BOUNDS_MEET, ParameterSolution, TwoSidedSearch


def polish_vertex(laws: FloatArray, matrix: FloatArray, exp_neg_level: float) -> FloatArray | None:
    """Compute the mechanism near a matrix whose outputs all have exactly equal leakage.

    With v[y] the largest entry of output y and s the share e^-level, the unknowns are v, s and the entries
    that are neither 0 nor v[y]. The equations are that rows sum to one, and `sum_x Q[x,y] P[x,y] = s v[y]`
    for the outputs that leak as much as any.

    Args:
        laws: (N, M) for each output the probabilities Q: the prior's, or over a set those of the worst prior.
        matrix: (N, M) near a vertex of the mechanisms of a least level.
        exp_neg_level: near e^-level, the best that is known of it.

    Returns:
        (N, M) entries, of which some may be slightly below 0; None where the system is too large or has no
        solution nearby.

    Examples:
        >>> near = np.array([[0.5 - 1e-9, 0.5 + 1e-9, 0], [0, 1, 0], [1, 0, 0]])
        >>> prior = np.array([[0.6], [0.2], [0.2]])
        >>> polish_vertex(np.repeat(prior, 3, axis=1), near, 0.5).round(14) + 0.0
        array([[0.5, 0.5, 0. ],
               [0. , 1. , 0. ],
               [1. , 0. , 0. ]])
    """
    # How near an entry is to zero or to the largest of its output, as a share of that, to be taken for it.
    near = 1e-6
    n, m = matrix.shape
    largest = matrix.max(axis=0)
    # outputs that next to never occur would add equations of rounding
    used = np.flatnonzero(largest > near)
    at_most = (matrix >= largest * (1 - near))[:, used]
    between = ~at_most & (matrix[:, used] > near * largest[used])
    letter, output = np.nonzero(between)
    laws = laws[:, used]
    # complementary slackness: outputs below the level are slack, and have no equation
    tight = np.flatnonzero(
        (laws * matrix[:, used]).sum(axis=0) <= exp_neg_level * largest[used] * (1 + near)
    )
    k = len(used)
    # a dense system of 600 unknowns takes a tenth of a second
    if k + len(letter) + 1 > 600:
        return None
    sums = np.zeros((n, k + len(letter)))
    sums[:, :k] = at_most
    sums[letter, k + np.arange(len(letter))] = 1.0
    means = np.zeros((k, k + len(letter)))
    means[np.arange(k), np.arange(k)] = (laws * at_most).sum(axis=0)
    means[output, k + np.arange(len(letter))] = laws[letter, output]
    point = np.concatenate([largest[used], matrix[:, used][between], [exp_neg_level]])
    # four Newton steps go from an error of 1e-9 to that of rounding
    for _ in range(4):
        values = point[:-1]
        at = point[-1]
        left = np.concatenate([sums @ values - 1, (means @ values)[tight] - at * values[tight]])
        slopes = np.zeros((len(left), len(point)))
        slopes[:n, :-1] = sums
        slopes[n:, :-1] = means[tight]
        # the product s v is bilinear: both factors have a derivative
        slopes[n + np.arange(len(tight)), tight] -= at
        slopes[n:, -1] = -values[tight]
        point = point - np.linalg.lstsq(slopes, left, rcond=1e-12)[0]
    # a jump means that the guessed pattern of zeros and peaks was wrong
    if not np.isfinite(point).all() or np.abs(point[:k] - largest[used]).max() > 1e-3:
        return None
    found = np.zeros((n, m))
    found[:, used] = at_most * point[:k]
    found[letter, used[output]] = point[k:-1]
    return found


COARSE_GAP_FACTOR = 50.0
"""By how much more a search over masses or orbits may leave, half the tolerance: last digits are dear."""

SolveAtLevel = Callable[[float, Deadline], ParameterSolution[LevelMultipliers]]
"""The program at a share, within the time that is left; an ArithmeticError where the solver fails."""


class LevelProgramFamily:
    """The linear programs over e^-level in the interface of `TwoSidedSearch`.

    At the mass of the letters that may emit an output it can occur, and not above: no tangent foresees that
    (and where there is a floor, the least level of the pairs only is known).
    """

    def __init__(self, program: LeastLeakage, ask: SolveAtLevel, blur: float = 0.0) -> None:
        self.program = program
        self.solve_at = ask
        self.blur = blur
        # an output closes at the mass of its letters: the infeasibility jumps there
        self.marks = (
            np.unique(program.max_output_probabilities[program.max_output_probabilities > 0])
            if program.floor is None
            else np.zeros(0)
        )

    def lower_bound_of(self, point: FloatArray) -> tuple[float, FloatArray] | None:
        """Repair a primal point to a feasible mechanism, with its e^-level; None where that fails."""
        clean = remove_noise(self.program, self._fill_rows(point))
        return None if clean is None else (math.exp(-self.program.compute_level(clean)), clean)

    def upper_bound_of(self, proof: LevelMultipliers) -> float:
        """Compute an upper bound on e^-level from dual multipliers."""
        program = self.program
        if program.over is not None:  # in floats: the certificate has it in rationals
            known = (program.prior, program.allowed, None, proof, program.over)
            return float(bound_exp_neg_level(*known, exact=False))
        return math.exp(-prove_level(program, proof))

    def extrapolate(
        self, now: LevelMultipliers, then: LevelMultipliers, step: float
    ) -> LevelMultipliers:
        """Extrapolate multipliers on the line through two iterates."""
        return now.interpolate(then, -step)

    def _fill_rows(self, matrix: FloatArray) -> FloatArray:
        """Distribute the shortfall of the rows over the allowed outputs."""
        program = self.program
        short = np.maximum(1 - program.columns.row_sums(matrix), 0.0)
        # the repair adds what is short by a solver's tolerance
        if short.max() <= 1e-9:
            return matrix
        spread = program.uniform_mechanism if program.floor is None else build_best_allowed(program)
        return matrix + program.columns.broadcast_letters(short) * spread


@dataclass(frozen=True, eq=False)
class LevelSearchResult:
    """The result of a level search: the best mechanism, the multipliers of its bound, and how it ended."""

    matrix: FloatArray | None
    proof: LevelMultipliers
    programs: int
    iterations: int
    ending: str
    finished: bool


LevelSearch = Callable[[LeastLeakage, FloatArray | None, MethodOptions], LevelSearchResult]


def search_level(
    program: LeastLeakage, start: FloatArray | None, options: MethodOptions
) -> LevelSearchResult:
    """Bracket the least level by linear programs at fixed e^-epsilon.

    First the least level of the allowed pairs only, then, where there is a floor on the expectation, from
    there on the least at which the best expected gain reaches it.

    Args:
        program: what is requested.
        start: a mechanism that meets the demands, or None.
        options: the time limit, and the gap, in nats, that is good enough: it ends at a hundredth of that.
    """
    before = None
    if program.floor is not None and not program.allowed.all():
        pairs_alone = build_least_leakage(
            program.prior, program.allowed, program.outputs, program.over
        )
        before = search_level(pairs_alone, program.uniform_mechanism, options)
        if options.deadline.expired:
            return replace(before, matrix=start)
    # built only once a program is solved: known bounds may meet before
    levels = cache(lambda: build_level_program(program))
    family = LevelProgramFamily(
        program, lambda gap_fraction, deadline: levels().solve_at(gap_fraction, deadline)
    )
    search = _make_search(family, start, options, before)
    if isinstance(
        program, SymmetricLeastLeakage
    ):  # of many pairs the last digits cost as much as the first
        search = _make_search(family, start, options, before, COARSE_GAP_FACTOR)
        search.number = -program.floor.min_gain
    ending = search.run()
    if program.floor is None and search.witness is not None and ending == BOUNDS_MEET:
        search.try_point(
            polish_vertex(program.find_worst_priors(search.witness), search.witness, search.upper)
        )
    return _make_search_result(
        search, ending, levels().iterations if search.programs else 0, before
    )


def search_by_interior_point(
    program: LeastLeakage, start: FloatArray | None, options: MethodOptions
) -> LevelSearchResult:
    """Search the least level by the interior-point method, for a single floor or a set of allowed pairs."""
    if program.floor is None:
        return decide_level(None, program, start, options)
    gains = BestGainPrograms(program)
    # its multipliers prove as much where a little more than the target is gained, and there its mechanism
    # needs no mixing, which would cost the reciprocal of the least probability
    family = LevelProgramFamily(program, gains.solve_at, blur=-1.5e-10)
    # last digits cost a program each, as dear as the first
    search = _make_search(family, start, options, gap_fraction=10)
    # levels are logarithms of the share; a quarter of the way, since few outputs are used at low ones
    least = max(search.reached, float(program.prior.pmf.min()))
    search.number = search.upper**0.75 * least**0.25
    return _make_search_result(search, search.run(), gains.iterations)


def decide_level(
    level: float | None, program: LeastLeakage, start: FloatArray | None, options: MethodOptions
) -> LevelSearchResult:
    """Decide by the interior-point method whether the allowed pairs are feasible at a level.

    Without a level, at which they can.
    """
    masses = LargestMassPrograms(program)
    search = _make_search(
        LevelProgramFamily(program, masses.solve_at), start, options, None, COARSE_GAP_FACTOR
    )
    if level is not None:
        search.number = search.wanted = math.exp(-level)
    return _make_search_result(search, search.run(), masses.iterations)


def _make_search(
    family: LevelProgramFamily,
    start: FloatArray | None,
    options: MethodOptions,
    before: LevelSearchResult | None = None,
    gap_fraction: float = 1,
) -> TwoSidedSearch[FloatArray, LevelMultipliers]:
    """Set up the two-sided search from known mechanisms and multipliers."""
    program = family.program
    proofs = [build_support_multipliers(program), *([] if before is None else [before.proof])]
    known = [start, None if before is None else before.matrix]
    known += [program.uniform_mechanism] if program.floor is not None and before is None else []
    starts = [
        found
        for one in known
        if one is not None and (found := family.lower_bound_of(one)) is not None
    ]
    # the search ends at a hundredth of the tolerance: the last programs cost next to nothing
    return TwoSidedSearch(
        family, starts, proofs, gap_fraction * 1e-2 * options.tolerance, options.deadline
    )


def _make_search_result(
    search: TwoSidedSearch[FloatArray, LevelMultipliers],
    ending: str,
    iterations: int,
    before: LevelSearchResult | None = None,
) -> LevelSearchResult:
    """Collect the result of a level search, with the iteration counts of an earlier one."""
    programs = search.programs + (0 if before is None else before.programs)
    return LevelSearchResult(
        matrix=search.witness,
        proof=search.proofs[0],
        programs=programs,
        iterations=iterations + (0 if before is None else before.iterations),
        ending=f"{ending} after {programs} linear programs",
        finished=ending != TIME_LIMIT,
    )


def build_support_multipliers(program: LeastLeakage) -> LevelMultipliers:
    """Build the multipliers that prove `support_bound`: one for the letter with the least likely outputs.

    Over a set of priors it is the output with the largest of its letters' least probabilities.
    """
    columns = program.columns
    shape = program.allowed.shape
    best = columns.max_by_letter(
        np.where(
            program.allowed, columns.broadcast_outputs(program.max_output_probabilities, shape), 0.0
        )
    )
    rows = np.zeros(len(best))
    # one letter is enough: no mechanism beats the support bound of the worst one
    rows[int(best.argmin())] = 1.0
    return LevelMultipliers(rows)
