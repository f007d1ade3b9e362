"""The methods: a search over the likelihood ratio for envelopes, one linear program for a failure."""

from __future__ import annotations

import math
import time
from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pmlopt.core.arrays import FloatArray
from pmlopt.data.mechanism import Mechanism, MechanismLike, as_mechanism
from pmlopt.model.privacy.requirement import LARGEST_EXPONENT
from pmlopt.programs.certificate import Restart, Solved, WarmStart, restart_of
from pmlopt.programs.envelope.certificate import (
    EnvelopeCertificate,
    ProcessedFailureCertificate,
    leaking_mass,
)
from pmlopt.programs.envelope.certifying import (
    binary_attack,
    certify_envelope,
    certify_failure,
    channel,
    folded,
    largest_ratio,
    leaking,
    nearest_ratio,
    plain_attack,
    proved_level,
    reached_ratio,
    spread,
    topped_up,
    with_closed,
)
from pmlopt.programs.envelope.post_processing import RatioPrograms
from pmlopt.programs.envelope.program import EnvelopeProgram, ProcessedFailureProgram
from pmlopt.programs.question import Found, Method, Question, always_cold
from pmlopt.solvers.clock import TIME, Clock
from pmlopt.solvers.outcome import Options
from pmlopt.solvers.two_sided_search import FEASIBILITY_TOLERANCE, MARK_OFFSET, Answer, Search

CLOSED = 1e-12
"""A letter's outcome is closed at ratios above its largest by this share, which rounding cannot explain."""

DIFFERENCE_ROUNDING = 8 * float(np.finfo(float).eps)
"""What rounding may do to `t q[y] - P[x,y]`, as a share of t q[y]; far below `CLOSED`."""

NEAR_MARK = 4 * MARK_OFFSET
"""A largest ratio that is below the one asked by at most this share: the search asks just above it."""

MAX_REMEMBERED = 32
"""Linear programs that are handed on to the next delta, those at the nearest ratios: a search uses four, and
a point of 50 by 50 takes 20 kB."""

PROOFS_ABOVE = 3
"""How many programs above the new envelope a search takes multipliers from: the nearest are the sharpest."""


@dataclass(frozen=True, eq=False)
class AskedRatio:
    """The linear program at one ratio, which is the same for every delta.

    Attributes:
        ratio: t.
        mass: V(t).
        slope: of -V.
        point: (K, N) the attack.
        multipliers: (N,) of the rows of the letters.
    """

    ratio: float
    mass: float
    slope: float
    point: FloatArray
    multipliers: FloatArray

    def answer(self, delta: float) -> Answer[FloatArray | None]:
        """What it says about a delta: what is missing, as a share of delta, which may be tiny."""
        return Answer(1 - self.mass / delta, self.slope / delta, self.point, self.multipliers)


@dataclass(frozen=True, eq=False)
class SearchEnd:
    """The two ends of the search over ratios, with what proves each.

    Attributes:
        point: (M', N) the best attack.
        multipliers: (N,) those that prove the bound, or None where that of Theorem 3 is best.
        asked: the linear programs at the nearest ratios, this search's and those that it was given.
        programs: how many there were in this search.
        ending: in words.
        finished: whether it ended by itself.
        compile_seconds: what setting up the linear program took.
    """

    point: FloatArray
    multipliers: FloatArray | None
    asked: list[AskedRatio]
    programs: int
    ending: str
    finished: bool
    compile_seconds: float


