"""The steps of the search for a least epsilon: first mixtures, and levels next to undecided ones."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from pmlopt import LDP, CoordinateLoss, IIDPrior, least_leakage
from pmlopt.core.numbers.arrays import FloatArray
from pmlopt.programs.least_leakage import epsilon_search
from pmlopt.programs.least_leakage.epsilon_program import LeastEpsilon
from pmlopt.programs.least_leakage.epsilon_search import EpsilonSearch
from pmlopt.programs.least_leakage.families import round_level_up
from pmlopt.programs.linear.program import SymmetricDesign
from pmlopt.solvers.solver_result import make_options


def search_of(**values: Any) -> Any:
    program = SimpleNamespace(compute_allowed_gap=lambda tolerance: 0.08)
    known = {"program": program, "options": SimpleNamespace(tolerance=1.0), "_bisection_step": 1e-3}
    return SimpleNamespace(**{**known, **values})


@pytest.mark.parametrize(
    ("undecided", "expected"),
    [
        ((0.5, 0.6), 0.6 + 0.5 * 0.4),  # half of the way above, which is wider
        ((0.9, 0.95), 0.9 - 0.5 * 0.7),
        ((0.205, 0.995), None),
    ],
)
def test_a_level_is_half_way_on_the_wider_side_of_the_undecided_ones(
    undecided: tuple[float, float], expected: float | None
) -> None:
    search = search_of(short=0.2, reached_level=1.0, undecided=undecided, _bisection_step=1.0)
    found = EpsilonSearch._choose_decidable_level(search)
    assert found == (None if expected is None else pytest.approx(expected))


def test_far_from_rounding_a_level_is_a_tenth_of_the_way_next_to_the_undecided_ones() -> None:
    search = search_of(short=0.2, reached_level=1.0, undecided=(0.5, 0.6))
    assert EpsilonSearch._choose_decidable_level(search) == pytest.approx(0.6 + 0.1 * 0.4)
    search = search_of(short=0.2, reached_level=1.0, undecided=(0.9, 0.95))
    assert EpsilonSearch._choose_decidable_level(search) == pytest.approx(0.9 - 0.1 * 0.7)


@pytest.mark.parametrize("undecided", [(0.1, 0.6), (0.5, 1.2)])
def test_undecided_levels_that_a_proof_passed_leave_the_middle(
    undecided: tuple[float, float],
) -> None:
    search = search_of(short=0.2, reached_level=1.0, undecided=undecided)
    assert EpsilonSearch._choose_decidable_level(search) == pytest.approx(0.6)
    assert search.undecided is None


def test_a_first_mixture_just_reaches_the_target_and_farther_ones_come_after_it() -> None:
    """On the way from a constant to the best mechanism, of which the excess is .3 beyond the target."""
    still, best = np.full((2, 2), 0.5), np.eye(2)
    tried: list[FloatArray] = []

    def take(matrix: FloatArray) -> bool:
        tried.append(matrix)
        return False

    search = search_of(
        _compute_target_excess=lambda matrix: float(matrix[0, 0]) - 0.7, certify_matrix=take
    )
    assert not EpsilonSearch._certify_mixture(search, still, best)
    weights = [(one[0, 0] - 0.5) / 0.5 for one in tried]
    assert weights == pytest.approx([0.4, 0.7, 1.0], abs=1e-6)
    assert weights[0] > 0.4
    assert all(one.sum(axis=1) == pytest.approx([1.0, 1.0]) for one in tried)


# ---------------------------------------------------------------- the rounds


def test_a_search_is_stalled_where_three_rounds_did_not_quarter_the_width() -> None:
    """Widths of 1, a half, a third, .26 and so on, above a level of 10."""
    widths = [1.0, 0.5, 0.3, 0.26, 0.2, 0.06, 0.02]
    told: list[bool] = []
    search = search_of(
        short=10.0, reached_level=11.0, undecided=None, witness=1, designs=0,
        options=SimpleNamespace(tolerance=1.0, deadline=SimpleNamespace(expired=False)),
    )  # fmt: skip
    search._initialize_reached_level = lambda: None

    def choose(stalled: bool) -> float:
        told.append(stalled)
        return 10.5

    def solve(level: float) -> None:
        search.reached_level = 10.0 + widths[len(told)]

    search._choose_next_level, search._solve_until_decided = choose, solve
    assert EpsilonSearch.run(search) == "both ends meet"
    # the fourth is more than a quarter of the first; then they are counted anew
    assert told == [False, False, False, True, False]


@pytest.mark.parametrize(("excess", "taken"), [(0.0, True), (-0.5e-13, True), (-2e-13, False)])
def test_the_best_constant_is_enough_where_it_reaches_the_target_up_to_rounding(
    excess: float, taken: bool
) -> None:
    """Else mixtures of it, of it with the uniform law, and of that law are tried."""
    constant, best = np.tile([0.6, 0.4], (2, 1)), np.eye(2)
    stills: list[FloatArray] = []
    program = SimpleNamespace(constant_matrix=constant, best_matrix=best, unit=1.0)
    search = search_of(
        program=program, _compute_target_excess=lambda matrix: excess, certify_matrix=lambda m: True
    )
    search._certify_mixture = lambda still, best: stills.append(still)
    EpsilonSearch._initialize_reached_level(search)
    if taken:
        assert stills == []
    else:
        rows = [still[0].tolist() for still in stills]
        assert rows == [[0.6, 0.4], pytest.approx([0.55, 0.45]), [0.5, 0.5]]


def test_by_orbits_the_first_mixtures_are_just_beyond_the_target_and_half_way_on() -> None:
    """Of the uniform outputs with those that are best, on records of three bits."""
    bits = IIDPrior([0.7, 0.3], 3)
    program = least_leakage(bits, LDP, CoordinateLoss([[0, 1], [1, 0]]), 0.4)
    assert isinstance(program, LeastEpsilon)
    search = EpsilonSearch(program, make_options(None, 1e-6))
    tried: list[FloatArray] = []

    def take(program: Any, lifts: FloatArray) -> bool:
        tried.append(lifts)
        return False

    search._certify_lifts = take  # type: ignore[method-assign]
    search._initialize_by_orbits()
    at = program.at(1.0)
    assert isinstance(at, SymmetricDesign)
    _, first, second = tried
    for lifts in (first, second):
        assert at.columns.row_sums(lifts) == pytest.approx(np.ones(len(at.columns.masses)))
    value = [at.compute_value(lifts) for lifts in (first, second)]
    # the loss of the uniform outputs is 1.5, of the best 0, and it falls in proportion
    share = 1 - 0.4 / 1.5
    assert 0.4 - value[0] == pytest.approx(1e-7 * (1 - share) * 1.5, rel=1e-2)
    assert value[1] == pytest.approx(1.5 * (1 - (1 + share) / 2), rel=1e-6)


# ---------------------------------------------------------------- levels by secants


def secant_of(points: dict[float, float], **values: Any) -> Any:
    """A search for the root of what a level has beyond the target, at levels where that is known."""
    known = {
        "short": 0.3, "reached_level": 0.7, "points": points, "side": 1, "blur": 0.0,
        "_interpolates_exponentials": False,
        "_scale_level": lambda level: level, "_unscale_level": lambda level: level,
    }  # fmt: skip
    return search_of(**{**known, **values})


LINE = {0.3: -0.5, 0.5: -0.1, 0.7: 0.3}
"""`2 (level - .55)`."""


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        ({}, 0.55 - 0.02),  # a quarter of the gap that is allowed on the side that was not met last
        ({"side": -1}, 0.55 + 0.02),
        ({"short": 0.54}, 0.55 + 0.02),  # where that is known already, the other side
        ({"blur": 0.04}, 0.55 - 2 * 0.04 / 2),  # twice what a design leaves undecided
        ({"options": SimpleNamespace(tolerance=0.0)}, 0.55 - 0.05 * 0.05),
        ({"points": {0.5: 0.1, 0.7: -0.3}}, 0.5),  # a falling secant is rounding
        ({"points": {0.5: 0.1}}, 0.5),
    ],
)
def test_the_next_level_is_past_the_root_of_the_secant(
    changes: dict[str, Any], expected: float
) -> None:
    search = secant_of(**{"points": LINE, **changes})
    search.program = SimpleNamespace(compute_allowed_gap=lambda tolerance: 0.08 * tolerance)
    assert EpsilonSearch._choose_next_level(search, False) == pytest.approx(expected)
    assert EpsilonSearch._choose_next_level(search, True) == pytest.approx(
        (search.short + search.reached_level) / 2
    )


@pytest.mark.parametrize("sign", [1, -1])
def test_a_design_between_its_value_and_its_bound_is_in_the_middle(
    monkeypatch: pytest.MonkeyPatch, sign: int
) -> None:
    """By what it is beyond the target, at one; how far apart both are may leave a level undecided."""
    found = SimpleNamespace(value=1 - 0.2 * sign, bound=1 + 0.1 * sign)
    program = SimpleNamespace(reach=1.0, compute_utility=lambda matrix: 1.25)
    options = SimpleNamespace(tolerance=1e-3, deadline=SimpleNamespace(expired=True))
    search = secant_of({}, program=program, options=options, sign=sign, undecided=(0.5, 0.6))
    search._solve_design = lambda level, accuracy: found
    search._keep_if_better = lambda *_: False
    monkeypatch.setattr(epsilon_search, "is_target_unreachable", lambda *_: False)
    EpsilonSearch._solve_until_decided(search, 0.55)
    assert search.points[0.55] == pytest.approx(-0.05)
    assert search.blur == pytest.approx(0.3)
    assert search.undecided == (0.5, 0.6)
    excess = EpsilonSearch._compute_target_excess(search, np.eye(2))
    assert excess == pytest.approx(0.25 * sign)


@pytest.mark.parametrize(("allowed", "step"), [(0.08, 0.1), (0.2, 0.2)])
def test_a_step_of_the_bisection_is_what_is_undecided_or_allowed(
    allowed: float, step: float
) -> None:
    program = SimpleNamespace(compute_allowed_gap=lambda tolerance: allowed)
    search: Any = object.__new__(EpsilonSearch)
    search.program, search.options = program, SimpleNamespace(tolerance=1.0)
    search.undecided = (0.5, 0.6)
    assert search._bisection_step == pytest.approx(step)


def test_a_level_is_rounded_up_by_a_few_digits() -> None:
    for level in (0.0, 1e-300, 0.3, 2.0):
        found = round_level_up(level)
        assert level < found <= level * (1 + 2.0**-49) + 1e-300
