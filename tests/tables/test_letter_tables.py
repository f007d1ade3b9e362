"""Tables of shares or counts are not counted as if each row were a person."""

from __future__ import annotations

import json
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from commands import run_fully as run

from pmlopt import Mechanism
from pmlopt.errors import CountedTableWarning, InputError
from pmlopt.publishing import release
from pmlopt.tables import column_counts, cross_counts

AGES = ["18-29", "30-44", "45-59", "60+"]
SHARES = [0.2, 0.25, 0.27, 0.28]


@pytest.mark.parametrize(
    "numbers",
    [
        {"share": SHARES},
        {"share": [20, 25, 27, 28]},
        {"count": [200, 250, 270, 280]},
        {"Anteil": SHARES},
        {"Anteil": ["0,20", "0,25", "0,27", "0,28"]},
        {"Anteil": ["20%", "25%", "27%", "28%"]},
        {"Anteil": [20.1, 24.9, 27.0, 28.0]},
        {"Anteil": [0.2, 0.25, 0.28, 0.28]},  # 1.01: rounding
        {"note": ["a", "b", "c", "d"], "share": SHARES},
    ],
)
def test_a_table_of_shares_is_not_counted(numbers: dict[str, Any]) -> None:
    with pytest.raises(InputError, match="stands once, next to a number in"):
        column_counts({"age": AGES, **numbers}, "age")


def test_the_shares_of_pairs_are_not_counted() -> None:
    table = {"ill": ["no", "no", "yes", "yes"], "age": [1, 2, 1, 2], "share": [0.4, 0.4, 0.1, 0.1]}
    with pytest.raises(InputError, match="'share'"):
        cross_counts(table, "ill", "age")
    with pytest.warns(CountedTableWarning, match="may be a table of shares or counts, in 'share'"):
        column_counts(table, "age")


def test_a_number_that_may_be_a_count_is_warned_of() -> None:
    with pytest.warns(CountedTableWarning, match="'people'"):
        assert column_counts({"age": AGES, "people": [3, 2, 2, 4]}, "age") == dict.fromkeys(AGES, 1)


@pytest.mark.parametrize(
    "table",
    [
        {"age": AGES},
        {"age": [*AGES, "60+"], "income": [1, 2, 3, 4, 5]},  # a value that stands twice
        {"age": AGES, "city": ["A", "B", "A", "C"]},
        {"age": AGES, "income": [30, 40, 20, 25], "city": ["A", "B", "A", "C"]},
        # people with a name, and weights that sum to one
        {"who": [1, 2, 3, 4], "age": [*AGES[:3], "18-29"], "weight": SHARES},
        {"age": AGES, "balance": [-0.5, 0.5, 0.5, 0.5], "city": ["A", "B", "A", "C"]},
    ],
)
def test_data_are_counted_in_silence(table: dict[str, Any]) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert sum(column_counts(table, "age").values()) == len(table["age"])


def test_commands_do_not_count_a_table_of_shares(tmp_path: Path) -> None:
    law = tmp_path / "shares.csv"
    law.write_text("age;share\n60+;0,28\n45-59;0,27\n30-44;0,25\n18-29;0,20\n")
    matrix = tmp_path / "matrix.csv"
    matrix.write_text(
        "age;r1;r2;r3;r4\n18-29;0,7;0,2;0,1;0\n30-44;0,1;0,65;0,15;0,1\n"
        "45-59;0,05;0,15;0,6;0,2\n60+;0;0,05;0,2;0,75\n"
    )
    source = ("--prior", law, "--column", "age")
    for words in (
        ("audit", matrix, *source, "--epsilon", "1.25"),
        ("design", *source, "--epsilon", "1", "--utility", "hamming"),
        ("solve", "emp-example-1", *source),
        ("ledger", "new", tmp_path / "l.npz", *source, "--people", "4"),
        ("release", law, "--column", "age", "--drop-all", "--epsilon", "1", "--utility", "hamming",
         "--dry-run"),
    ):  # fmt: skip
        assert "stands once, next to a number in 'share'" in run(*words, code=2).output
    found = json.loads(
        run("audit", matrix, "--prior", law, "--epsilon", "1.25", "--json", code=1).stdout
    )
    assert found["prior_used"]["people"] is None
    assert found["prior_used"]["letters"] == AGES
    assert found["prior_used"]["shares"] == SHARES


def test_a_table_of_shares_is_not_released(tmp_path: Path) -> None:
    copy = Mechanism(np.eye(4), AGES, AGES)
    with pytest.raises(InputError, match="stands once, next to a number in 'share'"):
        release({"age": AGES, "share": SHARES}, {"age": copy}, tmp_path / "out", drop=["share"])
    assert not (tmp_path / "out").exists()


def test_commands_print_their_prior(tmp_path: Path) -> None:
    law, counts, data = tmp_path / "law.csv", tmp_path / "counts.csv", tmp_path / "data.csv"
    law.write_text("letter,share\nlow,0.75\nhigh,0.25\n")
    counts.write_text("letter,count\nlow,3\nhigh,1\n")
    data.write_text("level,city\nlow,A\nlow,B\nlow,A\nhigh,A\n")
    rest = ("--epsilon", "0.2", "--utility", "hamming")
    for words, text in (
        (("--prior", law), "law.csv, read as shares; low: 0.75, high: 0.25"),
        (("--prior", counts), "counts.csv, read as counts of 4 people; low: 0.75, high: 0.25"),
        (("--counts", counts), "counts.csv, read as counts of 4 people; low: 0.75, high: 0.25"),
        (("--prior", data, "--column", "level"),
         "data.csv, 'level' of 4 people counted; high: 0.25, low: 0.75"),
    ):  # fmt: skip
        assert f"The prior is {text}." in run("design", *words, *rest).stderr
