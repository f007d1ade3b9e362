"""The parts of pricing one by one: kinds of columns, tangents, ellipsoids and cells, by definition."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
from oracles.designs import FloatArray, linear_program

from pmlopt import PML, Prior, design
from pmlopt.core.numbers.arrays import BoolArray
from pmlopt.model.uncertainty import L1Ball, MinimumMass
from pmlopt.model.uncertainty.columns import BoxFamily, ColumnCone, StaircaseFamily
from pmlopt.model.utility import MutualInformation
from pmlopt.programs.subconvex import ball_pricing, split_pricing
from pmlopt.programs.subconvex.ball_pricing import (
    BallPricer,
    bound_ball_information,
    bound_plateaus,
)
from pmlopt.programs.subconvex.column_kinds import ColumnKinds, MinMassKinds, PlateauKinds
from pmlopt.programs.subconvex.columns import (
    ColumnBatch,
    ColumnPricer,
    ColumnUtility,
    PricingResult,
)
from pmlopt.programs.subconvex.relaxations import ChordBound, FractionalKnapsack, bound_staircases
from pmlopt.programs.subconvex.search_pricing import _LetterBudgets
from pmlopt.programs.subconvex.split_pricing import (
    SplitPricer,
    SplitRelaxation,
    build_split_families,
    solve_relaxed_column,
)
from pmlopt.programs.subconvex.subset_cores import (
    SubsetCore,
    build_columns_near_capacity,
    build_random_sets,
)
from pmlopt.programs.subconvex.tangents import TangentPricer
from pmlopt.solvers.solver_result import NO_DEADLINE, Deadline

P = np.array([0.1, 0.12, 0.18, 0.25, 0.35])
KEEP = 0.55
HALF = 0.15


def entropy_of(lift: FloatArray, p: FloatArray = P) -> float:
    """`sum p lam log lam`, what a column tells."""
    used = lift > 0
    return float((p[used] * lift[used] * np.log(lift[used])).sum())


def sets_of(size: int) -> list[BoolArray]:
    return [np.array(bits) for bits in itertools.product([False, True], repeat=size)]


def kinds_of(name: str) -> ColumnKinds:
    kinds: ColumnKinds | None = MinMassKinds.build(P, 0.08, KEEP)
    if name == "parts":
        kinds = MinMassKinds.build(P, 0.2, 0.7)
    if name == "plateaus":
        kinds = PlateauKinds.build(P, KEEP, 0.3)
    assert kinds is not None
    return kinds


def allowed_sets(kinds: ColumnKinds, place: int) -> list[BoolArray]:
    """The sets that a kind may have."""
    found = []
    for inside in sets_of(len(P)):
        if (inside & ~kinds.free[place]).any():
            continue
        if kinds.count is not None and inside.sum() != kinds.count[place]:
            continue
        if (
            isinstance(kinds, PlateauKinds)
            and not kinds.min_mass[place] <= inside @ P <= kinds.max_mass[place]
        ):
            continue
        found.append(inside)
    return found


def lacking(name: str, lift: FloatArray) -> float:
    """By how much a column breaks the requirement over its set of priors."""
    if name == "plateaus":  # over an l1 ball around p, which reaches past the simplex
        distance = np.eye(5)
        least = linear_program(
            np.concatenate([lift, np.zeros(5)]),
            A_ub=np.block([
                [distance, -distance], [-distance, -distance], [np.zeros((1, 5)), np.ones((1, 5))],
            ]),
            b_ub=np.concatenate([P, -P, [2 * 0.3]]),
            A_eq=np.concatenate([np.ones((1, 5)), np.zeros((1, 5))], axis=1), b_eq=[1.0],
        )  # fmt: skip
        return KEEP * float(lift.max()) - float(least.fun)
    mass, keep = (0.2, 0.7) if name == "parts" else (0.08, KEEP)
    return float(keep * lift.max() - (mass * lift.sum() + (1 - 5 * mass) * lift.min()))


@pytest.mark.parametrize("name", ["least mass", "parts", "plateaus"])
def test_kinds_of_columns_are_what_they_say(name: str) -> None:
    kinds, random = kinds_of(name), np.random.default_rng(0)
    prices = random.normal(size=5)
    least, most = kinds.mass_range
    fixed, each = kinds.compute_costs(prices)
    seen = 0
    for place in range(len(kinds)):
        one = kinds[np.array([place])]
        allowed = allowed_sets(kinds, place)
        if kinds.count is not None:
            masses = [inside @ P for inside in allowed]
            assert (least[place], most[place]) == pytest.approx((min(masses), max(masses)))
        for inside in allowed[:4]:
            seen += 1
            mass = np.array([inside @ P])
            lift = one.build_columns(inside[None].astype(float))[:, 0]
            assert P @ lift == pytest.approx(1.0)
            assert lacking(name, lift) <= 1e-9
            mean = float(one.compute_means(mass)[0])
            if name != "plateaus":
                assert mean * lift.max() == pytest.approx(1.0)
            elif inside.any():
                assert mean * lift[inside] == pytest.approx(np.ones(inside.sum()))
            assert float(one.compute_values(mass)[0]) == pytest.approx(
                mean * entropy_of(lift), abs=1e-12
            )
            up, down = (float(one.compute_values(mass + step)[0]) for step in (1e-6, -1e-6))
            assert float(one.compute_slopes(mass)[0]) == pytest.approx((up - down) / 2e-6, abs=1e-6)
            paid = fixed[place] + each[place][inside].sum()
            assert paid == pytest.approx(mean * float(prices @ lift))
    assert seen > 5


@pytest.mark.parametrize("name", ["least mass", "parts", "plateaus"])
@pytest.mark.parametrize("seed", range(3))
def test_tangents_find_the_best_column_and_bound_all(name: str, seed: int) -> None:
    kinds = kinds_of(name)
    pricer = TangentPricer(kinds, KEEP, 1.0, 4.0)
    rho = (0.0, 0.2, 0.6)[seed] * np.random.default_rng(seed).normal(size=5)
    values = []
    for place in range(len(kinds)):
        one = kinds[np.array([place])]
        columns = (
            one.build_columns(inside[None].astype(float))[:, 0]
            for inside in allowed_sets(kinds, place)
        )
        values += [entropy_of(lift) - float((P * rho) @ lift) for lift in columns]
    best = max(values)
    relaxed = pricer.price_relaxed(rho, 0.0, 0.0)
    assert relaxed.upper_bound >= best - 1e-12
    assert P @ relaxed.lifts == pytest.approx(np.ones(relaxed.lifts.shape[1]))
    priced = pricer.price_columns(rho, 10, best - 0.01)
    assert priced.best_value == pytest.approx(best, abs=1e-9)
    assert priced.upper_bound == pytest.approx(best, abs=1e-9)
    [found] = priced.columns
    told = [entropy_of(lift) - float((P * rho) @ lift) for lift in found.build_lifts(P).T]
    assert max(told) == pytest.approx(best, abs=1e-9)
    assert min(told) > best - 0.01 - 1e-9
    assert pricer.price_columns(rho, 1, -math.inf).best_value == pytest.approx(best, abs=1e-9)
    if isinstance(
        kinds, PlateauKinds
    ):  # what is left holds the best, where it is worth more than flat columns
        flat = [inside for inside in sets_of(5) if inside @ P >= KEEP + 0.3]
        others = max(
            -math.log(inside @ P) - float((P * rho) @ inside) / float(inside @ P) for inside in flat
        )
        narrowed = pricer.keep_profitable(rho, others, others)
        assert len(narrowed.kinds) <= len(kinds)
        expected = best if best > others else -math.inf
        assert narrowed.price_columns(rho, 10, others).best_value == pytest.approx(
            expected, abs=1e-9
        )
        assert (
            max(others, narrowed.bound_reduced_values(rho, others)) >= best - 1e-9
        )  # whatever the multipliers are
        assert max(others, narrowed.price_relaxed(rho, others, 0.0).upper_bound) >= best - 1e-9


@pytest.mark.parametrize("seed", range(3))
def test_where_letters_are_dear_the_bound_is_that_of_the_least_mass(seed: int) -> None:
    """There the worth has no tangent to the left: a steeper line has the letters of the least mass."""
    kinds = kinds_of("plateaus")
    rho = 0.3 * np.random.default_rng(seed).normal(size=5) + seed
    values, _, shares, steeper = TangentPricer(kinds, KEEP, 1.0)._relax_kinds(rho, 0.0)
    fixed, each = kinds.compute_costs(P * rho)
    assert shares @ P == pytest.approx(kinds.mass_range[0])
    reached = kinds.compute_values(shares @ P) - fixed - (shares * each).sum(axis=1)
    assert values == pytest.approx(reached, abs=1e-12)
    assert (steeper > 0).all()


class Flat(ColumnPricer):
    """Knows what the best column is worth that is constant on a set and zero elsewhere."""

    name = "flat"

    def __init__(self, others: float) -> None:
        self.others = others

    def price_columns(
        self, rho: FloatArray, max_columns: int, cutoff: float, deadline: Deadline = NO_DEADLINE
    ) -> PricingResult[ColumnBatch]:
        return PricingResult(self.others, self.others, [])


@pytest.mark.parametrize("seed", range(2))
def test_a_bound_over_a_ball_is_above_each_plateau_whatever_would_be_enough(seed: int) -> None:
    kernel, cone = ColumnUtility(P, MutualInformation().phi), ColumnCone(L1Ball(P, 0.6), KEEP)
    rho = 0.2 * seed * np.random.default_rng(seed).normal(size=5) + (seed % 2)
    flat = [inside for inside in sets_of(5) if inside @ P >= KEEP + 0.3]
    others = max(
        -math.log(inside @ P) - float((P * rho) @ inside) / float(inside @ P) for inside in flat
    )
    kinds = kinds_of("plateaus")
    best = -math.inf
    for place in range(len(kinds)):
        one = kinds[np.array([place])]
        for inside in allowed_sets(kinds, place):
            lift = one.build_columns(inside[None].astype(float))[:, 0]
            best = max(best, entropy_of(lift) - float((P * rho) @ lift))
    pricer = BallPricer(
        Flat(others), SplitPricer(kernel, cone, build_split_families(cone)), math.inf, True
    )
    assert best > others + 1e-4
    for enough in (-math.inf, others - 0.1, others, (others + best) / 2, best + 0.1):
        assert best - 1e-9 <= pricer.bound_reduced_values(rho, enough) <= max(best, enough) + 1e-9
        priced = pricer.price_columns(rho, 5, enough)
        assert priced.upper_bound >= best - 1e-9
        assert others - 1e-9 <= priced.best_value <= best + 1e-9


def test_relaxed_columns_share_a_letter_where_the_tangent_touches() -> None:
    """The bound of a kind is reached by its relaxed column, but for the gap between both of its sets."""
    kinds = MinMassKinds.build(P, 0.08, KEEP)
    pricer = TangentPricer(kinds, KEEP, 1.0)
    rho = 0.1 * np.random.default_rng(3).normal(size=5)
    values, sets, shares, _ = pricer._relax_kinds(rho, 0.0)
    assert (shares >= 0).all()
    assert (shares <= 1).all()
    fixed, each = kinds.compute_costs(P * rho)
    mass = shares @ P
    reached = kinds.compute_values(mass) - fixed - (shares * each).sum(axis=1)
    assert values == pytest.approx(reached, abs=1e-9)
    assert shares.sum(axis=1) == pytest.approx(kinds.count)
    assert sets.sum(axis=1) == pytest.approx(kinds.count)


def plateau_bound(
    keep: float, half: float, rho: FloatArray, others: float, tolerance: float = 0.0
) -> float:
    """On a fine grid of the share c of the smaller set, by the two inequalities as they are printed."""
    light = half * (1 + tolerance) >= P
    mass, total = min(half, float(P[light].sum()) * (1 + tolerance)), keep + half
    most, rate = -math.log(total) - float(rho.min()), float(rho[light].min())
    values = [others]
    for c in np.linspace(1e-6, mass / (mass + keep) * (1 - 1e-6), 4000):
        inside = 1 - keep * c / (mass * (1 - c))
        other = min(others, most + math.log(inside)) if inside > 0 else -math.inf
        # A is at least as tall as its mass asks for, and as B asks for that is worth no more than the others
        tall = max(c / mass, (1 - c) * max(0.0, 1 - math.exp(min(others - most, 0.0))) / keep)
        top = min((1 - c + tall * half) / total, 1 / keep)
        values.append((1 - c) * other + c * (c + math.log(top) - rate))
    return max(values)


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("dear", [0.0, 2.0])
def test_the_bound_on_plateaus_is_the_largest_of_its_formula(seed: int, dear: float) -> None:
    """Where light letters are dear, too, and wherever all costs are counted from."""
    keep, half = 0.5, 0.12
    rho = 0.05 * np.random.default_rng(seed).normal(size=5) + dear * (half >= P)
    others = float(-math.log(keep + half) - rho.min()) - 0.4 * seed - 0.5 * dear
    expected = plateau_bound(keep, half, rho, others)
    for more in (0.0, 5.0):
        found = bound_plateaus(P, keep, half, rho + more, others - more, -math.inf)
        assert found == pytest.approx(expected - more, abs=1e-4)
    assert bound_plateaus(P, keep, 0.05, rho, others, -math.inf) == others  # no letter is as light
    assert bound_plateaus(P, 0.9, half, rho, others, -math.inf) == others  # no set is as large


def test_light_letters_and_their_mass_are_counted_up_to_a_tolerance(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """And the theorem on the information over a ball has its conditions met with as much to spare."""
    monkeypatch.setattr(ball_pricing, "CONDITION_RTOL", 0.1)
    rho, others = np.array([-1.5, 0.0, 0.1, 0.0, 0.3]), -2.0
    bound = bound_plateaus(P, 0.5, 0.115, rho, others, -math.inf)
    expected = plateau_bound(0.5, 0.115, rho, others, 0.1)
    assert expected - 1e-6 <= bound <= expected + 0.03  # cells that are as near are not halved
    few = bound_plateaus(P, 0.5, 0.105, rho, others, -math.inf)  # the first letter only is light
    alone = plateau_bound(0.5, 0.105, rho, others, 0.1)
    assert alone > plateau_bound(0.5, 0.09, rho, others, 0.2) + 1e-3
    assert alone - 1e-6 <= few <= alone + 0.03
    assert bound_ball_information(0.5, 0.2) == pytest.approx(-math.log(0.7))
    assert bound_ball_information(0.5, 0.31) == math.inf  # 1.93 of at most 2 - .1


# ---------------------------------------------------------------- relaxed columns of a split


def cones() -> list[ColumnCone]:
    return [ColumnCone(MinimumMass(5, 0.08), KEEP), ColumnCone(L1Ball(P, 0.3), KEEP)]


@pytest.mark.parametrize("place", range(2))
def test_multipliers_come_to_the_linear_program_of_a_point(place: int) -> None:
    """On a cell of one point the least bound over the multipliers is what a relaxed column is worth."""
    kernel, rho = (
        ColumnUtility(P, MutualInformation().phi),
        0.1 * np.random.default_rng(0).normal(size=5),
    )
    top, ratio = 1.5, 0.5
    for split in build_split_families(cones()[place]):
        found = solve_relaxed_column(kernel, split, rho, top, top * ratio)
        if found is None:
            continue
        column, worth = found
        assert P @ column == pytest.approx(1.0)
        assert column.max() <= top + 1e-7
        relaxation = SplitRelaxation(kernel, split, rho)
        cell = np.array([[top, top, ratio, ratio]])
        start = np.zeros((1, relaxation.dimension))
        [bound], dual = relaxation.minimize_bounds(cell, start, np.array([4.0]), 150, -math.inf)
        least = worth - float((P * rho) @ column)
        assert least - 1e-9 <= bound <= least + 1e-5
        # the slopes are those of the bound
        corners = np.array([[[top, top * ratio]]])
        dual = dual + np.random.default_rng(1).uniform(0.1, 0.2, dual.shape)
        values, worths, points = relaxation.evaluate_corners(corners, dual)
        [slope] = relaxation.compute_slopes(corners, worths, points, np.array([0]))
        for direction, unit in zip(slope, np.eye(relaxation.dimension), strict=True):
            moved = relaxation.evaluate_corners(corners, dual + 1e-6 * unit)[0] - values
            assert float(moved[0, 0]) / 1e-6 == pytest.approx(direction, abs=1e-5)


@pytest.mark.parametrize("size", [2, 3])
def test_a_cut_keeps_the_part_of_the_ellipsoid_that_may_hold_the_optimum(size: int) -> None:
    random = np.random.default_rng(size)
    root = random.normal(size=(size, size))
    shape, centre = root @ root.T, random.normal(size=size)
    slope = random.normal(size=size)
    for depth in (0.0, 0.2 * math.sqrt(slope @ shape @ slope)):
        (moved, new), going = split_pricing._cut_ellipsoid(
            centre[None], shape[None], slope[None], np.array([depth])
        )
        assert going.all()
        assert np.linalg.det(new[0]) < np.linalg.det(shape) * (1 - 1e-3)
        directions = random.normal(size=(200, size))
        edge = (
            centre
            + directions / np.linalg.norm(directions, axis=1)[:, None] @ np.linalg.cholesky(shape).T
        )
        kept = edge[(edge - centre) @ slope <= -depth]
        away = kept - moved[0]
        assert ((away @ np.linalg.inv(new[0])) * away).sum(axis=1).max() <= 1 + 1e-9


def test_cells_close_in_on_the_best_relaxed_column(monkeypatch: pytest.MonkeyPatch) -> None:
    """From above, and within the digits of what a grid of points reaches."""
    monkeypatch.setattr(split_pricing, "FIRST_CELLS_PER_SIDE", 3)
    kernel, rho = (
        ColumnUtility(P, MutualInformation().phi),
        0.1 * np.random.default_rng(4).normal(size=5),
    )
    cone = cones()[0]
    largest = float(ChordBound(kernel, cone).caps.max())
    [split] = build_split_families(cone)
    cells = split_pricing._CellRefinement(kernel, split, rho, largest)
    bound = cells.refine(-math.inf, 0.05)
    grid = []
    for top, ratio in itertools.product(np.linspace(1.0, largest, 7), (0.0, 0.5, 1.0)):
        found = solve_relaxed_column(kernel, split, rho, float(top), float(top * ratio))
        if found is not None:
            grid.append(found[1] - float((P * rho) @ found[0]))
    assert max(grid) - 1e-9 <= bound <= max(grid) + 0.1
    peaks = cells.list_peaks(3)
    assert all(1.0 <= top <= largest * (1 + 1e-9) and 0 <= mid <= top for top, mid in peaks)
    assert all(
        abs(a - c) + abs(b - d) > 1e-3 for (a, b), (c, d) in itertools.combinations(peaks, 2)
    )


def test_the_largest_entries_and_the_chords_bound_every_column() -> None:
    """The caps are those of linear programs; the closed bound is above each listed column, and not far."""
    kernel = ColumnUtility(P, MutualInformation().phi)
    for cone in cones():
        listed = cone.extreme_columns(P, 10**5)
        assert listed is not None
        chords = ChordBound(kernel, cone)
        assert chords.caps == pytest.approx(listed.max(axis=1), rel=1e-7)
        for seed in range(3):
            rho = 0.2 * np.random.default_rng(seed).normal(size=5)
            best = max(entropy_of(lift) - float((P * rho) @ lift) for lift in listed.T)
            assert best - 1e-9 <= chords.compute_bound(rho) <= best + 0.3
        assert chords.compute_bound(chords.slopes) <= chords.compute_bound(
            chords.slopes + 0.01 * np.array([1, -1, 1, -1, 1])
        )


def test_halves_neighbours_and_prefixes() -> None:
    cells = np.array([[1.0, 2.0, 0.0, 0.1], [1.0, 1.1, 0.2, 0.8]])
    assert split_pricing._halve_cells(cells) == pytest.approx(
        np.array(
            [[1.0, 1.5, 0.0, 0.1], [1.0, 1.1, 0.2, 0.5], [1.5, 2.0, 0.0, 0.1], [1.0, 1.1, 0.5, 0.8]]
        )
    )
    assert split_pricing._list_corners(cells)[0] == pytest.approx(
        np.array([[1.0, 0.0], [2.0, 0.0], [1.0, 0.1], [2.0, 0.2]])
    )
    state = np.array([2, 1, 0])
    inner, outer = split_pricing._list_neighbours(np.array([3.0, 1.0, 0.0]))
    found = {tuple(row) for row in (2 * inner + outer).tolist()}
    moved = {
        tuple(np.where(np.arange(3) == at, value, state).tolist())
        for at in range(3)
        for value in range(3)
    } - {tuple(state.tolist())}
    swapped = {(1, 2, 0), (0, 1, 2), (2, 0, 1)}
    assert found == moved | swapped
    inner, outer = split_pricing._list_nested_prefixes(np.array([2, 0, 1]))
    pairs = {
        (frozenset(np.flatnonzero(a).tolist()), frozenset(np.flatnonzero(b).tolist()))
        for a, b in zip(inner, outer, strict=True)
    }
    order = [2, 0, 1]
    assert pairs == {
        (frozenset(order[:i]), frozenset(order[i:j]))
        for i, j in itertools.combinations(range(4), 2)
    }


# ---------------------------------------------------------------- knapsacks and random sets


@pytest.mark.parametrize("distance", [1e-3, 0.01, 0.05])
def test_windows_hold_the_masses_that_a_letter_between_may_have(distance: float) -> None:
    """Of each letter: those at which it takes off no more than the budget, next to empty or next to full."""
    kernel, box = ColumnUtility(P, MutualInformation().phi), BoxFamily(0.5, 1.8)
    rho = 0.1 * np.random.default_rng(0).normal(size=5)
    knapsack = FractionalKnapsack(kernel, box, rho)
    upper = (
        kernel.evaluate_phi(0.5)
        - 0.5 * float(P @ rho)
        + float(knapsack.fill_mass(0, np.array([0.5]))[0])
    )
    letters = _LetterBudgets(kernel, box, rho, upper - distance)
    assert letters.budget == pytest.approx(distance)
    gain, room = kernel.chord_slopes(box) - rho, P * (kernel.max_entries(box) - 0.5)
    edge = next(g for g in sorted(gain, reverse=True) if room[gain >= g].sum() >= 0.5)
    assert letters.lost == pytest.approx(room * np.abs(gain - edge))
    for share in np.linspace(0.0, 1.0, 41):
        rest = share * room
        chord = kernel.evaluate_phi(0.5) + kernel.chord_slopes(box) * rest / P
        loss = P * (chord - kernel.phi(0.5 + rest / P))
        away = np.where(gain > edge, room - rest, rest)
        expected = loss + away * np.abs(gain - edge)
        assert letters.compute_shortfall(rest) == pytest.approx(expected, abs=1e-12)
        inside = (rest <= letters.below) | (room - rest <= letters.above)
        clear = np.abs(expected - distance) > 1e-9
        assert (inside == (expected <= distance))[clear].all()


def test_a_fractional_knapsack_is_a_linear_program() -> None:
    kernel, box = ColumnUtility(P, MutualInformation().phi), BoxFamily(0.5, 1.8)
    rho = 0.3 * np.random.default_rng(0).normal(size=5)
    knapsack = FractionalKnapsack(kernel, box, rho)
    gain, room = kernel.chord_slopes(box) - rho, P * (kernel.max_entries(box) - box.low)
    masses = np.linspace(0.0, float(room.sum()), 6)
    for start in range(5):
        rest = knapsack.order[start:]
        found = knapsack.fill_mass(start, masses)
        for mass, value in zip(masses, found, strict=True):
            if mass > room[rest].sum() + 1e-9:
                assert value == -math.inf
                continue
            answer = linear_program(
                -gain[rest], A_eq=np.ones((1, len(rest))), b_eq=[mass],
                bounds=[(0.0, most) for most in room[rest]],
            )  # fmt: skip
            assert value == pytest.approx(-answer.fun, abs=1e-9)


@pytest.mark.parametrize("edge", [None, 0.05])
def test_staircases_are_bounded_by_their_mass_alone(edge: float | None) -> None:
    """Never below a set of letters, and the window of masses holds each that is worth more than enough."""
    kernel, family = ColumnUtility(P, MutualInformation().phi), StaircaseFamily(1.9, 0.6)
    rho = 0.2 * np.random.default_rng(2).normal(size=5)
    values = {}
    for inside in sets_of(5):
        mass = float(inside @ P)
        if 0 < mass < family.max_mass:
            low, step, _ = (
                float(part[0]) for part in family.compute_values(np.array([mass]), np.zeros(1))
            )
            lift = np.asarray(low + step * inside, dtype=np.float64)
            values[mass] = entropy_of(lift) - float((P * rho) @ lift)
    best = max(values.values())
    upper, *_ = bound_staircases(kernel, family, rho, edge=edge)
    assert best - 1e-9 <= upper <= best + 0.2
    enough = sorted(values.values())[-4]
    bound, low, high = bound_staircases(kernel, family, rho, enough, edge)
    assert bound >= best - 1e-9
    assert all(
        low - 1e-9 <= mass <= high + 1e-9 for mass, value in values.items() if value > enough + 1e-9
    )


def test_random_sets_are_filled_up_to_their_mass() -> None:
    random = np.random.default_rng(0)
    p = random.dirichlet(np.full(60, 2.0))
    box = BoxFamily(0.0, 2.2)
    found = build_columns_near_capacity(box, p, 8, np.random.default_rng(1))
    assert found is not None
    assert len(found) == 8
    lifts = found.build_lifts(p)
    assert p @ lifts == pytest.approx(np.ones(8))
    lost = [math.log(2.2) - entropy_of(np.asarray(lift, dtype=np.float64), p) for lift in lifts.T]
    assert max(lost) < 1e-6  # of 2^30 subsets the best is over by next to nothing
    light = build_columns_near_capacity(box, np.full(6, 1 / 6), 3, np.random.default_rng(1))
    assert light is not None
    assert (light.high.sum(axis=1) == 2).all()  # 2.7 letters: two, and one between


def test_a_core_has_the_subsets_of_a_mass() -> None:
    p = np.array([1.0, 2.0, 3.0, 4.0, 5.0, 7.0])
    core = SubsetCore(p, np.arange(6))
    assert core.mass == 22.0
    sums = sorted(float(p[inside].sum()) for inside in sets_of(6))
    for limit in (0.5, 6.0, 10.5, 21.0):
        [best] = core.list_covering_subsets(limit, 1)
        assert p[best].sum() == min(mass for mass in sums if mass >= limit)
    for mass in (3.0, 10.0, 22.0):
        seen = {
            tuple(np.flatnonzero(core.draw_subsets_of_mass(mass, np.random.default_rng(seed))[0]))
            for seed in range(60)
        }
        assert seen == {
            tuple(np.flatnonzero(inside)) for inside in sets_of(6) if p[inside].sum() == mass
        }
    assert len(core.draw_subsets_of_mass(22.5, np.random.default_rng(0))) == 0
    sizes: list[float] = []

    def rest(part: SubsetCore, missing: float) -> BoolArray:
        assert part.mass == 12.0
        sizes.append(missing)
        return part.list_covering_subsets(missing, 1)

    masses = np.full(40, 1.0)
    found = build_random_sets(
        masses, np.arange(40), 16.0, (6, 3), 12, rest, np.random.default_rng(0)
    )
    assert (found @ masses == 16.0).all()
    assert len(found) == 6
    assert all(0 <= missing <= 12 for missing in sizes)
    assert 2 <= np.mean(sizes) <= 8  # of the core about the share that is wanted of all


def test_a_bound_has_its_rounding_added(monkeypatch: pytest.MonkeyPatch) -> None:
    """What is looked for is as much below what would be enough, and both ways of bounding add it."""
    space = design(Prior(P), PML(0.7), MutualInformation()).space
    rho = 0.1 * np.random.default_rng(0).normal(size=5)
    base, asked = float(P @ rho), []

    class Seen(Flat):
        def bound_reduced_values(
            self, rho: FloatArray, cutoff: float, deadline: Deadline = NO_DEADLINE
        ) -> float:
            asked.append(cutoff)
            return self.others

    monkeypatch.setattr(type(space), "bound_rounding", lambda self, multipliers: 0.25)
    monkeypatch.setattr(type(space), "choose_pricer", lambda self: Seen(0.4))
    monkeypatch.setattr(type(space), "_rough_bound", lambda self, multipliers: 0.7)
    bounds = [
        space.compute_bound(rho, math.inf, None),
        space.compute_bound(rho, 0.5, None),
        space.compute_bound(rho, 0.5, 0.3),
    ]
    assert [way for _, way in bounds] == ["relaxed", "flat", "flat"]
    assert asked == [pytest.approx(0.5 - base - 0.25)]
    assert [bound for bound, _ in bounds] == pytest.approx(
        [base + 0.7 + 0.25, base + 0.4 + 0.25, 0.3 + 0.25]
    )
