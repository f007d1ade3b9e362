"""The decision list: which solvers are tried for what, and why."""

from __future__ import annotations

from collections.abc import Callable

import cvxpy as cp
import numpy as np
import pytest

from pmlopt import PML, ExpectedGain, Prior, design
from pmlopt.builders import Design
from pmlopt.errors import SolverUnavailableError
from pmlopt.solvers.dispatch import DECISIONS, SIMPLEX_ENTRIES, routes


def linear(n: int) -> Design:
    return design(Prior.uniform(n), PML(0.5), ExpectedGain(np.eye(n)))


def curved(n: int) -> Design:
    program = linear(n)
    return program.with_constraints(size=cp.norm(program.mechanism, "fro") <= n)


def names(program: Design, warm: bool, solver: str = "auto") -> list[str]:
    return [route.solver for route in routes(program, solver, warm)]


SMALL, LARGE = 40, 41  # the square roots of 1600 and the next


def test_small_linear_programs_go_to_the_simplex_first() -> None:
    assert SMALL**2 == SIMPLEX_ENTRIES
    assert names(linear(2), warm=False)[0] == "highs"
    assert names(linear(SMALL), warm=False)[0] == "highs"


def test_large_linear_programs_go_to_the_interior_point_first() -> None:
    assert names(linear(LARGE), warm=False)[0] == "clarabel"


@pytest.mark.parametrize("n", [2, LARGE])
def test_a_start_goes_to_the_simplex_first(n: int) -> None:
    first = routes(linear(n), "auto", True)[0]
    assert first.solver == "highs"
    assert "warm" in first.reason


@pytest.mark.parametrize("n", [2, LARGE])
@pytest.mark.parametrize("warm", [False, True])
def test_what_is_not_linear_never_goes_to_a_linear_solver(n: int, warm: bool) -> None:
    tried = names(curved(n), warm)
    assert tried[0] == "clarabel"
    assert not {"highs", "highs-ipm"} & set(tried)


def test_the_very_largest_are_not_left_to_the_simplex() -> None:
    tried = names(linear(201), warm=False)
    assert "highs-ipm" in tried
    assert "highs" not in tried


@pytest.mark.parametrize("make", [linear, curved])
@pytest.mark.parametrize("n", [2, LARGE])
@pytest.mark.parametrize("warm", [False, True])
def test_there_is_always_a_second_way(make: Callable[[int], Design], n: int, warm: bool) -> None:
    tried = routes(make(n), "auto", warm)
    assert len(tried) >= 2
    assert tried[-1].solver == "scs"
    assert len({(route.solver, str(route.settings), route.reason) for route in tried}) == len(tried)


def test_each_decision_has_its_reason() -> None:
    reasons = [rule.route.reason for rule in DECISIONS]
    assert all(reasons)
    assert len(set(reasons)) == len(reasons)


@pytest.mark.parametrize("name", ["highs", "highs-ipm", "clarabel", "scs", "SCS"])
def test_a_solver_asked_for_is_the_only_one(name: str) -> None:
    for warm in (False, True):
        assert names(linear(3), warm, name) == [name.lower()]


def test_names_that_cannot_be_meant_are_refused() -> None:
    for name in ("nothing", ""):
        with pytest.raises(SolverUnavailableError, match="auto"):
            routes(linear(2), name, False)
    for name in ("highs", "highs-ipm"):
        with pytest.raises(SolverUnavailableError, match="clarabel"):
            routes(curved(2), name, False)
