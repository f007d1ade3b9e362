"""The comparison of LPs with closed forms can fail."""

from __future__ import annotations

from dataclasses import replace
from itertools import count

import pytest

from pmlopt.errors import InputError, SolverError
from pmlopt.library import bench, find


def test_a_wrong_value_is_seen() -> None:
    instance = find("uniform-seven-letters")
    assert instance.expected is not None
    wrong = replace(instance, expected=replace(instance.expected, value=0.76))
    rows = list(bench.compare_instances([instance, wrong], repeats=1))
    assert [row.holds for row in rows] == [True, False]


def test_instances_without_a_closed_form_are_left_out() -> None:
    assert list(bench.compare_instances([find("counting-query-pml")], repeats=1)) == []


@pytest.mark.parametrize(
    ("name", "linear"),
    [
        ("uniform-seven-letters", True), ("robust-uniform-ball", True), ("envelope-response", False),
        ("information-binary-first-region", False), ("wcu-figure-2-h2", False),
    ],
)  # fmt: skip
def test_what_is_called_a_linear_program_is_one(name: str, linear: bool) -> None:
    (row,) = bench.compare_instances([find(name)], repeats=1)
    assert row.holds
    assert row.linear is linear


def test_families_have_a_closed_form_at_every_size() -> None:
    rows = list(bench.compare_families([3, 6], repeats=1))
    assert all(row.holds for row in rows)
    forms = {"uniform", "robust_randomized_response", "randomized_response", "high_privacy"}
    assert {row.closed_form for row in rows} == forms
    with pytest.raises(InputError, match="3 letters or more, not 2"):
        list(bench.list_families([2]))


def test_what_is_timed_has_run_before() -> None:
    calls = count(1)
    answer, seconds = bench._time_call(lambda: next(calls), 2)
    assert answer == 3
    assert seconds >= 0


def test_a_failed_solve_is_a_row(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: object, **__: object) -> None:
        raise SolverError("no solver could solve it")

    monkeypatch.setattr(bench, "solve", fail)
    (row,) = bench.compare_instances([find("uniform-seven-letters")], repeats=1)
    assert not row.holds
    assert row.problem == "no solver could solve it"
    assert row.solved_value is None
