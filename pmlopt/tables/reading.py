"""Tables from files through Arrow: CSV, Parquet, Arrow and JSON Lines in batches of rows, and folders."""

from __future__ import annotations

import io
import lzma
import os
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Any, BinaryIO, Literal, cast
from urllib.parse import unquote

import numpy as np

from pmlopt.core.files.csv_rows import HEAD_BYTES
from pmlopt.core.files.disk import describe_os_error, is_standard_stream, read_standard_input
from pmlopt.core.files.file_kinds import (
    SURVEY_KINDS,
    describe_foreign_file,
    find_document_ending,
    find_survey_ending,
)
from pmlopt.core.frames import is_lazy, to_narwhals
from pmlopt.core.lazy_imports import arrow_csv, check_installed, ipc, parquet, pyarrow
from pmlopt.errors import FileFormatError, InputError
from pmlopt.tables.arrow_text import check_places, is_plain_text
from pmlopt.tables.databases import Database
from pmlopt.tables.frame_tables import FrameTable, LazyTable
from pmlopt.tables.json_lines import JsonLinesTable, is_json_lines
from pmlopt.tables.streams import (
    CsvFormat,
    DataStream,
    QuoteCheck,
    make_seekable,
    read_text_rows,
)
from pmlopt.tables.table import (
    Table,
    TableBatch,
    find_column,
    integers_to_arrow,
    labels_to_arrow,
    make_no_people_error,
    make_no_rows_error,
)

__all__ = [
    "PARQUET_ENDINGS",
    "CsvTable",
    "FolderTable",
    "FrameTable",
    "Table",
    "TableBatch",
    "TypedTable",
    "find_column",
    "integers_to_arrow",
    "is_data_folder",
    "labels_to_arrow",
    "list_data_files",
    "open_table",
    "read_texts",
]

PARQUET_ENDINGS = (".parquet", ".pq")

_PARQUET, _ARROW = b"PAR1", b"ARROW1"
"""What files of these formats begin with."""

_COMPRESSED = {
    b"\x1f\x8b": "gzip", b"BZh": "bz2", b"\x28\xb5\x2f\xfd": "zstd", b"\xfd7zXZ\0": "xz",
}  # fmt: skip
"""What compressed files begin with, and the codec of Arrow, which has none of xz."""


_MAX_BATCH_ROWS = 2**18


def open_table(data: Any, form: CsvFormat | None = None, *, may_be_empty: bool = False) -> Table:
    """Open a data file, folder or frame as a table.

    Args:
        data: the path of a file, `-` for standard input, a folder or a pattern of Parquet files, a frame of
            pandas, Polars or Arrow, one that an engine has not computed (Polars, DuckDB, Dask, Spark), a
            `Database`, or a mapping from names to columns.
        form: how the file is read, and whether labels are letters.
        may_be_empty: whether a Parquet or Arrow file may have no rows, as a part of a folder may.

    Raises:
        FileFormatError: the file is not there, or is no table.
        InputError: it is no frame, a column is none, or two have one name.
    """
    check_installed("tables of people", "narwhals", "pyarrow")
    if isinstance(data, Database):
        return data.open_table()
    if not isinstance(data, str | os.PathLike):
        frame = to_narwhals(data, lazy=True)
        return LazyTable(frame) if is_lazy(frame) else FrameTable(data)
    if is_data_folder(data):
        return FolderTable(data)
    try:
        stream = read_standard_input() if is_standard_stream(data) else Path(data).open("rb")  # noqa: SIM115 -- the table's
        source = DataStream(stream)
    except (OSError, ValueError, TypeError) as cause:
        raise FileFormatError(f"{data}: cannot be read: {describe_os_error(cause)}") from None
    try:
        return _open_stream(_decompress(source, data), data, form or CsvFormat(), may_be_empty)
    except BaseException:
        source.close()
        raise


