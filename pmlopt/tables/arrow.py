"""Tables through Arrow: CSV, Parquet and IPC files in record batches, and their columns as arrays.

Importing this module raises `MissingExtraError` where pyarrow is not installed.
"""

from __future__ import annotations

import io
import os
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from pmlopt.arrays import BoolArray, IntArray, Label
from pmlopt.errors import FileFormatError, InputError, MissingExtraError
from pmlopt.frames import is_missing
from pmlopt.tables.batches import Batch, Table
from pmlopt.tables.csv_form import CsvForm
from pmlopt.tables.quoting import QuoteCheck
from pmlopt.tables.streams import DataStream, check_header, no_rows, text_rows
from pmlopt.whole_files import reason_of

try:
    import pyarrow
    import pyarrow.compute
    import pyarrow.csv
    import pyarrow.ipc
    import pyarrow.parquet
except ImportError:
    raise MissingExtraError("pyarrow is not installed: pip install 'pmlopt[parquet]'") from None

_BLOCK = 2**21
"""Bytes of CSV that are parsed at a time."""

_CELLS = 2**21
"""Cells of a batch of Parquet, so that wide tables have shorter batches."""

_LONGEST_BATCH = 2**18


class ArrowBatch(Batch):
    """Rows as arrays of Arrow."""

    def __init__(self, columns: Sequence[Any], size: int, first: int, text: bool) -> None:
        self.columns, self.size, self.first = columns, size, first
        self._text = text

    def encoded(self, place: int) -> tuple[list[Any], IntArray]:
        """The distinct values of a column, and the place of each row's value among them."""
        column = self.columns[place]
        try:
            if pyarrow.types.is_dictionary(column.type):
                column = column.dictionary_decode()
            coded = column.dictionary_encode(null_encoding="encode")
        except (pyarrow.ArrowNotImplementedError, pyarrow.ArrowInvalid):
            raise InputError(f"a column of {column.type} is no column of letters") from None
        values = coded.dictionary.to_pylist()
        codes = coded.indices.to_numpy(zero_copy_only=False).astype(np.int64)
        if self._text:
            return [value or None for value in values], codes
        return [None if is_missing(value) else value for value in values], codes

    def column(self, place: int, keep: BoolArray | None = None) -> Any:
        """The array of a column."""
        column = self.columns[place]
        return column if keep is None else column.filter(pyarrow.array(keep))

    def labelled(self, labels: Sequence[Label], codes: IntArray, *, typed: bool) -> Any:
        """An array of labels: of one type where they have one and the sink has types, else of their texts."""
        kind = label_type(labels) if typed else pyarrow.string()
        plain = labels if kind != pyarrow.string() else list(map(str, labels))
        try:
            return pyarrow.array(plain, type=kind).take(pyarrow.array(codes))
        except UnicodeEncodeError as cause:
            raise FileFormatError(f"a label cannot be written as UTF-8: {cause}") from None


def label_type(labels: Sequence[Label]) -> Any:
    """The Arrow type of labels: whole numbers, numbers, truth values, or text for all others."""
    kinds: set[Any] = {type(label) for label in labels}
    if kinds == {int} and all(-(2**63) <= int(str(label)) < 2**63 for label in labels):
        return pyarrow.int64()
    types = {float: pyarrow.float64(), bool: pyarrow.bool_()}
    return types.get(kinds.pop(), pyarrow.string()) if len(kinds) == 1 else pyarrow.string()


