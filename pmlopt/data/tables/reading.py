"""Tables through Arrow: CSV, Parquet and Arrow files in batches of rows, and frames in memory."""

from __future__ import annotations

import io
import os
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Literal, Self

import numpy as np

from pmlopt.core.arrays import BoolArray, IntArray
from pmlopt.core.files import is_standard, reason_of, standard_input
from pmlopt.core.frames import is_frame, is_lazy, is_missing, listed, opened
from pmlopt.data.tables.streams import HEAD, CsvForm, DataStream, QuoteCheck, text_rows, with_seeking
from pmlopt.errors import FileFormatError, InputError

PARQUET_ENDINGS = (".parquet", ".pq")

_PARQUET, _ARROW = b"PAR1", b"ARROW1"
"""What files of these formats begin with."""

_COMPRESSED = {b"\x1f\x8b": "gzip", b"BZh": "bz2", b"\x28\xb5\x2f\xfd": "zstd"}
"""What compressed files begin with, and the codec of Arrow."""

_BLOCK = 2**21
"""Bytes of CSV that are parsed at a time."""

_CELLS = 2**21
"""Cells of a batch of Parquet, so that wide tables have shorter batches."""

_LONGEST_BATCH = 2**18


def column_place(names: Sequence[str], column: str, where: object) -> int:
    """The place of the one column of that name.

    Raises:
        InputError: there is none, or more than one.

    Examples:
        >>> column_place(["id", "level"], "level", "people.csv")
        1
    """
    found = [place for place, name in enumerate(names) if name == column]
    if len(found) != 1:
        raise InputError(f"{where}: has {len(found)} columns named {column!r}; it has {list(names)}")
    return found[0]


def from_arrow(numbers: Any) -> IntArray:
    """The whole numbers of an Arrow array without nulls; its own `to_numpy` would load pandas."""
    values = np.frombuffer(numbers.buffers()[1], dtype=numbers.type.to_pandas_dtype())
    return values[numbers.offset : numbers.offset + len(numbers)].astype(np.int64)


def to_arrow(numbers: IntArray) -> Any:
    """Whole numbers as an Arrow array; `pyarrow.array` would load pandas.

    Examples:
        >>> from_arrow(to_arrow(np.array([2, 0, 1]))[1:]).tolist()
        [0, 1]
    """
    import pyarrow

    held = pyarrow.py_buffer(np.ascontiguousarray(numbers, dtype=np.int64))
    return pyarrow.Array.from_buffers(pyarrow.int64(), len(numbers), [None, held])


def labels_to_arrow(texts: Sequence[str]) -> Any:
    """Texts as an Arrow array; `pyarrow.array` would load pandas.

    Raises:
        UnicodeEncodeError: a text cannot be written as UTF-8.

    Examples:
        >>> labels_to_arrow(["a", "", "bc"]).to_pylist()
        ['a', '', 'bc']
    """
    import pyarrow

    encoded = [text.encode() for text in texts]
    ends = np.cumsum([0, *map(len, encoded)], dtype=np.int32)
    held = [None, pyarrow.py_buffer(ends), pyarrow.py_buffer(b"".join(encoded))]
    return pyarrow.Array.from_buffers(pyarrow.string(), len(encoded), held)


class Batch:
    """Some rows of a table, as arrays of Arrow.

    Attributes:
        size: the number of rows.
        first: the number of the first one, as messages count them.
        times: (size,) how many rows of the data each stands for, where an engine has counted equal ones.
    """

    times: IntArray | None = None

    def __init__(self, columns: Sequence[Any], size: int, first: int, text: bool) -> None:
        self.columns, self.size, self.first = columns, size, first
        self._text = text

    def encoded(self, place: int) -> tuple[list[Any], IntArray]:
        """The distinct values of a column, None for a missing cell, and (size,) the place of each row's."""
        import pyarrow

        column = self.columns[place]
        try:
            if pyarrow.types.is_dictionary(column.type):
                column = column.cast(column.type.value_type)
            coded = column.dictionary_encode(null_encoding="encode")
        except (pyarrow.ArrowNotImplementedError, pyarrow.ArrowInvalid):
            raise InputError(f"a column of {column.type} is no column of letters") from None
        if isinstance(coded, pyarrow.ChunkedArray):
            coded = coded.combine_chunks()
        values = coded.dictionary.to_pylist()
        codes = from_arrow(coded.indices)
        if self._text:
            return [value or None for value in values], codes
        return [None if is_missing(value) else value for value in values], codes

    def texts(self, place: int) -> list[str]:
        """The cells of a column as text, an empty one where one is missing."""
        values, codes = self.encoded(place)
        shown = ["" if value is None else str(value) for value in values]
        return [shown[code] for code in codes.tolist()]

    def column(self, place: int, keep: BoolArray | None = None) -> Any:
        """The array of a column, of the rows to keep."""
        column = self.columns[place]
        return column if keep is None else column.take(to_arrow(np.flatnonzero(keep)))


