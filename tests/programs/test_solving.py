"""Solving: the certified optimum against dense reference programs, exact checks and closed forms."""

from __future__ import annotations

import math
import os
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import cvxpy as cp
import numpy as np
import pytest
from oracles import designs as oracles

from pmlopt import (
    LDP,
    LIP,
    PML,
    ExpectedGain,
    ExpectedLoss,
    MaximalLeakage,
    Mechanism,
    MutualInformation,
    Prior,
    Result,
    design,
    leakage_level,
    solve,
    solvers_for,
)
from pmlopt.errors import (
    InfeasibleError,
    InputError,
    MechanismError,
    PriorError,
    SolverError,
    SolverUnavailableError,
)
from pmlopt.model.privacy import Requirement
from pmlopt.model.utility import absolute, hamming, squared
from pmlopt.programs import Status, method_runs
from pmlopt.programs.linear.methods import METHODS
from pmlopt.programs.linear.program import LinearDesign
from pmlopt.programs.program import REGISTRY, Method, MethodResult
from pmlopt.solvers import cvxpy_interface, highs
from pmlopt.solvers.solver_result import make_options

LOSSES = (hamming, absolute, squared)

HAMMING = ExpectedLoss(hamming)


@dataclass
class Unhashable:
    """A method of a user's own, which compares by its content."""

    inner: Callable[..., Any]

    def __call__(self, *given: Any) -> Any:
        """Run the method within."""
        return self.inner(*given)


@dataclass(frozen=True)
class Instance:
    """A random prior, a loss table and a privacy level."""

    prior: Prior
    loss: Any
    epsilon: float

    @property
    def table(self) -> oracles.FloatArray:
        """The loss by loops over the letters 0, ..., N-1."""
        n = self.prior.size
        return np.array([[self.loss(x, y) for y in range(n)] for x in range(n)], dtype=float)

    def least_loss(self, epsilon: float) -> float:
        """The optimum by the reference."""
        return -oracles.optimum(self.prior.pmf, PML(epsilon), -self.table).value


def instance(seed: int) -> Instance:
    """One of the random instances: N in 2..12, the losses in turn, epsilon from 0.05 to past the maximum."""
    rng = np.random.default_rng([20, seed])
    prior = Prior(
        oracles.random_prior(rng, int(rng.integers(2, 13)), spread=float(rng.choice([0.5, 1, 5])))
    )
    top = 1.1 * -math.log(float(prior.pmf.min()))
    even = bool(rng.integers(2))
    epsilon = (
        rng.uniform(0.05, top) if even else math.exp(rng.uniform(math.log(0.05), math.log(top)))
    )
    return Instance(prior, LOSSES[seed % 3], float(epsilon))


def assert_proved(program: LinearDesign, result: Result[Any]) -> None:
    """Everything that a result claims, by independent arithmetic."""
    prior, matrix = program.prior, result.mechanism.matrix
    assert result.status is Status.OPTIMAL
    assert result.certificate.verify()
    assert oracles.is_stochastic(matrix)
    assert oracles.meets(prior, program.privacy, matrix)
    assert program.privacy.holds(prior, result.mechanism)
    value = float((prior.pmf[:, None] * program.table * matrix).sum())
    assert result.value == pytest.approx(value, abs=1e-14 * max(1.0, np.abs(program.table).max()))
    assert (result.bound >= result.value) is program.utility.maximised or result.gap == 0


@pytest.mark.parametrize("seed", range(12))
def test_random_instances_reach_the_reference_optimum(seed: int) -> None:
    case = instance(seed)
    largest = float(case.table.max())
    program = design(case.prior, PML(case.epsilon), ExpectedLoss(case.loss))
    result = solve(program)
    expected = case.least_loss(case.epsilon)
    assert result.value == pytest.approx(expected, abs=1e-7 * largest)
    assert result.bound <= expected + 1e-9 * largest
    assert_proved(program, result)
    level = leakage_level(case.prior, result.mechanism)
    assert level <= case.epsilon
    step = 1e-4
    wider, narrower = case.least_loss(case.epsilon + step), case.least_loss(case.epsilon - step)
    if wider < expected - 1e-9 * largest and expected < narrower - 1e-9 * largest:
        assert level > case.epsilon - 1e-6


# ---------------------------------------------------------------- edges