def search_ratio(
    program: EnvelopeProgram, points: list[FloatArray], asked: list[AskedRatio], options: Options
) -> SearchEnd:
    """Close in on the largest ratio that outcomes of mass delta can have, from both ends.

    Args:
        program: what is asked for.
        points: (M', N) attacks to begin with, besides the plain and the binary one.
        asked: what is known of the linear program at some ratios.
        options: the time limit, and the gap, in nats, that is good enough: it ends at a twentieth of that.
    """
    delta = program.delta
    family = _RatioFeasibility(program, options.tolerance / 80)
    above = sorted((a for a in asked if a.mass < delta * (1 - FEASIBILITY_TOLERANCE)), key=lambda a: a.ratio)
    below = max((a for a in asked if a.mass >= delta), key=lambda a: a.ratio, default=None)
    first = [attack(single) for single in program.singles for attack in (plain_attack, binary_attack)]
    first += points
    singles = () if program.over is None else program.singles
    alone = [search_ratio(one, [], [], options) for one in singles]
    first += [end.point for end in alone]
    first += [] if below is None else [below.point]
    search = Search(
        family,
        [family.witness(point) for point in first],
        [None, *(a.multipliers for a in above[:PROOFS_ABOVE])],
        options.tolerance / 20,
        options.clock,
        (above[0].ratio, above[0].answer(delta)) if above else None,
    )
    ending = search.run()
    assert search.witness is not None
    programs = search.programs + sum(end.programs for end in alone)
    known = sorted([*asked, *family.asked], key=lambda a: abs(math.log(a.ratio / search.reached)))
    return SearchEnd(
        point=search.witness,
        multipliers=search.proofs[0],
        asked=known[:MAX_REMEMBERED],
        programs=programs,
        ending=f"{ending} after {programs} linear programs",
        finished=ending != TIME,
        compile_seconds=family.compile_seconds + sum(end.compile_seconds for end in alone),
    )


class _RatioFeasibility:
    """Whether outcomes of mass delta can have the likelihood ratio t: what is missing is delta - V(t)."""

    blur = 0.0

    def __init__(self, program: EnvelopeProgram, accuracy: float) -> None:
        self.program, self.accuracy = program, accuracy
        self.most = math.exp(program.simple_bound)
        # V jumps where the outcome of a letter closes
        self.marks = program.largest_ratios
        self.programs: RatioPrograms | None = None
        self.compile_seconds = 0.0
        self.asked: list[AskedRatio] = []

    def solve(self, number: float, clock: Clock) -> Answer[FloatArray | None]:
        program = self.program
        if self.programs is None:
            begin = time.perf_counter()
            self.programs = RatioPrograms(program, program.delta)
            self.compile_seconds = time.perf_counter() - begin
        closed = self.marks * (1 + CLOSED) < number
        mass, slope, point, multipliers = self.programs.solve(number, closed, clock)
        # those of closed letters hold from just above their largest ratio on, where that is near
        asked = np.where(closed, np.maximum(self.marks * (1 + CLOSED), number * (1 - NEAR_MARK)), number)
        gains = program.columns - asked[:, None] * program.law
        # what rounding may take off a difference, which is small where t is just above the largest ratio
        gains[closed] += DIFFERENCE_ROUNDING * number * program.law
        self.asked.append(
            AskedRatio(
                ratio=number,
                mass=mass,
                slope=slope,
                point=point,
                multipliers=with_closed(program.law, gains, multipliers, closed),
            )
        )
        return self.asked[-1].answer(program.delta)

    def witness(self, point: FloatArray) -> tuple[float, FloatArray]:
        """What a (K, N) point reaches, under the prior of the program or the worst known one of its set."""
        together = self.program.together(point)
        attacks = [topped_up(single, together) for single in self.program.singles]
        reached = [reached_ratio(*pair) for pair in zip(self.program.singles, attacks, strict=True)]
        best = int(np.argmax(reached))
        return reached[best], attacks[best]

    def proved(self, proof: FloatArray | None) -> float:
        """The ratio that multipliers prove, in rational arithmetic where floats hide too much of it."""
        if proof is None:
            return self.most
        bound = largest_ratio(self.program, proof, self.most)
        near = nearest_ratio(self.program, proof, bound)
        if not near < bound * (1 - self.accuracy):
            return bound
        return min(bound, math.exp(proved_level(self.program, proof, math.log(near), math.log(bound))))

    def beyond(self, now: FloatArray | None, then: FloatArray | None, step: float) -> FloatArray | None:
        if now is None or then is None:
            return None
        ahead = now + step * (now - then)
        ahead[: self.program.prior.size] = np.maximum(0.0, ahead[: self.program.prior.size])
        return np.asarray(ahead)


