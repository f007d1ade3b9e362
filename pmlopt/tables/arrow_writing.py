"""Sinks for columns of Arrow: CSV, and Parquet."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, BinaryIO

import pyarrow
import pyarrow.compute
import pyarrow.csv
import pyarrow.parquet

from pmlopt.tables.arrow import label_type
from pmlopt.tables.batches import Table
from pmlopt.tables.csv_form import CsvForm
from pmlopt.tables.sinks import OutputColumn, Sink, cannot_write, check_text


class CsvSink(Sink):
    """CSV, the cells that need it in quotes."""

    def __init__(self, stream: BinaryIO, columns: Sequence[OutputColumn], form: CsvForm, like: Table) -> None:
        self._stream, self._form, self._columns = stream, form, columns
        self._schema = pyarrow.schema([(f"f{place}", pyarrow.string()) for place in range(len(columns))])
        self._options = pyarrow.csv.WriteOptions(
            include_header=False, delimiter=form.delimiter, quoting_style="none"
        )
        for column in columns:
            check_text(column, "CSV")
        stream.write(form.encoded([[column.name for column in columns]]))

    def write(self, columns: Sequence[Any]) -> None:
        """Write the columns of a batch: at once where no cell needs quotes."""
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
        end = pyarrow.scalar("\n")
        quoted[-1] = pyarrow.compute.binary_join_element_wise(quoted[-1], "", end)
        between = pyarrow.scalar(self._form.delimiter)
        lines = pyarrow.compute.binary_join_element_wise(*quoted, between) if len(quoted) > 1 else quoted[0]
        self._stream.write("".join(lines.to_pylist()).encode())

    def _text(self, column: Any, about: OutputColumn) -> Any:
        """The cells as text, an empty one where there is none."""
        if column.type != pyarrow.string():
            try:
                if pyarrow.types.is_dictionary(column.type):
                    column = column.dictionary_decode()
                column = column.cast(pyarrow.string())
            except (pyarrow.ArrowNotImplementedError, pyarrow.ArrowInvalid):
                raise cannot_write(about.name, column.type) from None
        return column.fill_null("") if column.null_count else column

    def _quoted(self, text: Any, *, alone: bool) -> Any:
        """The cells, those that need it in quotes."""
        compute = pyarrow.compute
        pattern = f"{self._form.special}|^$" if alone else self._form.special
        needed = compute.match_substring_regex(text, pattern)
        if not compute.any(needed).as_py():
            return text
        quote = pyarrow.scalar('"')
        inside = compute.replace_substring(text, '"', '""')
        return compute.if_else(needed, compute.binary_join_element_wise(quote, inside, quote, ""), text)


class ParquetSink(Sink):
    """Parquet, a row group for each batch; the metadata of the file that is read stay behind."""

    typed = True

    def __init__(self, stream: BinaryIO, columns: Sequence[OutputColumn], form: CsvForm, like: Table) -> None:
        fields = []
        for column in columns:
            if column.place is None:
                kind = label_type(column.labels)
                if kind == pyarrow.string():
                    check_text(column, "a column of mixed kinds")
                fields.append(pyarrow.field(column.name, kind))
            else:
                source = like.arrow_schema.field(column.place)
                fields.append(pyarrow.field(column.name, source.type, source.nullable))
        self._schema = pyarrow.schema(fields)
        self._writer = pyarrow.parquet.ParquetWriter(stream, self._schema)

    def write(self, columns: Sequence[Any]) -> None:
        """Write the columns of a batch."""
        self._writer.write_batch(pyarrow.RecordBatch.from_arrays(list(columns), schema=self._schema))

    def close(self) -> None:
        """Write the footer."""
        self._writer.close()

    def abandon(self) -> None:
        """Keep the writer from ending a file that is not whole, as it does when it is forgotten."""
        self._writer.is_open = False
