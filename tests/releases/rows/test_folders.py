"""Folders of files: places kept, interrupted and resumed, tried again, whole or absent."""

from __future__ import annotations

import json
from concurrent.futures import Executor, Future, ThreadPoolExecutor
from hashlib import sha256
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow
import pyarrow.parquet
import pytest
from commands import run

from pmlopt import Mechanism, check
from pmlopt.errors import FileFormatError, InputError, MechanismError
from pmlopt.publishing import release
from pmlopt.releases.rows.applying import SUMMARY, _FolderWork, apply_folder
from pmlopt.releases.rows.batches import ColumnRelease
from pmlopt.tables import FolderTable, column_counts, open_table

FLIP = ColumnRelease(Mechanism([[0.0, 1.0], [1.0, 0.0]], ["no", "yes"], ["no", "yes"]), ("smokes",))
COIN = ColumnRelease(Mechanism([[0.5, 0.5], [0.5, 0.5]], ["no", "yes"], ["no", "yes"]), ("smokes",))
ROWS = 300


def write(path: Path, **columns: Any) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    pyarrow.parquet.write_table(pyarrow.table(columns), path)


@pytest.fixture
def data(tmp_path: Path) -> Path:
    """Three files of one table, in the folders of two years, whose ids tell the rows apart."""
    folder = tmp_path / "data"
    for number, name in enumerate(
        ["year=2019/a.parquet", "year=2019/b.parquet", "year=2020/a.parquet"]
    ):
        ids = np.arange(ROWS) + number * ROWS
        write(folder / name, id=ids, smokes=np.where(ids % 3 == 0, "yes", "no"))
    write(folder / "_metadata" / "none.parquet", other=[1])
    return folder


def rows_of(path: Path) -> dict[str, list[Any]]:
    return dict(pyarrow.parquet.read_table(path, partitioning=None).to_pydict())


def files_of(folder: Path) -> dict[str, bytes]:
    return {
        path.relative_to(folder).as_posix(): path.read_bytes()
        for path in sorted(folder.rglob("*"))
        if path.is_file()
    }


def test_each_file_is_released_in_its_place_where_the_order_is_kept(
    data: Path, tmp_path: Path
) -> None:
    out = tmp_path / "out"
    applied, finished = apply_folder(FolderTable(data), [FLIP], out, keep_order=True)
    assert (applied.rows, applied.dropped, applied.kept) == (3 * ROWS, 0, ["id", "year"])
    assert list(finished) == sorted(files_of(out)) == ["year=2019/a.parquet", "year=2019/b.parquet",
                                                       "year=2020/a.parquet"]  # fmt: skip
    for name in finished:
        before, after = rows_of(data / name), rows_of(out / name)
        assert after["id"] == before["id"]
        assert after["smokes"] == [{"no": "yes", "yes": "no"}[one] for one in before["smokes"]]
    assert sorted(path.name for path in tmp_path.iterdir()) == ["data", "out"]
    apply_folder(
        FolderTable(data),
        [FLIP],
        tmp_path / "told",
        keep=["year"],
        about={"title": "T"},
        keep_order=True,
    )
    told = json.loads((tmp_path / "told" / SUMMARY).read_text())
    assert told["order"] == "that of the data"
    assert (told["title"], told["rows"], told["kept"]) == ("T", 3 * ROWS, ["year"])
    assert told["random"] == "the operating system"
    for name, one in told["files"].items():
        assert sha256((tmp_path / "told" / name).read_bytes()).hexdigest() == one["sha256"]
        assert one["rows"] == ROWS


def test_rows_are_in_a_random_order_over_all_files_of_what_is_in_clear(
    data: Path, tmp_path: Path
) -> None:
    out = tmp_path / "out"
    applied, finished = apply_folder(FolderTable(data), [FLIP], out, about={})
    assert (applied.rows, applied.dropped, applied.kept) == (3 * ROWS, 0, ["id", "year"])
    names = ["year=2019/a.parquet", "year=2019/b.parquet", "year=2020/a.parquet"]
    assert list(finished) == names
    assert sorted(files_of(out)) == [SUMMARY, *names]
    assert json.loads((out / SUMMARY).read_text())["order"] == "random"
    found = [rows_of(out / name) for name in names]
    for one in found:  # rows stay whole
        assert one["smokes"] == ["no" if number % 3 == 0 else "yes" for number in one["id"]]
    ids = [one["id"] for one in found]
    assert sorted(ids[0] + ids[1]) == list(range(2 * ROWS))
    assert sorted(ids[2]) == list(range(2 * ROWS, 3 * ROWS))
    # a fair coin decides of which file a row is: 6 standard deviations are exceeded once in 5e8 times
    assert abs(len(ids[0]) - ROWS) < 6 * np.sqrt(2 * ROWS) / 2
    assert abs(sum(number < ROWS for number in ids[0]) - ROWS / 2) < 6 * np.sqrt(ROWS) / 2
    ranks = np.array([number - 2 * ROWS for number in ids[2]])
    places = np.arange(ROWS)
    assert abs(np.corrcoef(ranks, places)[0, 1]) < 6 / np.sqrt(ROWS - 1)


