"""Rounds with relaxed columns, and the losses of columns by counts, by their definitions."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from pmlopt.core.numbers.arrays import FloatArray
from pmlopt.model.uncertainty.columns import BoxFamily
from pmlopt.programs.subconvex.column_generation import _ColumnGeneration
from pmlopt.programs.subconvex.columns import ColumnUtility
from pmlopt.programs.subconvex.count_pricing import _CountKinds
from pmlopt.solvers.parametric_program import MasterProblem
from pmlopt.solvers.solver_result import NO_DEADLINE

P = np.array([0.5, 0.3, 0.2])
LIFTS = np.hstack([np.ones((3, 1)), np.diag(1 / P)])
WORTHS = np.array([0.1, 0.3, 0.5, 0.9])
RHO = np.array([0.9, 0.2, 0.4])


class Pricer:
    """Relaxed columns that are given, and what was to be priced."""

    def __init__(self, lifts: FloatArray, worths: FloatArray, upper: float) -> None:
        self.found = SimpleNamespace(
            upper_bound=upper, lifts=lifts, worths=worths, nearby_columns=[]
        )
        self.calls: list[tuple[FloatArray, float, float]] = []

    def price_relaxed(self, rho: FloatArray, least: float, digits: float, _: Any) -> Any:
        self.calls.append((rho, least, digits))
        return self.found


def rounds(pricer: Pricer, count: int, **limits: float) -> Any:
    """Rounds of columns, at a value of .4 and a bound of 1.4."""
    work: Any = object.__new__(_ColumnGeneration)
    work.program = SimpleNamespace(prior=SimpleNamespace(pmf=P, size=3), scale=1.0)
    work.master, work.relaxed = MasterProblem(LIFTS, WORTHS), None
    work.multipliers, work.bound, work.value, work.deadline = RHO, 1.4, 0.4, NO_DEADLINE
    work._relax_in_basis(
        pricer, np.eye(3), count, limits.get("digits", 0.0), limits.get("gap_fraction", 0.0)
    )
    return work


def test_relaxed_columns_are_priced_between_the_best_multipliers_and_those_of_the_master() -> None:
    """The master's are the worths of the letters' own columns: `rho[x] = worth[x]` over its lift."""
    pricer = Pricer(np.ones((3, 0)), np.empty(0), 0.2)
    work = rounds(pricer, 1)
    own = WORTHS[1:]
    value = float(P @ own)
    rho = 0.7 * RHO + 0.3 * own
    found, least, digits = pricer.calls[0]
    assert found == pytest.approx(rho)
    assert least == pytest.approx(value - float(P @ rho))
    assert digits == pytest.approx(0.1 * (1.4 - value))
    assert work.bound == pytest.approx(float(P @ rho) + 0.2)
    assert work.multipliers == pytest.approx(rho)


def test_without_columns_that_gain_the_next_round_is_at_the_multipliers_of_the_master() -> None:
    """A column gains by its worth beyond what it costs at these."""
    column = np.array([[0.5], [1.0], [2.25]])
    cost = float(P @ (WORTHS[1:] * column[:, 0]))
    for worth, smoothing in ((cost - 1e-3, 0.0), (cost + 1e-3, 0.7)):
        pricer = Pricer(column, np.array([worth]), 9.0)
        work = rounds(pricer, 2)
        assert work.multipliers is RHO
        if smoothing == 0:
            assert pricer.calls[1][0] == pytest.approx(WORTHS[1:])
        else:
            assert pricer.calls[1][0] != pytest.approx(WORTHS[1:])
        assert work.relaxed[0].shape == (3, 4 if smoothing == 0 else 5)


@pytest.mark.parametrize(("limit", "calls"), [(0.99, 1), (1.01, 0)])
def test_relaxed_columns_stop_at_a_gap_in_digits_or_as_a_fraction(limit: float, calls: int) -> None:
    """Of the gap between the bound and the mechanism, here 1; that of the relaxed columns is less."""
    value = float(P @ WORTHS[1:])
    relaxed = 1.4 - max(value, 0.4)
    for limits in ({"digits": limit * relaxed}, {"gap_fraction": limit * relaxed / (1.4 - 0.4)}):
        pricer = Pricer(np.ones((3, 0)), np.empty(0), 9.0)
        rounds(pricer, 1, **limits)
        assert len(pricer.calls) == calls


def kinds(limit: float = 5.4) -> _CountKinds:
    counts = np.array([2, 3, 1, 4])
    kernel = ColumnUtility(counts / counts.sum(), np.square)
    box = BoxFamily(0.4, 1.6)
    return _CountKinds(kernel, box, counts, np.arange(4), limit)


def test_a_letter_between_is_next_to_low_or_next_to_high_and_loses_against_the_chord() -> None:
    """It holds the rest of a count, or all of its counts but one and the rest."""
    counts, found = np.array([2, 3, 1, 4]), kinds()
    held = np.concatenate([np.full(4, 0.4), counts - 1 + 0.4])
    share = held / np.tile(counts, 2)
    assert found.share == pytest.approx(share)
    assert list(found.inside) == [5, 5, 5, 5, *(5 - counts + 1)]
    p = np.tile(counts / 10, 2)
    # the square is convex: below its chord by (1 - t) t times the square of its length
    assert found.loss == pytest.approx(p * share * (1 - share) * 1.2**2)


def test_the_least_loss_is_that_of_the_best_kind_with_the_letters_of_negative_price() -> None:
    found, prices = kinds(), np.array([0.2, -0.3, 0.0, -0.05])
    expected = min(
        loss + share * prices[f] + sum(min(price, 0.0) for x, price in enumerate(prices) if x != f)
        for f, share, loss in zip(found.letter, found.share, found.loss, strict=True)
    )
    assert found.min_loss(prices) == pytest.approx(expected)


def test_a_mixture_raises_each_letter_by_its_row_at_the_least_loss() -> None:
    """No kind is worth more at the prices than those of the mixture: strong duality."""
    found = kinds(6.4)
    mean = 0.55
    weights, prices = found.solve_mixture(mean)
    assert weights.sum() == pytest.approx(1.0)
    raised = np.bincount(found.letter, weights * found.share, minlength=4)
    between = np.bincount(found.letter, weights, minlength=4)
    assert (raised <= mean + 1e-9).all()
    assert (raised + 1 - between >= mean - 1e-9).all()
    value = float(weights @ found.loss)
    dual = float((found.loss + prices[found.letter] * found.share
                  - np.minimum(prices, 0.0)[found.letter]).min())  # fmt: skip
    assert dual + np.minimum(prices, 0.0).sum() - mean * prices.sum() == pytest.approx(value)
