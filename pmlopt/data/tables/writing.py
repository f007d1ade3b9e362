"""Sinks: what the columns of a table's batches are written to, as CSV or Parquet, through Arrow."""

from __future__ import annotations

import io
import os
import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np

from pmlopt.core.arrays import IntArray, Label
from pmlopt.core.files import is_standard, reason_of, whole_file
from pmlopt.data.tables.reading import PARQUET_ENDINGS, FrameTable, Table, labels_to_arrow, to_arrow
from pmlopt.errors import FileFormatError, InputError

ARROW_ENDINGS = (".feather", ".arrow", ".ipc")
TEXT_ENDINGS = (".csv", ".tsv", ".txt", "")
COMPRESSED_ENDINGS = {".gz": "gzip", ".bz2": "bz2", ".zst": "zstd"}
"""What may stand behind an ending of text, and the codec of Arrow that it is."""


@dataclass(frozen=True)
class OutputColumn:
    """A column to write.

    Attributes:
        name: of the column.
        place: in the table that is read, where it is one of its columns.
        labels: those that may occur, where it is a new one.
    """

    name: str
    place: int | None = None
    labels: Sequence[Label] = ()

    @cached_property
    def texts(self) -> Any:
        """(M,) the labels as an array of texts, as `str` writes them."""
        return _text_array(list(map(str, self.labels)), labels_to_arrow([]).type)

    @cached_property
    def values(self) -> Any:
        """(M,) the labels as an array of their own type, where they have one; else texts."""
        kind = label_type(self.labels)
        return self.texts if kind == self.texts.type else _text_array(self.labels, kind)


@contextmanager
def open_sink(
    path: str | os.PathLike[str], columns: Sequence[OutputColumn], like: Table, *, replace: bool = True
) -> Iterator[CsvSink | TypedSink]:
    """A sink for a file that is there whole when the block ends, and else is not there.

    Args:
        path: `.parquet` or `.pq` for Parquet, `.feather`, `.arrow` or `.ipc` for Arrow, and `.csv`, `.tsv`,
            `.txt` or nothing for CSV in UTF-8, with the delimiter of a CSV file that is read, which `.gz`,
            `.bz2` or `.zst` behind it compress; `-` for CSV to standard output.
        columns: what it has.
        like: the table that is read.
        replace: whether a file is replaced that another process puts there meanwhile.

    Raises:
        FileFormatError: the ending is another one, or the file cannot be written there.
        InputError: a column cannot be written in that format.
    """
    kind, codec = sink_of(path)
    try:
        with whole_file(path, replace=replace) as stream, _compressed(stream, codec) as inner:
            sink = kind(inner, columns, like)
            try:
                yield sink
            except BaseException:
                sink.abandon()
                raise
            sink.close()
    except OSError as cause:
        if is_standard(path) and isinstance(cause, BrokenPipeError):
            raise  # whoever was reading has left
        raise FileFormatError(f"{path}: cannot be written: {reason_of(cause)}") from None


def write_table(path: str | os.PathLike[str], columns: Mapping[str, Sequence[Label]]) -> None:
    """Write columns of labels as a file, whole or not at all, in the format of its ending.

    Args:
        path: as for `open_sink`.
        columns: by name, each with a label for each row; labels of one kind keep it in Parquet and Arrow.

    Raises:
        FileFormatError: the ending is none of these, or the file cannot be written there.
        InputError: two labels of mixed kinds read alike.
    """
    every = [OutputColumn(name, labels=list(dict.fromkeys(labels))) for name, labels in columns.items()]
    with open_sink(path, every, FrameTable(columns)) as sink:
        places = [{label: k for k, label in enumerate(one.labels)} for one in every]
        sink.write([
            labelled(one, np.array([place[label] for label in columns[one.name]]), typed=sink.typed)
            for one, place in zip(every, places, strict=True)
        ])  # fmt: skip


