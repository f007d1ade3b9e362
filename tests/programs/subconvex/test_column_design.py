"""Declaring designs with a sub-convex utility: what is in the program, and what is refused."""

from __future__ import annotations

import itertools
import math
from dataclasses import replace
from typing import Any

import cvxpy as cp
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from oracles import columns as column_oracles
from oracles.columns import UTILITIES, Case, assert_optimal, random_case, small_cases
from oracles.designs import FloatArray
from scipy.optimize import nnls
from strategies import MODEST

from pmlopt import (
    LDP,
    LIP,
    PML,
    L1Ball,
    MutualInformation,
    Prior,
    SubConvex,
    design,
    mutual_information,
    solve,
)
from pmlopt.core.numbers.arrays import DefaultLabels
from pmlopt.errors import ProgramError
from pmlopt.model.closed_forms import robust_binary
from pmlopt.model.privacy import Requirement
from pmlopt.programs import Status
from pmlopt.programs.subconvex.column_generation import reduce_outputs
from pmlopt.programs.subconvex.column_spaces import build_column_space
from pmlopt.programs.subconvex.methods import certify_columns
from pmlopt.solvers.solver_result import FACTOR_MARGIN_RTOL

INFORMATION = MutualInformation()
THREE = [0.5, 0.3, 0.2]


