"""The bound on leakage next to the uniform law, by its formula in floats."""

from __future__ import annotations

import math
from decimal import Decimal

import numpy as np
import pytest

from pmlopt.programs.record_leakage.closed_bounds import bound_near_uniform

COUNTS = np.array([[3.0, 1.0, 2.0], [1.0, 2.0, 3.0]])
ROWS = np.array([[0.8, 0.2], [0.5, 0.5], [0.1, 0.9]])


@pytest.mark.parametrize("room", [1e-4, 0.01, 0.1, 2.0])
def test_the_bound_is_that_of_donsker_and_varadhan_at_the_price_of_second_order(
    room: float,
) -> None:
    law = COUNTS / COUNTS.sum()
    given = law / law.sum(axis=1, keepdims=True) @ ROWS
    output = law.sum(axis=0) @ ROWS
    gains = np.log(given / output) @ ROWS.T
    mean = float((law * gains).sum())
    price = math.sqrt(float((law * (gains - mean) ** 2).sum()) / (2 * room))
    dual = price * math.log(float((law * np.exp(gains / price)).sum())) + price * room
    expected = room + min(float(gains.max()), dual)
    found = bound_near_uniform(ROWS, np.log(COUNTS), Decimal(room))
    assert float(found) == pytest.approx(expected, rel=1e-9)


def test_without_room_the_bound_is_the_leakage_of_the_uniform_law() -> None:
    law = COUNTS / COUNTS.sum()
    joint = law @ ROWS
    alone = np.outer(joint.sum(axis=1), joint.sum(axis=0))
    leakage = float((joint * np.log(joint / alone)).sum())
    found = bound_near_uniform(ROWS, np.log(COUNTS), Decimal(0))
    assert float(found) == pytest.approx(leakage)