class Table(ABC):
    """A table that is read once, in batches.

    Attributes:
        names: of the columns.
        where: the file, for messages.
        typed: whether cells have types, or are text from a CSV file.
        form: of the CSV file, or None.
        rows: how many there are, where that is known before they are read.
        types: the types of the columns in Arrow.
    """

    names: list[str]
    where: object
    typed: bool = True
    form: CsvForm | None = None
    rows: int | None = None
    types: Sequence[Any]

    @abstractmethod
    def batches(self) -> Iterator[Batch]:
        """The batches of rows, in their order."""

    def counted(self, columns: Sequence[str]) -> Table:
        """A table with the same counts of the tuples in some columns; this one, where it cannot count."""
        return self

    def close(self) -> None:
        """Close the file, if there is one."""
        return

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def done(self) -> float | None:
        """The share that has been read so far; None where that is not known."""
        return None


def open_table(data: Any, form: CsvForm | None = None) -> Table:
    """The table of a data file, or of a frame.

    Args:
        data: the path of a file, `-` for standard input, a folder or a pattern of Parquet files, a frame of
            pandas, Polars or Arrow, one that an engine has not computed (Polars, DuckDB, Dask, Spark), or a
            mapping from names to columns.
        form: of a CSV file.

    Raises:
        FileFormatError: the file is not there, or is no table.
        InputError: it is no frame, a column is none, or two have one name.
    """
    if not isinstance(data, str | os.PathLike):
        frame = opened(data, lazy=True)
        return LazyTable(frame) if is_lazy(frame) else FrameTable(data)
    if is_folder(data):
        return FolderTable(data)
    try:
        stream = standard_input() if is_standard(data) else Path(data).open("rb")  # noqa: SIM115 -- the table's
        source = DataStream(stream)
    except (OSError, ValueError, TypeError) as cause:
        raise FileFormatError(f"{data}: cannot be read: {reason_of(cause)}") from None
    try:
        codec = next((codec for mark, codec in _COMPRESSED.items() if source.head.startswith(mark)), None)
        if codec is not None:
            source = _opened(source, codec, data)
        if source.head.startswith(_PARQUET):
            return TypedTable(data, with_seeking(source), "Parquet")
        if source.head.startswith(_ARROW):
            return TypedTable(data, with_seeking(source), "Arrow")
        found = (form or CsvForm()).found(source.head, data, whole=len(source.head) < HEAD)
        return CsvTable(data, source, found)
    except BaseException:
        source.close()
        raise


def _opened(source: DataStream, codec: str, where: object) -> DataStream:
    """What a compressed file holds."""
    import pyarrow

    try:
        return DataStream(pyarrow.CompressedInputStream(pyarrow.PythonFile(source, mode="r"), codec), where)
    except OSError as cause:
        raise FileFormatError(f"{where}: is not a whole {codec} file: {reason_of(cause)}") from None


class FrameTable(Table):
    """Columns in memory."""

    where = "the table"

    def __init__(self, data: Any) -> None:
        frame = opened(data)
        if isinstance(data, Mapping):
            columns = {name: _listed_column(column, name) for name, column in data.items()}
        elif frame is not None and is_frame(frame):
            columns = {name: frame[name].to_arrow for name in frame.columns}
        else:
            raise InputError(
                f"{type(data).__name__!r} is no table: give the path of a file, a frame of pandas, Polars or "
                "Arrow, or a mapping from names to columns"
            )
        self.names, self._columns = list(columns), columns
        sizes = {name: len(column) for name, column in columns.items() if isinstance(column, list)}
        if len(set(sizes.values())) > 1:
            raise InputError(
                f"the columns have different numbers of rows, {sizes}: give each as many cells, None where "
                "one is missing"
            )
        self._size = next(iter(sizes.values()), 0) if frame is None else len(frame)

    @property
    def types(self) -> Sequence[Any]:  # type: ignore[override]  # made where they are asked for
        """The types of the columns in Arrow."""
        return [column.type for column in _Converted(self._columns)]

    def batches(self) -> Iterator[Batch]:
        """All rows in one batch."""
        if not self._size:
            raise no_rows(self.where)
        yield Batch(_Converted(self._columns), self._size, 0, text=False)


