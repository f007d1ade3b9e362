"""The search for the largest feasible parameter, and the linear programs that it asks."""

from __future__ import annotations

import math

import numpy as np
import pytest
from oracles.envelopes import most_mass

from pmlopt import envelope
from pmlopt.core.arrays import FloatArray
from pmlopt.programs.envelope.certifying import RatioPrograms
from pmlopt.solvers.outcome import FOREVER, TIME, Clock
from pmlopt.solvers.two_sided_search import Answer, Search


class Root:
    """The largest x with `x w <= 2` and `w >= x` for some w, with slopes multiplied by a factor."""

    blur = 0.0

    def __init__(self, factor: float = 1.0, marks: tuple[float, ...] = ()) -> None:
        self.factor, self.marks = factor, np.array(marks)
        self.asked: list[float] = []

    def solve(self, number: float, clock: Clock) -> Answer[float]:
        self.asked.append(number)
        missing, slope = max(0.0, number - 2 / number), 1 + 2 / number**2
        return Answer(missing, self.factor * slope, np.array([2 / number]), 1 / number)

    def witness(self, point: FloatArray) -> tuple[float, float]:
        return float(min(point[0], 2 / point[0])), float(point[0])

    def proved(self, proof: float) -> float:
        return max(2 * proof, 1 / proof)

    def beyond(self, now: float, then: float, step: float) -> float:
        return max(1e-9, now + step * (now - then))


@pytest.mark.parametrize("factor", [1.0, 0.3, 3.0, 1e-3, 5e-30, 0.0, 1e30])
def test_the_largest_root_is_found_whatever_the_slopes_and_within_the_bounds(factor: float) -> None:
    family = Root(factor)
    search: Search[float, float] = Search(family, [(0.5, 0.5)], [0.1], 1e-9, FOREVER)
    assert search.run() == "both ends meet"
    assert search.reached <= math.sqrt(2) * (1 + 1e-15)
    assert search.upper >= math.sqrt(2) * (1 - 1e-15)
    assert search.gap <= 1e-9
    assert all(0.5 <= number <= 10 for number in family.asked)


def test_marks_between_the_bounds_are_asked_first() -> None:
    family = Root(marks=(1.0, 2.0, 3.0, 50.0))
    search: Search[float, float] = Search(family, [(0.5, 0.5)], [0.1], 1e-9, FOREVER)
    assert search.run() == "both ends meet"
    assert family.asked[0] == pytest.approx(2.0, rel=1e-8)
    assert search.reached == pytest.approx(math.sqrt(2), abs=1e-8)


class Jump(Root):
    """Nothing is missing up to the square root of 2, and no witness tells so; above, half is missing."""

    def solve(self, number: float, clock: Clock) -> Answer[float]:
        self.asked.append(number)
        missing = 0.0 if number <= math.sqrt(2) else 0.5
        return Answer(missing, 0.0, np.array([0.1]), 1 / number if missing else 0.1)

    def proved(self, proof: float) -> float:
        return max(math.sqrt(2), 1 / proof)


def test_the_bound_falls_to_a_jump_that_no_witness_reaches() -> None:
    family = Jump()
    search: Search[float, float] = Search(family, [(0.5, 0.5)], [0.1], 1e-9, FOREVER)
    search.run()
    assert search.reached == 0.5
    assert math.sqrt(2) <= search.upper <= math.sqrt(2) * 1.1  # halving from 0.5 alone would stay at 2.6


def test_no_time_is_an_ending() -> None:
    search: Search[float, float] = Search(Root(), [(0.5, 0.5)], [0.1], 1e-9, Clock.of(1e-12))
    assert search.run() == TIME
    assert search.programs == 0
    assert (search.reached, search.upper) == (0.5, 10.0)


def test_a_run_that_reaches_its_iteration_limit_hands_over_to_another_method() -> None:
    rng = np.random.default_rng(1215)
    p, matrix = rng.dirichlet(np.ones(8)), rng.dirichlet(np.full(8, 0.5), 8)
    program = envelope(p, matrix, 0.5)
    programs = RatioPrograms(program, 0.5)
    programs.solve(1.1, np.zeros(8, dtype=bool), FOREVER)
    assert programs._moving is not None
    programs._moving.solver.setOptionValue("simplex_iteration_limit", 1)
    for ratio in (1.2, 1.5):
        mass, *_ = programs.solve(ratio, np.zeros(8, dtype=bool), FOREVER)
        assert mass == pytest.approx(most_mass(p, matrix, ratio), abs=1e-8)