@pytest.mark.parametrize(
    "privacy", [PML(0), LDP(0), LIP(0, 0), LIP(0, 1), LIP(1, 0), MaximalLeakage(0)]
)
def test_nothing_may_leak_at_zero(privacy: Requirement) -> None:
    gains = np.array([[1.0, 0.2, 0.3], [0.1, 0.9, 0.3]])
    program = design([0.3, 0.7], privacy, ExpectedGain(gains))
    result = solve(program)
    assert_proved(program, result)
    assert result.value == pytest.approx(float((np.array([0.3, 0.7]) @ gains).max()), abs=1e-9)
    assert (result.mechanism.matrix == result.mechanism.matrix[0]).all()


@pytest.mark.parametrize("privacy", [PML(1.3), PML(1e6), MaximalLeakage(0.7), LDP(600.0)])
def test_past_the_largest_leakage_each_letter_has_its_best_output(privacy: Requirement) -> None:
    gains = np.array([[1.0, 0.2], [0.1, 0.9]])
    program = design([0.3, 0.7], privacy, ExpectedGain(gains))
    result = solve(program)
    assert_proved(program, result)
    assert result.value == pytest.approx(0.93, abs=1e-9)


@pytest.mark.parametrize("shape", [(1, 1), (1, 4), (4, 1), (2, 7), (5, 5), (12, 3)])
@pytest.mark.parametrize("kind", oracles.KINDS)
def test_all_shapes_reach_the_reference_optimum(kind: str, shape: tuple[int, int]) -> None:
    rng = np.random.default_rng([22, *shape])
    prior, gains = Prior(oracles.random_prior(rng, shape[0])), rng.normal(size=shape)
    limits = {"lower": 0.5, "upper": 0.4} if kind == "lip" else {"epsilon": 0.5}
    requirement = oracles.requirement_at(kind, limits, float(rng.uniform(0.1, 4)))
    program = design(prior, requirement, ExpectedGain(gains))
    result = solve(program)
    assert_proved(program, result)
    assert result.value == pytest.approx(
        oracles.optimum(prior.pmf, program.privacy, gains).value, abs=1e-7 * np.abs(gains).max()
    )


# ---------------------------------------------------------------- solvers by name


def medium() -> LinearDesign:
    case = oracles.random_case(np.random.default_rng(25), 8, 8)
    return design(case.prior, PML(0.6), ExpectedGain(case.gains))


@pytest.mark.parametrize(
    ("name", "tolerance"),
    [("highs", 1e-7), ("highs-ipm", 1e-6), ("clarabel", 1e-7), ("Clarabel", 1e-7), ("scs", 1e-5)],
)
def test_solvers_by_name_are_certified(name: str, tolerance: float) -> None:
    program = medium()
    expected = oracles.optimum(program.prior.pmf, program.privacy, program.table).value
    result = solve(program, name, tolerance=tolerance)
    spread = float(np.ptp(program.table, axis=1).max())
    assert_proved(program, result)
    assert result.solver == name.lower()
    assert result.gap <= tolerance * spread
    assert result.value == pytest.approx(expected, abs=tolerance * spread)
    assert result.attempts == ()


@pytest.mark.parametrize("name", sorted(map(str.lower, cp.installed_solvers())))
def test_a_time_limit_holds_for_every_solver(name: str) -> None:
    program = medium()
    assert solve(program, name, time_limit=60.0, tolerance=1e-2).status is Status.OPTIMAL
    assert_stopped(program, solve(program, name, time_limit=1e-6))


def test_a_time_limit_is_refused_where_it_cannot_be_handed_on() -> None:
    with pytest.raises(SolverUnavailableError, match="a time limit cannot be handed to OWN"):
        cvxpy_interface.solve_problem(medium().problem, "OWN", make_options(10.0, 1e-6), {})


@pytest.mark.parametrize("name", ["auto", "highs-ipm", "scs"])
def test_what_is_in_hand_when_time_runs_out_is_true(name: str) -> None:
    case = oracles.random_case(np.random.default_rng(26), 40, 40)
    program = design(case.prior, PML(1.0), ExpectedGain(case.gains))
    assert_stopped(program, solve(program, name, time_limit=1e-6))


def assert_stopped(program: LinearDesign, result: Any) -> None:
    assert result.status is Status.LIMIT_REACHED
    assert_true(program, result)