def as_arrays(program: EnvelopeProgram, asked: list[AskedRatio]) -> Mapping[str, NDArray[Any]]:
    """What was asked as plain arrays, with the mechanism that it is about."""
    names = [field.name for field in fields(AskedRatio)]
    columns = {name: np.array([getattr(a, name) for a in asked]) for name in names}
    return {"merged": program.columns, "law": program.law, **columns}


def from_arrays(program: EnvelopeProgram, arrays: Mapping[str, NDArray[Any]]) -> list[AskedRatio]:
    """What was asked of the same mechanism under the same prior; nothing, where it is another."""
    names = [field.name for field in fields(AskedRatio)]
    own = {"merged": program.columns, "law": program.law}
    if not all(name in arrays and np.array_equal(arrays[name], own[name]) for name in own):
        return []
    count = len(arrays.get("ratio", ()))
    shapes = [(count,), (count,), (count,), (count, *program.columns.T.shape), (count, program.multipliers)]
    if not all(
        name in arrays and arrays[name].shape == shape and np.isfinite(arrays[name]).all()
        for name, shape in zip(names, shapes, strict=True)
    ):
        return []
    rows = zip(*(arrays[name] for name in names), strict=True)
    return [AskedRatio(float(t), float(v), float(s), point, lam) for t, v, s, point, lam in rows]


@dataclass(frozen=True, eq=False)
class WorstFailure:
    """What the linear program at one level found.

    Attributes:
        shares: (M, N) of each output, what goes to the outcome of each letter.
        multipliers: (N,).
        programs: how many there were, one or none.
        failure: what the solver said where it did not end at an optimum; else empty.
        compile_seconds: what setting up the linear program took.
    """

    shares: FloatArray
    multipliers: FloatArray
    programs: int = 0
    failure: str = ""
    compile_seconds: float = 0.0


def worst_failure(program: ProcessedFailureProgram, options: Options) -> WorstFailure:
    """The shares of the outputs that leak epsilon or more with most probability, and the multipliers.

    Over a set of priors the shares are the worst of those found under single priors, and the multipliers are
    those of the program over the set.
    """
    if program.over is None:
        return _at_level(program, options)
    alone = [_at_level(single, options) for single in program.singles]
    masses = [
        leaking_mass(single.exact, channel(program, end.shares).matrix, program.epsilon)
        for single, end in zip(program.singles, alone, strict=True)
    ]
    best, whole = alone[masses.index(max(masses))], _at_level(program, options)
    return WorstFailure(
        shares=best.shares,
        multipliers=whole.multipliers,
        programs=whole.programs + sum(end.programs for end in alone),
        failure=whole.failure,
        compile_seconds=whole.compile_seconds + sum(end.compile_seconds for end in alone),
    )


def _at_level(program: ProcessedFailureProgram, options: Options) -> WorstFailure:
    """The linear program at e^epsilon; over a set its shares are those of both copies of each output.

    Which letters are closed, so that no outcome can leak epsilon through them, is decided in rational
    arithmetic: the probability jumps there.
    """
    level = min(program.epsilon, LARGEST_EXPONENT)
    gains = program.exact.gains(level)
    copies = len(program.exact.laws)
    own = gains[:, : len(program.given.outputs)]
    occurring = np.tile(program.given.support, copies)
    law, apart = program.exact.law_of_outputs[occurring], gains[:, occurring]
    closed = np.asarray((apart < 0).all(axis=1))
    none = np.zeros(own.T.shape)
    if level == 0 or closed.all():
        return WorstFailure(
            leaking(own, none), with_closed(law, apart, np.zeros(program.multipliers), closed)
        )
    begin = time.perf_counter()
    most = program.merged.max(axis=0).sum() * math.exp(-level)
    programs = RatioPrograms(program, min(1.0, float(most)))
    seconds = time.perf_counter() - begin
    try:
        _, _, point, found = programs.solve(math.exp(level), closed, options.clock)
    except ArithmeticError as cause:
        simple = program.padded(np.full(len(gains), math.exp(-level)))
        return WorstFailure(leaking(own, none), simple, 1, str(cause), seconds)
    return WorstFailure(
        shares=leaking(own, spread(program, program.together(point))),
        multipliers=with_closed(law, apart, found, closed),
        programs=1,
        compile_seconds=seconds,
    )


