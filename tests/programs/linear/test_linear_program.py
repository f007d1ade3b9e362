"""Declared programs: their parts, their sparse form, and what they refuse."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, cast

import cvxpy as cp
import numpy as np
import pytest
from hypothesis import given, settings
from oracles import designs as oracles

from pmlopt import LDP, LIP, PML, ExpectedGain, ExpectedLoss, MaximalLeakage, Prior, design
from pmlopt.errors import PrivacyError, ProgramError, UtilityError
from pmlopt.model.privacy import Requirement
from pmlopt.model.utility import hamming
from pmlopt.programs.linear.program import LinearDesign

PARTS: list[tuple[Requirement, set[str], set[str]]] = [
    (PML(0.5), set(), {"pml"}),
    (LDP(0.5), {"column_minimum"}, {"ldp_floor", "ldp_ceiling"}),
    (LIP(0.5, 0.4), set(), {"lip_lower", "lip_upper"}),
    (MaximalLeakage(0.5), {"column_maximum"}, {"column_maximum", "maximal_leakage"}),
]


def small() -> LinearDesign:
    return design([0.5, 0.5], PML(0.4), ExpectedLoss(hamming))


@pytest.mark.parametrize(("privacy", "variables", "constraints"), PARTS)
def test_parts_have_names(privacy: Requirement, variables: set[str], constraints: set[str]) -> None:
    program = design([0.2, 0.8], privacy, ExpectedGain(np.ones((2, 3))))
    assert set(program.variables) == {"mechanism", "output_law"} | variables
    assert set(program.constraints) == {"rows", "output_law"} | constraints
    assert program.mechanism is program.variables["mechanism"]
    assert program.mechanism.shape == (2, 3)
    assert program.variables["output_law"].shape == (1, 3)
    assert {v.name() for v in program.problem.variables()} == set(program.variables)
    assert {c.label for c in program.problem.constraints} == set(program.constraints)
    for name in [*program.variables, *program.constraints]:
        assert name in str(program)
    assert program.problem.is_lp()


def test_the_sign_of_the_utility_is_the_direction_of_the_objective() -> None:
    table = np.array([[1.0, 2.0], [3.0, 5.0]])
    gain = design([0.5, 0.5], PML(0.4), ExpectedGain(table))
    loss = design([0.5, 0.5], PML(0.4), ExpectedLoss(table))
    assert isinstance(gain.problem.objective, cp.Maximize)
    assert isinstance(loss.problem.objective, cp.Minimize)
    assert np.array_equal(gain.gains, table)
    assert np.array_equal(loss.gains, -table)
    assert np.array_equal(loss.table, table)


@settings(max_examples=25, deadline=None)
@given(case=oracles.cases())
def test_assigning_a_mechanism_satisfies_the_declared_constraints(case: oracles.Case) -> None:
    for kind in oracles.KINDS:
        levels = oracles.levels_of(kind, case.prior, case.matrix)
        privacy = oracles.requirement_at(kind, levels, 1 + 1e-9)
        program = design(case.prior, privacy, ExpectedGain(case.gains))
        program.assign(case.matrix)
        margin = 2.0**-40  # by which the constraints are stricter than the claim
        assert all(np.max(c.violation()) <= margin + 1e-14 for c in program.constraints.values())
        expected = float((case.prior.pmf[:, None] * case.gains * case.matrix).sum())
        assert program.problem.objective.value == pytest.approx(expected, abs=1e-13)


@pytest.mark.parametrize("shape", [(3, 2), (2, 3), (1, 2)])
def test_assigning_another_shape_is_refused(shape: tuple[int, int]) -> None:
    with pytest.raises(ProgramError, match="shape"):
        small().assign(np.full(shape, 1 / shape[1]))


def test_outputs_follow_the_prior_the_matrix_or_the_argument() -> None:
    prior = Prior([0.5, 0.5], labels=["a", "b"])
    gain = ExpectedGain(lambda x, y: 1.0)
    assert design(prior, PML(0.4), gain).outputs == ("a", "b")
    assert design(prior, PML(0.4), ExpectedGain(np.eye(2))).outputs == ("a", "b")
    assert design(prior, PML(0.4), ExpectedGain(np.ones((2, 3)))).outputs == (0, 1, 2)
    assert design(prior, PML(0.4), gain, outputs=3).outputs == (0, 1, 2)
    assert design(prior, PML(0.4), gain, outputs=cast("int", np.int64(3))).outputs == (0, 1, 2)
    assert design(prior, PML(0.4), gain, outputs=iter(["x", "y"])).outputs == ("x", "y")
    assert design(prior, PML(0.4), gain, outputs=["only"]).mechanism.shape == (2, 1)


HALF, TABLE = [0.5, 0.5], ExpectedLoss(hamming)


@pytest.mark.parametrize(
    ("arguments", "error", "message"),
    [
        *(
            ((HALF, PML(0.4), TABLE, outputs), ProgramError, ".")
            for outputs in (0, -1, [], ["a", "a"], [1, 1.0])
        ),
        ((HALF, PML(0.4), ExpectedGain(np.ones((3, 2)))), UtilityError, "shape"),
        ((HALF, PML(0.4), ExpectedGain(np.ones((2, 3))), 2), UtilityError, "shape"),
        ((HALF, PML(0.4), ExpectedGain(np.ones((2, 2))), ["a", "b", "c"]), UtilityError, "shape"),
        ((HALF, PML(0.4), ExpectedGain(np.eye(2) * 1.7e308)), UtilityError, "change its unit"),
        ((HALF, 0.4, TABLE), PrivacyError, "."),
        ((HALF, PML(0.4), 3), UtilityError, "."),
    ],
)
def test_designs_that_cannot_be_meant_are_refused(
    arguments: Any, error: type[Exception], message: str
) -> None:
    with pytest.raises(error, match=message):
        design(*arguments)


ADDED: list[tuple[str, Callable[[cp.Variable], Any], str]] = [
    *((name, lambda matrix: matrix[0, 0] <= 0.5, name) for name in ("rows", "pml", "output_law", "mine")),
    *(("odd", lambda _, thing=thing: thing, "cvxpy constraint") for thing in (True, 3.0, "P <= 1", None)),
    ("odd", lambda matrix: cp.norm(matrix, "fro") >= 1, "DCP"),
    ("odd", lambda matrix: cp.square(matrix[0, 0]) == 0.25, "DCP"),
    ("odd", lambda matrix: matrix[0, 0] <= cp.Variable(name="whole", integer=True), "whole"),
    ("odd", lambda matrix: matrix[0, 0] <= cp.Variable(name="whole", boolean=True), "whole"),
    ("odd", lambda matrix: matrix[0, 0] <= cp.Parameter(name="cap"), "'odd'"),
    ("odd", lambda matrix: cp.FiniteSet(matrix[0, 0], [0.1, 0.2]), "'odd'"),
    ("odd", lambda matrix: matrix[0, 0] <= cp.real(cp.Variable(complex=True)), "'odd'"),
]


@pytest.mark.parametrize(("name", "constraint", "message"), ADDED)
def test_constraints_that_cannot_be_taken_are_refused(
    name: str, constraint: Callable[[cp.Variable], Any], message: str
) -> None:
    program = small()
    program = program.with_constraints(mine=program.mechanism[0, 0] <= 0.6)
    with pytest.raises(ProgramError, match=message):
        program.with_constraints(**{name: constraint(program.mechanism)})


def test_what_all_outputs_share_is_taken_off() -> None:
    program = design([0.5, 0.5], PML(0.4), ExpectedLoss(np.eye(2) + 3.0))
    assert program.offsets.tolist() == [3.0, 3.0]
    assert program.centred.tolist() == [[-1.0, 0.0], [0.0, -1.0]]
    assert program.constant == 3.0
