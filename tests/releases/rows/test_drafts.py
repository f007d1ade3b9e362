"""What a ledger or a journal of somebody else moves: nothing; and who may read what is not published."""

from __future__ import annotations

import hmac
import json
import os
import stat
import threading
import zipfile
from collections.abc import Iterator
from concurrent.futures import BrokenExecutor, Executor, Future
from pathlib import Path
from typing import Any

import pyarrow
import pyarrow.parquet
import pytest
from commands import run

from pmlopt import PML, Chain, Ledger, Mechanism, Prior, Stream
from pmlopt.core.files import disk, drafts
from pmlopt.errors import FileFormatError, InputError, WorkerLostError
from pmlopt.publishing import release
from pmlopt.publishing.releasing import write_release
from pmlopt.releases import StreamPopulation, Streams
from pmlopt.releases.accounts import array_files
from pmlopt.releases.rows.applying import apply_folder
from pmlopt.releases.rows.batches import ColumnRelease
from pmlopt.tables import FolderTable

RESPONSE = Mechanism([[0.75, 0.25], [0.25, 0.75]], ["no", "yes"], ["no", "yes"])
ILL = [ColumnRelease(RESPONSE, ("ill",))]


def names_in(folder: Path) -> list[str]:
    return sorted(path.relative_to(folder).as_posix() for path in folder.rglob("*"))


# ------------------------------------------------------------ ledgers of others


def to_publish(path: Path, entries: list[Any]) -> None:
    """Write a ledger that is to publish these, with a right digest."""
    path.unlink(missing_ok=True)
    Ledger([0.5, 0.5], total=1.0).save(path)
    about, arrays, _, _ = array_files.read_arrays(path, "ledger", "pmlopt-ledger", 2)
    array_files.write_arrays(path, {**about, "publishing": entries}, arrays)


def entry(folder: Path, draft: str, target: str, **other: Any) -> dict[str, Any]:
    source = folder / draft
    digest = drafts.digest_content(source) or ""
    return {
        "draft": draft,
        "target": target,
        "folder": disk.compute_key(folder),
        "digest": digest,
        **other,
    }


@pytest.fixture
def home(tmp_path: Path) -> Path:
    """A folder with files of mine, beside that of the ledger."""
    folder = tmp_path.resolve() / "home"
    folder.mkdir()
    for name in ("secret.txt", "important.txt", ".pmlopt-draft-mine"):
        (folder / name).write_text(name)
    (tmp_path / "inbox").mkdir()
    return folder


def test_a_ledger_of_somebody_else_moves_no_file(home: Path) -> None:
    inbox = home.parent / "inbox"
    path, before = inbox / "ledger.npz", {one.name: one.read_text() for one in home.iterdir()}
    (inbox / ".pmlopt-draft-linked").symlink_to(home)
    (home / "whole").write_text("whole")
    before["whole"] = "whole"
    mine = str(home / ".pmlopt-draft-mine")
    wrong: list[Any] = [
        [str(home / "secret.txt"), str(home / "important.txt")],
        [mine, str(home / "new.txt")],
        [mine, str(inbox / "new.txt")],
        ["../home/.pmlopt-draft-mine", "../home/new.txt"],
        entry(home, ".pmlopt-draft-mine", "new.txt"),
        entry(home, ".pmlopt-draft-mine", "../home/new.txt"),
        entry(home, "../home/.pmlopt-draft-mine", "new.txt"),
        entry(home, "secret.txt", "new.txt"),
        entry(home, ".pmlopt-draft-mine/../secret.txt", "new.txt"),
        entry(inbox, ".pmlopt-draft-linked/whole", "new.txt"),
        entry(inbox, ".pmlopt-draft-linked", "new.txt"),
        entry(home, ".pmlopt-draft-mine", "a\0b"),
        entry(home, ".pmlopt-draft-mine", ""),
        entry(home, ".pmlopt-draft-mine", ".."),
        {"draft": ".pmlopt-x", "target": "y"},
        {**entry(home, ".pmlopt-draft-mine", "new.txt"), "digest": 5},
        [1, 2], "text", None, [], [".pmlopt-a"], {},
    ]  # fmt: skip
    for one in wrong:
        to_publish(path, [one])
        try:
            with Ledger.open(path):
                pass
        except FileFormatError:
            pass
        assert {file.name: file.read_text() for file in home.iterdir()} == before
        assert names_in(inbox) == [".pmlopt-draft-linked", "ledger.npz"]


