"""The application of mechanisms to tables and folders of files, in parallel and resumable."""

from __future__ import annotations

import hashlib
import io
import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Executor, Future, as_completed
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from pmlopt.core.failures import is_worker_lost, report_os_errors
from pmlopt.core.files import disk
from pmlopt.core.files.disk import publish_new
from pmlopt.core.numbers.arrays import IntArray
from pmlopt.data.sampling.categorical import (
    KeyedBits,
    RandomBits,
    SystemBits,
    make_key,
    make_random_bits,
)
from pmlopt.errors import InputError, WorkerLostError
from pmlopt.releases.rows.batches import ColumnRelease, ColumnReleaser
from pmlopt.releases.rows.folder_drafts import FinishedFile, FolderDraft, open_folder_draft
from pmlopt.tables.reading import FolderTable, Table, TableBatch, open_table
from pmlopt.tables.row_order import (
    MAX_CHUNK_BYTES,
    BucketFile,
    BucketReader,
    SortedRows,
    choose_spill_folder,
)
from pmlopt.tables.typed_sinks import ParquetSink, TypedSink
from pmlopt.tables.writing import CsvSink, open_sink, write_rows


@dataclass
class ApplyResult:
    """The summary of applying mechanisms to a table.

    Attributes:
        rows: how many were written.
        dropped: how many were left out for a missing cell.
        kept: the names of the other columns, which stay in clear.
        sources: of a folder, the digest of each file that the rows were read from.
    """

    rows: int = 0
    dropped: int = 0
    kept: list[str] = field(default_factory=list)
    sources: dict[str, str] = field(default_factory=dict)


