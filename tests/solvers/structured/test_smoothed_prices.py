"""Row prices of large designs under PML by a smoothed dual program."""

from __future__ import annotations

import math

import numpy as np
import pytest

from pmlopt import PML, ExpectedLoss, Prior, design, solve
from pmlopt.core.numbers.arrays import FloatArray
from pmlopt.data.prior import conditional_value_at_risk
from pmlopt.solvers.solver_result import NO_DEADLINE, Deadline
from pmlopt.solvers.structured.smoothed_prices import find_row_prices


def compute_bound(pmf: FloatArray, costs: FloatArray, mass: float, prices: FloatArray) -> float:
    """Return what every mechanism costs at least, by exact sorting."""
    worth = conditional_value_at_risk(pmf, prices[:, None] - costs, mass)
    return float(pmf @ prices - worth.max())


def build_costs(kind: str, letters: int, outputs: int) -> tuple[FloatArray, FloatArray]:
    """Return a prior and losses of size one."""
    rng = np.random.default_rng(letters + outputs)
    pmf = rng.dirichlet(np.full(letters, 0.5 if kind == "skewed" else 3.0))
    if kind == "distance":
        places = np.linspace(0, 1, letters)[:, None], np.linspace(0, 1, outputs)
        return pmf, np.abs(places[0] - places[1])
    costs = rng.random((letters, outputs))
    return pmf, np.round(costs) if kind == "binary" else costs


@pytest.mark.parametrize("epsilon", [0.05, 1.0, 3.0])
@pytest.mark.parametrize("kind", ["random", "distance", "skewed", "binary"])
@pytest.mark.parametrize(("letters", "outputs"), [(60, 60), (90, 25), (30, 80)])
def test_prices_are_near_the_optimal_ones(
    kind: str, letters: int, outputs: int, epsilon: float
) -> None:
    pmf, costs = build_costs(kind, letters, outputs)
    pmf = Prior(pmf).pmf
    found = find_row_prices(pmf, costs, math.exp(-epsilon), NO_DEADLINE)
    bound = compute_bound(pmf, costs, math.exp(-epsilon), found.prices)
    result = solve(design(Prior(pmf), PML(epsilon), ExpectedLoss(costs)))
    assert bound <= result.value + 1e-12
    assert bound >= result.value - 0.02
    # the values are a bound too, but for single precision
    assert pmf @ found.prices + found.values.min() <= bound + 1e-5


def test_likely_outputs_are_few_and_hold_nearly_all_of_the_value() -> None:
    pmf, costs = build_costs("random", 150, 150)
    found = find_row_prices(pmf, costs, math.exp(-1), NO_DEADLINE)
    assert found.likely.sum() < 75
    whole = solve(design(Prior(pmf), PML(1.0), ExpectedLoss(costs)))
    part = solve(design(Prior(pmf), PML(1.0), ExpectedLoss(costs[:, found.likely])))
    assert part.value == pytest.approx(whole.value, abs=1e-3)


def test_when_time_is_over_the_first_prices_are_a_bound() -> None:
    pmf, costs = build_costs("random", 40, 40)
    found = find_row_prices(pmf, costs, math.exp(-1), Deadline.after(0.0))
    later = find_row_prices(pmf, costs, math.exp(-1), NO_DEADLINE)
    bounds = [compute_bound(pmf, costs, math.exp(-1), one.prices) for one in (found, later)]
    assert bounds[0] < bounds[1]


@pytest.mark.parametrize("epsilon", [1e-9, 1e-3, 20.0])
def test_levels_at_the_ends_leave_finite_prices(epsilon: float) -> None:
    pmf, costs = build_costs("random", 20, 20)
    found = find_row_prices(pmf, costs, math.exp(-epsilon), NO_DEADLINE)
    assert np.isfinite(found.prices).all()
    assert np.isfinite(found.values).all()
    assert found.likely.any()


def test_equal_costs_leave_all_outputs_alike() -> None:
    found = find_row_prices(np.full(8, 0.125), np.zeros((8, 5)), math.exp(-1), NO_DEADLINE)
    assert found.likely.all()