def test_a_release_is_finished_in_the_folder_that_the_caller_names_and_nowhere_else(
    home: Path,
) -> None:
    path = home.parent / "inbox" / "ledger.npz"
    Ledger([0.5, 0.5], total=1.0).save(path)
    to_publish(path, [entry(home, ".pmlopt-draft-mine", "new.txt")])
    with Ledger.open(path) as book:
        assert (book.finished, book.unfinished) == ((), ("new.txt",))
        book.record([[0.6, 0.4], [0.4, 0.6]], [0])
    with Ledger.open(path, home) as book:
        assert (book.finished, book.unfinished) == ((str(home / "new.txt"),), ())
        assert book.releases == 1
    assert (home / "new.txt").read_text() == ".pmlopt-draft-mine"


def test_a_target_is_never_replaced_and_its_content_says_whose_it_is(home: Path) -> None:
    path = home / "ledger.npz"
    Ledger([0.5, 0.5], total=1.0).save(path)

    def record() -> None:
        with Ledger.open(path) as book:
            book.record([[0.6, 0.4], [0.4, 0.6]], [0])
            book.publish(home / ".pmlopt-draft-mine", home / "new.txt")
            (home / "new.txt").write_text("of another release")

    with pytest.raises(FileFormatError, match=r"new\.txt: is there already, and is not"):
        record()
    assert (home / "new.txt").read_text() == "of another release"
    (home / "new.txt").unlink()
    with Ledger.open(path) as book:
        assert book.finished == (str(home / "new.txt"),)
    # a copy from before that time finds its release published
    to_publish(path, [{**entry(home, "new.txt", "new.txt"), "draft": ".pmlopt-draft-mine"}])
    with Ledger.open(path) as book:
        assert book.finished == (str(home / "new.txt"),)
    with Ledger.open(path) as book, pytest.raises(FileFormatError, match="must begin with"):
        book.publish(home / "secret.txt", home / "other.txt")


def test_an_entry_of_another_form_moves_nothing_and_is_refused(home: Path) -> None:
    path, draft, target = home / "ledger.npz", home / ".pmlopt-draft-mine", home / "new.txt"
    to_publish(path, [[str(draft), str(target)]])
    with pytest.raises(FileFormatError, match="names no draft"), Ledger.open(path):
        pass
    assert draft.read_text() == ".pmlopt-draft-mine"
    assert not target.exists()


@pytest.mark.parametrize("owner", ["", "0" * 16, "of another ledger"])
@pytest.mark.parametrize("known", [True, False])
def test_no_entry_removes_or_publishes_the_draft_of_another_release(
    home: Path, owner: str, known: bool
) -> None:
    # the rows of an interrupted release, in a folder that names no owner, no ledger, or another one
    key = disk.compute_key(home / "other.npz") if owner == "of another ledger" else owner
    draft = home / (f".pmlopt-draft-{'1' * 16}-{key}-ab" if key else ".pmlopt-draft-out")
    (draft / "whole").mkdir(parents=True)
    (draft / "whole" / "released.csv").write_text("ill\nno\n")
    before = names_in(home)
    # the target is a file that everybody knows, or the content of the draft was guessed
    target = "important.txt" if known else "new.txt"
    digest = drafts.digest_content(home / target if known else draft / "whole")
    if not known and not key:
        digest = drafts.digest_content(home / "secret.txt")
    forged = entry(home, f"{draft.name}/whole", target, digest=digest)
    to_publish(home / "ledger.npz", [forged])
    try:
        with Ledger.open(home / "ledger.npz") as book:
            assert known
            assert book.finished == (str(home / target),)
    except FileFormatError:
        assert not known
    assert names_in(home) == sorted([*before, "ledger.npz"])


def test_what_is_left_of_a_published_draft_goes(home: Path) -> None:
    # killed between the name and the removal: the draft folder of this ledger is still there
    path, key = home / "ledger.npz", disk.compute_key(home / "ledger.npz")
    draft = home / f".pmlopt-draft-{'1' * 16}-{key}-ab"
    (draft / "part").mkdir(parents=True)
    digest = drafts.digest_content(home / "important.txt")
    to_publish(path, [entry(home, f"{draft.name}/whole", "important.txt", digest=digest)])
    with Ledger.open(path) as book:
        assert book.finished == (str(home / "important.txt"),)
    assert not draft.exists()


