"""Attacks on releases by their bytes and by the order of their rows, in small; `attack_release.py` has them
all.
"""

from __future__ import annotations

import pytest
from attack_release import compare_odds, search_hidden_cells


def test_no_file_has_a_value_that_no_row_shows() -> None:
    names = ["ordered categories", "whole numbers under nulls", "a slice", "categories in a struct"]
    found = search_hidden_cells(names)
    assert found.caught == found.kinds == len(names)  # a plain writer shows them
    assert found.files > 100
    assert found.leaks == []


@pytest.mark.parametrize(("ending", "releases"), [(".csv", 300), ("folder", 100)])
def test_sorted_data_reveal_no_more_than_the_level_in_a_random_order(
    ending: str, releases: int
) -> None:
    assert not compare_odds(releases, ending=ending).breaks  # falsely once in a million times


def test_the_attack_breaks_the_level_where_the_order_is_kept() -> None:
    assert compare_odds(500, ending=".csv", keep_order=True).breaks
