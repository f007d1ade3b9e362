"""The least constant that puts a column within bounds on all pairs, by its definition."""

from __future__ import annotations

import numpy as np
import pytest

from pmlopt.programs.exact.envelope_repair import (
    _compute_missing_integer,
    _raise_to_feasible_integers,
)


@pytest.mark.parametrize("seed", range(4))
def test_the_missing_constant_is_the_least_that_meets_every_pair(seed: int) -> None:
    random = np.random.default_rng(seed)
    factors = random.uniform(0.2, 0.9, (4, 4))
    np.fill_diagonal(factors, 0.5)
    column = np.floor(random.uniform(1, 100, 4))
    missing = _compute_missing_integer(factors, column)
    assert missing > 0

    def lacks(constant: float) -> float:
        raised = column + constant
        return float(max(factors[z, x] * raised[z] - raised[x] for z in range(4) for x in range(4)))

    assert lacks(missing) == pytest.approx(0.0, abs=1e-9)
    assert lacks(missing - 1e-3) > 0
    assert _compute_missing_integer(factors, column + missing + 1e-9) == 0


def test_no_constant_helps_where_both_must_be_equal() -> None:
    factors = np.array([[0.5, 1.0], [0.2, 0.5]])
    assert _compute_missing_integer(factors, np.array([3.0, 2.0])) == np.inf
    assert _compute_missing_integer(factors, np.array([2.0, 2.0])) == 0


def test_entries_are_raised_to_the_least_whole_numbers_that_meet_every_pair() -> None:
    factors = np.array([[0.5, 0.3, 0.1], [0.2, 0.5, 0.7], [0.1, 0.1, 0.5]])
    whole = np.array([[100.0, 0.0], [1.0, 10.0], [2.0, 1.0]])
    raised = _raise_to_feasible_integers(factors, whole.copy())
    # 30 of .3 times 100; 21 of .7 times that; the second column by .2 and .7 of 10
    assert raised is not None
    assert raised.tolist() == [[100.0, 2.0], [30.0, 10.0], [21.0, 7.0]]
