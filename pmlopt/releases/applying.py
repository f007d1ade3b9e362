"""Mechanisms applied to a table, and to the files of a folder side by side, resumed after an interruption."""

from __future__ import annotations

import hashlib
import json
import os
import secrets
import shutil
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import Executor, Future, as_completed
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from pmlopt.core import files
from pmlopt.core.arrays import IntArray
from pmlopt.data.sampling.categorical import KeyedBits, RandomBits, SystemBits, new_key, random_bits
from pmlopt.data.tables.reading import Batch, FolderTable, Table, open_table
from pmlopt.data.tables.row_order import spill_folder
from pmlopt.data.tables.writing import CsvSink, TypedSink, open_sink, write_rows
from pmlopt.errors import FileFormatError, InputError
from pmlopt.releases.batches import ColumnRelease, ColumnsAtWork


@dataclass
class Applied:
    """What became of a table.

    Attributes:
        rows: how many were written.
        dropped: how many were left out for a missing cell.
        kept: the names of the other columns, which stay in clear.
    """

    rows: int = 0
    dropped: int = 0
    kept: list[str] = field(default_factory=list)


def apply_columns(
    table: Table,
    releases: Sequence[ColumnRelease],
    target: str | os.PathLike[str],
    *,
    keep: Sequence[str] | None = None,
    drop_missing: bool = False,
    seed: int | Sequence[RandomBits] | None = None,
    keep_order: bool = False,
    watch: Callable[[Batch, Sequence[IntArray]], None] | None = None,
    released: Callable[[Batch, Sequence[IntArray]], None] | None = None,
) -> Applied:
    """Replace columns of a table by what mechanisms release of them, each row drawn by itself, exactly.

    The file holds the rows that are written and nothing else of the table: its categories, metadata, and row
    groups are those of these rows.

    Args:
        table: that is read.
        releases: mechanisms with their columns, none of which has two.
        target: the file to write, which is there when all rows are, or never.
        keep: the other columns that stay, in clear; None for all.
        drop_missing: leave out rows with a missing cell that is no input.
        seed: for a result that can be repeated, in tests; None draws from the operating system. Or the bits
            of each mechanism, and then those for the order of the rows.
        keep_order: write the rows in the order of the table, which may reveal what the table is sorted by: no
            level counts that. They have a uniformly random order otherwise.
        watch: is called with each batch before it is written, and with (size,) the row of each mechanism's
            matrix for each of its rows, -1 where the row is left out.
        released: is called with each batch and the outputs that each mechanism drew, by their places,
            for the rows that are not left out.

    Raises:
        InputError: there is no such column, or two mechanisms are for one.
        MechanismError: a cell is no input of its mechanism.
        FileFormatError: the file cannot be written.
    """
    work = _at_work(table, releases, keep, drop_missing)
    *bits, order = _bits_of(seed, len(releases))
    applied = Applied(kept=[column.name for column in work.columns if column.place is not None])

    def rows(sink: CsvSink | TypedSink) -> Iterator[Any]:
        for batch in table.batches():
            codes = work.codes(batch)
            if watch is not None:
                watch(batch, codes)
            kept, drawn = work.drawn(codes, bits)
            if released is not None:
                released(batch, drawn)
            written = batch.size if kept is None else int(kept.sum())
            applied.rows += written
            applied.dropped += batch.size - written
            yield sink.rows(work.written(batch, kept, drawn))

    with open_sink(target, work.columns, table) as sink:
        write_rows(sink, rows(sink), None if keep_order else order, spill_folder(target))
    return applied


def _bits_of(seed: int | Sequence[RandomBits] | None, count: int) -> list[RandomBits]:
    """The bits of each mechanism, of its own so that a seed draws the same from batches of any length, and
    those for the order of the rows.
    """
    if isinstance(seed, Sequence):
        return list(seed)
    if seed is None:
        return [SystemBits()] * (count + 1)
    own = [random_bits(seed if k == 0 else [seed, k]) for k in range(count)]
    return [*own, random_bits([seed, 0, 1])]


def input_codes(
    table: Table, releases: Sequence[ColumnRelease], drop_missing: bool = False
) -> Iterator[tuple[Batch, list[IntArray]]]:
    """Each batch of a table, with (size,) the row of each mechanism's matrix for each of its rows.

    Args:
        table: that is read.
        releases: mechanisms with their columns.
        drop_missing: whether a row with a missing cell that is no input has the place -1 in all columns.

    Raises:
        InputError: there is no such column.
        MechanismError: a cell is no input of its mechanism.
    """
    work = _at_work(table, releases, None, drop_missing)
    for batch in table.batches():
        yield batch, work.codes(batch)


