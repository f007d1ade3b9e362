"""The search for the least level: linear programs at one level each, and proofs from their multipliers."""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np

from pmlopt.core.arrays import FloatArray
from pmlopt.programs.least_leakage.certificate import Multipliers, largest_share
from pmlopt.programs.least_leakage.certifying import best_allowed, cleaned, program_level
from pmlopt.programs.least_leakage.inversion import GainWithin, MassWithin
from pmlopt.programs.least_leakage.level_program import Asked, LevelProgram, RobustLevelProgram
from pmlopt.programs.least_leakage.program import LeastLeakage, SymmetricLeastLeakage
from pmlopt.solvers.clock import TIME, Clock
from pmlopt.solvers.outcome import Options

NEAR = 1e-6
"""How near an entry is to zero or to the largest of its output, as a share of that, to be taken for it."""

MAX_UNKNOWNS = 600
"""Unknowns up to which the equations are solved: a dense system, in a tenth of a second."""

STEPS = 4
"""Steps of Newton's method, from an error of 1e-9 to that of rounding."""


def vertex_near(laws: FloatArray, matrix: FloatArray, share: float) -> FloatArray | None:
    """The mechanism near a matrix whose outputs all have the same leakage, where the matrix's almost have it.

    With v[y] the largest entry of output y and s the share e^-level, the unknowns are v, s and the entries
    that are neither 0 nor v[y]. The equations are that rows sum to one, and `sum_x Q[x,y] P[x,y] = s v[y]`
    for the outputs that leak as much as any.

    Args:
        laws: (N, M) for each output the probabilities Q: the prior's, or over a set those of the worst prior.
        matrix: (N, M) near a vertex of the mechanisms of a least level.
        share: near e^-level, the best that is known of it.

    Returns:
        (N, M) entries, of which some may be a hair below 0; None where the system is too large or has no
        solution nearby.

    Examples:
        >>> near = np.array([[0.5 - 1e-9, 0.5 + 1e-9, 0], [0, 1, 0], [1, 0, 0]])
        >>> prior = np.array([[0.6], [0.2], [0.2]])
        >>> vertex_near(np.repeat(prior, 3, axis=1), near, 0.5).round(14) + 0.0
        array([[0.5, 0.5, 0. ],
               [0. , 1. , 0. ],
               [1. , 0. , 0. ]])
    """
    n, m = matrix.shape
    largest = matrix.max(axis=0)
    used = np.flatnonzero(largest > NEAR)
    at_most = (matrix >= largest * (1 - NEAR))[:, used]
    between = ~at_most & (matrix[:, used] > NEAR * largest[used])
    letter, output = np.nonzero(between)
    laws = laws[:, used]
    tight = np.flatnonzero((laws * matrix[:, used]).sum(axis=0) <= share * largest[used] * (1 + NEAR))
    k = len(used)
    if k + len(letter) + 1 > MAX_UNKNOWNS:
        return None
    sums = np.zeros((n, k + len(letter)))
    sums[:, :k] = at_most
    sums[letter, k + np.arange(len(letter))] = 1.0
    means = np.zeros((k, k + len(letter)))
    means[np.arange(k), np.arange(k)] = (laws * at_most).sum(axis=0)
    means[output, k + np.arange(len(letter))] = laws[letter, output]
    point = np.concatenate([largest[used], matrix[:, used][between], [share]])
    for _ in range(STEPS):
        values, at = point[:-1], point[-1]
        left = np.concatenate([sums @ values - 1, (means @ values)[tight] - at * values[tight]])
        slopes = np.zeros((len(left), len(point)))
        slopes[:n, :-1] = sums
        slopes[n:, :-1] = means[tight]
        slopes[n + np.arange(len(tight)), tight] -= at
        slopes[n:, -1] = -values[tight]
        point = point - np.linalg.lstsq(slopes, left, rcond=1e-12)[0]
    if not np.isfinite(point).all() or np.abs(point[:k] - largest[used]).max() > 1e-3:
        return None
    found = np.zeros((n, m))
    found[:, used] = at_most * point[:k]
    found[letter, used[output]] = point[k:-1]
    return found


