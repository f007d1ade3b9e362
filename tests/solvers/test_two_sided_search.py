"""The search for the largest feasible parameter, and the linear programs that it asks."""

from __future__ import annotations

import math

import numpy as np
import pytest
from oracles.envelopes import most_mass

from pmlopt import envelope
from pmlopt.core.numbers.arrays import FloatArray
from pmlopt.programs.envelope.build_certificate import RatioPrograms
from pmlopt.solvers.solver_result import NO_DEADLINE, TIME_LIMIT, Deadline
from pmlopt.solvers.two_sided_search import MARK_RTOL, ParameterSolution, TwoSidedSearch


class Root:
    """The largest x with `x w <= 2` and `w >= x` for some w, with slopes multiplied by a factor."""

    blur = 0.0

    def __init__(self, factor: float = 1.0, marks: tuple[float, ...] = ()) -> None:
        self.factor, self.marks = factor, np.array(marks)
        self.asked: list[float] = []

    def solve_at(self, number: float, deadline: Deadline) -> ParameterSolution[float]:
        self.asked.append(number)
        missing, slope = max(0.0, number - 2 / number), 1 + 2 / number**2
        return ParameterSolution(missing, self.factor * slope, np.array([2 / number]), 1 / number)

    def lower_bound_of(self, point: FloatArray) -> tuple[float, float]:
        return float(min(point[0], 2 / point[0])), float(point[0])

    def upper_bound_of(self, proof: float) -> float:
        return max(2 * proof, 1 / proof)

    def extrapolate(self, now: float, then: float, step: float) -> float:
        return max(1e-9, now + step * (now - then))


@pytest.mark.parametrize("factor", [1.0, 0.3, 3.0, 1e-3, 5e-30, 0.0, 1e30])
def test_the_largest_root_is_found_whatever_the_slopes_and_within_the_bounds(factor: float) -> None:
    family = Root(factor)
    search: TwoSidedSearch[float, float] = TwoSidedSearch(
        family, [(0.5, 0.5)], [0.1], 1e-9, NO_DEADLINE
    )
    assert search.run() == "both ends meet"
    assert search.reached <= math.sqrt(2) * (1 + 1e-15)
    assert search.upper >= math.sqrt(2) * (1 - 1e-15)
    assert search.log_gap <= 1e-9
    assert all(0.5 <= number <= 10 for number in family.asked)


def test_a_tangent_meets_zero_at_the_root_of_a_line() -> None:
    for missing, root in ((0.6, 0.7), (-0.4, 1.2), (3.0, 0.0)):
        assert ParameterSolution(missing, 2.0, np.zeros(1), 0.0).tangent_root(1.0) == pytest.approx(
            root
        )


def test_right_slopes_lead_to_the_root_in_few_programs() -> None:
    """By tangents, of which each doubles the digits: halving would take 30 programs."""
    family = Root()
    search: TwoSidedSearch[float, float] = TwoSidedSearch(
        family, [(0.5, 0.5)], [0.1], 1e-9, NO_DEADLINE
    )
    search.run()
    assert search.programs <= 10
    for marks, few in (((1.0, 2.0, 3.0, 50.0), 12), ((1.0, 1.2, 1.4, 1.5, 1.7), 14)):
        marked: TwoSidedSearch[float, float] = TwoSidedSearch(
            Root(marks=marks), [(0.5, 0.5)], [0.1], 1e-9, NO_DEADLINE
        )
        marked.run()
        assert marked.programs <= few


def search_at(reached: float, upper: float) -> TwoSidedSearch[float, float]:
    search: TwoSidedSearch[float, float] = TwoSidedSearch(
        Root(), [(0.5, 0.5)], [0.1], 1e-9, NO_DEADLINE
    )
    search.reached, search.upper = reached, upper
    return search