def assert_true(program: LinearDesign, result: Any) -> None:
    assert isinstance(result, Result)
    assert result.certificate.verify()
    assert oracles.meets(program.prior, program.privacy, result.mechanism.matrix)
    assert result.gap >= 0


@pytest.mark.parametrize("name", ["auto", "highs", "clarabel"])
def test_a_tolerance_out_of_reach_gives_the_best_in_hand(name: str) -> None:
    case = oracles.random_case(np.random.default_rng(25), 4, 4)
    program = design(case.prior, PML(0.6), ExpectedGain(case.gains))
    result = solve(program, name, tolerance=1e-300)
    expected = oracles.optimum(program.prior.pmf, program.privacy, program.table).value
    # Clarabel takes the tolerance as its own, and never ends by itself
    assert result.status is (Status.LIMIT_REACHED if name == "clarabel" else Status.UNPROVED)
    assert_true(program, result)
    assert result.value == pytest.approx(expected, abs=1e-7)
    assert 0 <= result.gap <= 1e-7


# ---------------------------------------------------------------- starts


def test_a_mechanism_or_a_result_is_a_start() -> None:
    program = medium()
    cold = solve(program, warm_start=False)
    assert not cold.warm_started
    for start in (cold, cold.mechanism, cold.mechanism.matrix, Mechanism(np.full((8, 8), 1 / 8))):
        warm = solve(program, warm_start=start)
        assert warm.warm_started
        assert warm.solver == "highs"
        assert_proved(program, warm)
        assert warm.value == pytest.approx(cold.value, abs=1e-9)


# ---------------------------------------------------------------- closed forms


def assert_closed(program: LinearDesign, name: str, value: float) -> None:
    result = solve(program)
    assert_proved(program, result)
    assert result.closed_form is not None
    assert result.closed_form.name == name
    assert result.closed_form.value == pytest.approx(value, abs=1e-12)
    assert abs(result.closed_form.difference) < 1e-9
    assert result.closed_form.difference == result.value - result.closed_form.value


@pytest.mark.parametrize("n", [3, 8])
@pytest.mark.parametrize("share", [0.2, 0.5, 0.9])
def test_the_uniform_prior_and_hamming_loss_have_a_closed_form(n: int, share: float) -> None:
    epsilon = share * math.log(n)
    result = solve(design(Prior.uniform(n), PML(epsilon), HAMMING))
    # a guess is right with probability at most e^eps / N, and the circulant reaches it
    assert result.closed_form is not None
    assert result.closed_form.name in ("uniform", "high_privacy")
    assert result.closed_form.value == pytest.approx(1 - math.exp(epsilon) / n, abs=1e-12)
    assert abs(result.closed_form.difference) < 1e-9
    leaking = design(Prior.uniform(n), MaximalLeakage(epsilon), HAMMING)
    assert_closed(leaking, "uniform", 1 - math.exp(epsilon) / n)


@pytest.mark.parametrize("n", [2, 3, 8])
def test_randomized_response_is_the_closed_form_of_ldp(n: int) -> None:
    for epsilon in (0.1, 1.0, 5.0):
        right = math.exp(epsilon) / (math.exp(epsilon) + n - 1)
        assert_closed(
            design(Prior.uniform(n), LDP(epsilon), HAMMING), "randomized_response", 1 - right
        )


@pytest.mark.parametrize("seed", range(4))
def test_a_binary_prior_has_a_closed_form_for_every_gain(seed: int) -> None:
    rng = np.random.default_rng([27, seed])
    prior, gains = Prior(oracles.random_prior(rng, 2)), rng.normal(size=(2, 2))
    privacy = PML(rng.uniform(0.02, 1.1) * prior.max_leakage)
    expected = oracles.optimum(prior.pmf, privacy, gains).value
    result = solve(design(prior, privacy, ExpectedGain(gains)))
    assert result.closed_form is not None
    assert result.closed_form.name in ("binary", "constant", "deterministic")
    assert result.closed_form.value == pytest.approx(expected, abs=1e-9)
    assert abs(result.closed_form.difference) < 1e-9


