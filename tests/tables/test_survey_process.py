"""The process that reads survey files: what it keeps, and when another one takes its place."""

from __future__ import annotations

import io
import os
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from pmlopt.tables import column_counts, open_table, survey, survey_process
from pmlopt.tables.survey_process import FileServer

pd = pytest.importorskip("pandas")
pyreadstat = pytest.importorskip("pyreadstat")
pyarrow = pytest.importorskip("pyarrow")

ROWS = 400_000  # of three columns, which are two batches


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Codes with both zeros and missing values, text, and numbers that are all different."""
    path = tmp_path_factory.mktemp("survey") / "a.sav"
    frame = pd.DataFrame({
        "q": np.resize([0.0, -0.0, 1.5, np.nan, 9.0], ROWS),
        "text": np.resize(["a", "äst", ""], ROWS),
        "number": np.arange(ROWS) / 7,
    })  # fmt: skip
    pyreadstat.write_sav(frame, str(path), missing_ranges={"q": [9.0]})
    return path


def read_rows(server: FileServer, names: list[str]) -> Any:
    stream = io.BytesIO()
    server.write_rows(names, stream)
    assert stream.getvalue().endswith(b"+")
    return list(pyarrow.ipc.open_stream(stream.getvalue()))


def list_bytes(batches: Any) -> list[Any]:
    """Return the cells of record batches by their bits."""
    return [
        column.to_pylist() if column.type == pyarrow.string() else column.to_numpy().tobytes()
        for batch in batches
        for column in batch.columns
    ]


def test_columns_that_are_kept_are_those_of_the_file_bit_for_bit(data: Path) -> None:
    server = FileServer(str(data), ".sav", "")
    read_rows(server, ["q"])
    for names in (["text", "q"], ["q", "number", "text"], ["q", "text"]):
        fresh = FileServer(str(data), ".sav", "")
        assert list_bytes(read_rows(server, names)) == list_bytes(read_rows(fresh, names))


def test_columns_of_few_values_are_read_once(data: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[list[str]] = []
    plain = survey_process._read_batches

    def read_batches(read: Any, names: list[str], found: Any) -> Any:
        asked.append(names)
        return plain(read, names, found)

    monkeypatch.setattr(survey_process, "_read_batches", read_batches)
    server = FileServer(str(data), ".sav", "")
    for names in (["q", "number"], ["q", "text"], ["q", "number", "text"]):
        read_rows(server, names)
    assert asked == [["q", "number"], ["text"], ["number"]]


def test_the_next_table_of_a_file_has_the_process_of_the_last(data: Path) -> None:
    with open_table(data) as table:
        first = table._process  # type: ignore[attr-defined]
        assert sum(batch.size for batch in table.batches()) == ROWS
    with open_table(data) as again:
        assert again._process is first  # type: ignore[attr-defined]
        table.close()  # is over, and leaves what another table uses
        with open_table(data) as other:  # one process answers one table at a time
            assert other._process is not first  # type: ignore[attr-defined]
        next(again.batches())
    assert first not in survey._IDLE.values()  # it was about to send more
    assert first._child.returncode is not None


def test_a_file_that_was_changed_is_read_anew(tmp_path: Path) -> None:
    path = tmp_path / "a.sav"
    for answers in ([1.0, 2.0], [3.0, 4.0]):
        pyreadstat.write_sav(pd.DataFrame({"q": answers}), str(path))
        os.utime(path, ns=(int(answers[0]), int(answers[0])))
        assert list(column_counts(path, "q")) == answers


def test_modules_of_the_working_folder_are_not_imported(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pyreadstat.write_sav(pd.DataFrame({"q": [1.0, 2.0]}), str(tmp_path / "a.sav"))
    (tmp_path / "json.py").write_text("open('imported', 'w').close()\n")
    monkeypatch.chdir(tmp_path)
    assert column_counts("a.sav", "q") == {1: 1, 2: 1}
    assert not Path("imported").exists()
