"""Bounds on a least level in floats, and multipliers between others, by their definitions."""

from __future__ import annotations

import math

import numpy as np
import pytest
from oracles.designs import FloatArray
from scipy.optimize import linprog

from pmlopt import PML, Prior
from pmlopt.programs.least_leakage import certificate
from pmlopt.programs.least_leakage.certificate import LevelMultipliers, bound_level_on_columns
from pmlopt.programs.linear.columns import DenseColumns

P = np.array([0.5, 0.3, 0.2])
ALLOWED = np.array([[True, True, False], [False, True, True], [True, False, True]])
GAINS = np.array([[0.0, -0.4, -1.0], [-0.3, 0.0, -0.2], [-0.6, -0.5, 0.0]])


class Floor:
    """A floor on the expected gain, in the units in which the letters' best gains are 0."""

    normalized_gains, min_gain, rounding = GAINS, -0.25, 0.01


def most_share(c: FloatArray, may: FloatArray) -> float:
    """The largest `<p, v>` of v in [0, 1]^N with `<c, v> >= 0` that is zero outside its letters."""
    found = linprog(-P, A_ub=[-c], b_ub=[0.0], bounds=[(0.0, float(one)) for one in may])
    return -float(found.fun)


@pytest.mark.parametrize("floor", [None, Floor()])
@pytest.mark.parametrize("rounding", [0.0, 0.02])
def test_a_bound_in_floats_is_that_of_the_knapsack_with_an_allowance_for_rounding(
    monkeypatch: pytest.MonkeyPatch, floor: Floor | None, rounding: float
) -> None:
    """In proportion to the sizes of what is added up, and once more to the result."""
    monkeypatch.setattr(certificate, "bound_sum_rounding", lambda terms, size: rounding * size)
    y, weight = np.array([-0.3, 0.5, 0.2]), 0.7 if floor else 0.0
    gains = np.where(ALLOWED, GAINS, 0.0) * weight
    values, sizes = y[:, None] + gains, np.abs(y)[:, None] + np.abs(gains)
    least = float(P @ y) + weight * (-0.25 - 0.01)
    size = float(P @ np.abs(y)) + weight * 0.25
    over = values + rounding * (sizes + size) - least
    share = max(most_share(P * over[:, k], ALLOWED[:, k]) for k in range(3))
    expected = max(0.0, -math.log(min(1.0, share * (1 + rounding))))
    assert expected > 0
    columns, proof = DenseColumns(Prior(P), PML(0.0)), LevelMultipliers(y, weight)
    found = bound_level_on_columns(columns, ALLOWED, floor, proof)  # type: ignore[arg-type]
    assert found == pytest.approx(expected, rel=1e-9)


@pytest.mark.parametrize("fraction", [0.25, 1.0, -0.5, 3.0])
def test_multipliers_lie_on_the_line_through_others(fraction: float) -> None:
    one = LevelMultipliers(np.array([1.0, -2.0]), 0.4)
    other = LevelMultipliers(np.array([3.0, 1.0]), 0.2)
    found = one.interpolate(other, fraction)
    assert found.rows == pytest.approx((1 - fraction) * one.rows + fraction * other.rows)
    assert found.floor == pytest.approx(max(0.0, (1 - fraction) * 0.4 + fraction * 0.2))