def test_both_ends_have_closed_forms() -> None:
    p, gains = (
        np.array([0.2, 0.3, 0.5]),
        np.array([[1.0, 0.0, 0.3], [0.2, 2.0, 0.1], [0.4, 0.6, 0.9]]),
    )
    utility = ExpectedGain(gains)
    assert_closed(design(p, PML(0), utility), "constant", float((p @ gains).max()))
    assert_closed(design(p, LDP(0), utility), "constant", float((p @ gains).max()))
    assert_closed(
        design(p, PML(math.log(5)), utility), "deterministic", float(p @ gains.max(axis=1))
    )
    assert_closed(design(p, PML(9), utility), "deterministic", float(p @ gains.max(axis=1)))


def test_where_no_closed_form_is_known_none_is_claimed() -> None:
    assert solve(medium()).closed_form is None
    program = design([0.4, 0.6], PML(0.3), HAMMING)
    capped = program.with_constraints(cap=program.mechanism[0, 0] <= 0.6)
    assert solve(program).closed_form is not None
    assert solve(capped).closed_form is None


# ---------------------------------------------------------------- constraints of one's own


def test_constraints_that_allow_nothing_are_named() -> None:
    program = medium()
    entry = program.mechanism
    impossible = [
        {"high": entry[0, 1] >= 0.9, "low": entry[0, 1] <= 0.1},
        {"certain": entry[0, 0] >= 0.99, "never": entry[1:, 0] <= 0.001},
    ]
    for added in impossible:
        with pytest.raises(InfeasibleError) as caught:
            solve(program.with_constraints(**added))
        assert all(name in str(caught.value) for name in added)
    with pytest.raises(InfeasibleError, match="round"):
        solve(program.with_constraints(round=cp.norm(entry, "fro") <= 0.5))


@pytest.mark.parametrize("name", ["auto", "highs-ipm", "scs"])
def test_solving_twice_gives_the_same_numbers(name: str) -> None:
    program = medium()
    first, second = (solve(program, name, tolerance=1e-5) for _ in range(2))
    fresh = solve(medium(), name, tolerance=1e-5)
    for result in (second, fresh):
        assert np.array_equal(first.mechanism.matrix, result.mechanism.matrix)
        assert first.bound == result.bound
        assert first.iterations == result.iterations


# ---------------------------------------------------------------- hard scales


@pytest.mark.parametrize("offset", [1e6, 1e12])
def test_digits_that_all_outputs_share_do_not_drown_the_rest(offset: float) -> None:
    prior = [0.4, 0.3, 0.2, 0.1]
    plain = solve(design(prior, PML(0.5), ExpectedGain(np.eye(4))))
    shifted = solve(design(prior, PML(0.5), ExpectedGain(np.eye(4) + offset)))
    assert shifted.status is Status.OPTIMAL
    assert shifted.gap < 1e-9
    assert np.array_equal(shifted.mechanism.matrix, plain.mechanism.matrix)
    assert shifted.value == pytest.approx(offset + plain.value, rel=1e-15)


@pytest.mark.parametrize("solver", ["auto", "clarabel", "scs", "highs-ipm"])
def test_a_utility_that_nothing_changes_is_solved_by_each(solver: str) -> None:
    level = 7.5
    result = solve(design([0.5, 0.3, 0.2], PML(0.4), ExpectedGain(np.full((3, 3), level))), solver)
    assert result.status is Status.OPTIMAL
    assert result.value == pytest.approx(level, rel=1e-15)


def test_an_upper_side_past_every_leakage_is_no_side() -> None:
    result = solve(design([0.5, 0.3, 0.2], LIP(0.3, 700.0), ExpectedGain(np.eye(3) * 1e-30)))
    assert result.status is Status.OPTIMAL


def test_a_result_reads_as_one_line() -> None:
    text = str(solve(design([0.5, 0.5], PML(0.25), ExpectedGain(np.eye(2)))))
    assert text.startswith("optimal: value 0.6420127")
    assert "of at most 0.25 nats; closed-form" in text


class PanicError(BaseException):
    """What a solver written in Rust raises is no Exception."""


