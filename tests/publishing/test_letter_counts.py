"""What columns in clear reveal, counted in the data."""

from __future__ import annotations

import datetime as dt
from decimal import Decimal
from typing import Any

import numpy as np
import pytest

from pmlopt import Mechanism
from pmlopt.publishing import release

pytest.importorskip("pyarrow")


@pytest.mark.parametrize("value", [
    dt.date(2020, 2, 29), dt.datetime(2020, 2, 29, 1, tzinfo=dt.UTC), dt.time(1), dt.timedelta(1),
    Decimal("1.50"), b"a", 2.5, True,
])  # fmt: skip
def test_what_a_column_in_clear_reveals_does_not_depend_on_its_type(value: Any) -> None:
    response = Mechanism(np.eye(2) / 2 + 0.25, ["no", "yes"], ["no", "yes"])
    people = {"ill": ["no", "no", "yes"] * 50}
    cells = [[value, None, None], ["text", None, None]]
    levels = [
        release(people | {"c": one * 50}, {"ill": response}, keep=["c"]).planned.in_clear
        for one in cells
    ]
    assert levels[0] == levels[1]
