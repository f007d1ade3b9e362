"""The table of a sweep: columns, and files that hold it all."""

from __future__ import annotations

import csv
import io
import json
import math
from pathlib import Path

import numpy as np
import pytest

from pmlopt.errors import FileFormatError, SweepError
from pmlopt.sweeps import Row, Sweep

NUMBERS = (0.1 + 0.2, math.inf, 0.0, 0.5)


@pytest.fixture
def table() -> Sweep:
    rows = (
        Row({"name": "a\rb", "n": 2**70, "x": 1}, "optimal", *NUMBERS, "highs", 3, True, 0.1),
        Row({"name": "c,d", "n": 1, "x": 0.5}, "failed", seconds=0.2, error="ValueError: a, b"),
    )
    return Sweep(("name", "n", "x"), rows)


def test_columns_are_arrays(table: Sweep) -> None:
    assert table.column("value").tolist()[0] == 0.1 + 0.2
    assert np.isnan(table.column("value")[1])
    assert np.isnan(table.column("iterations")[1])
    assert table.column("warm_started").tolist() == [True, False]
    assert table.column("error").tolist() == ["", "ValueError: a, b"]
    assert table.column("x").tolist() == [1.0, 0.5]
    assert table.failed == (table.rows[1],)
    with pytest.raises(SweepError, match="no column 'y'; it has name, n, x, status"):
        table.column("y")


def test_csv_holds_every_digit(table: Sweep, tmp_path: Path) -> None:
    table.save(tmp_path / "table.csv")
    with (tmp_path / "table.csv").open(newline="") as stream:
        first, second = csv.DictReader(stream)
    assert float(first["value"]) == 0.1 + 0.2
    assert first["bound"] == "inf"
    assert (first["name"], second["name"]) == ("a\rb", "c,d")
    assert int(first["n"]) == 2**70
    assert second["value"] == ""


def test_json_has_a_row_for_each_point(table: Sweep, tmp_path: Path) -> None:
    table.save(tmp_path / "table.json")
    stored = json.loads((tmp_path / "table.json").read_text())
    assert stored == table.to_dict()
    assert stored["rows"][0]["bound"] is None
    assert stored["rows"][0]["value"] == 0.1 + 0.2


def test_parquet_holds_types_and_digits(table: Sweep, tmp_path: Path) -> None:
    parquet = pytest.importorskip("pyarrow.parquet")
    table.save(tmp_path / "table.parquet")
    stored = parquet.read_table(io.BytesIO((tmp_path / "table.parquet").read_bytes()))
    assert stored.column_names == list(table.columns)
    rows = stored.to_pylist()
    assert rows[0]["value"] == 0.1 + 0.2
    assert rows[0]["bound"] == math.inf
    assert rows[0]["n"] == str(2**70)
    assert rows[1]["x"] == 0.5
    assert rows[1]["value"] is None
    assert rows[0]["warm_started"] is True


def test_other_endings_are_refused(table: Sweep, tmp_path: Path) -> None:
    with pytest.raises(FileFormatError, match=r"\.csv, \.parquet, \.json"):
        table.save(tmp_path / "table.xlsx")
