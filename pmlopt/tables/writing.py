"""Writers of table batches as CSV, Parquet or Arrow files.

A sink makes rows of the columns of a batch (`rows`), which are then put into their order (`write_rows`), and
takes rows (`write`). Rows are Arrow record batches that hold their own cells and nothing else: lines of text
for CSV, and columns of plain types for the others.
"""

from __future__ import annotations

import io
import os
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np

from pmlopt.core.files.disk import atomic_file, describe_os_error, is_standard_stream
from pmlopt.core.lazy_imports import arrow_csv, check_installed, compute, pyarrow
from pmlopt.core.numbers.arrays import Label
from pmlopt.data.sampling.categorical import RandomBits
from pmlopt.errors import FileFormatError
from pmlopt.tables.databases import Database
from pmlopt.tables.reading import (
    PARQUET_ENDINGS,
    FrameTable,
    Table,
    integers_to_arrow,
    labels_to_arrow,
)
from pmlopt.tables.row_order import copy_rows, cut_rows, join_batches, shuffle_rows
from pmlopt.tables.typed_sinks import (
    ArrowSink,
    Cells,
    OutputColumn,
    ParquetSink,
    TypedSink,
    check_readable_labels,
    make_write_error,
    to_typed_array,
)

ARROW_ENDINGS = (".feather", ".arrow", ".ipc")
SURVEY_ENDINGS = (".sav", ".zsav", ".dta", ".xpt")
DOCUMENT_ENDINGS = (".rds", ".xlsx")
TEXT_ENDINGS = (".csv", ".tsv", ".txt", "")
TYPED_ENDINGS = (*PARQUET_ENDINGS, *ARROW_ENDINGS, *SURVEY_ENDINGS, *DOCUMENT_ENDINGS)
COMPRESSED_ENDINGS = {".gz": "gzip", ".bz2": "bz2", ".zst": "zstd"}
"""What may follow an ending of text, and its codec of Arrow."""


_WRITTEN_AS = {
    ".rda": ".rds",
    ".rdata": ".rds",
    ".ods": ".xlsx",
    ".sas7bdat": ".csv",
    ".por": ".csv",
}
"""Endings of files that are read and not written, and what their rows are written to."""


def choose_released_ending(data: Any) -> str:
    """Return the ending of the file to which the rows of data are released: their own, or a similar one.

    Args:
        data: a path; or a database, whose rows become Parquet, or data in memory, which become CSV.

    Examples:
        >>> [choose_released_ending(name) for name in ("a.parquet", "a.ods", "a.csv.gz")]
        ['.parquet', '.xlsx', '.csv']
    """
    if isinstance(data, Database):
        return ".parquet"
    ending = Path(data).suffix.lower() if isinstance(data, str | os.PathLike) else ""
    ending = _WRITTEN_AS.get(ending, ending)
    return ending if ending in TYPED_ENDINGS else ".csv"


def describe_other_ending(data: Any) -> str | None:
    """Return that rows are released to another kind of file than the data have; None where they are not."""
    ending = Path(data).suffix.lower() if isinstance(data, str | os.PathLike) else ""
    if ending not in _WRITTEN_AS:
        return None
    return (
        f"Files that end in {ending} are read and not written: the rows are released as "
        f"{_WRITTEN_AS[ending]}."
    )


@contextmanager
def open_sink(
    path: str | os.PathLike[str],
    columns: Sequence[OutputColumn],
    like: Table,
    *,
    replace: bool = True,
) -> Iterator[CsvSink | TypedSink]:
    """Open a writer of a file that appears atomically when the block ends.

    Args:
        path: `.parquet` or `.pq` for Parquet, `.feather`, `.arrow` or `.ipc` for Arrow, `.sav`, `.zsav`,
            `.dta` or `.xpt` for SPSS, Stata and SAS, `.rds` for R, `.xlsx` for Excel, and `.csv`, `.tsv`,
            `.txt` or nothing for CSV in UTF-8, with the delimiter of a CSV file that is read, which `.gz`,
            `.bz2` or `.zst` behind it compress; `-` for CSV to standard output.
        columns: what it has.
        like: the table that is read.
        replace: whether a file is replaced that another process puts there meanwhile.

    Raises:
        FileFormatError: the ending is another one, or the file cannot be written there.
        InputError: a column cannot be written in that format.
    """
    kind, codec = choose_sink(path)
    check_installed("tables of people", "narwhals", "pyarrow")
    try:
        with atomic_file(path, replace=replace) as stream, _open_compressed(stream, codec) as inner:
            sink = kind(inner, columns, like)
            try:
                yield sink
            except BaseException:
                sink.abandon()
                raise
            sink.close()
    except OSError as cause:
        if is_standard_stream(path) and isinstance(cause, BrokenPipeError):
            raise  # the reader has closed the pipe
        raise FileFormatError(f"{path}: cannot be written: {describe_os_error(cause)}") from None