class LazyTable(Table):
    """A frame that an engine has not computed: the engine counts, and other questions have it computed."""

    where = "the table"

    def __init__(self, frame: Any) -> None:
        self._frame, self.names = frame, frame.collect_schema().names()

    def batches(self) -> Iterator[Batch]:
        """All rows in one batch."""
        return FrameTable(self._frame.collect("pyarrow").to_native()).batches()

    def counted(self, columns: Sequence[str]) -> Table:
        """The tuples in some columns, each once, with how many rows have it."""
        import narwhals

        size = "-".join(["rows", *columns])  # no column's name
        groups = self._frame.group_by(*columns).agg(narwhals.len().alias(size)).collect("pyarrow")
        return _Counted(groups.to_native(), size)


class _Counted(FrameTable):
    """Tuples of values, each with how many rows have it."""

    def __init__(self, data: Any, size: str) -> None:
        super().__init__(data.drop_columns([size]))
        self._times = np.array(data[size].to_pylist(), dtype=np.int64)

    def batches(self) -> Iterator[Batch]:
        """All tuples in one batch."""
        for batch in super().batches():
            batch.times = self._times
            yield batch


class _Converted(Sequence[Any]):
    """Columns as arrays of Arrow, made where one is asked for: a frame may have many others."""

    def __init__(self, columns: Mapping[Any, Any]) -> None:
        self._columns = list(columns.items())

    def __len__(self) -> int:
        return len(self._columns)

    def __getitem__(self, place: Any) -> Any:
        import pyarrow

        name, column = self._columns[place]
        try:
            return pyarrow.array(column, from_pandas=True) if isinstance(column, list) else column()
        except (pyarrow.ArrowInvalid, pyarrow.ArrowTypeError, OverflowError) as cause:
            raise InputError(
                f"the column {name!r} mixes kinds, or holds what is no letter: convert it to text or to "
                f"numbers ({cause})"
            ) from None


def _listed_column(column: Any, name: object) -> list[Any]:
    if isinstance(column, str | bytes) or not hasattr(column, "__len__"):
        raise InputError(f"the column {name!r} is {column!r}: give a list or an array of its cells")
    return listed(column)


class CsvTable(Table):
    """A CSV file, parsed by Arrow, every cell as text."""

    typed = False

    def __init__(self, path: str | os.PathLike[str], source: DataStream, form: CsvForm) -> None:
        import pyarrow

        self.where, self.form = path, form
        self._source = source
        self._reading: Any = None
        self._quotes, self._judged = QuoteCheck(form.delimiter or ","), False
        self.names = next(text_rows(io.BytesIO(source.head), form, path), [])
        if not self.names:
            raise no_rows(path, 0)
        self.types = [pyarrow.string()] * len(self.names)

    def batches(self) -> Iterator[Batch]:
        """The batches of rows."""
        import pyarrow

        first = 1  # the header is read as a row
        try:
            self._reading = self._reader()
            for batch in self._reading:
                self._check_quotes()
                columns = batch.columns if first > 1 else [column.slice(1) for column in batch.columns]
                size = batch.num_rows if first > 1 else batch.num_rows - 1
                first = max(first, 2)
                if size:
                    yield Batch(columns, size, first, text=True)
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
        import pyarrow.csv

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
            pyarrow.csv.ConvertOptions(
                column_types={f"f{place}": kind for place, kind in enumerate(self.types)},
                strings_can_be_null=False,
            ),
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

    def close(self) -> None:
        """Close the file, after what reads ahead in it."""
        if self._reading is not None:
            self._reading.close()
        self._source.close()

    def done(self) -> float | None:
        """The share of the file that was read."""
        return self._source.done()


