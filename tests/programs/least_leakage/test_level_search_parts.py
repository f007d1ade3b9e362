"""Parts of the search for a least level: steps past iterates, closed forms, margins, and cuts by priors."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from pmlopt import ExpectedGain, KLBall, least_leakage, worst_case_utility
from pmlopt.programs.least_leakage.certificate import LevelMultipliers
from pmlopt.programs.least_leakage.level_programs import PriorCutLevelProgram, _compute_slope
from pmlopt.programs.least_leakage.level_search import LevelProgramFamily
from pmlopt.programs.least_leakage.methods import _find_closed_form
from pmlopt.solvers.solver_result import NO_DEADLINE

P = np.array([0.3, 0.2, 0.4, 0.1])
ORDER = np.array([[3, 2, 1], [1, 3, 2], [2, 1, 3], [3, 1, 2]])


def test_multipliers_are_extrapolated_past_the_later_ones() -> None:
    """From 1 to 3 and a half of that step on it is 4; a floor's multiplier stays at 0 or more."""
    family = LevelProgramFamily(worst_case_utility(P, ORDER, 2), lambda *_: pytest.fail("unused"))
    now, then = (LevelMultipliers(np.full(4, value), floor) for value, floor in ((3, 1), (1, 2)))
    found = family.extrapolate(now, then, 0.5)
    assert found.rows.tolist() == [4.0] * 4
    assert found.floor == 0.5
    assert family.extrapolate(now, then, 2.0).floor == 0.0


def test_a_closed_form_is_optimal_up_to_a_billionth_of_a_nat() -> None:
    program = worst_case_utility(P, ORDER, 3)  # each letter has one output: there is one mechanism
    for above in (0.0, 0.9e-9):
        form = find_form(program, bound_below=above, value_above=0.25)
        assert form.value == pytest.approx(-np.log(0.2))
        assert form.difference == pytest.approx(0.25)
    assert find_form(program, bound_below=1.1e-9, value_above=0.25) is None


def find_form(program: Any, bound_below: float, value_above: float) -> Any:
    """Find the closed form beside a certificate whose bound and value are so far from its level."""
    level = program.compute_level(np.eye(3)[ORDER.argmax(axis=1)])
    made: Any = SimpleNamespace(bound=level - bound_below, value=level + value_above)
    return _find_closed_form(program, made)


def test_the_floor_of_the_solver_is_above_what_is_asked_by_a_margin() -> None:
    """Without any entry the gain is 0, and what is short of the floor is the floor and the margin."""
    program = least_leakage(P, ExpectedGain(np.eye(4)[:, :3]), expected=0.6, outputs=3)
    floor = program.floor
    assert floor is not None
    assert floor.min_gain < 0
    for variable in program.variables.values():
        variable.value = np.zeros(variable.shape)
    short = float(np.asarray(program.constraints["expected"].expr.value))
    assert 0 < short - floor.min_gain <= 2e-14


def test_priors_are_added_until_the_level_holds_over_the_set_and_no_further() -> None:
    program = worst_case_utility(P, ORDER, 2, over=KLBall(P, 0.01))
    search = PriorCutLevelProgram(program)
    start = len(search._laws)
    search.solve_at(0.45, NO_DEADLINE)
    laws, before, last = len(search._laws), search._spent, search._levels.iterations
    assert laws > start
    assert min(before, last) > 0
    assert search.iterations == before + last
    again = search.solve_at(0.45, NO_DEADLINE)
    assert len(search._laws) == laws
    columns = again.point[:, again.point.max(axis=0) > 0]
    columns = columns / columns.max(axis=0)
    assert program.over is not None
    assert (program.over.min_mean(columns) >= 0.45 * (1 - 1e-6)).all()


@pytest.mark.parametrize(("share", "slope"), [(0.25, 0.0), (0.75, 4 / 3), (1.25, 0.8)])
def test_a_share_past_all_letters_ends_in_the_last_one(share: float, slope: float) -> None:
    """Of two even letters with their own outputs: 1 less the gain of the letter in which it ends, over it."""
    prior: Any = SimpleNamespace(pmf=np.array([0.5, 0.5]))
    design: Any = SimpleNamespace(prior=prior, table=np.eye(2))
    assert _compute_slope(design, np.eye(2), np.zeros(2), share) == pytest.approx(slope)