def test_the_next_number_is_near_a_root_that_is_believed() -> None:
    search = search_at(1.0, 2.0)
    assert search._log_midpoint == pytest.approx(math.sqrt(2))
    assert [search._clip_to_bounds(root) for root in (0.5, 1.5, 7.0)] == [1.0, 1.5, 2.0]
    assert search._choose_next(1.5, 1.0, 1.0) == pytest.approx(1.5, rel=1e-6)
    assert (
        search._choose_next(1.5, 1.0, 1.0) > 1.5
    )  # a hair above: there the multipliers prove nearly all
    assert search._choose_next(1.5, 0.25, 1.0) == pytest.approx(
        2.0 - 0.25 * 0.5
    )  # part of the way from the end
    assert search._choose_next(None, 1.0, 1.0) == search._choose_next(1.5, 1.0, 0.0) == 2.0
    for stride in (0.25, 1.0):  # a root above what multipliers have proved since
        assert search._choose_next(2.5, stride, 1.0) == 2.0
    search._idle = 1  # what proved nothing is followed by what is further away from the root
    assert 1.5 < search._choose_next(1.5, 0.25, 1.0) <= 2.0
    assert search._choose_next(2.0 * (1 - 1e-14), 1.0, 1.0) < 2.0
    assert search._choose_next(None, 1.0, 1.0) == pytest.approx(2.0 * (1 - search._hair))
    search._idle = 2
    assert search._choose_next(1.5, 1.0, 1.0) == search._log_midpoint


def test_a_stalled_search_takes_a_root_that_is_further_from_the_bound_than_half_a_step() -> None:
    search = search_at(1.0, 2.0)
    search._hair, search._idle = 0.01, 1
    assert search._choose_next(1.96, 1.0, 1.0) == pytest.approx(1.96 * 1.01)
    assert search._choose_next(1.975, 1.0, 1.0) == pytest.approx(2 * 0.99)
    near = search_at(1.999, 2.0)
    near._hair, near._idle = 0.01, 1
    assert near._choose_next(1.9995, 1.0, 1.0) == pytest.approx(1.999 * 1.005)
    assert near._choose_next(None, 1.0, 1.0) == pytest.approx(near._log_midpoint)


def test_a_tangent_that_foresaw_what_is_missing_is_trusted() -> None:
    search = search_at(1.0, 2.0)
    point = np.array([1.0])
    assert search._choose_step_fraction(ParameterSolution(0.0, 1.0, point, 0.5)) == 1.0
    assert search._choose_step_fraction(ParameterSolution(0.3, 1.0, point, 0.5)) == 0.3
    search._earlier, search.number = (2.0, ParameterSolution(1.0, 1.4, point, 0.5)), 1.5
    assert search._extrapolate_multipliers(ParameterSolution(0.3, 1.0, point, 0.4), 1.2) == pytest.approx([
        max(1e-9, 0.4 + (2.0 - 1.5) / (1.5 - 2.0) * (0.4 - 0.5)),  # to the upper bound
        max(1e-9, 0.4 + (1.2 - 1.5) / (1.5 - 2.0) * (0.4 - 0.5)),  # to the root
    ])  # fmt: skip
    assert (
        search._choose_step_fraction(ParameterSolution(0.3, 1.0, point, 0.5)) == 1.0
    )  # 1 - 1.4 * 0.5
    assert search._choose_step_fraction(ParameterSolution(0.31, 1.0, point, 0.5)) == 0.3
    assert search._choose_step_fraction(ParameterSolution(0.29, 1.0, point, 0.5)) == 0.3


def test_marks_between_the_bounds_are_asked_first() -> None:
    family = Root(marks=(1.0, 2.0, 3.0, 50.0))
    search: TwoSidedSearch[float, float] = TwoSidedSearch(
        family, [(0.5, 0.5)], [0.1], 1e-9, NO_DEADLINE
    )
    assert search.run() == "both ends meet"
    assert family.asked[0] == pytest.approx(2.0, rel=1e-8)
    assert search.reached == pytest.approx(math.sqrt(2), abs=1e-8)


