"""Every method ends when its time is over: whenever that is, it does no more than what it must do at least.

The machine's speed has no part in it. A clock says at its k-th look that the time is over, and the calls of
functions after that are counted: as many as a method makes that has no time from the beginning, which does the
least that gives an answer, and proves it, are enough.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.stats import uniform

from pmlopt import (
    PML,
    Continuous,
    CoordinateLoss,
    DistanceLoss,
    EstimationError,
    ExpectedGain,
    L1Ball,
    MinimumMass,
    MutualInformation,
    Prior,
    Types,
    best_worst_case,
    closed_failure,
    design,
    distortion_leakage,
    envelope,
    envelope_design,
    leakage_distortion,
    least_leakage,
    queries,
    record_leakage,
    worst_case_utility,
)
from pmlopt.backends.clock import Clock
from pmlopt.backends.outcome import Options
from pmlopt.errors import PmloptError
from pmlopt.programs.question import Method
from pmlopt.solving import QUESTIONS
from pmlopt.utility import hamming

RNG = np.random.default_rng(0)
PRIOR = Prior(RNG.dirichlet(np.full(12, 3.0)))
LARGE = Prior(RNG.dirichlet(np.full(40, 3.0)))
BALL = PML(0.5, over=L1Ball(PRIOR, 0.1))
GAINS = ExpectedGain(RNG.random((12, 12)))
ORDER = RNG.permuted(np.tile(np.arange(12), (12, 1)), axis=1) + 1
CHANNEL = RNG.dirichlet(np.ones(6), 12)
PARITY, SUM = queries.ModularSum(3, 2), queries.ModularSum(4, 3)

PROGRAMS: dict[str, Any] = {
    "linear": design(PRIOR, PML(0.5), GAINS),
    "large": design(LARGE, PML(0.5), ExpectedGain(RNG.random((40, 40)))),
    "symmetric": design(Types([0.6, 0.4], 6), PML(0.5), CoordinateLoss(hamming)),
    "listed": design(PRIOR, PML(0.5), MutualInformation()),
    "searched": design(LARGE, PML(0.5), MutualInformation()),
    "split": design(PRIOR, PML(0.5, over=MinimumMass(12, 0.01)), MutualInformation()),
    "ball": design(PRIOR, BALL, MutualInformation()),
    "estimation": design(PRIOR, PML(1.0), EstimationError()),
    "continuous": design(Continuous(uniform(0, 2)), PML(0.5), DistanceLoss()),
    "floor": least_leakage(PRIOR, GAINS, expected=0.7),
    "rank": worst_case_utility(PRIOR, ORDER, 6),
    "symmetric least": least_leakage(Types([0.7, 0.3], 6), CoordinateLoss(hamming), expected=0.5),
    "threshold": best_worst_case(PRIOR, ORDER, 1.0),
    "envelope": envelope(PRIOR, CHANNEL, 0.1),
    "envelope over": envelope(PRIOR, CHANNEL, 0.1, over=L1Ball(PRIOR, 0.1)),
    "failure": closed_failure(PRIOR, CHANNEL, 0.3),
    "within": envelope_design(PRIOR, 0.5, 0.1, GAINS),
    "records": record_leakage(PARITY, queries.laplace(PARITY, 1.0), 1.5),
    "cells": record_leakage(SUM, queries.laplace(SUM, 1.0), 2.0),
    "leakage": leakage_distortion(PARITY, 0.2, 1.5),
    "distortion": distortion_leakage(PARITY, 0.1, 1.5),
}
OWN = {"highs", "clarabel"}
"""Of the solvers of cvxpy, one stands for all: what they are told of the time is told in one place."""


def rows(program: Any) -> Iterator[tuple[Method[Any, Any, Any], Any]]:
    """Every method that can take a program, and its start."""
    question = next(one for one in QUESTIONS if one.program is type(program))
    start = question.start(program, None)
    known = [*question.automatic(program, start), *question.others(program, start)]
    for row in known:
        if row.name in {*question.names, *OWN}:
            yield row, start


@dataclass
class Jump:
    """A clock that jumps to after its end at the k-th look, and the calls of functions since then."""

    looks: int
    calls: int = 0
    late: bool = False

    def read(self) -> float:
        """The reading."""
        self.looks -= 1
        self.late = self.late or self.looks < 0
        return 1e9 if self.late else 0.0

    def __call__(self, frame: object, event: str, argument: object) -> None:
        """Count, as a profile function."""
        self.calls += self.late and event in ("call", "c_call")


def after(row: Method[Any, Any, Any], program: Any, start: Any, looks: int) -> tuple[int, bool]:
    """The calls after the jump of a clock, and whether it came to that."""
    jump = Jump(looks + 1)  # the first look makes the clock
    clock = Clock.of(1e6, jump.read)
    sys.setprofile(jump)
    try:
        row.run(program, Options(clock, program.tolerance), start)
    except PmloptError:
        pass
    finally:
        sys.setprofile(None)
    return jump.calls, jump.late


CASES = {
    f"{kind}-{place}-{row.name}": (row, program, start)
    for kind, program in PROGRAMS.items()
    for place, (row, start) in enumerate(rows(program))
}
if __name__ == "__main__":
    import time

    for name, case in CASES.items():
        t = time.perf_counter()
        least = after(*case, 0)[0]
        t0 = time.perf_counter() - t
        print(name, least, round(t0, 2), end=": ", flush=True)
        k = 1
        while True:
            t = time.perf_counter()
            calls, late = after(*case, k)
            if not late:
                print("end", k, round(time.perf_counter() - t, 2))
                break
            print(k, round(calls / least, 2), round(time.perf_counter() - t, 2), end="; ", flush=True)
            k *= 3
            if k > 3000:
                print()
                break
