"""The methods: a search over the likelihood ratio for envelopes, one linear program for a failure."""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from typing import Any, TypeVar

import numpy as np

from pmlopt.core.arrays import FloatArray
from pmlopt.core.programming_errors import raise_if_strict
from pmlopt.data.mechanism import Mechanism
from pmlopt.model.privacy.requirement import LARGEST_EXPONENT
from pmlopt.programs.envelope.certificate import PostProcessingCertificate
from pmlopt.programs.envelope.certifying import (
    RatioPrograms,
    binary_attack,
    certify_envelope,
    certify_failure,
    channel,
    leaking,
    plain_attack,
    proved_level,
    reached_ratio,
    spread,
    topped_up,
    with_closed,
)
from pmlopt.programs.envelope.masses import reached_mass
from pmlopt.programs.envelope.program import EnvelopeProgram, PostProcessings, ProcessedFailureProgram
from pmlopt.programs.program import Found, Method, Question, certified, starts_cold
from pmlopt.solvers.outcome import TIME, Clock, Options
from pmlopt.solvers.two_sided_search import MARK_OFFSET, Answer, Search

CLOSED = 1e-12
"""A letter's outcome is closed at ratios above its largest by this share, which rounding cannot explain."""


class _RatioFeasibility:
    """Whether outcomes of mass delta can have the likelihood ratio t: the infeasibility is delta - V(t)."""

    blur = 0.0

    def __init__(self, program: EnvelopeProgram, accuracy: float) -> None:
        self.program, self.accuracy = program, accuracy
        self.most = program.simple_bound
        # V jumps where the outcome of a letter closes
        self.marks = program.largest_ratios
        self.programs = RatioPrograms(program, program.delta)

    def solve(self, number: float, clock: Clock) -> Answer[FloatArray | None]:
        """Solve the linear program at a ratio; the infeasibility is a fraction of delta."""
        program = self.program
        closed = self.marks * (1 + CLOSED) < number
        mass, slope, point, found = self.programs.solve(number, closed, clock)
        # those of closed letters hold from just above their largest ratio on, where that is near
        # the search solves just above a largest ratio: closer ones count as that ratio
        asked = np.where(
            closed, np.maximum(self.marks * (1 + CLOSED), number * (1 - (4 * MARK_OFFSET))), number
        )
        gains = program.columns - asked[:, None] * program.law
        # what rounding may take off a difference, which is small where t is just above the largest ratio
        # rounding of `t q[y] - P[x,y]` is a few units in the last place of t q[y]
        gains[closed] += (8 * float(np.finfo(float).eps)) * number * program.law
        multipliers = with_closed(program.law, gains, found, closed)
        return Answer(1 - mass / program.delta, slope / program.delta, point, multipliers)

    def witness(self, point: FloatArray) -> tuple[float, FloatArray]:
        """Compute the ratio of a (K, N) point, under the worst known prior of the program."""
        together = self.program.together(point)
        attacks = [topped_up(single, together) for single in self.program.singles]
        reached = [reached_ratio(*pair) for pair in zip(self.program.singles, attacks, strict=True)]
        best = int(np.argmax(reached))
        return reached[best], attacks[best]

    def proved(self, proof: FloatArray | None) -> float:
        """Compute the ratio that multipliers prove, or the least of others, or that of Theorem 3."""
        if proof is not None:
            self.most = proved_level(self.program, proof, self.most, self.accuracy)
        return math.exp(self.most)

    def beyond(self, now: FloatArray | None, then: FloatArray | None, step: float) -> FloatArray | None:
        if now is None or then is None:
            return None
        ahead = now + step * (now - then)
        ahead[: self.program.prior.size] = np.maximum(0.0, ahead[: self.program.prior.size])
        return np.asarray(ahead)


Ends = tuple[FloatArray, FloatArray | None, int, str, bool]
"""What a method found: (M, N) of each output, what goes to the outcome of each letter; the multipliers; how
many linear programs there were; how it ended, in words; and whether by itself."""


def worst_ratio(program: EnvelopeProgram, options: Options) -> Ends:
    """Search the largest ratio that outcomes of mass delta can have, from both ends.

    Over a set of priors the attacks come from the priors that look worst, each searched alone.
    """
    search, count, ending = _searched(program, options)
    assert search.witness is not None
    told = f"{ending} after {count} linear programs"
    return spread(program, search.witness), search.proofs[0], count, told, ending != TIME