SEARCH_TOLERANCE_SHARE = 1e-2
"""The share of the tolerance at which the search ends: the last programs cost next to nothing."""

COARSE_SHARE = 50.0
"""By how much more a search over masses or orbits may leave, half the tolerance: last digits are dear."""

HAIR = 1e-10
"""The relative distance to a share e^-level at which the next program is asked: at the share itself nothing
is missing or in excess, and the solver's tolerance decides. It is a hundredth of the usual tolerance."""

WIDENING = 5.0
"""By how much the distance grows after a program that moves neither end: where rounding decides beside the
root, multipliers prove it further away. The search ends where it has grown to half the gap."""

SUFFICIENT_DECREASE = 0.9
"""An iteration that leaves more than this share of the gap counts as stalled."""

MAX_STALLED_ITERATIONS = 8
"""Stalled iterations in a row after which the search ends with the gap that is left."""

MAX_ITERATIONS = 200
"""Programs after which the search ends with the gap that is left; most searches take fewer than 10."""

MAX_FAILURES = 3
"""Programs in one search that the solver may fail on before it ends."""

MET, STALLED = "both ends meet", "nothing improves"

Ask = Callable[[float, Clock], Asked]
"""The program at a share, within the time that is left; an ArithmeticError where the solver fails."""

Closing = Callable[["Ends", float, Clock], tuple[str, int]]
"""What closes the ends to a gap before a time: how it ended, and its iterations."""


