"""Losses on labels."""

from __future__ import annotations

import math
from decimal import Decimal
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

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
