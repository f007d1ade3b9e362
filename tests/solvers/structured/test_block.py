"""Column blocks: the support of a ball, zeros, short rows and constraints."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from oracles import designs as oracles
from oracles.bands import Shape, support
from oracles.blocks import least_cost_within, random_mask
from oracles.designs import random_prior
from strategies import priors

from pmlopt import LDP, PML, ExpectedGain, L1Ball, Prior, design
from pmlopt.solvers.structured.block_program import BlockLP, SideConstraints, find_attainable
from pmlopt.solvers.structured.interior_point import GapGoal, follow_central_path
from pmlopt.solvers.structured.iterates import build_start


def extremes(p: oracles.FloatArray, half: float) -> oracles.FloatArray:
    unit = np.eye(len(p))
    return np.array([p + half * (unit[x] - unit[z]) for x in range(len(p)) for z in range(len(p))])


@settings(max_examples=30, deadline=None)
@given(
    p=priors(1, 6, tiny=False),
    share=st.one_of(st.floats(0.01, 0.99), st.sampled_from([0.0, 1e-3, 1 - 1e-6, 1 - 1e-12])),
    keep=st.one_of(
        st.floats(1e-6, 0.999), st.sampled_from([1e-300, 1e-12, 1 - 1e-6, 1 - 1e-9, 1.0])
    ),
    seed=st.integers(0, 2**32 - 1),
)
@example(
    p=np.full(4, 0.25), share=0.5, keep=0.125, seed=0
)  # the mass of a letter is keep + radius / 2
@example(p=np.full(6, 1 / 6), share=1 - 1e-12, keep=1e-300, seed=1)
def test_the_support_function_of_a_small_ball_is_that_of_a_program(
    p: oracles.FloatArray, share: float, keep: float, seed: int
) -> None:
    rng = np.random.default_rng(seed)
    half = share * float(p.min())
    gains = rng.normal(0, 1, (len(p), 2))
    if seed % 2:
        gains = gains.round()
    shape = Shape(extremes(p, half), p)
    expected = max(support(shape, p * column, keep) for column in gains.T)
    found = L1Ball(p, 2 * half).support_function(p, gains, keep)
    # columns of mean one have entries of up to 1/p, each off by the LP's tolerance of 1e-10
    assert found == pytest.approx(expected, abs=1e-8 * max(1.0, float(np.abs(gains).max())))


# ---------------------------------------------------------------- zeros, short rows and constraints


def some_task(rng: np.random.Generator) -> BlockLP:
    n, m = (int(count) for count in rng.integers(3, 9, 2))
    program = design(
        Prior(random_prior(rng, n)),
        PML(float(rng.uniform(0.2, 1.5))),
        ExpectedGain(rng.random((n, m))),
    )
    task = program.build_block_lp()
    assert task is not None
    return task


def least(task: BlockLP) -> float:
    """What the interior point reaches, to a gap of 1e-9."""
    ending = follow_central_path(
        task, build_start(task), GapGoal(lambda point: point.duality_gap, 1e-7)
    )
    matrix, _ = ending.point.masked_parts(task.allowed, task.hinge_mask)
    assert ending.gap < 1e-8
    sums = matrix.sum(axis=1)
    assert (
        (sums < 1 + 1e-8).all() if task.allows_short_rows else sums == pytest.approx(1.0, abs=1e-8)
    )
    if task.allowed is not None:
        assert (matrix[~task.allowed] == 0).all()
    if task.border is not None:
        reached = task.border.rows @ matrix.ravel() - task.border.least
        assert (reached > -1e-7).all()
        assert reached[task.border.equal] == pytest.approx(0.0, abs=1e-7)
    return float((task.costs * matrix).sum())


@pytest.mark.parametrize("seed", range(4))
def test_entries_that_must_be_zero(seed: int) -> None:
    rng = np.random.default_rng([90, seed])
    task = some_task(rng)
    allowed = random_mask(rng, *task.costs.shape)
    task = replace(
        task, allowed=find_attainable(task.block, allowed), allows_short_rows=bool(seed % 2)
    )
    assert least(task) == pytest.approx(least_cost_within(replace(task, allowed=allowed)), abs=1e-7)


@pytest.mark.parametrize("seed", range(4))
def test_constraints_on_the_matrix(seed: int) -> None:
    rng = np.random.default_rng([92, seed])
    task = some_task(rng)
    matrices = rng.normal(size=(2 + seed % 2, *task.costs.shape))
    uniform = matrices.mean(axis=2).sum(axis=1)  # what the uniform mechanism reaches
    equal = np.arange(len(matrices)) == 2
    task = replace(
        task,
        border=SideConstraints.from_matrices(matrices, uniform - np.where(equal, 0.0, 0.05), equal),
        allows_short_rows=seed % 4 == 3,
    )
    assert least(task) == pytest.approx(least_cost_within(task), abs=1e-7)


def test_zeros_need_a_lower_end_of_zero() -> None:
    task = design(Prior.uniform(3), LDP(1.0), ExpectedGain(np.eye(3))).build_block_lp()
    assert task is not None
    with pytest.raises(ValueError, match="lower ends"):
        replace(task, allowed=np.eye(3, dtype=bool))


def test_outputs_whose_columns_can_only_be_zero() -> None:
    block = PML(np.log(2)).cone_block(Prior([0.6, 0.3, 0.1]))
    assert block is not None
    allowed = np.array([[True, False], [False, True], [False, True]])
    assert find_attainable(block, allowed).tolist() == [
        [True, False],
        [False, False],
        [False, False],
    ]