def test_parts_without_rows_are_left_out(tmp_path: Path) -> None:
    for number in range(9):
        write(tmp_path / "data" / f"{number}.parquet", smokes=["no"])
    _, finished = apply_folder(FolderTable(tmp_path / "data"), [FLIP], tmp_path / "out")
    assert sum(one.rows for one in finished.values()) == 9
    assert all(one.rows for one in finished.values())
    assert sorted(files_of(tmp_path / "out")) == sorted(finished)


def test_a_folder_is_one_table_for_whoever_counts(data: Path) -> None:
    with open_table(data) as table:
        assert (table.names, table.rows) == (["id", "smokes", "year"], 3 * ROWS)
    assert column_counts(data, "smokes") == {"no": 2 * ROWS, "yes": ROWS}
    assert column_counts(str(data), "year") == {"2019": 2 * ROWS, "2020": ROWS}
    assert column_counts(data / "year=2019" / "*.parquet", "smokes") == {"no": 400, "yes": 200}
    with pytest.raises(FileFormatError, match="has no file that ends in"):
        column_counts(data / "*.csv", "smokes")


def test_what_folders_are_named_by_is_kept_or_refused(data: Path, tmp_path: Path) -> None:
    with pytest.raises(InputError, match="folders are named by 'year'"):
        apply_folder(FolderTable(data), [FLIP], tmp_path / "out", keep=["id"])
    year = ColumnRelease(Mechanism(np.eye(2), ["2019", "2020"], ["2019", "2020"]), ("year",))
    with pytest.raises(InputError, match="folders are named by 'year'"):
        apply_folder(FolderTable(data), [year], tmp_path / "out")
    assert not (tmp_path / "out").exists()


def test_files_of_different_columns_are_no_table(data: Path) -> None:
    write(data / "year=2020" / "b.parquet", id=[1], drinks=["no"])
    with pytest.raises(InputError, match=r"2020.b\.parquet: has the columns \['id', 'drinks'\]"):
        FolderTable(data)
    (data / "year=2020" / "b.parquet").unlink()
    write(data / "month=1" / "b.parquet", id=[1], smokes=["no"])
    with pytest.raises(InputError, match="month"):
        FolderTable(data)


class InterruptedHereError(Exception):
    pass


def interrupt_after(files: int) -> Any:
    left = [files]

    def progress(_: int) -> None:
        left[0] -= 1
        if not left[0]:
            raise InterruptedHereError

    return progress


def test_after_an_interruption_finished_files_are_not_drawn_again(
    data: Path, tmp_path: Path
) -> None:
    out, draft = tmp_path / "out", tmp_path / ".pmlopt-draft-out"
    with pytest.raises(InterruptedHereError):
        apply_folder(FolderTable(data), [COIN], out, progress=interrupt_after(2), keep_order=True)
    assert not out.exists()
    done = files_of(draft / "whole")
    assert len(done) == 2
    for other, keep in ((FLIP, None), (COIN, ["year"])):  # of another call
        with pytest.raises(FileFormatError, match="other data, mechanisms or options"):
            apply_folder(FolderTable(data), [other], out, keep=keep, keep_order=True)
    with pytest.raises(FileFormatError, match="other data, mechanisms or options"):
        apply_folder(FolderTable(data), [COIN], out)  # in a random order
    (draft / "run-0000" / "year=2019").mkdir(parents=True)  # of a process that was killed
    (draft / "whole" / "year=2020" / "c.parquet").write_bytes(
        b"moved there, and not in the journal"
    )
    with (draft / "journal.jsonl").open("a") as journal:
        journal.write('{"file": "year=20')  # cut
    applied, finished = apply_folder(FolderTable(data), [COIN], out, keep_order=True)
    assert applied.rows == 3 * ROWS
    now = files_of(out)
    assert sorted(now) == sorted(finished)
    assert {
        name: now[name] for name in done
    } == done  # another draw differs but once in 2^600 times
    assert not draft.exists()


def test_what_fails_at_once_leaves_nothing(data: Path, tmp_path: Path) -> None:
    write(data / "year=2019" / "a.parquet", id=[1], smokes=["maybe"])
    with pytest.raises(MechanismError, match=r"a\.parquet: row 1: the value 'maybe'"):
        apply_folder(FolderTable(data), [FLIP], tmp_path / "out")
    assert [path.name for path in tmp_path.iterdir()] == ["data"]
    (tmp_path / "out").mkdir()
    with pytest.raises(FileFormatError, match="is there already"):
        apply_folder(FolderTable(data), [FLIP], tmp_path / "out")


