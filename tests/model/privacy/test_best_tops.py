"""The tops that cost least are found from slopes, as a search by values finds them."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.optimize import minimize_scalar

from pmlopt.core.numbers.arrays import FloatArray
from pmlopt.model.privacy.dual_prices import (
    center_prices,
    compute_costs,
    compute_log_slopes,
    find_best_offsets,
)


def find_least_cost(law: FloatArray, prices: FloatArray, beta: float, room: float) -> float:
    """Return the least of the costs of one column of prices, by a search over tops of all sizes."""

    def evaluate(top: float) -> float:
        heights = np.maximum(prices + top, 0.0)
        peak = heights.max() or 1.0
        norm = peak * float(law @ (heights / peak) ** beta) ** (1 / beta)
        return float(np.exp(room) * norm - top)

    high, size = prices.max(), np.abs(prices).max()
    ends = np.concatenate([-high * (1 - np.logspace(-12, 0, 60)), size * np.logspace(-6, 4, 60)])
    start = min(ends, key=evaluate)
    place = np.searchsorted(np.sort(ends), start)
    around = np.sort(ends)[[max(place - 1, 0), min(place + 1, len(ends) - 1)]]
    found = minimize_scalar(
        evaluate, bounds=tuple(around), method="bounded", options={"xatol": 1e-12}
    )
    return float(min(found.fun, evaluate(start), high))


@pytest.mark.parametrize("beta", [1.05, 1.2, 1.5, 2.0, 3.0, 11.0, 101.0])
@pytest.mark.parametrize("room", [0.05, 0.3, 2.0])
def test_costs_are_the_least_of_a_search(beta: float, room: float) -> None:
    rng = np.random.default_rng([7, int(100 * beta), int(100 * room)])
    for concentration in (0.3, 5.0):
        law = np.maximum(rng.dirichlet(np.full(5, concentration)), 1e-9)
        law /= law.sum()
        prices, _ = center_prices(law[:, None], rng.normal(size=(5, 3)))
        tops, costs = find_best_offsets(law[:, None], prices, beta, room)
        least = [find_least_cost(law, column, beta, room) for column in prices.T]
        assert costs == pytest.approx(least, abs=1e-8)
        assert compute_costs(law[:, None], prices, tops, beta, room) == pytest.approx(
            costs, abs=1e-12
        )


@pytest.mark.parametrize("beta", [1.5, 2.0, 6.0])
def test_slopes_are_differences_of_costs(beta: float) -> None:
    law = np.array([[0.5], [0.3], [0.2]])
    prices, _ = center_prices(law, np.array([[1.0], [0.2], [-0.7]]))
    tops = np.array([-0.3, 0.1, 0.6, 1.5, 40.0])
    slopes = np.expm1(compute_log_slopes(law, prices, tops[:, None], beta, 0.2))[:, 0]
    ends = [compute_costs(law, prices, tops + step, beta, 0.2) for step in (-1e-5, 1e-5)]
    assert slopes == pytest.approx((ends[1] - ends[0]) / 2e-5, abs=1e-8)


def test_far_tops_keep_the_digits_of_small_differences() -> None:
    """With `K = e^r`, order 2 and a variance s the least cost is `s^(1/2) (K^2 - 1)^(1/2)`."""
    law, room = np.array([[0.5], [0.5]]), 1e-8
    prices = np.array([[1.0], [-1.0]])
    tops, costs = find_best_offsets(law, prices, 2.0, room)
    assert costs[0] == pytest.approx(np.sqrt(np.expm1(2 * room)), rel=1e-9)
    assert tops[0] == pytest.approx(1 / np.sqrt(np.expm1(2 * room)), rel=1e-4)