def apply_columns(
    table: Table,
    releases: Sequence[ColumnRelease],
    target: str | os.PathLike[str],
    *,
    keep: Sequence[str] | None = None,
    drop_missing: bool = False,
    seed: int | Sequence[RandomBits] | None = None,
    replace: bool = True,
    keep_order: bool = False,
    watch: Callable[[TableBatch, Sequence[IntArray]], None] | None = None,
    released: Callable[[TableBatch, Sequence[IntArray]], None] | None = None,
) -> ApplyResult:
    """Apply mechanisms to columns of a table, drawing each row independently.

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
        replace: whether a file is replaced that another process puts there meanwhile.
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
    *bits, order = _make_bits(seed, len(releases))
    draws = _RowDrawer(table, releases, keep, drop_missing, bits, watch, released)
    with open_sink(target, draws.work.columns, table, replace=replace) as sink:
        write_rows(
            sink, draws.draw_rows(sink), None if keep_order else order, choose_spill_folder(target)
        )
    return draws.applied


class _RowDrawer:
    """A reader of table batches that draws the released rows.

    Attributes:
        table: that is read.
        work: the mechanisms at work.
        applied: what became of the rows so far.
    """

    def __init__(
        self,
        table: Table,
        releases: Sequence[ColumnRelease],
        keep: Sequence[str] | None,
        drop_missing: bool,
        bits: Sequence[RandomBits],
        watch: Callable[[TableBatch, Sequence[IntArray]], None] | None = None,
        released: Callable[[TableBatch, Sequence[IntArray]], None] | None = None,
    ) -> None:
        self.table = table
        self._bits = bits
        self._watch = watch
        self._released = released
        self.work = _start_mechanisms(table, releases, keep, drop_missing)
        self.applied = ApplyResult(
            kept=[one.name for one in self.work.columns if one.place is not None]
        )
        drawn = {name for one in releases for name in one.columns}
        # who records the draws may read a column that goes, such as that with the numbers of people
        self._needed = {*drawn, *(self.applied.kept if released is None else table.names)}

    def draw_rows(self, sink: CsvSink | TypedSink) -> Iterator[Any]:
        """Draw the outputs batch by batch, and yield each through a sink."""
        for batch in self.table.read_columns(self._needed):
            codes = self.work.encode_inputs(batch)
            if self._watch is not None:
                self._watch(batch, codes)
            kept, drawn = self.work.draw_outputs(codes, self._bits)
            if self._released is not None:
                self._released(batch, drawn)
            written = batch.size if kept is None else int(kept.sum())
            self.applied.rows += written
            self.applied.dropped += batch.size - written
            yield sink.rows(self.work.make_cells(batch, kept, drawn))


def _make_bits(seed: int | Sequence[RandomBits] | None, count: int) -> list[RandomBits]:
    """Create the random-bit sources of each mechanism and of the row order."""
    if isinstance(seed, Sequence):
        return list(seed)
    if seed is None:
        return [SystemBits()] * (count + 1)
    own = [make_random_bits(seed if k == 0 else [seed, k]) for k in range(count)]
    return [*own, make_random_bits([seed, 0, 1])]


def encode_inputs(
    table: Table,
    releases: Sequence[ColumnRelease],
    drop_missing: bool = False,
    others: Sequence[str] = (),
) -> Iterator[tuple[TableBatch, list[IntArray]]]:
    """Yield each batch of a table with the (size,) input indices of each mechanism.

    Args:
        table: that is read.
        releases: mechanisms with their columns.
        drop_missing: whether a row with a missing cell that is no input has the place -1 in all columns.
        others: further columns whose cells are needed; those of the rest may not be there.

    Raises:
        InputError: there is no such column.
        MechanismError: a cell is no input of its mechanism.
    """
    work = _start_mechanisms(table, releases, None, drop_missing)
    names = [name for one in releases for name in one.columns]
    for batch in table.read_columns({*names, *others}):
        yield batch, work.encode_inputs(batch)


def _start_mechanisms(
    table: Table, releases: Sequence[ColumnRelease], keep: Sequence[str] | None, drop_missing: bool
) -> ColumnReleaser:
    """Build the column releaser of a table, with the columns kept in clear."""
    return ColumnReleaser(
        releases, table.names, table.where, typed=table.typed, keep=keep, drop_missing=drop_missing
    )


SUMMARY = "applied.json"
"""What a released folder states of itself."""


def apply_folder(
    table: FolderTable,
    releases: Sequence[ColumnRelease],
    target: str | os.PathLike[str],
    *,
    keep: Sequence[str] | None = None,
    drop_missing: bool = False,
    seed: int | None = None,
    keep_order: bool = False,
    executor: Executor | None = None,
    progress: Callable[[int], None] | None = None,
    about: Mapping[str, Any] | None = None,
    beside: str | os.PathLike[str] | None = None,
) -> tuple[ApplyResult, dict[str, FinishedFile]]:
    """Apply mechanisms to all files of a folder, into files of another folder.

    The rows have a uniformly random order over all files: these have the names and places of the files of the
    data, which reveal nothing of the rows in them, nor do their sizes. Where folders are named by a column,
    which is kept then, the order is random over the files of each of its values.

    The draws of a file are a function of a key that this call makes and of the file, so that a task that an
    executor tries again writes the same bytes. The folder is filled under another name next to its place, and
    gets its own when it is whole. A journal there states which files are drawn: the same call goes on
    after an interruption, and draws those that are not under a new key. Nothing of these had a name.

    Args:
        table: the files.
        releases: mechanisms with their columns.
        target: the folder to make.
        keep: the other columns that stay, in clear; None for all.
        drop_missing: leave out rows with a missing cell that is no input.
        seed: for tests only; None takes the key from the operating system.
        keep_order: write each file into one of the same name and place, the rows in their order. Names, sizes
            and order may reveal what the data are sorted by: no level counts that.
        executor: what works on files side by side; None for one after the other.
        progress: is called with the rows of each file that is drawn.
        about: what else the summary states, which is `applied.json` in the folder; None for no summary.
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
    others = [
        name
        for name in table.names
        if name not in {one for step in releases for one in step.columns}
    ]
    kept = others if keep is None else list(keep)
    for name in table.partitions:
        if name not in kept:
            raise InputError(
                f"{table.where}: its folders are named by {name!r}, which the places of the released files "
                "would reveal: keep it, or write the data without these folders"
            )
    stay = [name for name in kept if name not in table.partitions]
    sources = dict(zip((file.relative_to(table.folder).as_posix() for file in table.files), table.files,
                       strict=True))  # fmt: skip
    groups = _group_by_folder(sources)
    parts = None if keep_order else {
        name: _count_parts(group) for group in groups.values() for name in group
    }  # fmt: skip
    work = _FolderWork(tuple(releases), tuple(stay), drop_missing, make_key(seed), parts)
    identity = work.compute_identity(sources, seed)
    with open_folder_draft(target, beside, identity, sources, work.accepts) as draft:
        for name, done in _finish_files(work, sources, draft, executor):
            draft.keep_file(name, done)
            if progress is not None:
                progress(done.rows + done.dropped)
        rows = sum(one.rows for one in draft.finished.values())
        dropped = sum(one.dropped for one in draft.finished.values())
        read_from = {name: one.source for name, one in draft.finished.items()}
        whole = draft.whole
        finished = dict(sorted(draft.finished.items()))
        if not keep_order:
            whole = draft.run / "parts"
            finished = _write_parts(work, groups, sources, draft, whole, executor)
        if about is not None:
            told = {
                **about,
                "random": "the operating system" if seed is None else "a seed, for tests only",
                "order": "that of the data" if keep_order else "random",
                "kept": kept,
                "rows": rows,
                "dropped": dropped,
                "files": {name: one.to_published() for name, one in finished.items()},
            }
            disk.atomic_write(whole / SUMMARY, disk.encode_json_bytes(told))
        with report_os_errors(target, "cannot be made"):
            publish_new(whole, Path(target).absolute())
    return ApplyResult(rows, dropped, kept, read_from), finished


