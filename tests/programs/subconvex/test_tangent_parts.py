"""The parts of the pricing by tangents: where they touch, in which order, and what rounding may take off."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest

from pmlopt.model.uncertainty import MinimumMass
from pmlopt.model.uncertainty.columns import ColumnCone
from pmlopt.programs.subconvex import tangents
from pmlopt.programs.subconvex.column_kinds import MinMassKinds, PlateauKinds
from pmlopt.programs.subconvex.columns import DenseBatch
from pmlopt.programs.subconvex.tangents import TangentPricer, _order_by_clarity, _SetSearch

P = np.array([0.1, 0.12, 0.18, 0.25, 0.35])
KEEP = 0.55
OFFSETS = np.array([0.0, -1.0, -0.5, 0.5, 1.0])


@pytest.mark.parametrize("budget", [1e-4, 0.02, 3.0])
@pytest.mark.parametrize("mass", [0.2, 0.6])
def test_tangents_touch_up_to_where_the_worth_is_the_budget_below_the_one_in_the_middle(
    budget: float, mass: float
) -> None:
    """By the second derivative `-(1 - r)^2 / D` of the worth, and within the masses that sets have."""
    kinds = MinMassKinds.build(P, 0.08, KEEP)[np.array([1])]
    search = _SetSearch(kinds, np.zeros(5), mass, budget, 0.0)
    r = (KEEP - 2 * 0.08) / (1 - 2 * 0.08)
    spread = math.sqrt(2 * budget / ((1 - r) ** 2 / (r + (1 - r) * mass)))
    least = 0.1 + 0.12  # of two letters
    lowest = max(1e-3 * mass, min(least, mass))
    expected = np.clip(mass + spread * OFFSETS, lowest, 0.9 + 0.1 * mass)
    assert search._touching == pytest.approx(expected, rel=1e-4)
    assert search._slopes == pytest.approx(kinds.compute_slopes(search._touching))


def test_lines_at_the_least_mass_are_steeper_by_up_to_twice_as_much() -> None:
    kinds = MinMassKinds.build(P, 0.08, KEEP)[np.array([1])]
    search = _SetSearch(kinds, np.zeros(5), 0.1, 0.02, 0.3)
    assert search._touching == pytest.approx(np.full(5, 0.22))
    slope = float(kinds.compute_slopes(np.array([0.22]))[0])
    assert search._slopes == pytest.approx(slope + 0.3 * np.array([1.0, 0.0, 0.5, 1.5, 2.0]))


def test_letters_come_by_their_distance_from_the_edge_between_the_best_set_and_the_others() -> None:
    gains = np.array([0.9, 0.12, 0.45, -0.6, 0.31, 9.0])
    letters = np.arange(5)
    # of two letters, .9 and .45, the edge is at .38, and of four at -.24: as far from both next to it
    for count, clear, next_to in ((2, [3, 0, 1], {2, 4}), (4, [0, 2, 4], {1, 3})):
        order = _order_by_clarity(letters, gains, count).tolist()
        assert (order[:3], set(order[3:])) == (clear, next_to)
    # of all it is at the last, and of any number at 0
    assert _order_by_clarity(letters, gains, 5).tolist() == [0, 2, 4, 1, 3]
    assert _order_by_clarity(letters, gains, None).tolist() == [0, 3, 2, 4, 1]


@pytest.mark.parametrize("tolerance", [1e-12, 0.15])
def test_sets_have_the_masses_of_their_kind_up_to_a_tolerance(
    monkeypatch: pytest.MonkeyPatch, tolerance: float
) -> None:
    monkeypatch.setattr(tangents, "MASS_SUM_TOLERANCE", tolerance)
    kinds = PlateauKinds.build(P, 0.4, 0.3)
    assert kinds is not None
    for place in range(len(kinds)):
        own = float(kinds.own[place])
        search = _SetSearch(kinds[np.array([place])], -9 * P, 0.6, 1.0, 0.0)
        search.run(100)  # every set gains
        expected = [
            bits
            for bits in itertools.product([False, True], repeat=5)
            if not (np.array(bits) & ~kinds.free[place]).any()
            and P[list(bits)].sum() >= (0.4 + 0.3 - own) * (1 - tolerance) - 1e-12
        ]
        assert sorted(map(tuple, search.sets.tolist())) == sorted(expected)


def test_columns_that_are_raised_by_a_margin_keep_the_factor_with_that_margin() -> None:
    """With equality: r has `(1 - k m)(1 - r) = 1 - keep`, whatever the count k is."""
    pricer = TangentPricer.for_min_mass(P, 0.08, KEEP)
    sets = np.tri(4, 5)  # of one letter up to four
    assert sets.sum(axis=1).tolist() == pricer.kinds.count.tolist()  # type: ignore[union-attr]
    batch = DenseBatch(pricer.kinds.build_columns(sets), True, pricer.margins)
    raised = batch.build_lifts(P, 1e-3)
    least = ColumnCone(MinimumMass(5, 0.08), KEEP).priors.min_mean(raised)
    assert least == pytest.approx(KEEP * (1 + 1e-3) * raised.max(axis=0), rel=1e-12)


@pytest.mark.parametrize("size", [0.0, 1.0, 30.0])
@pytest.mark.parametrize("pricer", [
    TangentPricer.for_min_mass(P, 0.001, 0.02), TangentPricer.for_min_mass(P, 0.001, 0.6),
    TangentPricer.for_plateaus(P, 0.16, 0.3),
])  # fmt: skip
def test_the_rounding_is_of_the_size_of_what_values_and_costs_add_up(
    monkeypatch: pytest.MonkeyPatch, size: float, pricer: TangentPricer
) -> None:
    """The entropies of a column and of its mean, and what the height of a plateau costs."""
    monkeypatch.setattr(tangents, "bound_sum_rounding", lambda terms, size: size)
    rho = size * np.array([1.0, -1.0, 1.0, 1.0, -0.5])
    kinds = pricer.kinds
    for mass in kinds.mass_range:
        mean = kinds.compute_means(mass)
        inner = kinds.compute_values(mass) + mean * np.log(mean)  # of the entries but the mean
        entropies = np.abs(inner) + np.abs(mean * np.log(mean))
        fixed, each = kinds.compute_costs(P * np.abs(rho))
        spent = np.abs(fixed) + np.abs(each / P).max(axis=1) * mass
        assert ((entropies + spent) / mean).max() <= pricer._bound_rounding(rho)


# ---------------------------------------------------------------- kinds


def test_kinds_with_a_letter_in_part_and_others_low_are_what_their_columns_are() -> None:
    """With all three values at once, which no extreme column has."""
    free = ~np.eye(5, dtype=bool)[[1, 3]]
    low, part, own = np.array([0.3, 0.1]), np.array([0.6, 0.8]), P[[1, 3]]
    kinds = MinMassKinds(P, free, np.array([2, 2]), low, part, own)
    sets = np.array([[1, 0, 0, 0, 1], [0, 1, 1, 0, 0]], dtype=float)
    mass, prices = sets @ P, np.array([0.2, -0.1, 0.3, 0.5, -0.4])
    entries = [
        np.where(inside > 0, 1.0, np.where(may, r, f))
        for inside, may, r, f in zip(sets, free, low, part, strict=True)
    ]
    means = np.array([P @ v for v in entries])
    assert kinds.compute_means(mass) == pytest.approx(means)
    inner = np.array([P @ (v * np.log(v)) for v in entries])
    assert kinds.compute_values(mass) == pytest.approx(inner - means * np.log(means))
    fixed, each = kinds.compute_costs(prices)
    spent = fixed + (each * sets).sum(axis=1)
    assert spent == pytest.approx([prices @ v for v in entries])


def test_plateaus_are_on_every_set_lighter_than_half_of_the_radius() -> None:
    kinds = PlateauKinds.build(P, 0.4, 0.3)
    assert kinds is not None
    sets = [
        bits
        for bits in itertools.product([False, True], repeat=5)
        if 0 < P[list(bits)].sum() < 0.3 - 1e-12
    ]
    assert sorted(map(tuple, (~kinds.free).tolist())) == sorted(sets)
    own = (~kinds.free) @ P
    assert kinds.own == pytest.approx(own)
    assert kinds.mass_range[0] == pytest.approx(0.7 - own)
    assert kinds.mass_range[1] == pytest.approx(1 - own)


@pytest.mark.parametrize("cutoff", [-0.1, 0.05])
def test_plateaus_are_kept_where_the_bound_by_their_union_is_above_what_is_wanted(
    cutoff: float,
) -> None:
    """By the printed formula on a grid of masses, at multipliers that make A cheap or dear."""
    kinds = PlateauKinds.build(P, 0.5, 0.3)
    assert kinds is not None
    rho, others = np.array([-0.6, 0.4, 0.1, 0.0, 0.2]), 0.1
    kept = kinds.keep_profitable(rho, others, cutoff, 0.0)
    place = 0
    for one in range(len(kinds)):
        inside = ~kinds.free[one]
        own = float(P[inside].sum())
        cost = float((P * (rho + cutoff))[inside].sum())
        masses = np.linspace(0.8 - own, 1 - own, 4001)
        height = (own + masses - 0.3) / 0.5
        mean = own * height + masses
        union = own + masses
        bound = (
            own * height * np.log(height) - mean * np.log(mean)
            + union * (np.log(union) + others - cutoff) - (height - 1) * cost
        )  # fmt: skip
        if bound.max() <= 1e-9:
            continue
        assert (kept.free[place] == kinds.free[one]).all()
        assert kept.limits[place] == pytest.approx(bound.max(), abs=1e-6)
        above = masses[bound > 0]
        assert kept.min_mass[place] == pytest.approx(above[0], abs=1e-3)
        assert kept.max_mass[place] == pytest.approx(above[-1], abs=1e-3)
        place += 1
    assert 0 < place == len(kept)