@dataclass
class Ends:
    """The two ends of a search over the share e^-level, with what proves each.

    Attributes:
        program: what is asked for.
        proof: multipliers that prove `upper`.
        matrix: (N, M) the mechanism that reaches `reached`, or None.
        reached, upper: a share that a mechanism in hand has, and one that none can exceed.
        programs: how many were asked.
    """

    program: LeastLeakage
    proof: Multipliers
    matrix: FloatArray | None = None
    reached: float = 0.0
    upper: float = field(init=False)
    programs: int = 0
    masses: FloatArray = field(init=False, repr=False)

    def __post_init__(self) -> None:
        self.masses = np.unique(self.program.masses)
        self.upper = self._proved(self.proof)

    @property
    def gap(self) -> float:
        """The difference of both levels."""
        if self.upper <= self.reached:
            return 0.0
        return math.log(self.upper) - math.log(self.reached) if self.reached > 0 else math.inf

    def take(self, matrix: FloatArray) -> None:
        """Keep a mechanism where it meets the demands, or can be mended, and leaks less than the last."""
        clean = cleaned(self.program, self._filled(matrix))
        if clean is None:
            return
        reached = math.exp(-self.program.level(clean))
        if reached > self.reached:
            self.reached, self.matrix = reached, clean

    def prove(self, proof: Multipliers) -> None:
        """Keep multipliers that prove more than the last."""
        upper = self._proved(proof)
        if upper < self.upper:
            self.upper, self.proof = upper, proof

    def decides(self, share: float) -> bool:
        """Whether a mechanism reaches a share above zero, or it is proved that none does."""
        return share > 0 and (self.reached >= share or self.upper < share)

    def close(
        self, ask: Ask, enough: float, clock: Clock, first: float = math.inf, asked_for: float = 0.0
    ) -> str:
        """Ask programs until the ends are near enough, or a limit is reached; returns how it ended.

        The first is asked at the proved end, each later one by a hair above the root of the last tangent, as
        in Newton's method: there its multipliers prove nearly all, and so little is missing that its
        mechanism is mended at next to no cost. Multipliers extrapolated from the last two programs are tried
        too. Where that is slow, the middle is asked now and then, and where there is no tangent.

        Args:
            ask: the program.
            enough: the gap, in nats.
            clock: what is left of the time.
            first: the share to ask at first; left out, the proved end.
            asked_for: a share; where there is one, it ends when that is decided.
        """
        stalled = slow = failures = 0
        last: tuple[float, Asked] | None = None
        hair, root, tried = HAIR, first, 0.0
        while self.gap > max(enough, 2 * hair if stalled else 0.0) and not self.decides(asked_for):
            if stalled >= MAX_STALLED_ITERATIONS or self.programs >= MAX_ITERATIONS:
                return STALLED
            if clock.late:
                return TIME
            before, share = self.gap, self._next(root, hair, slow)
            self.programs += 1
            try:
                asked = ask(share, clock)
            except ArithmeticError as cause:
                failures += 1
                if failures > MAX_FAILURES or str(cause) == TIME:
                    return str(cause)
                stalled, slow, hair = stalled + 1, slow + 1, WIDENING * hair
                continue
            root = share - asked.missing / asked.slope if asked.slope > 0 else math.inf
            self.take(asked.matrix)
            self.prove(asked.proof)
            if math.isnan(asked.slope):  # no tangent: once just below the proved end, else the middle
                root, tried = (math.nan if tried == self.upper else self.upper * (1 - enough / 2)), self.upper
            if asked.missing > 0:
                if last is not None and last[0] != share:
                    step = (min(max(root, self.reached), self.upper) - share) / (share - last[0])
                    self.prove(asked.proof.towards(last[1].proof, -step))
                last = share, asked
            slow = slow + 1 if self.gap > before / 2 else 0
            if self.gap > SUFFICIENT_DECREASE * before:
                stalled, hair = stalled + 1, WIDENING * hair
            else:
                stalled, hair = 0, max(HAIR, hair / WIDENING)
        return MET if self.gap <= enough or self.decides(asked_for) else STALLED

    def _next(self, root: float, hair: float, slow: int) -> float:
        """The share to ask at: a hair beside the root, on the side that is not proved, or in the middle."""
        if slow % 3 == 2 or math.isnan(root):
            return self._middle()
        if root >= self.upper and not slow:
            return self.upper
        root = min(max(root, self.reached), self.upper)
        above, below = root * (1 + hair), root * (1 - hair)
        if above < self.upper * (1 - HAIR / 2):
            return above
        return max(below, self.reached * (1 + HAIR / 2))

    def _middle(self) -> float:
        """Between the ends, below the middle one of the masses of the letters that may emit an output.

        At that mass the output can occur, and not above: no tangent foresees it.
        """
        first, last = np.searchsorted(self.masses, [self.reached * (1 + 2 * HAIR), self.upper * (1 - HAIR)])
        if first < last:
            middle = (first + last) // 2
            share = float(self.masses[middle]) * (1 - HAIR)
            self.masses = np.delete(self.masses, middle)
            return share
        return math.sqrt(self.upper * self.reached) if self.reached > 0 else self.upper / 2

    def _proved(self, proof: Multipliers) -> float:
        program = self.program
        if program.over is not None:  # in floats: the certificate has it in rationals
            known = (program.over, program.prior, program.allowed)
            return float(largest_share(*known, proof.rows, proof.laws, exact=False))
        return math.exp(-program_level(program, proof))

    def _filled(self, matrix: FloatArray) -> FloatArray:
        """The matrix with what its rows are short put on the allowed outputs; noise is left short."""
        program = self.program
        short = np.maximum(1 - program.columns.sums(matrix), 0.0)
        if short.max() <= 1e-9:
            return matrix
        spread = program.spread if program.floor is None else best_allowed(program)
        return np.asarray(matrix + program.columns.of_pairs(short) * spread)


@dataclass(frozen=True, eq=False)
class Found:
    """The two ends of the search over levels, with what proves each.

    Attributes:
        matrix: (N, M) the best mechanism, or None.
        proof: multipliers that prove the bound.
        iterations: of the simplex, in all.
        ending: in words.
        finished: whether it ended by itself.
        seconds: what it took.
    """

    matrix: FloatArray | None
    proof: Multipliers
    iterations: int
    ending: str
    finished: bool
    seconds: float


Search = Callable[[LeastLeakage, FloatArray | None, Options], Found]


