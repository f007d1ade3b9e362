"""Sub-convex utilities under a limited cost of columns: maximal leakage, Sibson's information and others."""

from __future__ import annotations

import itertools
import math
import re
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from refusals import refused
from scipy.optimize import linprog

from pmlopt import (
    LDP,
    GuessLeakage,
    MaximalLeakage,
    MutualInformation,
    Prior,
    RenyiPML,
    Result,
    Secret,
    SibsonLeakage,
    Vulnerability,
    certify,
    design,
    least_leakage,
    solve,
    verify_file,
)
from pmlopt.errors import PrivacyError, ProgramError
from pmlopt.model.privacy import Requirement
from pmlopt.model.privacy.column_cost import LargestPieceCost, NormCost
from pmlopt.programs.subconvex.cost_program import ColumnCostDesign

P = np.array([0.5, 0.3, 0.2])
LIMITS: tuple[Requirement, ...] = (
    MaximalLeakage(0.4),
    Vulnerability(epsilon=0.2),
    Vulnerability([[1.0, 0.2, 0.0], [0.0, 2.0, 0.0]], 0.1),
    GuessLeakage(2, 0.1),
    SibsonLeakage(2, 0.25),
    SibsonLeakage(4, 0.25),
    RenyiPML(2, 0.3),
)


def information_by_sets(p: np.ndarray, epsilon: float) -> float:
    """The most information under maximal leakage, from all columns that are constant on a set of letters."""
    sets = np.array([*itertools.product((0.0, 1.0), repeat=len(p))])[1:]
    masses = sets @ p
    found = linprog(
        masses * np.log(masses),
        A_ub=np.ones((1, len(sets))), b_ub=[math.exp(epsilon)],
        A_eq=sets.T, b_eq=np.ones(len(p)),
    )  # fmt: skip
    return float(-found.fun)


@pytest.mark.parametrize("size", [2, 3, 5])
@pytest.mark.parametrize("epsilon", [0.0, 0.3, 0.9, 5.0])
def test_maximal_leakage_reaches_the_program_over_sets_of_letters(
    size: int, epsilon: float
) -> None:
    p = np.random.default_rng(size).dirichlet(np.full(size, 3.0))
    result = solve(design(p, MaximalLeakage(epsilon), MutualInformation()))
    assert result.status.value == "optimal"
    assert result.value == pytest.approx(information_by_sets(p, epsilon), abs=1e-8)


def test_maximal_leakage_of_log_two_keeps_two_halves_of_uniform_letters() -> None:
    # two outcomes reveal log 2, and no mechanism has more information than its maximal leakage
    result = solve(design([0.25] * 4, MaximalLeakage(math.log(2)), MutualInformation()))
    assert result.value == pytest.approx(math.log(2), abs=1e-9)


def best_on_a_grid(alpha: float, epsilon: float, p: np.ndarray) -> float:
    """The most information of two letters under Sibson's information, over columns on a fine grid."""
    shares = np.linspace(0, 1, 4_001)
    lifts = np.vstack([shares / p[0], (1 - shares) / p[1]])
    with np.errstate(divide="ignore", invalid="ignore"):
        worths = p @ np.where(lifts > 0, lifts * np.log(lifts), 0.0)
    costs = (p @ lifts**alpha) ** (1 / alpha)
    found = linprog(
        -worths,
        A_ub=costs[None], b_ub=[math.exp((alpha - 1) / alpha * epsilon)],
        A_eq=lifts, b_eq=np.ones(2),
    )  # fmt: skip
    return float(-found.fun)


@pytest.mark.parametrize("alpha", [1.5, 2.0, 6.0])
@pytest.mark.parametrize("epsilon", [0.05, 0.4])
def test_sibson_information_reaches_the_program_over_a_grid_of_columns(
    alpha: float, epsilon: float
) -> None:
    p = np.array([0.7, 0.3])
    result = solve(design(p, SibsonLeakage(alpha, epsilon), MutualInformation()))
    assert result.status.value == "optimal"
    found = best_on_a_grid(alpha, epsilon, p)
    assert found - 1e-9 <= result.bound
    assert result.value == pytest.approx(found, abs=1e-6)


@cache
def informed(place: int) -> Result[Any]:
    """The design of the most information under one of the limits, solved once."""
    return solve(design(P, LIMITS[place], MutualInformation()))


@pytest.mark.parametrize("place", range(len(LIMITS)))
def test_random_mechanisms_within_a_limit_stay_below_the_bound(place: int) -> None:
    privacy, result = LIMITS[place], informed(place)
    assert result.status.value == "optimal"
    assert privacy.holds(P, result.mechanism)
    assert result.certificate.verify()
    level, rng = next(iter(privacy.limits.values())), np.random.default_rng(place)
    best = 0.0
    for _ in range(60):
        drawn = rng.dirichlet(np.full(4, 0.3), size=3)
        constant = np.tile(P @ drawn, (3, 1))
        # the largest share of what was drawn that the limit allows, found by steps
        share = 1.0
        while privacy.level(P, constant + share * (drawn - constant)) > level:
            share *= 0.95
        best = max(best, MutualInformation().value(P, constant + share * (drawn - constant)))
    assert 0.3 * result.value <= best <= result.bound


