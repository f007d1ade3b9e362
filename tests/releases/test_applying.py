"""Mechanisms applied to data files: cells kept, outputs drawn, batches and formats, files whole or absent."""

from __future__ import annotations

import csv
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
import pytest
from data.tables.tables_of_any_kind import cells_of, csv_bytes, write_table
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import pmlopt
from pmlopt import Mechanism
from pmlopt.data.tables import CsvForm, open_table, reading
from pmlopt.errors import FileFormatError, InputError, MechanismError
from pmlopt.releases.applying import apply_columns
from pmlopt.releases.batches import ColumnRelease

TEXTS = st.one_of(
    st.text(st.characters(codec="utf-8", exclude_characters="\0"), min_size=1, max_size=4),
    st.sampled_from(
        ["a,b", 'say "x"', "line\nbreak", "cr\rhere", " b ", "007", "1.0", "NA", "å", "'('a', 1)'"]
    ),
)


def identity(labels: list[Any]) -> Mechanism:
    return Mechanism(np.eye(len(labels)), labels, labels)


@settings(max_examples=20, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.lists(st.tuples(TEXTS, TEXTS, TEXTS), min_size=1, max_size=6))
def test_the_identity_gives_every_csv_cell_back(tmp_path: Path, rows: list[tuple[str, str, str]]) -> None:
    source, names = tmp_path / "data.csv", ["x", "the, secret", "y"]
    source.write_bytes(csv_bytes([names, *rows], end="\r\n"))
    mechanism = identity(list(dict.fromkeys(row[1] for row in rows)))
    release = ColumnRelease(mechanism, ("the, secret",))
    out = tmp_path / "out.csv"
    with open_table(source, CsvForm(",")) as table:
        apply_columns(table, [release], out)
    with out.open(newline="", encoding="utf-8") as stream:
        assert list(csv.reader(stream, strict=True)) == [names, *map(list, rows)]


@settings(max_examples=20, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.data())
def test_typed_columns_come_back_with_their_types(tmp_path: Path, data: st.DataObject) -> None:
    size = data.draw(st.integers(1, 6))
    kinds: dict[str, st.SearchStrategy[Any]] = {
        "text": TEXTS, "whole": st.integers(-(2**63), 2**63 - 1), "truth": st.booleans(),
        "real": st.floats(allow_nan=False, allow_infinity=False),
    }  # fmt: skip
    columns = {
        name: data.draw(st.lists(st.one_of(st.none(), kind), min_size=size, max_size=size))
        for name, kind in kinds.items()
    }
    secret = data.draw(st.sampled_from(sorted(kinds)))
    letters = sorted({value for value in columns[secret] if value is not None})
    source, out = tmp_path / "data.parquet", tmp_path / "out.parquet"
    write_table(source, columns)
    present = [row for row in range(size) if columns[secret][row] is not None]
    if not letters:
        return
    with open_table(source) as table:
        done = apply_columns(table, [ColumnRelease(identity(letters), (secret,))], out, drop_missing=True)
    assert (done.rows, done.dropped) == (len(present), size - len(present))
    if present:
        back = pytest.importorskip("pyarrow.parquet").read_table(out)
        for name, column in columns.items():
            assert back[name].to_pylist() == [column[row] for row in present]


def test_seeds_draw_the_same_from_every_format(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reading, "_LONGEST_BATCH", 1_000)
    rng, rows = np.random.default_rng(0), 20_000
    secret, other = ([str(letter) for letter in rng.integers(0, size, rows)] for size in (3, 2))
    (tmp_path / "data.csv").write_bytes(csv_bytes([("s", "t"), *zip(secret, other, strict=True)], end="\r\n"))
    write_table(tmp_path / "data.parquet", {"s": secret, "t": other})
    releases = [
        ColumnRelease(Mechanism(rng.dirichlet(np.ones(3), 3)), ("s",)),
        ColumnRelease(Mechanism([[0.5, 0.5], [0.25, 0.75]]), ("t",)),
    ]
    found = []
    for name in ("data.csv", "data.parquet"):
        with open_table(tmp_path / name) as table:
            assert apply_columns(table, releases, tmp_path / "out.csv", seed=4).rows == rows
        found.append((tmp_path / "out.csv").read_bytes())
    assert found[0] == found[1]
    released = cells_of(open_table(tmp_path / "out.csv"))
    expected = Mechanism(releases[0].mechanism.matrix, list("012")).sample(secret, seed=4)
    assert [row[0] for row in released] == [str(output) for output in expected]
    for letter in "01":  # Hoeffding: off by 0.04 with probability at most 2 exp(-30)
        share = np.mean([row[1] == "1" for row, old in zip(released, other, strict=True) if old == letter])
        assert share == pytest.approx([0.5, 0.75][int(letter)], abs=0.04)


