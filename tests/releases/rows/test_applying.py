"""Mechanisms applied to data files: cells kept, outputs drawn, batches and formats, files whole or absent."""

from __future__ import annotations

import csv
import datetime
import errno
import io
import itertools
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
import pandas
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tables.tables_of_any_kind import cells_of, csv_bytes, write_table

import pmlopt
from pmlopt import Mechanism
from pmlopt.errors import FileFormatError, InputError, MechanismError
from pmlopt.releases.rows.applying import ApplyResult, apply_columns
from pmlopt.releases.rows.batches import ColumnRelease
from pmlopt.tables import CsvFormat, open_table, reading

TEXTS = st.one_of(
    st.text(st.characters(codec="utf-8", exclude_characters="\0"), min_size=1, max_size=4),
    st.sampled_from(
        ["a,b", 'say "x"', "line\nbreak", "cr\rhere", " b ", "007", "1.0", "NA", "å", "'('a', 1)'"]
    ),
)


def identity(labels: list[Any]) -> Mechanism:
    return Mechanism(np.eye(len(labels)), labels, labels)


def applied(
    source: Path,
    mechanism: Mechanism,
    out: Path,
    *columns: str,
    form: CsvFormat | None = None,
    **options: Any,
) -> ApplyResult:
    """What is told of a mechanism that is applied to a column, or to columns as tuples, in the order of
    rows.
    """
    options.setdefault("keep_order", True)
    with open_table(source, form) as table:
        return apply_columns(table, [ColumnRelease(mechanism, columns or ("s",))], out, **options)


