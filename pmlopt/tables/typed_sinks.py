"""Writers of columns of types: Parquet and Arrow files by groups of rows, and what they share with others."""

from __future__ import annotations

import io
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, BinaryIO, TypeAlias

import numpy as np

from pmlopt.core.lazy_imports import compute, ipc, parquet, pyarrow
from pmlopt.core.numbers.arrays import IntArray, Label
from pmlopt.errors import FileFormatError, InputError
from pmlopt.tables.cells import (
    encode_categories,
    gather_all_cells,
    get_category_type,
    get_plain_type,
    is_plain,
)
from pmlopt.tables.table import Table, labels_to_arrow

Cells: TypeAlias = Any
"""The cells of a column: an Arrow array, or (size,) the places of its labels where it is a new one."""


@dataclass(frozen=True)
class OutputColumn:
    """An output column: its name, labels or source.

    Attributes:
        name: of the column.
        place: in the table that is read, where it is one of its columns.
        labels: those that may occur, where it is a new one.
        level: that is stated of what a new one tells about a person, in nats; None for none.
    """

    name: str
    place: int | None = None
    labels: Sequence[Label] = ()
    level: float | None = None

    @cached_property
    def texts(self) -> Any:
        """Return the (M,) labels as an Arrow text array."""
        return to_typed_array(list(map(str, self.labels)), labels_to_arrow([]).type)

    @cached_property
    def values(self) -> Any:
        """Return the (M,) labels as a typed Arrow array where possible, else as text."""
        kind = get_label_type(self.labels)
        return self.texts if kind == self.texts.type else to_typed_array(self.labels, kind)


def to_typed_array(values: Sequence[Any], kind: Any) -> Any:
    """Convert values to a typed Arrow array; raise an error for invalid UTF-8."""
    try:
        if kind == pyarrow.string():
            return labels_to_arrow(values)
        return pyarrow.array(values, type=kind)
    except UnicodeEncodeError as cause:
        raise FileFormatError(f"a label or a name cannot be written as UTF-8: {cause}") from None


def get_label_type(labels: Sequence[Label]) -> Any:
    """Return the Arrow type of labels: integer, float, boolean or text."""
    # types, not values: True is equal to 1, and a column of both is text
    kinds: set[Any] = {type(label) for label in labels}
    if kinds == {int} and all(-(2**63) <= int(str(label)) < 2**63 for label in labels):
        return pyarrow.int64()
    types = {float: pyarrow.float64(), bool: pyarrow.bool_()}
    return types.get(kinds.pop(), pyarrow.string()) if len(kinds) == 1 else pyarrow.string()


