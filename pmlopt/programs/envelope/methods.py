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
from pmlopt.data.mechanism import Mechanism, as_mechanism
from pmlopt.model.privacy.requirement import LARGEST_EXPONENT
from pmlopt.programs.certificate import Restart, Solved, WarmStart, restart_of
from pmlopt.programs.envelope.certificate import EnvelopeCertificate, ProcessedFailureCertificate
from pmlopt.programs.envelope.certifying import (
    binary_attack,
    certify_envelope,
    certify_failure,
    channel,
    folded,
    leaking,
    reached_ratio,
    spread,
    topped_up,
)
from pmlopt.programs.envelope.masses import reached_mass
from pmlopt.programs.envelope.multipliers import RatioPrograms, proved_ratio, with_closed
from pmlopt.programs.envelope.program import EnvelopeProgram, ProcessedFailureProgram
from pmlopt.programs.program import Found, Method, Question, always_cold, certified
from pmlopt.solvers.outcome import TIME, Clock, Options
from pmlopt.solvers.two_sided_search import FEASIBILITY_TOLERANCE, MARK_OFFSET, Answer, Search

CLOSED = 1e-12
"""A letter's outcome is closed at ratios above its largest by this share, which rounding cannot explain."""

DIFFERENCE_ROUNDING = 8 * float(np.finfo(float).eps)
"""What rounding may do to `t q[y] - P[x,y]`, as a share of t q[y]; far below `CLOSED`."""

NEAR_MARK = 4 * MARK_OFFSET
"""A largest ratio that is below the one asked by at most this share: the search asks just above it."""

SEARCHED_GAP = 1 / 10
"""The gap at which the search ends, as a share of the tolerance: it costs one program more, if any."""

MAX_REMEMBERED = 32
"""Linear programs that are handed on to the next delta, those at the nearest ratios: a search uses four, and
a point of 50 by 50 takes 20 kB."""

PROOFS_ABOVE = 3
"""How many programs above the new envelope a search takes multipliers from: the nearest are the sharpest."""