def _group_by_folder(sources: Mapping[str, Path]) -> dict[str, list[str]]:
    """Group file names by the partition values in their folder paths."""
    groups: dict[str, list[str]] = {}
    for name in sources:
        named = "/".join(part for part in Path(name).parent.parts if "=" in part)
        groups.setdefault(named, []).append(name)
    return groups


def _count_parts(group: Sequence[object]) -> int:
    """Return the number of output files for a group of input files."""
    # Files that the rows of a folder are released into: each is made of a piece of every file of the data.
    return min(len(group), 256)


@dataclass(frozen=True)
class _FolderWork:
    """The picklable task of releasing one file in a worker process.

    Attributes:
        parts: of how many released files the rows of each file are; None where each file is released into one
            of its own, in its order.
    """

    releases: tuple[ColumnRelease, ...]
    keep: tuple[str, ...]
    drop_missing: bool
    key: bytes
    parts: Mapping[str, int] | None = None

    def __call__(self, source: Path, target: Path, name: str) -> FinishedFile:
        """Release one file deterministically, so that a repeated run writes the same bytes."""
        before = disk.digest_file(source)
        *bits, order = [
            KeyedBits(self.key, name, before, number) for number in range(len(self.releases) + 1)
        ]
        with open_table(source, may_be_empty=True) as table:
            if self.parts is None:
                done = apply_columns(
                    table,
                    self.releases,
                    target,
                    keep=self.keep,
                    drop_missing=self.drop_missing,
                    seed=[*bits, order],
                    keep_order=True,
                )
            else:
                draws = _RowDrawer(table, self.releases, self.keep, self.drop_missing, bits)
                done = _write_buckets(draws, target, self.parts[name], order)
        if disk.digest_file(source) != before:
            raise InputError(f"{source}: was changed while it was released: start again")
        return FinishedFile(done.rows, done.dropped, disk.digest_file(target), before)

    def accepts(self, drawn: Path, source: Path, done: FinishedFile) -> bool:
        """Return whether a drawn file has the columns and row count that this task would write.

        The rows, and those that are dropped, are counted in the data again.
        """
        rows = dropped = 0
        with open_table(source, may_be_empty=True) as table:
            for batch, codes in encode_inputs(table, self.releases, self.drop_missing):
                rows += batch.size
                dropped += int((np.minimum.reduce(codes) < 0).sum())
            columns = _start_mechanisms(table, self.releases, self.keep, self.drop_missing).columns
            schema = ParquetSink(io.BytesIO(), columns, table).plain
        if (done.rows, done.dropped) != (rows - dropped, dropped):
            return False
        with suppress(InputError, OSError), open_table(drawn, may_be_empty=True) as made:
            has_types = self.parts is None or made.types == schema.types  # Parquet may have others
            counted = sum(batch.size for batch in made.batches())
            return made.names == schema.names and has_types and counted == done.rows
        return False

    def write_part(
        self, group: Sequence[tuple[Path, Path]], target: Path, name: str, bucket: int
    ) -> FinishedFile:
        """Write one shuffled bucket of rows from several drawn files, deterministically.

        Args:
            group: the files of the data, each with the drawn one.
            target: the file to write.
            name: in the released folder.
            bucket: of the rows of these files.
        """
        bits = KeyedBits(self.key, "part", name)
        count = _count_parts(group)
        pieces = (
            rows for _, path in group for rows in BucketReader(str(path), count).read_pieces(bucket)
        )
        with open_table(group[0][0], may_be_empty=True) as table:  # for its types
            columns = _start_mechanisms(table, self.releases, self.keep, self.drop_missing).columns
            with open_sink(target, columns, table) as sink:
                written = _CountedBatches(pieces)
                write_rows(sink, written, bits, target.parent)
        return FinishedFile(written.rows, 0, disk.digest_file(target), "")

    def compute_identity(self, sources: Mapping[str, Path], seed: int | None) -> dict[str, str]:
        """Compute the identity hash of this release, without its key."""
        matrices = hashlib.sha256()
        for release in self.releases:
            one = release.mechanism
            matrices.update(
                repr((release.columns, one.inputs, one.outputs)).encode() + one.matrix.tobytes()
            )
        listed = [
            (name, (about := file.stat()).st_size, about.st_mtime_ns)
            for name, file in sources.items()
        ]
        told = repr((listed, self.keep, self.drop_missing, seed, self.parts))
        return {
            "data": hashlib.sha256(told.encode()).hexdigest(),
            "mechanisms": matrices.hexdigest(),
        }