@settings(
    max_examples=20, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(st.lists(st.tuples(TEXTS, TEXTS, TEXTS), min_size=1, max_size=6))
def test_the_identity_gives_every_csv_cell_back(
    tmp_path: Path, rows: list[tuple[str, str, str]]
) -> None:
    source, out, names = tmp_path / "data.csv", tmp_path / "out.csv", ["x", "the, secret", "y"]
    source.write_bytes(csv_bytes([names, *rows], end="\r\n"))
    mechanism = identity(list(dict.fromkeys(row[1] for row in rows)))
    applied(source, mechanism, out, "the, secret", form=CsvFormat(","))
    with out.open(newline="", encoding="utf-8") as stream:
        assert list(csv.reader(stream, strict=True)) == [names, *map(list, rows)]


def test_seeds_draw_the_same_from_every_format(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(reading, "_MAX_BATCH_ROWS", 1_000)
    rng, rows = np.random.default_rng(0), 20_000
    secret, other = ([str(letter) for letter in rng.integers(0, size, rows)] for size in (3, 2))
    (tmp_path / "data.csv").write_bytes(
        csv_bytes([("s", "t"), *zip(secret, other, strict=True)], end="\r\n")
    )
    write_table(tmp_path / "data.parquet", {"s": secret, "t": other})
    releases = [
        ColumnRelease(Mechanism(rng.dirichlet(np.ones(3), 3)), ("s",)),
        ColumnRelease(Mechanism([[0.5, 0.5], [0.25, 0.75]]), ("t",)),
    ]
    found = []
    for name in ("data.csv", "data.parquet"):
        with open_table(tmp_path / name) as table:
            assert (
                apply_columns(table, releases, tmp_path / "out.csv", seed=4, keep_order=True).rows
                == rows
            )
        found.append((tmp_path / "out.csv").read_bytes())
    assert found[0] == found[1]
    released = cells_of(open_table(tmp_path / "out.csv"))
    expected = Mechanism(releases[0].mechanism.matrix, list("012")).sample(secret, seed=4)
    assert [row[0] for row in released] == [str(output) for output in expected]
    for letter in "01":  # Hoeffding: off by 0.04 with probability at most 2 exp(-30)
        share = np.mean(
            [row[1] == "1" for row, old in zip(released, other, strict=True) if old == letter]
        )
        assert share == pytest.approx([0.5, 0.75][int(letter)], abs=0.04)


def test_several_columns_are_released_as_tuples(tmp_path: Path) -> None:
    source, out, none = tmp_path / "data.csv", tmp_path / "out.csv", tmp_path / "no.csv"
    source.write_text("a,id,b\nx,1,0\ny,2,1\n")
    labels = [("x", 0), ("x", 1), ("y", 0), ("y", 1)]
    swap, letters = Mechanism(np.eye(4)[::-1], labels, labels), identity(["x", "y"])
    applied(source, swap, out, "a", "b")
    assert out.read_text() == "a,id,b\ny,1,1\nx,2,0\n"
    parity = Mechanism(np.eye(2)[[0, 1, 1, 0]], labels, ["even", "odd"])
    with pytest.raises(InputError, match="no column 'typo'"):
        applied(source, parity, none, "a", "b", keep=["typo"])
    applied(source, parity, out, "a", "b", keep=["id"])
    assert out.read_text() == "a+b,id\neven,1\neven,2\n"
    with pytest.raises(MechanismError, match="no tuple of 2"):
        applied(source, letters, none, "a", "b")
    with open_table(source) as table, pytest.raises(InputError, match="two mechanisms"):
        apply_columns(
            table, [ColumnRelease(swap, ("a", "b")), ColumnRelease(letters, ("a",))], none
        )
    assert not none.exists()


def test_missing_cells(tmp_path: Path) -> None:
    source, out = tmp_path / "data.csv", tmp_path / "out.csv"
    source.write_text("id,s\n1,a\n2,\n3,b\n")
    with pytest.raises(
        MechanismError, match=r"row 3: the value '' is not an input.*--missing drop"
    ):
        applied(source, identity(["a", "b"]), out)
    assert not out.exists()
    applied(source, identity(["a", "b"]), out, drop_missing=True)
    assert out.read_text() == "id,s\n1,a\n3,b\n"
    applied(source, identity(["a", "b", ""]), out)
    assert out.read_text() == "id,s\n1,a\n2,\n3,b\n"


def test_outputs_in_csv_are_their_texts_from_every_kind_of_table(tmp_path: Path) -> None:
    rows = ["a", "b", "c", "a"]
    (tmp_path / "data.csv").write_bytes(
        csv_bytes([("s", "t"), *zip(rows, rows, strict=True)], end="\r\n")
    )
    write_table(tmp_path / "data.parquet", {"s": rows, "t": rows})
    for outputs in ([1.0, 1e-05, -0.0], [True, False, 2], [10**20, 1e16, "x"]):
        for name in ("data.csv", "data.parquet"):
            mechanism = Mechanism(np.eye(3), ["a", "b", "c"], outputs)
            applied(tmp_path / name, mechanism, tmp_path / "out.csv", keep=[])
            assert (tmp_path / "out.csv").read_text().split() == [
                "s",
                *map(str, [*outputs, outputs[0]]),
            ]


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="no device that is always full")
@pytest.mark.parametrize("name", ["full.csv", "full.parquet"])
def test_a_full_device_is_told(tmp_path: Path, name: str) -> None:
    (tmp_path / name).symlink_to("/dev/full")
    for rows in (1, 2000):
        (tmp_path / "data.csv").write_text("s,t\n" + f"a,{'b' * 100}\n" * rows)
        with pytest.raises(FileFormatError, match=r"full.*cannot be written: No space left"):
            applied(tmp_path / "data.csv", identity(["a"]), tmp_path / name)


def test_what_cannot_be_read_on_is_not_laid_to_the_target(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "data.csv").write_text("s,t\n" + f"a,{'b' * 1000}\n" * 1500)  # beyond the head

    class Broken(io.FileIO):
        def read(self, size: int | None = -1) -> bytes:
            if self.tell():
                raise OSError(errno.EIO, os.strerror(errno.EIO))
            return super().read(size)

    monkeypatch.setattr(Path, "open", lambda path, mode: Broken(path, mode))
    with pytest.raises(FileFormatError, match=r"data.csv: cannot be read: Input/output error"):
        applied(tmp_path / "data.csv", identity(["a"]), tmp_path / "out.csv")


def test_a_bad_cell_in_the_last_row_is_told_and_leaves_no_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(reading, "_MAX_BATCH_ROWS", 1_000)
    write_table(tmp_path / "data.parquet", {"s": ["a"] * 3_000 + ["c"]})
    (tmp_path / "data.csv").write_text("id,s\n" + "1,a\n" * 3_000 + "2,c\n")
    for source, name in itertools.product(("data.csv", "data.parquet"), ("out.csv", "out.parquet")):
        with pytest.raises(MechanismError, match=r"row 300\d: the value 'c'"):
            applied(tmp_path / source, identity(["a", "b"]), tmp_path / name)
    assert {path.name for path in tmp_path.iterdir()} == {"data.csv", "data.parquet"}


def test_labels_that_read_alike_and_truth_values_that_are_no_numbers(tmp_path: Path) -> None:
    typed, out, none = tmp_path / "data.parquet", tmp_path / "out.csv", tmp_path / "no.csv"
    write_table(typed, {"s": [1, 2]})
    (tmp_path / "data.csv").write_text("s,t\n1,2\n")
    alike = Mechanism(np.eye(3), [1, "1", 2], ["a", "b", "c"])
    applied(typed, alike, out)
    assert out.read_text() == "s\na\nc\n"
    with pytest.raises(MechanismError, match="read alike"):
        applied(tmp_path / "data.csv", alike, none)
    for name in (none, tmp_path / "no.parquet"):
        with pytest.raises(InputError, match="read alike"):
            applied(typed, Mechanism(np.eye(2), [1, 2], [1, "1"]), name)
        assert not name.exists()
    write_table(typed, {"s": [True, False]})
    with pytest.raises(MechanismError, match="value True"):
        applied(typed, identity([0, 1]), none)
    applied(typed, identity([False, True]), out)
    assert out.read_text() == "s\nTrue\nFalse\n"


def test_a_released_parquet_file_says_nothing_of_columns_that_went(tmp_path: Path) -> None:
    frame, out = (
        pandas.DataFrame({"s": ["a", "b"], "diagnosis": ["x", "y"]}),
        tmp_path / "out.parquet",
    )
    frame.to_parquet(tmp_path / "data.parquet")
    applied(tmp_path / "data.parquet", identity(["a", "b"]), out, keep=[])
    assert b"diagnosis" not in out.read_bytes()


def test_a_column_that_parquet_cannot_hold_is_refused_before_anything_is_drawn(
    tmp_path: Path,
) -> None:
    import pyarrow

    month = pyarrow.MonthDayNano([1, 0, 0])
    write_table(tmp_path / "data.arrow", {"s": ["a"], "month": [month]})
    with pytest.raises(FileFormatError, match=r"'month'.*--drop"):
        applied(tmp_path / "data.arrow", identity(["a"]), tmp_path / "out.parquet")
    applied(tmp_path / "data.arrow", identity(["a"]), tmp_path / "out.arrow")


def test_columns_without_text_cannot_be_csv(tmp_path: Path) -> None:
    source, same = tmp_path / "data.parquet", identity(["a"])
    write_table(source, {"s": ["a"], "many": [[1, 2]]})
    with pytest.raises(FileFormatError, match=r"'many'.*--drop"):
        applied(source, same, tmp_path / "out.csv")
    applied(source, same, tmp_path / "out.parquet")
    with pytest.raises(InputError, match="no column of letters"):
        applied(source, same, tmp_path / "no.parquet", "many")


@pytest.mark.skipif(not hasattr(os, "O_TMPFILE"), reason="files without a name")
def test_a_release_that_is_killed_leaves_no_file(tmp_path: Path) -> None:
    """Killed while half of the data is written, with more to come."""
    identity(["a", "b"]).save(tmp_path / "m.json")
    here = str(Path(pmlopt.__file__).parent.parent)
    command = [
        sys.executable,
        "-m",
        "pmlopt",
        "apply",
        "m.json",
        "-",
        "--column",
        "s",
        "--keep",
        "t",
        "-o",
        "out.csv",
    ]
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, cwd=tmp_path, env={**os.environ, "PYTHONPATH": here}
    ) as process:
        assert process.stdin is not None
        process.stdin.write(b"s,t\n" + b"a,b\n" * 500_000)
        process.stdin.flush()
        while written_by(process.pid) == 0 and process.poll() is None:
            time.sleep(0.02)
        assert process.poll() is None
        process.send_signal(signal.SIGKILL)
    assert [path.name for path in tmp_path.iterdir()] == ["m.json"]


