"""The largest conditional value at risk of many columns is that of the columns one by one."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pmlopt.data.prior import conditional_value_at_risk, max_conditional_value_at_risk


@given(st.integers(0, 2**32), st.sampled_from([3, 64, 65, 300]), st.sampled_from([0.01, 0.37, 1.0]))
def test_the_largest_is_bounded_as_closely_as_rounding_allows(
    seed: int, width: int, mass: float
) -> None:
    random = np.random.default_rng(seed)
    weights = random.dirichlet(np.ones(25))
    values = random.normal(size=(25, width)) + random.normal(size=width)
    largest = float(conditional_value_at_risk(weights, values, mass).max())
    found = max_conditional_value_at_risk(weights, values, mass)
    allowed = 16 * (len(weights) + 2) * 2.0**-52 * float(np.abs(values).max())
    assert largest - allowed <= found <= largest + allowed


@pytest.mark.parametrize("mass", [0.001, 0.3, 1.0])
def test_columns_of_one_shape_are_sorted_once(mass: float, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of the Hamming loss the edges of all columns are the same number."""
    sorted_widths = []

    def count(weights: np.ndarray, values: np.ndarray, share: float) -> np.ndarray:
        sorted_widths.append(values.shape[1])
        return conditional_value_at_risk(weights, values, share)

    monkeypatch.setattr("pmlopt.data.prior.conditional_value_at_risk", count)
    weights, values = np.full(500, 1 / 500), np.eye(500) - 1.0
    found = max_conditional_value_at_risk(weights, values, mass)
    wanted = float(conditional_value_at_risk(weights, values, mass).max())
    assert found == pytest.approx(wanted, abs=1e-11)
    assert found >= wanted
    assert sorted_widths == [64]