class Jump(Root):
    """Nothing is missing up to the square root of 2, and no witness tells so; above, half is missing."""

    def solve_at(self, number: float, deadline: Deadline) -> ParameterSolution[float]:
        self.asked.append(number)
        missing = 0.0 if number <= math.sqrt(2) else 0.5
        return ParameterSolution(missing, 0.0, np.array([0.1]), 1 / number if missing else 0.1)

    def upper_bound_of(self, proof: float) -> float:
        return max(math.sqrt(2), 1 / proof)


def test_the_bound_falls_to_a_jump_that_no_witness_reaches() -> None:
    family = Jump()
    search: TwoSidedSearch[float, float] = TwoSidedSearch(
        family, [(0.5, 0.5)], [0.1], 1e-9, NO_DEADLINE
    )
    search.run()
    assert search.reached == 0.5
    assert (
        math.sqrt(2) <= search.upper <= math.sqrt(2) * 1.1
    )  # halving from 0.5 alone would stay at 2.6


def test_no_time_is_an_ending() -> None:
    search: TwoSidedSearch[float, float] = TwoSidedSearch(
        Root(), [(0.5, 0.5)], [0.1], 1e-9, Deadline.after(1e-12)
    )
    assert search.run() == TIME_LIMIT
    assert search.programs == 0
    assert (search.reached, search.upper) == (0.5, 10.0)


@pytest.mark.parametrize("closed", [False, True])
def test_a_program_at_a_ratio_is_the_dense_one(closed: bool) -> None:
    """Its value, its slope by differences, and multipliers that prove it by the dual."""
    rng = np.random.default_rng(3)
    p, matrix = rng.dirichlet(np.ones(4)), rng.dirichlet(np.full(5, 0.6), 4)
    program = envelope(p, matrix, 0.3)
    programs, none = RatioPrograms(program, 0.3), np.zeros(4, dtype=bool)
    for ratio in (1.3, 1.8):
        shut = np.asarray(
            (matrix.T - ratio * (p @ matrix)[:, None] < 0).all(axis=0), dtype=np.bool_
        )
        mass, slope, point, lam = programs.solve_at(ratio, shut if closed else none, NO_DEADLINE)
        assert mass == pytest.approx(most_mass(p, matrix, ratio), abs=1e-9)
        law = program.law
        assert float(law @ point.sum(axis=1)) == pytest.approx(mass, abs=1e-9)
        assert point.sum(axis=1).max() <= 1 + 1e-9
        gains = program.columns - ratio * law
        assert ((gains.T * point).sum(axis=0) >= -1e-9).all()
        worth = np.maximum(0.0, (law + lam[:, None] * gains).max(axis=0)).sum()
        assert worth == pytest.approx(mass, abs=1e-8) or closed
        up, down = (most_mass(p, matrix, ratio + step) for step in (1e-5, -1e-5))
        assert -slope == pytest.approx((up - down) / 2e-5, rel=1e-3, abs=1e-6)


def test_a_run_that_reaches_its_iteration_limit_hands_over_to_another_method() -> None:
    rng = np.random.default_rng(1215)
    p, matrix = rng.dirichlet(np.ones(8)), rng.dirichlet(np.full(8, 0.5), 8)
    program = envelope(p, matrix, 0.5)
    programs = RatioPrograms(program, 0.5)
    programs.solve_at(1.1, np.zeros(8, dtype=bool), NO_DEADLINE)
    assert programs._moving is not None
    programs._moving.solver.setOptionValue("simplex_iteration_limit", 1)
    for ratio in (1.2, 1.5):
        mass, *_ = programs.solve_at(ratio, np.zeros(8, dtype=bool), NO_DEADLINE)
        assert mass == pytest.approx(most_mass(p, matrix, ratio), abs=1e-8)


