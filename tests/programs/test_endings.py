"""Every solve ends with a mechanism: each kind of program has one before a solver has."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import cvxpy as cp
import numpy as np
import pytest

from pmlopt import (
    LDP,
    PML,
    CirclePrior,
    CoordinateLoss,
    EstimationError,
    ExpectedGain,
    ExpectedLoss,
    IIDPrior,
    L1Ball,
    MetricPrivacy,
    MutualInformation,
    Prior,
    Secret,
    certify,
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
from pmlopt.model.utility import DisplacementLoss, hamming
from pmlopt.programs import Status
from pmlopt.programs.best_feasible import FIRST_FEASIBLE, MethodAttempts, select_best_result
from pmlopt.programs.linear.feasible import find_first_mechanism
from pmlopt.programs.linear.methods import METHODS
from pmlopt.programs.program import Method, MethodError, find_registry
from pmlopt.solvers.solver_result import NO_DEADLINE

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
    question = find_registry(program)
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
    assert result.status in (Status.LIMIT_REACHED, Status.UNPROVED, Status.OPTIMAL)
    assert result.certificate.verify()
    assert result.certificate.violation == 0


@pytest.mark.parametrize(
    ("prior", "utility", "reach"),
    [
        (IIDPrior([0.7, 0.3], 6), CoordinateLoss(hamming), 0.4),
        (IIDPrior([0.7, 0.3], 6), CoordinateLoss(hamming), 5.0),
        (CirclePrior(21), DisplacementLoss([min(k, 21 - k) for k in range(21)]), 2.0),
    ],
    ids=["records", "constant", "circle"],
)
def test_a_least_level_by_orbits_without_time_ends_with_a_mechanism(
    prior: Any, utility: Any, reach: float
) -> None:
    program: Any = least_leakage(prior, LDP, utility, reach)
    result, best = solve(program, time_limit=1e-6), solve(program)
    assert result.certificate.verify()
    assert result.bound <= best.value <= result.value + 1e-9
    if reach == 5.0:  # more than the 1.8 of the best constant: nothing need be revealed
        assert result.value == 0


def fail(message: str) -> Any:
    """Return the run of a method that has no result."""

    def run(*_: object) -> Any:
        raise MethodError(message)

    return run


@pytest.mark.parametrize("kind", PROGRAMS)
@pytest.mark.parametrize("time_limit", [None, 1e3])
def test_a_solve_whose_methods_all_fail_ends_with_a_mechanism(
    kind: str, time_limit: float | None
) -> None:
    """Whatever they state, and however much of the time is left."""
    method: Any = Method("failing", "a test", fail("compiling takes longer than there is"))
    result = solve(PROGRAMS[kind], method, time_limit=time_limit)
    assert result.status is Status.LIMIT_REACHED
    assert result.solver == FIRST_FEASIBLE
    assert result.certificate.verify()
    assert result.certificate.violation == 0
    assert result.attempts == ("failing: compiling takes longer than there is",)


@pytest.mark.parametrize("time_limit", [None, 1e3])
def test_a_method_that_was_stopped_before_the_time_was_over_gives_the_best_mechanism(
    time_limit: float | None,
) -> None:
    """The value is the better one of the formula and of what was stopped, and so is the bound."""
    program = PROGRAMS["expected loss"]
    optimal = solve(program)
    first = find_first_mechanism(program).certificate
    constant = np.full((6, 6), 1 / 6)
    for matrix, value in ((optimal.matrix, optimal.value), (constant, first.value)):

        def stop(*_: object, matrix: Any = matrix) -> Any:
            found = METHODS.certify_matrix(program, matrix, None)
            return replace(found, finished=False, message="stopped by the time limit")

        result = solve(
            program, Method("stopped", "a test", stop), time_limit=time_limit, tolerance=1e-300
        )
        assert result.status is Status.LIMIT_REACHED
        assert result.value == pytest.approx(value, abs=1e-9)
        assert result.bound <= optimal.value + 1e-9
        assert result.certificate.verify()


@pytest.mark.parametrize("limit", [0.03, 0.1, 0.3])
def test_pairs_of_letters_end_with_a_mechanism_however_they_are_cut(limit: float) -> None:
    points = np.random.default_rng(3).random((25, 2)) * 5
    apart = np.linalg.norm(points[:, None] - points, axis=2)
    program = design(Prior(np.full(25, 1 / 25)), MetricPrivacy(1.0, apart), ExpectedLoss(apart))
    result = solve(program, time_limit=limit)
    assert result.value <= find_first_mechanism(program).certificate.value
    assert result.certificate.verify()


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


def test_the_best_mechanism_gets_the_best_bound_of_all_methods() -> None:
    program = design(PRIOR, PML(1.0), ExpectedGain(np.eye(6)))
    best = solve(program)
    constant = certify(program, np.tile(best.mechanism.matrix.mean(axis=0), (6, 1)))
    assert constant.value < best.value - 0.01
    assert constant.bound > best.bound + 0.01
    # one method ended with a proof and no mechanism, another was stopped at one without a proof
    proof, mechanism = (
        replace(one, status=status, certificate=one.certificate.with_bound_from(other.certificate))
        for one, other, status in (
            (constant, best, Status.UNPROVED),
            (best, constant, Status.LIMIT_REACHED),
        )
    )
    known = [proof, mechanism]
    attempts = MethodAttempts(["", ""], known, known)
    found = select_best_result(find_registry(program), program, attempts, NO_DEADLINE, 0.0)
    assert found.status is Status.UNPROVED
    assert (found.value, found.bound) == (best.value, best.bound)
    assert found.certificate.verify()
