"""The worst case by rank: orders, M*(h), its level, and what every mechanism leaks."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from oracles.designs import FloatArray
from refusals import refused
from strategies import MODEST, priors

from pmlopt import Prior, leakage_level
from pmlopt.core.numbers.arrays import IntArray
from pmlopt.errors import UtilityError
from pmlopt.model.closed_forms import support_bound, utility_safe_level, utility_safe_mechanism
from pmlopt.model.utility.orders import allowed_pairs, utility_order

PRINTED_ORDER = [
    [7, 6, 5, 4, 3, 2, 1],
    [5, 7, 6, 4, 3, 2, 1],
    [3, 5, 7, 6, 4, 2, 1],
    [1, 3, 5, 7, 6, 4, 2],
    [1, 2, 3, 5, 7, 6, 4],
    [1, 2, 3, 4, 5, 7, 6],
    [1, 2, 3, 4, 5, 6, 7],
]
"""WCU, eq. (12)."""


def counting_query() -> FloatArray:
    """WCU, eq. (11): minus the squared error, and minus one more where the release is too low."""
    x, y = np.indices((7, 7))
    return np.asarray(-((x - y) ** 2) - (y < x), dtype=float)


@st.composite
def ranked(draw: st.DrawFn) -> tuple[FloatArray, IntArray, int]:
    """A prior, an order without ties and a threshold."""
    prior = draw(priors())
    outputs = draw(st.integers(1, 5))
    rows = [draw(st.permutations(range(1, outputs + 1))) for _ in prior]
    return prior, np.array(rows), draw(st.integers(1, outputs))


@st.composite
def tied(draw: st.DrawFn) -> tuple[FloatArray, IntArray, int]:
    """The same with ties, ranked together."""
    prior = draw(priors())
    outputs = draw(st.integers(1, 5))
    cells = st.lists(st.integers(0, 2), min_size=outputs, max_size=outputs)
    utilities = [draw(cells) for _ in prior]
    return prior, utility_order(utilities, "grouped"), draw(st.integers(1, outputs))


# ---------------------------------------------------------------- the order


def test_the_counting_query_has_the_printed_order() -> None:
    utilities = counting_query()
    assert utilities[4].tolist() == [-17, -10, -5, -2, 0, -1, -4]  # printed with -9 for -10
    assert utilities[6].tolist() == [-37, -26, -17, -10, -5, -2, 0]
    assert utility_order(utilities).tolist() == PRINTED_ORDER
    assert utility_order(utilities, "grouped").tolist() == PRINTED_ORDER
    assert utility_order(3 * utilities - 100).tolist() == PRINTED_ORDER


@given(
    st.integers(1, 5).flatmap(
        lambda m: st.lists(
            st.lists(st.integers(-3, 3), min_size=m, max_size=m), min_size=1, max_size=4
        )
    )
)
@MODEST
def test_orders_rank_as_the_utilities_do(utilities: list[list[int]]) -> None:
    first, grouped = utility_order(utilities), utility_order(utilities, "grouped")
    for row, turn, together in zip(utilities, first.tolist(), grouped.tolist(), strict=True):
        assert sorted(turn) == list(range(1, len(row) + 1))
        for y, one in enumerate(row):
            assert together[y] == sum(other <= one for other in row)
            assert turn[y] == 1 + sum(other < one for other in row) + row[:y].count(one)


@pytest.mark.parametrize(
    ("order", "threshold", "message"),
    [
        ([[1, 2], [2, 3]], 1, "entry 3 at row 1, column 1: give ranks from 1 to 2"),
        ([[1, 2], [2, 0]], 1, "entry 0 at row 1, column 1"),
        ([[1, 1.5]], 1, r"entry 1\.5 at row 0, column 1"), ([[1, math.nan]], 1, "nan"),
        ([1, 2], 1, "2 dimension"), ([[1, 2], [2, 1]], 3, "threshold 3 is above the number of outputs, 2"),
        ([[1, 2], [2, 1]], 0, "whole number of at least 1"),
        ([[1, 2], [2, 1]], -1, "whole number of at least 1"), ([[1, 2], [2, 1]], 1.5, "whole number"),
        ([[1, 2], [2, 1]], True, "must be a number"), ([[1, 2], [2, 1]], "2", "must be a number"),
        ([[1, 2], [1, 1]], 2, "row 1 of the order has no rank of 2 or more"),
    ],
)  # fmt: skip
def test_orders_and_thresholds_that_cannot_be_meant_are_refused(
    order: Any, threshold: Any, message: str
) -> None:
    prior = np.full(len(order), 1 / len(order))
    for ask in (allowed_pairs, utility_safe_mechanism):
        refused(UtilityError, ask, message, (order, threshold))
    for measure in (utility_safe_level, support_bound):
        refused(UtilityError, measure, message, (prior, order, threshold))
        refused(
            UtilityError, measure, "2 rows for 3 letters", ([0.2, 0.3, 0.5], [[1, 2], [2, 1]], 1)
        )


def test_utilities_without_an_order_are_refused() -> None:
    refused(
        UtilityError,
        utility_order,
        "ties is 'last': write 'first' or 'grouped'",
        ([[0, 1]], "last"),
    )
    said: list[tuple[str, Any]] = [
        ("2 dimension", [0, 1]), ("-inf at row 0, column 1", [[0, -math.inf]]), ("numbers", [["a", "b"]]),
        ("nan at row 0, column 1", [[0, math.nan]]), ("at least one entry", [[]]), ("regular", [[1, 2], [3]]),
    ]  # fmt: skip
    for message, utilities in said:
        refused(UtilityError, utility_order, message, (utilities, "first"))


# ---------------------------------------------------------------- M*(h)


@given(ranked())
@MODEST
def test_theorem_1_and_its_corollaries(case: tuple[FloatArray, IntArray, int]) -> None:
    """The matrix, its level, and posteriors that keep the ratios of the prior."""
    prior, order, h = case
    mechanism, p = utility_safe_mechanism(order, h), Prior(prior).pmf
    for row, ranks in zip(mechanism.matrix.tolist(), order.tolist(), strict=True):
        assert row == [1 / (order.shape[1] - h + 1) if rank >= h else 0.0 for rank in ranks]
    level = utility_safe_level(prior, order, h)
    assert level >= 0
    assert level == pytest.approx(leakage_level(prior, mechanism), abs=1e-12)
    masses = [math.fsum(p[order[:, y] >= h]) for y in range(order.shape[1])]
    assert math.exp(-level) == pytest.approx(min(mass for mass in masses if mass > 0), rel=1e-12)
    for column in mechanism.matrix.T[mechanism.matrix.max(axis=0) > 0]:
        posterior = p * column / (p @ column)
        known = column > 0
        assert (posterior[~known] == 0).all()
        ratios = posterior[known] / p[known]
        assert ratios == pytest.approx(np.full(known.sum(), ratios[0]), rel=1e-13)


@pytest.mark.parametrize(
    "prior", [[1 / 7] * 7, [0.53230533, 0.2558558, 0.21183887], [0.1] * 10, [0.5, 0.5]]
)
def test_without_a_demand_nothing_leaks_exactly(prior: list[float]) -> None:
    # a constant leaks exactly 0, and 1e-16 is no lower bound on that
    order = [[1, 2]] * len(prior)
    assert leakage_level(prior, utility_safe_mechanism(order, 1)) == 0
    assert utility_safe_level(prior, order, 1) == 0
    assert support_bound(prior, order, 1) == 0


@given(tied(), st.integers(0, 2**32 - 1))
@MODEST
def test_no_mechanism_leaks_less_than_its_support_says(
    case: tuple[FloatArray, IntArray, int], seed: int
) -> None:
    """On the allowed pairs none is below the support bound, and none that emits all of them below M*(h)."""
    prior, order, h = case
    allowed, rng = order >= h, np.random.default_rng(seed)
    bound = support_bound(prior, order, h)
    p, counts = Prior(prior).pmf, allowed.sum(axis=1)
    masses = [math.fsum(p[allowed[:, y]]) for y in range(allowed.shape[1])]
    least = max(min(-math.log(min(1.0, masses[y])) for y in np.flatnonzero(row)) for row in allowed)
    assert bound == pytest.approx(least, abs=1e-12)
    level = 0.0
    if counts.min() < counts.max():
        with pytest.raises(
            UtilityError, match=f"from {counts.min()} to {counts.max()} outputs left"
        ):
            utility_safe_level(prior, order, h)
    else:
        level = leakage_level(prior, utility_safe_mechanism(order, h))
        assert utility_safe_level(prior, order, h) == pytest.approx(level, abs=1e-12)
    for share in (0.6, 0.6, 0.6, 1.0, 1.0, 1.0):
        kept = allowed & (rng.random(allowed.shape) <= share)
        kept |= allowed & ~kept.any(axis=1, keepdims=True)
        matrix = np.where(kept, rng.random(allowed.shape) + 1e-3, 0.0)
        matrix /= matrix.sum(axis=1, keepdims=True)
        assert leakage_level(prior, matrix) >= (bound if share < 1 else max(bound, level)) - 1e-12


@pytest.mark.parametrize(
    ("epsilon", "kept"),
    [
        (1e-9, 1), (math.log(7 / 3) - 1e-9, 1), (math.log(7 / 3) + 1e-9, 3), (math.log(7 / 2) - 1e-9, 3),
        (math.log(7 / 2) + 1e-9, 5), (math.log(7) - 1e-9, 5), (math.log(7) + 1e-9, 7), (9.0, 7),
    ],
)  # fmt: skip
def test_the_counting_query_switches_where_the_paper_says(epsilon: float, kept: int) -> None:
    prior = Prior.uniform(7)
    levels = [utility_safe_level(prior, PRINTED_ORDER, h) for h in range(1, 8)]
    assert max(h for h, level in enumerate(levels, 1) if level <= epsilon) == kept
