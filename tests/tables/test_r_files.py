"""Files of R, made by R 4.2, as tables of people, and back in R where it is installed."""

from __future__ import annotations

import base64
import datetime as dt
import gzip
import lzma
import math
import shutil
import subprocess
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from commands import run

from pmlopt import Mechanism
from pmlopt.errors import FileFormatError, InputError
from pmlopt.releases.rows.applying import apply_columns
from pmlopt.releases.rows.batches import ColumnRelease
from pmlopt.tables import CsvFormat, column_counts, converted, open_table

pytest.importorskip("rdata")

ONE = base64.b64decode(
    "/Td6WFoAAAFpIt42AgAhARYAAAB0L+Wj4ANRAUxdACwCfBn5r/QdO56YNX7q0PQhTbNFUsa9mj0VbTEVDg5DxGPHTIlR"
    "OFM8OkSPmERM2L98ynCWEJAiKFyBUfNdmpI2KZNrkN4L+2pDGvU9rLIzcTMjLsEmOs3V9/U4tiLo8gKOlUHPtYjfeq9V"
    "+OuEF7cw5c2N0sREkarPIhhavvY+FEtZC4jRaLY1Iw28LVDsSnZEQcW5B8joBLO/AlwD4vjWxx34m6BnGjLXfpad7qRk"
    "9t4SfYKhBxhsOrHGVkH+siAQWshyzTiPuV4nRJZrz/djMsyoDUSYcyvuNd31S//4upoSdtguYsJUq1oUue1twCF0pBtb"
    "SNsWI/dY5U3LUVmhz6MlB3esGWYT/No9WIqPnermkc3s1eyUWJUnp+TBzIq6+3EtkbkSv4XTW0Earr9MU9Ac2dA84CLd"
    "iaEk/FtFNq563i1kI/o8+8deAEbh/WYAAeQC0gYAAInTkLw+MA2LAgAAAAABWVo="
)
"""A data frame of four rows, named by people, that saveRDS compressed by xz; the second has only NA and NaN:

level = factor(c("low", "high", "mid", NA), c("low", "mid", "high", "never"), ordered = TRUE),
region = factor(c("b", "a", "b", NA), c("b", "a")), n = c(1L, NA, 3L, 4L), x = c(1.5, NaN, NA, Inf),
s = c("\u00e9", NA, "NA", ""), l = c(TRUE, NA, FALSE, TRUE), d a Date and t a POSIXct of Paris
"""

TWO = base64.b64decode(
    "QlpoOTFBWSZTWS/E8akAAo7/3v/3SAVAA4hA/yHeQD/n3/DIABAkIADKACKAQEHAAhzVSAxxkyaMQ00MBNDE0aZMQMjC"
    "aNNMIMmESlNJppoAAAAAAAAAAABxkyaMQ00MBNDE0aZMQMjCaNNMIMmCqRAiZPSYk9Jppo9Jo0ZAyGmTTTJ6Rk9T1DGp"
    "V2o6kcKTuPAtVFlSQvGoxpRJJIoK0FCkoXlSJqhIvpqWtSUIxIoVK0VMZtgoxYRGDglRW8yB+lo/h4YnXCEksmO6H0kr"
    "TrXK4hBiiURNtMabkuVIrgkF5u12p2WOMoVSqqwDbwSRSRVPkvSgANaKLfcqhbzpYXQ/LEmfd1ry+da6sSyJZksaSlLo"
    "uwolkXMgg3CqwUdUiKUWEVr0GkVKEUFryNYoFcghIgBoEFDpocNBMkSJIjgSRNytD9ubytfbXvha0JOdfTUMR00JvkzW"
    "sxSzHI2XM9WY6vFx5to8rzPqe5vsDz+hdXF7bZSiOJlYF9ftV9bsVGeFqlgi47XhMy1aztxrtR7VK1rLGfIv7ynITcSx"
    "ha1ymTjdjE0Wtk3WwouowPImmwsLQ+3LVdlqsazLNLIoJGPQshqxY0MXGcDhSd6VaUilpNhHe6X8Vu5YuO00sp3o0pGl"
    "ZEN5HrupxuT2c6NxWLuSKcKEgX4njUg="
)
"""The same as `d` and `e`, by save, compressed by bzip2."""

HIGH = ["low", "mid", "high", "never"]
OUTPUTS = Mechanism(np.eye(4), HIGH, HIGH)


