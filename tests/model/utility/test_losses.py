"""Losses on labels."""

from __future__ import annotations

import datetime
import math
from decimal import Decimal
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pmlopt import ExpectedLoss, Prior
from pmlopt.errors import UtilityError
from pmlopt.model.utility import LOSSES, absolute, hamming, squared

numbers = st.integers(-1000, 1000) | st.floats(-1e3, 1e3)


@given(x=numbers, y=numbers)
def test_losses_follow_their_formulas(x: float, y: float) -> None:
    assert hamming(x, y) == (0.0 if x == y else 1.0)
    assert absolute(x, y) == float(max(x - y, y - x))
    assert squared(x, y) == float(x - y) * float(x - y)
    for loss in LOSSES.values():
        assert isinstance(loss(x, y), float)
        assert loss(x, y) == loss(y, x)
        assert loss(x, x) == 0.0


def test_hamming_takes_any_labels() -> None:
    assert hamming("a", "a") == 0.0
    assert hamming(("a", 1), ("a", 2)) == 1.0


def test_hamming_takes_a_missing_value_for_itself() -> None:
    missing, other = float("nan"), np.float64("nan")
    for x, y in ((missing, missing), (missing, other), (other, missing), (math.nan, Decimal("nan"))):
        assert hamming(x, y) == 0.0
    for label in (0.0, 1, "nan", None):
        assert hamming(missing, label) == hamming(label, missing) == 1.0


@pytest.mark.parametrize("loss", [absolute, squared])
@pytest.mark.parametrize(("x", "y"), [("a", "b"), ("a", 1), (1, None), ((1,), (2,))])
def test_labels_without_a_difference_are_refused(loss: Any, x: Any, y: Any) -> None:
    with pytest.raises(UtilityError, match="labels"):
        loss(x, y)


@pytest.mark.parametrize("loss", [absolute, squared])
def test_dates_have_a_difference_that_is_no_number(loss: Any) -> None:
    with pytest.raises(UtilityError):
        loss(datetime.date(2020, 1, 2), datetime.date(2020, 1, 1))


@pytest.mark.parametrize("loss", [absolute, squared])
def test_text_labels_are_refused_where_the_loss_is_used(loss: Any) -> None:
    prior = Prior([0.5, 0.5], labels=["low", "high"])
    with pytest.raises(UtilityError, match="low"):
        ExpectedLoss(loss).value(prior, [[1.0, 0.0], [0.0, 1.0]])


def test_columns_may_differ_in_number_from_the_rows() -> None:
    assert ExpectedLoss(squared).table((0, 1), (0, 0.5, 1)).tolist() == [[0, 0.25, 1], [1, 0.25, 0]]
