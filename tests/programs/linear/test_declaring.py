"""Linear designs are declared in cvxpy when somebody looks, and are the same programs whenever that is."""

from __future__ import annotations

from dataclasses import replace

import cvxpy as cp
import numpy as np
import pytest
from oracles import designs as oracles
from oracles.bands import KINDS, bounded

from pmlopt import ExpectedGain, Prior, design, solve
from pmlopt.programs import Status
from pmlopt.programs.linear.program import LinearDesign
from pmlopt.programs.program import Declaration

kinds = pytest.mark.parametrize("kind", KINDS)


BEST = 2
"""The output that the first letter is worth most at."""


def some(kind: str = "pml", n: int = 4) -> LinearDesign:
    rng = np.random.default_rng([90, KINDS.index(kind)])
    prior = Prior(oracles.random_prior(rng, n))
    return design(prior, bounded(kind, prior, rng).at(0.7), ExpectedGain(rng.random((n, 3))))


def watched(program: LinearDesign) -> tuple[LinearDesign, list[int]]:
    """The same program, and a list that grows when it is declared."""
    made: list[int] = []

    def declare() -> Declaration:
        made.append(1)
        return program.declare()

    return replace(program, declare=declare), made


@kinds
def test_designing_and_solving_declare_nothing(kind: str) -> None:
    program, made = watched(some(kind))
    for solver in ("auto", "highs", "structured"):
        assert solve(program, solver).status is Status.OPTIMAL
    assert made == []


@kinds
def test_the_declared_problem_is_the_one_that_is_solved(kind: str) -> None:
    program = some(kind)
    result = solve(program)
    assert result.value == pytest.approx(solve(program, "clarabel").value, abs=1e-7)
    program.problem.solve(solver=cp.CLARABEL)
    assert program.problem.value == pytest.approx(result.value, abs=1e-6)
    program.assign(result.mechanism)
    assert all(np.max(c.violation()) < 1e-9 for c in program.constraints.values())
    assert program.problem.objective.value == pytest.approx(result.value, abs=1e-12)


# ---------------------------------------------------------------- constraints of one's own


@pytest.mark.parametrize("before", ["nothing", "look", "assign", "solve", "solve by cvxpy"])
def test_constraints_can_be_added_at_any_time(before: str) -> None:
    program = some()
    if before == "look":
        program.problem  # noqa: B018
    elif before == "assign":
        program.assign(np.full((4, 3), 1 / 3))
    elif before == "solve":
        solve(program)
    elif before == "solve by cvxpy":
        solve(program, "clarabel")
    assert some().table[0].argmax() == BEST
    capped = program.with_constraints(cap=program.mechanism[0, BEST] <= 0.1)
    free, fixed = solve(program), solve(capped)
    assert fixed.status is Status.OPTIMAL
    assert fixed.mechanism.matrix[0, BEST] <= 0.1 + 1e-6
    assert fixed.value < free.value - 1e-3
    assert free.mechanism.matrix[0, BEST] > 0.2
    assert program.added == {}
    assert set(capped.added) == {"cap"}
    extra = np.zeros((1, 12))
    extra[0, BEST] = 1.0
    expected = oracles.optimum(program.prior.pmf, program.privacy, program.table, extra, np.array([0.1]))
    assert fixed.value == pytest.approx(expected.value, abs=1e-6)
    assert solve(program).value == free.value  # the program itself is as it was
