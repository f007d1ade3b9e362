"""Mechanisms applied to the files of a folder, side by side, resumed after an interruption."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import Executor, Future, as_completed
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from pmlopt.core import files
from pmlopt.core.arrays import IntArray
from pmlopt.core.drafts import publish_new
from pmlopt.core.failures import is_worker_lost
from pmlopt.data.sampling.categorical import KeyedBits, RandomBits, new_key, random_bits
from pmlopt.data.tables.reading import Batch, FolderTable, Table, open_table
from pmlopt.data.tables.writing import open_sink
from pmlopt.errors import FileFormatError, InputError, WorkerLostError
from pmlopt.releases.batches import ColumnRelease, ColumnsAtWork
from pmlopt.releases.folder_drafts import FinishedFile, open_folder_draft
from pmlopt.releases.folder_drafts import FolderDraft as _Draft


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
    replace: bool = True,
    watch: Callable[[Batch, Sequence[IntArray]], None] | None = None,
    released: Callable[[Batch, Sequence[IntArray]], None] | None = None,
) -> Applied:
    """Replace columns of a table by what mechanisms release of them, each row drawn by itself, exactly.

    Args:
        table: that is read.
        releases: mechanisms with their columns, none of which has two.
        target: the file to write, which is there when all rows are, or never.
        keep: the other columns that stay, in clear; None for all.
        drop_missing: leave out rows with a missing cell that is no input.
        seed: for a result that can be repeated, in tests; None draws from the operating system. Or the bits
            of each mechanism.
        replace: whether a file is replaced that another process puts there meanwhile.
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
    if isinstance(seed, Sequence):
        bits = list(seed)
    else:  # of its own for each mechanism, so that a seed draws the same from batches of any length
        bits = [random_bits(seed if seed is None or k == 0 else [seed, k]) for k in range(len(releases))]
    applied = Applied(kept=[column.name for column in work.columns if column.place is not None])
    with open_sink(target, work.columns, table, replace=replace) as sink:
        for batch in table.batches():
            codes = work.codes(batch)
            if watch is not None:
                watch(batch, codes)
            kept, drawn = work.drawn(codes, bits)
            if released is not None:
                released(batch, drawn)
            sink.write(work.written(batch, kept, drawn, typed=sink.typed))
            written = batch.size if kept is None else int(kept.sum())
            applied.rows += written
            applied.dropped += batch.size - written
    return applied


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
        beside: the path of a release that the folder becomes a part of: the draft is named after it, and the
            caller holds the lock on it; None where the folder is the release.

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
    with open_folder_draft(target, beside, identity, sources) as draft:
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
                "files": {name: one.published() for name, one in finished.items()},
            }  # fmt: skip
            files.write_whole(draft.whole / SUMMARY, files.json_bytes(told))
        try:
            publish_new(draft.whole, Path(target).absolute())
        except OSError as cause:
            raise FileFormatError(f"{target}: cannot be made: {files.reason_of(cause)}") from None
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
        before = files.digest_of(source)
        bits = [KeyedBits(self.key, name, before, number) for number in range(len(self.releases))]
        with open_table(source) as table:
            done = apply_columns(
                table, self.releases, target, keep=self.keep, drop_missing=self.drop_missing, seed=bits
            )
        if files.digest_of(source) != before:
            raise InputError(f"{source}: was changed while it was released: start again")
        return FinishedFile(done.rows, done.dropped, files.digest_of(target), before)

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
    """Work on the files that are not finished; each with what became of it, as it ends.

    Raises:
        WorkerLostError: a worker was killed, or the executor ended.
    """
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
    except BaseException as cause:
        for future in futures:
            future.cancel()
        if is_worker_lost(cause):
            raise WorkerLostError(
                f"a worker was lost ({type(cause).__name__}), such as one that took more memory than there "
                f"is: {len(draft.finished)} of {len(sources)} files are finished, and the same call goes on "
                "after them; use fewer workers if memory ran out"
            ) from cause
        raise