def test_several_columns_are_released_as_tuples(tmp_path: Path) -> None:
    source, out = tmp_path / "data.csv", tmp_path / "out.csv"
    source.write_text("a,id,b\nx,1,0\ny,2,1\n")
    labels = [("x", 0), ("x", 1), ("y", 0), ("y", 1)]
    swap = Mechanism(np.eye(4)[::-1], labels, labels)
    with open_table(source) as table:
        apply_columns(table, [ColumnRelease(swap, ("a", "b"))], out)
    assert out.read_text() == "a,id,b\ny,1,1\nx,2,0\n"
    parity = Mechanism(np.eye(2)[[0, 1, 1, 0]], labels, ["even", "odd"])
    with open_table(source) as table, pytest.raises(InputError, match="named 'typo'"):
        apply_columns(table, [ColumnRelease(parity, ("a", "b"))], tmp_path / "no.csv", keep=["typo"])
    assert not (tmp_path / "no.csv").exists()
    with open_table(source) as table:
        apply_columns(table, [ColumnRelease(parity, ("a", "b"))], out, keep=["id"])
    assert out.read_text() == "a+b,id\neven,1\neven,2\n"
    with open_table(source) as table, pytest.raises(MechanismError, match="no tuple of 2"):
        apply_columns(table, [ColumnRelease(identity(["x", "y"]), ("a", "b"))], out)
    with open_table(source) as table, pytest.raises(InputError, match="two mechanisms"):
        apply_columns(
            table, [ColumnRelease(swap, ("a", "b")), ColumnRelease(identity(["x", "y"]), ("a",))], out
        )


def test_missing_cells(tmp_path: Path) -> None:
    source, out = tmp_path / "data.csv", tmp_path / "out.csv"
    source.write_text("id,s\n1,a\n2,\n3,b\n")

    def applied(labels: list[str], **options: Any) -> str:
        with open_table(source) as table:
            apply_columns(table, [ColumnRelease(identity(labels), ("s",))], out, **options)
        return out.read_text()

    with pytest.raises(MechanismError, match=r"row 3: the value '' is not an input.*--missing drop"):
        applied(["a", "b"])
    assert not out.exists()
    assert applied(["a", "b"], drop_missing=True) == "id,s\n1,a\n3,b\n"
    assert applied(["a", "b", ""]) == "id,s\n1,a\n2,\n3,b\n"


@pytest.mark.parametrize("outputs", [[1.0, 1e-05, -0.0], [True, False, 2], [10**20, 1e16, "x"]])
def test_outputs_in_csv_are_their_texts_from_every_kind_of_table(tmp_path: Path, outputs: list[Any]) -> None:
    rows = ["a", "b", "c", "a"]
    (tmp_path / "data.csv").write_bytes(csv_bytes([("s", "t"), *zip(rows, rows, strict=True)], end="\r\n"))
    write_table(tmp_path / "data.parquet", {"s": rows, "t": rows})
    release = ColumnRelease(Mechanism(np.eye(3), ["a", "b", "c"], outputs), ("s",))
    for name in ("data.csv", "data.parquet"):
        with open_table(tmp_path / name) as table:
            apply_columns(table, [release], tmp_path / "out.csv", keep=[])
        assert (tmp_path / "out.csv").read_text().split() == ["s", *map(str, [*outputs, outputs[0]])]


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="no device that is always full")
@pytest.mark.parametrize("name", ["full.csv", "full.parquet"])
@pytest.mark.parametrize("rows", [1, 2000])
def test_a_full_device_is_told(tmp_path: Path, name: str, rows: int) -> None:
    (tmp_path / "data.csv").write_text("s,t\n" + f"a,{'b' * 100}\n" * rows)
    (tmp_path / name).symlink_to("/dev/full")
    with (
        open_table(tmp_path / "data.csv") as table,
        pytest.raises(FileFormatError, match=r"full.*cannot be written: No space left"),
    ):
        apply_columns(table, [ColumnRelease(identity(["a"]), ("s",))], tmp_path / name)


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
    with (
        open_table(tmp_path / "data.csv") as table,
        pytest.raises(FileFormatError, match=r"data.csv: cannot be read: Input/output error"),
    ):
        apply_columns(table, [ColumnRelease(identity(["a"]), ("s",))], tmp_path / "out.csv")