def declare_none(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("pmlopt.programs.subconvex.program.MAX_DECLARED_COLUMNS", 0)


# ---------------------------------------------------------------- what is in the program


@pytest.mark.parametrize("privacy", [PML(0.6), LDP(0.6), LIP(0.4, 0.6)], ids=str)
@pytest.mark.parametrize("seed", [2, 4, 30])
def test_every_extreme_column_is_declared_once(privacy: Requirement, seed: int) -> None:
    case = random_case(88, seed)
    program = design(case.prior, privacy, INFORMATION)
    assert program.has_all_columns
    expected = column_oracles.extreme_columns(case.p, privacy)
    distinct = np.unique(np.hstack([np.ones((case.prior.size, 1)), expected]).round(9), axis=1)
    assert np.unique(program.lifts.round(9), axis=1) == pytest.approx(distinct, abs=2e-9)
    assert program.lifts.shape == distinct.shape
    assert case.p @ program.lifts == pytest.approx(np.ones(program.lifts.shape[1]), abs=1e-12)
    assert program.column_values == pytest.approx(
        column_oracles.information(case.p, program.lifts), abs=1e-12
    )


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


@pytest.mark.parametrize("name", UTILITIES)
def test_columns_can_be_listed_where_they_are_few(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    complete = design(THREE, PML(0.5), UTILITIES[name][0])
    declare_none(monkeypatch)
    program = design(THREE, PML(0.5), UTILITIES[name][0])
    assert (program.has_all_columns, complete.has_all_columns) == (False, True)
    every = program.with_every_column()
    assert every.has_all_columns
    assert np.array_equal(every.lifts, complete.lifts)
    assert np.array_equal(every.column_values, complete.column_values)


# ---------------------------------------------------------------- outputs


@pytest.mark.parametrize("labels", [["u", "v", "w", "x", "y", "z"], range(10, 14)])
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


def test_too_many_columns_for_a_function_are_refused_by_their_number() -> None:
    prior = Prior(np.random.default_rng(91).dirichlet(np.ones(30)))
    count = design(prior, PML(1.0), INFORMATION).space.column_count
    assert count is not None
    with pytest.raises(ProgramError) as caught:
        design(prior, PML(1.0), SubConvex(column_oracles.deviation))
    assert f"{count:,}" in str(caught.value)
    assert "30 letters" in str(caught.value)
    with pytest.raises(ProgramError, match=f"{count:,}"):
        design(prior, PML(1.0), INFORMATION).with_every_column()


def test_a_start_adds_its_columns() -> None:
    program = design(THREE, PML(0.4), INFORMATION)
    start = np.array([[0.6, 0.4, 0.0], [0.5, 0.5, 0.0], [0.4, 0.6, 0.0]])
    more = program.with_mechanism(start)
    added = start[:, :2] / (program.prior.pmf @ start[:, :2])
    assert more.lifts[:, : program.lifts.shape[1]].tolist() == program.lifts.tolist()
    assert more.lifts[:, program.lifts.shape[1] :] == pytest.approx(
        added, abs=100 * FACTOR_MARGIN_RTOL
    )
    assert more.has_all_columns


# ---------------------------------------------------------------- certificates


def requirement(kind: str, epsilon: float) -> Requirement:
    return {"pml": PML(epsilon), "ldp": LDP(epsilon), "lip": LIP(0.7, epsilon)}[kind]


KINDS = st.sampled_from(["pml", "ldp", "lip"])
NAMES = st.sampled_from(list(UTILITIES))
SCALES = st.sampled_from([0.0, 1e-9, 1e-3, 1.0, 1e3, 1e9])


@given(small_cases(), KINDS, NAMES, SCALES)
@MODEST
def test_any_multipliers_give_a_bound(
    drawn: tuple[Case, np.random.Generator], kind: str, name: str, scale: float
) -> None:
    (case, rng), (utility, worth) = drawn, UTILITIES[name]
    privacy = requirement(kind, case.epsilon)
    best = column_oracles.optimum(case.p, privacy, worth)
    for around in (np.zeros(case.prior.size), best.multipliers):
        rho = around + scale * rng.normal(size=case.prior.size)
        bound = build_column_space(case.prior, privacy, utility).compute_bound(rho, -np.inf, None)[
            0
        ]
        assert bound >= best.value - 1e-9
        assert bound <= definition(case.p, best.lifts, worth, rho) + 1e-9 * (1 + scale)


def definition(
    p: FloatArray, lifts: FloatArray, worth: column_oracles.Worth, rho: FloatArray
) -> float:
    """`<p, rho> + max (mu(lam) - <p rho, lam>)` over all extreme columns."""
    return float(p @ rho + (worth(p, lifts) - (p * rho) @ lifts).max())


@pytest.mark.parametrize("epsilon", [0.2, 0.9, 4.0])
def test_the_closed_bound_needs_no_solver(epsilon: float) -> None:
    prior = Prior([0.4, 0.3, 0.2, 0.1])
    program = design(prior, PML(epsilon), INFORMATION)
    certificate = certify_columns(program, np.ones((4, 1)), None, math.inf)
    assert certificate.value == 0
    expected = float(prior.pmf @ np.minimum(epsilon, -np.log(prior.pmf)))
    assert certificate.bound == pytest.approx(expected, abs=1e-10)
    assert certificate.pricing == ("everything" if epsilon > math.log(10) else "relaxed")
    assert certificate.verify()


@pytest.mark.parametrize("name", UTILITIES)
def test_any_mechanism_is_certified(name: str) -> None:
    case, (utility, worth) = random_case(95, 4), UTILITIES[name]
    privacy, rng = PML(0.5), np.random.default_rng(96)
    program = design(case.prior, privacy, utility)
    best = column_oracles.optimum(case.p, privacy, worth).value
    certificate = certify_columns(program, rng.dirichlet(np.ones(4), case.prior.size), None, 0.0)
    assert certificate.verify()
    assert certificate.level <= 0.5
    assert certificate.value == utility.value(case.prior, certificate.mechanism)
    assert certificate.value <= best + 1e-9
    assert certificate.bound >= best - 1e-9
    assert certificate.gap == certificate.bound - certificate.value


def test_a_bound_that_needs_a_list_too_long_is_refused() -> None:
    prior = Prior(np.random.default_rng(97).dirichlet(np.ones(30)))
    space = build_column_space(prior, PML(1.0), SubConvex(column_oracles.deviation))
    with pytest.raises(ProgramError, match="30 letters"):
        space.compute_bound(np.zeros(30), -np.inf, None)


@pytest.mark.parametrize("rare", [1e-3, 1e-6, 1e-9])
@pytest.mark.parametrize("epsilon", [0.5, 3.0, 20.0])
@pytest.mark.parametrize("radius", [0.3, 2.0, 4.0])
def test_two_letters_end_optimal_and_tell_no_more_than_there_is(
    rare: float, epsilon: float, radius: float
) -> None:
    """The radius is in units of the least probability; twice it lets the rare letter be impossible."""
    prior = Prior([1 - rare, rare])
    result = solve(
        design(prior, PML(epsilon, over=L1Ball(prior, radius * rare)), MutualInformation())
    )
    everything = -(1 - rare) * math.log1p(-rare) - rare * math.log(rare)
    assert result.status is Status.OPTIMAL
    assert result.value <= result.bound <= everything * (1 + 1e-12)
    formula = robust_binary(
        1 - rare - radius * rare / 2, min(1.0, 1 - rare + radius * rare / 2), epsilon
    )
    known = mutual_information(prior, formula)
    assert result.value == pytest.approx(known, rel=1e-6, abs=1e-15)


# ---------------------------------------------------------------- ties


@pytest.mark.parametrize(("n", "ratio", "outputs"), [(4, 2, 2), (4, 4, 4), (9, 3, 3), (10, 5, 5)])
@pytest.mark.parametrize("solver", ["auto", "column-generation"])
def test_even_letters_are_told_apart_in_blocks(
    n: int, ratio: int, outputs: int, solver: str
) -> None:
    result = solve(design(Prior.uniform(n), PML(math.log(ratio)), INFORMATION), solver)
    assert result.mechanism.matrix.shape == (n, outputs)
    assert result.value == pytest.approx(math.log(ratio), abs=1e-9)
    assert result.certificate.verify()


@pytest.mark.parametrize("solver", ["highs-ipm", "clarabel"])
@pytest.mark.parametrize("name", ["mutual information", "total variation", "guessing"])
@pytest.mark.parametrize("seed", [2, 20])
def test_there_are_never_more_outputs_than_letters(solver: str, name: str, seed: int) -> None:
    case = random_case(86, seed)
    result = solve(
        design(case.prior, PML(case.epsilon), UTILITIES[name][0]), solver, tolerance=1e-5
    )
    assert result.mechanism.matrix.shape[1] <= case.prior.size
    assert (result.mechanism.matrix.max(axis=0) > 0).all()


def fewest(face: FloatArray) -> int:
    """The least number of columns that can meet the rows, by trying them all."""
    n = len(face)
    for size in range(1, n + 1):
        for chosen in itertools.combinations(range(face.shape[1]), size):
            if nnls(face[:, chosen], np.ones(n))[1] < 1e-9:
                return size
    raise AssertionError("the rows cannot be met")


def optimal_columns(
    case: Case, best: column_oracles.Optimum, worth: column_oracles.Worth
) -> FloatArray:
    reduced = (case.p * best.multipliers) @ best.lifts - worth(case.p, best.lifts)
    return best.lifts[:, reduced <= 1e-9]


@pytest.mark.parametrize("weights", [[1, 1, 1, 1], [3, 2, 2, 1], [3, 1, 1, 1, 1]])
@pytest.mark.parametrize("name", ["mutual information", "total variation"])
@pytest.mark.parametrize("level", [0.3, 1.0])
def test_few_letters_get_the_fewest_outputs(weights: list[int], name: str, level: float) -> None:
    case, (utility, worth) = (
        Case(Prior.from_counts(weights, DefaultLabels(len(weights))), level),
        UTILITIES[name],
    )
    face = optimal_columns(case, column_oracles.optimum(case.p, PML(level), worth), worth)
    least = fewest(face)
    for solver in ("auto", "column-generation"):
        result = solve(design(case.prior, PML(level), utility), solver, tolerance=1e-10)
        assert result.mechanism.matrix.shape[1] == least


def test_columns_that_are_not_optimal_are_not_used() -> None:
    # the constant alone would be one output, and is worth less than the two halves
    lifts = np.array([[1.0, 2.0, 0.0], [1.0, 0.0, 2.0]])
    found, _ = reduce_outputs(
        lifts, np.array([0.0, 1.0, 1.0]), np.array([0.5, 0.5]), np.array([0, 0.5, 0.5])
    )
    assert np.array_equal(found, lifts[:, 1:])
    found, weights = reduce_outputs(
        lifts, np.ones(3), np.array([0.5, 0.5]), np.array([0, 0.5, 0.5])
    )
    assert np.array_equal(found, lifts[:, :1])
    assert weights == pytest.approx([1.0], abs=1e-15)


def test_no_weights_at_all_are_an_error() -> None:
    with pytest.raises(ArithmeticError, match="no column has a weight"):
        reduce_outputs(np.ones((2, 1)), np.ones(1), np.full(2, 0.5), np.zeros(1))


def test_without_multipliers_no_bound_is_proved() -> None:
    certificate = solve(design([0.5, 0.3, 0.2], PML(0.5), INFORMATION)).certificate
    bare = replace(certificate, multipliers=None)
    assert not bare.verify()
    assert replace(bare, bound=math.inf).verify()
