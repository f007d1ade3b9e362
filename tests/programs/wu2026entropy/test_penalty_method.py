"""The parts of the penalty method, by their definitions and at their stationary points."""

from __future__ import annotations

import math
from itertools import pairwise

import numpy as np
import pytest
from oracles.designs import FloatArray

from pmlopt import distortion_leakage, leakage_distortion
from pmlopt.model.queries import ModularSum
from pmlopt.programs.tradeoff.program import TradeoffProgram
from pmlopt.programs.tradeoff.proof import Sense
from pmlopt.programs.wu2026entropy import penalty
from pmlopt.programs.wu2026entropy.penalty import (
    PenalizedProblem,
    _build_interior_start,
    _compute_merit,
    adapt_weight,
    descend_multiplicatively,
)
from pmlopt.solvers.solver_result import Deadline

JOINT = np.array([[0.4, 0.1, 0.05], [0.05, 0.1, 0.3]])
LOSSES = np.array([[0.0, 1.0], [0.6, 0.5], [1.0, 0.0]]) * JOINT.sum(axis=0)[:, None]
BOTH: tuple[Sense, ...] = ("leakage", "distortion")


def leakage_of(matrix: FloatArray) -> float:
    """I(X; Y), by its definition."""
    laws = JOINT @ matrix
    alone = np.outer(laws.sum(axis=1), laws.sum(axis=0))
    return float((laws * np.log(laws / alone)).sum())


def problem_of(sense: Sense, limit: float, weight: float = 3.0) -> PenalizedProblem:
    return PenalizedProblem((JOINT,), LOSSES, sense, limit, weight)


@pytest.mark.parametrize("sense", BOTH)
def test_the_objective_is_the_aim_and_the_weighted_square_of_a_soft_excess(sense: Sense) -> None:
    matrix = np.array([[0.7, 0.3], [0.5, 0.5], [0.2, 0.8]])
    leaked, spent = leakage_of(matrix), float((LOSSES * matrix).sum())
    aim, bounded = (leaked, spent) if sense == "leakage" else (spent, leaked)
    expected = aim + 3.0 * math.log(1 + math.exp(bounded - 0.15)) ** 2
    assert problem_of(sense, 0.15).evaluate(matrix) == pytest.approx(expected)


@pytest.mark.parametrize("sense", BOTH)
def test_a_descent_ends_at_the_least_of_a_grid(sense: Sense) -> None:
    problem = problem_of(sense, 0.1)
    found = descend_multiplicatively(problem, np.full((3, 2), 0.5))
    assert found.sum(axis=1) == pytest.approx(np.ones(3))
    steps = np.linspace(1e-3, 1 - 1e-3, 8)
    rows = np.array(np.meshgrid(steps, steps, steps)).reshape(3, -1).T
    least = min(problem.evaluate(np.column_stack([row, 1 - row])) for row in rows)
    assert problem.evaluate(found) <= least + 5e-3


@pytest.mark.parametrize(
    ("limit", "factor", "rounds"), [(0.2, 1.5, 40), (0.6, 1 / 1.5, 40), (0.38, 1.0, 2)]
)
def test_the_weight_grows_above_the_limit_and_falls_below_it(
    monkeypatch: pytest.MonkeyPatch, limit: float, factor: float, rounds: int
) -> None:
    matrix = np.array([[0.7, 0.3], [0.5, 0.5], [0.4, 0.6]])
    assert float((LOSSES * matrix).sum()) == pytest.approx(0.135 + 0.11 + 0.14)
    weights = []

    def stay(problem: PenalizedProblem, matrix: FloatArray, deadline: Deadline) -> FloatArray:
        weights.append(problem.weight)
        return matrix

    monkeypatch.setattr(penalty, "descend_multiplicatively", stay)
    assert adapt_weight(problem_of("leakage", limit), matrix) is matrix
    assert weights == pytest.approx([3.0 * factor**k for k in range(rounds)])


def programs() -> list[TradeoffProgram]:
    return [
        leakage_distortion(ModularSum(2, 3), 0.2, 0.7),
        leakage_distortion(ModularSum(2, 3), 0.6, 0.7),
        distortion_leakage(ModularSum(2, 3), 0.2, 0.7),
    ]


def test_a_start_is_positive_and_within_the_distortion() -> None:
    for program in programs():
        start = _build_interior_start(program)
        assert (start > 0).all()
        assert start.sum(axis=1) == pytest.approx(np.ones(len(start)))
        if program.sense == "leakage":
            spent = program.tradeoff.compute_distortion(start)
            assert spent <= program.limit + 1e-12
    low = programs()[0]  # below what a uniform mechanism costs, the limit is used up
    spent = low.tradeoff.compute_distortion(_build_interior_start(low))
    assert spent == pytest.approx(low.limit)


def test_the_merit_counts_an_excess_tenfold() -> None:
    tight, _, back = programs()
    uniform = np.full(tight.losses.shape, 1 / tight.losses.shape[1])
    spent = tight.tradeoff.compute_distortion(uniform)
    assert spent > 0.2
    assert _compute_merit(tight, 0.05, uniform) == pytest.approx(0.05 + 10 * (spent - 0.2))
    assert _compute_merit(back, 0.05, uniform) == pytest.approx(spent)
    assert _compute_merit(back, 0.3, uniform) == pytest.approx(spent + 10 * (0.3 - back.limit))


class Recorded(PenalizedProblem):
    """A problem that keeps in `visited` the mechanisms from which a step was made."""

    def compute_gradient(self, matrix: FloatArray) -> FloatArray:
        visited.append(matrix)
        return super().compute_gradient(matrix)


visited: list[FloatArray] = []


def test_each_step_gains_half_of_what_its_gradient_promises() -> None:
    """At a weight for which the first steps that are tried go too far."""
    problem = Recorded((JOINT,), LOSSES, "distortion", 0.02, 30.0)
    start = np.array([[0.6, 0.4], [0.5, 0.5], [0.3, 0.7]])
    visited.clear()
    descend_multiplicatively(problem, start, steps=12)
    assert len(visited) == 12
    for before, after in pairwise(visited.copy()):
        promised = float((problem.compute_gradient(before) * (before - after)).sum())
        assert promised > 0
        assert problem.evaluate(after) <= problem.evaluate(before) - promised / 2


def test_a_step_that_changes_nothing_is_the_last() -> None:
    """All outputs cost the same and leak nothing."""
    problem = Recorded((JOINT,), np.full((3, 2), 0.2), "leakage", 0.1, 3.0)
    visited.clear()
    start = np.full((3, 2), 0.5)
    assert descend_multiplicatively(problem, start) == pytest.approx(start)
    assert len(visited) == 1


def test_a_loss_of_all_outputs_alike_changes_no_descent() -> None:
    """Even one of which the exponential is no float."""
    start = np.array([[0.6, 0.4], [0.5, 0.5], [0.3, 0.7]])
    found = [
        descend_multiplicatively(
            PenalizedProblem((JOINT,), LOSSES + more, "distortion", 0.05, 3.0), start, steps=5
        )
        for more in (0.0, 1000.0)
    ]
    assert found[1] == pytest.approx(found[0], abs=1e-6)