@pytest.mark.parametrize("content", [b"", b"hello", b"\x93NUMPY", b"{}"])
@pytest.mark.parametrize("part", ["about", "likelihoods", "rounding", "history", "identities"])
def test_a_part_of_a_ledger_that_is_no_array_is_refused(
    tmp_path: Path, part: str, content: bytes
) -> None:
    Ledger([0.5, 0.5], total=1.0).save(tmp_path / "whole.npz")
    with (
        zipfile.ZipFile(tmp_path / "whole.npz") as whole,
        zipfile.ZipFile(tmp_path / "odd.npz", "w") as odd,
    ):
        for name in whole.namelist():
            odd.writestr(name, content if name == f"{part}.npy" else whole.read(name))
    with pytest.raises(FileFormatError, match="is not a whole ledger"):
        Ledger.load(tmp_path / "odd.npz")


# ------------------------------------------------------------ folders and their journals


@pytest.fixture
def data(tmp_path: Path) -> Path:
    folder = tmp_path / "data"
    folder.mkdir()
    for number in range(3):
        pyarrow.parquet.write_table(
            pyarrow.table({"ill": ["no", "yes"] * 50}), folder / f"f{number}.parquet"
        )
    return folder


class StopHereError(Exception):
    pass


def begun(data: Path, out: Path, **options: Any) -> Path:
    """The draft of a folder after two of three files."""
    left = [2]

    def stop(_: int) -> None:
        left[0] -= 1
        if not left[0]:
            raise StopHereError

    with pytest.raises(StopHereError):
        apply_folder(FolderTable(data), ILL, out, progress=stop, about={}, **options)
    return out.with_name(f".pmlopt-draft-{out.name}")


LINES = [
    b'{"rows":1}', b"[1]", b"5", b"null", b"", b"\xff\xfe", b"{" * 100_000, b"[" * 100_000, b'{"file":5}',
    b"\0" * 9,
    b'{"file":"../../data/f0.parquet","rows":1000000,"dropped":0,"sha256":"x","source":"x","digest":"x"}',
    b'{"file":"f0.parquet","rows":"a","dropped":0,"sha256":"x","source":"x","digest":"x"}',
    b'{"file":"a\\u0000b","rows":1,"dropped":0,"sha256":"x","source":"x","digest":"\\ud800"}',
    b'{"file":"f2.parquet","rows":1e400,"dropped":-1,"sha256":null,"source":[],"digest":{}}',
]  # fmt: skip


@pytest.mark.parametrize("line", LINES, ids=range(len(LINES)))
def test_an_odd_line_of_a_journal_counts_for_nothing(
    data: Path, tmp_path: Path, line: bytes
) -> None:
    out = tmp_path / "out"
    with (begun(data, out) / "journal.jsonl").open("ab") as journal:
        journal.write(line + b"\n")
    applied, finished = apply_folder(FolderTable(data), ILL, out, about={})
    assert applied.rows == 300
    assert list(finished) == [f"f{number}.parquet" for number in range(3)]
    assert names_in(tmp_path / "out") == ["applied.json", *finished]
    assert sorted(path.name for path in tmp_path.iterdir()) == ["data", "out"]


def test_changed_rows_and_files_are_drawn_again(data: Path, tmp_path: Path) -> None:
    for number, change in enumerate((b'"rows": 7', b'"rows": 101', b'"rows": 100, "dropped": 1')):
        out = tmp_path / f"out{number}"
        journal = begun(data, out) / "journal.jsonl"
        journal.write_bytes(journal.read_bytes().replace(b'"rows": 100', change))
        apply_folder(FolderTable(data), ILL, out, about={})
        told = json.loads((out / "applied.json").read_text())
        assert sum(one["rows"] for one in told["files"].values()) == told["rows"] == 300
        for name, one in told["files"].items():
            assert pyarrow.parquet.read_table(out / name).num_rows == one["rows"]
        assert set(told["files"]["f0.parquet"]) == {"rows", "dropped", "sha256"}


def sign_again(journal: Path, **values: Any) -> None:
    """Change values of each line, and sign the lines by the key that stands in the journal."""
    head, *lines = journal.read_bytes().splitlines()
    told = [{**json.loads(line), **values} for line in lines]
    for one in told:
        del one["digest"]
        one["digest"] = hmac.digest(head, json.dumps(one).encode(), "sha256").hex()
    journal.write_bytes(
        b"".join(line + b"\n" for line in (head, *(json.dumps(one).encode() for one in told)))
    )


