"""The worst post-processing at one level: one linear program, mended until what it claims is exact."""

from __future__ import annotations

import math
import time
from dataclasses import dataclass

import numpy as np

from pmlopt.arrays import FloatArray
from pmlopt.backends.outcome import Options
from pmlopt.privacy.requirement import LARGEST_EXPONENT
from pmlopt.programs.envelope.attacks import channel, leaking, spread, without_noise
from pmlopt.programs.envelope.dual_bound import with_closed
from pmlopt.programs.envelope.post_processing import RatioPrograms
from pmlopt.programs.envelope.program import ClosedFailureProgram
from pmlopt.programs.envelope.rational_mechanism import leaking_mass


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


def worst_failure(program: ClosedFailureProgram, options: Options) -> WorstFailure:
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


def _at_level(program: ClosedFailureProgram, options: Options) -> WorstFailure:
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
    programs = RatioPrograms(program)
    seconds = time.perf_counter() - begin
    try:
        _, _, point, found = programs.solve(math.exp(level), closed, options.clock)
    except ArithmeticError as cause:
        simple = program.padded(np.full(len(gains), math.exp(-level)))
        return WorstFailure(leaking(own, none), simple, 1, str(cause), seconds)
    return WorstFailure(
        shares=leaking(own, spread(program, without_noise(program.together(point)))),
        multipliers=with_closed(law, apart, found, closed),
        programs=1,
        compile_seconds=seconds,
    )