def test_a_number_lies_above_a_trusted_root_by_a_distance_and_the_rounding() -> None:
    search = search_at(1.0, 2.0)
    search._hair, search.task.blur = 0.01, 0.02
    assert search._choose_next(1.5, 1.0, 2.0) == pytest.approx(1.5 * 1.01 + 0.02 / 2.0)
    assert search._choose_next(1.995, 1.0, 2.0) == 2.0
    search._idle = 1
    assert search._choose_next(1.5, 1.0, 2.0) == pytest.approx(1.5 * 1.01 + 0.02 / 2.0)
    assert search._choose_next(1.96, 1.0, 2.0) == pytest.approx(1.96 * 1.01 + 0.02 / 2.0)
    assert search._choose_next(1.995, 1.0, 2.0) == pytest.approx(2.0 * 0.99)
    assert search._choose_next(None, 1.0, 2.0) == pytest.approx(2.0 * 0.99)
    search.reached = 1.975
    assert search._choose_next(1.995, 1.0, 2.0) == pytest.approx(1.975 * 1.005)


def test_marks_are_tried_just_below_and_next_above_the_one_that_is_reached() -> None:
    """By the relative distance `MARK_RTOL`; marks as near to a bound as that are decided."""
    search = search_at(1.0, 2.0)
    search._untried = np.array([1 + 1.5 * MARK_RTOL, 1.3, 1.6, 2.0 * (1 - 0.5 * MARK_RTOL)])
    tried = [search._choose_mark() for _ in range(3)]
    assert tried[0] == pytest.approx(1.6 * (1 - MARK_RTOL), rel=1e-14)
    assert tried[1] == pytest.approx(1.3 * (1 - MARK_RTOL), rel=1e-14)
    assert tried[2] is None
    search.task.marks = np.array([1 + 1.5 * MARK_RTOL])
    assert search._choose_mark() == pytest.approx(1 + 3 * MARK_RTOL, rel=1e-14)
    assert search._choose_mark() is None
    search = search_at(1.0, 2.0)
    search._untried = np.array([1 + 3 * MARK_RTOL, 2.0 * (1 - 2 * MARK_RTOL)])
    assert search._choose_mark() == pytest.approx(2.0 * (1 - 3 * MARK_RTOL), rel=1e-14)
    assert search._choose_mark() == pytest.approx(1 + 2 * MARK_RTOL, rel=1e-14)


class Failing(Root):
    """A family of which the first programs fail."""

    def __init__(self, failures: int) -> None:
        super().__init__()
        self.failures = failures

    def solve_at(self, number: float, deadline: Deadline) -> ParameterSolution[float]:
        if len(self.asked) < self.failures:
            self.asked.append(number)
            raise ArithmeticError("no solution")
        return super().solve_at(number, deadline)


@pytest.mark.parametrize(("first", "expected"), [(10.0, [10.0, 5.25]), (6.0, [6.0, 8.0, 9.0])])
def test_a_program_that_fails_is_followed_by_one_half_way_to_a_bound(
    first: float, expected: list[float]
) -> None:
    """To the lower bound, .5, from the upper bound, 10; and to this from below it."""
    family = Failing(len(expected) - 1)
    search: TwoSidedSearch[float, float] = TwoSidedSearch(
        family, [(0.5, 0.5)], [0.1], 1e-9, NO_DEADLINE
    )
    search.number = first
    assert search.run() == "both ends meet"
    assert family.asked[: len(expected)] == expected


def test_a_search_ends_at_the_fourth_failure() -> None:
    family = Failing(9)
    search: TwoSidedSearch[float, float] = TwoSidedSearch(
        family, [(0.5, 0.5)], [0.1], 1e-9, NO_DEADLINE
    )
    assert search.run() == "no solution"
    assert len(family.asked) == 4


def test_the_distance_above_a_root_grows_where_programs_stall_and_shrinks_again() -> None:
    search = search_at(1.4, 1.45)
    nothing = ParameterSolution(0.0, 1.0, np.array([9.0]), 0.1)
    search.number = 1.42
    for stalled in (1, 2):
        search._use_solution(nothing)
        assert search._idle == stalled
        assert search._hair == pytest.approx(5.0**stalled * search.ROOT_RTOL)
    search._use_solution(ParameterSolution(0.0, 1.0, np.array([math.sqrt(2)]), 0.1))
    assert search._idle == 0
    assert search._hair == pytest.approx(5.0 * search.ROOT_RTOL)
    assert search.log_gap == pytest.approx(math.log(1.45) - math.log(2) / 2)