class _CountedBatches:
    """An iterator of record batches that counts rows."""

    def __init__(self, batches: Iterable[Any]) -> None:
        self._batches = batches
        self.rows = 0

    def __iter__(self) -> Iterator[Any]:
        for batch in self._batches:
            self.rows += batch.num_rows
            yield batch


def _write_buckets(draws: _RowDrawer, target: Path, buckets: int, bits: RandomBits) -> ApplyResult:
    """Distribute the drawn rows of a file randomly over bucket files."""
    with disk.atomic_file(target) as stream:
        # makes rows, and writes none
        sink = ParquetSink(io.BytesIO(), draws.work.columns, draws.table)
        file = BucketFile(stream, sink.plain)
        held = SortedRows(buckets)
        for rows in draws.draw_rows(sink):
            bounds = np.full(rows.num_rows, buckets, dtype=np.uint64)
            held.add_batch(rows, bits.draw_all_below(bounds).astype(np.int64))
            if held.size >= MAX_CHUNK_BYTES:
                file.add_chunk(held)
                held = SortedRows(buckets)
        file.add_chunk(held)
        file.close()
    return draws.applied


def _write_parts(
    work: _FolderWork,
    groups: Mapping[str, Sequence[str]],
    sources: Mapping[str, Path],
    draft: FolderDraft,
    whole: Path,
    executor: Executor | None,
) -> dict[str, FinishedFile]:
    """Shuffle the drawn rows of each group into its output files; empty ones are omitted."""
    tasks = {}
    for names in groups.values():
        group = [(sources[name], draft.whole / name) for name in names]
        for bucket, name in enumerate(names[: _count_parts(names)]):
            (whole / name).parent.mkdir(parents=True, exist_ok=True)
            tasks[name] = (group, whole / name, name, bucket)
    done = dict(_run_tasks(work.write_part, tasks, executor))
    shown = {name: one for name, one in sorted(done.items()) if one.rows} or dict(
        list(done.items())[:1]
    )
    for name in done.keys() - shown.keys():
        (whole / name).unlink()
    return shown


def _finish_files(
    work: _FolderWork, sources: Mapping[str, Path], draft: FolderDraft, executor: Executor | None
) -> Iterator[tuple[str, FinishedFile]]:
    """Process the unfinished files, and yield each result.

    Raises:
        WorkerLostError: a worker was killed, or the executor ended.
    """
    left = {name: source for name, source in sources.items() if name not in draft.finished}
    tasks = {name: (source, draft.run / name, name) for name, source in left.items()}
    try:
        yield from _run_tasks(work, tasks, executor)
    except WorkerLostError as cause:
        raise WorkerLostError(
            f"{cause}: {len(draft.finished)} of {len(sources)} files are finished, and the same call goes on "
            "after them; use fewer workers if memory ran out"
        ) from cause


def _run_tasks(
    work: Callable[..., FinishedFile],
    tasks: Mapping[str, tuple[Any, ...]],
    executor: Executor | None,
) -> Iterator[tuple[str, FinishedFile]]:
    """Run a function on tasks in an executor, and yield each result."""
    if executor is None:
        for name, arguments in tasks.items():
            yield name, work(*arguments)
        return
    futures: dict[Future[FinishedFile], str] = {
        executor.submit(work, *arguments): name for name, arguments in tasks.items()
    }
    try:
        for future in as_completed(futures):
            yield futures[future], future.result()
    except BaseException as cause:
        for future in futures:
            future.cancel()
        if is_worker_lost(cause):
            raise WorkerLostError(
                f"a worker was lost ({type(cause).__name__}), such as one that took more memory than there is"
            ) from cause
        raise