def _at_work(
    table: Table, releases: Sequence[ColumnRelease], keep: Sequence[str] | None, drop_missing: bool
) -> ColumnsAtWork:
    return ColumnsAtWork(
        releases, table.names, table.where, typed=table.typed, keep=keep, drop_missing=drop_missing
    )


SUMMARY = "applied.json"
"""What a released folder says of itself."""

_JOURNAL = "journal.jsonl"
"""In the draft of a folder: what is written, and then a line for each file that is finished."""


@dataclass(frozen=True)
class FinishedFile:
    """A file that was released.

    Attributes:
        rows: how many it has.
        dropped: how many rows of the data are not in it, for a missing cell.
        sha256: its digest.
    """

    rows: int
    dropped: int
    sha256: str


def apply_folder(
    table: FolderTable,
    releases: Sequence[ColumnRelease],
    target: str | os.PathLike[str],
    *,
    keep: Sequence[str] | None = None,
    drop_missing: bool = False,
    seed: int | None = None,
    executor: Executor | None = None,
    progress: Callable[[int], None] | None = None,
    about: Mapping[str, Any] | None = None,
    beside: str | os.PathLike[str] | None = None,
) -> tuple[Applied, dict[str, FinishedFile]]:
    """Release each file of a folder into a file of the same name and place in another folder.

    The draws of a file are a function of a key that this call makes and of the file, so that a task that an
    executor tries again writes the same bytes. The folder is filled under another name beside its place, and
    gets its own when it is whole. A journal there says which files are finished: the same call goes on
    after an interruption, and draws those that are not finished under a new key. Nothing of these had a name.

    Args:
        table: the files.
        releases: mechanisms with their columns.
        target: the folder to make.
        keep: the other columns that stay, in clear; None for all.
        drop_missing: leave out rows with a missing cell that is no input.
        seed: for tests alone; None takes the key from the operating system.
        executor: what works on files side by side; None for one after the other.
        progress: is called with the rows of each file that is finished.
        about: what else the summary says, which is `applied.json` in the folder; None for no summary.
        beside: the path beside which, and after which, the draft is named; that of the target if left out.

    Returns:
        what became of all rows, and of each file by its name in the folder.

    Raises:
        InputError: there is no such column, two mechanisms are for one, or files lie in folders that are
            named by a column that is not kept.
        MechanismError: a cell is no input of its mechanism.
        FileFormatError: a file cannot be read or written, the target is there, or an interrupted call with
            other data or arguments has left its draft.
    """
    others = [name for name in table.names if name not in {one for step in releases for one in step.columns}]
    kept = others if keep is None else list(keep)
    for name in table.partitions:
        if name not in kept:
            raise InputError(
                f"{table.where}: its folders are named by {name!r}, which the places of the released files "
                "would tell: keep it, or write the data without these folders"
            )
    stay = [name for name in kept if name not in table.partitions]
    sources = dict(zip((file.relative_to(table.folder).as_posix() for file in table.files), table.files,
                       strict=True))  # fmt: skip
    work = _Work(tuple(releases), tuple(stay), drop_missing, new_key(seed))
    identity = work.identity(sources, seed)
    with _draft(target, beside or target, identity) as draft:
        for folder in {Path(name).parent for name in sources}:
            (draft.run / folder).mkdir(parents=True, exist_ok=True)
            (draft.whole / folder).mkdir(parents=True, exist_ok=True)
        for name, done in _finish(work, sources, draft, executor):
            draft.keep(name, done)
            if progress is not None:
                progress(done.rows + done.dropped)
        finished = dict(sorted(draft.finished.items()))
        rows, dropped = (sum(getattr(one, what) for one in finished.values()) for what in ("rows", "dropped"))
        if about is not None:
            told = {
                **about, "random": "the operating system" if seed is None else "a seed, for tests only",
                "kept": kept, "rows": rows, "dropped": dropped,
                "files": {name: asdict(one) for name, one in finished.items()},
            }  # fmt: skip
            files.write_whole(draft.whole / SUMMARY, files.json_bytes(told))
        files.rename(draft.whole, Path(target).absolute())
    return Applied(rows, dropped, kept), finished


