"""Declared programs: their parts, their sparse form, and what they refuse."""

from __future__ import annotations

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


@pytest.mark.parametrize("outputs", [0, -1, [], ["a", "a"], [1, 1.0]])
def test_outputs_that_cannot_be_meant_are_refused(outputs: Any) -> None:
    with pytest.raises(ProgramError):
        design([0.5, 0.5], PML(0.4), ExpectedLoss(hamming), outputs)


@pytest.mark.parametrize(("shape", "outputs"), [((3, 2), None), ((2, 3), 2), ((2, 2), ["a", "b", "c"])])
def test_a_matrix_that_does_not_fit_is_refused(shape: tuple[int, int], outputs: Any) -> None:
    with pytest.raises(UtilityError, match="shape"):
        design([0.5, 0.5], PML(0.4), ExpectedGain(np.ones(shape)), outputs)


def test_other_things_than_requirements_and_utilities_are_refused() -> None:
    with pytest.raises(PrivacyError):
        design([0.5, 0.5], 0.4, ExpectedLoss(hamming))  # type: ignore[call-overload]
    with pytest.raises(UtilityError):
        design([0.5, 0.5], PML(0.4), 3)  # type: ignore[call-overload]


@pytest.mark.parametrize("name", ["rows", "pml", "output_law", "mine"])
def test_a_name_that_is_taken_is_refused(name: str) -> None:
    program = small()
    program = program.with_constraints(mine=program.mechanism[0, 0] <= 0.6)
    with pytest.raises(ProgramError, match=name):
        program.with_constraints(**{name: program.mechanism[0, 0] <= 0.5})


@pytest.mark.parametrize("thing", [True, 3.0, "P <= 1", None])
def test_other_things_than_constraints_are_refused(thing: Any) -> None:
    with pytest.raises(ProgramError, match="cvxpy constraint"):
        small().with_constraints(mine=thing)


def test_constraints_that_are_not_convex_are_refused() -> None:
    program = small()
    with pytest.raises(ProgramError, match="DCP"):
        program.with_constraints(mine=cp.norm(program.mechanism, "fro") >= 1)
    with pytest.raises(ProgramError, match="DCP"):
        program.with_constraints(mine=cp.square(program.mechanism[0, 0]) == 0.25)


@pytest.mark.parametrize("kind", ["integer", "boolean"])
def test_integer_variables_are_refused(kind: str) -> None:
    program = small()
    whole = cp.Variable(name="whole", **{kind: True})
    with pytest.raises(ProgramError, match="whole"):
        program.with_constraints(mine=program.mechanism[0, 0] <= whole)


@pytest.mark.parametrize("kind", ["parameter", "finite set", "complex"])
def test_constraints_that_cannot_be_certified_are_refused(kind: str) -> None:
    program = design([0.5, 0.5], PML(0.4), ExpectedGain(np.eye(2)))
    entry = program.mechanism[0, 0]
    constraint = {
        "parameter": entry <= cp.Parameter(name="cap"),
        "finite set": cp.FiniteSet(entry, [0.1, 0.2]),
        "complex": entry <= cp.real(cp.Variable(complex=True)),
    }[kind]
    with pytest.raises(ProgramError, match="'odd'"):
        program.with_constraints(odd=constraint)


def test_a_utility_past_every_unit_is_refused() -> None:
    with pytest.raises(UtilityError, match="change its unit"):
        design([0.5, 0.5], PML(0.4), ExpectedGain(np.eye(2) * 1.7e308))


def test_what_all_outputs_share_is_taken_off() -> None:
    program = design([0.5, 0.5], PML(0.4), ExpectedLoss(np.eye(2) + 3.0))
    assert program.offsets.tolist() == [3.0, 3.0]
    assert program.centred.tolist() == [[-1.0, 0.0], [0.0, -1.0]]
    assert program.constant == 3.0
