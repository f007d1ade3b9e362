"""Designs begun in single precision end where they end in double precision."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from oracles.blocks import WIDE
from solvers.structured.test_newton import ALL_KINDS, Conditions, point_in, task_at
from strategies import MODEST

from pmlopt.solvers.structured import interior_point
from pmlopt.solvers.structured.block_program import Task
from pmlopt.solvers.structured.interior_point import minimise
from pmlopt.solvers.structured.points import Point, centre, narrowed_point, widened_point

KINDS = [kind for kind in (*ALL_KINDS, *WIDE[6:]) if kind not in ("border", "short")]

kinds = pytest.mark.parametrize("kind", KINDS)


def least(task: Task, entries: int, monkeypatch: pytest.MonkeyPatch) -> float:
    """What the method reaches where larger matrices than this are begun in single precision."""
    monkeypatch.setattr(interior_point, "SINGLE_PRECISION_ENTRIES", entries)
    ending = minimise(task, centre(task), lambda point: point.gap, 1e-7)
    assert ending.gap < 1e-8
    matrix, _ = ending.point.parts(task.allowed, task.hinged)
    assert matrix.dtype == np.float64
    return float((task.costs * matrix).sum())


@kinds
@pytest.mark.parametrize("seed", range(2))
def test_both_beginnings_lead_to_the_same_cost(kind: str, seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    task = task_at(kind, np.random.default_rng([8, seed]), 7, 6)
    assert least(task, 0, monkeypatch) == pytest.approx(least(task, 10_000, monkeypatch), abs=1e-7)


@kinds
@MODEST
@given(seed=st.integers(0, 2**32 - 1))
def test_slacks_are_differences_again_and_no_smaller(kind: str, seed: int) -> None:
    rng = np.random.default_rng(seed)
    task = task_at(kind, rng, *(int(count) for count in rng.integers(4, 7, 2)))
    narrow = narrowed_point(point_in(task, rng, 4.0))
    found = widened_point(task, narrow)
    conditions = Conditions(task, found)
    hinge = task.block.hinge  # thresholds of letters of small masses are large, and so is their rounding
    size = 1.0 if hinge is None else max(1.0, float(np.abs(hinge.threshold(found.scalars)).max()))
    for name, slack in conditions.slacks(conditions.parts(conditions.stacked(found))).items():
        assert slack.astype(float) == pytest.approx(found.slacks[name], rel=1e-12, abs=1e-14)
        assert (found.slacks[name] >= narrow.slacks[name].astype(float) - 1e-14).all()
        assert found.slacks[name] == pytest.approx(narrow.slacks[name], abs=1e-5 * size)


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
