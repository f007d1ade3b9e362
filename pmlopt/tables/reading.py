"""Opening a table: CSV in plain Python or through Arrow, Parquet and Arrow files, and frames."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from itertools import islice
from pathlib import Path
from typing import Any, cast

from pmlopt.errors import FileFormatError, InputError, MissingExtraError
from pmlopt.tables.batches import BATCH_ROWS, Batch, RowBatch, Table
from pmlopt.tables.columns import column_names, listed
from pmlopt.tables.csv_form import HEAD, CsvForm
from pmlopt.tables.streams import DataStream, check_header, no_rows, text_rows, with_seeking
from pmlopt.whole_files import is_standard, reason_of, standard_input

_PARQUET, _ARROW = b"PAR1", b"ARROW1"
"""What files of these formats begin with."""


def open_table(data: Any, form: CsvForm | None = None, *, plain: bool = False) -> Table:
    """The table of a data file, or of a frame.

    Args:
        data: the path of a file, `-` for standard input, a frame of pandas, Polars or Arrow, or a mapping
            from names to columns.
        form: of a CSV file.
        plain: read CSV in plain Python, though pyarrow is there.

    Raises:
        FileFormatError: the file is not there, or is no table.
        MissingExtraError: it is Parquet or Arrow, and pyarrow is not installed.
    """
    if isinstance(data, str | os.PathLike):
        return _open_file(data, form or CsvForm(), plain=plain)
    if isinstance(data, Mapping):
        return FrameTable(dict(data))
    names = column_names(data)
    if names is None:
        raise InputError(
            f"{type(data).__name__!r} is no table: give the path of a file, a frame of pandas, Polars or "
            "Arrow, or a mapping from names to columns"
        )
    repeated = [name for name in names if names.count(name) > 1]
    if repeated:
        raise InputError(f"the table has more than one column named {repeated[0]!r}: rename them")
    return FrameTable({name: data[name] for name in names})


def _open_file(path: str | os.PathLike[str], form: CsvForm, *, plain: bool) -> Table:
    try:
        stream = standard_input() if is_standard(path) else Path(path).open("rb")  # noqa: SIM115 -- the table's
        source = DataStream(stream)
    except (OSError, ValueError, TypeError) as cause:
        raise FileFormatError(f"{path}: cannot be read: {reason_of(cause)}") from None
    try:
        return _table_of(path, source, form, plain=plain)
    except BaseException:
        source.close()
        raise


def _table_of(path: str | os.PathLike[str], source: DataStream, form: CsvForm, *, plain: bool) -> Table:
    """The table in a stream, by how it begins."""
    typed = source.head.startswith((_PARQUET, _ARROW))
    arrow = None if plain and not typed else _arrow()
    if not typed:
        found = form.found(source.head, path, whole=len(source.head) < HEAD)
        if arrow is None:
            return PlainCsvTable(path, source, found)
        return cast("Table", arrow.CsvTable(path, source, found))
    if arrow is None:
        raise MissingExtraError(f"{path}: Parquet and Arrow need pyarrow: pip install 'pmlopt[parquet]'")
    if source.head.startswith(_PARQUET):
        return cast("Table", arrow.ParquetTable(path, with_seeking(source)))
    return cast("Table", arrow.IpcTable(path, with_seeking(source)))


def _arrow() -> Any:
    """The module that reads through Arrow; None where pyarrow is not installed."""
    try:
        from pmlopt.tables import arrow
    except MissingExtraError:
        return None
    return arrow


class PlainCsvTable(Table):
    """A CSV file, read by the standard library."""

    typed = False

    def __init__(self, path: str | os.PathLike[str], source: DataStream, form: CsvForm) -> None:
        self.where, self.form = path, form
        self._source = source
        self._rows = text_rows(source, form, path)
        self.names = next(self._rows, [])
        check_header(self.names, path)

    def batches(self) -> Iterator[Batch]:
        """The batches of rows."""
        first = 2
        while rows := list(islice(self._rows, BATCH_ROWS)):
            yield RowBatch(list(zip(*rows, strict=True)), first, text=True)
            first += len(rows)
        if first == 2:
            raise no_rows(self.where)

    def close(self) -> None:
        """Close the file."""
        self._source.close()

    def done(self) -> float | None:
        """The share of the file that was read."""
        return self._source.done()


class FrameTable(Table):
    """Columns in memory.

    Raises:
        InputError: one is no sequence, or they have different numbers of rows.
    """

    typed = True
    where = "the table"

    def __init__(self, columns: Mapping[Any, Any]) -> None:
        self.names = list(columns)
        self._columns = columns
        sizes = {name: _rows_in(column, name) for name, column in columns.items()}
        if len(set(sizes.values())) > 1:
            raise InputError(
                f"the columns have different numbers of rows, {sizes}: give each as many cells, None where "
                "one is missing"
            )

    def batches(self) -> Iterator[Batch]:
        """All rows in one batch."""
        columns = _Listed([self._columns[name] for name in self.names])
        if not columns or not len(columns[0]):
            raise no_rows(self.where)
        yield RowBatch(columns, 0, text=False)


def _rows_in(column: Any, name: object) -> int:
    try:
        return len(column)
    except TypeError:
        raise InputError(f"the column {name!r} is {column!r}: give a list or an array of its cells") from None


class _Listed(Sequence[list[Any]]):
    """Columns as lists, made where one is asked for: a frame may have many others."""

    def __init__(self, columns: Sequence[Any]) -> None:
        self._columns = columns

    def __len__(self) -> int:
        return len(self._columns)

    def __getitem__(self, place: Any) -> Any:
        return listed(self._columns[place])
