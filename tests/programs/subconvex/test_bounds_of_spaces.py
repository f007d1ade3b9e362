"""Bounds of spaces of columns, each term of them: closed ones, relaxed ones, and their rounding."""

from __future__ import annotations

import itertools
import math
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from pmlopt.core.numbers.arrays import FloatArray
from pmlopt.model.uncertainty import Box, L1Ball, MinimumMass
from pmlopt.model.uncertainty.columns import BoxFamily, ColumnCone, StaircaseFamily
from pmlopt.model.utility import MutualInformation
from pmlopt.programs.subconvex import column_spaces, columns, relaxations, split_pricing
from pmlopt.programs.subconvex.ball_pricing import BallPricer
from pmlopt.programs.subconvex.column_spaces import ColumnSpace
from pmlopt.programs.subconvex.columns import ColumnFamily, ColumnUtility, DenseBatch
from pmlopt.programs.subconvex.relaxations import ChordBound, bound_staircases
from pmlopt.programs.subconvex.split_pricing import (
    NestedPricer,
    SplitPricer,
    build_split_families,
)
from pmlopt.programs.subconvex.tangents import TangentPricer
from pmlopt.solvers.solver_result import NO_DEADLINE

P = np.array([0.1, 0.12, 0.18, 0.25, 0.35])
RHO = np.array([0.4, -0.3, 0.2, 0.1, -0.2])
KERNEL = ColumnUtility(P, MutualInformation().phi)
PRIOR = SimpleNamespace(pmf=P, size=5)
STAIRS = StaircaseFamily(0.0, 2.0)


def space_of(**parts: Any) -> Any:
    """A space of which only these parts are known."""
    known = {"prior": PRIOR, "column_utility": KERNEL, "families": (), "_set_pricer": None}
    return SimpleNamespace(**{**known, **parts})


@pytest.fixture
def _visible_rounding(monkeypatch: pytest.MonkeyPatch) -> None:
    for module in (column_spaces, columns):
        monkeypatch.setattr(module, "bound_sum_rounding", lambda terms, size: 0.01 * size)


@pytest.mark.usefixtures("_visible_rounding")
def test_rounding_is_of_the_sizes_of_all_terms() -> None:
    sizes = 0.4 + float(P @ np.abs(RHO))
    for utility, most in ((KERNEL, 3.0), (None, 2.0)):
        space = space_of(
            column_utility=utility, allowed=None, full_release_utility=-3.0, max_column_value=2.0
        )
        found = ColumnSpace.bound_rounding(space, RHO)
        assert found == pytest.approx(0.01 * (sizes + most))
    caps = np.array([0.5, 4.0, 2.0, 1.0, 1.5])
    # `t log t - t + 1` in units of an entry of one or more, and one at zero
    largest = math.log(4) - 1 + 1 / 4
    assert KERNEL.bound_rounding(RHO, caps) == pytest.approx(0.01 * (sizes + largest + 1 + 1))


@pytest.mark.usefixtures("_visible_rounding")
def test_closed_bounds_are_rounded_up() -> None:
    cone = ColumnCone(L1Ball(P, 0.1), 0.6)
    space = space_of(_set_pricer=object(), allowed=cone, ball_information_bound=0.5)
    bound, rho = ColumnSpace.closed_bound.func(space)  # type: ignore[attr-defined]
    assert bound == pytest.approx(0.505)
    assert not rho.any()
    constant = space_of(
        allowed=(BoxFamily(1.0, 1.0),), constant_utility=3.0, bound_rounding=lambda rho: 0.0
    )
    found, name = ColumnSpace.compute_bound(constant, RHO, -math.inf, None)
    assert found == pytest.approx(3.04)
    assert name == "constant"


@pytest.mark.parametrize("better", [False, True])
def test_a_closed_bound_has_the_multipliers_that_prove_more(better: bool) -> None:
    """Of none and of the slopes of the chords, whose mean counts."""
    slopes = np.full(5, 0.3)
    search: Any = object.__new__(SplitPricer)

    def chord_bound(rho: FloatArray) -> float:
        return (0.6 if better else 0.8) if rho.any() else 1.0

    search.nested = SimpleNamespace(
        chords=SimpleNamespace(slopes=slopes, compute_bound=chord_bound)
    )
    space = space_of(
        _set_pricer=search,
        allowed=ColumnCone(MinimumMass(5, 0.08), 0.6),
        ball_information_bound=math.inf,
        _rough_bound=chord_bound,
    )
    bound, rho = ColumnSpace.closed_bound.func(space)  # type: ignore[attr-defined]
    assert bound == pytest.approx(0.9 if better else 1.0)
    assert rho.any() == better


