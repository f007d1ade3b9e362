"""The same program in HiGHS without cvxpy: the same optimum, and starts that mean what they say."""

from __future__ import annotations

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
    declared = highs.run(program.problem, "highs", FREE, False)
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
def test_its_own_basis_is_a_start_with_nothing_left_to_do(kind: str) -> None:
    program = near(kind, 0.0)
    cold = direct.run(tasked(program), FREE)
    again = direct.run(tasked(program), FREE, basis=cold.restart)
    assert again.warm_started
    assert not cold.warm_started
    assert cold.iterations is not None
    assert cold.iterations > 0
    assert again.iterations == 0
    assert again.finished
    assert value(program, again) == pytest.approx(value(program, cold), abs=1e-12)


@kinds
@pytest.mark.parametrize("shift", [0.01, 0.3])
def test_a_neighbours_basis_leads_to_the_optimum(kind: str, shift: float) -> None:
    basis = direct.run(tasked(near(kind, shift)), FREE).restart
    program = near(kind, 0.0)
    cold, warm = direct.run(tasked(program), FREE), direct.run(tasked(program), FREE, basis=basis)
    assert warm.warm_started
    assert warm.finished
    assert value(program, warm) == pytest.approx(value(program, cold), abs=1e-9)
    assert cold.iterations is not None
    assert warm.iterations is not None
    if shift < 0.1:
        assert warm.iterations < cold.iterations / 2


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


def shapes_off(array: Any) -> list[Any]:
    """Arrays that cannot be meant, made of one that can."""
    return [array[:-1], np.append(array, array[-1]), array[:0], array[None], array[0]]


@pytest.mark.parametrize("name", ["columns", "rows"])
def test_a_basis_of_another_shape_is_left_aside(name: str) -> None:
    task = tasked(near("pml", 0.0))
    cold = direct.run(task, FREE)
    assert cold.found is not None
    for wrong in shapes_off(cold.restart[name]):
        warm = direct.run(task, FREE, cold.found.matrix, {**cold.restart, name: wrong})
        assert warm.finished
        assert warm.warm_started  # from the matrix
        other = direct.run(task, FREE, None, {**cold.restart, name: wrong})
        assert other.finished
        assert not other.warm_started
        assert other.iterations == cold.iterations


@pytest.mark.parametrize("name", ["columns", "rows"])
@pytest.mark.parametrize("wrong", [-3.0, 99.0, np.nan, np.inf])
def test_a_basis_of_other_codes_is_left_aside(name: str, wrong: float) -> None:
    task = tasked(near("pml", 0.0))
    cold = direct.run(task, FREE)
    codes = np.full(len(cold.restart[name]), wrong)
    warm = direct.run(task, FREE, None, {**cold.restart, name: codes})
    assert warm.finished
    assert not warm.warm_started


def test_a_time_limit_is_handed_on() -> None:
    rng = np.random.default_rng(83)
    program = design(Prior(oracles.random_prior(rng, 60)), PML(1.0), ExpectedGain(rng.random((60, 60))))
    outcome = direct.run(tasked(program), Options(Clock.of(1e-9), 1e-9))
    assert not outcome.finished
    assert "ime limit" in outcome.message