def test_a_bad_cell_in_the_last_row_is_told_and_leaves_no_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(reading, "_LONGEST_BATCH", 1_000)
    write_table(tmp_path / "data.parquet", {"s": ["a"] * 3_000 + ["c"]})
    (tmp_path / "data.csv").write_text("id,s\n" + "1,a\n" * 3_000 + "2,c\n")
    for source, name in itertools.product(("data.csv", "data.parquet"), ("out.csv", "out.parquet")):
        with (
            open_table(tmp_path / source) as table,
            pytest.raises(MechanismError, match=r"row 300\d: the value 'c'"),
        ):
            apply_columns(table, [ColumnRelease(identity(["a", "b"]), ("s",))], tmp_path / name)
    assert {path.name for path in tmp_path.iterdir()} == {"data.csv", "data.parquet"}


def test_labels_that_read_alike(tmp_path: Path) -> None:
    write_table(tmp_path / "data.parquet", {"s": [1, 2]})
    (tmp_path / "data.csv").write_text("s,t\n1,2\n")
    alike = Mechanism(np.eye(3), [1, "1", 2], ["a", "b", "c"])
    with open_table(tmp_path / "data.parquet") as table:
        apply_columns(table, [ColumnRelease(alike, ("s",))], tmp_path / "out.csv")
    assert (tmp_path / "out.csv").read_text() == "s\na\nc\n"
    with open_table(tmp_path / "data.csv") as table, pytest.raises(MechanismError, match="read alike"):
        apply_columns(table, [ColumnRelease(alike, ("s",))], tmp_path / "no.csv")
    outputs = Mechanism(np.eye(2), [1, 2], [1, "1"])
    for name in ("no.csv", "no.parquet"):
        with open_table(tmp_path / "data.parquet") as table, pytest.raises(InputError, match="read alike"):
            apply_columns(table, [ColumnRelease(outputs, ("s",))], tmp_path / name)
        assert not (tmp_path / name).exists()


def test_truth_values_are_no_numbers(tmp_path: Path) -> None:
    write_table(tmp_path / "data.parquet", {"s": [True, False]})
    numbers = ColumnRelease(identity([0, 1]), ("s",))
    with open_table(tmp_path / "data.parquet") as table, pytest.raises(MechanismError, match="value True"):
        apply_columns(table, [numbers], tmp_path / "out.csv")
    with open_table(tmp_path / "data.parquet") as table:
        apply_columns(table, [ColumnRelease(identity([False, True]), ("s",))], tmp_path / "out.csv")
    assert (tmp_path / "out.csv").read_text() == "s\nTrue\nFalse\n"


def test_a_released_parquet_file_says_nothing_of_columns_that_went(tmp_path: Path) -> None:
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame({"s": ["a", "b"], "diagnosis": ["x", "y"]})
    frame.to_parquet(tmp_path / "data.parquet")
    with open_table(tmp_path / "data.parquet") as table:
        apply_columns(table, [ColumnRelease(identity(["a", "b"]), ("s",))], tmp_path / "out.parquet", keep=[])
    assert b"diagnosis" not in (tmp_path / "out.parquet").read_bytes()


def test_columns_without_text_cannot_be_csv(tmp_path: Path) -> None:
    write_table(tmp_path / "data.parquet", {"s": ["a"], "many": [[1, 2]]})
    with (
        open_table(tmp_path / "data.parquet") as table,
        pytest.raises(FileFormatError, match=r"'many'.*--drop"),
    ):
        apply_columns(table, [ColumnRelease(identity(["a"]), ("s",))], tmp_path / "out.csv")
    with open_table(tmp_path / "data.parquet") as table:
        apply_columns(table, [ColumnRelease(identity(["a"]), ("s",))], tmp_path / "out.parquet")
    with (
        open_table(tmp_path / "data.parquet") as table,
        pytest.raises(InputError, match="no column of letters"),
    ):
        apply_columns(table, [ColumnRelease(identity(["a"]), ("many",))], tmp_path / "no.parquet")


@pytest.mark.skipif(not hasattr(os, "O_TMPFILE"), reason="files without a name")
def test_a_release_that_is_killed_leaves_no_file(tmp_path: Path) -> None:
    """Killed while half of the data is written, with more to come."""
    identity(["a", "b"]).save(tmp_path / "m.json")
    here = str(Path(pmlopt.__file__).parent.parent)
    command = [sys.executable, "-m", "pmlopt", "apply", "m.json", "-", "--column", "s", "-o", "out.csv"]
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
