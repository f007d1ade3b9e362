"""The parts of beliefs by their formulas: budgets, laws within bounds, and bounds that sums tighten."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest
from scipy.optimize import linprog

from pmlopt import Chain
from pmlopt.programs.streams import belief
from pmlopt.programs.streams.belief import (
    BoundedBelief,
    _bound_lifts,
    _tighten_bounds,
    compute_budgets,
)


def test_a_budget_is_what_is_left_of_the_cap_a_tenth_of_epsilon_or_a_room_that_falls(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(belief, "LEVEL_MARGIN_NATS", 0.06)
    told = np.array([0.1, 0.4, 0.9])
    budgets = compute_budgets(told, 1.0, 0.5, 2)
    expected = [0.5 - 0.06 - 0.1, 0.1 * (1.0 - 0.06 - 0.4), 0.06 / 6]
    assert budgets == pytest.approx(expected)


def test_bounds_on_entries_are_tightened_to_what_the_bounds_on_their_sum_leave() -> None:
    """To the least and largest of each entry, by linear programs."""
    random = np.random.default_rng(0)
    for _ in range(3):
        low = random.random(4)
        high = low + random.random(4)
        total = tuple(np.sort(random.uniform(low.sum(), high.sum(), 2)).tolist())
        found = _tighten_bounds(low, high, total)
        for x in range(4):
            for side, sign in zip(found, (1.0, -1.0), strict=True):
                ends = linprog(
                    sign * np.eye(4)[x],
                    A_ub=[np.ones(4), -np.ones(4)],
                    b_ub=[total[1], -total[0]],
                    bounds=list(zip(low, high, strict=True)),
                )
                assert side[x] == pytest.approx(sign * ends.fun)


def bounded() -> BoundedBelief:
    chain = Chain([0.5, 0.3, 0.2], [[0.6, 0.3, 0.1], [0.2, 0.5, 0.3], [0.1, 0.2, 0.7]])
    return BoundedBelief.build_initial(chain, 1.0)


def test_a_law_within_bounds_is_their_middle() -> None:
    start = bounded()
    low, high = np.array([0.3, 0.2, 0.1]), np.array([0.5, 0.4, 0.1])
    middle = (low + high) / 2
    assert replace(start, low=low, high=high).law == pytest.approx(middle / middle.sum())


def test_slack_is_what_bounds_on_entries_allow_beyond_those_on_sums() -> None:
    start = bounded()
    over = np.array([[0.4, -0.1, 0.2], [0.3, 0.1, -0.2]])
    sums = np.array([0.2, 0.2 + 1e-16])
    belief_ = replace(start, over=over, sums=sums)
    assert belief_._compute_entry_slack == pytest.approx([0.3, 0.0])


def test_a_lift_is_bounded_by_the_total_that_makes_it_largest() -> None:
    sums, total = np.array([-0.6, 0.0, 0.6]), (0.5, 2.0)
    factor = math.exp(0.7)
    expected = [factor - 0.6 / 2.0, factor, factor + 0.6 / 0.5]
    assert _bound_lifts(0.7, sums, total) == pytest.approx(expected)


def test_at_first_the_bounds_are_the_law_and_a_value_is_bounded_by_its_own_lift() -> None:
    """`w_a[x] = 1(x = a) - e^epsilon p[x]`, whose sum is 1 - e^epsilon."""
    start, factor = bounded(), math.e
    p = np.array([0.5, 0.3, 0.2])
    assert start.over == pytest.approx(np.eye(3) - factor * p[None, :])
    assert start.sums == pytest.approx(np.full(3, 1 - factor))
    assert list(start.states) == [0, 1, 2]
    assert list(start.times) == [1, 1, 1]