def write_table(path: str | os.PathLike[str], columns: Mapping[str, Sequence[Label]]) -> None:
    """Write label columns to a file atomically, in the format of the suffix.

    Args:
        path: as for `open_sink`.
        columns: by name, each with a label for each row; labels of one kind keep it in Parquet and Arrow.

    Raises:
        FileFormatError: the ending is none of these, or the file cannot be written there.
        InputError: two labels of mixed kinds read alike.
    """
    # the distinct labels in their first order: rows are written as places in that list
    every = [
        OutputColumn(name, labels=list(dict.fromkeys(labels))) for name, labels in columns.items()
    ]
    with open_sink(path, every, FrameTable(columns)) as sink:
        places = [{label: k for k, label in enumerate(one.labels)} for one in every]
        rows = sink.rows([
            np.array([place[label] for label in columns[one.name]], dtype=np.int64)
            for one, place in zip(every, places, strict=True)
        ])  # fmt: skip
        write_rows(sink, [rows], None, None)


def write_rows(
    sink: CsvSink | TypedSink,
    batches: Iterable[Any],
    order: RandomBits | None,
    folder: str | os.PathLike[str] | None,
) -> None:
    """Write rows in a uniformly random order.

    Args:
        sink: that made the rows.
        batches: of its rows, as record batches, which are read to the end before the first is written.
        order: random bits for the order; None keeps the order of the rows.
        folder: for the rows that are more than memory shall hold; see `shuffle_rows`.
    """
    if order is None:
        # Bytes of rows that are written at a time where they keep their order.
        ordered = copy_rows(join_batches(batches, 2**22))
    else:
        ordered = shuffle_rows(batches, order, folder)
    for rows in ordered if sink.group is None else cut_rows(ordered, sink.group):
        sink.write(rows)


def choose_sink(path: str | os.PathLike[str]) -> tuple[type[CsvSink | TypedSink], str | None]:
    """Return the writer class and compression codec of a file suffix.

    Raises:
        FileFormatError: the ending is not known.

    Examples:
        >>> [choose_sink(name)[0].__name__ for name in ("a.parquet", "a.feather", "a.CSV", "-")]
        ['ParquetSink', 'ArrowSink', 'CsvSink', 'CsvSink']
        >>> choose_sink("a.csv.gz")[1]
        'gzip'
    """
    # a codec is the last suffix, and the format the one before it
    ending = Path(path).suffix.lower()
    codec = None
    if ending in COMPRESSED_ENDINGS:
        ending, codec = Path(path).with_suffix("").suffix.lower(), COMPRESSED_ENDINGS[ending]
    if codec is None and ending in PARQUET_ENDINGS:
        return ParquetSink, None
    if codec is None and ending in ARROW_ENDINGS:
        return ArrowSink, None
    if ending in TEXT_ENDINGS:
        return CsvSink, codec
    if codec is None and ending in DOCUMENT_ENDINGS:
        from pmlopt.tables.document_sinks import RSink, WorkbookSink

        return (RSink if ending == ".rds" else WorkbookSink), None
    if codec is None and ending in SURVEY_ENDINGS:
        from pmlopt.tables.survey_sinks import SURVEY_SINKS

        return SURVEY_SINKS[ending], None
    known = ", ".join((*TYPED_ENDINGS, *TEXT_ENDINGS[:-1]))
    raise FileFormatError(
        f"{path}: data are not written in that format: end the name in {known}, or in "
        f"{', '.join(f'.csv{one}' for one in COMPRESSED_ENDINGS)}"
    )


@contextmanager
def _open_compressed(stream: BinaryIO, codec: str | None) -> Iterator[Any]:
    """Yield a compressing stream over a stream that stays open."""
    if codec is None:
        yield stream
        return
    # closing the codec closes its target too, and the caller still has to publish the file
    kept = _UnclosedStream(stream)
    inner = pyarrow.CompressedOutputStream(pyarrow.PythonFile(kept, mode="w"), codec)
    try:
        yield inner
    except BaseException:
        kept.discards = True  # the codec would write its end to a file that is gone
        raise
    finally:
        inner.close()


class _UnclosedStream(io.RawIOBase):
    """A stream wrapper that ignores close.

    Attributes:
        discards: whether what is written goes nowhere.
    """

    def __init__(self, stream: BinaryIO) -> None:
        self._stream = stream
        self.discards = False

    def writable(self) -> bool:
        """Return True."""
        return True

    def write(self, data: Any) -> int:
        """Write data to the underlying stream."""
        return len(data) if self.discards else self._stream.write(data)


def _to_scalar(text: str) -> Any:
    """Convert a text to an Arrow scalar."""
    return labels_to_arrow([text])[0]


