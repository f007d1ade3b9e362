"""Every solve ends with a mechanism: each kind of program has one before a solver has."""

from __future__ import annotations

import math
from typing import Any

import cvxpy as cp
import numpy as np
import pytest

from pmlopt import (
    LDP,
    PML,
    CoordinateLoss,
    EstimationError,
    ExpectedGain,
    ExpectedLoss,
    IIDPrior,
    L1Ball,
    MutualInformation,
    Prior,
    Secret,
    design,
    distortion_leakage,
    envelope_design,
    leakage_distortion,
    least_leakage,
    queries,
    solve,
)
from pmlopt.errors import InfeasibleError
from pmlopt.model.constraints import Invariant
from pmlopt.model.utility import hamming
from pmlopt.programs import Status
from pmlopt.programs.linear.feasible import find_first_mechanism
from pmlopt.programs.registry import find_question

RNG = np.random.default_rng(4)
PRIOR = Prior(RNG.dirichlet(np.full(6, 3.0)))
LOSS = ExpectedLoss(RNG.random((6, 6)))
SECRET = Secret.from_counts(RNG.integers(1, 9, (2, 6)))
SUM = queries.ModularSum(4, 3)

PROGRAMS: dict[str, Any] = {
    "information": design(PRIOR, PML(0.5), MutualInformation()),
    "information over priors": design(
        PRIOR, PML(0.5, over=L1Ball(PRIOR, 0.1)), MutualInformation()
    ),
    "information about a secret": design(SECRET.prior, PML(0.1, about=SECRET), MutualInformation()),
    "estimation": design(PRIOR, LDP(1.0), EstimationError()),
    "least leakage": least_leakage(PRIOR, ExpectedGain(np.eye(6)), expected=0.6),
    "least leakage by orbits": least_leakage(
        IIDPrior([0.7, 0.3], 5), CoordinateLoss(hamming), expected=0.4
    ),
    "envelope design": envelope_design(PRIOR, 0.5, 0.1, LOSS),
    "least leakage within a distortion": leakage_distortion(SUM, 0.2, 2.0),
    "least distortion within a leakage": distortion_leakage(SUM, 0.1, 2.0),
    "expected loss": design(PRIOR, PML(0.5), LOSS),
    "expected loss about a secret": design(SECRET.prior, PML(0.1, about=SECRET), LOSS),
    "expected loss with a constraint": design(PRIOR, LDP(0.5), LOSS, constraints=[Invariant()]),
}


@pytest.mark.parametrize("kind", PROGRAMS)
def test_a_first_mechanism_keeps_the_limits_and_is_no_better_than_the_optimum(kind: str) -> None:
    program = PROGRAMS[kind]
    question = find_question(program)
    assert question.find_first_result is not None
    first = question.find_first_result(program).certificate
    assert first.verify()
    assert first.violation == 0
    sign, best = 1 if program.maximised else -1, solve(program, time_limit=1)
    assert sign * first.value <= sign * best.bound + 1e-9
    assert sign * best.value <= sign * first.bound + 1e-9


@pytest.mark.parametrize("kind", PROGRAMS)
def test_a_solve_without_time_ends_with_a_mechanism(kind: str) -> None:
    result = solve(PROGRAMS[kind], time_limit=1e-6)
    assert result.status in (Status.STOPPED, Status.UNPROVED, Status.OPTIMAL)
    assert result.certificate.verify()
    assert result.certificate.violation == 0


def constrained(size: int, build: Any) -> Any:
    """Return a design with constraints of a person's own."""
    rng = np.random.default_rng(size)
    program: Any = design(
        rng.dirichlet(np.full(size, 3.0)), PML(0.6), ExpectedLoss(rng.random((size, size)))
    )
    return program.with_constraints(**build(program))


def test_a_first_mechanism_keeps_linear_constraints() -> None:
    program = constrained(5, lambda one: {"likely": one.variables["output_law"][0, 0] >= 0.7})
    found = find_first_mechanism(program).certificate
    assert float(program.prior.pmf @ found.mechanism.matrix[:, 0]) >= 0.7 - 1e-6
    assert found.bound <= solve(program).value + 1e-9 <= found.value + 2e-9


def test_a_first_mechanism_keeps_curved_constraints() -> None:
    program = constrained(5, lambda one: {"spread": cp.sum_squares(one.mechanism) <= 1.3})
    found = find_first_mechanism(program).certificate
    assert (found.mechanism.matrix**2).sum() <= 1.3 * (1 + 1e-6)
    assert found.verify()


def test_constraints_that_no_constant_meets_are_met_by_a_search() -> None:
    """Each letter is kept with a probability above the 1 / 5 that constants have on average."""
    program = constrained(5, lambda one: {"kept": cp.diag(one.mechanism) >= 0.25})
    found = find_first_mechanism(program).certificate
    assert found.mechanism.matrix.diagonal().min() >= 0.25 - 1e-6
    assert found.level <= 0.6


def test_constraints_that_no_mechanism_meets_are_infeasible_however_little_time_there_is() -> None:
    program = constrained(5, lambda one: {"clear": cp.diag(one.mechanism) >= 0.95})
    with pytest.raises(InfeasibleError, match="clear"):
        solve(program, time_limit=1e-6)


def test_the_bound_of_a_first_mechanism_is_finite_with_linear_constraints() -> None:
    program = PROGRAMS["expected loss with a constraint"]
    assert math.isfinite(find_first_mechanism(program).certificate.bound)
