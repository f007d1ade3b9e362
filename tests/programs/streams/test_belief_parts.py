"""The parts of beliefs by their formulas: budgets, laws within bounds, and bounds that sums tighten."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest
from scipy.optimize import linprog

from pmlopt import Chain
from pmlopt.core.numbers.arrays import FloatArray
from pmlopt.model.privacy import RatioBound
from pmlopt.programs.streams import belief
from pmlopt.programs.streams.belief import (
    BeliefTarget,
    BoundedBelief,
    ExactBelief,
    TargetValues,
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


# ---------------------------------------------------------------- exact beliefs

P = np.array([0.5, 0.3, 0.2])
EMITS = np.array([0.2, 0.4, 0.9])
LAW = P * EMITS / (P @ EMITS)


def believed(chain: Chain, letters: FloatArray, joint: FloatArray) -> ExactBelief:
    """What is believed of the present values, with laws as if the states were released from P on."""
    start = ExactBelief.build_initial(BeliefTarget(chain, 1, letters))
    law = joint.sum(axis=0)
    return replace(start, law=law, pasts=(TargetValues(1, letters @ P, joint),), window=(P, law))


def test_values_bind_where_their_odds_exceed_what_is_left_or_the_level(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Of the odds 1/.5, 1/.3 and 1/.2 the first is within the level, and the second but for the margin."""
    monkeypatch.setattr(belief, "LEVEL_MARGIN_NATS", 0.06)
    chain = Chain(P, np.eye(3))
    start = ExactBelief.build_initial(BeliefTarget(chain, 1, np.eye(3)))
    epsilon = math.log(1 / 0.3) + 0.03
    needed = start.build_requirement(epsilon, 0.2)
    assert isinstance(needed, RatioBound)
    assert needed.numerators == pytest.approx(np.eye(3)[1:])
    # after an output of the lifts .5, 1 and 2.25, .69 nats more of the first value are within the level
    after = believed(chain, np.eye(3), np.diag(LAW))
    needed = after.build_requirement(1.2, 0.2)
    assert isinstance(needed, RatioBound)
    told = np.log(EMITS / 0.4)
    binds = np.log(1 / LAW) > np.maximum(compute_budgets(told, 1.2, 0.2, 1), 1.2 - 0.06 - told)
    assert 0 < binds.sum() < 3
    assert needed.numerators == pytest.approx(np.eye(3)[binds])


def test_more_of_values_to_come_may_be_told_where_they_are_no_chain() -> None:
    letters = np.array([[1.0, 1.0, 0.0], [0.0, 0.0, 1.0]])
    kernel = np.array([[0.6, 0.3, 0.1], [0.2, 0.3, 0.5], [0.1, 0.2, 0.7]])
    target = BeliefTarget(Chain(P, [kernel, kernel]), 1, letters)
    assert target.hides_future
    found = ExactBelief.build_initial(target)._list_future_values
    assert [values.time for values in found] == [2, 3]
    for power, values in enumerate(found, start=1):
        moves = np.linalg.matrix_power(kernel, power) @ letters.T
        assert values.prior == pytest.approx(P @ moves)
        assert values.joint == pytest.approx((P[:, None] * moves).T)
    # states of one value move to each value with the same chance: the values are a chain
    kernel[1] = [0.3, 0.6, 0.1]
    assert not BeliefTarget(Chain(P, [kernel, kernel]), 1, letters).hides_future
    assert not BeliefTarget(Chain(P, [kernel, kernel]), 1, np.eye(3)).hides_future


@pytest.mark.parametrize("forgets", [False, True])
def test_values_count_until_the_present_does_not_depend_on_them(forgets: bool) -> None:
    kernel = np.full((3, 3), 1 / 3) if forgets else 0.6 * np.eye(3) + 0.4 / 3
    moved, level, _ = ExactBelief.build_initial(
        BeliefTarget(Chain(P, [kernel, kernel]), 1, np.eye(3))
    ).update(EMITS)
    assert level == pytest.approx(math.log(0.9 / 0.4))
    assert moved.law == pytest.approx(LAW @ kernel)
    assert [values.time for values in moved.pasts] == ([2] if forgets else [1, 2])
    assert moved.level == (pytest.approx(level) if forgets else -math.inf)
    ended, *_ = moved.update(np.ones(3))[0].update(np.ones(3))
    assert (ended.time, ended.pasts) == (4, ())