@pytest.fixture(autouse=True)
def _without_child(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Convert in this process, where packages are loaded once, but for tests of the other process."""
    if "child" in request.node.name:
        return

    def call_here(function: Any, content: bytes, **given: Any) -> bytes:
        arguments = {name: given[name] for name in ("ending", "part")}
        return bytes(function(content, **arguments))

    monkeypatch.setattr(converted, "call_in_child", call_here)


@pytest.fixture
def people(tmp_path: Path) -> Path:
    path = tmp_path / "people.rds"
    path.write_bytes(ONE)
    return path


def read_columns(path: Path, **form: Any) -> dict[str, list[Any]]:
    with open_table(path, CsvFormat(**form)) as table:
        (batch,) = table.batches()
        return {
            name: column.to_pylist()
            for name, column in zip(table.names, batch.columns, strict=True)
        }


def check_cells(found: dict[str, list[Any]]) -> None:
    """Check the cells against those that R was given."""
    assert found["level"] == ["low", "high", "mid", None]
    assert found["region"] == ["b", "a", "b", None]
    assert found["n"] == [1, None, 3, 4]
    assert found["x"][0] == 1.5
    assert math.isnan(found["x"][1])
    assert found["x"][2:] == [None, math.inf]
    assert found["s"] == ["é", None, "NA", ""]
    assert found["l"] == [True, None, False, True]
    assert found["d"] == [dt.date(2020, 1, 1), None, dt.date(1999, 12, 31), dt.date(1969, 12, 31)]
    assert [one and one.timestamp() for one in found["t"]] == [
        # 12:30:15 in Paris, then an hour before UTC
        dt.datetime(2020, 1, 1, 11, 30, 15, tzinfo=dt.UTC).timestamp(),
        None,
        dt.datetime(2020, 1, 1, 23, 0, tzinfo=dt.UTC).timestamp(),
        -3599.0,
    ]


def test_levels_in_their_order_are_the_letters(people: Path) -> None:
    for column, order in {"level": ["low", "mid", "high"], "region": ["b", "a"]}.items():
        with pytest.raises(InputError, match="1 of 4 rows"):
            column_counts(people, column)
        assert list(column_counts(people, column, missing="drop")) == order


def test_a_design_and_its_estimates_have_the_order_of_the_levels(
    people: Path, tmp_path: Path
) -> None:
    how = ("--column", "level", "--missing", "drop", "--epsilon", 1, "--privacy", "ldp")
    run("design", "--prior", people, *how, "--utility", "hamming", "-o", tmp_path / "m.json")
    assert Mechanism.load(tmp_path / "m.json").inputs == ("low", "mid", "high")


def test_the_data_frame_of_several_is_named(tmp_path: Path) -> None:
    path = tmp_path / "people.rda"
    path.write_bytes(TWO)
    with pytest.raises(FileFormatError, match="data frames d and e: name one of them by --sheet"):
        open_table(path)
    check_cells(read_columns(path, sheet="e"))


def release_all(data: Path, target: Path) -> None:
    with open_table(data) as table:
        apply_columns(
            table, [ColumnRelease(OUTPUTS, ("level",))], target, drop_missing=True, keep_order=True
        )


def test_a_file_of_r_comes_back_with_factors_types_and_na(people: Path, tmp_path: Path) -> None:
    release_all(people, tmp_path / "out.rds")
    before, after = read_columns(people), read_columns(tmp_path / "out.rds")
    for name, cells in before.items():
        assert str(after[name]) == str(cells[:3]), name
    content = gzip.decompress((tmp_path / "out.rds").read_bytes())
    assert b"never" in content  # an output
    assert b"Ann" not in content  # the name of a row


IN_R = """
before <- readRDS(commandArgs(TRUE)[1])[1:3, ]; after <- readRDS(commandArgs(TRUE)[2])
for (name in names(before)) stopifnot(identical(droplevels(before)[[name]], droplevels(after)[[name]]))
stopifnot(identical(levels(after$level), levels(before$level)), is.nan(after$x) == c(FALSE, TRUE, FALSE))
"""


@pytest.mark.skipif(shutil.which("Rscript") is None, reason="there is no R here")
def test_r_has_the_same_columns_to_the_bit(people: Path, tmp_path: Path) -> None:
    release_all(people, tmp_path / "out.rds")
    script = tmp_path / "compare.R"
    script.write_text(IN_R)
    ended = subprocess.run(
        ["Rscript", str(script), str(people), str(tmp_path / "out.rds")],
        capture_output=True, text=True,
    )  # fmt: skip
    assert ended.returncode == 0, ended.stderr


def test_a_release_of_the_shell_is_checked_and_estimated(people: Path, tmp_path: Path) -> None:
    mechanism, folder = tmp_path / "m.json", tmp_path / "out"
    response = np.full((4, 4), 0.1) + 0.6 * np.eye(4)
    Mechanism(response, HIGH, HIGH).save(mechanism)
    run(
        "release", people, "--column", "level", "--keep", "region", "--drop", "n", "--drop", "x", "--drop",
        "s", "--drop", "l", "--drop", "d", "--drop", "t", "--mechanism", mechanism, "--missing", "drop",
        "--exact-counts", "-o", folder,
    )  # fmt: skip
    assert (folder / "released.rds").is_file()
    # a matrix has no certificate to be checked
    assert "What can be checked from the folder holds" in run("check", folder, code=3)
    run("estimate", folder)


@pytest.mark.parametrize("cut", [5, 100, 300, -1])
def test_a_damaged_file_ends_with_its_kind(cut: int, tmp_path: Path) -> None:
    path = tmp_path / "a.rds"
    path.write_bytes(ONE[:cut])
    run(
        "design", "--prior", path, "--column", "n", "--epsilon", "1", "--utility", "hamming", code=2
    )  # fmt: skip


def test_a_child_process_reads_the_types_of_r_and_na(people: Path) -> None:
    check_cells(read_columns(people))


@pytest.mark.parametrize("cut", [14, 60, 300, 700])
def test_a_file_that_ends_early_is_no_whole_one(cut: int, tmp_path: Path) -> None:
    path = tmp_path / "a.rds"
    path.write_bytes(lzma.decompress(ONE)[:cut])
    with pytest.raises(FileFormatError, match="is no whole file of R"):
        open_table(path)


def test_what_is_no_column_of_values_is_named(tmp_path: Path) -> None:
    rdata = pytest.importorskip("rdata")
    rdata.write_rds(tmp_path / "a.rds", [1, 2])
    with pytest.raises(FileFormatError, match="without a data frame"):
        open_table(tmp_path / "a.rds")
