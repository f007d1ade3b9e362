"""The comparison of LPs with closed forms can fail."""

from __future__ import annotations

from dataclasses import replace

import pytest

from pmlopt.errors import SolverError
from pmlopt.library import bench, find


def test_a_wrong_value_is_seen() -> None:
    instance = find("uniform-seven-letters")
    assert instance.expected is not None
    wrong = replace(instance, expected=replace(instance.expected, value=0.76))
    rows = list(bench.compare([instance, wrong], repeats=1))
    assert [row.agrees for row in rows] == [True, False]


def test_instances_without_a_closed_form_are_left_out() -> None:
    assert list(bench.compare([find("counting-query-pml")], repeats=1)) == []


def test_a_failed_solve_is_a_row(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: object, **__: object) -> None:
        raise SolverError("no solver could solve it")

    monkeypatch.setattr(bench, "solve", fail)
    (row,) = bench.compare([find("uniform-seven-letters")], repeats=1)
    assert not row.agrees
    assert row.problem == "no solver could solve it"
    assert row.lp_value is None