@pytest.mark.parametrize("keep_order", [False, True])
@pytest.mark.parametrize(
    "values", [{"dropped": 7}, {"dropped": 0}, {"rows": 93}, {"rows": 100, "dropped": 0}]
)
def test_a_journal_that_is_signed_again_moves_no_number(
    tmp_path: Path, values: dict[str, int], keep_order: bool
) -> None:
    data = tmp_path / "data"
    data.mkdir()
    for number in range(3):
        cells = ["no", "yes", None, "no"] * 25
        pyarrow.parquet.write_table(pyarrow.table({"ill": cells}), data / f"f{number}.parquet")
    options: dict[str, Any] = {"keep_order": keep_order, "drop_missing": True}
    out = tmp_path / "out"
    sign_again(begun(data, out, **options) / "journal.jsonl", **values)
    applied, _ = apply_folder(FolderTable(data), ILL, out, about={}, **options)
    assert (applied.rows, applied.dropped) == (225, 75)  # by hand: one cell of four is missing
    told = json.loads((out / "applied.json").read_text())
    assert (told["rows"], told["dropped"]) == (225, 75)
    assert sum(pyarrow.parquet.read_table(out / name).num_rows for name in told["files"]) == 225


@pytest.mark.parametrize("keep_order", [False, True])
def test_a_drawn_file_with_other_rows_is_drawn_again(
    tmp_path: Path, data: Path, keep_order: bool
) -> None:
    out = tmp_path / "out"
    draft = begun(data, out, keep_order=keep_order)
    for path in (draft / "whole").iterdir():
        pyarrow.parquet.write_table(pyarrow.table({"ill": ["no"] * 60}), path)
        sign_again(draft / "journal.jsonl", rows=60, dropped=40, sha256=disk.digest_file(path))
    assert apply_folder(FolderTable(data), ILL, out, keep_order=keep_order)[0].rows == 300


@pytest.mark.parametrize("keep_order", [False, True])
def test_finished_files_are_not_drawn_again(tmp_path: Path, data: Path, keep_order: bool) -> None:
    out = tmp_path / "out"
    draft = begun(data, out, keep_order=keep_order)
    finished = {path.name: path.read_bytes() for path in (draft / "whole").iterdir()}
    drawn: list[str] = []

    def stop(_: int) -> None:
        drawn.extend(path.name for path in (draft / "whole").iterdir() if path.name not in finished)
        assert all(
            (draft / "whole" / name).read_bytes() == content for name, content in finished.items()
        )

    assert (
        apply_folder(FolderTable(data), ILL, out, keep_order=keep_order, progress=stop)[0].rows
        == 300
    )
    assert drawn == ["f2.parquet"]
    assert sorted(finished) == ["f0.parquet", "f1.parquet"]


def test_what_is_left_in_a_draft_goes_whatever_it_is_and_links_are_not_followed(
    data: Path, tmp_path: Path
) -> None:
    other, out = tmp_path / "other", tmp_path / "out"
    other.mkdir()
    (other / "file").write_text("mine")
    draft = begun(data, out)
    (draft / ".pmlopt-0123").write_bytes(b"a file for now")
    (draft / "run-zz").symlink_to(other)
    (draft / "stray").symlink_to(tmp_path / "nowhere")
    (draft / "whole" / "linked").symlink_to(other)
    (draft / "whole" / "f9.parquet").symlink_to(data / "f0.parquet")
    os.mkfifo(draft / "pipe")
    assert apply_folder(FolderTable(data), ILL, out)[0].rows == 300
    assert (other / "file").read_text() == "mine"
    assert names_in(out) == [f"f{number}.parquet" for number in range(3)]
    again = tmp_path / "again"
    draft = begun(data, again)
    (draft / "whole").rename(tmp_path / "kept")
    (draft / "whole").symlink_to(other)
    apply_folder(FolderTable(data), ILL, again)
    assert names_in(other) == ["file"]
    last = tmp_path / ".pmlopt-draft-last"
    last.symlink_to(other)  # the draft itself
    apply_folder(FolderTable(data), ILL, tmp_path / "last")
    assert names_in(other) == ["file"]
    assert not last.is_symlink()