def sink_of(path: str | os.PathLike[str]) -> tuple[type[CsvSink | TypedSink], str | None]:
    """The kind of sink for a file, by its ending, and the codec that compresses it, if any.

    Raises:
        FileFormatError: the ending is not known.

    Examples:
        >>> [sink_of(name)[0].__name__ for name in ("a.parquet", "a.feather", "a.CSV", "-")]
        ['ParquetSink', 'ArrowSink', 'CsvSink', 'CsvSink']
        >>> sink_of("a.csv.gz")[1]
        'gzip'
    """
    ending, codec = Path(path).suffix.lower(), None
    if ending in COMPRESSED_ENDINGS:
        ending, codec = Path(path).with_suffix("").suffix.lower(), COMPRESSED_ENDINGS[ending]
    if codec is None and ending in PARQUET_ENDINGS:
        return ParquetSink, None
    if codec is None and ending in ARROW_ENDINGS:
        return ArrowSink, None
    if ending in TEXT_ENDINGS:
        return CsvSink, codec
    known = ", ".join((*PARQUET_ENDINGS, *ARROW_ENDINGS, *TEXT_ENDINGS[:-1]))
    raise FileFormatError(
        f"{path}: data are not written in that format: end the name in {known}, or in "
        f"{', '.join(f'.csv{one}' for one in COMPRESSED_ENDINGS)}"
    )


@contextmanager
def _compressed(stream: BinaryIO, codec: str | None) -> Iterator[Any]:
    """The stream, or one that writes to it through a codec, and leaves it open."""
    if codec is None:
        yield stream
        return
    import pyarrow

    inner = pyarrow.CompressedOutputStream(pyarrow.PythonFile(_Kept(stream), mode="w"), codec)
    yield inner
    inner.close()


class _Kept(io.RawIOBase):
    """A stream that stays open when whoever writes to it is done."""

    def __init__(self, stream: BinaryIO) -> None:
        self._stream = stream

    def writable(self) -> bool:
        """It is."""
        return True

    def write(self, data: Any) -> int:
        """Hand on what is written."""
        return self._stream.write(data)


def labelled(column: OutputColumn, codes: IntArray, *, typed: bool) -> Any:
    """A new column by the places of its labels: of one type where they have one and `typed`, else texts."""
    return (column.values if typed else column.texts).take(to_arrow(codes))


def _text_array(values: Sequence[Any], kind: Any) -> Any:
    import pyarrow

    try:
        return labels_to_arrow(values) if kind == pyarrow.string() else pyarrow.array(values, type=kind)
    except UnicodeEncodeError as cause:
        raise FileFormatError(f"a label or a name cannot be written as UTF-8: {cause}") from None


def _scalar(text: str) -> Any:
    """A text as a scalar of Arrow."""
    return labels_to_arrow([text])[0]


def label_type(labels: Sequence[Label]) -> Any:
    """The Arrow type of labels: whole numbers, numbers, truth values, or text for all others."""
    import pyarrow

    kinds: set[Any] = {type(label) for label in labels}
    if kinds == {int} and all(-(2**63) <= int(str(label)) < 2**63 for label in labels):
        return pyarrow.int64()
    types = {float: pyarrow.float64(), bool: pyarrow.bool_()}
    return types.get(kinds.pop(), pyarrow.string()) if len(kinds) == 1 else pyarrow.string()