def _searched(
    program: EnvelopeProgram, options: Options
) -> tuple[Search[FloatArray, FloatArray | None], int, str]:
    singles = program.singles
    alone = [] if program.over is None else [_searched(one, options) for one in singles]
    first = [attack(single) for attack in (plain_attack, binary_attack) for single in singles]
    first += [end.witness for end, *_ in alone if end.witness is not None]
    # a tenth of the tolerance costs at most one program more
    gap = options.tolerance * (1 / 10)
    family = _RatioFeasibility(program, gap / 4)
    search = Search(family, [family.witness(point) for point in first], [None], gap, options.clock)
    ending = search.run()
    return search, search.programs + sum(programs for _, programs, _ in alone), ending


def worst_failure(program: ProcessedFailureProgram, options: Options) -> Ends:
    """Find the outputs that leak epsilon or more with most probability, and the multipliers that bound it.

    Over a set of priors the shares are the worst of those found under single priors, and the multipliers are
    those of the program over the set.
    """
    if program.over is None:
        return _at_level(program, options)
    alone = [_at_level(single, options) for single in program.singles]
    masses = [
        reached_mass(single.exact.outcomes(channel(program, shares).matrix), program.epsilon)
        for single, (shares, *_) in zip(program.singles, alone, strict=True)
    ]
    _, multipliers, count, told, finished = _at_level(program, options)
    shares = alone[masses.index(max(masses))][0]
    return shares, multipliers, count + sum(programs for _, _, programs, *_ in alone), told, finished


def _at_level(program: ProcessedFailureProgram, options: Options) -> Ends:
    """Solve the linear program at e^epsilon; over a set its shares are those of both copies of each output.

    Which letters are closed, so that no outcome can leak epsilon through them, is decided in rational
    arithmetic: the probability jumps there.
    """
    level = min(program.epsilon, LARGEST_EXPONENT)
    gains = program.exact.gains(level)
    own = gains[:, : len(program.given.outputs)]
    occurring = np.tile(program.given.support, len(program.exact.laws))
    exact = np.concatenate(program.exact.laws) / program.exact.total
    law, apart = np.asarray(exact[occurring], dtype=float), gains[:, occurring]
    closed = np.asarray((apart < 0).all(axis=1))
    none, told = leaking(own, np.zeros(own.T.shape)), "the linear program at epsilon"
    if level == 0 or closed.all():
        return none, with_closed(law, apart, np.zeros(program.multipliers), closed), 0, told, True
    most = float(program.merged.max(axis=0).sum()) * math.exp(-level)
    try:
        programs = RatioPrograms(program, min(1.0, most))
        _, _, point, found = programs.solve(math.exp(level), closed, options.clock)
    except ArithmeticError as cause:
        raise_if_strict(cause)
        return none, program.padded(np.full(len(gains), math.exp(-level))), 1, str(cause), False
    shares = leaking(own, spread(program, program.together(point)))
    return shares, with_closed(law, apart, found, closed), 1, told, True


P = TypeVar("P", bound=PostProcessings[Any])
C = TypeVar("C", bound=PostProcessingCertificate)
Certifying = Callable[[P, Mechanism, FloatArray | None], C]


def _question(
    kind: type[P], name: str, reason: str, find: Callable[[P, Options], Ends], certify: Certifying[P, C]
) -> Question[P, None, C]:
    """Make the registry of a kind of program with one method, which finds both bounds."""

    def run(program: P, options: Options, _: None) -> Found[C]:
        begin = time.perf_counter()
        shares, multipliers, count, told, finished = find(program, options)
        clock = time.perf_counter()
        return Found(
            certificate=certify(program, channel(program, shares), multipliers),
            finished=finished,
            message=told,
            iterations=count,
            solve_seconds=clock - begin,
            certify_seconds=time.perf_counter() - clock,
        )

    return Question(
        kind,
        (Method(name, reason, run),),
        starts_cold("a worst post-processing starts from simple ones: leave out the mechanism"),
        lambda program, matrix, lam: certified(certify(program, Mechanism(matrix), lam)),
    )


ENVELOPE = _question(
    EnvelopeProgram,
    "ratio-search",
    "linear programs at one likelihood ratio each, from both ends",
    worst_ratio,
    certify_envelope,
)
"""Envelopes: the post-processing in hand is returned with its gap."""

CLOSED_FAILURE = _question(
    ProcessedFailureProgram, "one-ratio", "one linear program", worst_failure, certify_failure
)
"""Closed failure probabilities."""