def search_level(program: LeastLeakage, start: FloatArray | None, options: Options) -> Found:
    """Close in on the least level from both ends: a search over the share e^-epsilon.

    First the least level of the allowed pairs alone, then, where there is a floor on the expectation, from
    there on the least at which the best expected gain reaches it.

    Args:
        program: what is asked for.
        start: a mechanism that meets the demands, or None.
        options: the time limit, and the gap, in nats, that is good enough: it ends at a hundredth of that.
    """
    return _searched(program, start, options, _closed)


def invert(program: LeastLeakage, start: FloatArray | None, options: Options) -> Found:
    """The same by the interior point method, for a floor on the expectation alone or for pairs alone."""
    return _searched(program, start, options, _inverted)


def decide(level: float, program: LeastLeakage, start: FloatArray | None, options: Options) -> Found:
    """Whether pairs alone can be had within a level, by the interior point method: which end is beyond it."""
    share = math.exp(-level)

    def close(ends: Ends, enough: float, clock: Clock) -> tuple[str, int]:
        masses = MassWithin(ends.program)
        ending = ends.close(masses.ask, COARSE_SHARE * enough, clock, share, share)
        return ending, masses.iterations

    return _searched(program, start, options, close)


def _searched(program: LeastLeakage, start: FloatArray | None, options: Options, close: Closing) -> Found:
    begin = time.perf_counter()
    ends = Ends(program, support_multipliers(program))
    if start is not None:
        ends.take(start)
    ending, iterations = close(ends, SEARCH_TOLERANCE_SHARE * options.tolerance, options.clock)
    return Found(
        matrix=ends.matrix,
        proof=ends.proof,
        iterations=iterations,
        ending=f"{ending} after {ends.programs} linear programs",
        finished=ending != TIME,
        seconds=time.perf_counter() - begin,
    )


def _inverted(ends: Ends, enough: float, clock: Clock) -> tuple[str, int]:
    """Close in from the middle; returns how it ended, and the iterations of the interior point method."""
    if ends.program.floor is None:
        masses = MassWithin(ends.program)
        return ends.close(masses.ask, COARSE_SHARE * enough, clock), masses.iterations
    gains = GainWithin(ends.program)
    least = max(ends.reached, float(ends.program.prior.pmf.min()))
    return ends.close(gains.ask, enough, clock, math.sqrt(ends.upper * least)), gains.iterations


def _closed(ends: Ends, enough: float, clock: Clock) -> tuple[str, int]:
    """Close in; returns how it ended, and the iterations of the simplex."""
    program = ends.program
    if ends.gap <= enough:
        return MET, 0
    if program.floor is None:
        levels = LevelProgram(program) if program.over is None else RobustLevelProgram(program)
        ending = ends.close(levels.ask, enough, clock)
        if ends.matrix is not None and ending == MET:
            vertex = vertex_near(program.worst_priors(ends.matrix), ends.matrix, ends.upper)
            if vertex is not None:
                ends.take(vertex)
        return ending, levels.model.iterations
    iterations = 0
    if program.allowed.all():
        ends.take(program.spread)
    else:
        pairs = Ends(program.pairs_alone, support_multipliers(program))
        pairs.take(program.spread)
        ending, iterations = _closed(pairs, enough, clock)
        ends.programs = pairs.programs
        ends.prove(pairs.proof)
        if pairs.matrix is None or ending == TIME:
            return ending, iterations
        ends.take(pairs.matrix)
    levels = LevelProgram(program)
    first = math.inf
    if isinstance(program, SymmetricLeastLeakage):  # of many pairs the last digits cost as much as the first
        enough, first = COARSE_SHARE * enough, ends.upper * min(1.0, -program.floor.least)
    return ends.close(levels.ask, enough, clock, first), iterations + levels.model.iterations


def support_multipliers(program: LeastLeakage) -> Multipliers:
    """A one for the letter whose likeliest output is least likely: proves `closed_forms.support_bound`.

    Over a set of priors it is the output with the largest of its letters' least probabilities.
    """
    columns, shape = program.columns, program.allowed.shape
    best = columns.largest(np.where(program.allowed, columns.of_outputs(program.masses, shape), 0.0))
    rows = np.zeros(len(best))
    rows[int(best.argmin())] = 1.0
    return Multipliers(rows)
