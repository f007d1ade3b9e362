"""Each kind of program is a cvxpy problem: convex by its rules, with the optimum that `solve` finds."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any

import cvxpy as cp
import numpy as np
import pytest
from saved_cases import CASES, solved

from pmlopt import (
    PML,
    ExpectedGain,
    Prior,
    design,
    least_leakage,
    queries,
    solve,
    solvers_for,
    worst_case_utility,
)
from pmlopt.errors import SolverOptionError
from pmlopt.model.privacy import parametric_constraints
from pmlopt.programs import penalty_program, tradeoff_program

SHARP: Mapping[str, Mapping[str, Any]] = {
    "HIGHS": {}, "CLARABEL": dict.fromkeys(("tol_gap_abs", "tol_gap_rel", "tol_feas"), 1e-10),
}  # fmt: skip
TIGHT_SCS = {"eps_abs": 1e-9, "eps_rel": 1e-9, "max_iters": 200_000}
LINEAR: tuple[tuple[str, Mapping[str, Any]], ...] = (
    ("HIGHS", {}), ("HIGHS", {"presolve": "off"}), ("CLARABEL", {}), ("CLARABEL", {"max_iter": 150}),
)  # fmt: skip
CONIC: tuple[tuple[str, Mapping[str, Any]], ...] = (
    ("CLARABEL", {}), ("CLARABEL", {"max_iter": 150}), ("SCS", TIGHT_SCS),
)  # fmt: skip
WHOLE: tuple[tuple[str, Mapping[str, Any]], ...] = (
    ("HIGHS", {}), ("HIGHS", {"presolve": "off"}), ("SCIPY", {}),
)  # fmt: skip
"""Where some variables are whole numbers, which the other two solvers do not take."""

BY_LEVEL = ("least", "threshold", "threshold-over", "types-least", "envelope", "envelope-over")
"""Their value is a level, and the problem is for one level, which is a parameter."""

BY_EPSILON = ("least-epsilon", "least-epsilon-secret", "least-epsilon-over")
"""Their problem is how far a design stays short of the target, with epsilon as a parameter."""

AT_THE_LEVEL = {
    "least-epsilon-information": 0.4, "least-epsilon-estimation": 3.0, "types-least-epsilon": 0.7,
}  # fmt: skip
"""Their problem is the design at the least level, whose optimum is the target."""

RELAXED = ("record", "record-quadratic")
"""Not convex: the problem is the relaxation at the root of their branch and bound."""

DIRECT = [name for name in CASES if name not in (*BY_LEVEL, *RELAXED, *BY_EPSILON, *AT_THE_LEVEL)]


def solvers_of(problem: cp.Problem) -> tuple[tuple[str, Mapping[str, Any]], ...]:
    """Return two solvers or more that take a problem, with and without options."""
    if problem.is_mixed_integer():
        return WHOLE
    return LINEAR if problem.is_qp() else CONIC


def values_of(problem: cp.Problem) -> list[float]:
    """Return the optimum by each solver, with default and with passed options."""
    return [float(problem.solve(solver=name, **options)) for name, options in solvers_of(problem)]


@pytest.mark.parametrize("name", DIRECT)
def test_the_problem_has_the_optimum_that_solve_finds(name: str) -> None:
    problem = CASES[name]().problem
    assert problem.is_dcp()
    assert problem.is_dcp(dpp=True)
    sign = -1 if name == "closed-failure" else 1  # a largest loss, written as a least gain
    for value in values_of(problem):
        assert sign * value == pytest.approx(solved(name).value, abs=1e-6)


@pytest.mark.parametrize("name", RELAXED)
def test_the_problem_of_a_search_bounds_what_it_finds(name: str) -> None:
    problem = CASES[name]().problem
    assert problem.is_dcp(dpp=True)
    values = values_of(problem)
    assert np.ptp(values) <= 1e-6
    assert min(values) >= solved(name).value - 1e-6


@pytest.mark.parametrize("name", BY_LEVEL)
def test_the_problem_of_a_level_is_disciplined_in_its_parameter(name: str) -> None:
    problem = CASES[name]().problem
    assert problem.is_dcp(dpp=True)
    (parameter,) = problem.parameters()
    assert parameter.size == 1
    before = parameter.value
    first = values_of(problem)
    assert np.ptp(first) <= 1e-6
    parameter.value = before  # compiled once, and solved again
    assert values_of(problem) == pytest.approx(first, abs=1e-8)


@pytest.mark.parametrize("name", BY_EPSILON)
def test_the_problem_reaches_the_target_from_the_least_epsilon_on(name: str) -> None:
    program: Any = CASES[name]()
    problem = program.problem
    assert problem.is_dcp(dpp=True)
    program.epsilon.value = solved(name).value
    assert max(values_of(problem)) <= 1e-6
    program.epsilon.value = 0.9 * solved(name).value
    short = values_of(problem)
    assert np.ptp(short) <= 1e-6
    assert min(short) > 1e-3


@pytest.mark.parametrize(("name", "target"), AT_THE_LEVEL.items())
def test_the_problem_at_the_least_level_has_the_target_as_its_optimum(
    name: str, target: float
) -> None:
    problem = CASES[name]().problem
    assert problem.is_dcp(dpp=True)
    values = values_of(problem)
    assert values == pytest.approx([target] * len(values), abs=1e-6)


def bisected(feasible: Callable[[float], bool], high: float) -> float:
    """Return the least level from 0 to `high` at which something is feasible, to 1e-9."""
    low = 0.0
    while high - low > 1e-9:
        middle = (low + high) / 2
        low, high = (low, middle) if feasible(middle) else (middle, high)
    return high


@pytest.mark.parametrize("solver", ["HIGHS", "CLARABEL"])
def test_a_bisection_over_epsilon_by_hand_ends_at_the_least_leakage(solver: str) -> None:
    prior = Prior([0.4, 0.3, 0.2, 0.1])
    level, matrix = cp.Parameter(nonneg=True), cp.Variable((4, 4), nonneg=True)
    rules = [cp.sum(matrix, axis=1) == 1, *parametric_constraints(prior, matrix, level)]
    problem = cp.Problem(cp.Maximize(prior.pmf @ cp.diag(matrix)), rules)
    assert problem.is_dcp(dpp=True)

    def feasible(epsilon: float) -> bool:
        level.value = epsilon
        return bool(problem.solve(solver=solver) >= 0.7 - 1e-9)

    found = bisected(feasible, prior.max_leakage)
    expected = solve(least_leakage(prior, ExpectedGain(np.eye(4)), expected=0.7))
    assert found == pytest.approx(expected.value, abs=1e-6)
    at_level = solve(design(prior, PML(expected.value), ExpectedGain(np.eye(4))))
    assert at_level.value == pytest.approx(0.7, abs=1e-6)


@pytest.mark.parametrize("solver", ["HIGHS", "CLARABEL"])
def test_the_feasibility_program_of_worst_case_utility_by_hand(solver: str) -> None:
    p, ranks, threshold = [0.6, 0.2, 0.2], np.array([[3, 2, 1], [1, 3, 2], [2, 1, 3]]), 2
    matrix, level = cp.Variable((3, 3), nonneg=True), cp.Parameter(nonneg=True)
    rules = [cp.sum(matrix, axis=1) == 1, *parametric_constraints(p, matrix, level)]
    problem = cp.Problem(cp.Minimize(cp.sum(cp.multiply(ranks < threshold, matrix))), rules)
    assert problem.is_dcp(dpp=True)

    def feasible(epsilon: float) -> bool:
        level.value = epsilon
        return bool(problem.solve(solver=solver, **SHARP[solver]) <= 1e-8)

    found = bisected(feasible, -math.log(0.2))
    expected = solve(worst_case_utility(p, ranks, threshold))
    assert found == pytest.approx(expected.value, abs=1e-6)


def test_penalties_are_programs_with_a_weight() -> None:
    plain = tradeoff_program(queries.ModularSum(1, 2), [[0.5, 0.5]], distortion=0.1)
    assert plain.problem.is_dcp(dpp=True)
    for value in values_of(plain.problem):  # log 2 - h(0.1)
        expected = math.log(2) + 0.1 * math.log(0.1) + 0.9 * math.log(0.9)
        assert value == pytest.approx(expected, abs=1e-6)
    penalised = penalty_program(queries.ModularSum(1, 2), [[0.5, 0.5]], 1.0, distortion=0.1)
    assert penalised.problem.is_dcp(dpp=True)
    values = values_of(penalised.problem)
    assert np.ptp(values) <= 1e-6
    penalised.problem.param_dict["weight"].value = 10.0
    heavier = values_of(penalised.problem)
    assert np.ptp(heavier) <= 1e-6
    assert min(heavier) >= max(values) - 1e-6


KINDS = {type(make()).__name__: name for name, make in reversed(list(CASES.items()))}
"""One case of each class of programs."""


@pytest.mark.parametrize("kind", KINDS)
def test_an_option_that_no_solver_of_a_program_knows_is_an_error_of_its_own(kind: str) -> None:
    program = CASES[KINDS[kind]]()
    for name in {method.name for method in solvers_for(program)}:
        with pytest.raises(SolverOptionError, match="option"):
            solve(program, name, solver_options={"no_such_option": 1})
