"""Weights in a column of a data file."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

import pandas as pd
import pytest

from pmlopt.errors import InputError
from pmlopt.tables import open_table
from pmlopt.tables.counting import count_tuples
from pmlopt.tables.missing_cells import MissingRows
from pmlopt.tables.weights import check_weights


def count_weighted(frame: Any, missing: Any) -> dict[Any, int]:
    with open_table(frame) as table:
        return count_tuples(table, ["x", "w"], missing, MissingRows(weight_column="w"))


@pytest.mark.parametrize(("weights", "words"), [
    ([1.0, None, 2.0], "row 1: the weight in 'w' is missing"),
    ([1.0, float("nan"), 2.0], "row 1: the weight in 'w' is missing"),
    ([1.0, -0.5, 2.0], "row 1: the weight in 'w' is -0.5"),
    ([1.0, float("inf"), 2.0], "row 1: the weight in 'w' is inf"),
    (["1", "1,5", "2"], "row 1: the weight in 'w': '1,5' is in the place of a number: write 1.5"),
    (["1", "NA", "2"], "row 1: the weight in 'w': 'NA' is in the place of a number"),
    ([True, False, True], "row 0: the weight in 'w' is True"),
])  # fmt: skip
def test_a_row_without_a_weight_is_named(weights: list[Any], words: str) -> None:
    frame = pd.DataFrame({"x": ["a", "b", "a"], "w": weights})
    with pytest.raises(InputError) as error:
        count_weighted(frame, "letter")
    assert words in str(error.value)
    with open_table(frame) as table, pytest.raises(InputError) as error:
        check_weights(table, "w", "refuse")
    assert words in str(error.value)


@pytest.mark.parametrize("weights", [[1, 3, 2], [Decimal("1"), Decimal("3"), Decimal("2")]])
def test_weights_of_other_kinds_are_counted(weights: list[Any]) -> None:
    frame = pd.DataFrame({"x": ["a", "b", "a"], "w": weights})
    assert count_weighted(frame, "letter") == {("a", 1): 1, ("a", 2): 1, ("b", 3): 1}
