"""Builders against given priors: what binds at the optimum, their parameters, and penalties."""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import cache

import numpy as np
import pytest
from oracles.designs import FloatArray

from pmlopt import distortion_leakage, leakage_distortion, solve
from pmlopt.errors import PriorError, PrivacyError, ProgramError, UtilityError
from pmlopt.model.queries import ModularSum, Quadratic, Query
from pmlopt.programs import binding_priors, penalty_program, tradeoff_program

CASES: list[tuple[Query, float, float]] = [
    (ModularSum(3, 3), 0.2, 1.0),
    (Quadratic(3), 0.3, 0.7),
    (ModularSum(4, 2), 0.1, 2.0),
]
"""Queries, distortions D and entropies b."""


def uniform_over(query: Query) -> FloatArray:
    size = math.prod(query.alphabets)
    return np.full(size, 1 / size)


@pytest.mark.parametrize(("query", "limit", "entropy"), CASES)
def test_the_problem_is_that_against_the_binding_priors(
    query: Query, limit: float, entropy: float
) -> None:
    program = leakage_distortion(query, limit, entropy)
    answer = solve(program)
    declared = float(program.problem.solve(solver="CLARABEL"))
    assert program.problem.is_dcp()
    assert declared == pytest.approx(answer.value, abs=3e-6)
    uniform = tradeoff_program(query, [uniform_over(query)], distortion=limit)
    assert (
        float(uniform.problem.solve(solver="CLARABEL")) < declared - 1e-3
    )  # others bind, not this one
    back = distortion_leakage(query, answer.value, entropy)
    assert float(back.problem.solve(solver="CLARABEL")) == pytest.approx(
        solve(back).value, abs=3e-6
    )


@cache
def solve_with_binding_priors() -> tuple[Query, float, Sequence[FloatArray]]:
    """Solve a trade-off once for both solvers: its query, its value and the priors that bind."""
    query = ModularSum(3, 3)
    program = leakage_distortion(query, 0.2, 1.0)
    return query, solve(program).value, binding_priors(program)


@pytest.mark.parametrize("solver", ["CLARABEL", "SCS"])
def test_a_parameter_changes_the_limit_without_a_new_program(solver: str) -> None:
    query, value_of_all, binding = solve_with_binding_priors()
    declared = tradeoff_program(query, binding, distortion=0.5)
    assert declared.problem.is_dcp(dpp=True)
    declared.problem.param_dict["limit"].value = 0.2
    options = {"eps": 1e-8} if solver == "SCS" else {}
    value = declared.problem.solve(solver=solver, **options)
    assert float(value) == pytest.approx(value_of_all, abs=3e-6)
    leakage = tradeoff_program(query, binding, leakage=float(value))
    assert leakage.problem.is_dcp(dpp=True)
    assert float(leakage.problem.solve(solver=solver, **options)) == pytest.approx(0.2, abs=2e-5)


def test_ends_of_the_curve_have_a_problem_too() -> None:
    parity = ModularSum(3, 2)
    silent = leakage_distortion(parity, 0.6, 1.0)
    assert float(silent.problem.solve(solver="CLARABEL")) == pytest.approx(0.0, abs=1e-7)
    exact = leakage_distortion(parity, 0.0, 1.0)
    assert float(exact.problem.solve(solver="CLARABEL")) == pytest.approx(
        solve(exact).value, abs=1e-5
    )
    free = distortion_leakage(parity, 1.0, 1.0)
    assert float(free.problem.solve(solver="CLARABEL")) == pytest.approx(0.0, abs=1e-6)


def test_a_heavy_penalty_nears_the_constrained_program_from_below() -> None:
    query, priors = ModularSum(2, 3), [np.array([0.4, 0.1, 0.2, 0.3])]
    exact = tradeoff_program(query, priors, distortion=0.1)
    optimum = float(exact.problem.solve(solver="CLARABEL"))
    declared = penalty_program(query, priors, 0.0, distortion=0.1)
    assert declared.problem.is_dcp(dpp=True)
    assert float(declared.problem.solve(solver="CLARABEL")) == pytest.approx(0.0, abs=1e-7)
    previous = -1.0
    for weight in (0.1, 1.0, 10.0):
        declared.problem.param_dict["weight"].value = weight
        value = float(declared.problem.solve(solver="CLARABEL"))
        assert value > previous
        # at the constrained optimum the penalty is at most weight log(2)^2
        assert value <= optimum + weight * math.log(2) ** 2 + 1e-7
        previous = value


def test_what_cannot_be_meant_is_refused() -> None:
    query, prior = ModularSum(2, 2), np.full(4, 0.25)
    with pytest.raises(ProgramError, match="exactly one limit"):
        tradeoff_program(query, [prior])
    with pytest.raises(ProgramError, match="exactly one limit"):
        penalty_program(query, [prior], 1.0, distortion=0.1, leakage=0.1)
    with pytest.raises(PriorError, match="no prior"):
        tradeoff_program(query, [], distortion=0.1)
    with pytest.raises(PriorError, match="3 entries for 4 datasets"):
        tradeoff_program(query, [prior[:3]], distortion=0.1)
    with pytest.raises(UtilityError, match="distortion D"):
        tradeoff_program(query, [prior], distortion=-0.1)
    with pytest.raises(PrivacyError, match="leakage L"):
        tradeoff_program(query, [prior], leakage=-0.1)
    with pytest.raises(ProgramError, match="weight"):
        penalty_program(query, [prior], -1.0, leakage=0.1)
    other = binding_priors(leakage_distortion(ModularSum(3, 3), 0.2, 1.0))
    with pytest.raises(PriorError, match="does not fit the query"):
        tradeoff_program(query, other, distortion=0.1)
