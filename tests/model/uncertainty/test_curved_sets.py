"""Questions over a set of priors that is no polytope: on two letters it is an interval, which is one."""

from __future__ import annotations

import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from oracles.divergence_balls import BALLS

from pmlopt import (
    LDP,
    PML,
    ChiSquareBall,
    ConvexHull,
    EstimationError,
    ExpectedLoss,
    KLBall,
    L1Ball,
    MutualInformation,
    Prior,
    RenyiPML,
    best_worst_case,
    design,
    envelope,
    least_leakage,
    load,
    solve,
    sweep,
    worst_case_utility,
)
from pmlopt.measures import failure_probability
from pmlopt.model.uncertainty import leakage_capacity, leakage_sensitivity
from pmlopt.model.uncertainty.divergence_ball import DivergenceBall
from pmlopt.programs.program import Program

P = Prior([0.6, 0.4])
LOSS = 1 - np.eye(2)
FLIP = np.array([[0.75, 0.25], [0.25, 0.75]])
KINDS = tuple(BALLS)


def make_pair(name: str) -> tuple[DivergenceBall, ConvexHull]:
    """A ball on two letters, and the hull of its two ends."""
    ball = BALLS[name].make(P, BALLS[name].radii[1])
    ends = [ball.minimizer(np.array(column)) for column in ([0.0, 1.0], [1.0, 0.0])]
    return ball, ConvexHull(ends)


@pytest.mark.parametrize("name", KINDS)
def test_levels_and_failures_are_those_of_the_interval(name: str) -> None:
    ball, interval = make_pair(name)
    assert float(leakage_capacity(ball, FLIP)) == pytest.approx(
        float(leakage_capacity(interval, FLIP))
    )
    assert float(leakage_sensitivity(P, ball, FLIP)) == pytest.approx(
        float(leakage_sensitivity(P, interval, FLIP))
    )
    for epsilon in (0.1, 0.3, 0.45, 0.6):
        over = failure_probability(P, FLIP, epsilon, over=ball)
        assert over == pytest.approx(failure_probability(P, FLIP, epsilon, over=interval), abs=1e-7)


@pytest.mark.parametrize("name", KINDS)
@pytest.mark.parametrize("question", range(7))
def test_designs_are_those_of_the_interval(name: str, question: int) -> None:
    def ask(over: DivergenceBall | ConvexHull) -> Program[Any]:
        programs: list[Callable[[], Program[Any]]] = [
            lambda: design(P, PML(0.3, over=over), ExpectedLoss(LOSS)),
            lambda: design(P, PML(0.3, over=over) & LDP(0.4), ExpectedLoss(LOSS)),
            lambda: design(P, PML(0.3, over=over), MutualInformation()),
            lambda: design(P, RenyiPML(2, 0.1, over=over), ExpectedLoss(LOSS)),
            lambda: least_leakage(P, ExpectedLoss(LOSS), expected=0.3, over=over),
            lambda: envelope(P, FLIP, 0.05, over=over),
            lambda: design(P, PML(0.3, over=over), EstimationError()),
        ]
        return programs[question]()

    ball, interval = make_pair(name)
    found, expected = solve(ask(ball)), solve(ask(interval))
    assert found.certificate.verify()
    assert found.value == pytest.approx(expected.value, rel=2e-6)
    assert found.gap <= 2e-6 * max(1.0, abs(found.value))


@pytest.mark.parametrize("name", KINDS)
def test_worst_cases_on_three_letters_are_cut_to_the_level(name: str) -> None:
    """A level is that of its mechanism, and below it no prior mixture of the ball allows the rank."""
    p, order = np.array([0.5, 0.3, 0.2]), np.array([[4, 3, 2, 1], [1, 4, 3, 2], [2, 1, 4, 3]])
    ball = BALLS[name].make(p, BALLS[name].radii[1])
    found = solve(worst_case_utility(p, order, 3, over=ball))
    assert found.status.value == "optimal"
    assert found.certificate.verify()
    assert PML(found.value + 1e-9, over=ball).holds(p, found.mechanism)
    turns = np.linspace(0, 2 * math.pi, 240, endpoint=False)
    base = np.linalg.svd(np.ones((1, 3)))[2][1:]
    columns = np.stack([np.cos(turns), np.sin(turns)]).T @ base
    hull = ConvexHull(ball.find_minimizers(columns.T).T)
    within = solve(worst_case_utility(p, order, 3, over=hull))
    assert within.value - 1e-9 <= found.value <= within.value + 1e-3
    best = solve(best_worst_case(p, order, found.value + 1e-6, over=ball))
    assert best.value == 3
    assert best.certificate.verify()


def test_an_error_of_estimation_on_three_letters_is_least_for_the_ball() -> None:
    p = np.array([0.5, 0.3, 0.2])
    ball = ChiSquareBall(p, 0.1)
    found = solve(design(p, PML(1.0, over=ball), EstimationError()))
    assert found.status.value == "optimal"
    assert found.certificate.verify()
    # some of its priors allow more, and 24 of them hardly more
    turns = np.linspace(0, 2 * math.pi, 24, endpoint=False)
    base = np.linalg.svd(np.ones((1, 3)))[2][1:]
    hull = ConvexHull(ball.find_minimizers((np.stack([np.cos(turns), np.sin(turns)]).T @ base).T).T)
    within = solve(design(p, PML(1.0, over=hull), EstimationError()))
    assert within.value - 1e-7 <= found.value <= 1.01 * within.value


@pytest.mark.parametrize("name", KINDS)
def test_a_sweep_and_a_file_keep_the_set(name: str, tmp_path: Path) -> None:
    ball, _ = make_pair(name)
    table = sweep(
        lambda epsilon: design(P, PML(epsilon, over=ball), ExpectedLoss(LOSS)),
        {"epsilon": [0.2, 0.3]},
    )
    losses = table.column("value")
    assert losses[1] < losses[0]
    path = tmp_path / "saved.json"
    solve(design(P, PML(0.3, over=ball), ExpectedLoss(LOSS))).save(path)
    again = load(path)
    assert again.certificate.privacy == PML(0.3, over=ball)
    assert again.certificate.verify()


@pytest.mark.parametrize("epsilon", [0.0, 0.05, 0.5, 3.0])
@pytest.mark.parametrize("ball", [ChiSquareBall, KLBall])
def test_some_columns_over_a_curved_set_meet_it_and_attain_its_level(
    ball: type[ChiSquareBall | KLBall], epsilon: float
) -> None:
    """A column of two values is at its limit, unless it is 0 where its least entry is."""
    prior = Prior([0.4, 0.3, 0.2, 0.1])
    over = ball(prior, 0.05)
    columns = PML(epsilon, over=over).list_some_columns(prior)
    assert columns.shape == (4, 8)
    assert prior.pmf @ columns == pytest.approx(np.ones(8), abs=1e-12)
    levels = np.log(columns.max(axis=0) / over.min_mean(columns))
    assert (levels <= epsilon + 1e-9).all()
    assert levels[columns.min(axis=0) > 0] == pytest.approx(epsilon, abs=1e-9)


def test_of_a_polytope_and_of_many_letters_no_columns_are_listed() -> None:
    """A bound over a polytope is a formula, and means of many columns take as long as a bound."""
    prior = Prior([0.5, 0.3, 0.2])
    assert PML(0.5, over=L1Ball(prior, 0.1)).list_some_columns(prior).shape == (3, 0)
    many = Prior.uniform(101)
    assert PML(0.5, over=KLBall(many, 0.1)).list_some_columns(many).shape == (101, 0)