class Retrying(Executor):
    """Runs each task 5 times, as if its worker had been lost 4 times just before it answered."""

    def __init__(self) -> None:
        self.drawn: dict[tuple[str, int], set[bytes]] = {}

    def submit(self, fn: Any, /, *args: Any, **kwargs: Any) -> Future[Any]:
        done: Future[Any] = Future()
        for _ in range(5):
            answer = fn(*args, **kwargs)
            self.drawn.setdefault((args[2], len(args)), set()).add(args[1].read_bytes())
        done.set_result(answer)
        return done


def test_a_task_that_is_tried_again_leaves_no_second_draw(data: Path, tmp_path: Path) -> None:
    retrying = Retrying()
    apply_folder(FolderTable(data), [COIN], tmp_path / "out", executor=retrying)
    assert all(len(contents) == 1 for contents in retrying.drawn.values())
    assert len(retrying.drawn) == 6  # each file of the data, and each that is released
    for name, content in files_of(tmp_path / "out").items():
        assert retrying.drawn[name, 4] == {content}


def test_files_with_the_same_letters_share_no_draws(tmp_path: Path) -> None:
    for name in "ab":
        write(tmp_path / "data" / f"{name}.parquet", smokes=["no"] * 2000)
    apply_folder(FolderTable(tmp_path / "data"), [COIN], tmp_path / "out", seed=1, keep_order=True)
    first, second = (rows_of(tmp_path / "out" / f"{name}.parquet")["smokes"] for name in "ab")
    agree = sum(a == b for a, b in zip(first, second, strict=True))
    assert abs(agree - 1000) < 5 * np.sqrt(2000) / 2  # of one seed: it holds or it does not


def test_workers_write_what_one_process_writes(data: Path, tmp_path: Path) -> None:
    apply_folder(FolderTable(data), [COIN], tmp_path / "one", seed=3)
    with ThreadPoolExecutor(2) as pool:
        apply_folder(FolderTable(data), [COIN], tmp_path / "two", seed=3, executor=pool)
    assert files_of(tmp_path / "one") == files_of(tmp_path / "two")


def test_a_released_folder_is_checked_from_itself(data: Path, tmp_path: Path) -> None:
    response = Mechanism([[0.75, 0.25], [0.25, 0.75]], ["no", "yes"], ["no", "yes"])
    out = tmp_path / "out"
    release(data, {"smokes": response}, out, keep=["year"], drop=["id"])
    claims = {one.name: one.holds for one in check(out).parts}
    # a matrix that nobody designed proves nothing by itself, and what `year` tells needs the data
    assert [name for name, holds in claims.items() if not holds] == [
        "mechanisms/smokes.json",
        "in clear",
    ]
    assert [claims["mechanisms/smokes.json"], claims["in clear"]] == [None, None]
    changed = out / "released" / "year=2019" / "a.parquet"
    write(changed, smokes=["no"] * ROWS)
    assert check(out).holds is False
    changed.unlink()
    assert check(out).holds is False


def test_the_command_has_workers_and_says_what_it_did(data: Path, tmp_path: Path) -> None:
    FLIP.mechanism.save(tmp_path / "flip.json")
    out = tmp_path / "out"
    words = ("apply", tmp_path / "flip.json", data, "--column", "smokes", "--keep", "year", "-o")
    assert f"{3 * ROWS} rows written" in run(*words, out, "--workers", 2)
    told = json.loads((out / SUMMARY).read_text())
    assert (told["rows"], told["kept"]) == (3 * ROWS, ["year"])
    assert sorted(rows_of(out / "year=2020" / "a.parquet")["smokes"]) == (
        ["no"] * (ROWS // 3) + ["yes"] * (ROWS - ROWS // 3)
    )
    assert "without --assess" in run(*words, tmp_path / "other", "--assess", code=2)


def test_a_draft_is_of_the_same_columns_labels_and_probabilities_alone() -> None:
    even, coin = np.full((2, 2), 0.5), np.eye(2)
    kinds = [
        (coin, ["a", "b"], "s"),
        (even, ["a", "b"], "s"),
        (coin, ["b", "a"], "s"),
        (coin, ["a", "b"], "t"),
    ]
    works = [
        _FolderWork((ColumnRelease(Mechanism(matrix, list(labels)), (column,)),), (), False, b"")
        for matrix, labels, column in kinds
    ]
    assert len({work.compute_identity({}, None)["mechanisms"] for work in works}) == 4
    assert (
        len({work.compute_identity({}, seed)["data"] for work in works for seed in (None, 1)}) == 2
    )