class CsvSink:
    """A CSV writer in UTF-8 with minimal quoting, in the input's delimiter.

    Attributes:
        typed: whether new columns keep the type of their labels, or are text, each label as `str` writes it.
        group: how many rows are written at a time; None for any number.
    """

    typed = False
    group: int | None = None

    def __init__(self, stream: BinaryIO, columns: Sequence[OutputColumn], like: Table) -> None:
        self._stream = stream
        self._columns = columns
        self._delimiter = (like.form.delimiter if like.form else None) or ","
        # the delimiter may be a character with a meaning in a pattern
        self._special = f'["\r\n{re.escape(self._delimiter)}]'
        self._schema = pyarrow.schema(
            [(f"f{place}", pyarrow.string()) for place in range(len(columns))]
        )
        self._options = arrow_csv.WriteOptions(
            include_header=False, delimiter=self._delimiter, quoting_style="none"
        )
        for column in columns:
            check_readable_labels(column, "CSV")
        self._lines = pyarrow.schema([("line", pyarrow.large_binary())])
        self.write(
            self._format_lines(
                [to_typed_array([str(column.name)], pyarrow.string()) for column in columns]
            )
        )

    def rows(self, columns: Sequence[Cells]) -> Any:
        """Format a batch's columns as CSV lines."""
        return self._format_lines(
            [
                self._to_text(cells, column)
                if column.place is not None
                else column.texts.take(integers_to_arrow(cells))
                for cells, column in zip(columns, self._columns, strict=True)
            ]
        )

    def _format_lines(self, texts: Sequence[Any]) -> Any:
        """Format lines, vectorized where no cell needs quotes."""
        if len(texts) > 1:  # a blank line would be no row
            buffer = pyarrow.BufferOutputStream()
            try:
                batch = pyarrow.RecordBatch.from_arrays(texts, schema=self._schema)
                arrow_csv.write_csv(batch, buffer, self._options)
                return self._split_lines(buffer.getvalue(), batch.num_rows)
            except pyarrow.ArrowInvalid:  # a cell needs quotes
                pass
        quoted = [self._quote_cells(text, alone=len(texts) == 1) for text in texts]
        quoted[-1] = compute.binary_join_element_wise(quoted[-1], _to_scalar(""), _to_scalar("\n"))
        between = _to_scalar(self._delimiter)
        lines = compute.binary_join_element_wise(*quoted, between) if len(quoted) > 1 else quoted[0]
        return pyarrow.RecordBatch.from_arrays(
            [lines.cast(pyarrow.large_binary())], schema=self._lines
        )

    def _split_lines(self, text: Any, size: int) -> Any:
        """Split joined text into lines without embedded line ends."""
        # in UTF-8 the byte of a line end is part of no other character
        ends = np.flatnonzero(np.frombuffer(text, dtype=np.uint8) == ord("\n")) + 1
        if len(ends) != size:
            raise pyarrow.ArrowInvalid("a cell has a line end")
        # the lines share the buffer of the text: only where each of them ends is computed
        offsets = pyarrow.py_buffer(np.append(0, ends).astype(np.int64))
        lines = pyarrow.Array.from_buffers(pyarrow.large_binary(), size, [None, offsets, text])
        return pyarrow.RecordBatch.from_arrays([lines], schema=self._lines)

    def write(self, rows: Any) -> None:
        """Write lines."""
        lines = rows.column(0)
        # a slice of an array keeps the whole buffers and has an offset into them
        ends = np.frombuffer(lines.buffers()[1], dtype=np.int64)[lines.offset :][: len(lines) + 1]
        if len(lines):
            self._stream.write(memoryview(lines.buffers()[2])[int(ends[0]) : int(ends[-1])])

    def _to_text(self, column: Any, about: OutputColumn) -> Any:
        """Convert cells to text, empty for missing ones."""
        if column.type != pyarrow.string():
            try:
                if pyarrow.types.is_dictionary(column.type):
                    column = column.cast(column.type.value_type)
                column = column.cast(pyarrow.string())
            except (pyarrow.ArrowNotImplementedError, pyarrow.ArrowInvalid):
                raise make_write_error(about.name, column.type, "CSV") from None
        return column.fill_null(_to_scalar("")) if column.null_count else column

    def _quote_cells(self, text: Any, *, alone: bool) -> Any:
        """Quote the cells that need it."""
        # in a single column an empty cell would be a blank line, which is no row
        pattern = f"{self._special}|^$" if alone else self._special
        needed = compute.match_substring_regex(text, pattern)
        if not compute.any(needed).as_py():
            return text
        quote = _to_scalar('"')
        # a quote within a quoted cell is doubled
        inside = compute.replace_substring(text, '"', '""')
        return compute.if_else(
            needed, compute.binary_join_element_wise(quote, inside, quote, _to_scalar("")), text
        )

    def close(self) -> None:
        """Do nothing: a CSV file has no end mark."""

    def abandon(self) -> None:
        """Do nothing: no rows are buffered."""