def _open_stream(source: DataStream, data: Any, form: CsvFormat, may_be_empty: bool) -> Table:
    """Open unpacked content as the kind of table that its first bytes show."""
    if source.head.startswith(_PARQUET):
        return TypedTable(data, make_seekable(source), "Parquet", may_be_empty=may_be_empty)
    if source.head.startswith(_ARROW):
        return TypedTable(data, make_seekable(source), "Arrow", may_be_empty=may_be_empty)
    if is_json_lines(source.head):
        with source:
            return JsonLinesTable(io.BufferedReader(source), data)
    ending = find_document_ending(source.head)
    if ending is not None:
        return _convert_to_arrow(source, ending, data, form.sheet)
    ending = find_survey_ending(source.head)
    if ending is not None:
        from pmlopt.tables.survey import SurveyTable

        source.close()
        return SurveyTable(data, ending, labels=form.labels, encoding=form.encoding)
    _check_kind(source.head, data)
    found = form.detect(source.head, data, whole=len(source.head) < HEAD_BYTES)
    return CsvTable(data, source, found)


def _convert_to_arrow(source: DataStream, ending: str, where: Any, part: str | None) -> TypedTable:
    """Open the Arrow file that is made of a workbook or a file of R."""
    from pmlopt.tables.converted import convert_document

    with source:
        made = convert_document(source, ending, where, part)
    table = TypedTable(where, DataStream(io.BytesIO(made)), "Arrow")
    table.ending = ending
    return table


def _check_kind(head: bytes, where: Any) -> None:
    """Raise an error for a file of an unsupported type."""
    foreign = describe_foreign_file(head)
    if foreign is not None:
        raise FileFormatError(f"{where}: {foreign}")
    named = dict.fromkeys(PARQUET_ENDINGS, "Parquet file") | SURVEY_KINDS
    kind = named.get(Path(where).suffix.lower())
    if kind is not None:
        found = f"begins with {head[:4]!r}" if head else "is empty, with 0 bytes"
        raise FileFormatError(f"{where}: is no {kind}: it {found}; write it again, or leave it out")


def _decompress(source: DataStream, where: object) -> DataStream:
    """Decompress a file's content where it is compressed."""
    found = (codec for mark, codec in _COMPRESSED.items() if source.head.startswith(mark))
    codec = next(found, None)
    if codec is None:
        return source
    try:
        if codec == "xz":
            return DataStream(cast("BinaryIO", lzma.open(cast("BinaryIO", source))), where)
        return DataStream(
            pyarrow.CompressedInputStream(pyarrow.PythonFile(source, mode="r"), codec), where
        )
    except (OSError, EOFError, lzma.LZMAError) as cause:
        raise FileFormatError(
            f"{where}: is not a whole {codec} file: {describe_os_error(cause)}"
        ) from None


class CsvTable(Table):
    """A table over a CSV file, with text cells."""

    typed = False

    def __init__(self, path: str | os.PathLike[str], source: DataStream, form: CsvFormat) -> None:
        self.where = path
        self.form = form
        self._source = source
        self._reading: Any = None
        self._quotes = QuoteCheck(form.delimiter or ",")
        self._judged = False
        self.names = next(read_text_rows(io.BytesIO(source.head), form, path), [])
        if not self.names:
            raise make_no_rows_error(path, 0)
        self.types = [pyarrow.string()] * len(self.names)

    def batches(self) -> Iterator[TableBatch]:
        """Yield the batches of rows."""
        first = 1  # the header is read as a row
        try:
            self._reading = self._open_reader()
            for batch in self._reading:
                self._check_quotes()
                columns = (
                    batch.columns if first > 1 else [column.slice(1) for column in batch.columns]
                )
                size = batch.num_rows if first > 1 else batch.num_rows - 1
                first = max(first, 2)
                if size:
                    yield TableBatch(
                        columns, size, first, text=True, names=self.names, where=self.where
                    )
                first += size
        except (pyarrow.ArrowInvalid, UnicodeError) as cause:
            self._raise_explained(cause)
        self._check_quotes()
        if first <= 2:
            raise make_no_rows_error(self.where)

    def _check_quotes(self) -> None:
        """Check unusual quoting with Python's reader before any row is used."""
        if not self._quotes.unusual or self._judged:
            return
        self._judged = True
        if not Path(self.where).is_file():  # type: ignore[arg-type]
            raise FileFormatError(
                f"{self.where}: a quote inside a cell is not doubled, or a quoted cell does not "
                "end: write the data to a file, from which such cells are read row by row"
            )
        self._read_plainly()

    def _read_plainly(self) -> None:
        """Read the file with Python's reader, to raise its error with row numbers."""
        assert self.form is not None
        with DataStream(Path(self.where).open("rb")) as stream:  # type: ignore[arg-type]
            for _ in read_text_rows(stream, self.form, self.where):
                pass

    def _open_reader(self) -> Any:
        """Open Arrow's CSV reader."""
        assert self.form is not None
        self._source.skip_blank_lines()
        self._source.watch = self._quotes.check_chunk
        encoding = "utf8" if self.form.encoding in ("utf-8", "utf-8-sig") else self.form.encoding
        # Bytes of CSV that are parsed at a time.
        return arrow_csv.open_csv(
            pyarrow.PythonFile(self._source, mode="r"),
            arrow_csv.ReadOptions(
                block_size=2**21,
                skip_rows=int(self.form.states_delimiter),
                autogenerate_column_names=True,
                encoding=encoding,
            ),
            arrow_csv.ParseOptions(
                delimiter=self.form.delimiter,
                newlines_in_values=True,
                ignore_empty_lines=len(self.names) > 1,
            ),
            arrow_csv.ConvertOptions(
                column_types={f"f{place}": kind for place, kind in enumerate(self.types)},
                strings_can_be_null=False,
            ),
        )

    def _raise_explained(self, cause: Exception) -> None:
        """Raise the error of Python's reader, which has row numbers; else the cause."""
        assert self.form is not None
        if Path(self.where).is_file():  # type: ignore[arg-type]
            self._read_plainly()
        if isinstance(cause, UnicodeError) or "UTF8" in str(cause):
            raise FileFormatError(
                self.form.encoding_error(self.where, self.form.encoding or "utf-8")
            ) from None
        raise FileFormatError(
            f"{self.where}: is not a whole CSV file: {str(cause).splitlines()[0]}"
        ) from None

    def close(self) -> None:
        """Close the file and its read-ahead."""
        if self._reading is not None:
            self._reading.close()
        self._source.close()

    def done(self) -> float | None:
        """Return the fraction of the file that was read."""
        return self._source.done()