@pytest.mark.filterwarnings(
    "ignore:This process:DeprecationWarning"
)  # of Python 3.12, on fork beside threads
class TestFailures:
    """Whatever a solver does, the next one is tried, and nothing foreign comes out of `solve`."""

    PROGRAM = design([0.5, 0.3, 0.2], PML(0.5), ExpectedLoss(hamming))

    FAILURES = (
        RuntimeError("gone"), ZeroDivisionError("0 / 0"), IndexError("3"), KeyError("x"), AssertionError(),
        OSError("no license"), np.linalg.LinAlgError("singular"), ValueError("NaN"), PanicError("in Rust"),
        PriorError("garbage"), MechanismError("garbage"), SolverError("garbage"), InputError("garbage"),
    )  # fmt: skip

    @staticmethod
    def broken(failure: BaseException) -> Method[Any, Any, Any]:
        """A method that fails as no solver should."""

        def run(program: Any, options: Any, start: Any) -> MethodResult[Any]:
            raise failure

        return Method("broken", "a test", run)

    def among(self, failure: BaseException, monkeypatch: pytest.MonkeyPatch) -> None:
        """Let the broken method be the first that is tried."""
        rows = (self.broken(failure), *METHODS.methods)
        monkeypatch.setitem(REGISTRY, METHODS.program, replace(METHODS, methods=rows))

    @pytest.mark.parametrize("failure", FAILURES, ids=lambda failure: type(failure).__name__)
    def test_the_next_solver_is_tried_and_alone_it_is_a_solver_error(
        self, failure: BaseException, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        self.among(failure, monkeypatch)
        result = solve(self.PROGRAM)
        assert result.status is Status.OPTIMAL
        assert result.attempts[0].startswith(f"broken: {type(failure).__name__}")
        with pytest.raises(SolverError, match=type(failure).__name__):
            solve(self.PROGRAM, self.broken(failure))

    @pytest.mark.parametrize(
        "ending", [KeyboardInterrupt(), MemoryError(), SystemExit(3)], ids=repr
    )
    def test_what_is_no_failure_ends_it(
        self, ending: BaseException, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        self.among(ending, monkeypatch)
        with pytest.raises(type(ending)):
            solve(self.PROGRAM)

    def test_a_method_may_be_an_object_without_a_hash(
        self, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        row = Method("unhashable", "a test", Unhashable(solvers_for(self.PROGRAM)[0].run))
        methods = replace(METHODS, methods=(row, *METHODS.methods))
        monkeypatch.setitem(REGISTRY, METHODS.program, methods)
        result = solve(self.PROGRAM)
        assert (result.solver, result.status, result.attempts) == (
            "unhashable", Status.OPTIMAL, (),
        )  # fmt: skip

    @pytest.mark.parametrize(
        ("harm", "account"),
        [
            (partial(time.sleep, 60), "did not end within 0"),
            (partial(os._exit, 11), "exit code 11"),
        ],
        ids=["hangs", "dies"],
    )
    def test_in_a_process_of_its_own_it_harms_nobody(
        self, harm: Callable[[], None], account: str, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        def harmful(program: Any, options: Any, start: Any) -> MethodResult[Any]:
            harm()
            raise AssertionError

        monkeypatch.setattr(method_runs, "GRACE_SECONDS", 0.1)
        method = Method("harmful", "a test", harmful)
        dies = isinstance(harm, partial) and harm.func is os._exit
        result = solve(self.PROGRAM, method, time_limit=None if dies else 0.1, isolated=True)
        assert result.status is Status.LIMIT_REACHED
        assert result.certificate.verify()
        assert account in result.attempts[0]

    def test_what_is_solved_apart_is_the_same(self) -> None:
        assert solve(self.PROGRAM, isolated=True).value == solve(self.PROGRAM).value

    def test_what_is_raised_apart_is_the_same(self) -> None:
        with pytest.raises(InfeasibleError):
            solve(
                self.PROGRAM.with_constraints(impossible=cp.sum(self.PROGRAM.mechanism) <= 1),
                isolated=True,
            )

    @pytest.mark.parametrize(
        "utility", [ExpectedLoss(hamming), MutualInformation()], ids=["linear", "convex"]
    )
    def test_a_point_that_is_no_numbers_is_not_taken(
        self, utility: Any, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        honest = highs.solve_problem

        def spoiled(problem: cp.Problem, *given: Any) -> Any:
            outcome = honest(problem, *given)
            for variable in problem.variables():
                variable.value = np.full(variable.shape, np.nan)
            return outcome

        monkeypatch.setattr(highs, "solve_problem", spoiled)
        result = solve(design([0.5, 0.3, 0.2], PML(0.5), utility))
        assert result.certificate.verify()
        assert np.isfinite(result.value)
        assert result.gap <= 1e-6