class TypedTable(Table):
    """A file whose columns have types: Parquet, or Arrow IPC, which Feather is too."""

    def __init__(self, path: object, source: DataStream, kind: Literal["Parquet", "Arrow"]) -> None:
        import pyarrow

        self.where, self._source, self._read = path, source, 0
        try:
            stream = pyarrow.PythonFile(source, mode="r")
            if kind == "Parquet":
                import pyarrow.parquet

                file = pyarrow.parquet.ParquetFile(stream)
                schema, self.rows = file.schema_arrow, file.metadata.num_rows
                size = max(1, min(_LONGEST_BATCH, _CELLS // max(1, len(schema.names))))
                self._parts: Callable[[], Iterable[Any]] = lambda: file.iter_batches(batch_size=size)
            else:
                import pyarrow.ipc

                file = pyarrow.ipc.open_file(stream)
                schema = file.schema
                self._parts = lambda: map(file.get_batch, range(file.num_record_batches))
        except (pyarrow.ArrowInvalid, OSError) as cause:
            raise FileFormatError(f"{path}: is not a whole {kind} file: {reason_of(cause)}") from None
        self.names, self.types = list(schema.names), list(schema.types)

    def batches(self) -> Iterator[Batch]:
        """The batches of rows."""
        import pyarrow

        self._read = 0
        try:
            for batch in self._parts():
                if batch.num_rows:
                    yield Batch(batch.columns, batch.num_rows, self._read + 1, text=False)
                self._read += batch.num_rows
        except (pyarrow.ArrowInvalid, OSError) as cause:
            raise FileFormatError(f"{self.where}: cannot be read: {reason_of(cause)}") from None
        if not self._read:
            raise no_rows(self.where)

    def close(self) -> None:
        """Close the file."""
        self._source.close()

    def done(self) -> float | None:
        """The share of the rows that was read."""
        return self._read / self.rows if self.rows else None


class FolderTable(Table):
    """Parquet files with the same columns, one after the other.

    A folder `year=2020` on the way to a file makes `year` a column, of the text `2020` in all its rows.

    Attributes:
        files: their paths, in order.
        folder: that all of them are in.
        partitions: the columns that folders name.
    """

    def __init__(self, data: str | os.PathLike[str]) -> None:
        import pyarrow

        self.where = data
        self.folder, self.files = files_in(data)
        self.rows, first = 0, None
        for file in self.files:
            with open_table(file) as head:
                named = (head.names, list(_named_by(file, self.folder)))
                self.rows += head.rows or 0
            if first is None:
                first, self.types = named, list(head.types)
            if named != first:
                raise InputError(
                    f"{file}: has the columns {named[0]} and lies in folders of {named[1]}, and "
                    f"{self.files[0]} has {first[0]} and {first[1]}: files of one table have the same"
                )
        own, self.partitions = first or ([], [])
        self.names = own + self.partitions
        self.types = [*self.types, *[pyarrow.string()] * len(self.partitions)]

    def batches(self) -> Iterator[Batch]:
        """The batches of rows of one file after the other."""
        for file in self.files:
            values = labels_to_arrow(list(_named_by(file, self.folder).values()))
            with open_table(file) as table:
                for batch in table.batches():
                    named = [
                        values.take(to_arrow(np.full(batch.size, place, dtype=np.int64)))
                        for place in range(len(values))
                    ]
                    yield Batch([*batch.columns, *named], batch.size, batch.first, text=False)


def _named_by(file: Path, folder: Path) -> dict[str, str]:
    """The columns and values that the folders on the way to a file name."""
    parts = file.relative_to(folder).parent.parts
    return dict(part.split("=", 1) for part in parts if "=" in part)


def is_folder(data: str | os.PathLike[str]) -> bool:
    """Whether data are a folder of files, or a pattern with `*` for the names of several."""
    path = Path(data)
    return path.is_dir() or ("*" in str(path) and not path.exists())


def files_in(data: str | os.PathLike[str]) -> tuple[Path, list[Path]]:
    """The Parquet files of a folder, or of a pattern, in the order of their names, and the folder of all.

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


def no_rows(where: object, rows: int = 1) -> FileFormatError:
    """What to say of a table without rows, of as many with the header."""
    return FileFormatError(f"{where}: has {rows} row(s): a header and at least one row are needed")


def texts_in(table: Table, columns: Sequence[str]) -> list[list[str]]:
    """The cells of some columns of a table as text, an empty one where one is missing."""
    places = [column_place(table.names, column, table.where) for column in columns]
    found: list[list[str]] = [[] for _ in places]
    for batch in table.batches():
        for texts, place in zip(found, places, strict=True):
            texts.extend(batch.texts(place))
    return found