@dataclass(frozen=True)
class _Work:
    """What is done to each file; it goes to the processes that do it."""

    releases: tuple[ColumnRelease, ...]
    keep: tuple[str, ...]
    drop_missing: bool
    key: bytes

    def __call__(self, source: Path, target: Path, name: str) -> FinishedFile:
        """Release one file; again, it writes the same bytes."""
        about = source.stat()
        place = (name, about.st_size, about.st_mtime_ns)  # a file that changed meanwhile is another place
        bits = [KeyedBits(self.key, *place, number) for number in range(len(self.releases))]
        with open_table(source) as table:
            done = apply_columns(
                table, self.releases, target, keep=self.keep, drop_missing=self.drop_missing, seed=bits
            )
        return FinishedFile(done.rows, done.dropped, files.digest_of(target))

    def identity(self, sources: Mapping[str, Path], seed: int | None) -> dict[str, str]:
        """What tells this release apart from others; the key is none of it."""
        matrices = hashlib.sha256()
        for release in self.releases:
            one = release.mechanism
            matrices.update(repr((release.columns, one.inputs, one.outputs)).encode() + one.matrix.tobytes())
        listed = [(name, (about := file.stat()).st_size, about.st_mtime_ns) for name, file in sources.items()]
        told = repr((listed, self.keep, self.drop_missing, seed))
        return {"data": hashlib.sha256(told.encode()).hexdigest(), "mechanisms": matrices.hexdigest()}


def _finish(
    work: _Work, sources: Mapping[str, Path], draft: _Draft, executor: Executor | None
) -> Iterator[tuple[str, FinishedFile]]:
    """Work on the files that are not finished; each with what became of it, as it ends."""
    left = {name: source for name, source in sources.items() if name not in draft.finished}
    if executor is None:
        for name, source in left.items():
            yield name, work(source, draft.run / name, name)
        return
    futures: dict[Future[FinishedFile], str] = {
        executor.submit(work, source, draft.run / name, name): name for name, source in left.items()
    }
    try:
        for future in as_completed(futures):
            yield futures[future], future.result()
    except BaseException:
        for future in futures:
            future.cancel()
        raise


class _Draft:
    """A folder that is filled: finished files, and those that this process and its workers write.

    Workers of a process that was killed may go on. They write into the folder of that process alone, which
    the next one removes.

    Attributes:
        whole: the folder of finished files.
        run: the folder where this process has files written.
        finished: what became of each finished file.
    """

    def __init__(self, place: Path, identity: Mapping[str, str]) -> None:
        self.place, self.whole = place, place / "whole"
        self.run = place / f"run-{secrets.token_hex(4)}"
        self.finished = self._resumed(identity) if (place / _JOURNAL).exists() else {}
        for path in place.glob("*"):
            if path not in (self.whole, place / _JOURNAL):
                shutil.rmtree(path)
        self.whole.mkdir(parents=True, exist_ok=True)
        lines = [identity, *({"file": name, **asdict(one)} for name, one in self.finished.items())]
        files.write_whole(place / _JOURNAL, "".join(json.dumps(line) + "\n" for line in lines).encode())

    def keep(self, name: str, done: FinishedFile) -> None:
        """Move a file to the finished ones, on the disk before this returns."""
        files.rename(self.run / name, self.whole / name)
        self.finished[name] = done
        with (self.place / _JOURNAL).open("a", encoding="utf-8") as stream:
            stream.write(json.dumps({"file": name, **asdict(done)}) + "\n")
            stream.flush()
            os.fsync(stream.fileno())

    def _resumed(self, identity: Mapping[str, str]) -> dict[str, FinishedFile]:
        """The finished files, each as the journal says; whatever else is there goes."""
        lines = []
        for line in (self.place / _JOURNAL).read_text("utf-8").splitlines():
            with suppress(ValueError):  # the line that an interruption has cut
                lines.append(json.loads(line))
        if not lines or lines[0] != identity:
            raise FileFormatError(
                f"{self.place}: is left by an interrupted call with other data, mechanisms or options: "
                "repeat that call, or delete this folder"
            )
        said = {one.pop("file"): FinishedFile(**one) for one in lines[1:]}
        for path in [path for path in self.whole.rglob("*") if path.is_file()]:
            name = path.relative_to(self.whole).as_posix()
            if name not in said or files.digest_of(path) != said[name].sha256:
                said.pop(name, None)
                path.unlink()
        return {name: one for name, one in said.items() if (self.whole / name).exists()}


@contextmanager
def _draft(
    target: str | os.PathLike[str], beside: str | os.PathLike[str], identity: Mapping[str, str]
) -> Iterator[_Draft]:
    """The draft of a folder, of one process at a time; it goes with the block, unless files are finished."""
    whole, named = Path(target).absolute(), Path(beside).absolute()
    if whole.exists() or whole.is_symlink():
        raise FileFormatError(f"{target}: is there already: name a folder that is not")
    place = named.with_name(f".pmlopt-draft-{named.name}")
    with files.alone(place.with_name(f"{place.name}-whole")):  # a name that no folder has
        draft = _Draft(place, identity)
        try:
            yield draft
        except BaseException:
            shutil.rmtree(draft.run if draft.finished else place, ignore_errors=True)
            raise
        shutil.rmtree(place)