class CsvTable(Table):
    """A CSV file, parsed by Arrow, every cell as text."""

    typed = False

    def __init__(self, path: str | os.PathLike[str], source: DataStream, form: CsvForm) -> None:
        self.where, self.form = path, form
        self._source = source
        self._reading: Any = None
        self._quotes, self._judged = QuoteCheck(form.delimiter or ","), False
        self.names = next(text_rows(io.BytesIO(source.head), form, path), [])
        check_header(self.names, path)
        self._schema = pyarrow.schema([(f"f{place}", pyarrow.string()) for place in range(len(self.names))])

    def batches(self) -> Iterator[Batch]:
        """The batches of rows."""
        first = 1  # the header is read as a row
        try:
            self._reading = self._reader()
            for batch in self._reading:
                self._check_quotes()
                columns = batch.columns if first > 1 else [column.slice(1) for column in batch.columns]
                size = batch.num_rows if first > 1 else batch.num_rows - 1
                first = max(first, 2)
                if size:
                    yield ArrowBatch(columns, size, first, text=True)
                first += size
        except (pyarrow.ArrowInvalid, UnicodeError) as cause:
            self._explain(cause)
        self._check_quotes()
        if first <= 2:
            raise no_rows(self.where)

    def _check_quotes(self) -> None:
        """Let the plain reader judge a file whose quotes are unusual, before any of its rows are used."""
        if not self._quotes.unusual or self._judged:
            return
        self._judged = True
        if not Path(self.where).is_file():  # type: ignore[arg-type]
            raise FileFormatError(
                f"{self.where}: a quote stands inside a cell without its double, or a quoted cell does not "
                "end: write the data to a file, from which such cells are read row by row"
            )
        self._read_plainly()

    def _read_plainly(self) -> None:
        """Raise what the plain reader says of the file, which counts rows."""
        assert self.form is not None
        with DataStream(Path(self.where).open("rb")) as stream:  # type: ignore[arg-type]
            for _ in text_rows(stream, self.form, self.where):
                pass

    def _reader(self) -> Any:
        assert self.form is not None
        self._source.skip_blank_lines()
        self._source.watch = self._quotes.feed
        encoding = "utf8" if self.form.encoding in ("utf-8", "utf-8-sig") else self.form.encoding
        return pyarrow.csv.open_csv(
            pyarrow.PythonFile(self._source, mode="r"),
            pyarrow.csv.ReadOptions(block_size=_BLOCK, autogenerate_column_names=True, encoding=encoding),
            pyarrow.csv.ParseOptions(
                delimiter=self.form.delimiter, newlines_in_values=True, ignore_empty_lines=len(self.names) > 1
            ),
            pyarrow.csv.ConvertOptions(column_types=self._schema, strings_can_be_null=False),
        )

    def _explain(self, cause: Exception) -> None:
        """Raise what the plain reader says of the file, which counts rows; else the cause."""
        assert self.form is not None
        if Path(self.where).is_file():  # type: ignore[arg-type]
            self._read_plainly()
        if isinstance(cause, UnicodeError) or "UTF8" in str(cause):
            raise FileFormatError(self.form.not_text(self.where, self.form.encoding or "utf-8")) from None
        raise FileFormatError(
            f"{self.where}: is not a whole CSV file: {str(cause).splitlines()[0]}"
        ) from None

    @property
    def arrow_schema(self) -> Any:
        """Text, by place."""
        return self._schema

    def close(self) -> None:
        """Close the file, after what reads ahead in it."""
        if self._reading is not None:
            self._reading.close()
        self._source.close()

    def done(self) -> float | None:
        """The share of the file that was read."""
        return self._source.done()


class _TypedTable(Table):
    """A file whose columns have types."""

    typed = True

    def __init__(self, path: object, source: DataStream, schema: Any, rows: int | None) -> None:
        self.where, self.rows = path, rows
        self._source = source
        self._schema = schema
        self._read = 0
        self.names = list(schema.names)

    def _record_batches(self) -> Iterator[Any]:
        raise NotImplementedError

    def batches(self) -> Iterator[Batch]:
        """The batches of rows."""
        self._read = 0
        try:
            for batch in self._record_batches():
                if batch.num_rows:
                    yield ArrowBatch(batch.columns, batch.num_rows, self._read + 1, text=False)
                self._read += batch.num_rows
        except (pyarrow.ArrowInvalid, OSError) as cause:
            raise FileFormatError(f"{self.where}: cannot be read: {reason_of(cause)}") from None
        if not self._read:
            raise no_rows(self.where)

    @property
    def arrow_schema(self) -> Any:
        """The types of the columns, without what else the file says of them."""
        return self._schema

    def close(self) -> None:
        """Close the file."""
        self._source.close()

    def done(self) -> float | None:
        """The share of the rows that was read."""
        return self._read / self.rows if self.rows else None


class ParquetTable(_TypedTable):
    """A Parquet file."""

    def __init__(self, path: object, stream: DataStream) -> None:
        try:
            self._file = pyarrow.parquet.ParquetFile(pyarrow.PythonFile(stream, mode="r"))
        except (pyarrow.ArrowInvalid, OSError) as cause:
            raise FileFormatError(f"{path}: is not a whole Parquet file: {reason_of(cause)}") from None
        super().__init__(path, stream, self._file.schema_arrow, self._file.metadata.num_rows)

    def _record_batches(self) -> Iterator[Any]:
        rows = max(1, min(_LONGEST_BATCH, _CELLS // max(1, len(self.names))))
        return iter(self._file.iter_batches(batch_size=rows))


class IpcTable(_TypedTable):
    """An Arrow IPC file, which Feather is too."""

    def __init__(self, path: object, stream: DataStream) -> None:
        try:
            self._file = pyarrow.ipc.open_file(pyarrow.PythonFile(stream, mode="r"))
        except (pyarrow.ArrowInvalid, OSError) as cause:
            raise FileFormatError(f"{path}: is not a whole Arrow file: {reason_of(cause)}") from None
        super().__init__(path, stream, self._file.schema, None)

    def _record_batches(self) -> Iterator[Any]:
        return (self._file.get_batch(place) for place in range(self._file.num_record_batches))
