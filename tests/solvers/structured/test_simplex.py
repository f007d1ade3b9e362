"""The same program in HiGHS without cvxpy: the same optimum, and starts that mean what they say."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from oracles import designs as oracles
from oracles.bands import KINDS, Shape, bounded

from pmlopt import PML, ExpectedGain, ExpectedLoss, Prior, design, solve
from pmlopt.programs.linear.program import LinearDesign
from pmlopt.solvers import highs
from pmlopt.solvers.outcome import FOREVER, Clock, Options, Outcome
from pmlopt.solvers.structured import simplex as direct
from pmlopt.solvers.structured.block_program import Task

Generator = np.random.Generator
FREE = Options(FOREVER, 1e-9)

kinds = pytest.mark.parametrize("kind", KINDS)


def some(kind: str, seed: int) -> tuple[LinearDesign, Shape]:
    rng = np.random.default_rng([80, KINDS.index(kind), seed])
    n, m = int(rng.integers(2, 8)), int(rng.integers(1, 8))
    prior = Prior(oracles.random_prior(rng, n))
    bound = bounded(kind, prior, rng)
    table = rng.normal(size=(n, m))
    return design(prior, bound.at(float(rng.uniform(0.05, 3))), ExpectedLoss(table)), bound.shape


def near(kind: str, shift: float, n: int = 8) -> LinearDesign:
    """Programs of one shape whose gains and levels differ by so much."""
    rng = np.random.default_rng([81, KINDS.index(kind)])
    prior = Prior(oracles.random_prior(rng, n))
    privacy = bounded(kind, prior, rng).at(0.8 + shift)
    gains, change = rng.random((n, n)), rng.normal(size=(n, n))
    return design(prior, privacy, ExpectedGain(gains + shift * change))


def tasked(program: LinearDesign) -> Task:
    task = program.task()
    assert task is not None
    return task


def value(program: LinearDesign, outcome: Outcome) -> float:
    assert outcome.found is not None
    return float((program.prior.pmf[:, None] * program.table * outcome.found.matrix).sum())


@kinds
@pytest.mark.parametrize("seed", range(4))
def test_the_direct_program_is_the_declared_one(kind: str, seed: int) -> None:
    program, _ = some(kind, seed)
    task = tasked(program)
    outcome = direct.run(task, FREE)
    declared = highs.run(program.problem, "highs", FREE)
    assert outcome.finished
    assert declared.finished
    assert value(program, outcome) == pytest.approx(float(program.problem.objective.value), abs=1e-8)
    assert outcome.found is not None
    # the multipliers are those of the rows over the prior: they add up to the optimum
    assert outcome.found.multipliers is not None
    there = np.asarray(program.constraints["rows"].dual_value)
    here = outcome.found.multipliers * program.prior.pmf
    assert here.sum() == pytest.approx(there.sum(), abs=1e-8)


# ---------------------------------------------------------------- starts


@kinds
@pytest.mark.parametrize("shift", [0.0, 0.01, 0.3])
def test_its_own_basis_and_a_neighbours_lead_to_the_optimum(kind: str, shift: float) -> None:
    basis = direct.run(tasked(near(kind, shift)), FREE).restart
    program = near(kind, 0.0)
    cold, warm = direct.run(tasked(program), FREE), direct.run(tasked(program), FREE, basis=basis)
    assert warm.warm_started
    assert not cold.warm_started
    assert warm.finished
    assert value(program, warm) == pytest.approx(value(program, cold), abs=1e-9)
    assert cold.iterations is not None
    assert warm.iterations is not None
    if shift < 0.1:
        assert warm.iterations < cold.iterations / 2
    if shift == 0:
        assert warm.iterations == 0


@pytest.mark.parametrize("kind", ["ldp", "ball", "one law"])
def test_a_result_is_a_start_for_itself_and_for_a_neighbour(kind: str) -> None:
    first, second = near(kind, 0.0), near(kind, 0.01)
    cold = solve(first, "highs", warm_start=False)
    again, there = solve(first, "highs", warm_start=cold), solve(second, "highs", warm_start=cold.restart)
    assert again.warm_started
    assert again.iterations == 0
    assert again.value == pytest.approx(cold.value, abs=1e-12)
    assert there.warm_started
    assert there.value == pytest.approx(solve(second, "highs", warm_start=False).value, abs=1e-9)


@kinds
@pytest.mark.parametrize("which", ["optimal", "uniform", "any"])
def test_a_mechanism_is_only_a_start(kind: str, which: str) -> None:
    program = near(kind, 0.0)
    cold = direct.run(tasked(program), FREE)
    assert cold.found is not None
    starts = {
        "optimal": cold.found.matrix,
        "uniform": np.full((8, 8), 1 / 8),
        "any": np.random.default_rng(84).dirichlet(np.ones(8), 8),  # breaks the bound
    }
    warm = direct.run(tasked(program), FREE, starts[which])
    assert warm.warm_started
    assert warm.finished
    assert value(program, warm) == pytest.approx(value(program, cold), abs=1e-9)


SPOILT: list[Callable[[Any], Any]] = [
    *(lambda array, part=part: array[part] for part in (slice(-1), slice(0), None, 0)),
    lambda array: np.append(array, array[-1]),
    *(lambda array, code=code: np.full(len(array), code) for code in (-3.0, 99.0, np.nan, np.inf)),
]
"""Statuses of another shape, and of codes that are none."""


@pytest.mark.parametrize("name", ["columns", "rows"])
@pytest.mark.parametrize("spoil", SPOILT)
def test_a_basis_that_cannot_be_meant_is_left_aside(name: str, spoil: Callable[[Any], Any]) -> None:
    task = tasked(near("pml", 0.0))
    cold = direct.run(task, FREE)
    assert cold.found is not None
    wrong = {**cold.restart, name: spoil(cold.restart[name])}
    warm, other = direct.run(task, FREE, cold.found.matrix, wrong), direct.run(task, FREE, None, wrong)
    assert warm.finished
    assert warm.warm_started  # from the matrix
    assert other.finished
    assert not other.warm_started
    assert other.iterations == cold.iterations


def test_a_time_limit_is_handed_on() -> None:
    rng = np.random.default_rng(83)
    program = design(Prior(oracles.random_prior(rng, 60)), PML(1.0), ExpectedGain(rng.random((60, 60))))
    outcome = direct.run(tasked(program), Options(Clock.of(1e-9), 1e-9))
    assert not outcome.finished
    assert "ime limit" in outcome.message
