"""Sinks: what a table's batches are written to, as CSV or Parquet."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO

from pmlopt.errors import FileFormatError, MissingExtraError
from pmlopt.tables.batches import Table
from pmlopt.tables.csv_form import CsvForm
from pmlopt.tables.sinks import OutputColumn, Sink
from pmlopt.whole_files import is_standard, reason_of, whole_file

PARQUET_ENDINGS = (".parquet", ".pq")


@contextmanager
def open_sink(path: str | os.PathLike[str], columns: Sequence[OutputColumn], like: Table) -> Iterator[Sink]:
    """A sink for a file that is there whole when the block ends, and else is not there.

    Args:
        path: `.parquet` or `.pq` for Parquet, others for CSV in UTF-8, with the delimiter of a CSV file that
            is read; `-` for CSV to standard output.
        columns: what it has.
        like: the table that is read.

    Raises:
        FileFormatError: the file cannot be written there.
        MissingExtraError: it is Parquet, and pyarrow is not installed.
        InputError: a column cannot be written in that format.
    """
    parquet = Path(path).suffix.lower() in PARQUET_ENDINGS
    if parquet and like.arrow_schema is None:
        raise MissingExtraError(f"{path}: Parquet needs pyarrow: pip install 'pmlopt[parquet]'")
    try:
        with whole_file(path) as stream, _sink_on(stream, columns, like, parquet=parquet) as sink:
            yield sink
    except OSError as cause:
        if is_standard(path) and isinstance(cause, BrokenPipeError):
            raise  # whoever was reading has left
        raise FileFormatError(f"{path}: cannot be written: {reason_of(cause)}") from None


@contextmanager
def _sink_on(
    stream: BinaryIO, columns: Sequence[OutputColumn], like: Table, *, parquet: bool
) -> Iterator[Sink]:
    """A sink on a stream, ended with the block."""
    form = CsvForm(like.form.delimiter if like.form else ",", "utf-8")
    if like.arrow_schema is None:
        sink: Sink = CsvSink(stream, columns, form)
    else:
        from pmlopt.tables import arrow_writing

        made = arrow_writing.ParquetSink if parquet else arrow_writing.CsvSink
        sink = made(stream, columns, form, like)
    try:
        yield sink
    except BaseException:
        sink.abandon()
        raise
    sink.close()


class CsvSink(Sink):
    """CSV in plain Python."""

    def __init__(self, stream: BinaryIO, columns: Sequence[OutputColumn], form: CsvForm) -> None:
        self._stream, self._form = stream, form
        stream.write(form.encoded([[column.name for column in columns]]))

    def write(self, columns: Sequence[Sequence[str]]) -> None:
        """Write the columns of a batch."""
        self._stream.write(self._form.encoded(list(zip(*columns, strict=True))))