class TypedSink:
    """The base of typed writers, by row groups, without input metadata.

    Attributes:
        group: how many rows are written at a time.
        plain: the schema of its rows.
    """

    typed = True

    def __init__(self, stream: BinaryIO, columns: Sequence[OutputColumn], like: Table) -> None:
        # Rows of a row group of Parquet, or of a batch of Arrow, whatever the batches of the data were.
        # Cells of such a group, so that wide tables have shorter ones.
        self.group: int | None = max(1, min(2**18, (2**21) // max(1, len(columns))))
        plain = []
        written = []
        self._values: list[Any] = []  # of new columns
        for column in columns:
            self._values.append(None if column.place is not None else self._make_values(column))
            if column.place is None:
                kind = self._values[-1].type
                if kind == pyarrow.string():
                    check_readable_labels(column, "a column of mixed kinds")
                plain.append(
                    pyarrow.field(column.name, pyarrow.from_numpy_dtype(_choose_code_type(column)))
                )
                written.append(pyarrow.field(column.name, kind))
            else:
                kind = like.types[column.place]
                plain.append(pyarrow.field(column.name, get_plain_type(kind, column.name)))
                written.append(pyarrow.field(column.name, self._column_type(kind, column.name)))
        self._columns = columns
        self.plain = pyarrow.schema(plain)
        self._schema = pyarrow.schema(written)
        self._stream = stream
        self._writer: Any = None  # from the first group of rows on

    def _column_type(self, kind: Any, name: str) -> Any:
        """Return the output Arrow type of a column."""
        return get_plain_type(kind, name)

    def _make_values(self, column: OutputColumn) -> Any:
        """Return the (M,) values of the labels of a new column as an Arrow array."""
        return column.values

    def _open_writer(self, first: Any) -> Any:
        """Open the file writer, given the first row group."""
        raise NotImplementedError

    def rows(self, columns: Sequence[Cells]) -> Any:
        """Build a record batch of a batch's columns, with label indices for new ones."""
        arrays = [
            _to_plain_cells(cells, field.type)
            if column.place is not None
            else _codes_to_arrow(cells, column)
            for cells, column, field in zip(columns, self._columns, self.plain, strict=True)
        ]
        return pyarrow.RecordBatch.from_arrays(arrays, schema=self.plain)

    def write(self, rows: Any) -> None:
        """Write a group of rows."""
        arrays = [
            values.take(cells) if values is not None
            else encode_categories(cells) if pyarrow.types.is_dictionary(field.type) else cells
            for cells, values, field in zip(rows.columns, self._values, self._schema, strict=True)
        ]  # fmt: skip
        group = pyarrow.RecordBatch.from_arrays(arrays, schema=self._schema)
        writer = self._writer or self._open_writer(group)
        self._writer = writer
        writer.write_batch(group)

    def close(self) -> None:
        """Write the footer, also of an empty file."""
        writer = self._writer or self._open_writer(self._schema.empty_table())
        self._writer = writer
        writer.close()

    def abandon(self) -> None:
        """Abandon an incomplete file without a footer."""


class WholeTable:
    """The groups of rows of a table, for a format that is written from all of them at once."""

    def __init__(self, schema: Any, write: Callable[[Any], object]) -> None:
        self._schema = schema
        self._write = write
        self._groups: list[Any] = []

    def write_batch(self, group: Any) -> None:
        """Hold a group of rows."""
        self._groups.append(group)

    def close(self) -> None:
        """Write all rows."""
        self._write(pyarrow.Table.from_batches(self._groups, schema=self._schema))


class ParquetSink(TypedSink):
    """A Parquet writer, one row group per batch group."""

    def _open_writer(self, first: Any) -> Any:
        """Open the file writer, given the first row group."""
        # decided by the first group, since the footer of a file has one setting for all
        named = find_repeating_columns(first)
        return parquet.ParquetWriter(self._stream, self._schema, use_dictionary=named)

    def _column_type(self, kind: Any, name: str) -> Any:
        """Return the output Arrow type, categorical where the input is.

        Raises:
            FileFormatError: Parquet has no such type, as of an interval of months.
        """
        import pyarrow.parquet

        found = get_category_type(kind, name)
        try:
            pyarrow.parquet.ParquetWriter(io.BytesIO(), pyarrow.schema([(name, found)])).close()
        except pyarrow.ArrowNotImplementedError:
            raise make_write_error(name, kind, "Parquet") from None
        return found

    def abandon(self) -> None:
        """Abandon an incomplete file without a footer."""
        if self._writer is not None:
            self._writer.is_open = False


class ArrowSink(TypedSink):
    """An Arrow IPC (Feather) writer without categories."""

    def _open_writer(self, first: Any) -> Any:
        """Open the file writer, given the first row group."""
        return ipc.new_file(self._stream, self._schema)


def find_repeating_columns(rows: Any) -> list[str] | bool:
    """Return the columns worth dictionary encoding in Parquet; True for all.

    Of a column without repetitions it makes one in vain, which takes a third of the time of writing. Only the
    rows that are written decide.

    Args:
        rows: the first group of rows.
    """
    if any(pyarrow.types.is_nested(kind) for kind in rows.schema.types):
        return True  # their parts have names
    columns = zip(rows.schema.names, rows.columns, strict=True)
    # Cells of a column that are looked at to decide whether its values repeat.
    found = [name for name, column in columns if _has_repeated_values(column.slice(0, 2**14))]
    return True if len(found) == len(rows.schema.names) else found


def _has_repeated_values(cells: Any) -> bool:
    """Return whether cells have at most half as many distinct values."""
    try:
        return bool(compute.count_distinct(cells).as_py() <= len(cells) / 2)
    except pyarrow.ArrowNotImplementedError:
        return True


def _to_plain_cells(cells: Any, kind: Any) -> Any:
    """Convert a column's cells to the file's plain type."""
    # views of a batch keep all of it alive, and may have a type that the file does not
    is_ready = isinstance(cells, pyarrow.Array) and is_plain(cells.type)
    return (cells if is_ready else gather_all_cells(cells)).cast(kind)


def _choose_code_type(column: OutputColumn) -> np.dtype[Any]:
    """Return the smallest integer type of label indices."""
    return np.min_scalar_type(-max(1, len(column.labels)))


def _codes_to_arrow(codes: IntArray, column: OutputColumn) -> Any:
    """Convert label indices to an Arrow array, without loading pandas."""
    kind = _choose_code_type(column)
    held = pyarrow.py_buffer(codes.astype(kind))
    return pyarrow.Array.from_buffers(pyarrow.from_numpy_dtype(kind), len(codes), [None, held])


def make_write_error(name: str, kind: object, form: str) -> FileFormatError:
    """Build the error of a column that a format has no form for."""
    return FileFormatError(
        f"the column {name!r} of {kind} cannot be written as {form}: leave it out by --drop, or convert it "
        "to text"
    )


def check_readable_labels(column: OutputColumn, what: str) -> None:
    """Raise an error for new labels with equal text."""
    # parts of tuples occur several times
    different = {(type(label), label) for label in column.labels}
    if len({str(label) for _, label in different}) < len(different):
        raise InputError(
            f"the outputs of {column.name!r} have two that read alike, and {what} has text: give "
            "them other labels"
        )