# ---------------------------------------------------------------- bounds on beliefs


@pytest.mark.parametrize("cap", [0.4, 1.0])
def test_a_release_may_use_of_each_value_what_its_bounds_leave(cap: float) -> None:
    """`w_a` and a share of B at their largest, with what entries allow beyond sums as slack."""
    start = bounded()
    low, high = np.array([0.42, 0.25, 0.15]), np.array([0.55, 0.34, 0.26])
    over = np.array([[0.3, -0.5, -0.3], [-1.0, 0.45, -0.4]])
    sums = np.array([-0.6, -1.1])
    total = (0.95, 1.02)
    given = replace(
        start, low=low, high=high, total=total, over=over, sums=sums,
        times=np.array([1, 1]), states=np.array([0, 1]),
    )  # fmt: skip
    told = np.log(_bound_lifts(1.0, sums, total))
    more = math.e - np.exp(told + compute_budgets(told, 1.0, cap, 1))
    expected = []
    for a in range(2):
        ends, sides = (high, total[1]) if more[a] >= 0 else (low, total[0])
        row = over[a] + more[a] * ends
        slack = row.sum() - (sums[a] + more[a] * sides)
        assert slack > 0
        for x in range(3):
            one = row - slack * np.eye(3)[x]
            expected.append((one / (np.abs(row) + slack * np.eye(3)[x]).sum()).tolist())
    found = given.build_requirement(1.0, cap)
    assert isinstance(found, RatioBound)
    scaled = []
    for number, (up, down) in enumerate(zip(found.numerators, found.denominators, strict=True)):
        factor = math.exp(float(np.broadcast_to(found.epsilon, len(found.numerators))[number]))
        scaled.append(((up - factor * down) / (up.sum() + factor * down.sum())).tolist())
    assert np.array(sorted(scaled)) == pytest.approx(np.array(sorted(expected)), abs=1e-9)


@pytest.mark.parametrize("room", [0.02, 0.3])
def test_the_sum_after_an_output_is_between_those_of_linear_programs(room: float) -> None:
    """Where the letters of the least and the largest chance can take what is left, it is exactly these."""
    start = bounded()
    low = np.array([0.4, 0.25, 0.15])
    wide = np.array([0.3, 0.02, 0.3]) if room == 0.3 else np.full(3, room)
    for total in ((0.85, 0.87), (low.sum() + wide.sum() - 0.05, low.sum() + wide.sum() - 0.03)):
        given = replace(start, low=low, high=low + wide, total=total)
        if not low.sum() <= total[0] <= total[1] <= low.sum() + wide.sum():
            continue
        last = replace(given, chain=Chain(P, [np.eye(3), np.eye(3)]), time=3)
        moved, *_ = last.update(EMITS)
        v = EMITS / (given.law @ EMITS)
        ends = [
            sign * linprog(
                sign * v, A_ub=[np.ones(3), -np.ones(3)], b_ub=[total[1], -total[0]],
                bounds=list(zip(low, low + wide, strict=True)),
            ).fun
            for sign in (1, -1)
        ]  # fmt: skip
        if room == 0.3:
            assert moved.total == pytest.approx(ends)
        assert moved.total[0] <= ends[0] + 1e-12
        assert moved.total[1] >= ends[1] - 1e-12
        assert moved.time == 4


def test_values_of_long_ago_are_left_out_where_no_more_than_the_level_will_be_told() -> None:
    """Others only where no more than now will be: fifty steps are long ago."""
    start = bounded()
    over, sums = np.full((3, 3), -0.4), np.full(3, -1.0)
    given = replace(
        start, time=100, times=np.array([49, 50, 51]), states=np.zeros(3, dtype=np.int64),
        over=over, sums=sums,
    )  # fmt: skip
    moved, ever = given._propagate(np.full(3, 0.1))  # less than what may ever be told
    law = P @ start.chain.kernel(1)
    most = math.e - 0.4 * float((start.chain.kernel(1).sum(axis=0) / law).min())
    assert 0.1 < most < math.e
    assert ever == pytest.approx([most, most, 0.1])
    assert moved.times[:1].tolist() == [51]
    assert (moved.times[1:] == 101).all()
