"""Designs in column blocks with entries kept at zero, rows that may stay short, and constraints beside."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from oracles.blocks import least_cost_within, random_mask
from oracles.designs import random_prior

from pmlopt import LDP, PML, ExpectedGain, Prior, design
from pmlopt.solvers.structured.block_program import Border, Task, attainable
from pmlopt.solvers.structured.interior_point import minimise
from pmlopt.solvers.structured.points import centre


def some_task(rng: np.random.Generator) -> Task:
    n, m = (int(count) for count in rng.integers(3, 9, 2))
    program = design(
        Prior(random_prior(rng, n)), PML(float(rng.uniform(0.2, 1.5))), ExpectedGain(rng.random((n, m)))
    )
    task = program.task()
    assert task is not None
    return task


def least(task: Task) -> float:
    """What the interior point reaches, to a gap of 1e-9."""
    ending = minimise(task, centre(task), lambda point: point.gap, 1e-7)
    matrix, _ = ending.point.parts(task.allowed, task.hinged)
    assert ending.gap < 1e-8
    sums = matrix.sum(axis=1)
    assert (sums < 1 + 1e-8).all() if task.short else sums == pytest.approx(1.0, abs=1e-8)
    if task.allowed is not None:
        assert (matrix[~task.allowed] == 0).all()
    if task.border is not None:
        reached = task.border.rows @ matrix.ravel() - task.border.least
        assert (reached > -1e-7).all()
        assert reached[task.border.equal] == pytest.approx(0.0, abs=1e-7)
    return float((task.costs * matrix).sum())


@pytest.mark.parametrize("seed", range(8))
def test_entries_that_must_be_zero(seed: int) -> None:
    rng = np.random.default_rng([90, seed])
    task = some_task(rng)
    allowed = random_mask(rng, *task.costs.shape)
    task = replace(task, allowed=attainable(task.block, allowed), short=bool(seed % 2))
    assert least(task) == pytest.approx(least_cost_within(replace(task, allowed=allowed)), abs=1e-7)


@pytest.mark.parametrize("seed", range(4))
def test_how_much_of_the_rows_can_be_filled(seed: int) -> None:
    """The largest mass of rows that may stay short is all of it iff a mechanism has these zeros."""
    rng = np.random.default_rng([91, seed])
    task = some_task(rng)
    allowed = random_mask(rng, *task.costs.shape)
    allowed[:, 0] = rng.random(len(allowed)) < 0.5
    costs = -np.repeat(task.prior.pmf[:, None], task.costs.shape[1], axis=1)
    task = replace(task, allowed=attainable(task.block, allowed), short=True, costs=costs)
    assert least(task) == pytest.approx(least_cost_within(replace(task, allowed=allowed)), abs=1e-7)


@pytest.mark.parametrize("seed", range(8))
def test_constraints_on_the_matrix(seed: int) -> None:
    rng = np.random.default_rng([92, seed])
    task = some_task(rng)
    matrices = rng.normal(size=(2 + seed % 2, *task.costs.shape))
    uniform = matrices.mean(axis=2).sum(axis=1)  # what the uniform mechanism reaches
    equal = np.arange(len(matrices)) == 2
    task = replace(
        task, border=Border.of(matrices, uniform - np.where(equal, 0.0, 0.05), equal), short=seed % 4 == 3
    )
    assert least(task) == pytest.approx(least_cost_within(task), abs=1e-7)


def test_zeros_need_a_lower_end_of_zero() -> None:
    task = design(Prior.uniform(3), LDP(1.0), ExpectedGain(np.eye(3))).task()
    assert task is not None
    with pytest.raises(ValueError, match="lower ends"):
        replace(task, allowed=np.eye(3, dtype=bool))


def test_outputs_whose_columns_can_only_be_zero() -> None:
    block = PML(np.log(2)).block(Prior([0.6, 0.3, 0.1]))
    assert block is not None
    allowed = np.array([[True, False], [False, True], [False, True]])
    assert attainable(block, allowed).tolist() == [[True, False], [False, False], [False, False]]
