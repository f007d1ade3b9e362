"""Steps of beliefs by their formulas: what paths tell, sums after an output, and values that are added."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from scipy.optimize import linprog

from pmlopt import PML, Chain
from pmlopt.core.numbers.arrays import FloatArray
from pmlopt.model.privacy import RatioBound
from pmlopt.programs.streams import belief
from pmlopt.programs.streams.belief import (
    BeliefTarget,
    BoundedBelief,
    ExactBelief,
    TargetValues,
    _tighten_bounds,
)
from pmlopt.programs.streams.stream import Stream, stream_bounds, sweep_caps

P = np.array([0.5, 0.3, 0.2])
KERNEL = np.array([[0.6, 0.3, 0.1], [0.2, 0.5, 0.3], [0.1, 0.2, 0.7]])
EMITS = np.array([0.2, 0.4, 0.9])


def test_the_level_of_a_path_is_that_of_its_best_state_and_the_law_moves_by_the_kernel() -> None:
    target = BeliefTarget(Chain(P, KERNEL), 0, np.eye(3))
    moved, level, worst = ExactBelief.build_initial(target).update(EMITS)
    ratios = EMITS / (P @ EMITS)
    assert level == pytest.approx(math.log(ratios.max()))
    assert worst == {1: level}
    assert moved.time == 2
    assert moved.law == pytest.approx((P * ratios) @ KERNEL)
    assert moved.peaks == pytest.approx(np.full(3, ratios.max()))


@pytest.mark.parametrize(("above", "rows"), [(2e-15, 6), (1e-12, 3)])
def test_a_bound_on_a_value_of_the_past_counts_but_for_what_rounding_may_hide(
    monkeypatch: pytest.MonkeyPatch, above: float, rows: int
) -> None:
    """The posterior mean of the bounds on the present state is the bound on the past one, or just below."""
    thirds, budget = np.full(3, 1 / 3), math.log(1.2)
    budgets = iter([np.full(3, budget), np.full(3, budget + above)])
    monkeypatch.setattr(belief, "compute_budgets", lambda *_: next(budgets))
    two_of_three = (1 - np.eye(3)) / 2
    past = TargetValues(1, thirds, two_of_three / 3)
    present = TargetValues(2, thirds, np.eye(3) / 3)
    given = ExactBelief(
        BeliefTarget(Chain(thirds, two_of_three), 1, np.eye(3)), 2, thirds, (past, present),
        (thirds, thirds), np.ones(3), -math.inf,
    )  # fmt: skip
    found = given.build_requirement(0.1, 0.1)
    assert isinstance(found, RatioBound)
    assert len(found.numerators) == rows


def start_bounds() -> BoundedBelief:
    return BoundedBelief.build_initial(Chain(P, [KERNEL] * 2), 1.0)


def test_a_sum_after_an_output_is_the_largest_of_entries_within_their_bounds() -> None:
    over, sums = np.array([[0.4, -0.1, 0.2], [0.3, 0.1, -0.2]]), np.array([0.2, 0.1])
    given = replace(
        start_bounds(),
        time=3,
        over=over,
        sums=sums,
        times=np.array([1, 2]),
        states=np.array([0, 1]),
    )
    moved, *_ = given.update(EMITS)
    v = EMITS / (P @ EMITS)
    most = [
        -linprog(-v, A_ub=np.ones((1, 3)), b_ub=[total], bounds=[(None, one) for one in row]).fun
        for row, total in zip(over, sums, strict=True)
    ]
    assert moved.sums == pytest.approx(most)


@pytest.mark.parametrize("high", [np.full(3, 0.9), np.array([0.1, 0.06, 0.04])])
def test_a_value_is_added_with_the_lesser_of_two_bounds_on_its_sum(high: FloatArray) -> None:
    """Its lift is at most .5, and `B[a] / P(a)` at most .6 by it, or .2 by the bounds on B."""
    given = replace(start_bounds(), low=np.zeros(3), high=high, total=(0.8, 1.2))
    added = given._add_present_values(0.5)
    lift = 0.5 if high[0] == 0.9 else 0.2 / 0.8
    assert added.sums[-3:] == pytest.approx(np.full(3, 0.8 * (lift - math.e)))
    ratio = 0.6 if high[0] == 0.9 else 0.2
    assert added.over[-3:] == pytest.approx(ratio * np.eye(3))


def test_a_value_of_which_no_more_than_now_will_be_told_is_left_out() -> None:
    given = replace(
        start_bounds(), chain=Chain(P, KERNEL), time=10, times=np.array([9]), states=np.array([0]),
        over=np.full((1, 3), -0.4), sums=np.array([-1.0]),
    )  # fmt: skip
    most = math.e - 0.4 * float((KERNEL.sum(axis=0) / (P @ KERNEL)).min())
    moved, _ = given._propagate(np.array([most]))
    assert (moved.times == 11).all()
    kept, _ = given._propagate(np.array([most - 1e-9]))
    assert kept.times[0] == 9


def test_entries_take_at_most_what_their_sum_leaves_and_at_least_what_it_needs() -> None:
    low, high = np.array([0.1, 0.2, 0.3]), np.array([0.6, 0.4, 0.5])
    least, most = _tighten_bounds(low, high, (0.7, 0.75))
    assert least == pytest.approx(low)
    assert most == pytest.approx(low + 0.15)
    least, most = _tighten_bounds(low, high, (1.4, 1.45))
    assert least == pytest.approx(high - 0.1)
    assert most == pytest.approx(high)


@pytest.mark.parametrize("steps", [3])
def test_as_many_states_are_bounded_and_simulated_as_there_are_steps(
    monkeypatch: pytest.MonkeyPatch, steps: int
) -> None:
    """Of a chain that stays as it is each bound is that of a design for its law."""
    chain = Chain([0.5, 0.5], [[0.9, 0.1], [0.1, 0.9]])
    bounds = stream_bounds(chain, PML(0.4), "hamming", steps)
    # by a binary symmetric channel with the largest entry e^epsilon / 2
    assert bounds == pytest.approx([1 - math.exp(0.4) / 2] * steps, abs=1e-6)
    assert len(bounds) == steps
    asked: list[int] = []
    solved = Stream.solve

    def counted(stream: Stream) -> Any:
        asked.append(stream.time)
        return solved(stream)

    monkeypatch.setattr(Stream, "solve", counted)
    sweep_caps(chain, PML(0.4), "hamming", steps, (1.0,), runs=1, seed=1)
    assert sorted(set(asked)) == list(range(1, steps + 1))
