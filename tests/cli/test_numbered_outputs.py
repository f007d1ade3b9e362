"""Outputs without labels of letters with labels are y0, y1, ... in every file."""

from __future__ import annotations

import csv
from pathlib import Path

import numpy as np
import pytest
from commands import run

from pmlopt import Mechanism
from pmlopt.releases.rows.batches import BatchRelease
from pmlopt.tables import column_counts


@pytest.mark.parametrize("letters", [(1, 2, 3, 4), (0, 1, 2, 3)])
@pytest.mark.parametrize("ending", [".csv", ".json", ".npz"])
def test_outputs_are_told_from_letters(
    tmp_path: Path, letters: tuple[int, ...], ending: str
) -> None:
    prior, data = tmp_path / "prior.csv", tmp_path / "data.csv"
    prior.write_text(
        "educ,count\n" + "".join(f"{x},{40 - 10 * k}\n" for k, x in enumerate(letters))
    )
    data.write_text("educ,id\n" + "".join(f"{x},1\n" for x in letters * 50))
    made, released = tmp_path / f"m{ending}", tmp_path / "released.csv"
    run(
        "design",
        "--prior",
        prior,
        "--epsilon",
        "0.5",
        "--utility",
        "mutual-information",
        "-o",
        made,
    )
    if ending == ".csv":
        header, *rows = csv.reader(made.read_text().splitlines())
        assert header[1:] == [f"y{k}" for k in range(len(header) - 1)]
        assert [row[0] for row in rows] == list(map(str, letters))
    run("apply", made, data, "--column", "educ", "--drop", "id", "-o", released)
    assert {str(label)[0] for label in column_counts(released, "educ")} == {"y"}
    found = run("estimate", made, "--data", released, "--column", "educ", "--json")
    assert '"letter"' in found


def test_engines_name_outputs_so_too() -> None:
    import pyarrow

    flip = Mechanism(np.array([[0.0, 1.0], [1.0, 0.0]]), ["no", "yes"])
    batch = pyarrow.RecordBatch.from_pydict({"c": ["no", "yes"]})
    assert BatchRelease.of({"c": flip})(batch).to_pydict() == {"c": ["y1", "y0"]}
    bare = Mechanism([[0.0, 1.0], [1.0, 0.0]])  # of which neither side has labels
    numbers = pyarrow.RecordBatch.from_pydict({"c": [0, 1]})
    assert BatchRelease.of({"c": bare})(numbers).to_pydict() == {"c": [1, 0]}
