"""A sweep that was killed goes on where it was, and ends with the table of one that was not."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from sweeps.builders import GRID, but_seconds, gated, interrupted, logged, plain

from pmlopt import Program, sweep
from pmlopt.core.files.disk import exclusive_lock
from pmlopt.errors import FileFormatError, SweepError
from pmlopt.sweeps import Sweep

TESTS = Path(__file__).parent.parent
PATIENCE = 60.0
KILLED = """
from functools import partial
from pathlib import Path
from pmlopt import sweep
from sweeps.builders import GRID, gated

folder = Path({folder!r})
builder = partial(gated, folder / "log", folder / "gate")
sweep(builder, GRID, out=folder / "table.csv")
"""


@pytest.fixture(scope="module")
def whole() -> Sweep:
    return sweep(plain, GRID)


@pytest.fixture
def stopped(tmp_path: Path) -> Callable[[], Program[Any]]:
    """The builder of a sweep that was interrupted with four points finished."""
    builder = partial(interrupted, tmp_path / "log", tmp_path / "gate")
    with pytest.raises(KeyboardInterrupt):
        sweep(builder, GRID, out=tmp_path / "table.csv")
    (tmp_path / "gate").touch()
    return builder


def begun(folder: Path) -> Counter[str]:
    log = folder / "log"
    return Counter(log.read_text().splitlines() if log.exists() else [])


def files(folder: Path) -> set[str]:
    return {file.name for file in folder.iterdir()}


def lines(folder: Path) -> int:
    part = folder / "table.csv.part"
    return part.read_bytes().count(b"\n") - 1 if part.exists() else 0


def wait_until(running: subprocess.Popen[bytes], reached: Callable[[], bool]) -> None:
    end = time.monotonic() + PATIENCE
    while not reached():
        assert running.poll() is None
        assert time.monotonic() < end
        time.sleep(0.01)


def test_after_a_kill_the_table_is_the_same(tmp_path: Path, whole: Sweep) -> None:
    script, finished = KILLED.format(folder=str(tmp_path)), 4
    path = os.pathsep.join([str(TESTS), os.environ.get("PYTHONPATH", "")])
    environment = {**os.environ, "PYTHONPATH": path}
    with subprocess.Popen([sys.executable, "-c", script], env=environment) as running:
        try:
            wait_until(
                running, lambda: lines(tmp_path) >= finished and bool(begun(tmp_path)["3 0.5"])
            )
        finally:
            running.kill()
    assert running.returncode == -signal.SIGKILL
    assert lines(tmp_path) == finished
    assert not (tmp_path / "table.csv").exists()
    (tmp_path / "gate").touch()
    builder = partial(gated, tmp_path / "log", tmp_path / "gate")
    table = sweep(builder, GRID, out=tmp_path / "table.csv")
    assert but_seconds(table) == but_seconds(whole)
    again = {point for point, times in begun(tmp_path).items() if times > 1}
    assert again == {"3 0.5"}  # the one that was under way
    assert len(begun(tmp_path)) == 12
    assert files(tmp_path) == {"table.csv", "log", "gate"}


def test_finished_rows_are_kept_with_their_seconds(
    tmp_path: Path, whole: Sweep, stopped: Callable[[], Program[Any]]
) -> None:
    lines = (tmp_path / "table.csv.part").read_text().splitlines()[1:]
    kept = [line.rpartition(",")[0] for line in lines]  # all but the digest
    table = sweep(stopped, GRID, out=tmp_path / "table.csv")
    assert but_seconds(table) == but_seconds(whole)
    assert set(begun(tmp_path).values()) == {1}
    written = (tmp_path / "table.csv").read_text().splitlines()[1:]
    assert [f"{position},{line}" for position, line in enumerate(written[:4])] == kept
    assert files(tmp_path) == {"table.csv", "log", "gate"}


def test_a_line_that_was_cut_short_is_dropped(
    tmp_path: Path, whole: Sweep, stopped: Callable[[], Program[Any]]
) -> None:
    part, table = tmp_path / "table.csv.part", tmp_path / "table.csv"
    content = part.read_bytes()
    for cut, point in (
        (content[:-7], "3 0.4"),
        (content[:40], "3 0.1"),
    ):  # the last line, or the first
        part.write_bytes(cut)
        (tmp_path / "log").unlink()
        assert but_seconds(sweep(stopped, GRID, out=table)) == but_seconds(whole)
        assert begun(tmp_path)[point] == 1
        table.unlink()
    part.write_bytes(content)
    table.write_text("cut short")  # as if the journal had outlived the table
    sweep(stopped, GRID, out=table)
    assert len(table.read_text().splitlines()) == 13
    assert files(tmp_path) == {"table.csv", "log", "gate"}


def test_a_journal_of_another_sweep_is_refused(
    tmp_path: Path, stopped: Callable[[], Program[Any]]
) -> None:
    asked: dict[str, Any] = {"builder": stopped, "grid": GRID, "out": tmp_path / "table.csv"}
    before = (tmp_path / "table.csv.part").read_bytes()
    cases: list[tuple[dict[str, Any], str]] = [
        ({"tolerance": 1e-6}, "whose tolerance is None, not 1e-06"),
        ({"solver": "highs"}, "whose solver is 'auto', not 'highs'"),
        ({"time_limit": 5.0}, "whose time_limit is None, not 5.0"),
        ({"grid": {"size": (3, 4), "epsilon": (0.1,)}}, "whose grid is"),
        (
            {"builder": plain},
            "whose builder is 'sweeps.builders.interrupted', not 'sweeps.builders.plain'",
        ),
        ({"builder": partial(interrupted, Path("log"), Path("gate"))}, "whose data in the builder"),
    ]
    for changes, said in cases:
        with pytest.raises(SweepError, match=f"{said}.*give another name.*or delete"):
            sweep(**{**asked, **changes})
        assert (tmp_path / "table.csv.part").read_bytes() == before


def test_a_journal_of_nothing_is_refused(tmp_path: Path) -> None:
    part = tmp_path / "table.csv.part"
    for content in ("my notes\n", "my notes", "[1]\n"):
        part.write_text(content)
        with pytest.raises(SweepError, match="does not identify a sweep"):
            sweep(plain, GRID, out=tmp_path / "table.csv")
        assert part.read_text() == content


def test_a_row_that_was_edited_does_not_enter_the_table(
    tmp_path: Path, whole: Sweep, stopped: Callable[[], Program[Any]]
) -> None:
    part = tmp_path / "table.csv.part"
    header, first, second, *rows = part.read_text().splitlines(keepends=True)
    other = tmp_path / "other"
    other.mkdir()
    with pytest.raises(KeyboardInterrupt):
        sweep(
            partial(interrupted, other / "log", other / "gate"),
            GRID,
            tolerance=1e-6,
            out=other / "table.csv",
        )
    foreign = (other / part.name).read_text().splitlines(keepends=True)[2]
    edits = [
        second.replace(*change, 1)
        for change in (("optimal", "proved"), ("3,0.2,", "3,0.3,"), (",0", ",1"))
    ]
    added = ("99,3,0.1,optimal\n", "x\n", "\n", "1,3,0.2,optimal,a,,,,,,,\n")
    for edited in (*edits, *(second + line for line in added), foreign):
        assert edited != second
        part.write_text("".join([header, first, edited, *rows]))
        with pytest.raises(SweepError, match=r"was not written by this sweep.*delete it"):
            sweep(stopped, GRID, out=tmp_path / "table.csv")
        assert part.read_text() == "".join([header, first, edited, *rows])
        assert not (tmp_path / "table.csv").exists()
    part.write_text("".join([header, first, *rows]))  # without the line its point is solved again
    assert but_seconds(sweep(stopped, GRID, out=tmp_path / "table.csv")) == but_seconds(whole)


def test_a_finished_table_is_not_written_over(tmp_path: Path) -> None:
    builder = partial(logged, tmp_path / "log")
    sweep(builder, GRID, out=tmp_path / "table.json")
    before = (tmp_path / "table.json").read_bytes()
    with pytest.raises(SweepError, match="is there already: give another name, or delete it"):
        sweep(builder, GRID, out=tmp_path / "table.json")
    assert (tmp_path / "table.json").read_bytes() == before
    assert files(tmp_path) == {"table.json", "log"}
    assert len(json.loads(before)["rows"]) == 12


def test_a_failed_point_stays_failed(tmp_path: Path) -> None:
    builder = partial(interrupted, tmp_path / "log", tmp_path / "gate")
    grid = [{"size": size, "epsilon": e} for size, e in ((0, 0.1), (0, 0.2), (3, 0.4), (3, 0.5))]
    with pytest.raises(KeyboardInterrupt):
        sweep(builder, grid, out=tmp_path / "table.csv")
    (tmp_path / "gate").touch()
    table = sweep(builder, grid, out=tmp_path / "table.csv")
    assert [row.status for row in table.rows] == ["failed", "failed", "optimal", "optimal"]
    assert begun(tmp_path)["0 0.1"] == 1


def test_two_writers_of_one_journal_are_refused(
    tmp_path: Path, stopped: Callable[[], Program[Any]], monkeypatch: pytest.MonkeyPatch
) -> None:
    with (
        exclusive_lock(tmp_path / "table.csv"),
        pytest.raises(SweepError, match="another process is writing it"),
    ):
        sweep(stopped, GRID, out=tmp_path / "table.csv")
    sweep(stopped, GRID, out=tmp_path / "table.csv")


def test_two_sweeps_of_one_name_that_start_together(tmp_path: Path, whole: Sweep) -> None:
    """One of them writes the table, with its own rows only; the other is told so, or that it is there."""
    out, together = tmp_path / "table.csv", threading.Barrier(2)

    def one(tolerance: float) -> Sweep | SweepError:
        together.wait()
        try:
            return sweep(plain, GRID, tolerance=tolerance, out=out)
        except SweepError as error:
            return error

    with ThreadPoolExecutor(2) as pool:
        ends = list(pool.map(one, (1e-7, 1e-6)))
    (table,) = [end for end in ends if isinstance(end, Sweep)]
    (error,) = [end for end in ends if isinstance(end, SweepError)]
    assert "another process is writing it" in str(error) or "is there already" in str(error)
    assert but_seconds(table) == but_seconds(whole)
    assert files(tmp_path) == {"table.csv"}


def test_tables_that_could_not_be_written_are_refused_before(tmp_path: Path) -> None:
    with pytest.raises(FileFormatError, match="folder"):
        sweep(plain, GRID, out=tmp_path / "nowhere" / "table.csv")
    with pytest.raises(FileFormatError, match="ending"):
        sweep(plain, GRID, out=tmp_path / "table.txt")
    (tmp_path / "file").touch()
    with pytest.raises(FileFormatError, match="not a folder"):
        sweep(plain, GRID, mechanisms=tmp_path / "file")
    (tmp_path / "other.csv.part").mkdir()
    with pytest.raises((FileFormatError, SweepError)):
        sweep(plain, GRID, out=tmp_path / "other.csv")