class TypedTable(Table):
    """A table over a Parquet or Arrow IPC (Feather) file."""

    def __init__(
        self,
        path: object,
        source: DataStream,
        kind: Literal["Parquet", "Arrow"],
        *,
        may_be_empty: bool = False,
    ) -> None:
        self.where = path
        self._source = source
        self._read = 0
        self._may_be_empty = may_be_empty
        self._some_parts: Callable[[list[str]], Iterable[Any]] | None = None
        try:
            stream = pyarrow.PythonFile(source, mode="r")
            if kind == "Parquet":
                file = parquet.ParquetFile(stream)
                schema = file.schema_arrow
                self.rows = file.metadata.num_rows
                self.lost_orders = _find_lost_orders(schema, file.metadata)
                # Cells of a batch of Parquet, so that wide tables have shorter batches.
                size = max(1, min(_MAX_BATCH_ROWS, (2**21) // max(1, len(schema.names))))
                self._parts: Callable[[], Iterable[Any]] = lambda: file.iter_batches(
                    batch_size=size
                )
                if self.rows > _MAX_BATCH_ROWS:
                    self._some_parts = lambda names: _iterate_some_columns(
                        stream, file, size, names
                    )
            else:
                file = ipc.open_file(stream)
                schema = file.schema
                self._parts = lambda: (
                    check_places(file.get_batch(k)) for k in range(file.num_record_batches)
                )
            self.names = list(schema.names)
            self.types = list(schema.types)
            self.fields = list(schema)
        except pyarrow.ArrowNotImplementedError as cause:
            raise FileFormatError(
                f"{path}: has a column of a type that Arrow does not read ({cause}): write it again with "
                "that column as text, or as whole numbers of 64 bits"
            ) from None
        except (pyarrow.ArrowInvalid, OSError) as cause:
            raise FileFormatError(
                f"{path}: is not a whole {kind} file: {describe_os_error(cause)}"
            ) from None
        except UnicodeDecodeError as cause:
            raise FileFormatError(
                f"{path}: the name {cause.object!r} of a column is text that is not UTF-8: rename it"
            ) from None

    def batches(self) -> Iterator[TableBatch]:
        """Yield the batches of rows."""
        return self._read_parts(self._parts, lambda batch: batch.columns)

    def read_columns(self, names: Collection[str]) -> Iterator[TableBatch]:
        """Yield the batches of rows, of a large file of Parquet with some columns only."""
        wanted = [name for name in self.names if name in names]
        if self._some_parts is None or len(set(self.names)) < len(self.names):
            return self.batches()

        def fill_in(batch: Any) -> list[Any]:
            found = dict(zip(batch.schema.names, batch.columns, strict=True))
            return [found.get(name) for name in self.names]

        return self._read_parts(partial(self._some_parts, wanted), fill_in)

    def _read_parts(
        self, parts: Callable[[], Iterable[Any]], get_columns: Callable[[Any], Sequence[Any]]
    ) -> Iterator[TableBatch]:
        """Yield the batches of rows, with the columns of each."""
        self._read = 0
        orders = {self.names.index(name): None for name in self.lost_orders}
        try:
            for batch in parts():
                if batch.num_rows:
                    found = TableBatch(
                        get_columns(batch), batch.num_rows, self._read + 1, text=False,
                        names=self.names, where=self.where,
                    )  # fmt: skip
                    found.orders = orders
                    yield found
                self._read += batch.num_rows
        except (pyarrow.ArrowInvalid, OSError) as cause:
            raise FileFormatError(
                f"{self.where}: cannot be read: {describe_os_error(cause)}"
            ) from None
        if not (self._read or self._may_be_empty):
            raise make_no_people_error(self.where)

    def close(self) -> None:
        """Close the file."""
        self._source.close()

    def done(self) -> float | None:
        """Return the fraction of the rows that was read."""
        return self._read / self.rows if self.rows else None


def _iterate_some_columns(stream: Any, file: Any, size: int, names: list[str]) -> Iterable[Any]:
    """Iterate over the batches of some columns of a file of Parquet, whose text is read as codes."""
    kinds = {one.name: one.type for one in file.schema_arrow}
    texts = [name for name in names if is_plain_text(kinds[name])]
    again = parquet.ParquetFile(stream, metadata=file.metadata, read_dictionary=texts)
    return again.iter_batches(batch_size=size, columns=names)  # type: ignore[no-any-return]


def _find_lost_orders(schema: Any, metadata: Any) -> set[str]:
    """Return the columns of ordered categories that a Parquet file has without their dictionary.

    Arrow makes one of the values as they come, whose order means nothing.
    """
    ordered = {field.name for field in schema if getattr(field.type, "ordered", False)}
    if not ordered:
        return ordered
    groups = map(metadata.row_group, range(metadata.num_row_groups))
    chunks = (group.column(place) for group in groups for place in range(metadata.num_columns))
    return ordered & {one.path_in_schema for one in chunks if not one.has_dictionary_page}


class FolderTable(Table):
    """A table over a folder of Parquet files with equal columns.

    A folder `year=2020` on the way to a file makes `year` a column, of the text `2020` in all its rows, as
    `values_in_path` reads it. Files without rows are parts of the table too.

    Attributes:
        files: their paths, in order.
        folder: that all of them are in.
        partitions: the columns that folders name.
    """

    def __init__(self, data: str | os.PathLike[str]) -> None:
        self.where = data
        self.folder, self.files = list_data_files(data)
        self.rows = 0
        self.lost_orders = set()
        first = None
        for file in self.files:
            with open_table(file, may_be_empty=True) as head:
                named = (head.names, list(values_in_path(file, self.folder)))
                types = list(head.types)
                self.lost_orders = {*self.lost_orders, *head.lost_orders}
                self.rows += head.rows or 0
            if first is None:
                first = named
                self.types = types
            if named != first:
                raise InputError(
                    f"{file}: has the columns {named[0]} and lies in folders of {named[1]}, and "
                    f"{self.files[0]} has {first[0]} and {first[1]}: files of one table have the same"
                )
            _check_boolean_columns(file, types, self)
        own, self.partitions = first or ([], [])
        # some engines write the column that names the folders into the files, too
        self._named = [name for name in self.partitions if name not in own]
        self.names = own + self._named
        self.types = [*self.types, *[pyarrow.string()] * len(self._named)]

    def batches(self) -> Iterator[TableBatch]:
        """Yield the batches of rows, file by file."""
        return self._read_files(lambda table: table.batches())

    def read_columns(self, names: Collection[str]) -> Iterator[TableBatch]:
        """Yield the batches of rows, file by file, of large files with some columns only."""
        return self._read_files(lambda table: table.read_columns(names))

    def _read_files(self, read: Callable[[Table], Iterator[TableBatch]]) -> Iterator[TableBatch]:
        """Yield the batches of rows, file by file."""
        for file in self.files:
            values = values_in_path(file, self.folder)
            named = [_make_constant(values[name]) for name in self._named]
            with open_table(file, may_be_empty=True) as table:
                for batch in read(table):
                    rows = integers_to_arrow(np.zeros(batch.size, dtype=np.int64))
                    columns = [*batch.columns, *(value.take(rows) for value in named)]
                    found = TableBatch(
                        columns, batch.size, batch.first, text=False, names=self.names, where=file
                    )
                    found.orders = batch.orders
                    yield found
        if not self.rows:
            raise make_no_people_error(self.where)


def _make_constant(value: str | None) -> Any:
    """Build a one-row array of a constant text or null."""
    return pyarrow.nulls(1, pyarrow.string()) if value is None else labels_to_arrow([value])


def _check_boolean_columns(file: Path, types: Sequence[Any], table: FolderTable) -> None:
    """Raise an error where a column is boolean in one file and numeric in another."""
    for place, (kind, known) in enumerate(zip(types, table.types, strict=False)):
        one = pyarrow.types.is_boolean(kind)
        other = pyarrow.types.is_boolean(known)
        if one != other and not pyarrow.types.is_null(other_kind := known if one else kind):
            raise InputError(
                f"{file}: the column at position {place} is of {kind}, and in {table.files[0]} of {known}: "
                f"convert truth values or {other_kind} to the other"
            )


def is_data_folder(data: str | os.PathLike[str]) -> bool:
    """Return whether data are a folder, or a pattern of file names."""
    path = Path(data)
    return path.is_dir() or ("*" in str(path) and not path.exists())


def list_data_files(data: str | os.PathLike[str]) -> tuple[Path, list[Path]]:
    """List the Parquet files of a folder or pattern, with their root folder.

    Files and folders whose names begin with a dot or an underscore are no data, as engines have it.

    Raises:
        FileFormatError: there is none.
    """
    path = Path(data)
    first = next((k for k, part in enumerate(path.parts) if "*" in part), len(path.parts))
    folder = Path(*path.parts[:first])
    pattern = str(Path(*path.parts[first:])) if first < len(path.parts) else "**/*"
    found = sorted(
        file
        for file in folder.glob(pattern)
        if file.suffix.lower() in PARQUET_ENDINGS
        and not any(part.startswith((".", "_")) for part in file.relative_to(folder).parts)
    )
    if not found:
        raise FileFormatError(f"{data}: has no file that ends in {' or '.join(PARQUET_ENDINGS)}")
    return folder, found


def read_texts(table: Table, columns: Sequence[str]) -> list[list[str]]:
    """Read columns of a table as text; missing cells are empty."""
    places = [find_column(table.names, column, table.where) for column in columns]
    found: list[list[str]] = [[] for _ in places]
    for batch in table.batches():
        for texts, place in zip(found, places, strict=True):
            texts.extend(batch.column_texts(place))
    return found


MISSING_NAME = "__HIVE_DEFAULT_PARTITION__"
"""The name of a folder for a missing value."""


def values_in_path(file: Path, folder: Path) -> dict[str, str | None]:
    """Parse the partition columns and values of a file's path.

    What a path cannot hold is percent-encoded there. Values are text: an engine may read `2020` as a number.

    Raises:
        FileFormatError: a name is percent-encoded text that is not UTF-8.

    Examples:
        >>> values_in_path(Path("people/region=a%2Fb/year=2020/part-0.parquet"), Path("people"))
        {'region': 'a/b', 'year': '2020'}
        >>> values_in_path(Path("people/region=__HIVE_DEFAULT_PARTITION__/part-0.parquet"), Path("people"))
        {'region': None}
    """
    parts = file.relative_to(folder).parent.parts
    pairs = (part.split("=", 1) for part in parts if "=" in part)
    return {
        _decode_value(name, file): None if value == MISSING_NAME else _decode_value(value, file)
        for name, value in pairs
    }


def _decode_value(text: str, file: Path) -> str:
    """Decode a percent-encoded partition value."""
    try:
        return unquote(text, errors="strict")
    except UnicodeDecodeError:
        raise FileFormatError(
            f"{file}: the name {text!r} of its folder is percent-encoded text that is not UTF-8: rename it"
        ) from None