def test_a_rough_bound_is_above_the_constant_and_at_most_that_of_a_ball() -> None:
    kernel = ColumnUtility(P, np.square)
    pricer = SimpleNamespace(parts=True, bound_reduced_values=lambda rho, cutoff: -9.0)
    listed = space_of(
        column_utility=kernel, families=(STAIRS,), column_count=3, MAX_SHORT_LIST_COLUMNS=9,
        _vertex_pricer=pricer, ball_information_bound=math.inf,
    )  # fmt: skip
    rho = RHO + 2.0
    assert ColumnSpace._rough_bound(listed, rho) == pytest.approx(1 - float(P @ rho))
    search = SimpleNamespace(bound_roughly=lambda rho: 7.0)
    ball = space_of(_set_pricer=search, ball_information_bound=0.5)
    assert ColumnSpace._rough_bound(ball, RHO) == pytest.approx(0.5 + 0.3)


def test_a_ball_is_bounded_by_its_information_and_the_cheapest_letter() -> None:
    pricer: Any = SimpleNamespace(max_information=0.5)
    found = BallPricer.bound_reduced_values(pricer, RHO, 1.0, NO_DEADLINE)
    assert found == pytest.approx(0.5 + 0.3)


def test_a_slope_is_taken_just_below_the_largest_entry() -> None:
    """Where it is at most the derivative of a convex function, here `log t`."""
    caps = np.array([5.0, 4.0, 3.0, 2.0, 1.5])
    found = ColumnSpace.utility_slope.func(space_of(max_entries=caps))  # type: ignore[attr-defined]
    derivative = float(P @ np.log(caps))
    assert derivative * (1 - 1e-5) < found - 10 < derivative


# ---------------------------------------------------------------- columns


@pytest.mark.parametrize("family", [StaircaseFamily(0.0, 2.0), StaircaseFamily(1.2, 0.4)])
def test_no_staircase_has_a_larger_entry_than_its_bound_at_a_lower_value_of_one(
    family: StaircaseFamily,
) -> None:
    sets = [bits for bits in itertools.product([False, True], repeat=5) if 0 < P @ bits < 0.7]
    lifts = ColumnFamily(family, np.array(sets), np.full(len(sets), -1)).build_lifts(P)
    most = KERNEL.max_entries(family)
    assert (lifts <= most[:, None] + 1e-12).all()
    assert most == pytest.approx(np.minimum(family.base + family.slope, 1 / P))


def test_a_letter_between_that_is_full_or_empty_is_no_letter_between() -> None:
    """Here a box of 0 and 2: what the set leaves of the mean is all, or nothing, of the letter."""
    p = np.array([0.25, 0.25, 0.25, 0.25])
    high = np.array([[1, 0, 0, 0], [1, 1, 0, 0], [1, 1, 0, 0], [0, 1, 0, 0]], dtype=bool)
    family = ColumnFamily(BoxFamily(0.0, 2.0), high, np.array([1, 2, -1, 2]))
    found = family.drop_duplicates(p)
    assert found.high.astype(int).tolist() == [[1, 1, 0, 0], [0, 1, 1, 0]]
    assert found.between.tolist() == [-1, -1]


def test_columns_that_differ_by_the_sign_of_a_zero_are_one() -> None:
    entries = np.array([[0.0, -1e-15, 2.0, -0.0], [2.0, 2.0, 0.0, 2.0]])
    found = DenseBatch(entries).drop_duplicates(np.array([0.5, 0.5]))
    assert found.entries.tolist() == [[0.0, 2.0], [2.0, 0.0]]


# ---------------------------------------------------------------- relaxations


def test_cells_that_tie_with_the_best_are_not_halved_for_ever() -> None:
    """A bound within 1e-8 of the values that occur is next to the best."""
    calls: list[int] = []
    family = StaircaseFamily(0.0, 2.0)

    class Counted(StaircaseFamily):
        def compute_values(self, mass: FloatArray, between: FloatArray) -> Any:
            calls.append(mass.size)
            return super().compute_values(mass, between)

    bound, *_ = bound_staircases(KERNEL, Counted(0.0, 2.0), RHO)
    again = bound_staircases(KERNEL, family, RHO)[0]
    assert bound == again
    assert len(calls) < relaxations._MAX_HALVINGS


CONES = [ColumnCone(MinimumMass(5, 0.08), 0.6), ColumnCone(L1Ball(P, 0.3), 0.6)]