def written_by(pid: int) -> int:
    """The bytes of the nameless file that a process has open."""
    sizes = []
    for link in Path(f"/proc/{pid}/fd").iterdir():
        try:
            if "(deleted)" in str(link.readlink()):
                sizes.append(link.stat().st_size)
        except OSError:
            continue
    return max(sizes, default=0)


def test_parquet_has_dictionaries_of_columns_whose_values_repeat(tmp_path: Path) -> None:
    import pyarrow.parquet

    rows = 1000
    data = {
        "ill": ["no", "yes"] * (rows // 2),
        "id": list(range(rows)),
        "name": [f"n{k}" for k in range(rows)],
        "age": [k % 70 for k in range(rows)],
        "born": [datetime.date(1970, 1, 1) + datetime.timedelta(days=k) for k in range(rows)],
        "none": [None] * rows,
    }
    response = Mechanism([[0.75, 0.25], [0.25, 0.75]], ["no", "yes"], ["no", "yes"])
    out = tmp_path / "out.parquet"
    for more in ({}, {"parts": [[k] for k in range(rows)]}):
        with open_table({**data, **more}) as table:
            apply_columns(table, [ColumnRelease(response, ("ill",))], out)
        written = pyarrow.parquet.read_table(out)
        expected = sorted(zip(*(data[name] for name in ("id", "name", "age", "born")), strict=True))
        columns = (written[name].to_pylist() for name in ("id", "name", "age", "born"))
        assert sorted(zip(*columns, strict=True)) == expected
        group = pyarrow.parquet.ParquetFile(out).metadata.row_group(0)
        columns_of = {
            group.column(k).path_in_schema: group.column(k) for k in range(group.num_columns)
        }
        with_dictionary = {name for name, one in columns_of.items() if one.has_dictionary_page}
        assert {"ill", "age"} <= with_dictionary
        assert bool({"id", "name", "born"} & with_dictionary) == bool(
            more
        )  # nested columns: all have one


def test_a_parquet_file_without_rows_is_whole(tmp_path: Path) -> None:
    import pyarrow
    import pyarrow.parquet

    source, out = tmp_path / "in.parquet", tmp_path / "out.parquet"
    pyarrow.parquet.write_table(pyarrow.table({"ill": pyarrow.array([], pyarrow.string())}), source)
    with open_table(source, may_be_empty=True) as table:
        apply_columns(table, [ColumnRelease(identity(["no", "yes"]), ("ill",))], out)
    assert pyarrow.parquet.read_table(out).to_pydict() == {"ill": []}