@dataclass(frozen=True, eq=False)
class EnvelopeStart:
    """What the search over ratios may start from.

    Attributes:
        points: (M', N) attacks of a person's own.
        asked: what is known of the linear program at some ratios, from another delta.
    """

    points: list[FloatArray] = field(default_factory=list)
    asked: list[AskedRatio] = field(default_factory=list)


def _by_ratio(program: EnvelopeProgram, options: Options, start: EnvelopeStart) -> Found[EnvelopeCertificate]:
    """Search, and certify both ends; `iterations` counts the linear programs."""
    begin = time.perf_counter()
    end = search_ratio(program, start.points, start.asked, options)
    clock = time.perf_counter()
    certificate = certify_envelope(program, channel(program, spread(program, end.point)), end.multipliers)
    return Found(
        certificate=certificate,
        finished=end.finished,
        message=end.ending,
        detail=end.ending,
        iterations=end.programs,
        warm_started=bool(start.points or start.asked),
        compile_seconds=end.compile_seconds,
        solve_seconds=clock - begin - end.compile_seconds,
        certify_seconds=time.perf_counter() - clock,
        arrays=as_arrays(program, end.asked),
    )


def _start(program: EnvelopeProgram, warm_start: WarmStart) -> EnvelopeStart:
    """What was asked for another delta, or the post-processing that was given."""
    if warm_start is None or warm_start is False:
        return EnvelopeStart()
    if isinstance(warm_start, Restart | Solved):
        restart = restart_of(warm_start)
        return EnvelopeStart(asked=[] if restart is None else from_arrays(program, restart.arrays))
    return EnvelopeStart(points=[folded(program.singles[0], _fitting(program, warm_start).matrix)])


def _certify(
    program: EnvelopeProgram, matrix: FloatArray, multipliers: FloatArray | None
) -> Found[EnvelopeCertificate]:
    """Of an (M, K) post-processing; the bound is that of the multipliers, or of Theorem 3."""
    return Found(
        certificate=certify_envelope(program, Mechanism(matrix), multipliers),
        finished=True,
        message="a post-processing that was given",
        arrays=as_arrays(program, []),
    )


def _at_epsilon(
    program: ProcessedFailureProgram, options: Options, _: None
) -> Found[ProcessedFailureCertificate]:
    """Solve it, mend its point, and certify both ends."""
    begin = time.perf_counter()
    found = worst_failure(program, options)
    clock = time.perf_counter()
    certificate = certify_failure(program, channel(program, found.shares), found.multipliers)
    return Found(
        certificate=certificate,
        finished=not found.failure,
        message=found.failure or "the linear program at epsilon",
        detail=found.failure,
        iterations=found.programs,
        compile_seconds=found.compile_seconds,
        solve_seconds=clock - begin - found.compile_seconds,
        certify_seconds=time.perf_counter() - clock,
    )


def _certify_failure(
    program: ProcessedFailureProgram, matrix: FloatArray, multipliers: FloatArray | None
) -> Found[ProcessedFailureCertificate]:
    """Of an (M, K) post-processing; the bound is that of the multipliers, or of Theorem 3."""
    return Found(
        certificate=certify_failure(program, Mechanism(matrix), multipliers),
        finished=True,
        message="a post-processing that was given",
    )


def _fitting(program: EnvelopeProgram, start: MechanismLike) -> Mechanism:
    """A post-processing of the program's outputs, or a MechanismError where it has other rows."""
    attack = as_mechanism(start)
    program.given.post_process(attack)
    return attack


ENVELOPE = Question(
    EnvelopeProgram,
    (Method("ratio-search", "linear programs at one likelihood ratio each, from both ends", _by_ratio),),
    _start,
    _certify,
)
"""Envelopes: the post-processing in hand is returned with its gap.

A warm start is the result for another delta of the same mechanism and prior, whose linear programs serve
again, or an (M, K) post-processing."""

CLOSED_FAILURE = Question(
    ProcessedFailureProgram,
    (Method("one-ratio", "one linear program", _at_epsilon),),
    always_cold,
    _certify_failure,
)
"""Closed failure probabilities: one linear program, which takes no start."""
