"""Columns by counts at multipliers at which none is better, and what certificates leave of a gap."""

from __future__ import annotations

import itertools
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from pmlopt import PML, MutualInformation, Prior, design
from pmlopt.model.uncertainty.columns import BoxFamily, StaircaseFamily
from pmlopt.programs.subconvex.column_spaces import ColumnSpace
from pmlopt.programs.subconvex.columns import ColumnUtility
from pmlopt.programs.subconvex.count_pricing import CountPricer, mix_least_loss
from pmlopt.programs.subconvex.methods import certify_columns
from pmlopt.programs.subconvex.program import ColumnDesign
from pmlopt.solvers.solver_result import FACTOR_MARGIN_RTOL


def test_columns_that_lose_least_are_worth_the_same_at_their_multipliers() -> None:
    """With the column of a letter above the capacity, of 38/3 counts, that is high alone."""
    counts = np.array([3, 4, 5, 6, 20])
    kernel, box = ColumnUtility(counts / 38, MutualInformation().phi), BoxFamily(0.4, 2.2)
    found = mix_least_loss(kernel, box, counts.tolist(), 12, np.random.default_rng(0))
    assert found is not None
    columns, rho = found
    own = np.full(5, 0.4)
    own[4] += 0.6 / kernel.p[4]
    lifts = np.column_stack([columns.build_lifts(kernel.p), own])
    assert kernel.p @ lifts == pytest.approx(np.ones(lifts.shape[1]))
    worths = kernel.column_values(lifts) - (kernel.p * rho) @ lifts
    assert worths == pytest.approx(np.full(len(worths), worths[0]), abs=1e-9)


@pytest.mark.parametrize("family", [StaircaseFamily(1.9, 0.6), StaircaseFamily(0.0, 2.0)])
def test_the_best_staircases_by_counts_are_those_of_brute_force(family: StaircaseFamily) -> None:
    counts = np.array([1, 2, 2, 3, 5])
    kernel = ColumnUtility(counts / 13, MutualInformation().phi)
    rho = 0.3 * np.random.default_rng(3).normal(size=5)
    priced = CountPricer(kernel, [family], counts.tolist()).price_columns(rho, 4, -np.inf)
    worths: dict[int, float] = {}
    for bits in itertools.product([False, True], repeat=5):
        mass = float(kernel.p[list(bits)].sum())
        if 0 < mass < min(family.max_mass, 1.0):
            low = (1 - family.base * mass) / (1 - mass + family.slope * mass)
            lift = np.where(bits, family.base + family.slope * low, low)
            worth = float(kernel.column_values(lift[:, None])[0] - (kernel.p * rho) @ lift)
            total = int(counts[list(bits)].sum())
            worths[total] = max(worth, worths.get(total, -np.inf))
    best = sorted(worths.values(), reverse=True)[:4]  # the best set of each total
    [columns] = priced.columns
    lifts = columns.build_lifts(kernel.p)
    found = kernel.column_values(lifts) - (kernel.p * rho) @ lifts
    assert found == pytest.approx(best)
    assert priced.best_value == pytest.approx(best[0])


@pytest.mark.parametrize(("gap", "calls"), [(0.9, 1), (1.1, 2)])
def test_a_bound_is_sought_within_the_allowed_gap_and_else_in_closed_form(
    monkeypatch: pytest.MonkeyPatch, gap: float, calls: int
) -> None:
    """But for a twentieth of the gap, which is left to what rounding adds."""
    program = design([0.5, 0.3, 0.2], PML(0.5), MutualInformation())
    matrix = np.full((3, 2), 0.5) + np.array([[0.05, -0.05], [0.0, 0.0], [-0.05, 0.05]])
    value = program.utility.value(program.prior, matrix)
    asked: list[float] = []

    def compute_bound(self: Any, rho: Any, cutoff: float, *_: Any) -> tuple[float, str]:
        asked.append(cutoff)
        return value + 0.01 * gap, "given"

    monkeypatch.setattr(ColumnSpace, "compute_bound", compute_bound)
    found = certify_columns(program, matrix, np.zeros(3), 0.01)
    assert found.bound == pytest.approx(value + 0.01 * gap)
    assert asked == pytest.approx([value + 0.0095, np.inf][:calls])
    assert found.residuals["rows"] < 1e-12


def test_the_gap_of_rounding_is_six_times_what_the_margin_and_rounding_cost() -> None:
    getter: Any = ColumnDesign.rounding_gap.fget  # type: ignore[attr-defined]
    space = SimpleNamespace(utility_slope=1e6, typical_rounding=1e-8)
    program: Any = SimpleNamespace(space=space, prior=Prior.uniform(3), scale=100.0)
    assert getter(program) == pytest.approx(6 * (FACTOR_MARGIN_RTOL * 1e6 + 1e-8))
    program.scale = 0.5
    assert getter(program) == pytest.approx(5e-7)


@pytest.mark.parametrize("box", [BoxFamily(0.4, 1.7), BoxFamily(0.25, 3.0)])
def test_the_best_columns_of_a_box_by_counts_are_those_of_brute_force(box: BoxFamily) -> None:
    """The best for each letter between, of those that mean one leaves between both ends."""
    counts = np.array([1, 2, 2, 3, 5])
    kernel = ColumnUtility(counts / 13, MutualInformation().phi)
    p, rho = kernel.p, 0.3 * np.random.default_rng(5).normal(size=5)
    best: dict[int, float] = {}
    for bits, f in itertools.product(itertools.product([False, True], repeat=5), range(5)):
        lift = np.where(bits, box.high, box.low)
        lift[f] = (1 - p @ lift + p[f] * lift[f]) / p[f]
        if not bits[f] and box.low - 1e-12 <= lift[f] <= box.high + 1e-12:
            worth = float(kernel.column_values(lift[:, None])[0] - (p * rho) @ lift)
            best[f] = max(worth, best.get(f, -np.inf))
    priced = CountPricer(kernel, [box], counts.tolist()).price_columns(rho, 9, -np.inf)
    assert priced.best_value == pytest.approx(max(best.values()))
    [columns] = priced.columns
    lifts = columns.build_lifts(p)
    found = kernel.column_values(lifts) - (p * rho) @ lifts
    assert dict(zip(columns.between.tolist(), found.tolist(), strict=True)) == pytest.approx(best)
