"""Newton's steps of a design in column blocks: where they lead, in both orders and both precisions."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from oracles.bands import KINDS, bounded
from oracles.blocks import WIDE, wide
from oracles.designs import random_prior

from pmlopt import ExpectedGain, Prior, design
from pmlopt.solvers.structured import interior_point
from pmlopt.solvers.structured.block_program import Task
from pmlopt.solvers.structured.interior_point import _iterate, minimise
from pmlopt.solvers.structured.newton import (
    Newton,
    NewtonByOutputs,
    factor_of_squares,
)
from pmlopt.solvers.structured.points import Point, centre, widened_point

ALL_KINDS = (*KINDS, *WIDE)


def task_at(kind: str, rng: np.random.Generator, n: int, m: int) -> Task:
    prior = Prior(random_prior(rng, n))
    epsilon = float(rng.uniform(0.1, 3))
    privacy = wide(kind, prior, rng, epsilon) if kind in WIDE else bounded(kind, prior, rng).at(epsilon)
    task = design(prior, privacy, ExpectedGain(rng.normal(size=(n, m)))).task()
    assert task is not None
    return task


@pytest.mark.parametrize("order", [Newton, NewtonByOutputs])
@pytest.mark.parametrize("kind", ALL_KINDS)
def test_thirty_steps_stay_strictly_inside_and_close_the_gap(kind: str, order: type[Newton]) -> None:
    """To a billionth: steps that were not those of the whole system would take more, or end before."""
    small = (2, 1) if kind in KINDS else (3, 2)
    for shape in ((6, 4), small):
        task = task_at(kind, np.random.default_rng(9), *shape)
        point = centre(task)
        first, steps = point.gap, 0
        while point.gap > 1e-9 * first:
            point, _ = _iterate(order(task, point))
            assert all((part > 0).all() for part in (*point.slacks.values(), *point.duals.values()))
            steps += 1
            assert steps < 30
        matrix, _ = point.parts(task.allowed, task.hinged)
        assert matrix.sum(axis=1) == pytest.approx(1.0, abs=1e-8)


def test_a_point_that_is_not_a_number_is_refused() -> None:
    task = task_at("pml", np.random.default_rng(10), 3, 3)
    at = centre(task)
    with pytest.raises(ArithmeticError, match="positive definite"):
        Newton(task, replace(at, duals={**at.duals, "above": np.full((3, 3), np.nan)}))


# ---------------------------------------------------------------- single precision


def least(task: Task, entries: int, monkeypatch: pytest.MonkeyPatch) -> float:
    """What the method reaches where larger matrices than this are begun in single precision."""
    monkeypatch.setattr(interior_point, "SINGLE_PRECISION_ENTRIES", entries)
    ending = minimise(task, centre(task), lambda point: point.gap, 1e-7)
    assert ending.gap < 1e-8
    matrix, _ = ending.point.parts(task.allowed, task.hinged)
    assert matrix.dtype == np.float64
    return float((task.costs * matrix).sum())


@pytest.mark.parametrize("kind", ALL_KINDS)
def test_both_beginnings_lead_to_the_same_cost(kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    task = task_at(kind, np.random.default_rng([8, 0]), 7, 6)
    assert least(task, 0, monkeypatch) == pytest.approx(least(task, 10_000, monkeypatch), abs=1e-7)


def test_rounding_that_takes_over_ends_it(monkeypatch: pytest.MonkeyPatch) -> None:
    """With no room for rounding the rest is done in double precision, to the same end."""
    task = task_at("pml", np.random.default_rng(5), 7, 6)
    expected = least(task, 10_000, monkeypatch)
    monkeypatch.setattr(interior_point, "SINGLE_PRECISION_MISMATCH", (0.0, 0.0))
    assert least(task, 0, monkeypatch) == pytest.approx(expected, abs=1e-7)


def test_what_single_precision_spoils_is_done_again(monkeypatch: pytest.MonkeyPatch) -> None:
    task = task_at("pml", np.random.default_rng(6), 7, 6)
    expected = least(task, 10_000, monkeypatch)

    def spoiled(task: Task, point: Point) -> Point:
        found = widened_point(task, point)
        found.slacks["above"][0] *= 1e-30
        return found

    monkeypatch.setattr(interior_point, "widened_point", spoiled)
    assert least(task, 0, monkeypatch) == pytest.approx(expected, abs=1e-7)


# ---------------------------------------------------------------- small systems


def test_rows_that_differ_by_many_digits_keep_the_small_ones() -> None:
    rows = np.array([[[1e8], [1e8]], [[0.0], [1e-8]]])  # formed, the square would lose the second
    assert factor_of_squares(rows)[1, 1, 0] == pytest.approx(1e-8, rel=1e-6)
