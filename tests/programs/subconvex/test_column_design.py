"""Declaring designs with a sub-convex utility: what is in the program, and what is refused."""

from __future__ import annotations

import math
from typing import Any

import cvxpy as cp
import numpy as np
import pytest
from oracles import columns as column_oracles
from oracles.columns import UTILITIES, assert_optimal, random_case

from pmlopt import (
    LDP,
    LIP,
    PML,
    MaximalLeakage,
    Mechanism,
    MutualInformation,
    Prior,
    Pufferfish,
    Secret,
    SubConvex,
    design,
    solve,
)
from pmlopt.errors import MechanismError, PrivacyError, ProgramError, UtilityError
from pmlopt.model.privacy import Requirement
from pmlopt.model.privacy.requirement import MARGIN

INFORMATION = MutualInformation()
THREE = [0.5, 0.3, 0.2]


def declare_none(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("pmlopt.programs.subconvex.program.MOST_DECLARED_COLUMNS", 0)


# ---------------------------------------------------------------- what is in the program


@pytest.mark.parametrize("privacy", [PML(0.6), LDP(0.6), LIP(0.4, 0.6)], ids=str)
@pytest.mark.parametrize("seed", range(6))
def test_every_extreme_column_is_declared_once(privacy: Requirement, seed: int) -> None:
    case = random_case(88, seed)
    program = design(case.prior, privacy, INFORMATION)
    assert program.complete
    expected = column_oracles.extreme_columns(case.p, privacy)
    distinct = np.unique(np.hstack([np.ones((case.prior.size, 1)), expected]).round(9), axis=1)
    assert np.unique(program.lifts.round(9), axis=1) == pytest.approx(distinct, abs=2e-9)
    assert program.lifts.shape == distinct.shape
    assert case.p @ program.lifts == pytest.approx(np.ones(program.lifts.shape[1]), abs=1e-12)
    assert program.worths == pytest.approx(column_oracles.information(case.p, program.lifts), abs=1e-12)


def test_the_program_is_a_plain_linear_program() -> None:
    program = design(THREE, PML(0.5), INFORMATION)
    best = column_oracles.optimum(program.prior.pmf, PML(0.5), column_oracles.information).value
    assert program.problem.is_lp()
    assert program.problem.solve(solver=cp.CLARABEL) == pytest.approx(best, abs=1e-7)
    matrix = np.asarray(program.mechanism.value)
    assert matrix.shape == program.lifts.shape
    assert matrix.sum(axis=1) == pytest.approx(np.ones(3), abs=1e-7)
    assert set(program.variables) == {"weights"}
    assert set(program.constraints) == {"rows"}
    assert "weights" in str(program)


def test_many_columns_are_not_declared() -> None:
    program = design(Prior(np.random.default_rng(90).dirichlet(np.ones(25))), PML(1.0), INFORMATION)
    assert not program.complete
    assert program.lifts.shape[1] <= 26
    assert program.space.count is not None
    assert program.space.count > 10**6


@pytest.mark.parametrize("name", UTILITIES)
def test_columns_can_be_listed_where_they_are_few(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    complete = design(THREE, PML(0.5), UTILITIES[name][0])
    declare_none(monkeypatch)
    program = design(THREE, PML(0.5), UTILITIES[name][0])
    assert (program.complete, complete.complete) == (False, True)
    every = program.with_every_column()
    assert every.complete
    assert np.array_equal(every.lifts, complete.lifts)
    assert np.array_equal(every.worths, complete.worths)


# ---------------------------------------------------------------- outputs


@pytest.mark.parametrize("labels", [["u", "v", "w", "x"], ["u", "v", "w", "x", "y", "z"], range(10, 14)])
@pytest.mark.parametrize("epsilon", [0.0, math.log(2), 5.0])
def test_outputs_carry_the_labels_asked_for(labels: Any, epsilon: float) -> None:
    prior = Prior([0.25] * 4, ["a", "b", "c", "d"])
    program = design(prior, PML(epsilon), INFORMATION, outputs=labels)
    result = solve(program)
    assert result.mechanism.inputs == ("a", "b", "c", "d")
    assert result.mechanism.outputs == tuple(labels)
    assert result.mechanism.matrix.shape == (4, len(labels))
    best = column_oracles.optimum(prior.pmf, PML(epsilon), column_oracles.information).value
    assert_optimal(program, [result], best)


# ---------------------------------------------------------------- refused


@pytest.mark.parametrize("outputs", [2, ["x", "y"], 1, range(2)])
def test_fewer_outputs_than_letters_are_refused(outputs: Any) -> None:
    with pytest.raises(ProgramError, match="fewer than the 3 letters"):
        design(THREE, PML(0.4), INFORMATION, outputs=outputs)


def test_constraints_of_ones_own_are_refused() -> None:
    program = design(THREE, PML(0.4), INFORMATION)
    with pytest.raises(ProgramError, match="linear utility"):
        program.with_constraints(cap=program.variables["weights"] <= 0.5)


@pytest.mark.parametrize("name", UTILITIES)
def test_maximal_leakage_is_refused(name: str) -> None:
    with pytest.raises(PrivacyError):
        design(THREE, MaximalLeakage(0.4), UTILITIES[name][0])


@pytest.mark.parametrize("utility", [None, 3, "mutual-informations", MutualInformation])
def test_what_is_no_utility_is_refused(utility: Any) -> None:
    with pytest.raises(UtilityError, match=r"sub-convex|call it|mutual-information"):
        design(THREE, PML(0.4), utility)


def test_too_many_columns_for_a_function_are_refused_by_their_number() -> None:
    prior = Prior(np.random.default_rng(91).dirichlet(np.ones(30)))
    count = design(prior, PML(1.0), INFORMATION).space.count
    assert count is not None
    with pytest.raises(ProgramError) as caught:
        design(prior, PML(1.0), SubConvex(column_oracles.deviation))
    assert f"{count:,}" in str(caught.value)
    assert "30 letters" in str(caught.value)
    with pytest.raises(ProgramError, match=f"{count:,}"):
        design(prior, PML(1.0), INFORMATION).with_every_column()


@pytest.mark.parametrize("name", ["own function", "guessing"])
def test_past_forty_letters_there_are_too_many_to_count(name: str) -> None:
    prior = Prior(np.random.default_rng(92).dirichlet(np.ones(45)))
    with pytest.raises(ProgramError, match="too many extreme columns on 45 letters"):
        design(prior, PML(1.0), UTILITIES[name][0])


@pytest.mark.parametrize("privacy", [PML(0.4), LDP(0.4), LIP(0.4, 0.4)], ids=str)
@pytest.mark.parametrize("solver", ["auto", "column-generation"])
def test_a_start_that_breaks_the_requirement_is_refused(privacy: Requirement, solver: str) -> None:
    program = design(THREE, privacy, INFORMATION)
    with pytest.raises(ProgramError, match="does not meet the requirement"):
        solve(program, solver, np.eye(3))
    with pytest.raises(ProgramError, match="does not meet the requirement"):
        program.with_mechanism(np.eye(3))


def test_a_start_of_other_letters_is_refused() -> None:
    program = design(Prior(THREE, ["a", "b", "c"]), PML(0.4), INFORMATION)
    with pytest.raises(MechanismError):
        solve(program, warm_start=np.full((4, 1), 1.0))
    with pytest.raises(MechanismError, match="another order"):
        solve(program, warm_start=Mechanism(np.full((3, 1), 1.0), ["c", "b", "a"]))


def test_a_start_adds_its_columns() -> None:
    program = design(THREE, PML(0.4), INFORMATION)
    start = np.array([[0.6, 0.4, 0.0], [0.5, 0.5, 0.0], [0.4, 0.6, 0.0]])
    more = program.with_mechanism(start)
    added = start[:, :2] / (program.prior.pmf @ start[:, :2])
    assert more.lifts[:, : program.lifts.shape[1]].tolist() == program.lifts.tolist()
    assert more.lifts[:, program.lifts.shape[1] :] == pytest.approx(added, abs=100 * MARGIN)
    assert more.complete


def test_bounds_on_ratios_with_too_many_bases_are_refused_with_what_helps() -> None:
    secret = Secret(np.random.default_rng(1).dirichlet(np.ones(70)).reshape(5, 14))
    with pytest.raises(ProgramError, match="20 bounds on 14 letters") as caught:
        design(secret.prior, Pufferfish(1.0, secret), INFORMATION)
    assert "merge values of the secret" in str(caught.value)
    assert "FInformation" not in str(caught.value)
