"""The parts of the search for columns: budgets, sets in a window, staircases and cores, by brute force."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pytest
from oracles.designs import linear_program

from pmlopt.core.numbers.arrays import FloatArray
from pmlopt.model.uncertainty.columns import BoxFamily, StaircaseFamily
from pmlopt.model.utility import MutualInformation
from pmlopt.programs.subconvex import relaxations, search_pricing
from pmlopt.programs.subconvex.columns import ColumnFamily, ColumnUtility, sort_subset_sums
from pmlopt.programs.subconvex.relaxations import FractionalKnapsack, bound_family, bound_staircases
from pmlopt.programs.subconvex.search_pricing import (
    SearchPricer,
    _find_sets_within,
    _LetterBudgets,
    find_columns_above,
    find_staircases_above,
)
from pmlopt.programs.subconvex.subset_cores import SubsetCore, build_random_sets

P = np.array([0.1, 0.12, 0.18, 0.25, 0.35])
KERNEL = ColumnUtility(P, MutualInformation().phi)
BOX, STAIRS = BoxFamily(0.5, 1.8), StaircaseFamily(1.9, 0.6)
SETS = [np.array(bits) for bits in itertools.product([False, True], repeat=5)]
RHO = 0.2 * np.random.default_rng(2).normal(size=5)


def reduced(lift: FloatArray) -> float:
    return float(KERNEL.column_values(lift[:, None])[0] - (P * RHO) @ lift)


def box_columns() -> dict[tuple[int, ...], float]:
    """Each column of the box that is low, high, and at one letter what mean one leaves; by set and letter."""
    found = {}
    for inside, f in itertools.product(SETS, range(5)):
        if inside[f]:
            continue
        lift = np.where(inside, BOX.high, BOX.low)
        lift[f] = (1 - P @ lift + P[f] * lift[f]) / P[f]
        if BOX.low <= lift[f] <= BOX.high:
            found[(*np.flatnonzero(inside).tolist(), -1, f)] = reduced(lift)
    return found


def keys_of(columns: ColumnFamily) -> set[tuple[int, ...]]:
    pairs = zip(columns.high, columns.between.tolist(), strict=True)
    return {(*np.flatnonzero(inside).tolist(), -1, f) for inside, f in pairs}


# ---------------------------------------------------------------- columns of a box


@pytest.mark.parametrize("rank", [1, 4, 9, 14])
def test_all_columns_above_a_threshold_are_listed_with_their_values(rank: int) -> None:
    values = box_columns()
    ranked = sorted(values.values(), reverse=True)
    threshold = (ranked[rank - 1] + ranked[rank]) / 2
    letters = _LetterBudgets(KERNEL, BOX, RHO, threshold)
    sets = np.array(SETS)
    found, codes, between = letters.list_columns(sets, 1000)
    listed = {}
    for value, code, f in zip(found.tolist(), codes.tolist(), between.tolist(), strict=True):
        inside = set(np.flatnonzero(sets[code]).tolist()) - {f}
        listed[(*sorted(inside), -1, f)] = value
    assert listed == pytest.approx({key: v for key, v in values.items() if v > threshold})
    best, columns = find_columns_above(KERNEL, BOX, RHO, threshold, 1000) or (0.0, None)
    assert columns is not None
    assert best == pytest.approx(ranked[0])
    assert keys_of(columns) == set(listed)


def test_a_budget_and_a_window_have_room_for_rounding(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(search_pricing, "BUDGET_RTOL", 0.01)
    monkeypatch.setattr(search_pricing, "MASS_ATOL", 0.02)
    asked: list[tuple[Any, ...]] = []
    monkeypatch.setattr(search_pricing, "_find_sets_within", lambda *args: asked.append(args))
    upper = bound_family(KERNEL, BOX, RHO)
    for threshold in (upper - 0.05, -2.0):
        letters = _LetterBudgets(KERNEL, BOX, RHO, threshold)
        rounding = 0.01 * (1 + abs(upper) + abs(threshold))
        assert letters.budget == pytest.approx(upper - threshold + rounding)
        assert find_columns_above(KERNEL, BOX, RHO, threshold, 9) is None
        *_, budget, window = asked.pop()
        assert budget == letters.budget
        ends = 0.5 - letters.below.max() - 0.02, 0.5 + letters.above.max() + 0.02
        assert window == pytest.approx(ends)


def test_letters_heavier_than_the_capacity_are_between_up_to_rounding(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The capacity is .5 / 1.3: a letter of .35 fits, and with a tolerance of a tenth also one of .42."""
    for tolerance, fits in ((1e-13, False), (0.1, True)):
        monkeypatch.setattr(search_pricing, "CAPACITY_RTOL", tolerance)
        kernel = ColumnUtility(np.array([0.23, 0.35, 0.42]), MutualInformation().phi)
        letters = _LetterBudgets(kernel, BOX, np.zeros(3), -9.0)
        assert letters._fits.tolist() == [True, True, fits]


