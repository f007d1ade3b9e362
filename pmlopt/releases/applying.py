"""Mechanisms applied to the columns of a data file, row by row and batch by batch."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field

from pmlopt.core.arrays import IntArray
from pmlopt.data.sampling.categorical import RandomBits, random_bits
from pmlopt.data.tables.reading import Batch, Table
from pmlopt.data.tables.writing import open_sink
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
    with open_sink(target, work.columns, table) as sink:
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