@pytest.mark.parametrize(
    ("cost", "p"),
    [
        (NormCost(2.0, False, P, 2.5), P),
        (LargestPieceCost(2.0, False, np.array([[1.0, 0.5, 0.0], [0.0, 1.0, 2.0]])), P),
    ],
    ids=["norm", "pieces"],
)
def test_slopes_touch_the_cost_and_stay_below_it(
    cost: NormCost | LargestPieceCost, p: np.ndarray
) -> None:
    rng = np.random.default_rng(5)
    columns, others = rng.random((3, 20)), rng.random((3, 200))
    slopes = cost.compute_slopes(columns)
    assert (slopes * columns.T).sum(axis=1) == pytest.approx(cost.evaluate(columns), rel=1e-12)
    assert ((slopes @ others).max(axis=0) <= cost.evaluate(others) * (1 + 1e-12)).all()


def test_slopes_above_a_norm_are_divided_until_they_are_below() -> None:
    cost = NormCost(2.0, False, P, 3.0)
    others = np.random.default_rng(1).random((3, 500))
    steep = cost.shrink_slopes(np.array([[5.0, 1.0, 0.0], [0.1, 0.1, 0.1]]))
    assert ((steep @ others).max(axis=0) <= cost.evaluate(others)).all()
    assert steep[1] == pytest.approx([0.1, 0.1, 0.1])  # those below are left as they are


@pytest.mark.parametrize("place", range(len(LIMITS)))
def test_any_multipliers_and_price_give_a_bound(place: int) -> None:
    program = design(P, LIMITS[place], MutualInformation())
    assert isinstance(program, ColumnCostDesign)
    for multipliers in ([0.0, 0.0, 0.0], [2.0, -1.0, 0.3]):
        for price in (0.0, 0.7, 3.0):
            found = program.space.compute_bound(np.array(multipliers), price, None)
            assert found >= informed(place).value


def test_a_false_bound_or_price_is_found_out(tmp_path: Path) -> None:
    path = tmp_path / "sibson.json"
    solve(design(P, SibsonLeakage(2, 0.25), MutualInformation())).save(path)
    assert verify_file(path).holds
    text = path.read_text()
    changed = re.sub(r'"price": [0-9.e-]+', '"price": 0.05', text)
    assert changed != text
    path.write_text(changed)
    assert verify_file(path).holds is False


@pytest.mark.parametrize("solver", ["highs-ipm", "clarabel", "scs"])
def test_solvers_of_the_declared_program_reach_the_same(solver: str) -> None:
    program = design(P, MaximalLeakage(0.4), MutualInformation())
    options = {"eps_abs": 1e-9, "eps_rel": 1e-9} if solver == "scs" else None
    found = solve(program, solver, solver_options=options, tolerance=1e-6)
    assert found.value == pytest.approx(solve(program).value, abs=1e-6)


@pytest.mark.parametrize("family", [MaximalLeakage, SibsonLeakage(5, 0), RenyiPML(2, 0)])
def test_a_least_level_lies_between_designs_that_reach_the_target_and_do_not(family: Any) -> None:
    result = solve(least_leakage([0.4, 0.3, 0.3], family, MutualInformation(), 0.3))
    assert result.status.value == "optimal"
    assert MutualInformation().value([0.4, 0.3, 0.3], result.mechanism) >= 0.3 - 1e-12
    program = least_leakage([0.4, 0.3, 0.3], family, MutualInformation(), 0.3)
    assert solve(program.at(result.value + 1e-5)).value > 0.3  # type: ignore[union-attr]
    assert solve(program.at(result.value - 1e-5)).bound < 0.3  # type: ignore[union-attr]


def test_under_maximal_leakage_an_information_takes_a_level_of_at_least_itself() -> None:
    # two letters that stay together of four: the information log 2 is the leakage
    result = solve(least_leakage([0.25] * 4, MaximalLeakage, MutualInformation(), math.log(2)))
    assert result.value == pytest.approx(math.log(2), abs=1e-6)


def test_a_given_mechanism_is_certified() -> None:
    program = design(P, MaximalLeakage(0.4), MutualInformation())
    result = certify(program, np.full((3, 2), 0.5))
    assert result.value == 0.0
    assert result.bound >= solve(program).value


def test_what_cannot_be_designed_is_refused_with_what_to_do() -> None:
    many = Prior.uniform(15)
    refused(ProgramError, design, "merge letters", (many, MaximalLeakage(0.5), MutualInformation()))
    refused(
        ProgramError, design, "4 that the optimum may need",
        (P, MaximalLeakage(0.5), MutualInformation(), ["a", "b", "c"]),
    )  # fmt: skip
    both = MaximalLeakage(0.5) & LDP(1.0)
    refused(PrivacyError, design, "extreme columns", (P, both, MutualInformation()))
    secret = Secret(np.random.default_rng(0).dirichlet(np.ones(6)).reshape(2, 3))
    about = RenyiPML(2, 0.3, about=secret)
    refused(PrivacyError, design, "extreme columns", (secret.prior, about, MutualInformation()))


def test_outputs_keep_the_labels_that_are_given() -> None:
    labels = ["a", "b", "c", "d"]
    result = solve(design(P, MaximalLeakage(0.4), MutualInformation(), labels))
    assert result.mechanism.outputs == tuple(labels)
    assert result.status.value == "optimal"
