"""Deadlines: what remains of the time, by a clock that stands at 10 seconds."""

from __future__ import annotations

import math

import pytest

from pmlopt.solvers.solver_result import NO_DEADLINE, Deadline


def read() -> float:
    return 10.0


@pytest.mark.parametrize(("end", "expired"), [(9.0, True), (10.0, True), (11.0, False)])
def test_the_time_is_over_from_its_end_on(end: float, expired: bool) -> None:
    deadline = Deadline(end, read)
    assert deadline.expired is expired
    assert deadline.expired_for(0.0) is expired
    assert deadline.expired_for(2.0) is (end + 2.0 <= 10.0)
    assert deadline.expired_for(-2.0) is (end - 2.0 <= 10.0)
    assert deadline.remaining() == max(0.0, end - 10.0)
    assert deadline.remaining(0.5) == max(0.5, end - 10.0)


def test_a_deadline_lies_seconds_after_now() -> None:
    assert Deadline.after(4.0, read).end == 14.0
    assert math.isinf(Deadline.after(None, read).end)


@pytest.mark.parametrize(("end", "half"), [(14.0, 12.0), (8.0, 10.0)])
def test_a_fraction_is_one_of_what_remains(end: float, half: float) -> None:
    assert Deadline(end, read).fraction(0.5).end == half


def test_deadlines_are_moved_by_seconds() -> None:
    deadline = Deadline(14.0, read)
    assert deadline.earlier(3.0).end == 11.0
    assert (deadline.at_most(1.0).end, deadline.at_most(9.0).end) == (11.0, 14.0)
    assert (deadline.at_least(1.0).end, deadline.at_least(9.0).end) == (14.0, 19.0)
    assert Deadline(2.0, read).at_least(1.0).end == 11.0


def test_without_a_limit_only_a_most_ends_the_time() -> None:
    for same in (NO_DEADLINE.fraction(0.1), NO_DEADLINE.at_least(1.0)):
        assert same is NO_DEADLINE
    assert NO_DEADLINE.remaining() is None
    assert not NO_DEADLINE.expired_for(-1e300)
    assert Deadline(read=read).at_most(2.0).end == 12.0
