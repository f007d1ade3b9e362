"""Every method ends when its time is over: whenever that is, it does no more than what it must do at least.

The machine's speed has no part in it. A clock says at its k-th look that the time is over, and the calls of
functions after that are counted: those of a method that has no time from the beginning, which does the least
that gives an answer, and proves it, are enough.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from types import FrameType
from typing import Any

import numpy as np
import pytest
from scipy.stats import uniform

import pmlopt
from pmlopt import (
    PML,
    Continuous,
    CoordinateLoss,
    DistanceLoss,
    EstimationError,
    ExpectedGain,
    ExpectedLoss,
    IIDPrior,
    L1Ball,
    MetricPrivacy,
    MinimumMass,
    MutualInformation,
    Prior,
    best_worst_case,
    design,
    distortion_leakage,
    envelope,
    envelope_design,
    leakage_distortion,
    least_leakage,
    queries,
    record_leakage,
    solve,
    worst_case_utility,
)
from pmlopt.errors import PmloptError
from pmlopt.model.utility import hamming
from pmlopt.programs import failure_after_processing
from pmlopt.programs.certificate import Status
from pmlopt.programs.continuous.methods import GridRefinement
from pmlopt.programs.linear import methods as linear
from pmlopt.programs.program import REGISTRY, Method, MethodResult, find_registry
from pmlopt.solvers.solver_result import NO_DEADLINE, Deadline, MethodOptions

A_PROGRAM_AND_A_PROOF = 3_500
"""Calls in the package that declare a program anew, repair a matrix, and prove its level and its bound."""

PACKAGE = str(Path(pmlopt.__file__).parent)

RNG = np.random.default_rng(0)
PRIOR = Prior(RNG.dirichlet(np.full(8, 3.0)))
LARGE = Prior(RNG.dirichlet(np.full(32, 3.0)))
MIDDLE = Prior(RNG.dirichlet(np.full(14, 3.0)))
BALL = PML(0.5, over=L1Ball(MIDDLE, 0.1))
GAINS = ExpectedGain(RNG.random((8, 8)))
PLANE = np.random.default_rng(9).random((12, 2))
APART, POINTS = np.linalg.norm(PLANE[:, None] - PLANE, axis=2), Prior.uniform(12)
ORDER = RNG.permuted(np.tile(np.arange(8), (8, 1)), axis=1) + 1
CHANNEL = RNG.dirichlet(np.ones(6), 8)
PARITY, SUM = queries.ModularSum(2, 2), queries.ModularSum(2, 3)

PROGRAMS: dict[str, Any] = {
    "linear": design(PRIOR, PML(0.5), GAINS),
    "large": design(LARGE, PML(0.5), ExpectedGain(RNG.random((32, 32)))),
    "metric": design(POINTS, MetricPrivacy(2.0, APART), ExpectedLoss(APART)),
    "symmetric": design(IIDPrior([0.6, 0.4], 6), PML(0.5), CoordinateLoss(hamming)),
    "listed": design(PRIOR, PML(0.5), MutualInformation()),
    "searched": design(LARGE, PML(0.05), MutualInformation()),
    "split": design(MIDDLE, PML(0.5, over=MinimumMass(14, 0.01)), MutualInformation()),
    "ball": design(MIDDLE, BALL, MutualInformation()),
    "estimation": design(Prior(PRIOR.pmf[:5] / PRIOR.pmf[:5].sum()), PML(1.0), EstimationError()),
    "continuous": design(Continuous(uniform(0, 2)), PML(0.5), DistanceLoss()),
    "floor": least_leakage(PRIOR, GAINS, expected=0.79),
    "rank": worst_case_utility(PRIOR, ORDER, 6),
    "symmetric least": least_leakage(
        IIDPrior([0.7, 0.3], 6), CoordinateLoss(hamming), expected=0.5
    ),
    "threshold": best_worst_case(PRIOR, ORDER, 1.0),
    "envelope": envelope(PRIOR, CHANNEL, 0.1),
    "envelope over": envelope(PRIOR, CHANNEL, 0.1, over=L1Ball(PRIOR, 0.1)),
    "failure": failure_after_processing(PRIOR, CHANNEL, 0.3),
    "within": envelope_design(PRIOR, 0.5, 0.1, GAINS),
    "records": record_leakage(PARITY, queries.laplace(PARITY, 1.0), 1.0),
    "cells": record_leakage(SUM, queries.laplace(SUM, 1.0), 1.0),
    "leakage": leakage_distortion(PARITY, 0.2, 1.0),
    "distortion": distortion_leakage(PARITY, 0.1, 1.0),
}
OWN = {"highs", "clarabel"}
"""Of the solvers of cvxpy, one stands for all: what they are told of the time is told in one place."""


def rows(program: Any) -> Iterator[tuple[Method[Any, Any, Any], Any]]:
    """Every method that can take a program, and its start."""
    question = find_registry(program)
    start = question.make_start(program, None, NO_DEADLINE)
    known = [*question.list_automatic(program, start), *question.list_by_name_only(program, start)]
    for row in known:
        if isinstance(
            row.run, GridRefinement
        ):  # its bound is one certificate: on fewer boxes it is quick
            row = replace(row, run=GridRefinement(max_bins=8, boxes=64))
        if row.name in {*question.own_names, *OWN}:
            yield row, start


@dataclass
class Jump:
    """A clock that jumps to after its end at the k-th look, and the calls in the package since then.

    What libraries call within differs between their versions.
    """

    looks: int
    calls: int = 0
    late: bool = False

    def read(self) -> float:
        """The reading."""
        self.looks -= 1
        self.late = self.late or self.looks < 0
        return 1e9 if self.late else 0.0

    def __call__(self, frame: FrameType, event: str, argument: object) -> None:
        """Count, as a profile function."""
        own = frame.f_code.co_filename.startswith(PACKAGE)
        self.calls += self.late and own and event in ("call", "c_call")


def after(row: Method[Any, Any, Any], program: Any, start: Any, looks: int) -> tuple[Jump, Any]:
    """The clock that jumped, and the certificate of what was in hand, where there was anything."""
    jump = Jump(looks + 1)  # the first look makes the clock
    clock, found = Deadline.after(1e6, jump.read), None
    sys.setprofile(jump)
    try:
        found = row.run(program, MethodOptions(clock, program.tolerance), start).certificate
    except (PmloptError, ArithmeticError):
        pass
    finally:
        sys.setprofile(None)
    return jump, found


@pytest.mark.parametrize("kind", PROGRAMS)
def test_a_method_ends_when_its_time_is_over_with_what_is_true(kind: str) -> None:
    """No value of any method, whenever it was stopped, is beyond the bound of another."""
    program, held = PROGRAMS[kind], []
    for row, start in rows(program):
        jump, found = after(row, program, start, 0)
        least, certificates = jump.calls, [found]
        for looks in (1, 3):
            jump, found = after(row, program, start, looks)
            certificates.append(found)
            assert jump.calls <= 2 * least + A_PROGRAM_AND_A_PROOF
            if not jump.late:
                break
        held += [found for found in certificates if found is not None]
    assert all(found.verify() for found in held if math.isfinite(found.bound))
    sign = 1 if program.maximised else -1
    kept = [sign * found.value for found in held if getattr(found, "violation", 0.0) == 0]
    assert (
        max(kept, default=-math.inf)
        <= min(sign * found.bound for found in held) + program.rounding_gap
    )


def test_a_clock_without_a_limit_is_never_late() -> None:
    assert not NO_DEADLINE.expired
    assert not NO_DEADLINE.expired_for(-1e9)
    assert NO_DEADLINE.remaining() is None
    assert NO_DEADLINE.fraction(0.1) == NO_DEADLINE.at_least(1.0) == NO_DEADLINE


def test_a_clock_tells_what_is_left() -> None:
    now = [100.0]
    clock = Deadline.after(10.0, lambda: now[0])
    assert (clock.remaining(), clock.at_most(2.0).remaining()) == (10.0, 2.0)
    assert clock.fraction(0.3).remaining() == pytest.approx(3.0)
    assert clock.expired_for(-10.0)
    assert not clock.expired_for(-9.0)
    now[0] = 115.0
    assert clock.expired
    assert clock.expired_for(5.0)
    assert not clock.expired_for(6.0)
    assert (clock.remaining(), clock.remaining(0.5), clock.fraction(0.5).remaining()) == (
        0.0,
        0.5,
        0.0,
    )
    assert clock.at_least(2.0).remaining() == 2.0


def test_no_closed_form_is_proved_when_the_time_is_over() -> None:
    program = design(Prior.uniform(4), PML(0.5), ExpectedLoss(hamming))
    assert linear.METHODS.make_start(program, None, NO_DEADLINE).known is not None
    assert (
        linear.METHODS.make_start(program, None, Deadline(end=-1.0, read=lambda: 0.0)).known is None
    )


def test_the_clock_is_one_for_all_methods() -> None:
    """A result in hand is returned when the time is over: the next methods would have none."""
    question, ends = linear.METHODS, []

    def slow(program: Any, options: MethodOptions, start: Any) -> MethodResult[Any]:
        ends.append(options.deadline.end)
        matrix = np.full(program.table.shape, 1 / program.table.shape[1])
        while not options.deadline.expired:
            pass
        return replace(question.certify_matrix(program, matrix, np.zeros(8)), finished=False)

    rows = tuple(Method(name, "a test", slow) for name in ("one", "two"))
    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(REGISTRY, question.program, replace(question, methods=rows))
        result = solve(PROGRAMS["linear"], time_limit=1e-3)
    assert result.status is Status.LIMIT_REACHED
    assert [attempt.partition(":")[0] for attempt in result.attempts] in ([], ["one"])
    assert result.certificate.verify()
    assert len(ends) == 1
