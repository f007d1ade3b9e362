"""Sets of letters by counts and by search: on which side of a capacity they are, and what fills it."""

from __future__ import annotations

import itertools
import math
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from pmlopt.model.uncertainty.columns import BoxFamily, StaircaseFamily
from pmlopt.model.utility import MutualInformation
from pmlopt.programs.subconvex import count_pricing, search_pricing
from pmlopt.programs.subconvex.columns import ColumnUtility
from pmlopt.programs.subconvex.count_pricing import CountPricer, _CountKinds, mix_least_loss
from pmlopt.programs.subconvex.search_pricing import SearchPricer, _LetterBudgets

P = np.array([0.1, 0.12, 0.18, 0.25, 0.35])
PHI = MutualInformation().phi


@pytest.mark.parametrize("seed", [3, 5, 34])
def test_sets_of_counts_and_the_letter_between_fill_the_capacity(seed: int) -> None:
    """The column is then within its box, and its mean is one without a letter being scaled."""
    random = np.random.default_rng(seed)
    counts = random.integers(1, 9, 6).tolist()
    p = np.array(counts) / sum(counts)
    box = BoxFamily(0.3, 1.0 + 1.5 * float(random.random()))
    found = mix_least_loss(ColumnUtility(p, PHI), box, counts, 30, random)
    assert found is not None
    columns = found[0]
    mass = (columns.high * p).sum(axis=1)
    extra = (box.max_mass - mass) * (box.high - box.low) / p[columns.between]
    assert (extra >= -1e-9).all()
    assert (extra <= box.high - box.low + 1e-9).all()


def test_a_capacity_that_is_whole_but_for_rounding_is_whole() -> None:
    counts = np.array([2, 3, 1, 4])
    kernel = ColumnUtility(counts / 10, np.square)
    for limit in (5.0, 5.0 - 1e-12, 5.0 + 1e-12):
        found = _CountKinds(kernel, BoxFamily(0.4, 1.6), counts, np.arange(4), limit)
        assert found.inside.tolist() == [5, 5, 5, 5, *(5 - counts + 1)]
        assert found.share[:4] == pytest.approx(np.zeros(4), abs=1e-9)