class CsvSink:
    """CSV in UTF-8, the cells that need it in quotes, with the delimiter of a CSV file that is read.

    Attributes:
        typed: whether new columns keep the type of their labels, or are text, each label as `str` writes it.
    """

    typed = False

    def __init__(self, stream: BinaryIO, columns: Sequence[OutputColumn], like: Table) -> None:
        import pyarrow.csv

        self._stream, self._columns = stream, columns
        self._delimiter = (like.form.delimiter if like.form else None) or ","
        self._special = f'["\r\n{re.escape(self._delimiter)}]'
        self._schema = pyarrow.schema([(f"f{place}", pyarrow.string()) for place in range(len(columns))])
        self._options = pyarrow.csv.WriteOptions(
            include_header=False, delimiter=self._delimiter, quoting_style="none"
        )
        for column in columns:
            check_text(column, "CSV")
        self.write([_text_array([str(column.name)], pyarrow.string()) for column in columns])

    def write(self, columns: Sequence[Any]) -> None:
        """Write the columns of a batch: at once where no cell needs quotes."""
        import pyarrow
        import pyarrow.compute
        import pyarrow.csv

        texts = [self._text(column, about) for column, about in zip(columns, self._columns, strict=True)]
        if len(texts) > 1:  # a blank line would be no row
            buffer = pyarrow.BufferOutputStream()
            try:
                batch = pyarrow.RecordBatch.from_arrays(texts, schema=self._schema)
                pyarrow.csv.write_csv(batch, buffer, self._options)
                self._stream.write(buffer.getvalue())
                return
            except pyarrow.ArrowInvalid:  # a cell needs quotes
                pass
        quoted = [self._quoted(text, alone=len(texts) == 1) for text in texts]
        quoted[-1] = pyarrow.compute.binary_join_element_wise(quoted[-1], _scalar(""), _scalar("\n"))
        between = _scalar(self._delimiter)
        lines = pyarrow.compute.binary_join_element_wise(*quoted, between) if len(quoted) > 1 else quoted[0]
        self._stream.write("".join(lines.to_pylist()).encode())

    def _text(self, column: Any, about: OutputColumn) -> Any:
        """The cells as text, an empty one where there is none."""
        import pyarrow

        if column.type != pyarrow.string():
            try:
                if pyarrow.types.is_dictionary(column.type):
                    column = column.cast(column.type.value_type)
                column = column.cast(pyarrow.string())
            except (pyarrow.ArrowNotImplementedError, pyarrow.ArrowInvalid):
                raise cannot_write(about.name, column.type) from None
        return column.fill_null(_scalar("")) if column.null_count else column

    def _quoted(self, text: Any, *, alone: bool) -> Any:
        """The cells, those that need it in quotes."""
        from pyarrow import compute

        pattern = f"{self._special}|^$" if alone else self._special
        needed = compute.match_substring_regex(text, pattern)
        if not compute.any(needed).as_py():
            return text
        quote = _scalar('"')
        inside = compute.replace_substring(text, '"', '""')
        return compute.if_else(
            needed, compute.binary_join_element_wise(quote, inside, quote, _scalar("")), text
        )

    def close(self) -> None:
        """Nothing ends a CSV file."""

    def abandon(self) -> None:
        """Nothing is kept back."""


class TypedSink:
    """Columns with their types, a batch at a time; the metadata of the file that is read stay behind."""

    typed = True

    def __init__(self, stream: BinaryIO, columns: Sequence[OutputColumn], like: Table) -> None:
        import pyarrow

        fields = []
        for column in columns:
            if column.place is None:
                kind = label_type(column.labels)
                if kind == pyarrow.string():
                    check_text(column, "a column of mixed kinds")
                fields.append(pyarrow.field(column.name, kind))
            else:
                fields.append(pyarrow.field(column.name, self._type(like.types[column.place])))
        self._schema = pyarrow.schema(fields)
        self._writer = self._begun(stream)

    def _type(self, kind: Any) -> Any:
        return kind

    def _begun(self, stream: BinaryIO) -> Any:
        raise NotImplementedError

    def write(self, columns: Sequence[Any]) -> None:
        """Write the columns of a batch."""
        import pyarrow

        arrays = [one.cast(field.type) for one, field in zip(columns, self._schema, strict=True)]
        self._writer.write_batch(pyarrow.RecordBatch.from_arrays(arrays, schema=self._schema))

    def close(self) -> None:
        """Write the footer."""
        self._writer.close()

    def abandon(self) -> None:
        """Keep the writer from ending a file that is not whole, as it does when it is forgotten."""


class ParquetSink(TypedSink):
    """Parquet, a row group for each batch."""

    def _begun(self, stream: BinaryIO) -> Any:
        import pyarrow.parquet

        return pyarrow.parquet.ParquetWriter(stream, self._schema)

    def abandon(self) -> None:
        """Keep the writer from ending a file that is not whole, as it does when it is forgotten."""
        self._writer.is_open = False


class ArrowSink(TypedSink):
    """An Arrow IPC file, as Feather is; categories become their values, as batches may differ in them."""

    def _begun(self, stream: BinaryIO) -> Any:
        import pyarrow.ipc

        return pyarrow.ipc.new_file(stream, self._schema)

    def _type(self, kind: Any) -> Any:
        import pyarrow

        return kind.value_type if pyarrow.types.is_dictionary(kind) else kind


def check_text(column: OutputColumn, what: str) -> None:
    """Complain of new labels that two of which would read the same."""
    different = {(type(label), label) for label in column.labels}  # parts of tuples stand several times
    if len({str(label) for _, label in different}) < len(different):
        raise InputError(
            f"the outputs of {column.name!r} have two that read alike, and {what} has text: give "
            "them other labels"
        )


def cannot_write(name: str, kind: object) -> FileFormatError:
    """What to say of a column that has no text."""
    return FileFormatError(f"the column {name!r} of {kind} cannot be written as CSV: leave it out by --drop")