@pytest.mark.parametrize("cone", CONES)
def test_chords_are_above_the_utility_between_the_ends_of_each_letter(cone: ColumnCone) -> None:
    """At the slopes as multipliers no column is worth more, and one of ends only is worth as much."""
    chords = ChordBound(KERNEL, cone)
    columns_ = cone.extreme_columns(P, 10**6)
    assert columns_ is not None
    lifts = columns_ / (P @ columns_)
    floors = lifts.min(axis=1)
    assert chords.caps == pytest.approx(lifts.max(axis=1))
    rise = KERNEL.phi(chords.caps) - KERNEL.phi(floors)
    assert chords.slopes == pytest.approx(rise / (chords.caps - floors))
    # at the slopes only what the chords are at zero is left
    ends = KERNEL.phi(floors) - chords.slopes * floors
    assert chords.compute_bound(chords.slopes) == pytest.approx(float(P @ ends))
    worth = KERNEL.column_values(lifts) - (P * chords.slopes) @ lifts
    assert worth.max() <= chords.compute_bound(chords.slopes) + 1e-12


def test_a_letter_of_hardly_any_width_has_no_chord() -> None:
    """At an e^-epsilon next to one entries are next to one, up to 1e-10."""
    cone = ColumnCone(MinimumMass(5, 0.08), 1 - 1e-11)
    chords = ChordBound(KERNEL, cone)
    assert (chords.caps - 1 < 1e-9).all()
    assert not chords.slopes.any()


@pytest.mark.parametrize("bound", [0.1, 0.9])
def test_a_box_of_priors_has_the_row_of_its_least_mean(bound: float) -> None:
    """The largest over a threshold, which the family has as its middle value."""
    lower, upper = np.full(5, 0.1), np.array([0.2, 0.25, 0.3, 0.4, 0.5])
    priors = Box(lower, upper)
    cone = ColumnCone(priors, 0.6)
    [family] = build_split_families(cone)
    column = np.array([0.0, bound, bound, 2.0, 2.0])
    rows = []
    for mid in (0.0, bound, 2.0):
        row = (1 - 0.5) * mid
        for x, value in enumerate(column):
            row += lower[x] * value - (upper[x] - lower[x]) * max(mid - value, 0.0)
        rows.append(row)
    expected = max(rows) - 0.6 * 2.0
    place = {0.0: 0, bound: 1, 2.0: 2}
    letters, kind = np.arange(5), [place[value] for value in column.tolist()]
    found = (
        family.by_mid[0, kind, letters].sum() * bound
        + family.by_top[0, kind, letters].sum() * 2.0
        + family.mid_rates[0] * bound
        - family.top_rates[0] * 2.0
    )
    assert found == pytest.approx(rows[1] - 0.6 * 2.0)
    assert float(priors.min_mean(column[:, None])[0]) - 1.2 == pytest.approx(expected)


def test_relaxed_columns_are_mixed_with_the_constant_until_they_have_room_to_spare(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The least mean is then above the share of the largest entry, by a margin of that."""
    monkeypatch.setattr(split_pricing, "FACTOR_MARGIN_RTOL", 0.01)
    for cone in CONES:
        pricer: Any = SimpleNamespace(nested=SimpleNamespace(cone=cone))
        lifts = np.random.default_rng(0).random((5, 8)) ** 3
        lifts /= P @ lifts
        made = SplitPricer._make_allowed(pricer, lifts).entries
        spare = cone.priors.min_mean(made) - 0.6 * made.max(axis=0)
        given = cone.priors.min_mean(lifts) - 0.6 * lifts.max(axis=0)
        mixed = given < 0
        assert mixed.any()
        weight = (made - lifts)[0] / (1 - lifts)[0]
        margin = 0.01 * 0.6 * (1 - weight) * lifts.max(axis=0)
        assert spare[mixed] == pytest.approx(margin[mixed])


def test_plateaus_have_more_rounding_than_other_columns() -> None:
    plateaus = TangentPricer.for_plateaus(P, 0.6, 0.15)
    assert plateaus is not None
    assert plateaus.roundings > TangentPricer.for_min_mass(P, 0.08, 0.6).roundings == 1


@pytest.mark.parametrize(("last", "rise"), [(1.0, 1e-12), (-3.0, 3e-12), (2.0, 0.0)])
def test_a_climb_ends_where_no_neighbour_is_better_by_more_than_rounding(
    last: float, rise: float
) -> None:
    """Of a share of 1e-12 of one more than the size of the value."""
    pricer: Any = object.__new__(NestedPricer)
    worths = iter([last, last + rise, last + 1])
    built: list[int] = []

    def build(inner: Any, outer: Any) -> Any:
        built.append(1)
        return DenseBatch(np.ones((5, 1)))

    pricer._build_columns = build
    pricer._reduced_values = lambda *_: np.array([next(worths)])
    found = pricer._search_locally(None, None, RHO, 5, NO_DEADLINE)
    assert len(built) == 2
    assert found.entries.shape == (5, 1)