def test_a_draft_goes_where_the_folder_is_there(data: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    begun(data, out)
    out.mkdir()
    with pytest.raises(FileFormatError, match="is there already"):
        apply_folder(FolderTable(data), ILL, out)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["data", "out"]


class Broken(Executor):
    """Works on one file, and then its workers are killed."""

    def __init__(self, error: BaseException) -> None:
        self._left, self._error = 1, error

    def submit(self, fn: Any, /, *args: Any, **kwargs: Any) -> Future[Any]:
        future: Future[Any] = Future()
        if self._left:
            self._left -= 1
            future.set_result(fn(*args, **kwargs))
        else:
            future.set_exception(self._error)
        return future


KILLED_BY_DASK = type("KilledWorker", (Exception,), {"__module__": "distributed.scheduler"})


@pytest.mark.parametrize(
    "error", [BrokenExecutor("terminated abruptly"), KILLED_BY_DASK("4 times")]
)
def test_a_worker_that_is_killed_is_told_and_the_same_call_goes_on(
    data: Path, tmp_path: Path, error: BaseException
) -> None:
    out = tmp_path / "out"
    with pytest.raises(WorkerLostError, match=r"[01] of 3 files are finished"):
        apply_folder(FolderTable(data), ILL, out, executor=Broken(error))
    assert apply_folder(FolderTable(data), ILL, out)[0].rows == 300
    assert sorted(path.name for path in tmp_path.iterdir()) == ["data", "out"]


# ------------------------------------------------------------ data that change


def people(first: str, count: int = 100) -> str:
    return "ill,town\n" + "".join(
        f"{first if k % 2 else 'no'},{'AB'[k % 3 % 2]}\n" for k in range(count)
    )


def test_a_draft_of_data_that_changed_publishes_nothing(tmp_path: Path, data: Path) -> None:
    file, law, out = tmp_path / "people.csv", tmp_path / "law.csv", tmp_path / "out"
    law.write_text(people("yes", 50))
    for source, change in (
        (file, lambda: file.write_text(people("no"))),
        (file, lambda: file.write_text(people("yes").replace("A\n", "B\n", 1))),
        (file, lambda: law.write_text(people("yes", 52))),
        (data, lambda: (data / "f3.parquet").write_bytes((data / "f0.parquet").read_bytes())),
        (
            data,
            lambda: pyarrow.parquet.write_table(
                pyarrow.table({"ill": ["no"] * 100}), data / "f1.parquet"
            ),
        ),
    ):
        file.write_text(people("yes"))
        if source == file:
            draft = release(
                file, {"ill": RESPONSE}, keep=["town"], law=law if law.exists() else None
            )
        else:
            draft = release(data, {"ill": RESPONSE})
        change()
        with pytest.raises(InputError, match="were changed since"):
            write_release(draft, out)
        assert not out.exists()
        assert not list(tmp_path.glob(".pmlopt*"))
        draft = release(source, {"ill": RESPONSE}, keep=["town"] if source == file else [])
        write_release(draft, out)
        disk.remove_path(out)


def test_a_draft_of_columns_in_memory_that_changed_publishes_nothing(tmp_path: Path) -> None:
    for name, values in (("ill", ["no", "no"]), ("town", ["B", "A"]), ("who", ["1", "0"])):
        frame = {"ill": ["no", "yes"], "town": ["A", "B"], "who": ["0", "1"]}
        Ledger(Prior([0.5, 0.5], ["no", "yes"]), people=2).save(tmp_path / "ledger.npz")
        draft = release(
            frame,
            {"ill": RESPONSE},
            keep=["town"],
            drop=["who"],
            ledger=tmp_path / "ledger.npz",
            person_column="who",
        )
        frame[name] = values
        with pytest.raises(InputError, match="were changed since"):
            write_release(draft, tmp_path / "out")
        assert [path.name for path in tmp_path.iterdir()] == ["ledger.npz"]
        assert Ledger.load(tmp_path / "ledger.npz").releases == 0
        (tmp_path / "ledger.npz").unlink()


# ------------------------------------------------------------ permissions


@pytest.fixture
def open_umask() -> Iterator[None]:
    """A process whose files may be read by all."""
    before = os.umask(0o022)
    yield
    assert os.umask(before) == 0o022


def mode_of(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


@pytest.mark.usefixtures("open_umask")
def test_what_holds_true_values_is_for_its_owner_only(tmp_path: Path, data: Path) -> None:
    stream = Stream(Chain([0.5, 0.5], [[0.9, 0.1], [0.1, 0.9]]), PML(0.4), "hamming")
    Ledger([0.5, 0.5]).save(tmp_path / "ledger.npz")
    Streams(stream).save(tmp_path / "streams.json")
    StreamPopulation(stream, people=2).save(tmp_path / "crowd.npz")
    draft = begun(data, tmp_path / "out")
    for path in (tmp_path / "ledger.npz", tmp_path / "streams.json", tmp_path / "crowd.npz"):
        assert mode_of(path) == 0o600
    assert (mode_of(draft), mode_of(draft / "journal.jsonl")) == (0o700, 0o600)
    apply_folder(FolderTable(data), ILL, tmp_path / "out")
    RESPONSE.save(tmp_path / "m.json")
    assert (mode_of(tmp_path / "out"), mode_of(tmp_path / "m.json")) == (0o755, 0o644)
    assert mode_of(tmp_path / "out" / "f0.parquet") == 0o644
    release({"ill": ["no", "yes"]}, {"ill": RESPONSE}, tmp_path / "released")
    assert (mode_of(tmp_path / "released"), mode_of(tmp_path / "released" / "release.json")) == (
        0o755,
        0o644,
    )


def test_saving_in_threads_never_touches_the_umask(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(os, "umask", lambda mask: pytest.fail("the umask is of the whole process"))
    threads = [
        threading.Thread(target=RESPONSE.save, args=(tmp_path / f"{number}.json",))
        for number in range(8)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(list(tmp_path.iterdir())) == 8


def test_without_files_that_have_no_name_nothing_is_left_and_nothing_replaced(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delattr(os, "O_TMPFILE", raising=False)
    path = tmp_path / "file.csv"
    with (
        pytest.raises(FileFormatError, match="another process wrote it"),
        disk.atomic_file(path, replace=False),
    ):
        path.write_text("of another")
    assert path.read_text() == "of another"
    path.unlink()
    with disk.atomic_file(path, private=True, replace=False) as stream:
        stream.write(b"mine")
    assert (mode_of(path), path.read_bytes()) == (0o600, b"mine")
    assert names_in(tmp_path) == ["file.csv"]


@pytest.mark.parametrize("has_nameless", [True, False])
def test_only_the_file_that_was_seen_is_replaced(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, has_nameless: bool
) -> None:
    if not has_nameless:
        monkeypatch.delattr(os, "O_TMPFILE", raising=False)
    path = tmp_path / "file.csv"
    path.write_text("old")
    path.chmod(0o640)
    with disk.atomic_file(path, replace=False) as stream:
        stream.write(b"new")
    assert (path.read_text(), mode_of(path)) == ("new", 0o640)
    (tmp_path / "other").write_text("a release")

    def write_late() -> None:
        with disk.atomic_file(path, replace=False) as stream:
            stream.write(b"late")
            (tmp_path / "other").replace(path)

    with pytest.raises(FileFormatError, match="another process wrote it"):
        write_late()
    assert path.read_text() == "a release"
    assert names_in(tmp_path) == ["file.csv"]


@pytest.mark.parametrize("has_call", [True, False])
def test_a_name_that_something_has_is_never_replaced(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, has_call: bool
) -> None:
    if not has_call:
        monkeypatch.setattr(disk, "_renameat2", lambda: None)
        monkeypatch.setattr(os, "link", lambda *names: (_ for _ in ()).throw(PermissionError))
    file, folder = tmp_path / "file", tmp_path / "folder"
    file.write_text("content")
    folder.mkdir()
    (tmp_path / "empty").mkdir()
    (tmp_path / "other").write_text("other")
    (tmp_path / "link").symlink_to(tmp_path / "nowhere")
    for source in (file, folder):
        for target in ("empty", "other", "link"):
            with pytest.raises(FileExistsError):
                disk.publish_new(source, tmp_path / target)
    disk.publish_new(file, tmp_path / "new")
    disk.publish_new(folder, tmp_path / "new folder")
    assert names_in(tmp_path) == ["empty", "link", "new", "new folder", "other"]


def test_the_command_says_which_release_is_still_to_be_published(
    home: Path, tmp_path: Path
) -> None:
    path = tmp_path / "inbox" / "ledger.npz"
    to_publish(path, [entry(home, ".pmlopt-draft-mine", "new.txt")])
    Mechanism([[0.6, 0.4], [0.4, 0.6]]).save(tmp_path / "m.csv")
    (tmp_path / "people.csv").write_text("c\n0\n")
    words = (
        "apply",
        tmp_path / "m.csv",
        tmp_path / "people.csv",
        "--column",
        "c",
        "--ledger",
        path,
        "-o",
    )
    assert "new.txt is recorded, and was interrupted" in run(*words, tmp_path / "wave.csv")