@pytest.mark.parametrize(("total", "affordable"), [(49_000_000, True), (51_000_000, False)])
def test_a_round_by_counts_takes_a_table_for_each_letter_and_halving(
    total: int, affordable: bool
) -> None:
    """Half of the total long, and two times two of them for two letters: at most 1e8 entries."""
    counts = [total // 2 - 1, total // 2 + 1]
    divisor = math.gcd(*counts)
    counts = [count + (place if divisor > 1 else 0) for place, count in enumerate(counts)]
    assert CountPricer.is_affordable([BoxFamily(0.0, 2.0)], counts) is affordable


def test_staircases_by_counts_stay_below_the_capacity() -> None:
    """At which their lower value is zero: here half of all counts."""
    counts = [1, 2, 3, 4]
    kernel = ColumnUtility(np.array(counts) / 10, PHI)
    family = StaircaseFamily(2.0, 0.5)
    found = CountPricer(kernel, [family], counts).price_columns(-np.ones(4), 15, -math.inf)
    masses = [float((part.high * kernel.p).sum(axis=1).max()) for part in found.columns]
    assert max(masses) == pytest.approx(0.4)


def test_prices_of_letters_are_those_of_the_one_row_that_binds(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    counts = np.array([2, 3, 1, 4])
    kernel = ColumnUtility(counts / 10, np.square)
    kinds = _CountKinds(kernel, BoxFamily(0.4, 1.6), counts, np.arange(4), 5.4)
    marginals = np.array([-0.3, 0.0, -1e-15, 0.0, 0.0, -0.2, 0.0, -1e-15])
    solved = SimpleNamespace(
        success=True, x=np.ones(8), ineqlin=SimpleNamespace(marginals=marginals)
    )
    monkeypatch.setattr(count_pricing, "optimize", SimpleNamespace(linprog=lambda *_, **__: solved))
    scale = float(kinds.loss.max())
    assert kinds.solve_mixture(0.5)[1] == pytest.approx(scale * np.array([0.3, -0.2, 0.0, 0.0]))


# ---------------------------------------------------------------- search


def budgets_of(threshold: float = -0.5) -> Any:
    kernel, box = ColumnUtility(P, PHI), BoxFamily(0.2, 1.7)
    rho = np.array([0.05, -0.1, 0.02, 0.1, -0.04])
    return _LetterBudgets(kernel, box, rho, threshold), kernel, box, rho


def test_what_a_letter_in_the_wrong_set_takes_off_is_its_distance_to_the_edge() -> None:
    """The edge is the gain of the letter at which the sack, filled by gain, is full."""
    letters, kernel, box, rho = budgets_of()
    gain = kernel.chord_slopes(box) - rho
    room = P * (kernel.max_entries(box) - box.low)
    left, edge = 1 - box.low, 0.0
    for x in np.argsort(-gain):
        edge, left = float(gain[x]), left - room[x]
        if left <= 0:
            break
    assert letters.lost == pytest.approx(room * np.abs(gain - edge))
    assert letters.inside.tolist() == (gain > edge).tolist()
    everything = BoxFamily(
        0.0, 1.0 - 1e-15
    )  # all letters fill it but for rounding: the last is the edge
    full = _LetterBudgets(kernel, everything, rho, -0.5)
    assert full.lost.min() == 0.0


@pytest.mark.parametrize("dearest", range(5))
def test_the_masses_of_a_letter_between_are_those_within_its_budget(
    dearest: int,
) -> None:
    """From empty on up to `below`, and from full on down by `above`; on a grid of shares of the letter.

    The budget is a share of the most that one of the letters may take off.
    """
    letters, *_ = budgets_of()
    shares = np.linspace(0, 1, 101)
    short = np.array([letters.compute_shortfall(part * letters.room) for part in shares])
    budget = 0.97 * float(short[:, dearest].max())
    letters, *_ = budgets_of(letters.threshold + letters.budget - budget)
    assert letters.budget == pytest.approx(budget)
    within = short <= budget
    for x, room in enumerate(letters.room.tolist()):
        if within[:, x].all():
            assert letters.below[x] == letters.above[x] == room
            continue
        first = shares[within[:, x].argmin()] * room if within[0, x] else -1.0
        last = shares[within[::-1, x].argmin()] * room if within[-1, x] else -1.0
        assert letters.below[x] == pytest.approx(first, abs=2e-2 * room)
        assert letters.above[x] == pytest.approx(last, abs=2e-2 * room)


def pricer_of(p: Any = P) -> SearchPricer:
    return SearchPricer(ColumnUtility(p, PHI), [BoxFamily(0.0, 2.0)])


def test_a_letter_of_the_capacity_may_be_high_and_a_heavier_one_is_between() -> None:
    """Half of the mass is the capacity here."""
    p = np.array([np.nextafter(0.5, 1), 0.3, 0.2])
    family = BoxFamily(0.0, 2.0)
    rho = np.array([-5.0, 0.0, 0.0])
    _, columns = pricer_of(p)._search_core(family, rho, np.arange(3), 10)
    assert columns.high[:, 0].any()
    assert not columns.high[:, 0].all()


@pytest.mark.parametrize("share", [0.25, 0.5])
def test_columns_of_a_core_fill_the_mean_by_the_letter_between(share: float) -> None:
    """By brute force over all sets and letters between."""
    box = BoxFamily(share, 1.9)
    kernel = ColumnUtility(P, PHI)
    rho = np.array([0.3, -0.2, 0.1, -0.1, 0.05])
    best = -math.inf
    for bits, between in itertools.product(itertools.product([0, 1], repeat=5), range(5)):
        high = np.array(bits, dtype=bool)
        lift = np.where(high, 1.9, share)
        if high[between]:
            continue
        lift[between] += (1 - float(P @ lift)) / P[between]
        if share - 1e-12 <= lift[between] <= 1.9 + 1e-12:
            best = max(best, float(P @ PHI(lift)) - float((P * rho) @ lift))
    value, columns = SearchPricer(kernel, [box])._search_core(box, rho, np.argsort(rho), 10)
    assert value == pytest.approx(best)
    lifts = columns.build_lifts(P)
    worth = kernel.column_values(lifts) - (P * rho) @ lifts
    assert worth.max() == pytest.approx(best)


def test_the_best_staircase_of_an_order_ends_at_a_letter_within_the_capacity(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Strictly, beyond a tolerance that can be seen here; its letters are counted."""
    family = StaircaseFamily(1 / 0.62, 0.3)
    order = np.array([0, 1, 2, 3, 4])  # masses .1, .22, .40, .65
    pricer = SearchPricer(ColumnUtility(P, PHI), [family])
    rho = np.array([-3.0, -2.0, -1.0, 0.0, 0.0])
    values = []
    for count in (1, 2, 3):
        mass = float(P[:count].sum())
        low, step, _ = family.compute_values(np.array([mass]), np.zeros(1))
        lift = np.where(np.arange(5) < count, low[0] + step[0], low[0])
        values.append(float(P @ PHI(lift)) - float((P * rho) @ lift))
    expected = int(np.argmax(values)) + 1
    assert pricer._find_order_cutoff(family, rho, order) == expected == 3
    monkeypatch.setattr(search_pricing, "CAPACITY_RTOL", 0.1)
    wide = StaircaseFamily(1 / 0.42, 0.3)  # of which .378 is left, and .4 is within .42
    assert pricer._find_order_cutoff(wide, rho, order) == 2
    masses = np.array([0.0, 0.22, 0.4, 0.65])
    costs = -masses
    _, inside = pricer._search_staircases(wide, rho, masses, costs, 10)
    assert inside.tolist() == [1]
