"""The table of a sweep: columns, and files that hold it all."""

from __future__ import annotations

import csv
import io
import json
import math
from pathlib import Path

import numpy as np
import pyarrow.parquet
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


def test_files_hold_every_digit(table: Sweep, tmp_path: Path) -> None:
    for ending in ("csv", "json", "parquet"):
        table.save(tmp_path / f"table.{ending}")
    with (tmp_path / "table.csv").open(newline="") as stream:
        first, second = csv.DictReader(stream)
    assert float(first["value"]) == 0.1 + 0.2
    assert (first["bound"], second["value"]) == ("inf", "")
    assert (first["name"], second["name"], int(first["n"])) == ("a\rb", "c,d", 2**70)
    stored = json.loads((tmp_path / "table.json").read_text())
    assert stored == table.to_dict()
    assert (stored["rows"][0]["bound"], stored["rows"][0]["value"]) == (None, 0.1 + 0.2)
    typed = pyarrow.parquet.read_table(io.BytesIO((tmp_path / "table.parquet").read_bytes()))
    assert typed.column_names == list(table.columns)
    rows = typed.to_pylist()
    assert (rows[0]["value"], rows[0]["bound"], rows[0]["n"]) == (0.1 + 0.2, math.inf, str(2**70))
    assert (rows[1]["x"], rows[1]["value"], rows[0]["warm_started"]) == (0.5, None, True)
    with pytest.raises(FileFormatError, match=r"\.csv, \.parquet, \.json"):
        table.save(tmp_path / "table.xlsx")
