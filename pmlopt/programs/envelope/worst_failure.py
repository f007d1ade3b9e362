"""The worst post-processing at one level: one linear program, mended until what it claims is exact."""

from __future__ import annotations

import math
import time
from dataclasses import dataclass

import numpy as np

from pmlopt.arrays import FloatArray
from pmlopt.backends.outcome import Options
from pmlopt.privacy.requirement import LARGEST_EXPONENT
from pmlopt.programs.envelope.attacks import leaking, spread, without_noise
from pmlopt.programs.envelope.dual_bound import with_closed
from pmlopt.programs.envelope.post_processing import RatioPrograms
from pmlopt.programs.envelope.program import ClosedFailureProgram
from pmlopt.programs.envelope.rational_mechanism import RationalMechanism


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

    Which letters are closed, so that no outcome can leak epsilon through them, is decided in rational
    arithmetic: the probability jumps there.
    """
    exact = RationalMechanism.of(program.prior, program.given.matrix)
    level = min(program.epsilon, LARGEST_EXPONENT)
    gains = exact.gains(level)
    occurring = program.given.support
    law, apart = np.asarray(program.prior.pmf @ program.given.matrix)[occurring], gains[:, occurring]
    closed = np.asarray((apart < 0).all(axis=1))
    none = np.zeros(gains.T.shape)
    if level == 0 or closed.all():
        return WorstFailure(leaking(gains, none), with_closed(law, apart, np.zeros(len(gains)), closed))
    begin = time.perf_counter()
    programs = RatioPrograms(program)
    seconds = time.perf_counter() - begin
    try:
        _, _, point, found = programs.solve(math.exp(level), closed, options.time_limit)
    except ArithmeticError as cause:
        simple = np.full(len(gains), math.exp(-level))
        return WorstFailure(leaking(gains, none), simple, 1, str(cause), seconds)
    return WorstFailure(
        shares=leaking(gains, spread(program, without_noise(point))),
        multipliers=with_closed(law, apart, found, closed),
        programs=1,
        compile_seconds=seconds,
    )