@dataclass(frozen=True, eq=False)
class AskedRatio:
    """The linear program at one ratio, which says something about every delta.

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
class EnvelopeStart:
    """What the search over ratios may start from.

    Attributes:
        points: (M', N) attacks of a person's own.
        asked: what is known of the linear program at some ratios, from another delta.
    """

    points: list[FloatArray] = field(default_factory=list)
    asked: list[AskedRatio] = field(default_factory=list)


class _RatioFeasibility:
    """Whether outcomes of mass delta can have the likelihood ratio t: what is missing is delta - V(t)."""

    blur = 0.0

    def __init__(self, program: EnvelopeProgram, accuracy: float) -> None:
        self.program, self.accuracy = program, accuracy
        self.most = math.exp(program.simple_bound)
        # V jumps where the outcome of a letter closes
        self.marks = program.largest_ratios
        self.programs = RatioPrograms(program, program.delta)
        self.asked: list[AskedRatio] = []

    def solve(self, number: float, clock: Clock) -> Answer[FloatArray | None]:
        program = self.program
        closed = self.marks * (1 + CLOSED) < number
        mass, slope, point, found = self.programs.solve(number, closed, clock)
        # those of closed letters hold from just above their largest ratio on, where that is near
        asked = np.where(closed, np.maximum(self.marks * (1 + CLOSED), number * (1 - NEAR_MARK)), number)
        gains = program.columns - asked[:, None] * program.law
        # what rounding may take off a difference, which is small where t is just above the largest ratio
        gains[closed] += DIFFERENCE_ROUNDING * number * program.law
        multipliers = with_closed(program.law, gains, found, closed)
        self.asked.append(AskedRatio(number, mass, slope, point, multipliers))
        return self.asked[-1].answer(program.delta)

    def witness(self, point: FloatArray) -> tuple[float, FloatArray]:
        """What a (K, N) point reaches, under the prior of the program or the worst known one of its set."""
        together = self.program.together(point)
        attacks = [topped_up(single, together) for single in self.program.singles]
        reached = [reached_ratio(*pair) for pair in zip(self.program.singles, attacks, strict=True)]
        best = int(np.argmax(reached))
        return reached[best], attacks[best]

    def proved(self, proof: FloatArray | None) -> float:
        """The ratio that multipliers prove, or the least that others have, or Theorem 3."""
        if proof is not None:
            self.most = proved_ratio(self.program, proof, self.most, self.accuracy)
        return self.most

    def beyond(self, now: FloatArray | None, then: FloatArray | None, step: float) -> FloatArray | None:
        if now is None or then is None:
            return None
        ahead = now + step * (now - then)
        ahead[: self.program.prior.size] = np.maximum(0.0, ahead[: self.program.prior.size])
        return np.asarray(ahead)


def search_ratio(
    program: EnvelopeProgram, options: Options, start: EnvelopeStart
) -> tuple[Search[FloatArray, FloatArray | None], list[AskedRatio], int, str]:
    """Close in on the largest ratio that outcomes of mass delta can have, from both ends.

    Over a set of priors the attacks come from the priors that look worst, each searched alone.

    Returns:
        Both ends, the programs at the nearest ratios, how many there were in all, and how it ended.
    """
    delta, singles = program.delta, program.singles
    above = sorted(
        (a for a in start.asked if a.mass < delta * (1 - FEASIBILITY_TOLERANCE)), key=lambda a: a.ratio
    )
    below = [a for a in start.asked if a.mass >= delta]
    alone = [] if program.over is None else [search_ratio(one, options, EnvelopeStart()) for one in singles]
    plain = np.eye(len(program.given.outputs))
    first = [folded(single, plain) for single in singles] + [binary_attack(single) for single in singles]
    first += start.points + [end.witness for end, *_ in alone if end.witness is not None]
    first += [max(below, key=lambda a: a.ratio).point] if below else []
    family = _RatioFeasibility(program, options.tolerance * SEARCHED_GAP / 4)
    search = Search(
        family,
        [family.witness(point) for point in first],
        [None, *(a.multipliers for a in above[:PROOFS_ABOVE])],
        options.tolerance * SEARCHED_GAP,
        options.clock,
        (above[0].ratio, above[0].answer(delta)) if above else None,
    )
    ending = search.run()
    known = sorted([*start.asked, *family.asked], key=lambda a: abs(math.log(a.ratio / search.reached)))
    count = search.programs + sum(programs for _, _, programs, _ in alone)
    return search, known[:MAX_REMEMBERED], count, ending


def as_arrays(program: EnvelopeProgram, asked: list[AskedRatio]) -> Mapping[str, NDArray[Any]]:
    """What was asked as plain arrays, with the mechanism that it is about."""
    names = [one.name for one in fields(AskedRatio)]
    columns = {name: np.array([getattr(a, name) for a in asked]) for name in names}
    return {"merged": program.columns, "law": program.law, **columns}


def from_arrays(program: EnvelopeProgram, arrays: Mapping[str, NDArray[Any]]) -> list[AskedRatio]:
    """What was asked of the same mechanism under the same prior; nothing, where it is another."""
    names = [one.name for one in fields(AskedRatio)]
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


def worst_failure(
    program: ProcessedFailureProgram, options: Options
) -> tuple[FloatArray, FloatArray, int, str]:
    """The outputs that leak epsilon or more with most probability, and the multipliers that bound it.

    Over a set of priors the shares are the worst of those found under single priors, and the multipliers are
    those of the program over the set.

    Returns:
        (M, N) of each output, what goes to the outcome of each letter; (N,) the multipliers; how many linear
        programs there were; and what the solver said where one did not end at an optimum, else nothing.
    """
    if program.over is None:
        return _at_level(program, options)
    alone = [_at_level(single, options) for single in program.singles]
    masses = [
        reached_mass(single.exact.outcomes(channel(program, shares).matrix), program.epsilon)
        for single, (shares, *_) in zip(program.singles, alone, strict=True)
    ]
    _, multipliers, count, failure = _at_level(program, options)
    shares = alone[masses.index(max(masses))][0]
    return shares, multipliers, count + sum(programs for _, _, programs, _ in alone), failure


def _at_level(program: ProcessedFailureProgram, options: Options) -> tuple[FloatArray, FloatArray, int, str]:
    """The linear program at e^epsilon; over a set its shares are those of both copies of each output.

    Which letters are closed, so that no outcome can leak epsilon through them, is decided in rational
    arithmetic: the probability jumps there.
    """
    level = min(program.epsilon, LARGEST_EXPONENT)
    gains = program.exact.gains(level)
    own = gains[:, : len(program.given.outputs)]
    occurring = np.tile(program.given.support, len(program.exact.laws))
    law, apart = program.exact.law_of_outputs[occurring], gains[:, occurring]
    closed = np.asarray((apart < 0).all(axis=1))
    none = leaking(own, np.zeros(own.T.shape))
    if level == 0 or closed.all():
        return none, with_closed(law, apart, np.zeros(program.multipliers), closed), 0, ""
    most = float(program.merged.max(axis=0).sum()) * math.exp(-level)
    try:
        _, _, point, found = RatioPrograms(program, min(1.0, most)).solve(
            math.exp(level), closed, options.clock
        )
    except ArithmeticError as cause:
        return none, program.padded(np.full(len(gains), math.exp(-level))), 1, str(cause)
    shares = leaking(own, spread(program, program.together(point)))
    return shares, with_closed(law, apart, found, closed), 1, ""


def _by_ratio(program: EnvelopeProgram, options: Options, start: EnvelopeStart) -> Found[EnvelopeCertificate]:
    """Search, and certify both ends; `iterations` counts the linear programs."""
    begin = time.perf_counter()
    search, asked, count, ending = search_ratio(program, options, start)
    assert search.witness is not None
    clock = time.perf_counter()
    attack = channel(program, spread(program, search.witness))
    certificate = certify_envelope(program, attack, search.proofs[0])
    told = f"{ending} after {count} linear programs"
    return Found(
        certificate=certificate,
        finished=ending != TIME,
        message=told,
        detail=told,
        iterations=count,
        warm_started=bool(start.points or start.asked),
        solve_seconds=clock - begin,
        certify_seconds=time.perf_counter() - clock,
        arrays=as_arrays(program, asked),
    )


def _start(program: EnvelopeProgram, warm_start: WarmStart) -> EnvelopeStart:
    """What was asked for another delta, or the post-processing that was given."""
    if warm_start is None or warm_start is False:
        return EnvelopeStart()
    if isinstance(warm_start, Restart | Solved):
        restart = restart_of(warm_start)
        return EnvelopeStart(asked=[] if restart is None else from_arrays(program, restart.arrays))
    attack = as_mechanism(warm_start)
    program.given.post_process(attack)  # a MechanismError where it has other rows
    return EnvelopeStart(points=[folded(program.singles[0], attack.matrix)])


def _at_epsilon(
    program: ProcessedFailureProgram, options: Options, _: None
) -> Found[ProcessedFailureCertificate]:
    """Solve it, mend its point, and certify both ends."""
    begin = time.perf_counter()
    shares, multipliers, count, failure = worst_failure(program, options)
    clock = time.perf_counter()
    certificate = certify_failure(program, channel(program, shares), multipliers)
    return Found(
        certificate=certificate,
        finished=not failure,
        message=failure or "the linear program at epsilon",
        detail=failure,
        iterations=count,
        solve_seconds=clock - begin,
        certify_seconds=time.perf_counter() - clock,
    )


ENVELOPE = Question(
    EnvelopeProgram,
    (Method("ratio-search", "linear programs at one likelihood ratio each, from both ends", _by_ratio),),
    _start,
    lambda program, matrix, lam: certified(certify_envelope(program, Mechanism(matrix), lam)),
)
"""Envelopes: the post-processing in hand is returned with its gap.

A warm start is the result for another delta of the same mechanism and prior, whose linear programs serve
again, or an (M, K) post-processing."""

CLOSED_FAILURE = Question(
    ProcessedFailureProgram,
    (Method("one-ratio", "one linear program", _at_epsilon),),
    always_cold,
    lambda program, matrix, lam: certified(certify_failure(program, Mechanism(matrix), lam)),
)
"""Closed failure probabilities: one linear program, which takes no start."""