def test_a_mass_may_be_beyond_an_end_by_rounding(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of all letters, each is between with what a set leaves, down to less than nothing by the tolerance."""
    values = len(box_columns())
    counts = []
    for tolerance in (1e-15, 0.03):
        monkeypatch.setattr(search_pricing, "MASS_ATOL", tolerance)
        monkeypatch.setattr(search_pricing, "CAPACITY_RTOL", tolerance)
        letters = _LetterBudgets(KERNEL, BOX, RHO, -9.0)
        letters.below, letters.above = np.full(5, 9.0), np.full(5, 9.0)
        found, codes, between = letters.list_columns(np.array(SETS), 1000)
        rests = [
            0.5 - float(P[inside].sum()) * 1.3 + inside[f] * 1.3 * P[f]
            for inside, f in zip(np.array(SETS)[codes], between, strict=True)
        ]
        counts.append(len(found))
        expected = [
            -tolerance <= 0.5 - 1.3 * float(P[inside & (np.arange(5) != f)].sum())
            <= 1.3 * P[f] * (1 + tolerance)
            for inside, f in itertools.product(SETS, range(5))
        ]  # fmt: skip
        assert len(rests) == sum(expected)
    assert counts[1] > counts[0] >= values


@pytest.mark.parametrize("budget", [0.02, 0.06, 0.2])
@pytest.mark.parametrize("window", [(0.3, 0.5), (0.42, 0.43), (0.0, 1.0)])
def test_sets_within_a_window_are_those_of_brute_force(
    budget: float, window: tuple[float, float]
) -> None:
    """Letters that lose more than the budget are in the right place, and others lose up to twice as much."""
    random = np.random.default_rng(4)
    room, lost = random.dirichlet(np.ones(7)), 0.1 * random.random(7)
    inside = random.random(7) < 0.5
    expected = set()
    for bits in itertools.product([False, True], repeat=7):
        wrong = np.array(bits) != inside
        if (wrong & (lost > budget)).any() or lost[wrong].sum() > 2 * budget:
            continue
        if window[0] <= room[list(bits)].sum() <= window[1]:
            expected.add(bits)
    found = _find_sets_within(room, lost, inside, budget, window)
    assert found is not None
    assert sorted(map(tuple, found.tolist())) == sorted(expected)


# ---------------------------------------------------------------- staircases


def stair_worth(family: StaircaseFamily, mass: FloatArray, edge: float | None) -> FloatArray:
    """The worth at a mass where the cost of a set is the least of its mass, or its tangent."""
    order = np.argsort(RHO)
    ends = np.concatenate([[0.0], np.cumsum(P[order])])
    costs = np.concatenate([[0.0], np.cumsum((P * RHO)[order])])
    cost = np.interp(mass, ends, costs)
    if edge is not None:
        cost = float((P * np.minimum(RHO - edge, 0.0)).sum()) + edge * mass
    low = (1 - family.base * mass) / (1 - mass + family.slope * mass)
    top = family.base + family.slope * low
    phi = KERNEL.phi
    worth = mass * phi(top) + (1 - mass) * phi(np.maximum(low, 0.0))
    return np.asarray(worth - low * float(P @ RHO) - (top - low) * cost)


@pytest.mark.parametrize("edge", [None, 0.05, -0.3])
@pytest.mark.parametrize("family", [STAIRS, StaircaseFamily(0.0, 2.5)])
def test_the_bound_on_staircases_is_the_largest_over_one_mass(
    family: StaircaseFamily, edge: float | None
) -> None:
    masses = np.linspace(1e-9, min(family.max_mass, 1.0) * (1 - 1e-9), 40001)
    worths = stair_worth(family, masses, edge)
    upper, *_ = bound_staircases(KERNEL, family, RHO, edge=edge)
    assert worths.max() - 1e-9 <= upper <= worths.max() + 1e-6
    cutoff = float(worths.max()) - 0.01
    bound, low, high = bound_staircases(KERNEL, family, RHO, cutoff, edge)
    assert bound == pytest.approx(worths.max(), abs=1e-4)
    above = masses[worths > cutoff]
    assert (low, high) == pytest.approx((above[0], above[-1]), abs=1e-3)


def test_what_is_left_of_a_bound_counts(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(relaxations, "_VALUE_RTOL", 0.05)
    masses = np.linspace(1e-9, STAIRS.max_mass * (1 - 1e-9), 4001)
    upper, *_ = bound_staircases(KERNEL, STAIRS, RHO)
    assert upper >= stair_worth(STAIRS, masses, None).max()


def test_a_knapsack_holds_the_mass_of_all_letters_and_a_tolerance(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(relaxations, "MASS_SUM_TOLERANCE", 0.1)
    knapsack = FractionalKnapsack(KERNEL, BOX, RHO)
    total = float(knapsack.room.sum())
    found = knapsack.fill_mass(0, np.array([total + 0.09, total + 0.11]))
    assert np.isfinite(found).tolist() == [True, False]


def test_the_bound_of_a_box_is_its_linear_program_by_the_chords() -> None:
    """In one column: the shares of letters between low and the largest entry, of mean one."""
    high = np.minimum(1.8, 0.5 + 0.5 / P)
    chords = (KERNEL.phi(high) - KERNEL.evaluate_phi(0.5)) / (high - 0.5)
    best = linear_program(
        -P * (chords - RHO), A_eq=[P], b_eq=[0.5], bounds=list(zip(np.zeros(5), high - 0.5, strict=True))
    )  # fmt: skip
    base = KERNEL.evaluate_phi(0.5) - 0.5 * float(P @ RHO)
    assert bound_family(KERNEL, BOX, RHO) == pytest.approx(base - best.fun)


def test_staircases_are_searched_within_their_budget_and_window(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Of their masses between those at which the bound is above the threshold, by steps of the heaviest."""
    monkeypatch.setattr(search_pricing, "BUDGET_RTOL", 0.01)
    monkeypatch.setattr(search_pricing, "MASS_ATOL", 0.02)
    monkeypatch.setattr(search_pricing, "CAPACITY_RTOL", 0.2)
    asked: list[tuple[Any, ...]] = []

    def list_all(*args: Any) -> Any:
        asked.append(args)
        return np.array(SETS)

    monkeypatch.setattr(search_pricing, "_find_sets_within", list_all)
    edge = 0.05
    upper, *_ = bound_staircases(KERNEL, STAIRS, RHO, edge=edge)
    threshold = upper - 0.3
    bound, low, high = bound_staircases(KERNEL, STAIRS, RHO, threshold, edge)
    found = find_staircases_above(KERNEL, STAIRS, RHO, threshold, 100, edge)
    assert found is not None
    [(room, lost, inside, budget, window)] = asked
    step = STAIRS.base - (1 - STAIRS.slope) * float(STAIRS.lower_values(np.array([high]))[0])
    assert room == pytest.approx(P)
    assert lost == pytest.approx(P * abs(RHO - edge))
    assert inside.tolist() == (edge > RHO).tolist()
    assert budget == pytest.approx(
        (bound - threshold + 0.01 * (1 + abs(bound) + abs(threshold))) / step
    )
    assert window == pytest.approx((low - 0.01, high + 0.02))
    # what is listed leaves room below the capacity, and is above the threshold
    expected = set()
    for inside_ in SETS:
        mass = float(P[inside_].sum())
        if 0 < mass < STAIRS.max_mass * 0.8:
            small = (1 - 1.9 * mass) / (1 - mass + 0.6 * mass)
            if reduced(np.where(inside_, 1.9 + 0.6 * small, small)) > threshold:
                expected.add(tuple(inside_.tolist()))
    assert set(map(tuple, found[1].high.tolist())) == expected


# ---------------------------------------------------------------- orders and cores


class Scripted:
    """A random generator of which each number is 2, and each order the one given."""

    def normal(self, size: int | None = None) -> Any:
        return 2.0 if size is None else np.array([2.0, -2.0, 0.0, 0.0, 1.0])[:size]

    def permutation(self, letters: Any) -> Any:
        return np.array(letters)


@pytest.mark.parametrize("family", [BoxFamily(0.5, 4.0), STAIRS])
def test_orders_are_by_the_gain_and_by_gains_that_are_half_as_spread(
    monkeypatch: pytest.MonkeyPatch, family: Any
) -> None:
    """Of a box letters gain by their chords, too; the spread is the mean absolute deviation of gains."""
    orders: list[list[int]] = []

    def search_core(
        self: SearchPricer, family: Any, rho: FloatArray, order: Any, count: int
    ) -> Any:
        orders.append(order.tolist())
        return 0.0, ColumnFamily(family, np.zeros((0, 5), bool), np.zeros(0, int))

    monkeypatch.setattr(SearchPricer, "_search_core", search_core)
    pricer = SearchPricer(KERNEL, [family])
    pricer._rng = Scripted()  # type: ignore[assignment]
    pricer._search_near_orders(family, RHO, 8)
    gain = -RHO
    if isinstance(family, BoxFamily):
        high = np.minimum(4.0, 0.5 + 0.5 / P)  # chords differ from letter to letter
        gain = (KERNEL.phi(high) - KERNEL.evaluate_phi(0.5)) / (high - 0.5) - RHO
    spread = 0.5 * np.abs(gain - gain.mean()).mean()
    moved = gain + spread * np.array([2.0, -2.0, 0.0, 0.0, 1.0])
    assert orders[0] == np.argsort(-gain).tolist()
    assert orders[1:] == 4 * [np.argsort(-moved).tolist()]


@pytest.mark.parametrize(("edge", "first"), [(0, 0), (5, 3), (9, 6)])
def test_a_core_is_centred_on_the_edge(
    monkeypatch: pytest.MonkeyPatch, edge: int, first: int
) -> None:
    monkeypatch.setattr(search_pricing, "CORE_LETTERS", 4)
    monkeypatch.setattr(SearchPricer, "_find_order_cutoff", lambda *_: edge)
    cores: list[list[int]] = []

    def search_between(self: SearchPricer, box: Any, rho: Any, core: Any, *_: Any) -> Any:
        cores.append(core.tolist())
        return np.empty(0), np.empty(0, int), np.empty(0, int)

    monkeypatch.setattr(SearchPricer, "_search_between", search_between)
    kernel = ColumnUtility(np.full(10, 0.1), MutualInformation().phi)
    pricer = SearchPricer(kernel, [BOX])
    order = np.arange(10)[::-1]
    pricer._search_core(BOX, np.zeros(10), order, 8)
    assert cores == [order[first : first + 4].tolist()]


def test_past_the_last_letter_the_edge_of_staircases_is_that_of_the_dearest(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    asked: list[float] = []
    monkeypatch.setattr(search_pricing, "find_staircases_above", lambda *a: asked.append(a[-1]))
    pricer = SearchPricer(KERNEL, [STAIRS])
    for place in (0, 3, 5):
        monkeypatch.setattr(SearchPricer, "_find_order_cutoff", lambda *_, at=place: at)
        pricer._enumerate_above(STAIRS, RHO, 0.0, 9)
    assert asked == pytest.approx(np.sort(RHO)[[0, 3, 4]].tolist())


@pytest.mark.parametrize(("mass", "taken"), [(16.0, 10), (30.0, 19)])
def test_random_sets_leave_their_core_a_share_that_varies_by_a_tenth(
    mass: float, taken: int
) -> None:
    """Here by two tenths: 12 letters of 40 are the core, which is to hold 1.2 times its share of the mass."""
    missing: list[float] = []

    def rest(core: SubsetCore, left: float) -> Any:
        missing.append(left)
        return core.list_covering_subsets(left, 1)

    rng: Any = Scripted()
    build_random_sets(np.ones(40), np.arange(40), mass, (1, 1), 12, rest, rng)
    assert missing == [mass - taken]


def test_a_letter_more_is_taken_where_the_core_is_too_light() -> None:
    """The core of 4 is aimed at whole, so that 12.6 are left to letters of one: thirteen, not twelve."""
    missing: list[float] = []

    def rest(core: Any, left: float) -> Any:
        missing.append(left)
        return np.zeros((1, 24), bool)

    rng: Any = Scripted()
    build_random_sets(np.ones(24), np.arange(24), 16.6, (1, 1), 4, rest, rng)
    assert missing == pytest.approx([3.6])


def test_subset_sums_are_sorted_with_equal_sums_in_the_order_of_their_bitmasks() -> None:
    values = np.array([0.25, 0.5, 0.25, 0.125, 0.7])
    sums, masks = sort_subset_sums(values)
    expected = [sum(values[bit] for bit in range(5) if mask >> bit & 1) for mask in range(32)]
    assert masks.tolist() == sorted(range(32), key=lambda mask: (expected[mask], mask))
    assert sums.tolist() == sorted(expected)
